//! `${…}`: what an operation makes of a value that is known.

use crate::glob;

/// The longest value that is operated on: what a pattern costs grows with the square of it.
const MAX_VALUE: usize = 512;

/// The value after an operation such as `:-word`, `%suffix` or `/old/new`; `None` where it is only known when it runs.
pub(super) fn operated(value: Option<&str>, operation: &str) -> Option<String> {
    let long = value.is_some_and(|value| value.len() > MAX_VALUE) || operation.len() > MAX_VALUE;
    if long || operation.contains(['$', '`', '"', '\'', '\\']) {
        return None;
    }
    for default in [":-", "-", ":=", "="] {
        if let Some(word) = operation.strip_prefix(default) {
            return Some(value.unwrap_or(word).to_owned());
        }
    }
    let value = value?;
    if let Some(word) = operation.strip_prefix(":+").or_else(|| operation.strip_prefix('+')) {
        return Some(word.to_owned());
    }
    if let Some(pattern) = operation.strip_prefix("%%") {
        return Some(without_end(value, pattern, true));
    }
    if let Some(pattern) = operation.strip_prefix('%') {
        return Some(without_end(value, pattern, false));
    }
    if let Some(pattern) = operation.strip_prefix("##") {
        return Some(without_start(value, pattern, true));
    }
    if let Some(pattern) = operation.strip_prefix('#') {
        return Some(without_start(value, pattern, false));
    }
    if let Some(rest) = operation.strip_prefix("//") {
        let (old, new) = rest.split_once('/').unwrap_or((rest, ""));
        return (!old.is_empty() && !glob::is_pattern(old)).then(|| value.replace(old, new));
    }
    if let Some(rest) = operation.strip_prefix('/') {
        let (old, new) = rest.split_once('/').unwrap_or((rest, ""));
        return (!old.is_empty() && !glob::is_pattern(old)).then(|| value.replacen(old, new, 1));
    }
    match operation {
        "^^" => Some(value.to_uppercase()),
        ",," => Some(value.to_lowercase()),
        _ => part(value, operation.strip_prefix(':')?),
    }
}

/// `offset` or `offset:length`, in characters.
fn part(value: &str, range: &str) -> Option<String> {
    let (from, length) = range.split_once(':').unwrap_or((range, ""));
    let from: isize = from.trim().parse().ok()?;
    let count = value.chars().count();
    let from = if from < 0 { count.saturating_sub(from.unsigned_abs()) } else { from.unsigned_abs() };
    let rest = value.chars().skip(from);
    if length.is_empty() {
        return Some(rest.collect());
    }
    Some(rest.take(length.trim().parse().ok()?).collect())
}

/// The value without its shortest or longest end that the pattern stands for.
fn without_end(value: &str, pattern: &str, longest: bool) -> String {
    let starts = value.char_indices().map(|(at, _)| at).chain([value.len()]);
    let mut fits = starts.filter(|at| value.get(*at..).is_some_and(|end| glob::matches(pattern, end)));
    let at = if longest { fits.next() } else { fits.next_back() };
    at.and_then(|at| value.get(..at)).unwrap_or(value).to_owned()
}

fn without_start(value: &str, pattern: &str, longest: bool) -> String {
    let ends = value.char_indices().map(|(at, _)| at).chain([value.len()]);
    let mut fits = ends.filter(|at| value.get(..*at).is_some_and(|start| glob::matches(pattern, start)));
    let at = if longest { fits.next_back() } else { fits.next() };
    at.and_then(|at| value.get(at..)).unwrap_or(value).to_owned()
}

#[cfg(test)]
mod tests {
    use super::operated;

    #[test]
    fn operations_on_known_values() {
        for (value, operation, made) in [
            (Some("/etc/x"), "%/x", Some("/etc")),
            (Some("a.b.c"), "%%.*", Some("a")),
            (Some("a.b.c"), "##*.", Some("c")),
            (Some("a.b.c"), "#*.", Some("b.c")),
            (Some("/abc"), "/abc/usr", Some("/usr")),
            (Some("/etc/passwd"), ":0:4", Some("/etc")),
            (Some("passwd.etc"), ":7", Some("etc")),
            (None, ":-/", Some("/")),
            (Some("x"), ":-/", Some("x")),
            (Some("env"), "^^", Some("ENV")),
            (None, "%x", None),
            (Some("x"), ":-$Y", None),
        ] {
            assert_eq!(operated(value, operation).as_deref(), made, "{value:?} {operation}");
        }
    }
}
