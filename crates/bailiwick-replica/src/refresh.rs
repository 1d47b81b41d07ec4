//! One look at the log: from the checkpoint that a web server offers to a copy that continues the one that is held.
//!
//! A few new entries are taken at once: added to the tree that is held, they lead to the signed root or nothing is taken. Many, and the
//! first copy, are read from the top of the tree: every tile is checked against the signed root, and every entry against its tile,
//! before it is looked at.
//!
//! Fails closed when: the head is not signed as the enrolment wants, is older or smaller than the one held, or has another past; or a
//! file does not belong to the tree. The copy that is held stays in force then, and ages.

use bailiwick_fleet::Hash;
use bailiwick_fleet::checkpoint::{
    CheckpointError, SignedHead, Succession, SuccessionError, judge_successor,
};
use bailiwick_fleet::enrolment::Enrolment;
use bailiwick_fleet::entry::{Entry, EntryError};
use bailiwick_fleet::merkle::{Frontier, leaf_hash};
use bailiwick_fleet::state::FleetState;
use bailiwick_fleet::tile::{EntryBundle, LogFile, TileError, WIDTH, entry_bundles};
use bailiwick_fleet::view::{CheckedTiles, ViewError, edge};

use crate::copy::{LogCopy, trust};
use crate::fetch::{FetchError, LogSource, Polled};

/// How many new entry bundles are taken without the tiles above them.
const FEW: usize = 2;

/// How many entries are applied before what other machines need is forgotten.
const FORGET_EVERY: u64 = 4096;

/// Why a look brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum RefreshError {
    /// A file was not had.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The checkpoint is not signed as it has to be.
    #[error("the checkpoint of `{0}`: {1}")]
    Checkpoint(String, CheckpointError),
    /// The log was forked or rolled back, or an old checkpoint is offered.
    #[error("the checkpoint of `{0}`: {1}")]
    Succession(String, SuccessionError),
    /// A tile is not the tree's.
    #[error("a file of `{0}`: {1}")]
    View(String, ViewError),
    /// A file is not as wide as its path says.
    #[error("a file of `{0}`: {1}")]
    Tile(String, TileError),
    /// Entries are not those of the tree.
    #[error("the entries of `{0}` from {1} on are not those of the signed tree")]
    Entries(String, u64),
    /// An entry cannot be understood.
    #[error("entry {1} of `{0}`: {2}")]
    Entry(String, u64, EntryError),
}

/// What a machine holds of the log.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Held<'a> {
    /// The last checkpoint that was verified.
    pub(crate) head: Option<&'a SignedHead>,
    pub(crate) copy: Option<&'a LogCopy>,
}

/// What a look brought.
pub(crate) struct Look {
    /// A newer copy; nothing if it is the one that is held.
    pub(crate) copy: Option<LogCopy>,
    /// The tag of the checkpoint.
    pub(crate) tag: Option<String>,
}

/// Looks at the log of one web server.
pub(crate) async fn look(
    source: &LogSource<'_>,
    enrolment: &Enrolment,
    held: Held<'_>,
    tag: Option<&str>,
    now_ms: u64,
) -> Result<Look, RefreshError> {
    let base = source.base.to_owned();
    // What the tag was for is known only as long as the copy is.
    let known = tag.filter(|_| held.copy.is_some());
    let (signed, tag) = match source.poll(known).await? {
        Polled::Unchanged => return Ok(Look { copy: None, tag: known.map(str::to_owned) }),
        Polled::New(signed, tag) => (signed, tag),
    };
    let opened = trust(enrolment, held.copy.map(LogCopy::state)).open(&signed);
    let head = opened.map_err(|why| RefreshError::Checkpoint(base.clone(), why))?;
    let succession = judge_successor(held.head, &head, now_ms);
    let succession = succession.map_err(|why| RefreshError::Succession(base, why))?;
    let copy = match (succession, held.copy) {
        (Succession::Same, Some(copy)) if copy.signed == signed => None,
        (Succession::Same, Some(copy)) => {
            Some(LogCopy { head, signed, frontier: copy.frontier.clone(), state: copy.state.clone() })
        }
        (Succession::Same | Succession::Grown, _) => {
            Some(grown(source, enrolment, held, head, signed).await?)
        }
    };
    Ok(Look { copy, tag })
}

async fn grown(
    source: &LogSource<'_>,
    enrolment: &Enrolment,
    held: Held<'_>,
    head: SignedHead,
    signed: Vec<u8>,
) -> Result<LogCopy, RefreshError> {
    let size = head.checkpoint.size;
    let start = Growing::new(source, enrolment, held.copy);
    let is_few = entry_bundles(start.frontier.size(), size).take(FEW + 1).count() <= FEW;
    if is_few && held.copy.is_some() {
        let mut growing = start.clone();
        if growing.add_directly(&head).await.is_ok() {
            return Ok(growing.into_copy(head, signed));
        }
    }
    // From the top: it takes more files, and says what is wrong.
    let mut tiles = Tiles::open(source, &head).await?;
    if let Some(before) = held.head {
        tiles.refuse_fork(before).await?;
    }
    let mut growing = start;
    growing.add_checked(&mut tiles, size).await?;
    if growing.frontier.root() != head.checkpoint.root {
        return Err(RefreshError::Entries(source.base.to_owned(), 0));
    }
    Ok(growing.into_copy(head, signed))
}

/// A tree and its meaning, to which entries are added.
#[derive(Clone)]
struct Growing<'a> {
    source: &'a LogSource<'a>,
    machine: &'a str,
    frontier: Frontier,
    state: FleetState,
}

