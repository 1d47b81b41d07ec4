//! Where the journal's files are, and the only ways to open them: never through a symlink, mode 0600, in a directory
//! that only its owner may write to.
use super::fault::{During, JournalFault};
use crate::format::SessionId;
use crate::private;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The journal's directory.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    dir: PathBuf,
}

impl Layout {
    /// For writing: makes the directory if it is not there, and refuses one that others could write to.
    pub(super) fn for_writing(dir: &Path) -> Result<Self, JournalFault> {
        private::make_directory(dir).during("create directory", dir)?;
        let found = fs::metadata(dir).during("look at", dir)?;
        match private::directory_fault(&found) {
            Some(why) => Err(JournalFault::Directory { path: dir.to_path_buf(), why }),
            None => Ok(Self::for_reading(dir)),
        }
    }

    /// For reading: takes what is there.
    pub(super) fn for_reading(dir: &Path) -> Self {
        Self { dir: dir.to_path_buf() }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn key(&self) -> PathBuf {
        self.dir.join("key")
    }

    pub(super) fn index(&self) -> PathBuf {
        self.dir.join("index.jsonl")
    }

    pub(super) fn head(&self, session: &SessionId) -> PathBuf {
        self.dir.join(format!("{session}.head"))
    }

    pub(super) fn segment(&self, session: &SessionId, number: u32) -> PathBuf {
        self.dir.join(format!("{session}.{number:06}.jsonl"))
    }

    /// The numbers of the segments of `session`, ascending.
    pub(super) fn segments(&self, session: &SessionId) -> Result<Vec<u32>, JournalFault> {
        let mut numbers: Vec<u32> = self
            .names()?
            .iter()
            .filter_map(|name| segment_name(name))
            .filter(|(owner, _)| *owner == session.as_str())
            .map(|(_, number)| number)
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Every session that has a segment or a head file.
    pub(super) fn sessions(&self) -> Result<BTreeSet<SessionId>, JournalFault> {
        let owner = |name: &String| {
            let head = name.strip_suffix(".head");
            head.or_else(|| segment_name(name).map(|(owner, _)| owner)).and_then(|owner| owner.parse().ok())
        };
        Ok(self.names()?.iter().filter_map(owner).collect())
    }

    /// The numbers of the segments of every session that has one, ascending. The directory is listed once.
    pub(super) fn all_segments(&self) -> Result<BTreeMap<SessionId, Vec<u32>>, JournalFault> {
        let mut all: BTreeMap<SessionId, Vec<u32>> = BTreeMap::new();
        for name in self.names()? {
            if let Some((owner, number)) = segment_name(&name)
                && let Ok(session) = owner.parse()
            {
                all.entry(session).or_default().push(number);
            }
        }
        all.values_mut().for_each(|numbers| numbers.sort_unstable());
        Ok(all)
    }

    /// Makes what was created, renamed or removed in the directory durable.
    pub(super) fn sync(&self) -> Result<(), JournalFault> {
        File::open(&self.dir).and_then(|dir| dir.sync_all()).during("flush directory", &self.dir)
    }

    fn names(&self) -> Result<Vec<String>, JournalFault> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(JournalFault::io("list", &self.dir, &error)),
        };
        entries
            .filter_map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).transpose())
            .collect::<io::Result<_>>()
            .during("list", &self.dir)
    }
}

/// `SESSION.NNNNNN.jsonl`, spelt as [`Layout::segment`] does.
fn segment_name(name: &str) -> Option<(&str, u32)> {
    let (owner, digits) = name.strip_suffix(".jsonl")?.rsplit_once('.')?;
    let number = digits.parse().ok().filter(|number: &u32| format!("{number:06}") == digits)?;
    Some((owner, number))
}

/// Opens a regular file for reading and writing, and makes it when it is not there.
pub(super) fn open_or_create(path: &Path) -> Result<File, JournalFault> {
    let mut options = private::options();
    let file = options.read(true).write(true).create(true).truncate(false).open(path).during("open", path)?;
    regular(file, path)
}

/// Opens a regular file for reading.
pub(super) fn open_existing(path: &Path) -> Result<File, JournalFault> {
    let file = private::options().read(true).open(path).during("open", path)?;
    regular(file, path)
}

/// Opens a regular file for reading and writing; nothing when it is not there.
pub(super) fn open_to_change(path: &Path) -> Result<Option<File>, JournalFault> {
    match private::options().read(true).write(true).open(path) {
        Ok(file) => regular(file, path).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(JournalFault::io("open", path, &error)),
    }
}

/// The whole file; nothing when it is not there.
pub(super) fn read_all(path: &Path) -> Result<Vec<u8>, JournalFault> {
    use std::io::Read;
    let mut bytes = Vec::new();
    if is_there(path)? {
        open_existing(path)?.read_to_end(&mut bytes).during("read", path)?;
    }
    Ok(bytes)
}

pub(super) fn is_there(path: &Path) -> Result<bool, JournalFault> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(JournalFault::io("look at", path, &error)),
    }
}

fn regular(file: File, path: &Path) -> Result<File, JournalFault> {
    if file.metadata().during("look at", path)?.is_file() {
        return Ok(file);
    }
    Err(JournalFault::io("open", path, &io::Error::other("not a regular file")))
}
