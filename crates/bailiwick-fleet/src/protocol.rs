//! What machines, people and hubs send each other: JSON over HTTPS, with a client certificate after enrolment.
//!
//! | request | answer | who |
//! |---|---|---|
//! | `POST /v1/enrol` [`EnrolRequest`] | [`EnrolAnswer`] | the holder of a token |
//! | `POST /v1/approvals` [`ApprovalRequest`] | [`ApprovalStatus`] | machine |
//! | `GET /v1/approvals/ID?wait=SECONDS` | [`ApprovalStatus`] | the machine that asked |
//! | `GET /v1/approvals` | a list of [`PendingApproval`] | approver |
//! | `POST /v1/approvals/ID/answer` [`ApprovalAnswer`] | [`ApprovalStatus`] | approver |
//! | `POST /v1/leases` [`LeaseRequest`] | [`Lease`] | machine |
//! | `POST /v1/leases/ID/spend` [`SpendReport`] | [`Lease`] | the holder |
//! | `POST /v1/leases/ID/return` [`SpendReport`] | [`Lease`] | the holder |
//! | `POST /v1/heads` [`HeadReport`] | nothing | machine |
//! | `POST /v1/inventory` [`InventoryReport`] | nothing | machine |
//! | `POST /v1/entries` [`crate::entry::EntryBody`] | [`Appended`] | admin |
//! | `GET /checkpoint`, `/tile/…`, `/heads/…` | files of the log | anyone |
//!
//! A refusal is a [`Refusal`] with a status: 400 for a request that is wrong, 401 without an identity, 403 for one that may not, 404, 409 for what was
//! answered or spent already, 410 for what has expired, 503 when the database is away. Ids that a machine makes are 32
//! lower-case hexadecimal digits. A request that is sent again with the same id has the same answer.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Hash;
use crate::entry::{JournalHead, Package, Role};

/// What an enrolment token begins with.
pub const TOKEN_PREFIX: &str = "bwenrol1_";

/// The longest that a long poll waits, in seconds.
pub const MAX_WAIT_S: u64 = 55;

/// The largest body of a request or an answer.
pub const MAX_BODY: usize = 1024 * 1024;

/// What an enrolment token carries. Its text is [`TOKEN_PREFIX`] and this in base64url.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnrolToken {
    /// The hub's URL.
    pub hub: String,
    /// The log's URL, where its files are.
    pub log: String,
    /// The hub's key, `NAME+ID+KEY`; NAME is the log's origin.
    pub key: String,
    /// What the member may do.
    pub role: Role,
    /// The secret that is used once: 64 hexadecimal digits. The hub keeps its SHA-256 alone.
    pub secret: Hash,
    /// The certificate authority that the hub's TLS certificate leads to, DER in base64; the roots of the host if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
}

/// It is not an enrolment token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an enrolment token: it begins with `{TOKEN_PREFIX}` and is copied as a whole")]
pub struct NotToken;

/// A machine or a person joins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnrolRequest {
    /// The token's secret.
    pub secret: Hash,
    /// A request for a certificate, PEM, signed with the member's own key.
    pub csr: String,
    /// The name the member would like.
    pub name: String,
    /// The public key of the machine's journal, absent for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal_key: Option<Hash>,
}

/// The member's identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnrolAnswer {
    /// Its id.
    pub member: String,
    /// What it may do.
    pub role: Role,
    /// Its certificate chain, PEM.
    pub certificate: String,
    /// When the certificate ends, in milliseconds since 1970.
    pub expires_ms: u64,
    /// Keys of witnesses, `NAME+ID+KEY`.
    #[serde(default)]
    pub witnesses: Vec<String>,
    /// How many witnesses sign each checkpoint.
    #[serde(default)]
    pub quorum: usize,
}

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequest {
    /// The id the machine gives it.
    pub id: String,
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments, canonical and redacted.
    pub arguments: Value,
    /// The SHA-256 of the canonical arguments before redaction.
    pub arguments_sha256: Hash,
    /// The SHA-256 of what the server says of itself.
    pub pins: Hash,
    /// The SHA-256 of the policy that asks.
    pub policy: Hash,
    /// Why it is asked, for people.
    pub reason: String,
    /// How long it waits, in seconds, by the hub's clock.
    pub ttl_s: u64,
}

/// A call that waits, as an approver sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingApproval {
    /// The machine that asks.
    pub machine: String,
    /// What it asks.
    pub request: ApprovalRequest,
    /// When it expires, in milliseconds since 1970.
    pub expires_ms: u64,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalAnswer {
    /// Whether the call may run.
    pub allow: bool,
    /// What the approver saw: the `arguments_sha256` of the request. An answer to something else is refused.
    pub arguments_sha256: Hash,
    /// A remark for the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

/// Where an approval stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ApprovalStatus {
    /// Not answered yet.
    Waiting {
        /// When it expires, in milliseconds since 1970.
        expires_ms: u64,
    },
    /// It may run, once.
    Allowed {
        /// Who said so.
        by: String,
        /// For which arguments.
        arguments_sha256: Hash,
        /// Until when, in milliseconds since 1970.
        expires_ms: u64,
    },
    /// It may not.
    Denied {
        /// Who said so.
        by: String,
        /// A remark.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remark: Option<String>,
    },
    /// It was not answered in time.
    Expired,
    /// Its answer was taken already.
    Used,
}

