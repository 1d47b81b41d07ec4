//! The value of a secret: in a file in memory that no address space maps, and for short moments in a buffer that is
//! wiped.
//!
//! A sandbox starts as a copy of this process. What lies in a file in memory is not part of that copy; its descriptor is
//! closed in the sandbox with all others. A buffer is allocated once at its full size, so that no smaller copy of the value
//! stays behind on the heap. Neither type has `Debug`, `Display` or `Clone`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{MemfdFlags, memfd_create};
use zeroize::Zeroizing;

use crate::placeholder::SHORTEST;

/// The longest value, in bytes.
pub const MAX_SECRET: usize = 16 * 1024;

/// A value that is kept outside of this process's own memory.
pub struct HeldSecret {
    file: File,
    len: usize,
}

/// A value in a buffer that is wiped when it is dropped.
pub struct SecretValue(Zeroizing<Vec<u8>>);

impl HeldSecret {
    /// An empty file for a value that another program writes.
    pub(crate) fn empty() -> io::Result<File> {
        Ok(File::from(memfd_create("bailiwick-secret", MemfdFlags::CLOEXEC)?))
    }

    /// Keeps a value. The buffer is wiped.
    pub(crate) fn keep(value: SecretValue) -> io::Result<Self> {
        let file = Self::empty()?;
        file.write_all_at(value.expose(), 0)?;
        Ok(Self { file, len: value.expose().len() })
    }

    /// What was written to such a file, without the end of its last line.
    pub(crate) fn written(file: File) -> io::Result<Self> {
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        let mut held = Self { file, len: length };
        if length > MAX_SECRET {
            return Ok(held);
        }
        held.len = without_line_end(held.read()?.expose()).len();
        held.file.set_len(u64::try_from(held.len).map_err(io::Error::other)?)?;
        Ok(held)
    }

    /// How many bytes it has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it has so few characters that it is brokered only where a manifest allows that (`short = "allow"`).
    #[must_use]
    pub const fn is_short(&self) -> bool {
        self.len < SHORTEST
    }

    /// Whether it has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value.
    ///
    /// # Errors
    /// If the kernel does not give it back.
    pub fn read(&self) -> io::Result<SecretValue> {
        let mut buffer = Zeroizing::new(vec![0; self.len]);
        self.file.read_exact_at(&mut buffer, 0)?;
        Ok(SecretValue(buffer))
    }
}

impl SecretValue {
    /// A buffer of this value's own.
    pub(crate) const fn new(buffer: Zeroizing<Vec<u8>>) -> Self {
        Self(buffer)
    }

    /// Reads to the end, at most one byte more than a value may have, without the end of its last line.
    pub(crate) fn read_from(mut from: impl io::Read) -> io::Result<Self> {
        let mut buffer = Zeroizing::new(vec![0; MAX_SECRET + 1]);
        let mut had = 0;
        loop {
            match from.read(buffer.get_mut(had..).unwrap_or_default()) {
                Ok(0) => break,
                Ok(more) => had += more,
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
                Err(fault) => return Err(fault),
            }
        }
        let kept = without_line_end(buffer.get(..had).unwrap_or_default()).len();
        buffer.truncate(kept);
        Ok(Self(buffer))
    }

    /// The bytes. They must not be copied into anything that is not wiped.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

fn without_line_end(value: &[u8]) -> &[u8] {
    let value = value.strip_suffix(b"\n").unwrap_or(value);
    value.strip_suffix(b"\r").unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_end_is_no_part_of_a_value() {
        for (read, kept) in [("a b\n", "a b"), ("a\r\n", "a"), ("a\n\n", "a\n"), ("a", "a"), ("\n", "")] {
            assert_eq!(
                SecretValue::read_from(read.as_bytes()).unwrap().expose(),
                kept.as_bytes(),
                "{read:?}"
            );
            let file = HeldSecret::empty().unwrap();
            file.write_all_at(read.as_bytes(), 0).unwrap();
            assert_eq!(HeldSecret::written(file).unwrap().read().unwrap().expose(), kept.as_bytes());
        }
    }

    #[test]
    fn no_more_than_one_byte_beyond_the_limit_is_read() {
        let value = SecretValue::read_from(io::repeat(b'x')).map(|value| value.expose().len());
        assert_eq!(value.unwrap(), MAX_SECRET + 1);
    }
}
