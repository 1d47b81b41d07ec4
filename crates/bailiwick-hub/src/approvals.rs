//! Approvals: a call that waits for a person, answered once, taken once.
//!
//! A machine posts the call under an id that it drew; an approver answers by an update that changes only a row that still waits; the
//! machine takes the answer with a nonce by an update that changes only a row that is allowed and not taken. Every step can be
//! repeated with the same values. When it expires is decided by the database's clock alone. A member that may be a machine
//! is never one that may answer: the role decides, and it is checked again in the statement.
//!
//! Arguments come redacted by the machine. They are blanked an hour after the call was answered or has expired.

use bailiwick_fleet::Hash;
use bailiwick_fleet::admin::TakeRequest;
use bailiwick_fleet::protocol::{ApprovalAnswer, ApprovalRequest, ApprovalStatus, PendingApproval, is_id};
use http::StatusCode;
use sha2::{Digest as _, Sha256};
use tokio_postgres::Row;

use crate::audit::{self, Audited};
use crate::database::StoreError;
use crate::hub::Hub;
use crate::id;
use crate::members::Member;
use crate::refusal::HubError;
use crate::sequence::{signed, unsigned};

/// The longest that a call waits: a day.
const MAX_TTL_S: u64 = 24 * 3600;
/// The most calls of one machine that wait.
const MAX_WAITING: i64 = 64;
/// The most calls of one machine in an hour.
const MAX_HOURLY: i64 = 1_024;
/// The most bytes of redacted arguments.
const MAX_ARGUMENTS: usize = 64 << 10;

/// What a row says, and until when.
const STATUS: &str = "state, expires_at > clock_timestamp(), used_nonce, answered_by, remark, arguments_sha256, \
                      FLOOR(EXTRACT(EPOCH FROM expires_at) * 1000)::INT8";

/// A call starts to wait.
///
/// # Errors
/// If it is wrong, too many wait, or its id is another call's.
pub async fn post(hub: &Hub, machine: &Member, asked: &ApprovalRequest) -> Result<ApprovalStatus, HubError> {
    check(asked)?;
    let text = serde_json::to_string(asked).map_err(|why| HubError::wrong("request", why.to_string()))?;
    let hash = Sha256::digest(text.as_bytes()).to_vec();
    let ttl = signed(asked.ttl_s)?;
    let sql = format!("SELECT {STATUS}, request_hash, machine FROM approval WHERE id = $1");
    let row = hub
        .database
        .with(async |client| {
            let counts = "SELECT COUNT(*) FILTER (WHERE state = 'waiting' AND expires_at > now()), \
                          COUNT(*) FILTER (WHERE created_at > now() - INTERVAL '1 hour') FROM approval WHERE machine = $1 AND id <> $2";
            let counts = client.query_one(counts, &[&machine.id, &asked.id]).await?;
            if counts.try_get::<_, i64>(0)? >= MAX_WAITING || counts.try_get::<_, i64>(1)? >= MAX_HOURLY {
                return Ok(None);
            }
            let insert = "INSERT INTO approval (id, machine, request, request_hash, arguments_sha256, state, expires_at) \
                          VALUES ($1, $2, $3, $4, $5, 'waiting', now() + $6::INT8::FLOAT8 * INTERVAL '1 second') ON CONFLICT (id) DO NOTHING";
            let arguments = asked.arguments_sha256.to_string();
            client.execute(insert, &[&asked.id, &machine.id, &text, &hash, &arguments, &ttl]).await?;
            Ok(Some(client.query_one(&sql, &[&asked.id]).await?))
        })
        .await?;
    let too_many = || {
        HubError::refused(
            StatusCode::TOO_MANY_REQUESTS,
            "too-many-waiting",
            format!(
                "{MAX_WAITING} calls of this machine wait already, or {MAX_HOURLY} were asked about in an hour"
            ),
        )
    };
    let row = row.ok_or_else(too_many)?;
    let (stored, owner): (Vec<u8>, String) = (get(&row, 7)?, get(&row, 8)?);
    if owner != machine.id || stored != hash {
        return Err(HubError::conflict("id-taken", "another call has this id"));
    }
    Ok(status(&row)?)
}

/// Where a machine's own call stands.
///
/// # Errors
/// If there is none of this id.
pub async fn standing(hub: &Hub, machine: &Member, id: &str) -> Result<ApprovalStatus, HubError> {
    let sql = format!("SELECT {STATUS} FROM approval WHERE id = $1 AND machine = $2");
    let row =
        hub.database.with(async |client| Ok(client.query_opt(&sql, &[&id, &machine.id]).await?)).await?;
    Ok(status(&row.ok_or_else(HubError::missing)?)?)
}

