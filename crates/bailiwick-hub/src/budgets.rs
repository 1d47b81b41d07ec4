//! Budgets by lease: a machine takes a slice and spends it without asking; what it did not spend comes back.
//!
//! `taken` of a budget is the sum of all slices that were not returned, and of what returned ones spent. A slice is given by an update that
//! keeps `taken` within the total, which the table checks as well. So the sum of what may be spent is within the budget at
//! every moment, whatever crashes: a slice that never comes back stays taken.
//!
//! Residual: what a machine says that it spent is its own word; a machine that lies can spend more than its slice, as it can spend
//! without asking at all.

use bailiwick_fleet::admin::{BudgetRow, BudgetWish};
use bailiwick_fleet::protocol::{BudgetUnit, Lease, LeaseRequest, is_id};
use http::StatusCode;
use tokio_postgres::{Client, Row};

use crate::audit::{self, Audited};
use crate::database::StoreError;
use crate::hub::Hub;
use crate::id::is_name;
use crate::members::Member;
use crate::refusal::HubError;
use crate::sequence::{signed, unsigned};

/// How much earlier than the lease a machine stops spending.
pub const SKEW_MS: u64 = 5_000;
/// The shortest and the longest lease.
const LEASE_MS: std::ops::RangeInclusive<u64> = 10_000..=7 * 24 * 3600 * 1000;

const LEASE: &str = "l.id, l.budget, b.unit, l.amount, l.spent, FLOOR(EXTRACT(EPOCH FROM l.expires_at) * 1000)::INT8, \
                     l.returned_at IS NOT NULL, l.machine, l.wanted";

/// Makes a budget, or changes how much it is. What was taken stays taken.
///
/// # Errors
/// If it is wrong, or less than what was taken.
pub async fn set(hub: &Hub, by: &str, wish: &BudgetWish) -> Result<(), HubError> {
    if !is_name(&wish.id) {
        return Err(HubError::wrong("name", "a budget has a name of letters, digits and `._:/@+-`"));
    }
    if !LEASE_MS.contains(&wish.lease_ms) || wish.slice == 0 {
        return Err(HubError::wrong(
            "lease",
            "a slice is at least 1, and a lease lasts 10 seconds to 7 days",
        ));
    }
    let (total, slice, lasts) = (signed(wish.total)?, signed(wish.slice)?, signed(wish.lease_ms)?);
    let unit = unit_word(wish.unit);
    let changed = hub
        .database
        .with(async |client| {
            let transaction = client.transaction().await?;
            let insert = "INSERT INTO budget (id, unit, total, slice, lease_ms) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING";
            transaction.execute(insert, &[&wish.id, &unit, &total, &slice, &lasts]).await?;
            let update = "UPDATE budget SET total = $3, slice = $4, lease_ms = $5 WHERE id = $1 AND unit = $2 AND taken <= $3";
            let changed = transaction.execute(update, &[&wish.id, &unit, &total, &slice, &lasts]).await?;
            let detail = format!("{total} {unit}");
            audit::write(&transaction, &Audited { actor: by, action: "set-budget", subject: &wish.id, detail: &detail }).await?;
            transaction.commit().await?;
            Ok(changed)
        })
        .await?;
    match changed {
        1 => Ok(()),
        _ => Err(HubError::conflict(
            "budget-taken",
            "the budget has another unit, or more than that was taken already",
        )),
    }
}

