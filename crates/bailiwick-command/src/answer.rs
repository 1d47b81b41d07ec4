//! What a command answers: text for people or programs, and an exit code.

use std::fmt;
use std::process::ExitCode;

use crate::render::{escape, style};

/// The exit codes of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Nothing to report.
    Fine,
    /// Findings, a denial, a widening or a failed comparison.
    Found,
    /// The command line is wrong.
    Usage,
    /// An agent's hook says that the call must not run: the code that agents take for a no.
    Blocked,
    /// A file is unreadable or invalid.
    Invalid,
    /// A sandbox cannot hold what is asked, or holds less than is demanded.
    Compilation,
    /// We or the system failed.
    Fault,
    /// That of a program that was run, or what stands for it: 124 its time was over, 125 refused, 126 not
    /// executable, 127 not found.
    Program(u8),
}

impl Exit {
    const fn number(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Found => 1,
            Self::Usage | Self::Blocked => 2,
            Self::Invalid => 3,
            Self::Compilation => 4,
            Self::Fault => 5,
            Self::Program(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.number().into()
    }
}

/// An answer, not yet printed. Text carries colours; where it is shown decides whether they stay.
#[derive(Debug)]
pub struct Answer {
    /// What the process ends with.
    pub exit: Exit,
    /// For stdout: the result.
    pub out: Out,
    /// For stderr: why there is none.
    pub complaint: String,
}

/// The result of a command.
#[derive(Debug)]
pub enum Out {
    /// For people; what came from files is escaped already.
    Text(String),
    /// JSON whose bytes matter; escaped only when a terminal would show it.
    Bytes(String),
    /// Piece by piece, as it comes.
    Flow(Flow),
    /// Drawn anew in place, on a terminal.
    #[cfg(target_os = "linux")]
    Screen(Drawn),
}

/// A result that is not there as a whole, perhaps without end.
pub struct Flow {
    /// Whether it is JSON rather than text.
    pub is_json: bool,
    /// The pieces.
    pub chunks: Box<dyn Iterator<Item = anyhow::Result<Chunk>>>,
}

/// A result that is drawn anew in place.
#[cfg(target_os = "linux")]
pub struct Drawn(pub crate::terminal::Drawing);

#[cfg(target_os = "linux")]
impl fmt::Debug for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Drawn").finish_non_exhaustive()
    }
}

/// A piece of a flow.
#[derive(Debug)]
pub enum Chunk {
    /// For stdout.
    Out(String),
    /// For stderr; the input is then not wholly valid.
    Complaint(String),
}

impl Flow {
    /// A result from its pieces.
    pub fn new(is_json: bool, chunks: impl Iterator<Item = anyhow::Result<Chunk>> + 'static) -> Self {
        Self { is_json, chunks: Box::new(chunks) }
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").field("is_json", &self.is_json).finish_non_exhaustive()
    }
}

impl Chunk {
    /// Whether nothing is printed.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Out(text) | Self::Complaint(text) => text.is_empty(),
        }
    }
}

impl Answer {
    /// A result for stdout.
    pub const fn result(exit: Exit, text: String) -> Self {
        Self { exit, out: Out::Text(text), complaint: String::new() }
    }

    /// JSON whose exact bytes matter to its reader.
    pub const fn bytes(text: String) -> Self {
        Self { exit: Exit::Fine, out: Out::Bytes(text), complaint: String::new() }
    }

    /// No result, and why.
    pub const fn refusal(exit: Exit, complaint: String) -> Self {
        Self { exit, out: Out::Text(String::new()), complaint }
    }
}

/// No result, and why, in one line.
#[must_use]
pub fn refused(exit: Exit, why: &str) -> Answer {
    Answer::refusal(exit, format!("{}: {}\n", style::error("error"), escape::line(why)))
}

/// A refusal in words for people and models.
#[must_use]
pub fn plain(answer: Answer) -> anyhow::Error {
    let text = anstream::adapter::strip_str(&answer.complaint).to_string();
    // It is said behind a word of its own.
    let text = text.trim_end();
    anyhow::Error::msg(text.strip_prefix("error: ").unwrap_or(text).to_owned())
}

/// Says of a command that confines that nothing was started, and what works on a system that cannot.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn needs_linux() -> Answer {
    let text = format!(
        "{}: this command needs Linux 5.13 or newer: only there can a program be confined\n  \
         check, diff, allows, compile, coverage, scan, guard and log work here\n",
        style::error("error")
    );
    Answer::refusal(Exit::Fault, text)
}