/// The calls that wait, the oldest first.
///
/// # Errors
/// If the database does not answer.
pub async fn waiting(hub: &Hub) -> Result<Vec<PendingApproval>, HubError> {
    let sql = "SELECT machine, request, FLOOR(EXTRACT(EPOCH FROM expires_at) * 1000)::INT8 FROM approval \
               WHERE state = 'waiting' AND expires_at > clock_timestamp() AND request IS NOT NULL ORDER BY created_at, id LIMIT 200";
    let rows = hub.database.with(async |client| Ok(client.query(sql, &[]).await?)).await?;
    let pending = rows.iter().map(|row| {
        let text: String = row.try_get(1)?;
        let request = serde_json::from_str(&text)
            .map_err(|why| StoreError::Broken(format!("a stored approval: {why}")))?;
        Ok(PendingApproval { machine: row.try_get(0)?, request, expires_ms: unsigned(row.try_get(2)?)? })
    });
    Ok(pending.collect::<Result<_, StoreError>>()?)
}

/// A person answers.
///
/// # Errors
/// If it was answered otherwise, has expired, or is for other arguments than were seen.
pub async fn answer(
    hub: &Hub,
    by: &Member,
    id: &str,
    given: &ApprovalAnswer,
) -> Result<ApprovalStatus, HubError> {
    if !given.remark.as_deref().is_none_or(|remark| id::is_text(remark, 1000)) {
        return Err(HubError::wrong("remark", "a remark has at most 1000 bytes and no control characters"));
    }
    let seen = given.arguments_sha256.to_string();
    let state = if given.allow { "allowed" } else { "denied" };
    let select = format!("SELECT {STATUS} FROM approval WHERE id = $1");
    let (changed, row) = hub
        .database
        .with(async |client| {
            let transaction = client.transaction().await?;
            let sql = "UPDATE approval SET state = $2, answered_by = $3, answered_at = now(), remark = $4 \
                       WHERE id = $1 AND state = 'waiting' AND expires_at > clock_timestamp() AND arguments_sha256 = $5 \
                       AND EXISTS (SELECT 1 FROM member WHERE id = $3 AND revoked_at IS NULL AND role IN ('approver', 'admin')) \
                       AND EXISTS (SELECT 1 FROM member WHERE id = approval.machine AND revoked_at IS NULL)";
            let changed = transaction.execute(sql, &[&id, &state, &by.id, &given.remark, &seen]).await?;
            if changed == 1 {
                audit::write(&transaction, &Audited { actor: &by.id, action: "answer", subject: id, detail: state }).await?;
            }
            let row = transaction.query_opt(&select, &[&id]).await?;
            transaction.commit().await?;
            Ok((changed, row))
        })
        .await?;
    let row = row.ok_or_else(HubError::missing)?;
    let stored: String = get(&row, 5)?;
    if stored != seen {
        return Err(HubError::conflict(
            "other-arguments",
            "the call has other arguments than the answer is for: look at it again",
        ));
    }
    let (now, answered_by): (String, Option<String>) = (get(&row, 0)?, get(&row, 3)?);
    let is_repeated = now == state && answered_by.as_deref() == Some(by.id.as_str());
    if changed == 1 || is_repeated {
        return Ok(status(&row)?);
    }
    let is_open: bool = get(&row, 1)?;
    if now == "waiting" && !is_open {
        return Err(expired());
    }
    Err(HubError::conflict("answered", "the call was answered already, or its machine was revoked"))
}

/// The machine takes the answer, for one call.
///
/// # Errors
/// If it is not allowed, expired, for other arguments, or taken with another nonce.
pub async fn take(
    hub: &Hub,
    machine: &Member,
    id: &str,
    taken: &TakeRequest,
) -> Result<ApprovalStatus, HubError> {
    if !is_id(&taken.nonce) {
        return Err(HubError::wrong("nonce", "a nonce has 32 hexadecimal digits"));
    }
    let arguments = taken.arguments_sha256.to_string();
    let select = format!("SELECT {STATUS} FROM approval WHERE id = $1 AND machine = $2");
    let (changed, row) = hub
        .database
        .with(async |client| {
            let sql = "UPDATE approval SET used_nonce = $3, used_at = COALESCE(used_at, now()) \
                       WHERE id = $1 AND machine = $2 AND state = 'allowed' AND arguments_sha256 = $4 \
                       AND expires_at > clock_timestamp() AND (used_nonce IS NULL OR used_nonce = $3) \
                       AND EXISTS (SELECT 1 FROM member WHERE id = $2 AND revoked_at IS NULL) \
                       AND EXISTS (SELECT 1 FROM member WHERE id = approval.answered_by AND revoked_at IS NULL)";
            let changed = client.execute(sql, &[&id, &machine.id, &taken.nonce, &arguments]).await?;
            Ok((changed, client.query_opt(&select, &[&id, &machine.id]).await?))
        })
        .await?;
    let row = row.ok_or_else(HubError::missing)?;
    if changed == 1 {
        let by: Option<String> = get(&row, 3)?;
        let expires_ms = unsigned(get(&row, 6)?)?;
        return Ok(ApprovalStatus::Allowed {
            by: by.unwrap_or_default(),
            arguments_sha256: taken.arguments_sha256,
            expires_ms,
        });
    }
    let (state, is_open, nonce): (String, bool, Option<String>) =
        (get(&row, 0)?, get(&row, 1)?, get(&row, 2)?);
    Err(match state.as_str() {
        "allowed" if nonce.is_some() => {
            HubError::conflict("approval-used", "the answer was taken already: ask again")
        }
        "waiting" | "allowed" if !is_open => expired(),
        "waiting" => HubError::conflict("approval-waiting", "the call was not answered yet"),
        "allowed" => HubError::conflict(
            "approval-void",
            "the answer is for other arguments, or its approver was revoked",
        ),
        _ => HubError::conflict("approval-denied", "the call was denied"),
    })
}

