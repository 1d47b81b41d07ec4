//! The log's files: written from the database into a directory, the checkpoint last, and signed only then.
//!
//! A [`Publisher`] follows the head. Before it signs, it has read every entry behind the last checkpoint, hashed it, and come to the root
//! that the head says: what it signs always continues what it signed before, whatever the database says. Its memory of that is the
//! directory: a hub that starts reads its own checkpoint back and starts from there. The time in a checkpoint is the
//! database's, read before the head, so that what was committed earlier is in the tree.
//!
//! Fails closed when: the database is behind the published log, or has another past. Then nothing is signed until `bailiwick-hub
//! recover` has put the published entries back.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use bailiwick_fleet::Hash;
use bailiwick_fleet::checkpoint::{Checkpoint, Trust};
use bailiwick_fleet::merkle::{Frontier, leaf_hash};
use bailiwick_fleet::tile::{EntryBundle, LogFile, MAX_CHECKPOINT, Tile, WIDTH};
use tokio_postgres::Client;

use crate::database::{Database, StoreError};
use crate::keys::Keys;
use crate::sequence::{self, signed};

/// How many entries are read at a time.
const STEP: u64 = 256;

/// Why the log is not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The database does not give it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file cannot be written or read.
    #[error("cannot {action} `{path}`: {cause}")]
    File {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// What is published is not what the database has.
    #[error(
        "the database does not continue the published log (published: size {size}, root {root}; database: {found}); \
         nothing is signed: run `bailiwick-hub recover --from {directory}`"
    )]
    Diverged {
        /// The published size.
        size: u64,
        /// The published root.
        root: Hash,
        /// What the database has there.
        found: String,
        /// Where the published log is.
        directory: PathBuf,
    },
    /// The checkpoint of the directory is not ours.
    #[error("the checkpoint in `{directory}` is not of this log: {why}")]
    Foreign {
        /// The directory.
        directory: PathBuf,
        /// Why.
        why: String,
    },
    /// It cannot be signed.
    #[error("cannot sign: {0}")]
    Sign(String),
}

/// A checkpoint as it is served.
#[derive(Debug, Clone)]
pub struct SignedCheckpoint {
    /// Its bytes.
    pub note: Arc<[u8]>,
    /// The size of its tree.
    pub size: u64,
    /// Its time.
    pub time_ms: u64,
}

/// Writes the files of the log into a directory.
pub struct Publisher {
    directory: PathBuf,
    keys: Arc<Keys>,
    tree: Frontier,
    served: Arc<RwLock<Option<SignedCheckpoint>>>,
}

impl Publisher {
    /// Starts from what is in the directory. `served` is where the newest checkpoint is for those who read it.
    ///
    /// # Errors
    /// If the directory cannot be used, or holds another log.
    pub fn open(
        directory: &Path,
        keys: Arc<Keys>,
        served: Arc<RwLock<Option<SignedCheckpoint>>>,
    ) -> Result<Self, PublishError> {
        let made = fs::create_dir_all(directory);
        made.map_err(|cause| PublishError::File { action: "make", path: directory.to_owned(), cause })?;
        let publisher = Self { directory: directory.to_owned(), keys, tree: Frontier::default(), served };
        Ok(publisher)
    }

    /// The checkpoint in the directory, if there is one; it is verified.
    ///
    /// # Errors
    /// If it is not of this log.
    pub fn published(&self) -> Result<Option<Checkpoint>, PublishError> {
        let Some(note) = read(&self.directory, &LogFile::Checkpoint)? else { return Ok(None) };
        let foreign = |why: String| PublishError::Foreign { directory: self.directory.clone(), why };
        if note.len() > MAX_CHECKPOINT {
            return Err(foreign("it is too large".to_owned()));
        }
        let trust = Trust::hub(&self.keys.settings.name, self.keys.log_keys());
        let head = trust.open(&note).map_err(|why| foreign(why.to_string()))?;
        Ok(Some(head.checkpoint))
    }

