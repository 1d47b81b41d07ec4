//! The heads that the fleet's log holds of a machine's journal: what the journal is held against.
//!
//! The log is read as a whole: a checkpoint that the fleet's key signed, every entry up to its size, and their root. Files of heads are
//! taken by the digest that an entry names. So neither the hub nor a web server can leave a head out without another checkpoint.
//!
//! Fails closed when: a file is missing, or the entries do not lead to the signed root.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bailiwick_fleet::checkpoint::{Checkpoint, CheckpointError, Trust};
use bailiwick_fleet::entry::{Entry, EntryBody, HeadBatch, JournalHead, decode_heads};
use bailiwick_fleet::merkle::{Frontier, leaf_hash};
use bailiwick_fleet::tile::{
    EntryBundle, LogFile, MAX_BUNDLE, MAX_CHECKPOINT, MAX_HEADS, WIDTH, entry_bundles,
};
use bailiwick_remote::{Client, Endpoint, OwnTls, Resolver};
use bytes::Bytes;
use http::Request;

use crate::files;
use crate::hub::HubSetupError;
use crate::identity::Identity;

/// How long a web server may take for a file.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where the log's files are read.
pub enum LogSource {
    /// A directory with the published files.
    Files(PathBuf),
    /// Web servers, in the order in which they are asked.
    Web(Box<Client>, Vec<Endpoint>),
}

/// What the log holds of a machine.
#[derive(Debug, Clone)]
pub struct Anchored {
    /// The checkpoint that was read.
    pub checkpoint: Checkpoint,
    /// The newest head of each session.
    pub heads: Vec<JournalHead>,
}

/// Why the log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum AnchorError {
    /// A file is not there.
    #[error("the file `{0}` of the log cannot be read: {1}")]
    File(String, String),
    /// The checkpoint is not trusted.
    #[error("the checkpoint of the log is not trusted: {0}")]
    Checkpoint(#[from] CheckpointError),
    /// What is in a file is not what was signed.
    #[error("the file `{0}` of the log is not what was signed: {1}")]
    Forged(String, String),
}

impl LogSource {
    /// The log's own servers, as an enrolment names them.
    ///
    /// # Errors
    /// If one of them may not be asked.
    pub fn for_identity(identity: &Identity) -> Result<Self, HubSetupError> {
        let own = OwnTls { authorities: identity.authority.as_deref(), identity: None };
        let client = Client::with_tls(Resolver::default(), BTreeMap::new(), &own)?.for_own_network();
        let bases = identity.enrolment.log.iter().map(|url| Endpoint::new(&format!("{url}/")));
        Ok(Self::Web(Box::new(client), bases.collect::<Result<_, _>>()?))
    }

    async fn read(&self, file: &LogFile, most: usize) -> Result<Vec<u8>, AnchorError> {
        let path = file.path();
        let missing = |why: String| AnchorError::File(path.clone(), why);
        match self {
            Self::Files(directory) => match read_file(directory, file) {
                Ok(Some(bytes)) if bytes.len() <= most => Ok(bytes),
                Ok(Some(_)) => Err(missing(format!("it has more than {most} bytes"))),
                Ok(None) => Err(missing(format!("it is not in `{}`", directory.display()))),
                Err(why) => Err(missing(why.to_string())),
            },
            Self::Web(client, bases) => {
                let mut last = "the enrolment names no server".to_owned();
                for base in bases {
                    match fetch(client, base, &path, most).await {
                        Ok(bytes) => return Ok(bytes),
                        Err(why) => last = why,
                    }
                }
                Err(missing(last))
            }
        }
    }
}

/// The newest heads of a machine's sessions in the log.
///
/// # Errors
/// If the log cannot be read, or is not what was signed.
pub async fn anchored(source: &LogSource, trust: &Trust, machine: &str) -> Result<Anchored, AnchorError> {
    let checkpoint = trust.open(&source.read(&LogFile::Checkpoint, MAX_CHECKPOINT).await?)?.checkpoint;
    let mut newest: BTreeMap<String, JournalHead> = BTreeMap::new();
    for batch in batches(source, &checkpoint).await? {
        let file = LogFile::Heads(batch.sha256);
        let bytes = source.read(&file, MAX_HEADS).await?;
        let heads = decode_heads(&batch, &bytes);
        let heads = heads.map_err(|why| AnchorError::Forged(file.path(), why.to_string()))?;
        for head in heads.into_iter().filter(|head| head.machine == machine) {
            let known = newest.get(&head.session).is_some_and(|known| known.seq >= head.seq);
            if !known {
                newest.insert(head.session.clone(), head);
            }
        }
    }
    Ok(Anchored { checkpoint, heads: newest.into_values().collect() })
}

/// The files of heads that the entries behind a checkpoint name.
async fn batches(source: &LogSource, checkpoint: &Checkpoint) -> Result<Vec<HeadBatch>, AnchorError> {
    let (mut tree, mut found) = (Frontier::default(), Vec::new());
    for bundle in entry_bundles(0, checkpoint.size) {
        let file = LogFile::Entries(bundle);
        let forged = |why: String| AnchorError::Forged(file.path(), why);
        let bytes = source.read(&file, MAX_BUNDLE).await?;
        for bytes in bundle.decode(&bytes).map_err(|why| forged(why.to_string()))? {
            tree.push(leaf_hash(bytes));
            let entry = Entry::parse(bytes).map_err(|why| forged(why.to_string()))?;
            if let EntryBody::Heads(batch) = entry.body {
                found.push(batch);
            }
        }
    }
    if tree.root() != checkpoint.root {
        let why = format!("the entries lead to the root {}, signed is {}", tree.root(), checkpoint.root);
        return Err(AnchorError::Forged(LogFile::Checkpoint.path(), why));
    }
    Ok(found)
}

/// A file of a directory; a narrow bundle is cut from the full one if only that is there.
fn read_file(directory: &Path, file: &LogFile) -> std::io::Result<Option<Vec<u8>>> {
    if let Some(bytes) = files::read(&directory.join(file.path()))? {
        return Ok(Some(bytes));
    }
    let LogFile::Entries(bundle) = file else { return Ok(None) };
    let whole = EntryBundle { width: WIDTH, ..*bundle };
    let Some(bytes) = files::read(&directory.join(whole.path()))? else { return Ok(None) };
    let entries = whole.decode(&bytes).map_err(std::io::Error::other)?;
    let part = entries.get(..usize::from(bundle.width)).unwrap_or_default();
    EntryBundle::encode(part).map(Some).map_err(std::io::Error::other)
}

async fn fetch(client: &Client, base: &Endpoint, path: &str, most: usize) -> Result<Vec<u8>, String> {
    let target = base.join(path).map_err(|why| why.to_string())?;
    let request = Request::get(target.as_str()).body(Bytes::new()).map_err(|why| why.to_string())?;
    let answered = client.send(&target, &request, PATIENCE).await.map_err(|why| why.to_string())?;
    if !answered.status.is_success() {
        return Err(format!("`{}` answers {}", base.origin(), answered.status.as_u16()));
    }
    answered.body.read(most).await.map_err(|why| why.to_string())
}