/// Which of these ids do not wait any more.
///
/// # Errors
/// If the database does not answer.
pub async fn settled(hub: &Hub, ids: &[String]) -> Result<Vec<String>, StoreError> {
    hub.database
        .with(async |client| {
            let sql = "SELECT id FROM approval WHERE id = ANY($1) AND (state <> 'waiting' OR expires_at <= clock_timestamp())";
            let rows = client.query(sql, &[&ids]).await?;
            rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
        })
        .await
}

/// Blanks what is kept briefly, and forgets what is over: answers after a month, leases a day after they returned or a month after they
/// ended, journal heads that were anchored and have not grown for a week. The log has those for good.
///
/// # Errors
/// If the database does not answer.
pub async fn sweep(hub: &Hub) -> Result<(), StoreError> {
    hub.database
        .with(async |client| {
            let blank = "UPDATE approval SET request = NULL WHERE request IS NOT NULL \
                         AND (answered_at < now() - INTERVAL '1 hour' OR expires_at < now() - INTERVAL '1 hour')";
            client.execute(blank, &[]).await?;
            let over = [
                "DELETE FROM approval WHERE expires_at < now() - INTERVAL '30 days'",
                "DELETE FROM enrol_token WHERE expires_at < now() - INTERVAL '1 day'",
                "DELETE FROM lease WHERE returned_at < now() - INTERVAL '1 day' OR expires_at < now() - INTERVAL '30 days'",
                "DELETE FROM journal_head WHERE is_anchored AND reported_at < now() - INTERVAL '7 days'",
            ];
            for statement in over {
                client.execute(statement, &[]).await?;
            }
            Ok(())
        })
        .await
}

fn check(asked: &ApprovalRequest) -> Result<(), HubError> {
    if !is_id(&asked.id) {
        return Err(HubError::wrong("id", "an id has 32 hexadecimal digits"));
    }
    if !id::is_name(&asked.server) || !id::is_name(&asked.tool) {
        return Err(HubError::wrong(
            "name",
            "a server and a tool have names of letters, digits and `._:/@+-`",
        ));
    }
    if !id::is_text(&asked.reason, 1000) {
        return Err(HubError::wrong("reason", "a reason has at most 1000 bytes and no control characters"));
    }
    if asked.arguments.to_string().len() > MAX_ARGUMENTS {
        return Err(HubError::wrong(
            "arguments",
            format!("redacted arguments have at most {MAX_ARGUMENTS} bytes"),
        ));
    }
    if asked.ttl_s == 0 || asked.ttl_s > MAX_TTL_S {
        return Err(HubError::wrong("ttl", format!("a call waits for 1 to {MAX_TTL_S} seconds")));
    }
    Ok(())
}

fn expired() -> HubError {
    HubError::refused(StatusCode::GONE, "approval-expired", "the call was not answered and taken in time")
}

fn status(row: &Row) -> Result<ApprovalStatus, StoreError> {
    let (state, is_open, nonce): (String, bool, Option<String>) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let by = row.try_get::<_, Option<String>>(3)?.unwrap_or_default();
    let expires_ms = unsigned(row.try_get(6)?)?;
    Ok(match state.as_str() {
        "denied" => ApprovalStatus::Denied { by, remark: row.try_get(4)? },
        "allowed" if nonce.is_some() => ApprovalStatus::Used,
        "waiting" | "allowed" if !is_open => ApprovalStatus::Expired,
        "waiting" => ApprovalStatus::Waiting { expires_ms },
        _ => {
            let arguments: String = row.try_get(5)?;
            let arguments_sha256: Hash = arguments
                .parse()
                .map_err(|_| StoreError::Broken("a stored approval has no digest".to_owned()))?;
            ApprovalStatus::Allowed { by, arguments_sha256, expires_ms }
        }
    })
}

fn get<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, StoreError> {
    Ok(row.try_get(at)?)
}
