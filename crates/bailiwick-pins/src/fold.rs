//! Text as a careless reader sees it: without case, compatibility forms, marks and invisible characters.
//!
//! Two names with one folded form are not the same name, but programs and people may take one for the other.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The folded form of a text: compatibility decomposition, no case, no marks, no invisible or control characters.
///
/// # Examples
/// ```
/// use bailiwick_pins::fold::folded;
///
/// assert_eq!(folded("Ｍethod"), "method");
/// assert_eq!(folded("pa\u{200b}th\u{0}"), "path");
/// assert_eq!(folded("argument\u{17f}"), "arguments", "the long s");
/// assert_ne!(folded("path"), folded("paths"));
/// ```
#[must_use]
pub fn folded(text: &str) -> String {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'@' | b'['..=b'~')) {
        return text.to_owned();
    }
    let visible = text.chars().filter(|c| !is_invisible(*c)).nfkd();
    let plain = visible.filter(|c| !is_combining_mark(*c) && !is_invisible(*c));
    // By way of capital letters, so that letters with two small forms become one.
    plain.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Whether a character leaves no mark that a reader sees, or reorders those that do.
///
/// # Examples
/// ```
/// use bailiwick_pins::fold::is_invisible;
///
/// assert!(is_invisible('\u{200b}') && is_invisible('\u{e0041}') && is_invisible('\u{202e}'));
/// assert!(!is_invisible(' ') && !is_invisible('a'));
/// ```
#[must_use]
pub fn is_invisible(c: char) -> bool {
    let ignorable = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    ignorable || c.is_control()
}
