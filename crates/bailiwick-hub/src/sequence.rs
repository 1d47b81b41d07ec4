//! The sequencer: entries become part of the log in one transaction that moves the log's head from the size that was read to the next.
//!
//! The head moves by `UPDATE … WHERE size = the size that was read`: of two hubs that try the same place one changes no row, rolls back
//! and tries again behind the other. What an entry means for other tables ([`Effect`]) is in the same transaction. An entry is
//! known by the request that asked for it: the same request again answers with the same place. Nothing is signed here: a checkpoint is
//! made only from a head that was read back after the commit.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bailiwick_fleet::Hash;
use bailiwick_fleet::entry::{Entry, EntryBody};
use bailiwick_fleet::merkle::{Frontier, leaf_hash, node_hash};
use tokio_postgres::{Client, Transaction};

use crate::audit::{self, Audited};
use crate::database::{Database, StoreError};
use crate::effect::Effect;

/// The name of the one row of `log_head`.
const HEAD: &str = "log";

/// For how long a place in the log is tried before the request is told to come back.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is to be appended.
#[derive(Debug, Clone)]
pub struct Append {
    /// The id of the request, drawn by who asks.
    pub request: String,
    /// The member that asks.
    pub by: String,
    /// What the entry says.
    pub body: EntryBody,
    /// What happens with it in other tables.
    pub effects: Vec<Effect>,
}

/// The head of the log, as the database has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHead {
    /// The roots of its full subtrees.
    pub frontier: Frontier,
    /// The root that was stored beside them.
    pub root: Hash,
    /// The database's clock, read in the same statement and before it: what was committed earlier is in.
    pub read_at_ms: u64,
}

/// Makes the row of the head, once.
///
/// # Errors
/// If the database does not do it.
pub async fn found_log(database: &Database) -> Result<(), StoreError> {
    database
        .with(async |client| {
            let empty = Frontier::default().root();
            let sql = "INSERT INTO log_head (name, size, root, frontier) VALUES ($1, 0, $2, $3) ON CONFLICT (name) DO NOTHING";
            client.execute(sql, &[&HEAD, &empty.as_bytes().as_slice(), &Vec::<u8>::new()]).await?;
            Ok(())
        })
        .await
}

/// Reads the head.
///
/// # Errors
/// If the database does not answer, or the row contradicts itself.
pub async fn read_head(client: &Client) -> Result<LogHead, StoreError> {
    let sql = "SELECT size, root, frontier, FLOOR(EXTRACT(EPOCH FROM now()) * 1000)::INT8 FROM log_head WHERE name = $1";
    let row = client.query_opt(sql, &[&HEAD]).await?;
    let row =
        row.ok_or_else(|| StoreError::Broken("the log has no head: run `bailiwick-hub recover`".to_owned()))?;
    let frontier = frontier(row.try_get(0)?, row.try_get(2)?)?;
    let root = hash(row.try_get(1)?)?;
    if frontier.root() != root {
        return Err(StoreError::Broken("the stored root of the log is not that of its subtrees".to_owned()));
    }
    Ok(LogHead { frontier, root, read_at_ms: unsigned(row.try_get(3)?)? })
}

/// Appends one entry, or finds where the same request has already put it.
///
/// # Errors
/// If the database does not answer, other hubs were always quicker, the request has put something else there, or an effect is refused.
pub async fn append(database: &Database, asked: &Append) -> Result<u64, StoreError> {
    let started = Instant::now();
    let _turn = database.turn(PATIENCE).await?;
    let mut attempt = 0;
    loop {
        match database.with(async |client| append_once(client, asked).await).await {
            Err(StoreError::Conflict) if started.elapsed() < PATIENCE => pause(attempt).await,
            other => return other,
        }
        attempt += 1;
    }
}

/// Longer each time, and by a random part of it, so that hubs do not meet again.
async fn pause(attempt: u32) {
    let most = 1_u64 << attempt.min(7);
    let random = getrandom::u32().unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(1 + u64::from(random) % most)).await;
}

async fn append_once(client: &mut Client, asked: &Append) -> Result<u64, StoreError> {
    let transaction = client.transaction().await?;
    let known = "SELECT idx, entry FROM log_entry WHERE request = $1";
    if let Some(row) = transaction.query_opt(known, &[&asked.request]).await? {
        return is_same(row.try_get(1)?, &asked.body)
            .then_some(())
            .ok_or(StoreError::Taken)
            .and(unsigned(row.try_get(0)?));
    }
    let head = read_head_in(&transaction).await?;
    let entry = Entry::new(head.read_at_ms, &asked.by, asked.body.clone());
    let bytes = entry.to_bytes().map_err(|why| StoreError::Refused(why.to_string()))?;
    let index = head.frontier.size();
    write_entries(&transaction, head.frontier, &[(asked.request.clone(), bytes)]).await?;
    for effect in &asked.effects {
        effect.apply(&transaction, index, &asked.by).await?;
    }
    let audited = Audited {
        actor: &asked.by,
        action: kind(&asked.body),
        subject: &asked.request,
        detail: &format!("log entry {index}"),
    };
    audit::write(&transaction, &audited).await?;
    transaction.commit().await?;
    Ok(index)
}

/// Whether an entry that is stored says this.
fn is_same(stored: &[u8], body: &EntryBody) -> bool {
    Entry::parse(stored).is_ok_and(|entry| entry.body == *body)
}

async fn read_head_in(transaction: &Transaction<'_>) -> Result<LogHead, StoreError> {
    read_head(transaction.client()).await
}

