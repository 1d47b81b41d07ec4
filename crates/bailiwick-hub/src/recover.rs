//! After a restore: the published log is put back into a database that is behind it.
//!
//! A backup is older than what was published. If a hub went on from it, it would sign a fork. So the entries of the published files are
//! verified against their checkpoint, compared with those of the database, and the missing ones appended, byte for byte. What the
//! database alone knew since the backup is gone, and is taken at its worst: no approval that was not used stays, every budget counts
//! as spent until an admin sets it anew, no enrolment token stays, and revocations in the log cut members off again.
//!
//! Fails closed when: the published files do not lead to their checkpoint, or the database has another entry at a place.

use std::path::Path;

use bailiwick_fleet::Hash;
use bailiwick_fleet::checkpoint::Trust;
use bailiwick_fleet::entry::{Entry, EntryBody};
use bailiwick_fleet::merkle::{Frontier, leaf_hash};
use bailiwick_fleet::tile::{EntryBundle, LogFile, entry_bundles};
use tokio_postgres::Client;

use crate::database::{Database, StoreError};
use crate::effect::Effect;
use crate::keys::Keys;
use crate::publish::{self, PublishError};
use crate::sequence::{self, signed};

/// Why nothing was recovered.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The files cannot be read, or the database does not do it.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The store's part.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The files are not a whole log.
    #[error("the published files are not a whole log: {0}")]
    Files(String),
    /// The database is not a beginning of the published log.
    #[error(
        "the database has another entry at place {0} than the published log: it is not a backup of this fleet"
    )]
    Fork(u64),
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovered {
    /// How many entries the database had.
    pub before: u64,
    /// How many it has now.
    pub after: u64,
}

/// Puts the log of a directory back.
///
/// # Errors
/// If the files or the database contradict each other; nothing is changed then.
pub async fn recover(database: &Database, keys: &Keys, directory: &Path) -> Result<Recovered, RecoverError> {
    let published = read_published(keys, directory)?;
    Ok(database
        .with(async |client| put_back(client, &published, directory).await.map_err(into_store))
        .await?)
}

fn into_store(error: RecoverError) -> StoreError {
    match error {
        RecoverError::Store(error) => error,
        RecoverError::Publish(_) | RecoverError::Files(_) | RecoverError::Fork(_) => {
            StoreError::Broken(error.to_string())
        }
    }
}

/// All entries of the published log, verified against its checkpoint.
fn read_published(keys: &Keys, directory: &Path) -> Result<Vec<Vec<u8>>, RecoverError> {
    let files = |why: String| RecoverError::Files(why);
    let note = publish::serve(directory, &LogFile::Checkpoint)?
        .ok_or_else(|| files("there is no checkpoint".to_owned()))?;
    let trust = Trust::hub(&keys.settings.name, keys.log_keys());
    let head = trust.open(&note).map_err(|why| files(why.to_string()))?.checkpoint;
    let (mut entries, mut tree) = (Vec::new(), Frontier::default());
    for bundle in entry_bundles(0, head.size) {
        let bytes = publish::serve(directory, &LogFile::Entries(bundle))?
            .ok_or_else(|| files(format!("`{}` is missing", bundle.path())))?;
        for entry in decoded(&bundle, &bytes)? {
            tree.push(leaf_hash(&entry));
            entries.push(entry);
        }
    }
    if tree.size() != head.size || tree.root() != head.root {
        return Err(files(format!(
            "the entries lead to the root {}, the checkpoint says {}",
            tree.root(),
            head.root
        )));
    }
    Ok(entries)
}

fn decoded(bundle: &EntryBundle, bytes: &[u8]) -> Result<Vec<Vec<u8>>, RecoverError> {
    let entries = bundle.decode(bytes).map_err(|why| RecoverError::Files(why.to_string()))?;
    Ok(entries.into_iter().map(<[u8]>::to_vec).collect())
}

/// The text of the journal heads that an entry names, if it is published: hubs with another directory need it.
fn published_heads(directory: &Path, body: &EntryBody) -> Result<Option<Effect>, RecoverError> {
    let EntryBody::Heads(batch) = body else { return Ok(None) };
    let body = publish::serve(directory, &LogFile::Heads(batch.sha256))?;
    let body = body.filter(|body| Hash::sha256(body) == batch.sha256);
    Ok(body.map(|body| Effect::KeepHeads { hash: batch.sha256.to_string(), body, rows: Vec::new() }))
}

async fn put_back(
    client: &mut Client,
    published: &[Vec<u8>],
    directory: &Path,
) -> Result<Recovered, RecoverError> {
    let transaction = client.transaction().await.map_err(StoreError::from)?;
    let head = sequence::read_head(transaction.client()).await?;
    let before = head.frontier.size();
    let known = publish::read_entries(transaction.client(), 0, before).await?;
    for (at, (own, other)) in (0..).zip(known.iter().zip(published)) {
        if own != other {
            return Err(RecoverError::Fork(at));
        }
    }
    let missing = published.get(known.len()..).unwrap_or_default();
    let named = (before..).zip(missing).map(|(at, entry)| (format!("recovered-{at}"), entry.clone()));
    let named: Vec<(String, Vec<u8>)> = named.collect();
    if !named.is_empty() {
        sequence::write_entries(&transaction, head.frontier, &named).await?;
    }
    for (at, bytes) in (before..).zip(missing) {
        let entry = Entry::parse(bytes).map_err(|why| RecoverError::Files(why.to_string()))?;
        let kept = published_heads(directory, &entry.body)?;
        for effect in Effect::implied_by(&entry.body).into_iter().chain(kept) {
            effect.apply(&transaction, at, &entry.by).await?;
        }
    }
    let worst = [
        "UPDATE approval SET state = 'denied', answered_by = 'recover', answered_at = now(), remark = 'the database was restored' \
         WHERE used_at IS NULL AND state IN ('waiting', 'allowed')",
        "UPDATE budget SET taken = total",
        "UPDATE lease SET returned_at = now(), spent = amount WHERE returned_at IS NULL",
        "DELETE FROM enrol_token",
    ];
    for statement in worst {
        transaction.execute(statement, &[]).await.map_err(StoreError::from)?;
    }
    transaction.commit().await.map_err(StoreError::from)?;
    let after = before.saturating_add(u64::try_from(missing.len()).unwrap_or(u64::MAX));
    let _fits = signed(after)?;
    Ok(Recovered { before, after })
}
