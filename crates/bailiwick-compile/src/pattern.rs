//! Path patterns as regular expressions that POSIX, RE2 and seatbelt read alike: anchored at both ends, matching
//! just what the pattern covers.
//!
//! Names are matched byte by byte where the reader has no Unicode: `?` then takes less, never more.

use std::fmt::Write as _;

use bailiwick_policy::path::{Class, Part, PathPattern, Token};

/// The expression for `pattern` with its literal prefix replaced by `base` (an absolute path, or empty for the
/// root), followed by `tail`. `None` if a class has letters beyond ASCII, which readers take for bytes.
pub(crate) fn regex(pattern: &PathPattern, base: &str, tail: &str) -> Option<String> {
    let mut text = format!("^{}", escape(base));
    let globs = pattern.parts().get(pattern.literal_prefix().len()..).unwrap_or_default();
    if pattern.is_tree() {
        let below = if base.is_empty() { "/.*" } else { "(/.*)?" };
        return Some(format!("{text}{below}{tail}$"));
    }
    for part in globs {
        match part {
            Part::Literal(name) => text.push_str(&format!("/{}", escape(name))),
            Part::Deep => text.push_str("(/[^/]+)*"),
            Part::Glob(glob) => {
                text.push('/');
                for token in glob.tokens() {
                    push(&mut text, token)?;
                }
            }
        }
    }
    Some(format!("{text}{tail}$"))
}

/// The text as an expression that matches it alone.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn push(text: &mut String, token: &Token) -> Option<()> {
    match token {
        Token::Char(c) => text.push_str(&escape(c.encode_utf8(&mut [0; 4]))),
        Token::One => text.push_str("[^/]"),
        Token::Many => text.push_str("[^/]*"),
        Token::Class(class) => push_class(text, class)?,
    }
    Some(())
}

/// As an alternation of plain letters: what stands in brackets is read differently by every reader. A class that
/// leaves letters out takes those of ASCII only.
fn push_class(text: &mut String, class: &Class) -> Option<()> {
    let ascii = class.ranges().iter().all(|(low, high)| low.is_ascii() && high.is_ascii());
    let taken = (0x20_u8..0x7f).map(char::from).filter(|c| *c != '/' && class.contains(*c));
    let letters: Vec<String> = taken.map(|c| escape(c.encode_utf8(&mut [0; 4]))).collect();
    if !ascii || letters.is_empty() {
        return None;
    }
    write!(text, "({})", letters.join("|")).ok()
}
