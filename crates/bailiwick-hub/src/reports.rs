//! What machines report: their inventory, and the heads of their journals.
//!
//! Heads are gathered, and every `anchor` interval one entry of the log names the SHA-256 of all that are new. A head that goes back, or
//! that has another hash at the same place, is refused and stays on record: a journal was truncated or rewritten. Each machine has its
//! share of a batch, of what waits for one, and of the record, so that none keeps those of others out.

use std::collections::BTreeSet;

use bailiwick_fleet::Hash;
use bailiwick_fleet::entry::{EntryBody, HeadBatch, JournalHead, Package, encode_heads};
use bailiwick_fleet::protocol::{HeadReport, InventoryReport, MemberRow};
use http::StatusCode;
use serde_json::{Value, json};
use tokio_postgres::{Row, Transaction};

use crate::audit::{self, Audited};
use crate::database::StoreError;
use crate::effect::Effect;
use crate::hub::Hub;
use crate::id;
use crate::members::{Member, labels_of, role_of};
use crate::refusal::HubError;
use crate::sequence::{self, Append, signed, unsigned};

/// The most sessions in one report.
const MAX_HEADS: usize = 256;
/// The most bytes of one inventory.
const MAX_INVENTORY: usize = 64 << 10;
/// The most heads in one batch.
const MAX_BATCH: i64 = 20_000;
/// The most heads of one machine that wait to be anchored.
const MAX_WAITING: i64 = 1_024;
/// The most sessions of one machine that are remembered.
const MAX_SESSIONS: i64 = 100_000;
/// How often in an hour it is recorded of one machine that its journal went back.
const MAX_RECORDED: i64 = 32;

/// Stores what runs on a machine.
///
/// # Errors
/// If it is wrong, or the database does not answer.
pub async fn inventory(hub: &Hub, machine: &Member, report: &InventoryReport) -> Result<(), HubError> {
    let are_plain = report.servers.len() <= 1000
        && id::is_name(&report.version)
        && report.servers.iter().all(|server| {
            id::is_name(&server.server)
                && server.package.as_ref().is_none_or(is_plain)
                && server.enforcement.iter().all(|(axis, level)| id::is_name(axis) && id::is_name(level))
        });
    if !are_plain {
        return Err(HubError::wrong(
            "inventory",
            "at most 1000 servers, with names and packages of letters, digits and `._:/@+-`",
        ));
    }
    let text = serde_json::to_string(report).map_err(|why| HubError::wrong("inventory", why.to_string()))?;
    if text.len() > MAX_INVENTORY {
        return Err(HubError::wrong("inventory", format!("an inventory has at most {MAX_INVENTORY} bytes")));
    }
    let sql = "INSERT INTO inventory (machine, body) VALUES ($1, $2) \
               ON CONFLICT (machine) DO UPDATE SET body = excluded.body, reported_at = now()";
    hub.database.with(async |client| Ok(client.execute(sql, &[&machine.id, &text]).await?)).await?;
    Ok(())
}

/// Whether every part of what is said of a package is a name.
fn is_plain(package: &Package) -> bool {
    let parts = [&package.registry, &package.name].into_iter().chain(&package.version);
    parts.into_iter().all(|part| id::is_name(part))
}

/// Members with their inventory, in the order of their ids, from behind `after`.
///
/// # Errors
/// If the database does not answer.
pub async fn members(hub: &Hub, after: &str, limit: i64) -> Result<Vec<MemberRow>, HubError> {
    let sql = "SELECT m.id, m.role, m.labels, i.body, FLOOR(EXTRACT(EPOCH FROM i.reported_at) * 1000)::INT8, m.name \
               FROM member m LEFT JOIN inventory i ON i.machine = m.id \
               WHERE m.revoked_at IS NULL AND m.id > $1 ORDER BY m.id LIMIT $2";
    let rows = hub.database.with(async |client| Ok(client.query(sql, &[&after, &limit]).await?)).await?;
    Ok(rows.iter().map(member_row).collect::<Result<_, StoreError>>()?)
}

