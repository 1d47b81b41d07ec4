//! The copy as a value and as bytes: the signed checkpoint, the frontier of its tree, and what its entries mean for this machine.
//!
//! Fails closed when: the bytes are not whole, the signatures do not verify with the keys that the copy itself names, or the frontier does
//! not lead to the signed root.
//!
//! Residual: the meaning of the entries is kept, not the entries. A user who owns the directory can write another one there; so can a
//! user who removes it.

use bailiwick_fleet::Hash;
use bailiwick_fleet::checkpoint::{SignedHead, Trust};
use bailiwick_fleet::enrolment::Enrolment;
use bailiwick_fleet::merkle::Frontier;
use bailiwick_fleet::state::{FleetState, StateLists};
use serde::{Deserialize, Serialize};

/// The largest file of a copy that is read.
pub(crate) const MAX_COPY: u64 = 256 * 1024 * 1024;

const FORMAT: &str = "bailiwick.fleet-copy/1";

/// A verified copy of the log, at one of its checkpoints.
#[derive(Debug, Clone)]
pub struct LogCopy {
    pub(crate) head: SignedHead,
    /// The checkpoint as it was signed.
    pub(crate) signed: Vec<u8>,
    pub(crate) frontier: Frontier,
    pub(crate) state: FleetState,
}

/// Why a file is no copy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the copy of the fleet's log is damaged: {0}")]
pub struct DamagedCopy(pub(crate) String);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    format: String,
    checkpoint: String,
    frontier: Frontier,
    state: StateLists,
}

impl LogCopy {
    /// The checkpoint that it is a copy of.
    #[must_use]
    pub const fn head(&self) -> &SignedHead {
        &self.head
    }

    /// What its entries mean.
    #[must_use]
    pub const fn state(&self) -> &FleetState {
        &self.state
    }

    /// Its bytes in a file: JSON, and its SHA-256 in a line.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, DamagedCopy> {
        let kept = Kept {
            format: FORMAT.to_owned(),
            checkpoint: String::from_utf8_lossy(&self.signed).into_owned(),
            frontier: self.frontier.clone(),
            state: self.state.to_lists(),
        };
        let mut bytes = serde_json::to_vec(&kept).map_err(|why| DamagedCopy(why.to_string()))?;
        let sum = Hash::sha256(&bytes);
        bytes.extend_from_slice(format!("\n{sum}\n").as_bytes());
        Ok(bytes)
    }

    /// Reads such bytes, and verifies them with what this machine was enrolled with.
    pub(crate) fn parse(bytes: &[u8], enrolment: &Enrolment) -> Result<Self, DamagedCopy> {
        let wrong = |why: &str| DamagedCopy(why.to_owned());
        let whole = bytes.strip_suffix(b"\n").ok_or_else(|| wrong("its end is missing"))?;
        let at = whole.iter().rposition(|byte| *byte == b'\n').ok_or_else(|| wrong("its end is missing"))?;
        let (json, sum) = whole.split_at(at);
        let is_sum = sum.strip_prefix(b"\n") == Some(Hash::sha256(json).to_string().as_bytes());
        if !is_sum {
            return Err(wrong("its sum is another"));
        }
        let kept: Kept = serde_json::from_slice(json).map_err(|why| DamagedCopy(why.to_string()))?;
        if kept.format != FORMAT {
            return Err(wrong("it is of another version"));
        }
        let state = FleetState::from_lists(kept.state).with_max_stale(enrolment.max_stale_s);
        let signed = kept.checkpoint.into_bytes();
        let opened = trust(enrolment, Some(&state)).open(&signed);
        let head = opened.map_err(|why| DamagedCopy(why.to_string()))?;
        let (size, root) = (head.checkpoint.size, head.checkpoint.root);
        let fits = kept.frontier.size() == size && kept.frontier.root() == root && state.size() == size;
        if fits {
            Ok(Self { head, signed, frontier: kept.frontier, state })
        } else {
            Err(wrong("it is of another tree"))
        }
    }
}

/// Whose signatures a checkpoint needs, by the enrolment and by what the log says of the hub's keys.
pub(crate) fn trust(enrolment: &Enrolment, state: Option<&FleetState>) -> Trust {
    let first = enrolment.trust();
    let hub_keys = state.map_or_else(|| first.hub_keys.clone(), |state| state.hub_keys(&enrolment.log_key));
    Trust { hub_keys, ..first }
}
