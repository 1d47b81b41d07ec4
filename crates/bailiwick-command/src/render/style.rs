//! Colours and small words.

use anstyle::{AnsiColor, Style};
use bailiwick_policy::finding::Severity;

const ERROR: Style = AnsiColor::BrightRed.on_default().bold();
const WARN: Style = AnsiColor::Yellow.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const FAINT: Style = Style::new().dimmed();
const STRONG: Style = Style::new().bold();

fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Something that stops you.
pub fn error(text: &str) -> String {
    paint(ERROR, text)
}

/// Something to look at.
pub fn warning(text: &str) -> String {
    paint(WARN, text)
}

/// Something that went well.
pub fn good(text: &str) -> String {
    paint(GOOD, text)
}

/// Something of less weight.
pub fn faint(text: &str) -> String {
    paint(FAINT, text)
}

/// Something of more weight.
pub fn strong(text: &str) -> String {
    paint(STRONG, text)
}

/// `text` in the colour of a severity.
pub fn severity(severity: Severity, text: &str) -> String {
    match severity {
        Severity::Error | Severity::High => error(text),
        Severity::Medium => warning(text),
        Severity::Info => faint(text),
    }
}

/// `1 tool`, `2 tools`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
