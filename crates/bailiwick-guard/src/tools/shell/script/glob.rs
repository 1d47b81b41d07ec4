//! Patterns of file names, matched against directories that the call may read, as bash does without any of its options.
//!
//! A pattern that matches nothing, or whose directory may not be read, stays as it is written, as in a shell: so nothing
//! is learnt of directories outside. What stands before a slash has to be a directory, or a link to one that may be read. `.`
//! and `..` are met only where they are written. Names need not be UTF-8, directories that are looked into do.
//!
//! Fails closed when a pattern becomes more than a command can take: then the command does not run.

mod pattern;

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::Dir;

use self::pattern::Pattern;
use super::reach::{self, Use};
use super::words::Field;
use crate::gate::ToolContext;
use crate::tool::ToolError;

/// How many names the patterns of one command may become, and how many are looked at in one directory.
const MAX_NAMES: usize = 65_536;
/// How many bytes these may have: as much as the kernel gives a program.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// Why a pattern does not become names.
#[derive(Debug)]
pub(super) enum NotExpanded {
    /// There are more than a command can take.
    TooMany,
    /// The call was cancelled, or its grant revoked.
    Stopped(ToolError),
}

impl From<ToolError> for NotExpanded {
    fn from(error: ToolError) -> Self {
        Self::Stopped(error)
    }
}

/// What patterns are matched against.
pub(super) struct Expansion<'a> {
    directory: &'a Path,
    context: &'a ToolContext,
    names: usize,
    bytes: usize,
}

impl<'a> Expansion<'a> {
    /// For the arguments of one command in a directory.
    pub(super) const fn new(directory: &'a Path, context: &'a ToolContext) -> Self {
        Self { directory, context, names: 0, bytes: 0 }
    }

    /// The arguments that a field becomes.
    pub(super) fn expand(&mut self, field: Field) -> Result<Vec<OsString>, NotExpanded> {
        let Some(pattern) = field.pattern.as_deref().filter(|pattern| pattern::is_pattern(pattern)) else {
            return Ok(vec![field.text.into()]);
        };
        let mut found = self.matching(pattern)?;
        if found.is_empty() {
            return Ok(vec![field.text.into()]);
        }
        found.sort_unstable();
        Ok(found.into_iter().map(OsString::from_vec).collect())
    }

    /// Everything that a pattern matches, as it is written.
    fn matching(&mut self, pattern: &str) -> Result<Vec<Vec<u8>>, NotExpanded> {
        let (directories, name) = match pattern.rfind('/') {
            None => (vec![Vec::new()], pattern),
            Some(at) => {
                let (before, name) = pattern.split_at(at + 1);
                let directories = if pattern::is_pattern(before) {
                    self.directories_matching(before)?
                } else {
                    vec![pattern::unescaped(before).into_bytes()]
                };
                (directories, name.strip_prefix('/').unwrap_or(name))
            }
        };
        if name.is_empty() {
            return Ok(directories);
        }
        let mut found = Vec::new();
        for directory in directories {
            self.context.still_granted()?;
            for name in self.names(&directory, name)? {
                self.take(directory.len() + name.len())?;
                found.push([directory.as_slice(), &name].concat());
            }
        }
        Ok(found)
    }

    /// The directories that a pattern with a slash at its end matches, each with a slash at its end.
    fn directories_matching(&mut self, pattern: &str) -> Result<Vec<Vec<u8>>, NotExpanded> {
        let mut found = self.matching(pattern.strip_suffix('/').unwrap_or(pattern))?;
        found.retain(|shown| self.is_directory(shown));
        for shown in &mut found {
            if shown.last() != Some(&b'/') {
                shown.push(b'/');
            }
        }
        Ok(found)
    }

    /// The names in a directory that match.
    fn names(&self, directory: &[u8], name: &str) -> Result<Vec<Vec<u8>>, NotExpanded> {
        let at = self.path(directory);
        if !reach::is_open(&at, Use::Read, self.context) {
            return Ok(Vec::new());
        }
        if !pattern::is_pattern(name) {
            let name = pattern::unescaped(name);
            let there = at.join(&name).symlink_metadata().is_ok();
            return Ok(there.then(|| name.into_bytes()).into_iter().collect());
        }
        let pattern = Pattern::read(name);
        let mut names = self.listed(&at)?;
        names.retain(|name| pattern.matches(name));
        Ok(names)
    }

    /// The names in a directory that may be read.
    fn listed(&self, directory: &Path) -> Result<Vec<Vec<u8>>, NotExpanded> {
        let opened = directory.to_str().and_then(|directory| self.context.open_read(directory).ok());
        let entries = opened.and_then(|opened| Dir::read_from(&opened).ok());
        let mut names = Vec::new();
        for entry in entries.into_iter().flatten().filter_map(Result::ok) {
            self.context.still_granted()?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(name.to_vec());
            }
            if names.len() > MAX_NAMES {
                return Err(NotExpanded::TooMany);
            }
        }
        Ok(names)
    }

    /// Whether this is a directory, or a link that leads to one and may be followed.
    fn is_directory(&self, shown: &[u8]) -> bool {
        let path = self.path(shown);
        match path.symlink_metadata() {
            Ok(about) if about.is_symlink() => {
                reach::is_open(&path, Use::Read, self.context) && path.is_dir()
            }
            Ok(about) => about.is_dir(),
            Err(_) => false,
        }
    }

    fn path(&self, shown: &[u8]) -> PathBuf {
        self.directory.join(std::ffi::OsStr::from_bytes(shown))
    }

    fn take(&mut self, bytes: usize) -> Result<(), NotExpanded> {
        self.names += 1;
        self.bytes += bytes;
        let fits = self.names <= MAX_NAMES && self.bytes <= MAX_BYTES;
        if fits { Ok(()) } else { Err(NotExpanded::TooMany) }
    }
}