/// What a budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BudgetUnit {
    /// Calls.
    Calls,
    /// Seconds of running.
    Seconds,
    /// The smallest unit of the budget's currency.
    Money,
}

/// A machine asks for a slice of a budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseRequest {
    /// The id the machine gives the lease.
    pub id: String,
    /// The budget.
    pub budget: String,
    /// What it counts.
    pub unit: BudgetUnit,
    /// How much is wanted; less may be given.
    pub amount: u64,
}

/// A slice of a budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// Its id.
    pub id: String,
    /// The budget.
    pub budget: String,
    /// What it counts.
    pub unit: BudgetUnit,
    /// How much was given.
    pub amount: u64,
    /// How much the holder said it spent.
    pub spent: u64,
    /// When it ends, in milliseconds since 1970, by the hub's clock.
    pub expires_ms: u64,
    /// How much earlier the holder stops spending, in milliseconds.
    pub skew_ms: u64,
    /// Whether it was returned: nothing more is spent.
    pub returned: bool,
}

/// How much of a lease was spent so far, in all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpendReport {
    /// In all, never less than before.
    pub spent: u64,
}

/// Heads of the machine's journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadReport {
    /// One for each session that changed.
    pub heads: Vec<JournalHead>,
}

/// What runs on the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InventoryReport {
    /// When it was gathered, in milliseconds since 1970.
    pub time_ms: u64,
    /// The version of bailiwick.
    pub version: String,
    /// The size of the log's copy.
    pub log_size: u64,
    /// The root of the log's copy.
    pub log_root: Hash,
    /// Its servers.
    pub servers: Vec<InventoryServer>,
}

/// A server on a machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InventoryServer {
    /// Its name.
    pub server: String,
    /// Its package, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<Package>,
    /// The digest of its surface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<Hash>,
    /// The SHA-256 of its manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Hash>,
    /// The enforcement level of each axis: `kernel`, `mediated`, `advisory` or `unsupported`.
    #[serde(default)]
    pub enforcement: BTreeMap<String, String>,
    /// Whether it runs.
    pub running: bool,
}

/// A member as the hub lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberRow {
    /// Its id.
    pub member: String,
    /// What it may do.
    pub role: Role,
    /// What it calls itself, for people.
    #[serde(default)]
    pub name: String,
    /// Its labels.
    #[serde(default)]
    pub labels: BTreeSet<String>,
    /// When it was last seen, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_ms: Option<u64>,
    /// What it said of itself last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inventory: Option<InventoryReport>,
}

/// Where an entry went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Appended {
    /// Its place in the log.
    pub index: u64,
}

/// A request was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct Refusal {
    /// A stable code.
    pub code: String,
    /// Why, for people.
    pub message: String,
}

impl EnrolToken {
    /// Reads a token.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(text: &str) -> Result<Self, NotToken> {
        let encoded = text.trim().strip_prefix(TOKEN_PREFIX).ok_or(NotToken)?;
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| NotToken)?;
        serde_json::from_slice(&bytes).map_err(|_| NotToken)
    }

    /// Its text, which is a secret.
    #[must_use]
    pub fn to_text(&self) -> String {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl std::fmt::Debug for EnrolToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnrolToken").field("hub", &self.hub).field("role", &self.role).finish_non_exhaustive()
    }
}

/// Whether this is an id as a machine makes one: 32 lower-case hexadecimal digits.
#[must_use]
pub fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_and_never_shown() {
        let token = EnrolToken {
            hub: "https://hub.example".to_owned(),
            log: "https://log.example".to_owned(),
            key: "log.example+00000000+AA==".to_owned(),
            role: Role::Machine,
            secret: Hash::sha256(b"once"),
            authority: None,
        };
        assert_eq!(EnrolToken::parse(&token.to_text()), Ok(token.clone()));
        assert!(!format!("{token:?}").contains(&token.secret.to_string()));
        for wrong in ["", "bwenrol1_", "bwenrol1_e30", &token.to_text().replace("bwenrol1", "bwenrol2")] {
            assert_eq!(EnrolToken::parse(wrong), Err(NotToken), "{wrong}");
        }
    }

    #[test]
    fn an_id_cannot_be_a_path() {
        assert!(is_id(&"0a".repeat(16)));
        for wrong in ["", "..", "../../../etc/passwd", &"0A".repeat(16), &"0".repeat(31), &"0".repeat(33)] {
            assert!(!is_id(wrong), "{wrong}");
        }
    }
}
