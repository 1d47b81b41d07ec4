//! Paths in fixed room: the first process must not allocate.

use std::ffi::CStr;

use rustix::io::Errno;

/// The longest path that the kernel takes, its zero included.
const ROOM: usize = 4096;

/// A path.
pub(crate) struct Text {
    bytes: [u8; ROOM],
    length: usize,
}

impl Text {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; ROOM], length: 0 }
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Errno> {
        let mut text = Self::new();
        text.push(bytes)?;
        Ok(text)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// For the kernel; a zero inside is an error.
    pub(crate) fn as_c(&self) -> Result<&CStr, Errno> {
        let bytes = self.bytes.get(..=self.length).ok_or(Errno::NAMETOOLONG)?;
        CStr::from_bytes_with_nul(bytes).map_err(|_| Errno::INVAL)
    }

    /// Adds bytes at the end; a zero stays behind them.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let end = self.length + bytes.len();
        if end >= ROOM {
            return Err(Errno::NAMETOOLONG);
        }
        let room = self.bytes.get_mut(self.length..end).ok_or(Errno::NAMETOOLONG)?;
        room.copy_from_slice(bytes);
        self.length = end;
        if let Some(zero) = self.bytes.get_mut(end) {
            *zero = 0;
        }
        Ok(())
    }

    /// Fills it by a function that says how many bytes it has written.
    pub(crate) fn fill(&mut self, fill: impl FnOnce(&mut [u8]) -> Result<usize, Errno>) -> Result<(), Errno> {
        let length = fill(&mut self.bytes)?;
        if length >= ROOM {
            self.length = 0;
            return Err(Errno::NAMETOOLONG);
        }
        self.length = length;
        if let Some(zero) = self.bytes.get_mut(length) {
            *zero = 0;
        }
        Ok(())
    }
}

/// A path taken apart: what leads to the directory of its last component, and that component.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Split<'a> {
    /// Empty if the path is the component alone.
    pub(super) parent: &'a [u8],
    pub(super) name: &'a [u8],
    /// Whether a slash follows: then the component must be a directory.
    pub(super) slash: bool,
}

/// Takes a path apart; `None` for paths that end in `.`, `..` or the root, and for empty ones.
pub(super) fn split(path: &[u8]) -> Option<Split<'_>> {
    let end = path.iter().rposition(|byte| *byte != b'/')? + 1;
    let trimmed = path.get(..end)?;
    let start = trimmed.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let (parent, name) = trimmed.split_at_checked(start)?;
    (!matches!(name, b"." | b"..")).then_some(Split { parent, name, slash: end < path.len() })
}

/// Whether a clean absolute path is a tree or lies in it.
pub(crate) fn lies_in(path: &[u8], tree: &[u8]) -> bool {
    let rest = path.strip_prefix(tree);
    rest.is_some_and(|rest| tree == b"/" || matches!(rest.first(), None | Some(b'/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_apart_as_the_kernel_does() {
        let of = |path: &'static str| {
            split(path.as_bytes()).map(|split| {
                (str::from_utf8(split.parent).unwrap(), str::from_utf8(split.name).unwrap(), split.slash)
            })
        };
        assert_eq!(of("a"), Some(("", "a", false)));
        assert_eq!(of("a/"), Some(("", "a", true)));
        assert_eq!(of("/a"), Some(("/", "a", false)));
        assert_eq!(of("/a/b//"), Some(("/a/", "b", true)));
        assert_eq!(of("../b"), Some(("../", "b", false)));
        for odd in ["", "/", "//", ".", "a/.", "..", "a/../", "./"] {
            assert_eq!(of(odd), None, "{odd}");
        }
    }

    #[test]
    fn room_is_bounded() {
        assert!(Text::from_bytes(&[b'x'; ROOM]).is_err());
        let mut text = Text::from_bytes(&[b'x'; ROOM - 1]).unwrap();
        assert_eq!(text.as_c().unwrap().to_bytes().len(), ROOM - 1);
        assert!(text.push(b"y").is_err());
        assert!(text.fill(|room| Ok(room.len())).is_err());
        assert_eq!(text.as_bytes(), b"");
        assert!(Text::from_bytes(b"a\0b").unwrap().as_c().is_err());
    }
}