    /// Writes what is new, and signs. Answers the size of the tree.
    ///
    /// # Errors
    /// Why it was not; what was published before stays.
    pub async fn publish(&mut self, database: &Database) -> Result<u64, PublishError> {
        let published = self.published()?;
        let head = database.with(async |client| sequence::read_head(client).await).await?;
        let diverged = |found: String| {
            let (size, root) =
                published.as_ref().map_or((0, Frontier::default().root()), |known| (known.size, known.root));
            PublishError::Diverged { size, root, found, directory: self.directory.clone() }
        };
        if let Some(known) = &published
            && head.frontier.size() < known.size
        {
            return Err(diverged(format!("size {}", head.frontier.size())));
        }
        let mut tree = self.tree.clone();
        let mut files: Vec<LogFile> = Vec::new();
        while tree.size() < head.frontier.size() {
            let (from, to) = (tree.size(), head.frontier.size().min(tree.size() + STEP - tree.size() % STEP));
            let entries = database.with(async |client| read_entries(client, from, to).await).await?;
            for entry in &entries {
                tree.push(leaf_hash(entry));
                if let Some(known) = &published
                    && tree.size() == known.size
                    && tree.root() != known.root
                {
                    return Err(diverged(format!("root {} at that size", tree.root())));
                }
            }
            let is_new = published.as_ref().is_none_or(|known| known.size < to);
            if is_new {
                files.extend(self.write_step(database, from / STEP, to).await?);
            }
        }
        if tree.root() != head.root {
            return Err(diverged(format!(
                "root {} for size {}, its entries lead to {}",
                head.root,
                tree.size(),
                tree.root()
            )));
        }
        self.write_heads(database, published.as_ref().map_or(0, |known| known.size)).await?;
        let time_ms = head.read_at_ms.max(published.as_ref().map_or(0, |known| known.time_ms));
        self.sign(&Checkpoint {
            origin: self.keys.settings.name.clone(),
            size: tree.size(),
            root: tree.root(),
            time_ms,
        })?;
        self.tree = tree;
        Ok(head.frontier.size())
    }

    fn sign(&self, checkpoint: &Checkpoint) -> Result<(), PublishError> {
        let note = checkpoint.sign(&self.keys.log).map_err(|why| PublishError::Sign(why.to_string()))?;
        write(&self.directory, &LogFile::Checkpoint, &note)?;
        let served =
            SignedCheckpoint { note: note.into(), size: checkpoint.size, time_ms: checkpoint.time_ms };
        *self.served.write().unwrap_or_else(PoisonError::into_inner) = Some(served);
        Ok(())
    }

    /// The entry bundle and the tiles that change when the tree grows to `size` within this bundle.
    async fn write_step(
        &self,
        database: &Database,
        bundle: u64,
        size: u64,
    ) -> Result<Vec<LogFile>, PublishError> {
        let first = bundle * STEP;
        let entries = database.with(async |client| read_entries(client, first, size).await).await?;
        let width = u16::try_from(entries.len()).unwrap_or(WIDTH);
        let file = LogFile::Entries(EntryBundle { index: bundle, width });
        let bytes = EntryBundle::encode(&entries).map_err(|why| StoreError::Broken(why.to_string()))?;
        write(&self.directory, &file, &bytes)?;
        let mut written = vec![file];
        for level in 0..8_u8 {
            let nodes = size >> (8 * u32::from(level));
            if nodes == 0 {
                break;
            }
            let index = (nodes - 1) / STEP;
            let hashes =
                database.with(async |client| read_nodes(client, level, index * STEP, nodes).await).await?;
            let width = u16::try_from(hashes.len()).unwrap_or(WIDTH);
            let file = LogFile::Tile(Tile { level, index, width });
            write(&self.directory, &file, &Tile::encode(&hashes))?;
            written.push(file);
            if !size.is_multiple_of(STEP) {
                // Higher tiles changed when the bundle before this one became full.
                break;
            }
        }
        Ok(written)
    }

