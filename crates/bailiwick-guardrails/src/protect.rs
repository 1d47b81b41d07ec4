//! The built-in guard: a call must not change what holds it.
//!
//! Refused whatever the rules say: running `bailiwick approve|deny|trust|pins|install|guard init`, or a companion such as
//! `bailiwick-admin` by itself, naming the state directory at all, and anything but reading the guardrails file, the scripts it
//! names, the settings that hold agents' hooks, and their directories.
//!
//! Names are followed through directories, variables, functions, substitutions and quotes as far as the shell's reader
//! follows them. This reads arguments; for an agent that is not sandboxed it is advisory. Residual: a program that
//! writes to those places without naming them, or makes up their names itself.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_shell::Simple;
use bailiwick_shell::classes::code;
use bailiwick_shell::hook_settings::{holds_hooks, may_name, mentioned};
use bailiwick_shell::patch::patched_file;
use serde_json::Value;

use super::call::ToolCall;
use super::file::GUARDRAILS;

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

/// The companion that answers calls, trusts and installs.
const ADMINISTRATION: &str = "bailiwick-admin";

/// As many links as the kernel follows in one path.
const MAX_LINKS: usize = 40;

/// The deepest arguments that are looked into.
const MAX_DEPTH: usize = 32;

/// What no call may change.
#[derive(Debug, Clone)]
pub struct Protected {
    workdir: PathBuf,
    /// Where the agent works now: relative names lead from here.
    here: PathBuf,
    /// Files and directories that may be read, below the working directory.
    kept: Vec<PathBuf>,
    /// Where the state is; not even to be read.
    state: PathBuf,
    home: Option<PathBuf>,
    /// Where paths really lead, as far as that was asked. Paths are spelt in one way here, so bytes tell them apart.
    known: RefCell<HashMap<OsString, PathBuf>>,
    /// Where the kept files and the state really are.
    real_kept: OnceCell<Vec<PathBuf>>,
    real_state: OnceCell<PathBuf>,
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
            here: workdir.to_path_buf(),
            kept: kept.iter().map(|path| lexical(&workdir.join(path))).collect(),
            state: lexical(state),
            home: home.map(Path::to_path_buf),
            known: RefCell::default(),
            real_kept: OnceCell::new(),
            real_state: OnceCell::new(),
        }
    }

    /// The same, for an agent that works in another directory by now.
    #[must_use]
    pub fn working_in(mut self, here: &Path) -> Self {
        self.here = here.to_path_buf();
        self
    }

    /// Why a call is refused, if it is.
    #[must_use]
    pub fn refuse(&self, call: &ToolCall<'_>) -> Option<Denial> {
        let here = match call.directory() {
            Some(directory) => self.resolved(directory, &self.here).unwrap_or_else(|| self.here.clone()),
            None => self.here.clone(),
        };
        // A relative name may lead from where the session began, where the agent is now, or where the call says.
        let mut places = vec![here, self.here.clone(), self.workdir.clone()];
        places.dedup();
        let reason = places.iter().find_map(|here| match call.reading() {
            Some(reading) => {
                let named = self.named_in(call.params(), 0, true, here);
                named.or_else(|| self.commands(&reading.commands, here))
            }
            None => self.named_in(call.params(), 0, call.capability() == Some("filesystem-read"), here),
        });
        reason.map(|reason| Denial::new(DenialCode::GuardrailProtected, format!("[guardrail] {reason}")))
    }

    /// Looks at commands in order, each in the directory that those before it went to.
    fn commands(&self, commands: &[Simple], here: &Path) -> Option<String> {
        commands.iter().find_map(|command| {
            let at = self.resolved(&command.here, here).unwrap_or_else(|| here.to_owned());
            self.command(command, &at)
        })
    }

    fn command(&self, command: &Simple, here: &Path) -> Option<String> {
        let program = command.words.first().map(String::as_str).unwrap_or_default();
        let words: Vec<&str> = command.words.iter().skip(1).map(String::as_str).collect();
        if program.starts_with("bailiwick-") {
            return Some(format!("`{program}` is started by `bailiwick`, never by a tool"));
        }
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
        // Under another name, from code, or by a program that starts others.
        let builds = ["cargo", "git"].contains(&program);
        if !reads
            && !builds
            && words.iter().copied().chain(command.input.as_deref()).any(names_administration)
        {
            return Some(format!("`{ADMINISTRATION}` is started by `bailiwick`, never by a tool"));
        }
        if code::is_interpreter(program)
            && let Some(reason) = self.named_in_code(command, &words, here)
        {
            return Some(reason);
        }
        let touched =
            words.iter().filter(|_| !reads).copied().chain(command.writes.iter().map(String::as_str));
        touched.into_iter().find_map(|word| self.kept_because(word, here))
    }

    /// A protected place that code in another language names.
    fn named_in_code(&self, command: &Simple, words: &[&str], here: &Path) -> Option<String> {
        let texts = words.iter().copied().chain(command.input.as_deref());
        texts.into_iter().find_map(|text| {
            let literal = |name: &String| {
                let state = self.is_state(name, here).then(|| state_reason(name));
                state.or_else(|| self.kept_because(name, here))
            };
            mentioned(text)
                .map(|name| settings_reason(&name))
                .or_else(|| code::literals(text).iter().find_map(literal))
        })
    }

    /// A protected place that the arguments name as a path, a patch or a text of state.
    fn named_in(&self, value: &Value, depth: usize, reads: bool, here: &Path) -> Option<String> {
        if depth > MAX_DEPTH {
            return Some("the arguments nest too deep to be judged".to_owned());
        }
        match value {
            Value::String(text) => self.named(text, reads, here),
            Value::Array(items) => items.iter().find_map(|item| self.named_in(item, depth + 1, reads, here)),
            Value::Object(fields) => {
                fields.values().find_map(|item| self.named_in(item, depth + 1, reads, here))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    fn named(&self, text: &str, reads: bool, here: &Path) -> Option<String> {
        let lines: Vec<&str> =
            if text.contains('\n') { text.lines().filter_map(patched_file).collect() } else { vec![text] };
        for line in lines {
            if self.is_state(line, here) {
                return Some(state_reason(line));
            }
            if !reads && let Some(reason) = self.kept_because(line, here) {
                return Some(reason);
            }
        }
        None
    }

    fn is_state(&self, word: &str, here: &Path) -> bool {
        let Some(path) = self.resolved(word, here) else { return false };
        let spelt = ["$XDG_STATE_HOME/bailiwick", ".local/state/bailiwick"];
        is_below(&path, &self.state)
            || spelt.iter().any(|one| word.contains(one))
            || is_below(&self.real(&path), self.real_state.get_or_init(|| self.real(&self.state)))
    }

    /// Why a word is not to be touched: it names a kept file or its directory, perhaps by a pattern.
    fn kept_because(&self, word: &str, here: &Path) -> Option<String> {
        let word = word.split_once('=').map_or(word, |(_, value)| value);
        let path = self.resolved(word, here)?;
        let followed = self.real(&path);
        if holds_hooks(&path) || followed.as_os_str() != path.as_os_str() && holds_hooks(&followed) {
            return Some(settings_reason(word));
        }
        let real = self.real_kept.get_or_init(|| self.kept.iter().map(|kept| self.real(kept)).collect());
        // In whatever directory the command runs, a file of this name is taken for it.
        let same_name = Path::new(word).file_name().is_some_and(|name| name == "guardrails.toml");
        let kept = same_name
            || self.kept.iter().any(|kept| may_be(&path, kept))
            || real.iter().any(|real| real.as_os_str() == followed.as_os_str());
        kept.then(|| kept_reason(word))
    }

    /// Where a path leads, as far as it exists. Paths share their directories, and each of those is looked at once.
    fn real(&self, path: &Path) -> PathBuf {
        self.followed(path, MAX_LINKS)
    }

    /// The same, after so many links at most; what is behind more of them leads to no file.
    fn followed(&self, path: &Path, links: usize) -> PathBuf {
        if let Some(known) = self.known.borrow().get(path.as_os_str()) {
            return known.clone();
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return path.to_path_buf() };
        let parent = self.followed(parent, links);
        let here = parent.join(name);
        let found = match std::fs::read_link(&here) {
            Ok(target) if links > 0 => self.target(parent, &target, links - 1),
            Ok(_) | Err(_) => here,
        };
        self.known.borrow_mut().insert(path.as_os_str().to_owned(), found.clone());
        found
    }

    /// Where a link leads that lies in a directory without links above it.
    fn target(&self, directory: PathBuf, target: &Path, links: usize) -> PathBuf {
        target.components().fold(directory, |mut at, part| match part {
            Component::Prefix(_) | Component::RootDir => PathBuf::from("/"),
            Component::CurDir => at,
            Component::ParentDir => {
                at.pop();
                at
            }
            Component::Normal(name) => self.followed(&at.join(name), links),
        })
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

/// Whether a path is another or lies below it; both as [`lexical`] spells them.
fn is_below(path: &Path, top: &Path) -> bool {
    let (path, top) = (path.as_os_str().as_encoded_bytes(), top.as_os_str().as_encoded_bytes());
    path.strip_prefix(top)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/") || top.ends_with(b"/"))
}

/// Whether a path that may be a shell's pattern may stand for another.
fn may_be(pattern: &Path, path: &Path) -> bool {
    if let (Some(pattern), Some(path)) = (pattern.to_str(), path.to_str())
        && !pattern.contains(['*', '?', '['])
    {
        return pattern == path;
    }
    let part = |part: Component<'_>| part.as_os_str().to_string_lossy().into_owned();
    pattern.components().count() == path.components().count()
        && pattern.components().zip(path.components()).all(|(one, other)| may_name(&part(one), &part(other)))
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

/// A path without `.`, `..` and empty components.
fn lexical(path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_encoded_bytes();
    let mut parts = bytes.split(|byte| *byte == b'/');
    // Most are clean already.
    if bytes.len() > 1 && parts.next() == Some(b"") && !parts.any(|part| matches!(part, b"" | b"." | b"..")) {
        return path.to_path_buf();
    }
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

/// Whether a text has the name of that companion as a word of its own.
fn names_administration(text: &str) -> bool {
    text.split(|own: char| !own.is_ascii_alphanumeric() && own != '-').any(|word| word == ADMINISTRATION)
}

#[cfg(test)]
mod tests;