/// All budgets.
///
/// # Errors
/// If the database does not answer.
pub async fn list(hub: &Hub) -> Result<Vec<BudgetRow>, HubError> {
    let sql = "SELECT b.id, b.unit, b.total, b.taken, b.slice, b.lease_ms, \
               COALESCE((SELECT SUM(l.amount) FROM lease l WHERE l.budget = b.id AND l.returned_at IS NULL AND l.expires_at > now()), 0)::INT8 \
               FROM budget b ORDER BY b.id";
    let rows = hub.database.with(async |client| Ok(client.query(sql, &[]).await?)).await?;
    let rows = rows.iter().map(|row| {
        let unit: String = row.try_get(1)?;
        Ok(BudgetRow {
            id: row.try_get(0)?,
            unit: unit_of(&unit)?,
            total: unsigned(row.try_get(2)?)?,
            taken: unsigned(row.try_get(3)?)?,
            slice: unsigned(row.try_get(4)?)?,
            lease_ms: unsigned(row.try_get(5)?)?,
            leased: unsigned(row.try_get(6)?)?,
        })
    });
    Ok(rows.collect::<Result<_, StoreError>>()?)
}

/// Gives a slice.
///
/// # Errors
/// If there is no such budget, nothing is left, or the id is another lease's.
pub async fn grant(hub: &Hub, machine: &Member, asked: &LeaseRequest) -> Result<Lease, HubError> {
    if !is_id(&asked.id) || asked.amount == 0 {
        return Err(HubError::wrong("lease", "a lease has an id of 32 hexadecimal digits and at least 1"));
    }
    if !is_name(&asked.budget) {
        return Err(HubError::wrong("name", "a budget has a name of letters, digits and `._:/@+-`"));
    }
    let wanted = signed(asked.amount)?;
    for _ in 0..8 {
        match hub.database.with(async |client| grant_once(client, machine, asked, wanted).await).await {
            Err(StoreError::Conflict) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            Err(error) => return Err(error.into()),
            Ok(None) => break,
            Ok(Some(row)) => {
                let lease = lease(&row)?;
                let (owner, first): (String, i64) = (get(&row, 7)?, get(&row, 8)?);
                let is_same = owner == machine.id
                    && first == wanted
                    && lease.budget == asked.budget
                    && lease.unit == asked.unit;
                return if is_same {
                    Ok(lease)
                } else {
                    Err(HubError::conflict("id-taken", "another lease has this id"))
                };
            }
        }
    }
    Err(HubError::conflict(
        "budget-exhausted",
        format!("nothing is left of the budget `{}`, or there is none of this unit", asked.budget),
    ))
}

/// The lease, new or the one that has this id; nothing if nothing is left.
async fn grant_once(
    client: &mut Client,
    machine: &Member,
    asked: &LeaseRequest,
    wanted: i64,
) -> Result<Option<Row>, StoreError> {
    let transaction = client.transaction().await?;
    let known = format!("SELECT {LEASE} FROM lease l JOIN budget b ON b.id = l.budget WHERE l.id = $1");
    if let Some(row) = transaction.query_opt(&known, &[&asked.id]).await? {
        return Ok(Some(row));
    }
    let sql = "SELECT LEAST($3::INT8, slice, total - taken), taken FROM budget WHERE id = $1 AND unit = $2";
    let Some(row) = transaction.query_opt(sql, &[&asked.budget, &unit_word(asked.unit), &wanted]).await?
    else {
        return Ok(None);
    };
    let (amount, taken): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    if amount <= 0 {
        return Ok(None);
    }
    let sql = "UPDATE budget SET taken = taken + $2 WHERE id = $1 AND taken = $3 AND taken + $2 <= total \
               AND EXISTS (SELECT 1 FROM member WHERE id = $4 AND revoked_at IS NULL)";
    if transaction.execute(sql, &[&asked.budget, &amount, &taken, &machine.id]).await? != 1 {
        return Err(StoreError::Conflict);
    }
    let sql = "INSERT INTO lease (id, budget, machine, wanted, amount, expires_at) \
               SELECT $1, b.id, $3, $4, $5, now() + b.lease_ms::FLOAT8 * INTERVAL '1 millisecond' FROM budget b WHERE b.id = $2";
    transaction.execute(sql, &[&asked.id, &asked.budget, &machine.id, &wanted, &amount]).await?;
    let row = transaction.query_one(&known, &[&asked.id]).await?;
    transaction.commit().await?;
    Ok(Some(row))
}

