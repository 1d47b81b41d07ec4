//! Our lines in a file of code, between two marks. What a person writes around them stays, byte for byte; what stands
//! between them is ours: `install` writes it anew and `--undo` takes it out.

use std::ops::Range;

use super::HookSettingsError;

/// How the first and the last of our lines begin.
const MARKS: [&str; 2] = ["// >>> bailiwick", "// <<< bailiwick"];

/// Where our lines are.
pub(super) fn found(text: &str) -> Result<Option<Range<usize>>, HookSettingsError> {
    let [begin, end] = MARKS;
    let mut start = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let mark = crate::without_bom(line).1.trim_start();
        if start.is_none() && mark.starts_with(begin) {
            start = Some(at + line.len() - crate::without_bom(line).1.len());
        }
        at += line.len();
        if let (Some(start), true) = (start, mark.starts_with(end)) {
            return Ok(Some(start..at));
        }
    }
    start.map_or(Ok(None), |_| Err(HookSettingsError::NoEnd(end)))
}

/// A text with these lines in the place of ours. A file that others wrote without them is left alone.
pub(super) fn put(text: &str, lines: &str) -> Result<String, HookSettingsError> {
    match found(text)? {
        Some(ours) => Ok(replaced(text, ours, lines)),
        None if crate::without_bom(text).1.trim().is_empty() => Ok(text.to_owned() + lines),
        None => Err(HookSettingsError::NotOurs),
    }
}

/// A text without our lines.
pub(super) fn without(text: &str) -> Result<String, HookSettingsError> {
    Ok(found(text)?.map_or_else(|| text.to_owned(), |ours| replaced(text, ours, "")))
}

fn replaced(text: &str, ours: Range<usize>, lines: &str) -> String {
    let mut text = text.to_owned();
    text.replace_range(ours, lines);
    text
}