fn member_row(row: &Row) -> Result<MemberRow, StoreError> {
    let (role, inventory): (String, Option<String>) = (row.try_get(1)?, row.try_get(3)?);
    let broken = |what: &str| StoreError::Broken(format!("a stored {what} cannot be read"));
    let inventory =
        inventory.map(|text| serde_json::from_str(&text)).transpose().map_err(|_| broken("inventory"))?;
    Ok(MemberRow {
        member: row.try_get(0)?,
        role: role_of(&role).ok_or_else(|| broken("role"))?,
        name: row.try_get(5)?,
        labels: labels_of(row.try_get(2)?)?,
        seen_ms: row.try_get::<_, Option<i64>>(4)?.map(unsigned).transpose()?,
        inventory,
    })
}

/// Stores the heads of a machine's journal.
///
/// # Errors
/// If one is another machine's, or goes back.
pub async fn heads(hub: &Hub, machine: &Member, report: &HeadReport) -> Result<(), HubError> {
    let are_own = report.heads.len() <= MAX_HEADS
        && report.heads.iter().all(|head| head.machine == machine.id && id::is_session(&head.session));
    if !are_own {
        return Err(HubError::wrong(
            "heads",
            format!("at most {MAX_HEADS} heads, all of sessions of the machine that sends them"),
        ));
    }
    match hub.database.with(async |client| store_heads(client, machine, report).await).await? {
        StoredHeads::All => Ok(()),
        StoredHeads::WentBack(session) => Err(HubError::conflict(
            "journal-went-back",
            format!("the journal of the session `{session}` is behind or beside what was anchored"),
        )),
        StoredHeads::TooMany => Err(HubError::refused(
            StatusCode::TOO_MANY_REQUESTS,
            "too-many-heads",
            format!(
                "{MAX_WAITING} heads of this machine wait to be anchored, or {MAX_SESSIONS} are kept: send them later"
            ),
        )),
    }
}

/// What became of the heads of a report.
enum StoredHeads {
    /// They are stored.
    All,
    /// That of this session goes back; the others are stored.
    WentBack(String),
    /// None is stored.
    TooMany,
}

async fn store_heads(
    client: &mut tokio_postgres::Client,
    machine: &Member,
    report: &HeadReport,
) -> Result<StoredHeads, StoreError> {
    let transaction = client.transaction().await?;
    let sql = "INSERT INTO journal_head (machine, session, seq, hash, head) VALUES ($1, $2, $3, $4, $5) \
               ON CONFLICT (machine, session) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, head = excluded.head, \
               is_anchored = false, reported_at = now() \
               WHERE journal_head.seq < excluded.seq";
    let stored = transaction.prepare(sql).await?;
    let same = transaction
        .prepare("SELECT 1 FROM journal_head WHERE machine = $1 AND session = $2 AND seq = $3 AND hash = $4")
        .await?;
    let mut back = None;
    for head in &report.heads {
        let (seq, hash) = (signed(head.seq)?, head.hash.to_string());
        let text = serde_json::to_string(head).map_err(|why| StoreError::Refused(why.to_string()))?;
        let changed = transaction.execute(&stored, &[&machine.id, &head.session, &seq, &hash, &text]).await?;
        if changed == 0
            && transaction.query_opt(&same, &[&machine.id, &head.session, &seq, &hash]).await?.is_none()
        {
            record_back(&transaction, machine, head).await?;
            back = Some(head.session.clone());
        }
    }
    let sql = "SELECT COUNT(*) FILTER (WHERE NOT is_anchored), COUNT(*) FROM journal_head WHERE machine = $1";
    let row = transaction.query_one(sql, &[&machine.id]).await?;
    if row.try_get::<_, i64>(0)? > MAX_WAITING || row.try_get::<_, i64>(1)? > MAX_SESSIONS {
        return Ok(StoredHeads::TooMany);
    }
    transaction.commit().await?;
    Ok(back.map_or(StoredHeads::All, StoredHeads::WentBack))
}

/// Keeps on record that a journal went back.
async fn record_back(
    transaction: &Transaction<'_>,
    machine: &Member,
    head: &JournalHead,
) -> Result<(), StoreError> {
    let sql = "SELECT COUNT(*) FROM audit WHERE happened_at > now() - INTERVAL '1 hour' AND actor = $1 AND action = 'journal-went-back'";
    let known: i64 = transaction.query_one(sql, &[&machine.id]).await?.try_get(0)?;
    if known >= MAX_RECORDED {
        return Ok(());
    }
    let detail = format!("seq {} hash {}", head.seq, head.hash);
    let row =
        Audited { actor: &machine.id, action: "journal-went-back", subject: &head.session, detail: &detail };
    audit::write(transaction, &row).await
}

