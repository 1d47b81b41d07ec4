//! What targets with a command line share: the command, its variables, stub files, and a script around it.

use std::fmt::Write as _;

use bailiwick_policy::artifact::ArtifactFile;
use bailiwick_policy::plan::Plan;

use crate::view::{View, is_within};

/// Where programs are looked for inside.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Home inside: the sandbox's own `/tmp`.
pub(crate) const HOME: &str = "/tmp";
/// The locale inside.
pub(crate) const LANG: &str = "C.UTF-8";

/// The command with its arguments; empty if the plan has none and the caller appends one.
pub(crate) fn command(plan: &Plan) -> Vec<String> {
    let Some((command, arguments)) = plan.command() else { return Vec::new() };
    std::iter::once(command.to_owned()).chain(arguments.iter().cloned()).collect()
}

/// The variables with a known value: three that every program has, unless the plan fixes them, and the fixed.
pub(crate) fn variables(plan: &Plan) -> impl Iterator<Item = (&str, &str)> {
    let fixed = &plan.environment().fixed;
    let own = [("PATH", PATH), ("HOME", HOME), ("LANG", LANG)];
    let own = own.into_iter().filter(|(name, _)| !fixed.contains_key(*name));
    own.chain(fixed.iter().map(|(name, value)| (&**name, &**value)))
}

/// The names of the variables whose values the caller has.
pub(crate) fn passed(plan: &Plan) -> impl Iterator<Item = &str> {
    let environment = plan.environment();
    let names = environment.injected.iter().chain(&environment.read).map(|name| &*name.value);
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().filter(|name| !environment.fixed.contains_key(*name))
}

/// The stub files as files of the artifact, named as their path without the first slash.
pub(crate) fn stub_files(view: &View) -> Vec<ArtifactFile> {
    let file = |(path, text): &(&str, &str)| ArtifactFile {
        name: stub_name(path).to_owned(),
        text: (*text).to_owned(),
    };
    view.stubs.iter().map(file).collect()
}

/// The name of a stub file in the artifact.
pub(crate) fn stub_name(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or(path)
}

/// A note if the command is a file that nothing shows.
pub(crate) fn command_notes(plan: &Plan, view: &View, notes: &mut Vec<String>) {
    let Some((command, _)) = plan.command().filter(|(command, _)| command.starts_with('/')) else { return };
    let base = view.base.iter().any(|path| is_within(command, path));
    let trees = view.root.is_some() || view.trees.iter().any(|tree| is_within(command, &tree.path));
    if !base && !trees {
        notes.push(format!(
            "the command `{command}` is not visible inside: grant `fs:read` for its directory"
        ));
    }
}

/// A shell script that starts bubblewrap with the stub files and the caller's variables.
///
/// Values go through a pipe that the shell's own `printf` fills: they are in no command line and in no file.
pub(crate) fn bwrap(plan: &Plan, view: &View, argv: &[String], long: bool) -> String {
    let mut text = String::with_capacity(8192);
    text.push_str("#!/bin/sh\n# Starts the command, or the one given as arguments, in its sandbox.\n");
    text.push_str("here=$(cd -- \"$(dirname -- \"$0\")\" && pwd) || exit\n");
    let mut passes = false;
    for name in passed(plan) {
        text.push_str(if passes { "" } else { "exec 4<&0\n{\n" });
        passes = true;
        let _ = writeln!(text, "  [ -z \"${{{name}+x}}\" ] || printf '%s\\0' --setenv {name} \"${name}\"");
    }
    text.push_str(if passes { "} | bwrap" } else { "exec bwrap" });
    for (path, _) in &view.stubs {
        let _ = write!(text, " \\\n  --ro-bind \"$here/{}\" {path}", stub_name(path));
    }
    let (options, end) = argv.split_at(argv.len().saturating_sub(1));
    for option in options.iter().skip(1) {
        text.push_str(if option.starts_with("--") { " \\\n  " } else { " " });
        text.push_str(&quoted(option));
    }
    text.push_str(if passes { " \\\n  --args 5 \\\n " } else { " \\\n " });
    for word in end.iter().chain(&command(plan)) {
        text.push(' ');
        text.push_str(&quoted(word));
    }
    text.push_str(" \"$@\"");
    text.push_str(if passes { " 5<&0 0<&4 4<&-" } else { "" });
    text.push_str(if long { " 3<\"$here/bwrap.args\"" } else { "" });
    text.push('\n');
    text
}

/// A word as a POSIX shell reads it back.
pub(crate) fn quoted(word: &str) -> std::borrow::Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:=,+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''")).into()
}

#[cfg(test)]
mod tests {
    use bailiwick_policy::plan::PROGRAM_DIRECTORIES;

    use super::*;

    #[test]
    fn the_search_path_is_that_of_plans() {
        assert_eq!(PATH, PROGRAM_DIRECTORIES.join(":"));
    }
}
