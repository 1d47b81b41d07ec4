//! Patterns of file names, matched against folders that the call may read.
//!
//! A pattern that matches nothing, or whose folder may not be read, stays as it is written, as in a shell: so nothing
//! is learnt of folders outside.

use std::path::{Path, PathBuf};

use brush_parser::pattern::pattern_to_regex_str;
use regex::Regex;
use rustix::fs::Dir;

use super::reach::{self, Use};
use super::words::Field;
use crate::gate::ToolContext;

/// How many names one pattern may become, and how many are looked at on the way.
const MAX_NAMES: usize = 8_192;

/// The arguments that a field becomes.
pub(super) fn expand(field: Field, folder: &Path, context: &ToolContext) -> Vec<String> {
    let Some(pattern) = &field.pattern else { return vec![field.text] };
    let absolute = pattern.starts_with('/');
    let base = if absolute { PathBuf::from("/") } else { folder.to_owned() };
    let mut found = vec![(base, if absolute { "/".to_owned() } else { String::new() })];
    let mut matched = false;
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        matched |= is_pattern(part);
        // A folder before the first pattern need not be readable for what lies below it.
        let step = |(at, shown): &Place| {
            if matched { step(part, at, shown, context) } else { below(part, at, shown) }
        };
        found = found.iter().flat_map(step).take(MAX_NAMES).collect();
    }
    let mut names: Vec<String> = found.into_iter().map(|(_, shown)| shown).collect();
    names.sort_unstable();
    if names.is_empty() { vec![field.text] } else { names }
}

type Place = (PathBuf, String);

/// A plain name in a folder.
fn below(part: &str, at: &Path, shown: &str) -> Vec<Place> {
    vec![joined(&unescaped(part), at, shown)]
}

/// What one part of a pattern matches in a folder: where it lies, and how it is written.
fn step(part: &str, at: &Path, shown: &str, context: &ToolContext) -> Vec<Place> {
    if !is_pattern(part) {
        let there =
            |(path, _): &Place| reach::is_open(at, Use::Read, context) && path.symlink_metadata().is_ok();
        return below(part, at, shown).into_iter().filter(there).collect();
    }
    let Some(matcher) = matcher(part) else { return Vec::new() };
    let hidden = part.starts_with('.');
    let fits = |name: &&String| matcher.is_match(name) && (hidden || !name.starts_with('.'));
    listed(at, context).iter().filter(fits).map(|name| joined(name, at, shown)).collect()
}

fn joined(name: &str, at: &Path, shown: &str) -> Place {
    let slash = if shown.is_empty() || shown.ends_with('/') { "" } else { "/" };
    (at.join(name), format!("{shown}{slash}{name}"))
}

/// The names in a folder that may be read; none otherwise.
fn listed(folder: &Path, context: &ToolContext) -> Vec<String> {
    if !reach::is_open(folder, Use::Read, context) {
        return Vec::new();
    }
    let opened = folder.to_str().and_then(|folder| context.open_read(folder).ok());
    let Some(entries) = opened.and_then(|opened| Dir::read_from(&opened).ok()) else { return Vec::new() };
    let names =
        entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    names.filter(|name| name != "." && name != "..").take(MAX_NAMES).collect()
}

fn matcher(part: &str) -> Option<Regex> {
    let inner = pattern_to_regex_str(part, false).ok()?;
    Regex::new(&format!("(?s)^(?:{inner})$")).ok()
}

fn is_pattern(part: &str) -> bool {
    let mut escaped = false;
    part.chars().any(|c| {
        let means_more = !escaped && matches!(c, '*' | '?' | '[');
        escaped = !escaped && c == '\\';
        means_more
    })
}

fn unescaped(part: &str) -> String {
    let mut escaped = false;
    let keep = |c: &char| {
        escaped = !escaped && *c == '\\';
        !escaped
    };
    part.chars().filter(keep).collect()
}
