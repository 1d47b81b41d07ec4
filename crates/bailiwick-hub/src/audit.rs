//! Who did what at the hub: one row for each change, in the transaction of the change.

use bailiwick_fleet::admin::AuditRow;
use tokio_postgres::{Client, Transaction};

use crate::database::StoreError;
use crate::id;
use crate::sequence::unsigned;

/// A change.
#[derive(Debug)]
pub(crate) struct Audited<'a> {
    /// The member that asked for it.
    pub actor: &'a str,
    /// What it is.
    pub action: &'a str,
    /// What it is about.
    pub subject: &'a str,
    /// More about it.
    pub detail: &'a str,
}

/// Writes a row.
///
/// # Errors
/// If the database does not do it.
pub(crate) async fn write(transaction: &Transaction<'_>, row: &Audited<'_>) -> Result<(), StoreError> {
    let sql = "INSERT INTO audit (id, actor, action, subject, detail) VALUES ($1, $2, $3, $4, $5)";
    transaction.execute(sql, &[&id::draw()?, &row.actor, &row.action, &row.subject, &row.detail]).await?;
    Ok(())
}

/// The last rows, the newest first.
///
/// # Errors
/// If the database does not answer.
pub(crate) async fn last(client: &Client, limit: i64) -> Result<Vec<AuditRow>, StoreError> {
    let sql = "SELECT FLOOR(EXTRACT(EPOCH FROM happened_at) * 1000)::INT8, actor, action, subject, detail \
               FROM audit ORDER BY happened_at DESC, id LIMIT $1";
    let rows = client.query(sql, &[&limit]).await?;
    rows.iter()
        .map(|row| {
            Ok(AuditRow {
                time_ms: unsigned(row.try_get(0)?)?,
                actor: row.try_get(1)?,
                action: row.try_get(2)?,
                subject: row.try_get(3)?,
                detail: row.try_get(4)?,
            })
        })
        .collect()
}
