//! What an entry of the log means for the hub's own tables, in the same transaction.

use bailiwick_fleet::entry::{EntryBody, Target};
use tokio_postgres::Transaction;

use crate::database::StoreError;
use crate::sequence::signed;

/// A change beside the log.
#[derive(Debug, Clone)]
pub enum Effect {
    /// A member may do nothing any more.
    RevokeMember(String),
    /// Enrolment tokens with this hash are void.
    RevokeToken(Vec<u8>),
    /// Nothing may be started: what waits and what was allowed is void.
    VoidApprovals,
    /// The text of a batch of journal heads that the entry names by its hash.
    KeepHeads {
        /// The hash.
        hash: String,
        /// The text.
        body: Vec<u8>,
        /// The rows that are anchored by it: machine, session, sequence number.
        rows: Vec<(String, String, i64)>,
    },
}

impl Effect {
    /// Those of an entry, as far as it says them itself.
    #[must_use]
    pub fn implied_by(body: &EntryBody) -> Vec<Self> {
        match body {
            EntryBody::Revocation(revocation) => match &revocation.target {
                Target::Machine { machine } => vec![Self::RevokeMember(machine.clone())],
                Target::Token { sha256 } => vec![Self::RevokeToken(sha256.as_bytes().to_vec())],
                Target::Everything => vec![Self::VoidApprovals],
                Target::Grant { .. } | Target::Package(_) | Target::Pin { .. } | Target::Server { .. } => {
                    Vec::new()
                }
            },
            EntryBody::MemberKey(key) if key.removed => vec![Self::RevokeMember(key.member.clone())],
            EntryBody::MemberKey(_)
            | EntryBody::Bundle(_)
            | EntryBody::Grant(_)
            | EntryBody::Pin(_)
            | EntryBody::Lift(_)
            | EntryBody::Heads(_) => Vec::new(),
        }
    }

    /// Does it.
    ///
    /// # Errors
    /// If the database does not.
    pub async fn apply(&self, transaction: &Transaction<'_>, index: u64, by: &str) -> Result<(), StoreError> {
        match self {
            Self::RevokeMember(member) => {
                let sql = "UPDATE member SET revoked_at = COALESCE(revoked_at, now()) WHERE id = $1";
                transaction.execute(sql, &[member]).await?;
            }
            Self::RevokeToken(hash) => {
                transaction.execute("DELETE FROM enrol_token WHERE hash = $1", &[hash]).await?;
            }
            Self::VoidApprovals => {
                let sql = "UPDATE approval SET state = 'denied', answered_by = $1, answered_at = now(), remark = 'everything was revoked' \
                           WHERE used_at IS NULL AND state IN ('waiting', 'allowed')";
                transaction.execute(sql, &[&by]).await?;
            }
            Self::KeepHeads { hash, body, rows } => {
                let sql = "INSERT INTO head_batch (hash, idx, body) VALUES ($1, $2, $3)";
                transaction.execute(sql, &[hash, &signed(index)?, body]).await?;
                let machines: Vec<&str> = rows.iter().map(|(machine, ..)| machine.as_str()).collect();
                let sessions: Vec<&str> = rows.iter().map(|(_, session, _)| session.as_str()).collect();
                let seqs: Vec<i64> = rows.iter().map(|(.., seq)| *seq).collect();
                let sql = "UPDATE journal_head AS own SET is_anchored = true \
                           FROM (SELECT * FROM UNNEST($1::TEXT[], $2::TEXT[], $3::INT8[])) AS done (machine, session, seq) \
                           WHERE own.machine = done.machine AND own.session = done.session AND own.seq = done.seq";
                transaction.execute(sql, &[&machines, &sessions, &seqs]).await?;
            }
        }
        Ok(())
    }
}