    /// The batches of journal heads that entries from here on name.
    async fn write_heads(&self, database: &Database, from: u64) -> Result<(), PublishError> {
        let mut from = signed(from)?;
        loop {
            let sql = "SELECT hash, body, idx FROM head_batch WHERE idx >= $1 ORDER BY idx LIMIT 8";
            let rows = database.with(async |client| Ok(client.query(sql, &[&from]).await?)).await?;
            for row in &rows {
                let (hash, body): (String, Vec<u8>) = (column(row, 0)?, column(row, 1)?);
                let hash: Hash = hash
                    .parse()
                    .map_err(|_| StoreError::Broken("a stored batch has no digest".to_owned()))?;
                let file = LogFile::Heads(hash);
                if Hash::sha256(&body) != hash {
                    return Err(StoreError::Broken(
                        "a stored batch of heads is not what its digest says".to_owned(),
                    )
                    .into());
                }
                if !self.directory.join(file.path()).exists() {
                    write(&self.directory, &file, &body)?;
                }
                from = column::<i64>(row, 2)? + 1;
            }
            if rows.len() < 8 {
                return Ok(());
            }
        }
    }
}

/// The bytes of a file of the log; a narrow file is cut from the full one if it is not there any more.
///
/// # Errors
/// If it cannot be read.
pub fn serve(directory: &Path, file: &LogFile) -> Result<Option<Vec<u8>>, PublishError> {
    if let Some(bytes) = read(directory, file)? {
        return Ok(Some(bytes));
    }
    match file {
        LogFile::Tile(tile) if tile.width < WIDTH => {
            let full = read(directory, &LogFile::Tile(Tile { width: WIDTH, ..*tile }))?;
            Ok(full.and_then(|bytes| Some(bytes.get(..usize::from(tile.width) * 32)?.to_vec())))
        }
        LogFile::Entries(bundle) if bundle.width < WIDTH => {
            let whole = EntryBundle { width: WIDTH, ..*bundle };
            let Some(full) = read(directory, &LogFile::Entries(whole))? else { return Ok(None) };
            let entries = whole.decode(&full).map_err(|why| StoreError::Broken(why.to_string()))?;
            let part = entries.get(..usize::from(bundle.width)).unwrap_or_default();
            Ok(Some(EntryBundle::encode(part).map_err(|why| StoreError::Broken(why.to_string()))?))
        }
        LogFile::Tile(_) | LogFile::Entries(_) | LogFile::Checkpoint | LogFile::Heads(_) => Ok(None),
    }
}

/// The entries from `from` to before `to`.
///
/// # Errors
/// If one is missing.
pub async fn read_entries(client: &Client, from: u64, to: u64) -> Result<Vec<Vec<u8>>, StoreError> {
    let sql = "SELECT entry FROM log_entry WHERE idx >= $1 AND idx < $2 ORDER BY idx";
    let rows = client.query(sql, &[&signed(from)?, &signed(to)?]).await?;
    let entries = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<Vec<u8>>, _>>()?;
    if u64::try_from(entries.len()) != Ok(to - from) {
        return Err(StoreError::Broken(format!("entries are missing between {from} and {to}")));
    }
    Ok(entries)
}

async fn read_nodes(client: &Client, level: u8, from: u64, to: u64) -> Result<Vec<Hash>, StoreError> {
    let sql = "SELECT hash FROM log_node WHERE level = $1 AND idx >= $2 AND idx < $3 ORDER BY idx";
    let rows = client.query(sql, &[&i64::from(level), &signed(from)?, &signed(to)?]).await?;
    if u64::try_from(rows.len()) != Ok(to - from) {
        return Err(StoreError::Broken(format!(
            "nodes of level {level} are missing between {from} and {to}"
        )));
    }
    rows.iter().map(|row| sequence::hash(row.try_get(0)?)).collect()
}

fn column<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a tokio_postgres::Row,
    at: usize,
) -> Result<T, StoreError> {
    Ok(row.try_get(at)?)
}

fn read(directory: &Path, file: &LogFile) -> Result<Option<Vec<u8>>, PublishError> {
    let path = directory.join(file.path());
    match fs::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(PublishError::File { action: "read", path, cause }),
    }
}

/// Written beside and renamed: a reader sees the old file or the new one.
fn write(directory: &Path, file: &LogFile, bytes: &[u8]) -> Result<(), PublishError> {
    let path = directory.join(file.path());
    let put = || -> std::io::Result<()> {
        let parent = path.parent().unwrap_or(directory);
        fs::create_dir_all(parent)?;
        let beside = path.with_extension("new");
        let mut new = File::create(&beside)?;
        new.write_all(bytes)?;
        new.sync_data()?;
        fs::rename(&beside, &path)
    };
    put().map_err(|cause| PublishError::File { action: "write", path: path.clone(), cause })
}
