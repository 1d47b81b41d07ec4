//! The built-in guard: a call must not change what holds it.
//!
//! Refused whatever the rules say: running `bailiwick approve|deny|trust|pins|install|guard init`, naming the state
//! directory at all, and anything but reading the guardrails file, the scripts it names, the settings that hold
//! agents' hooks, and their folders.
//!
//! This reads arguments; for an agent that is not sandboxed it is advisory. Residual: a program that writes to those
//! places without naming them, or names them in pieces.

use std::path::{Component, Path, PathBuf};

use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::run_later::hook_settings;
use serde_json::Value;

use super::call::ToolCall;
use super::file::GUARDRAILS;
use super::shell::Simple;

/// Subcommands that are a person's acts.
const PERSONAL: &[&str] = &["approve", "deny", "trust", "pins", "install"];

/// Programs that only read the files they are given.
const READERS: &[&str] = &[
    "cat",
    "less",
    "more",
    "head",
    "tail",
    "grep",
    "rg",
    "ls",
    "wc",
    "diff",
    "bat",
    "stat",
    "file",
    "echo",
    "printf",
    "cd",
    "test",
    "[",
    "[[",
    "sha256sum",
    "md5sum",
    "jq",
    "cmp",
    "tree",
    "du",
    "realpath",
    "basename",
    "dirname",
    "bailiwick",
    "true",
    "pwd",
];

/// What `git` may do to a protected file: nothing to the file itself.
const GIT_READERS: &[&str] = &["add", "commit", "diff", "log", "show", "status", "blame", "ls-files", "grep"];

/// Programs that run a text among their arguments.
const INTERPRETERS: &[&str] =
    &["awk", "bun", "deno", "gawk", "node", "perl", "php", "python", "python3", "ruby"];

/// The deepest arguments that are looked into.
const MAX_DEPTH: usize = 32;

/// What no call may change.
#[derive(Debug, Clone)]
pub struct Protected {
    workdir: PathBuf,
    /// Files and folders that may be read, below the working directory.
    kept: Vec<PathBuf>,
    /// Where the state is; not even to be read.
    state: PathBuf,
    home: Option<PathBuf>,
}

impl Protected {
    /// What a session must not change.
    #[must_use]
    pub fn new(workdir: &Path, scripts: &[String], state: &Path, home: Option<&Path>) -> Self {
        let mut kept: Vec<PathBuf> = vec![PathBuf::from(GUARDRAILS), PathBuf::from(".agents")];
        for script in scripts.iter().map(Path::new) {
            kept.push(script.to_path_buf());
            kept.extend(
                script.ancestors().skip(1).filter(|path| path.starts_with(".agents")).map(Path::to_path_buf),
            );
        }
        kept.dedup();
        Self {
            workdir: workdir.to_path_buf(),
            kept,
            state: state.to_path_buf(),
            home: home.map(Path::to_path_buf),
        }
    }

    /// Why a call is refused, if it is.
    #[must_use]
    pub fn refuse(&self, call: &ToolCall<'_>) -> Option<Denial> {
        let reason = match call.reading() {
            Some(reading) => {
                let named = self.named_in(call.params(), 0, true);
                named.or_else(|| self.commands(&reading.commands))
            }
            None => self.named_in(call.params(), 0, call.capability() == Some("filesystem-read")),
        };
        reason.map(|reason| Denial::new(DenialCode::GuardrailProtected, format!("[guardrail] {reason}")))
    }

    /// Looks at commands in order, each in the folder that those before it went to.
    fn commands(&self, commands: &[Simple]) -> Option<String> {
        let mut here = self.workdir.clone();
        for command in commands {
            if let Some(reason) = self.command(command, &here) {
                return Some(reason);
            }
            if let [program, .., folder] = command.words.as_slice()
                && matches!(program.as_str(), "cd" | "pushd")
            {
                here = self.resolved(folder, &here).unwrap_or(here);
            }
        }
        None
    }

    fn command(&self, command: &Simple, here: &Path) -> Option<String> {
        let program = command.words.first().map(String::as_str).unwrap_or_default();
        let words: Vec<&str> = command.words.iter().skip(1).map(String::as_str).collect();
        if program == "bailiwick" {
            let plain: Vec<&str> = words.iter().filter(|word| !word.starts_with('-')).copied().collect();
            let personal = match plain[..] {
                ["guard", "init", ..] => Some("guard init"),
                _ => PERSONAL.iter().find(|name| plain.iter().take(2).any(|word| word == *name)).copied(),
            };
            if let Some(name) = personal {
                return Some(format!("`bailiwick {name}` is a person's act, not a tool's"));
            }
        }
        if let Some(word) = words
            .iter()
            .chain(&command.writes.iter().map(String::as_str).collect::<Vec<_>>())
            .find(|word| self.is_state(word, here))
        {
            return Some(state_reason(word));
        }
        let reads = READERS.contains(&program)
            || (program == "git" && words.first().is_some_and(|word| GIT_READERS.contains(word)));
        if INTERPRETERS.contains(&program)
            && let Some(name) = words.iter().find_map(|word| mentioned(word))
        {
            return Some(settings_reason(&name));
        }
        let touched =
            words.iter().filter(|_| !reads).copied().chain(command.writes.iter().map(String::as_str));
        touched.into_iter().find_map(|word| self.kept_because(word, here))
    }