/// Puts entries behind this frontier and moves the head. Part of a transaction: nothing is visible before it is committed.
///
/// # Errors
/// [`StoreError::Conflict`] if the head is not where the frontier says.
pub async fn write_entries(
    transaction: &Transaction<'_>,
    mut frontier: Frontier,
    entries: &[(String, Vec<u8>)],
) -> Result<(), StoreError> {
    let before = signed(frontier.size())?;
    let mut indexes = Vec::new();
    let mut nodes: HashMap<(i64, i64), Hash> = HashMap::new();
    for (_, bytes) in entries {
        indexes.push(signed(frontier.size())?);
        let leaf = leaf_hash(bytes);
        for (level, index, node) in completed(&frontier, leaf) {
            nodes.insert((level, signed(index)?), node);
        }
        frontier.push(leaf);
    }
    let packed: Vec<u8> = frontier.roots().iter().flat_map(|root| *root.as_bytes()).collect();
    let sql = "UPDATE log_head SET size = $2, root = $3, frontier = $4 WHERE name = $1 AND size = $5";
    let root = frontier.root();
    let moved = transaction
        .execute(sql, &[&HEAD, &signed(frontier.size())?, &root.as_bytes().as_slice(), &packed, &before])
        .await?;
    if moved != 1 {
        return Err(StoreError::Conflict);
    }
    let requests: Vec<&str> = entries.iter().map(|(request, _)| request.as_str()).collect();
    let bodies: Vec<&[u8]> = entries.iter().map(|(_, bytes)| bytes.as_slice()).collect();
    let sql = "INSERT INTO log_entry (idx, request, entry) SELECT * FROM UNNEST($1::INT8[], $2::TEXT[], $3::BYTEA[])";
    transaction.execute(sql, &[&indexes, &requests, &bodies]).await?;
    let (places, hashes): (Vec<(i64, i64)>, Vec<Hash>) = nodes.into_iter().unzip();
    let (levels, places): (Vec<i64>, Vec<i64>) = places.into_iter().unzip();
    let hashes: Vec<&[u8]> = hashes.iter().map(|hash| hash.as_bytes().as_slice()).collect();
    let sql =
        "INSERT INTO log_node (level, idx, hash) SELECT * FROM UNNEST($1::INT8[], $2::INT8[], $3::BYTEA[])";
    transaction.execute(sql, &[&levels, &places, &hashes]).await?;
    Ok(())
}

/// The nodes that tiles hold and that this leaf completes: level, place, hash. The leaf itself is of level 0.
fn completed(frontier: &Frontier, leaf: Hash) -> Vec<(i64, u64, Hash)> {
    let size = frontier.size();
    let mut found = vec![(0, size, leaf)];
    let mut node = leaf;
    for (merges, left) in (1_u32..=size.trailing_ones()).zip(frontier.roots().iter().rev()) {
        node = node_hash(left, &node);
        if merges % 8 == 0 {
            found.push((i64::from(merges / 8), size >> merges, node));
        }
    }
    found
}

/// The word for an entry in the audit.
const fn kind(body: &EntryBody) -> &'static str {
    match body {
        EntryBody::Bundle(_) => "publish-bundle",
        EntryBody::Grant(_) => "grant",
        EntryBody::Pin(_) => "pin",
        EntryBody::Revocation(_) => "revoke",
        EntryBody::Lift(_) => "lift",
        EntryBody::MemberKey(_) => "member-key",
        EntryBody::Heads(_) => "anchor-heads",
    }
}

fn frontier(size: i64, packed: &[u8]) -> Result<Frontier, StoreError> {
    let (roots, rest) = packed.as_chunks::<32>();
    let roots = roots.iter().map(|root| Hash::from_bytes(*root)).collect();
    let frontier = if rest.is_empty() { Frontier::new(unsigned(size)?, roots) } else { None };
    frontier
        .ok_or_else(|| StoreError::Broken("the stored subtrees of the log do not fit its size".to_owned()))
}

/// A hash as it is stored.
///
/// # Errors
/// If it has not 32 bytes.
pub fn hash(bytes: &[u8]) -> Result<Hash, StoreError> {
    let bytes = <[u8; 32]>::try_from(bytes)
        .map_err(|_| StoreError::Broken("a stored hash has not 32 bytes".to_owned()))?;
    Ok(Hash::from_bytes(bytes))
}

/// A number for the database, which has signed ones only.
///
/// # Errors
/// If it does not fit.
pub fn signed(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::Refused(format!("{number} is too large")))
}

/// A number of the database that is never negative.
///
/// # Errors
/// If it is.
pub fn unsigned(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number)
        .map_err(|_| StoreError::Broken(format!("{number} is stored where nothing negative can be")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_nodes_are_the_roots_of_full_tiles() {
        let leaves: Vec<Hash> = (0..1024_u32).map(|at| leaf_hash(&at.to_be_bytes())).collect();
        let mut frontier = Frontier::default();
        let mut tops = Vec::new();
        for leaf in &leaves {
            let found = completed(&frontier, *leaf);
            assert_eq!(found[0], (0, frontier.size(), *leaf));
            tops.extend(found.into_iter().skip(1));
            frontier.push(*leaf);
        }
        let expected: Vec<(i64, u64, Hash)> = leaves
            .chunks(256)
            .zip(0..)
            .map(|(tile, at)| (1, at, bailiwick_fleet::merkle::root(tile)))
            .collect();
        assert_eq!(tops, expected);
    }
}
