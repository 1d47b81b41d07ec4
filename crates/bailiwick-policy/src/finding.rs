//! Findings: what is wrong in a text that an author wrote, where, and what to write instead.
//!
//! A finding blames the text, never the reader. It carries a stable [`Code`], one line of message with the
//! author's words in backticks, a byte span and, nearly always, help. Denials and faults are other types.

mod code;
mod source;

pub use code::{Code, Severity};
pub use source::{LineColumn, Source};

use std::fmt;

/// A half-open range of bytes in the text a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// A span from `start` up to, not including, `end`.
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The same span, `by` bytes further on.
    #[must_use]
    pub const fn shifted(self, by: usize) -> Self {
        Self { start: self.start + by, end: self.end + by }
    }
}

/// One thing that is wrong in an author's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    code: Code,
    message: String,
    span: Option<Span>,
    help: Option<String>,
}

impl Finding {
    /// A finding without a place; add one with [`Finding::at`].
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: one_line(message.into()), span: None, help: None }
    }

    /// The same finding, about these bytes.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// The same finding, with what to write instead.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(one_line(help.into()));
        self
    }

    /// The same finding in other words; used when the author did not write all of the text that was read.
    pub(crate) fn map_text(mut self, map: impl Fn(&str) -> String) -> Self {
        self.message = map(&self.message);
        self.help = self.help.map(|help| map(&help));
        self
    }

    /// The same finding with its span mapped; used when a text is part of a larger one.
    #[must_use]
    pub fn map_span(mut self, map: impl FnOnce(Option<Span>) -> Option<Span>) -> Self {
        self.span = map(self.span);
        self
    }

    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// How much it matters.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// One line, lower case, no full stop.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The bytes it is about.
    #[must_use]
    pub const fn span(&self) -> Option<Span> {
        self.span
    }

    /// What to write instead.
    #[must_use]
    pub fn help_text(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

/// The longest message or help, in characters; what an author wrote is quoted in them and may be of any length.
const MAX_LINE: usize = 600;

/// Text fit for a terminal: nothing in it moves the cursor, turns the direction of writing or hides, and a long
/// middle is left out.
fn one_line(text: String) -> String {
    if text.len() <= MAX_LINE && !text.contains(is_unprintable) {
        return text;
    }
    let kept = if text.chars().count() > MAX_LINE { shortened(&text) } else { text };
    let mut line = String::with_capacity(kept.len());
    for c in kept.chars() {
        if is_unprintable(c) { line.extend(c.escape_unicode()) } else { line.push(c) }
    }
    line
}

fn is_unprintable(c: char) -> bool {
    let marks = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    c.is_control() || marks || c == '\u{feff}'
}

/// The first and the last characters, as many as a line holds.
fn shortened(text: &str) -> String {
    let half = MAX_LINE / 2;
    let head: String = text.chars().take(half).collect();
    let mut tail: Vec<char> = text.chars().rev().take(half).collect();
    tail.reverse();
    head + "…" + &tail.into_iter().collect::<String>()
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        match &self.help {
            Some(help) => write!(f, " (help: {help})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Finding {}

/// At least one finding; the error of everything that reads an author's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Findings in the order of the text.
    #[must_use]
    pub fn as_slice(&self) -> &[Finding] {
        &self.0
    }

    /// The findings themselves.
    #[must_use]
    pub fn into_vec(self) -> Vec<Finding> {
        self.0
    }
}

impl From<Finding> for Findings {
    fn from(finding: Finding) -> Self {
        Self(vec![finding])
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{finding}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Findings {}

/// Collects findings so that an author sees all of them at once, up to a limit.
#[derive(Debug, Default)]
pub struct Collector {
    found: Vec<Finding>,
    dropped: usize,
}

impl Collector {
    /// More than this many findings help no one.
    const LIMIT: usize = 1_000;

    /// Adds a finding; beyond the limit it is only counted.
    pub fn push(&mut self, finding: Finding) {
        if self.found.len() < Self::LIMIT {
            self.found.push(finding);
        } else {
            self.dropped += 1;
        }
    }

    /// Whether a further finding would not be shown: no need to look for the best advice.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.found.len() >= Self::LIMIT
    }

    /// Keeps the value of `result`, or its finding.
    pub fn keep<T>(&mut self, result: Result<T, Finding>) -> Option<T> {
        result.map_err(|finding| self.push(finding)).ok()
    }

    /// `value` if nothing was found, else every finding in the order of the text.
    ///
    /// # Errors
    /// The findings.
    pub fn finish<T>(mut self, value: T) -> Result<T, Findings> {
        if self.found.is_empty() {
            return Ok(value);
        }
        self.found.sort_by_key(|finding| finding.span.unwrap_or(Span::new(0, 0)));
        if self.dropped > 0 {
            let text = format!("{} more findings are not shown", self.dropped);
            self.found.push(Finding::new(Code::TooManyFindings, text).help("fix those above first"));
        }
        Err(Findings(self.found))
    }
}
