//! SHA-256 digests, and how fixed-size values are written: as lower-case hexadecimal.
//!
//! Only lower case is accepted, so that one value has one spelling.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, or another 32-byte value such as a public key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// What the first line of a chain names as its predecessor: 64 zeros.
    pub const ZERO: Self = Self([0; 32]);

    /// The SHA-256 of `bytes`.
    pub fn sha256(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The SHA-256 of several pieces, as if they were one.
    pub fn sha256_of_parts(parts: &[&[u8]]) -> Self {
        let mut sha = Sha256::new();
        for part in parts {
            sha.update(part);
        }
        Self(sha.finalize().into())
    }

    /// A digest that was computed elsewhere.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Appends the 64 digits to `out`.
    pub fn push_hex(&self, out: &mut Vec<u8>) {
        push_hex(&self.0, out);
    }

    /// Reads 64 lower-case digits.
    #[must_use]
    pub fn from_hex(hex: &[u8]) -> Option<Self> {
        from_hex(hex).map(Self)
    }
}

/// Text that is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not 64 lower-case hexadecimal digits")]
pub struct HexError(String);

impl FromStr for Digest {
    type Err = HexError;

    fn from_str(text: &str) -> Result<Self, HexError> {
        Self::from_hex(text.as_bytes()).ok_or_else(|| HexError(text.chars().take(80).collect()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Two digits for every byte value, so that a byte is one copy instead of two lookups.
static PAIRS: [[u8; 2]; 256] = pairs();

const fn pairs() -> [[u8; 2]; 256] {
    let digits = *b"0123456789abcdef";
    let mut table = [[0; 2]; 256];
    let mut i = 0;
    while i < 256 {
        #[expect(
            clippy::indexing_slicing,
            reason = "evaluated by the compiler; out of bounds would not build"
        )]
        {
            table[i] = [digits[i >> 4], digits[i & 15]];
        }
        i += 1;
    }
    table
}

/// Appends `bytes` to `out`, two lower-case digits for each.
pub fn push_hex<const N: usize>(bytes: &[u8; N], out: &mut Vec<u8>) {
    let mut pairs = [[0; 2]; N];
    for (pair, byte) in pairs.iter_mut().zip(bytes) {
        *pair = PAIRS.get(usize::from(*byte)).copied().unwrap_or_default();
    }
    out.extend_from_slice(pairs.as_flattened());
}

/// The value of every byte as a digit; 255 for a byte that is none.
static NIBBLES: [u8; 256] = nibbles();

const fn nibbles() -> [u8; 256] {
    let mut table = [255; 256];
    let digits = *b"0123456789abcdef";
    let mut i = 0;
    let mut value = 0;
    while i < 16 {
        #[expect(
            clippy::indexing_slicing,
            reason = "evaluated by the compiler; out of bounds would not build"
        )]
        {
            table[digits[i] as usize] = value;
        }
        value += 1;
        i += 1;
    }
    table
}

/// Reads `N` bytes of two lower-case digits each, and nothing else.
#[must_use]
pub fn from_hex<const N: usize>(hex: &[u8]) -> Option<[u8; N]> {
    let (pairs, []) = hex.as_chunks::<2>() else { return None };
    if pairs.len() != N {
        return None;
    }
    let mut bytes = [0; N];
    let mut seen = 0;
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        let high = NIBBLES.get(usize::from(*high)).copied().unwrap_or(255);
        let low = NIBBLES.get(usize::from(*low)).copied().unwrap_or(255);
        seen |= high | low;
        *byte = (high << 4) | (low & 15);
    }
    (seen < 16).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_goes_both_ways_and_only_lower_case_is_read() {
        let digest = Digest::sha256(b"abc");
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), hex);
        assert_eq!(hex.parse(), Ok(digest));
        let mut written = Vec::new();
        digest.push_hex(&mut written);
        assert_eq!(written, hex.as_bytes());
        for bad in ["", "ba", &hex.to_uppercase(), &hex.replace('b', "g"), &format!("{hex}00")] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
        assert_eq!(Digest::sha256_of_parts(&[b"a", b"", b"bc"]), digest);
    }
}