impl<'a> Growing<'a> {
    fn new(source: &'a LogSource<'a>, enrolment: &'a Enrolment, from: Option<&LogCopy>) -> Self {
        let (frontier, state) = match from {
            Some(copy) => (copy.frontier.clone(), copy.state.clone()),
            None => (Frontier::default(), FleetState::default().with_max_stale(enrolment.max_stale_s)),
        };
        Self { source, machine: &enrolment.name, frontier, state }
    }

    fn into_copy(self, head: SignedHead, signed: Vec<u8>) -> LogCopy {
        let Self { machine, frontier, mut state, .. } = self;
        state.keep_for(machine);
        LogCopy { head, signed, frontier, state }
    }

    /// Adds the entries up to a head, if they lead to its root.
    async fn add_directly(&mut self, head: &SignedHead) -> Result<(), RefreshError> {
        let mut new = Vec::new();
        let mut tree = self.frontier.clone();
        for bundle in entry_bundles(tree.size(), head.checkpoint.size) {
            let file = self.source.file(LogFile::Entries(bundle)).await?;
            for entry in self.new_entries(bundle, &file, tree.size())? {
                tree.push(leaf_hash(entry));
                new.push(entry.to_vec());
            }
        }
        let is_root = tree.size() == head.checkpoint.size && tree.root() == head.checkpoint.root;
        if !is_root {
            return Err(RefreshError::Entries(self.source.base.to_owned(), self.frontier.size()));
        }
        new.iter().try_for_each(|entry| self.add(entry))
    }

    /// Adds the entries up to a size, each checked with its tile.
    async fn add_checked(&mut self, tiles: &mut Tiles<'_>, size: u64) -> Result<(), RefreshError> {
        for bundle in entry_bundles(self.frontier.size(), size) {
            let hashes = tiles.hashes(0, bundle.index).await?;
            let file = self.source.file(LogFile::Entries(bundle)).await?;
            let first = bundle.index * u64::from(WIDTH);
            let start = usize::try_from(self.frontier.size().saturating_sub(first)).unwrap_or(usize::MAX);
            let entries = self.new_entries(bundle, &file, self.frontier.size())?;
            let expected = hashes.get(start..).unwrap_or_default();
            let is_tile = entries.iter().map(|entry| leaf_hash(entry)).eq(expected.iter().copied());
            if !is_tile {
                return Err(RefreshError::Entries(self.source.base.to_owned(), first));
            }
            entries.into_iter().try_for_each(|entry| self.add(entry))?;
        }
        Ok(())
    }

    /// The entries of a bundle that are not in a tree of this size.
    fn new_entries<'f>(
        &self,
        bundle: EntryBundle,
        file: &'f [u8],
        size: u64,
    ) -> Result<Vec<&'f [u8]>, RefreshError> {
        let entries = bundle.decode(file);
        let entries = entries.map_err(|why| RefreshError::Tile(self.source.base.to_owned(), why))?;
        let known = size.saturating_sub(bundle.index * u64::from(WIDTH));
        Ok(entries.into_iter().skip(usize::try_from(known).unwrap_or(usize::MAX)).collect())
    }

    /// Adds an entry that was checked.
    fn add(&mut self, bytes: &[u8]) -> Result<(), RefreshError> {
        let at = self.frontier.size();
        let wrong = |why| RefreshError::Entry(self.source.base.to_owned(), at, why);
        let entry = Entry::parse(bytes).map_err(wrong)?;
        self.state.apply(&entry);
        self.frontier.push(leaf_hash(bytes));
        if self.frontier.size().is_multiple_of(FORGET_EVERY) {
            self.state.keep_for(self.machine);
        }
        Ok(())
    }
}

/// The tiles of a signed tree, fetched and checked when they are needed.
struct Tiles<'a> {
    source: &'a LogSource<'a>,
    checked: CheckedTiles,
    head: &'a SignedHead,
}

impl<'a> Tiles<'a> {
    async fn open(source: &'a LogSource<'a>, head: &'a SignedHead) -> Result<Self, RefreshError> {
        let (size, root) = (head.checkpoint.size, head.checkpoint.root);
        let mut files = Vec::new();
        for tile in edge(size) {
            files.push(source.file(LogFile::Tile(tile)).await?);
        }
        let checked = CheckedTiles::open(size, &root, &files);
        let checked = checked.map_err(|why| RefreshError::View(source.base.to_owned(), why))?;
        Ok(Self { source, checked, head })
    }

    async fn hashes(&mut self, level: u8, index: u64) -> Result<Vec<Hash>, RefreshError> {
        if let Some(hashes) = self.checked.hashes(level, index) {
            return Ok(hashes.to_vec());
        }
        let mut hashes = Vec::new();
        for tile in self.checked.missing(level, index) {
            let file = self.source.file(LogFile::Tile(tile)).await?;
            let checked = self.checked.check(tile, &file);
            hashes = checked.map_err(|why| RefreshError::View(self.source.base.to_owned(), why))?;
        }
        Ok(hashes)
    }

    /// Compares the root that this tree had at the size of another head: two that are signed and differ are a fork.
    async fn refuse_fork(&mut self, before: &SignedHead) -> Result<(), RefreshError> {
        let held = &before.checkpoint;
        let mut known = std::collections::BTreeMap::new();
        for (level, index) in self.checked.needed_at(held.size).collect::<Vec<_>>() {
            known.insert((level, index), self.hashes(level, index).await?);
        }
        let tree = self.checked.frontier_from(held.size, |level, index| known.get(&(level, index)).cloned());
        let root = tree.map(|tree| tree.root());
        if root == Some(held.root) {
            return Ok(());
        }
        let root = root.unwrap_or(self.head.checkpoint.root);
        let fork = SuccessionError::Forked { size: held.size, held_root: held.root, root };
        Err(RefreshError::Succession(self.source.base.to_owned(), fork))
    }
}