    /// A protected place that the arguments name as a path, a patch or a text of state.
    fn named_in(&self, value: &Value, depth: usize, reads: bool) -> Option<String> {
        if depth > MAX_DEPTH {
            return Some("the arguments nest too deep to be judged".to_owned());
        }
        match value {
            Value::String(text) => self.named(text, reads),
            Value::Array(items) => items.iter().find_map(|item| self.named_in(item, depth + 1, reads)),
            Value::Object(fields) => fields.values().find_map(|item| self.named_in(item, depth + 1, reads)),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    fn named(&self, text: &str, reads: bool) -> Option<String> {
        let lines: Vec<&str> =
            if text.contains('\n') { text.lines().filter_map(patched).collect() } else { vec![text] };
        for line in lines {
            if self.is_state(line, &self.workdir) {
                return Some(state_reason(line));
            }
            if !reads && let Some(reason) = self.kept_because(line, &self.workdir) {
                return Some(reason);
            }
        }
        None
    }

    fn is_state(&self, word: &str, here: &Path) -> bool {
        let Some(path) = self.resolved(word, here) else { return false };
        let spelt = ["$XDG_STATE_HOME/bailiwick", ".local/state/bailiwick"];
        path.starts_with(&self.state)
            || real(&path).starts_with(real(&self.state))
            || spelt.iter().any(|one| word.contains(one))
    }

    /// Why a word is not to be touched: it names a kept file or its folder, perhaps by a pattern.
    fn kept_because(&self, word: &str, here: &Path) -> Option<String> {
        let word = word.split_once('=').map_or(word, |(_, value)| value);
        let path = self.resolved(word, here)?;
        let followed = real(&path);
        if holds_hooks(&path) || holds_hooks(&followed) {
            return Some(settings_reason(word));
        }
        let at = |kept: &PathBuf| {
            let kept = self.workdir.join(kept);
            may_be(&path, &kept) || followed == real(&kept)
        };
        // In whatever folder the command runs, a file of this name is taken for it.
        let same_name = Path::new(word).file_name().is_some_and(|name| name == "guardrails.toml");
        (same_name || self.kept.iter().any(at)).then(|| kept_reason(word))
    }

    fn resolved(&self, word: &str, here: &Path) -> Option<PathBuf> {
        if word.is_empty() || word.len() > 4096 || word.contains('\0') {
            return None;
        }
        let word = word.strip_prefix("file://").unwrap_or(word);
        let home = word
            .strip_prefix("~/")
            .or_else(|| word.strip_prefix("$HOME/"))
            .or_else(|| word.strip_prefix("${HOME}/"));
        let path = match (home, &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_), None) | (None, _) => here.join(word.strip_prefix("$PWD/").unwrap_or(word)),
        };
        Some(lexical(&path))
    }
}

/// Whether a path, wherever it lies, is one in which an agent keeps its hooks, or their folder.
#[must_use]
pub fn holds_hooks(path: &Path) -> bool {
    hook_settings().any(|(folder, file)| {
        let (last, parent) = (path.file_name(), path.parent().and_then(Path::file_name));
        let is = |part: Option<&std::ffi::OsStr>, name: &str| {
            part.and_then(|part| part.to_str()).is_some_and(|part| may_name(part, name))
        };
        is(last, folder) || is(parent, folder) && is(last, file)
    })
}

/// The settings that a program's text speaks of.
fn mentioned(text: &str) -> Option<String> {
    let mut files = hook_settings().map(|(folder, file)| format!("{folder}/{file}"));
    files.find(|file| text.contains(file.as_str()))
}

/// Whether a path that may be a shell's pattern may stand for another.
fn may_be(pattern: &Path, path: &Path) -> bool {
    let part = |part: Component<'_>| part.as_os_str().to_string_lossy().into_owned();
    pattern.components().count() == path.components().count()
        && pattern.components().zip(path.components()).all(|(one, other)| may_name(&part(one), &part(other)))
}

/// The same for one name. A leading dot must be written; between the outermost signs of a pattern, anything goes.
fn may_name(pattern: &str, name: &str) -> bool {
    let signs = ['*', '?', '['];
    let (Some(first), Some(last)) = (pattern.find(signs), pattern.rfind(['*', '?', ']'])) else {
        return pattern == name;
    };
    let head = pattern.get(..first).unwrap_or_default();
    let tail = pattern.get(last + 1..).unwrap_or_default();
    let hidden = name.starts_with('.') && head.is_empty();
    !hidden && name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail)
}

/// The file that a line of a patch is about.
fn patched(line: &str) -> Option<&str> {
    let marks = [
        "*** Update File: ",
        "*** Add File: ",
        "*** Delete File: ",
        "*** Move to: ",
        "+++ b/",
        "--- a/",
        "+++ ",
        "--- ",
    ];
    marks.iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim)
}

fn state_reason(word: &str) -> String {
    format!("`{word}` is where trust, approvals and records are kept; no tool has business there")
}

fn kept_reason(word: &str) -> String {
    format!("`{word}` belongs to the project's guardrails, which no tool may change; ask a person to")
}

fn settings_reason(word: &str) -> String {
    format!("`{word}` is where an agent keeps its hooks, which no tool may change; ask a person to")
}

fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(clean.pop()),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) | Component::Normal(_) => clean.push(part),
        }
    }
    clean
}

/// Where a path leads, as far as it exists.
fn real(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(found) = ancestor.canonicalize() {
            return path.strip_prefix(ancestor).map_or(found.clone(), |rest| found.join(rest));
        }
    }
    path.to_path_buf()
}

#[cfg(test)]
mod tests;