/// Heads of journals as they were reported, the newest first.
///
/// # Errors
/// If the database does not answer.
pub async fn last_heads(hub: &Hub, limit: i64) -> Result<Vec<Value>, HubError> {
    let sql = "SELECT machine, session, seq, hash, is_anchored, FLOOR(EXTRACT(EPOCH FROM reported_at) * 1000)::INT8 \
               FROM journal_head ORDER BY reported_at DESC, machine, session LIMIT $1";
    let rows = hub.database.with(async |client| Ok(client.query(sql, &[&limit]).await?)).await?;
    let head = |row: &Row| {
        let (machine, session): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let (seq, reported_ms) = (unsigned(row.try_get(2)?)?, unsigned(row.try_get(5)?)?);
        let (hash, is_anchored): (String, bool) = (row.try_get(3)?, row.try_get(4)?);
        Ok(
            json!({ "machine": machine, "session": session, "seq": seq, "hash": hash, "is_anchored": is_anchored, "reported_ms": reported_ms }),
        )
    };
    Ok(rows.iter().map(head).collect::<Result<_, StoreError>>()?)
}

/// Entries of the log before a place, the newest first.
///
/// # Errors
/// If the database does not answer.
pub async fn last_entries(hub: &Hub, before: i64, limit: i64) -> Result<Vec<Value>, HubError> {
    let sql = "SELECT idx, entry FROM log_entry WHERE idx < $1 ORDER BY idx DESC LIMIT $2";
    let rows = hub.database.with(async |client| Ok(client.query(sql, &[&before, &limit]).await?)).await?;
    let entry = |row: &Row| {
        let (index, bytes): (i64, Vec<u8>) = (row.try_get(0)?, row.try_get(1)?);
        let entry: Value = serde_json::from_slice(&bytes)
            .map_err(|why| StoreError::Broken(format!("the entry {index}: {why}")))?;
        Ok(json!({ "index": unsigned(index)?, "entry": entry }))
    };
    Ok(rows.iter().map(entry).collect::<Result<_, StoreError>>()?)
}

/// Names all new heads in the log.
///
/// # Errors
/// If the database does not answer.
pub async fn anchor(hub: &Hub) -> Result<Option<u64>, StoreError> {
    // The first of each machine, then the second of each: one that reports without end does not hold up the others.
    let sql = "SELECT head FROM (SELECT head, reported_at, ROW_NUMBER() OVER (PARTITION BY machine ORDER BY reported_at) AS turn \
               FROM journal_head WHERE NOT is_anchored) AS waiting ORDER BY turn, reported_at LIMIT $1";
    let rows = hub.database.with(async |client| Ok(client.query(sql, &[&MAX_BATCH]).await?)).await?;
    let mut heads: BTreeSet<JournalHead> = BTreeSet::new();
    for row in &rows {
        let text: String = row.try_get(0)?;
        heads.insert(
            serde_json::from_str(&text).map_err(|why| StoreError::Broken(format!("a stored head: {why}")))?,
        );
    }
    if heads.is_empty() {
        return Ok(None);
    }
    let body = encode_heads(&heads).map_err(|why| StoreError::Refused(why.to_string()))?;
    let sha256 = Hash::sha256(&body);
    let length = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let batch = HeadBatch { sha256, count: length(heads.len()), bytes: length(body.len()) };
    let rows = heads.iter().map(|head| Ok((head.machine.clone(), head.session.clone(), signed(head.seq)?)));
    let rows = rows.collect::<Result<_, StoreError>>()?;
    let hash = sha256.to_string();
    let asked = Append {
        request: format!("heads-{hash}"),
        by: hub.keys.settings.name.clone(),
        body: EntryBody::Heads(batch),
        effects: vec![Effect::KeepHeads { hash, body, rows }],
    };
    let index = sequence::append(&hub.database, &asked).await?;
    hub.poke();
    Ok(Some(index))
}
