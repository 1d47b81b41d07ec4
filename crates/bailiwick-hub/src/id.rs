//! Ids that hubs and machines draw, and the texts that requests may bring.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::database::StoreError;

/// A random id: 32 hexadecimal digits.
///
/// # Errors
/// If the system gives no random bytes.
pub fn draw() -> Result<String, StoreError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|fault| StoreError::Down(format!("no random bytes: {fault}")))?;
    Ok(hex(&bytes))
}

/// Lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether this is an id: 8 to 64 of `a-z0-9-`. It can stand in paths, file names, log lines and terminals.
#[must_use]
pub fn is_id(text: &str) -> bool {
    (8..=64).contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// Whether this is a name: 1 to 128 letters, digits and `._:/@+-`, so that terminals and log lines take it as it is. It is no
/// path that leads upwards or from the root.
#[must_use]
pub fn is_name(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && !text.starts_with('/')
        && text.split('/').all(|part| part != "." && part != "..")
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:/@+-".contains(&byte))
}

/// Whether this is the name of a journal's session: 1 to 64 letters, digits and `._-`, with no dot first.
#[must_use]
pub fn is_session(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && !text.starts_with('.')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Whether these are labels: at most 32 names.
#[must_use]
pub fn are_labels(labels: &BTreeSet<String>) -> bool {
    labels.len() <= 32 && labels.iter().all(|label| is_name(label))
}

/// Whether this is a SPIFFE id, as its standard writes one: a trust domain in lower case, and a path without empty or relative parts.
#[must_use]
pub fn is_spiffe_id(text: &str) -> bool {
    let Some((domain, path)) = text.strip_prefix("spiffe://").and_then(|rest| rest.split_once('/')) else {
        return false;
    };
    let is_part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
    };
    text.len() <= 255
        && is_part(domain)
        && !domain.bytes().any(|byte| byte.is_ascii_uppercase())
        && path.split('/').all(is_part)
}

/// Whether this is text for people: at most `most` bytes, no control characters but line feeds and tabs.
#[must_use]
pub fn is_text(text: &str, most: usize) -> bool {
    text.len() <= most && !text.chars().any(|letter| letter.is_control() && letter != '\n' && letter != '\t')
}

/// Whether this is 64 lower-case hexadecimal digits.
#[must_use]
pub fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_have_no_letters_with_a_meaning_elsewhere() {
        assert!(is_id(&draw().unwrap()) && is_id("a-request-1"));
        for wrong in [
            "",
            "short",
            "has space",
            "Upper-case",
            "../../etc/passwd",
            "x';DROP TABLE--",
            &"a".repeat(65),
            "a\0bcdefgh",
            "ünïcödë-id",
        ] {
            assert!(!is_id(wrong), "{wrong:?}");
        }
        assert!(is_name("@scope/server:1.2.3"));
        for wrong in ["", "a b", "a'b", "a\u{202e}b", "a\nb", "a;b", "../a", "a/./b", "/a", &"a".repeat(129)]
        {
            assert!(!is_name(wrong), "{wrong:?}");
        }
        assert!(
            is_session("1790000000-0a1b2c3d") && !is_session(".a") && !is_session("a/b") && !is_session("")
        );
        assert!(is_spiffe_id("spiffe://example.org/ns/a/sa/Machine_1"));
        for wrong in [
            "spiffe://a",
            "spiffe://a/",
            "spiffe://A/b",
            "spiffe:///b",
            "spiffe://a/../b",
            "spiffe://a/b'",
            "http://a/b",
        ] {
            assert!(!is_spiffe_id(wrong), "{wrong:?}");
        }
        assert!(is_text("a\nb\tü", 10) && !is_text("\u{1b}[2J", 10) && !is_text("abc", 2));
        assert!(is_digest(&"0f".repeat(32)) && !is_digest(&"0F".repeat(32)));
    }
}