/// The holder says how much it has spent so far. That is for people: until the lease returns, all of it counts.
///
/// # Errors
/// If the lease is not the machine's, was returned, or is smaller.
pub async fn spend(hub: &Hub, machine: &Member, id: &str, spent: u64) -> Result<Lease, HubError> {
    let spent = signed(spent)?;
    let sql = "UPDATE lease SET spent = $3 WHERE id = $1 AND machine = $2 AND returned_at IS NULL AND spent <= $3 AND amount >= $3";
    hub.database.with(async |client| Ok(client.execute(sql, &[&id, &machine.id, &spent]).await?)).await?;
    let lease = read(hub, machine, id).await?;
    if signed(lease.spent)? >= spent { Ok(lease) } else { Err(wrong_spending()) }
}

/// The holder returns a lease. It has spent this much in all and spends no more.
///
/// # Errors
/// If the lease is not the machine's, is smaller, or was returned with another number.
pub async fn give_back(hub: &Hub, machine: &Member, id: &str, spent: u64) -> Result<Lease, HubError> {
    let spent = signed(spent)?;
    hub.database
        .with(async |client| {
            let transaction = client.transaction().await?;
            let sql = "UPDATE lease SET spent = $3, returned_at = now() WHERE id = $1 AND machine = $2 AND returned_at IS NULL \
                       AND spent <= $3 AND amount >= $3 RETURNING budget, amount - spent";
            if let Some(row) = transaction.query_opt(sql, &[&id, &machine.id, &spent]).await? {
                let (budget, unspent): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
                transaction.execute("UPDATE budget SET taken = taken - $2 WHERE id = $1", &[&budget, &unspent]).await?;
            }
            transaction.commit().await?;
            Ok(())
        })
        .await?;
    let lease = read(hub, machine, id).await?;
    if lease.returned && signed(lease.spent)? == spent { Ok(lease) } else { Err(wrong_spending()) }
}

async fn read(hub: &Hub, machine: &Member, id: &str) -> Result<Lease, HubError> {
    let sql = format!(
        "SELECT {LEASE} FROM lease l JOIN budget b ON b.id = l.budget WHERE l.id = $1 AND l.machine = $2"
    );
    let row =
        hub.database.with(async |client| Ok(client.query_opt(&sql, &[&id, &machine.id]).await?)).await?;
    Ok(lease(&row.ok_or_else(HubError::missing)?)?)
}

fn wrong_spending() -> HubError {
    HubError::refused(
        StatusCode::CONFLICT,
        "spending",
        "less than was said before, more than the lease has, or it was returned with another number",
    )
}

fn lease(row: &Row) -> Result<Lease, StoreError> {
    let unit: String = row.try_get(2)?;
    Ok(Lease {
        id: row.try_get(0)?,
        budget: row.try_get(1)?,
        unit: unit_of(&unit)?,
        amount: unsigned(row.try_get(3)?)?,
        spent: unsigned(row.try_get(4)?)?,
        expires_ms: unsigned(row.try_get(5)?)?,
        skew_ms: SKEW_MS,
        returned: row.try_get(6)?,
    })
}

const fn unit_word(unit: BudgetUnit) -> &'static str {
    match unit {
        BudgetUnit::Calls => "calls",
        BudgetUnit::Seconds => "seconds",
        BudgetUnit::Money => "money",
    }
}

fn unit_of(word: &str) -> Result<BudgetUnit, StoreError> {
    let units = [BudgetUnit::Calls, BudgetUnit::Seconds, BudgetUnit::Money];
    let unit = units.into_iter().find(|unit| unit_word(*unit) == word);
    unit.ok_or_else(|| StoreError::Broken(format!("a budget counts `{word}`")))
}

fn get<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, StoreError> {
    Ok(row.try_get(at)?)
}
