//! The migrations, in order. Each is applied once, with its number, in one transaction.
//!
//! Hubs that start at the same time may all try: the number is a primary key, so one of them applies a migration and the others see
//! it. A database with a number that this program does not know is refused: it belongs to a newer hub.

use tokio_postgres::Client;

use crate::database::{Database, StoreError};

/// All of them; one that was released is never changed.
const MIGRATIONS: [(i64, &str); 1] = [(1, include_str!("../migrations/0001-fleet.sql"))];

/// How often another hub's migration is waited for.
const ATTEMPTS: usize = 20;

/// Brings the database to the schema of this program.
///
/// # Errors
/// If it is newer than this program, or a statement fails.
pub async fn migrate(database: &Database) -> Result<(), StoreError> {
    for _ in 0..ATTEMPTS {
        match database.with(apply).await {
            Err(StoreError::Conflict) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
            other => return other,
        }
    }
    Err(StoreError::Conflict)
}

async fn apply(client: &mut Client) -> Result<(), StoreError> {
    let table = "CREATE TABLE IF NOT EXISTS hub_migration (version INT8 PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL DEFAULT now())";
    client.batch_execute(table).await?;
    let newest: i64 = client
        .query_one("SELECT COALESCE(MAX(version), 0)::INT8 FROM hub_migration", &[])
        .await?
        .try_get(0)?;
    if let Some((last, _)) = MIGRATIONS.last()
        && newest > *last
    {
        let text =
            format!("the database has schema {newest} of a newer hub; this one knows {last}: upgrade it");
        return Err(StoreError::Broken(text));
    }
    for (version, statements) in MIGRATIONS.iter().filter(|(version, _)| *version > newest) {
        let transaction = client.transaction().await?;
        transaction.execute("INSERT INTO hub_migration (version) VALUES ($1)", &[version]).await?;
        transaction.batch_execute(statements).await?;
        transaction.commit().await?;
    }
    Ok(())
}
