//! What a command that failed may have missed, and the flag that grants it.
//!
//! Only paths that the command was given or stands in, programs that its kind is known to start, and hosts that it was
//! refused. Files and programs are not watched, so a note about them is a guess that names its reason.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use bailiwick_egress::Event;
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::{BASE, BaseKind, MASKED, Plan};

/// More than these help nobody.
const MOST: usize = 3;

/// Programs that start others: what to add, unless it is granted already, and why.
const STARTERS: [(&[&str], &str, &str); 3] = [
    (&["cargo", "rustc"], "cc", "it calls the linker"),
    (&["make", "cmake", "ninja"], "sh", "it starts its commands in a shell"),
    (&["npm", "npx", "yarn", "pnpm"], "git", "it fetches with git"),
];

/// Programs that start what they have just built.
const BUILDERS: [&str; 7] = ["cargo", "make", "cmake", "ninja", "npm", "go", "rustc"];

/// What to say after a command has failed.
pub(super) fn notes(command: &[OsString], here: &Path, plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    if !is_visible(plan, here) {
        let shown = here.display();
        notes.push(format!(
            "the current folder `{shown}` is not visible inside; add --cap 'fs:read,write:{shown}/**'"
        ));
    }
    let arguments = command.iter().skip(1).filter_map(|argument| named_path(argument, here));
    let missing = arguments.filter(|path| !is_visible(plan, path) && !path.starts_with(here));
    for path in missing.take(MOST) {
        let shown = path.display();
        notes.push(format!("`{shown}` is not visible inside; add --cap fs:read:{shown}"));
    }
    notes.extend(programs(command, plan));
    notes
}

/// What to say if the command ended as a shell does that could not start a program.
pub(super) fn unstarted(plan: &Plan) -> Option<String> {
    plan.exec().any.is_none().then(|| {
        "every program that the command starts has to be granted too; add --cap exec:spawn:NAME for each, \
         or --cap 'exec:spawn:*'"
            .to_owned()
    })
}

/// What the network was refused, each with the grant that would allow it.
pub(super) fn refused(events: &[Event]) -> Vec<String> {
    let note = |event: &Event| {
        let refusal = event.refusal()?;
        let port = event.port().map(|port| format!(":{port}")).unwrap_or_default();
        let grant = refusal.grant().map(|grant| format!("; add --cap '{grant}'")).unwrap_or_default();
        Some(format!("`{}{port}` was refused: {}{grant}", event.host(), refusal.code().meaning()))
    };
    events.iter().filter_map(note).take(MOST).collect()
}

/// The path that an argument names, also behind `--option=`, if it is there on the host and can be granted.
fn named_path(argument: &OsString, here: &Path) -> Option<PathBuf> {
    let text = argument.to_str()?;
    let text =
        text.strip_prefix("--").and_then(|option| option.split_once('=')).map_or(text, |(_, path)| path);
    let path = here.join(text);
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let granted_as_it_is = !text.contains(['*', '?', '[', '{', ',', '\'', ' ', '$']);
    let grantable = plain && granted_as_it_is && !MASKED.iter().any(|masked| path.starts_with(masked));
    (grantable && !text.is_empty() && path.exists()).then_some(path)
}

/// Whether the sandbox shows what the host has there.
fn is_visible(plan: &Plan, path: &Path) -> bool {
    let Some(clean) = path.to_str().and_then(|text| AbsPath::new(text).ok()) else { return true };
    let of_system = |path: &Path| {
        BASE.iter().any(|entry| entry.kind != BaseKind::Programs && path.starts_with(entry.path))
    };
    of_system(path) || plan.files().iter().any(|grant| grant.pattern.value.covers(&clean))
}

fn programs(command: &[OsString], plan: &Plan) -> Vec<String> {
    let name =
        command.first().and_then(|program| Path::new(program).file_name()).and_then(|name| name.to_str());
    let (Some(name), None) = (name, &plan.exec().any) else { return Vec::new() };
    let granted =
        |other: &str| plan.exec().programs.iter().any(|grant| grant.value.program.to_string() == other);
    let mut notes = Vec::new();
    for (names, other, why) in STARTERS {
        if names.contains(&name) && !granted(other) {
            notes.push(format!("`{name}` cannot start `{other}` ({why}); add --cap exec:spawn:{other}"));
        }
    }
    if BUILDERS.contains(&name) && !plan.from_writable() {
        notes.push(format!(
            "what `{name}` builds cannot be started; if it has to be, add --cap 'exec:spawn:*?fromWritable=true'"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use bailiwick_policy::capability::CapabilitySet;
    use bailiwick_policy::facts::HostFacts;

    use super::*;

    fn notes_of(caps: &[&str], command: &[&str], here: &str) -> Vec<String> {
        let set = CapabilitySet::new(caps.iter().copied()).unwrap();
        let plan = Plan::of("test", set.authority(), &HostFacts::unknown()).unwrap();
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        notes(&command, Path::new(here), &plan)
    }

    #[test]
    fn an_argument_that_is_not_visible_is_named_with_its_flag() {
        let said =
            notes_of(&["fs:read:/opt"], &["cat", "/etc/fstab", "--file=/etc/shadow", "/no/such"], "/opt");
        let flag = |path| format!("`{path}` is not visible inside; add --cap fs:read:{path}");
        assert_eq!(said, [flag("/etc/fstab"), flag("/etc/shadow")]);
    }

    #[test]
    fn what_is_granted_or_the_systems_needs_no_note() {
        assert_eq!(
            notes_of(&["fs:read:/etc/fstab", "fs:read:/opt"], &["cat", "/etc/fstab"], "/opt"),
            [""; 0]
        );
        assert_eq!(notes_of(&["fs:read:/opt"], &["ls", "/usr/lib", "/proc/1/maps"], "/opt"), [""; 0]);
    }

    #[test]
    fn the_current_folder_comes_first() {
        let said = notes_of(&[], &["ls", "."], "/var");
        assert_eq!(
            said,
            ["the current folder `/var` is not visible inside; add --cap 'fs:read,write:/var/**'"]
        );
    }

    #[test]
    fn a_build_tool_is_told_what_it_starts() {
        let said = notes_of(&["fs:read:/opt"], &["/x/bin/cargo", "build"], "/opt");
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].ends_with("add --cap exec:spawn:cc"), "{said:?}");
        assert_eq!(
            notes_of(&["fs:read:/opt", "exec:spawn:*?fromWritable=true"], &["cargo"], "/opt"),
            [""; 0]
        );
    }
}
