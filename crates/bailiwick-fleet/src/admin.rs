//! What people and hubs send each other beside [`crate::protocol`]: tokens, budgets, renewal, and taking an approval.
//!
//! | request | answer | who |
//! |---|---|---|
//! | `POST /v1/approvals/ID/take` [`TakeRequest`] | [`crate::protocol::ApprovalStatus`] | the machine that asked |
//! | `POST /v1/renew` [`RenewRequest`] | [`crate::protocol::EnrolAnswer`] | a member |
//! | `POST /v1/tokens` [`TokenRequest`] | [`TokenAnswer`] | admin |
//! | `POST /v1/members` [`SubjectRequest`] | [`SubjectAnswer`] | admin |
//! | `POST /v1/budgets` [`BudgetWish`] | nothing | admin |
//! | `GET /v1/budgets` | a list of [`BudgetRow`] | approver, admin |
//! | `GET /v1/members?after=ID&limit=N` | a list of [`crate::protocol::MemberRow`] | approver, admin |
//! | `GET /v1/audit?limit=N` | a list of [`AuditRow`] | approver, admin |

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::Hash;
use crate::entry::Role;
use crate::protocol::BudgetUnit;

/// The header that `POST /v1/entries` needs: an id that is drawn once for what is to be appended once.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A machine takes the answer of an approval, for one call. Only the answer `Allowed` to this permits the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakeRequest {
    /// The SHA-256 of the call's canonical arguments.
    pub arguments_sha256: Hash,
    /// Drawn for this call: 32 hexadecimal digits. The same again has the same answer, another is refused.
    pub nonce: String,
}

/// A member wants another certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenewRequest {
    /// A request for a certificate, PEM, signed with the key that the certificate shall be for.
    pub csr: String,
}

/// An admin wants an enrolment token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// What the member may do.
    pub role: Role,
    /// Labels of a machine.
    #[serde(default)]
    pub labels: BTreeSet<String>,
    /// How long it is good for, in seconds.
    pub ttl_s: u64,
}

/// An enrolment token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenAnswer {
    /// Its text, see [`crate::protocol::EnrolToken`]. It is shown once.
    pub token: String,
}

/// An admin admits certificates of another authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubjectRequest {
    /// The SPIFFE id in them.
    pub subject: String,
    /// What the member may do.
    pub role: Role,
    /// Labels of a machine.
    #[serde(default)]
    pub labels: BTreeSet<String>,
}

/// A member with certificates of another authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubjectAnswer {
    /// Its id.
    pub member: String,
}

/// A budget, as an admin wants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetWish {
    /// Its name.
    pub id: String,
    /// What it counts.
    pub unit: BudgetUnit,
    /// How much may be spent in all.
    pub total: u64,
    /// How much one lease has at most.
    pub slice: u64,
    /// How long a lease lasts, in milliseconds.
    pub lease_ms: u64,
}

/// A budget as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetRow {
    /// Its name.
    pub id: String,
    /// What it counts.
    pub unit: BudgetUnit,
    /// How much may be spent in all.
    pub total: u64,
    /// What is spent or may still be: leases that did not return, and what returned ones spent.
    pub taken: u64,
    /// How much of that is in leases that still run.
    pub leased: u64,
    /// How much one lease has at most.
    pub slice: u64,
    /// How long a lease lasts, in milliseconds.
    pub lease_ms: u64,
}

/// A change at the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditRow {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// The member that asked for it.
    pub actor: String,
    /// What it was.
    pub action: String,
    /// What it was about.
    pub subject: String,
    /// More about it.
    pub detail: String,
}

impl std::fmt::Debug for TokenAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenAnswer").finish_non_exhaustive()
    }
}
