//! Findings as people read them: the line itself, a caret, and what to write instead.
//!
//! A snippet is cut out of the text first, so that a finding costs the same in a file of ten megabytes on one
//! line as in a short one.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use bailiwick_policy::finding::{Finding, LineColumn, Severity, Source, Span};

use super::escape;

/// The most of a line that is shown before and behind the start of a span, in bytes.
const REACH: usize = 160;

/// Part of a line with a span in it.
struct Cut {
    text: String,
    span: Range<usize>,
    place: LineColumn,
    /// Whether the text starts where the line does.
    whole: bool,
}

/// All findings of one text.
pub fn findings(source: &Source, findings: &[Finding]) -> String {
    findings.iter().map(|found| finding(source, found) + "\n\n").collect()
}

/// One finding, without a newline at the end.
pub fn finding(source: &Source, finding: &Finding) -> String {
    let level = match finding.severity() {
        Severity::Error | Severity::High => Level::ERROR,
        Severity::Medium => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let title = level.primary_title(escape::line(finding.message())).id(finding.code().as_str());
    let group =
        with_lines(Group::with_title(title), source, finding.span().map(|span| (span, String::new())));
    let group = match finding.help_text() {
        Some(help) => group.element(Level::HELP.message(escape::line(help))),
        None => group,
    };
    render(group)
}

/// A title over lines of a text, each with a remark.
pub fn remarks(
    level: Level<'static>,
    (id, title): (&'static str, &str),
    source: &Source,
    lines: impl IntoIterator<Item = (Span, String)>,
    notes: &[String],
) -> String {
    let title = level.primary_title(escape::line(title)).id(id);
    let mut group = Group::with_title(title);
    for line in lines {
        group = with_lines(group, source, Some(line));
    }
    let notes = notes.iter().map(|note| Level::HELP.message(escape::line(note)));
    render(group.elements(notes))
}

fn with_lines<'a>(group: Group<'a>, source: &Source, line: Option<(Span, String)>) -> Group<'a> {
    let path = escape::line(source.name());
    let Some((span, remark)) = line else { return group.element(Origin::path(path)) };
    let cut = cut(source, span);
    let remark = (!remark.is_empty()).then(|| escape::line(&remark));
    let annotation = AnnotationKind::Primary.span(cut.span).label(remark);
    let snippet = Snippet::source(cut.text).line_start(cut.place.line).annotation(annotation);
    if cut.whole {
        return group.element(snippet.path(path));
    }
    let origin = Origin::path(path).line(cut.place.line).char_column(cut.place.column);
    group.element(origin).element(snippet)
}

fn render(group: Group<'_>) -> String {
    Renderer::styled().term_width(110).render(&[group])
}

/// The first line of a span, cut to size.
fn cut(source: &Source, span: Span) -> Cut {
    let text = source.text();
    let start = floor(text, span.start);
    let before = text.get(floor(text, start.saturating_sub(REACH))..start).unwrap_or_default();
    let head = before.rsplit('\n').next().unwrap_or_default();
    let behind = text.get(start..floor(text, start.saturating_add(REACH))).unwrap_or_default();
    let tail = behind.split('\n').next().unwrap_or_default();
    let marked = span.end.saturating_sub(start).min(tail.len());
    let marked = floor(tail, marked);
    let whole = head.len() < before.len() || start == before.len();
    let dots = if whole { "" } else { "..." };
    let text = format!("{dots}{}{}", escape::in_place(head), escape::in_place(tail));
    let at = dots.len() + head.len();
    Cut { text, span: at..at + marked, place: source.place(start), whole }
}

/// The nearest character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
