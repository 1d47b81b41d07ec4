//! From what a program was seen to touch to the least manifest that lets it work: a draft that a person reviews.
//!
//! Pure: [`Evidence`] comes in, a [`Draft`] comes out. Each line of a draft is there for one of a few reasons
//! ([`Reason`]), which stands beside it in the file; whatever has none of them, or leads to a sensitive place, becomes a
//! [`Question`], which is a comment and grants nothing.
//!
//! # A first example
//!
//! ```
//! use bailiwick_learn::{Evidence, Touch, draft};
//!
//! let mut evidence = Evidence::new("notes");
//! evidence.touch(None, "/opt/notes/settings.toml", Touch::Read, true);
//! evidence.touch(None, "/home/alice/.ssh/id_ed25519", Touch::Read, true);
//! let draft = draft(&evidence);
//! assert_eq!(draft.lines[0].capability, "fs:read:/opt/notes/settings.toml");
//! assert_eq!(draft.questions[0].capability.as_deref(), Some("fs:read:/home/alice/.ssh/id_ed25519"));
//! ```
//!
//! # Laws
//!
//! No line is `/`, a home, `/etc` as a whole, a system directory, every host or every program. A draft has at most
//! [`MOST_LINES`] lines of one kind and [`MOST_QUESTIONS`] questions, whatever a hostile program touches.
//!
//! Residual: a program chooses what it touches. A draft says what it did, not what it should do.
#![forbid(unsafe_code)]

mod answers;
mod calls;
mod evidence;
mod files;
mod import;
mod merge;
mod others;
mod provenance;
mod render;
mod requests;
mod variables;

pub use answers::without_numbers;
pub use calls::{CallsError, ToolCall, calls_of, least_calls};
pub use evidence::{BoundVariable, EVERY_VARIABLE, Evidence, HostSeen, PathSeen, Seen, ToolSeen, Touch};
pub use files::{SECRETS_OF_SYSTEM, is_secret_name};
pub use import::{ImportError, ImportFrom, ImportOptions, Imported, import};
pub use merge::{merged, with_root_line};
pub use provenance::provenance;
pub use render::{INCOMPLETE, render};
pub use variables::{ArgumentPath, GuessedVariable, guess_variables};

/// The most lines of one kind: files that are read, directories that are written, programs, hosts, variables.
pub const MOST_LINES: usize = 24;
/// The most questions; the last then says how many more there are.
pub const MOST_QUESTIONS: usize = 40;
/// How many files of one directory are named one by one.
pub const MOST_SIBLINGS: usize = 3;
/// The most files that are pinned.
pub const MOST_PINNED: usize = 40;
/// The most variables that are asked about one by one.
const MOST_VARIABLES_ASKED: usize = 8;
/// The most variables that one question names.
const MOST_VARIABLES_NAMED: usize = 12;
/// How many tools have a line of their own before it becomes the server's.
pub const MOST_OWNERS: usize = 3;

/// Why a line is in a draft. There are no other reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// An argument or variable of the command names the directory.
    Named,
    /// This very file was touched.
    Exact,
    /// More than a few files of one directory were read: its own entries, no deeper.
    Siblings,
    /// Files are made there, under names that are not known before.
    MadeThere,
    /// This program was started.
    Started,
    /// This host was reached.
    Reached,
    /// This host got these requests, unencrypted.
    Requested,
    /// The caller handed this variable over, and the runtime said that it is read.
    ReadVariable,
    /// The caller handed this variable over.
    HandedOver,
}

impl Reason {
    /// In words, for the file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Named => "named by the command",
            Self::Exact => "this very file",
            Self::Siblings => "several files of one directory",
            Self::MadeThere => "files are made there",
            Self::Started => "started",
            Self::Reached => "reached",
            Self::Requested => "these requests were made, unencrypted",
            Self::ReadVariable => "handed over by you, observed to be read",
            Self::HandedOver => "handed over by you, assumed to be read",
        }
    }
}

/// Who did something, and how often.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Whether it happened outside of any call.
    pub background: bool,
    /// The tools, by number in [`Evidence::tools`], and in how many of their calls.
    pub tools: std::collections::BTreeMap<usize, usize>,
    /// The first path, host or program that was seen.
    pub first: String,
}

