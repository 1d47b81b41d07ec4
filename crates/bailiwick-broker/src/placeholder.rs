//! Placeholders: texts of a secret's length and alphabet that mean nothing outside of one session.
//!
//! Each letter and digit is replaced by a random one of its kind, everything else stays. A placeholder has no mark by which
//! it could be told from a value; it is known by the session's own table.

use std::io;

use zeroize::Zeroizing;

/// Values with fewer characters are brokered only where that is allowed: they are easily guessed, and found by chance.
pub(crate) const SHORTEST: usize = 16;
/// No stretch of a value of this length is in its placeholder.
const WINDOW: usize = 8;
const TRIES: usize = 64;

/// A new placeholder; `None` if no text of this kind differs from the value enough.
pub(crate) fn placeholder_for(value: &[u8]) -> io::Result<Option<String>> {
    for keeps_marks in [true, false] {
        for _ in 0..TRIES {
            let made = attempt(value, keeps_marks)?;
            if !shares_a_window(value, made.as_bytes()) {
                return Ok(Some(made));
            }
        }
    }
    Ok(None)
}

fn attempt(value: &[u8], keeps_marks: bool) -> io::Result<String> {
    let mut random = Zeroizing::new(vec![0_u8; value.len() * 2]);
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let pick = |from: u8, count: u16, pair: &[u8]| {
        let number = pair.iter().fold(0_u16, |number, byte| number << 8 | u16::from(*byte));
        // Of 65,536 numbers a few come more often than others, by less than a thousandth.
        char::from(from + u8::try_from(number % count).unwrap_or(0))
    };
    let each = value.iter().zip(random.chunks(2)).map(|(byte, pair)| match byte {
        b'0'..=b'9' => pick(b'0', 10, pair),
        b'A'..=b'Z' => pick(b'A', 26, pair),
        b'a'..=b'z' => pick(b'a', 26, pair),
        mark if keeps_marks => char::from(*mark),
        _ => pick(b'a', 26, pair),
    });
    Ok(each.collect())
}

fn shares_a_window(value: &[u8], made: &[u8]) -> bool {
    let length = WINDOW.min(value.len());
    value.windows(length).any(|window| made.windows(length).any(|other| other == window))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_looks_like_its_value_and_has_nothing_of_it() {
        let value = b"ghp_AbCdEf0123456789AbCdEf0123456789abcd";
        let made = placeholder_for(value).unwrap().unwrap();
        assert_eq!(made.len(), value.len());
        for (own, other) in value.iter().zip(made.bytes()) {
            let kinds: [fn(&u8) -> bool; 3] =
                [u8::is_ascii_digit, u8::is_ascii_uppercase, u8::is_ascii_lowercase];
            assert!(kinds.iter().all(|kind| kind(own) == kind(&other)), "{made}");
            assert!(own.is_ascii_alphanumeric() || *own == other);
        }
        assert_ne!(made, placeholder_for(value).unwrap().unwrap(), "fresh each time");
        assert!(!shares_a_window(value, made.as_bytes()));
    }

    #[test]
    fn marks_alone_are_replaced_too() {
        let made = placeholder_for(b"--------------------").unwrap().unwrap();
        assert!(made.bytes().all(|byte| byte.is_ascii_lowercase()), "{made}");
    }
}
