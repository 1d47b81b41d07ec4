//! Walking over canonical JSON: every method either moves past what it names or says where it did not.
use super::LineError;
use crate::format::encode::first_to_escape;
use crate::format::{Digest, MAX_INTEGER};

pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) const fn mark(&self) -> usize {
        self.at
    }

    pub(super) fn since(&self, mark: usize) -> &'a str {
        self.text.get(mark..self.at).unwrap_or_default()
    }

    pub(super) const fn is_done(&self) -> bool {
        self.at == self.text.len()
    }

    pub(super) fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token.as_bytes());
        self.at += if found { token.len() } else { 0 };
        found
    }

    pub(super) fn expect(&mut self, token: &str) -> Result<(), LineError> {
        if self.take(token) { Ok(()) } else { Err(LineError::NotCanonical(self.at)) }
    }

    pub(super) fn flag(&mut self) -> Result<bool, LineError> {
        if self.take("true") { Ok(true) } else { self.expect("false").map(|()| false) }
    }

    /// The inside of a string, still escaped, when every escape is the canonical one.
    pub(super) fn string(&mut self) -> Result<&'a str, LineError> {
        self.expect("\"")?;
        let start = self.at;
        loop {
            let stop = first_to_escape(self.rest());
            self.at += stop.ok_or(LineError::NotCanonical(self.at))?;
            match self.rest() {
                [b'"', ..] => break,
                [b'\\', b'"' | b'\\' | b'b' | b't' | b'n' | b'f' | b'r', ..] => self.at += 2,
                [b'\\', b'u', b'0', b'0', b'0', b'0'..=b'7' | b'b' | b'e' | b'f', ..] => self.at += 6,
                [b'\\', b'u', b'0', b'0', b'1', b'0'..=b'9' | b'a'..=b'f', ..] => self.at += 6,
                _ => return Err(LineError::NotCanonical(self.at)),
            }
        }
        let inside = self.text.get(start..self.at).ok_or(LineError::NotCanonical(start))?;
        self.at += 1;
        Ok(inside)
    }

    pub(super) fn digest(&mut self) -> Result<Digest, LineError> {
        let Some(([b'"', hex @ .., b'"'], _)) = self.rest().split_first_chunk::<66>() else {
            self.string()?;
            return Err(LineError::BadValue(self.at));
        };
        let digest = Digest::from_hex(hex).ok_or(LineError::BadValue(self.at))?;
        self.at += 66;
        Ok(digest)
    }

    pub(super) fn integer(&mut self) -> Result<u64, LineError> {
        let digits = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).take(17).count();
        let text = self.rest().get(..digits).unwrap_or_default();
        if digits == 0 || (digits > 1 && text.starts_with(b"0")) {
            return Err(LineError::NotCanonical(self.at));
        }
        let value = text.iter().fold(0_u64, |value, digit| value * 10 + u64::from(digit - b'0'));
        if value > MAX_INTEGER {
            return Err(LineError::BadValue(self.at));
        }
        self.at += digits;
        Ok(value)
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }
}