impl Provenance {
    /// Takes in what another says too.
    pub(crate) fn add(&mut self, other: &Self) {
        self.background |= other.background;
        for (tool, calls) in &other.tools {
            let own = self.tools.entry(*tool).or_default();
            *own = (*own).max(*calls);
        }
        if self.first.is_empty() || (!other.first.is_empty() && other.first < self.first) {
            self.first.clone_from(&other.first);
        }
    }
}

/// One line of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The tool that has it, by number; the server's if absent.
    pub tool: Option<usize>,
    /// The line itself.
    pub capability: String,
    /// Why it is there.
    pub reason: Reason,
    /// Who needs it.
    pub by: Provenance,
}

impl Line {
    /// The line as a manifest has it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.capability
    }
}

/// Something that a person has to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What would grant it; nothing if no line could.
    pub capability: Option<String>,
    /// Why it is not granted.
    pub why: String,
    /// Who asked for it.
    pub by: Provenance,
}

/// What was learned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    /// What is granted.
    pub lines: Vec<Line>,
    /// What is not.
    pub questions: Vec<Question>,
}

/// The least manifest for what was seen.
#[must_use]
pub fn draft(evidence: &Evidence) -> Draft {
    let mut draft = justified(evidence);
    draft.lines = owned(std::mem::take(&mut draft.lines));
    bound(&mut draft.questions);
    draft
}

/// What each tool did, and what was done outside of any call: a line for each of them that needs it, none put together.
#[must_use]
pub fn deeds(evidence: &Evidence) -> Vec<Line> {
    let all = justified(evidence).lines.into_iter();
    all.flat_map(|line| {
        let tools = line.by.tools.keys().map(|tool| Some(*tool));
        let owners: Vec<Option<usize>> = tools.chain(line.by.background.then_some(None)).collect();
        owners.into_iter().map(move |tool| Line { tool, ..line.clone() })
    })
    .collect()
}

/// Every line and question that has a reason.
fn justified(evidence: &Evidence) -> Draft {
    let mut draft = Draft::default();
    files::draft(evidence, &mut draft);
    others::draft(evidence, &mut draft);
    draft
}

/// Gives each line to the tools that need it, if they are few and nothing else does.
fn owned(lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        if line.by.background || line.by.tools.len() > MOST_OWNERS || line.by.tools.is_empty() {
            all.push(line);
            continue;
        }
        for tool in line.by.tools.keys() {
            all.push(Line { tool: Some(*tool), ..line.clone() });
        }
    }
    // Who may change a place may read it too.
    let is_covered = |line: &Line| {
        let path = line.capability.strip_prefix("fs:read:");
        let covers = |other: &Line, path: &str| {
            (other.tool.is_none() || other.tool == line.tool)
                && other.capability.strip_prefix("fs:read,write:") == Some(path)
        };
        path.is_some_and(|path| all.iter().any(|other| covers(other, path)))
    };
    let covered: Vec<bool> = all.iter().map(is_covered).collect();
    let mut covered = covered.into_iter();
    all.retain(|_| !covered.next().unwrap_or_default());
    // What the server has, no tool needs again.
    let own: Vec<String> =
        all.iter().filter(|line| line.tool.is_none()).map(|line| line.capability.clone()).collect();
    all.retain(|line| line.tool.is_none() || !own.contains(&line.capability));
    all.sort_by(|one, other| (one.tool, &one.capability).cmp(&(other.tool, &other.capability)));
    all.dedup_by(|next, kept| next.tool == kept.tool && next.capability == kept.capability);
    all
}

fn bound(questions: &mut Vec<Question>) {
    let more = questions.len().saturating_sub(MOST_QUESTIONS);
    if more > 0 {
        questions.truncate(MOST_QUESTIONS - 1);
        let why = format!("{} more things were touched that no line grants", more + 1);
        questions.push(Question { capability: None, why, by: Provenance::default() });
    }
}

/// A line, if the grammar reads it. What was seen must have been checked before to mean nothing but itself.
fn clean(text: &str) -> Option<String> {
    bailiwick_policy::capability::Capability::new(text).ok().map(|_| text.to_owned())
}

/// Whether every character of something that was seen stands for itself in a line.
fn is_plain(seen: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@=% ".contains(c);
    seen.chars().all(is_plain) && seen == seen.trim()
}

#[cfg(test)]
mod tests;
