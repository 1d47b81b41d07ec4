//! An Ed25519 signature as a line holds it: 128 lower-case hexadecimal digits.

use std::fmt;

use bailiwick_policy::digest::{from_hex, push_hex};

/// An Ed25519 signature, kept as bytes: the format never checks one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; 64]);

impl Signature {
    /// A signature made elsewhere.
    pub const fn from_bytes(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }

    /// The 64 bytes.
    pub const fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }

    pub(crate) fn push_hex(&self, out: &mut Vec<u8>) {
        push_hex(&self.0, out);
    }

    /// Reads 128 lower-case digits.
    #[must_use]
    pub fn from_hex(hex: &[u8]) -> Option<Self> {
        from_hex(hex).map(Self)
    }
}

/// 128 lower-case digits.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
