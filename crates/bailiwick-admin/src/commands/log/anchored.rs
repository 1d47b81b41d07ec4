//! `bailiwick log verify --fleet`: the heads that the fleet's log has of a machine, for the journal to be held against.
//!
//! Read from the published files, verified against the key of the enrolment; no hub is believed. Heads of the last minute or two are not in the
//! log yet. Fails closed when: the log cannot be read or is not what was signed, or it has no head of the machine.

use anyhow::Context as _;
use bailiwick_command::member_link::block_on;
use bailiwick_command::render::{escape, style};
use bailiwick_command::{facts, fleet_rules};
use bailiwick_journal::format::{Digest, Point, SessionId};
use bailiwick_member::anchor::{LogSource, anchored};
use bailiwick_member::identity::Identity;
use serde_json::{Value, json};

use crate::args::log::Verify;

/// What the fleet's log has of a machine's journal.
pub(super) struct AnchoredHeads {
    machine: String,
    size: u64,
    root: String,
    /// The key that all of the heads name, if it is one.
    pub(super) key: Option<Digest>,
    pub(super) heads: Vec<(SessionId, Point)>,
}

/// The newest head of each session of the machine.
pub(super) fn heads(args: &Verify) -> anyhow::Result<AnchoredHeads> {
    let identity = identity(args.machine.is_some())?;
    let machine = args.machine.clone().unwrap_or_else(|| identity.enrolment.name.clone());
    let source = match &args.log_files {
        Some(directory) => LogSource::Files(directory.clone()),
        None => LogSource::for_identity(&identity)?,
    };
    let found = block_on(anchored(&source, &fleet_rules::trust(&identity.enrolment), &machine))??;
    let mut keys: Vec<_> = found.heads.iter().map(|head| head.key).collect();
    keys.sort_unstable();
    keys.dedup();
    let key = match keys.as_slice() {
        [only] => Some(Digest::from_bytes(*only.as_bytes())),
        _ => None,
    };
    let heads = found.heads.iter().map(|head| {
        let session = head.session.parse().map_err(|why| anyhow::anyhow!("`{}`: {why}", head.session))?;
        Ok((session, Point { seq: head.seq, hash: Digest::from_bytes(*head.hash.as_bytes()) }))
    });
    let heads: Vec<_> = heads.collect::<anyhow::Result<_>>()?;
    anyhow::ensure!(
        !heads.is_empty(),
        "the fleet's log has no head of `{machine}`: heads are sent each minute while a server is wrapped, or now with \
         `bailiwick fleet report`, and a hub puts them into the log within a minute"
    );
    let root = found.checkpoint.root.to_string();
    Ok(AnchoredHeads { machine, size: found.checkpoint.size, root, key, heads })
}

/// The enrolment whose key the log is verified with.
fn identity(is_other: bool) -> anyhow::Result<Identity> {
    let load = |directory: Option<std::path::PathBuf>| directory.map_or(Ok(None), |own| Identity::load(&own));
    let (machine, person) = (load(facts::fleet_dir())?, load(facts::fleet_person_dir())?);
    let chosen = if is_other { person.or(machine) } else { machine };
    chosen.context("this machine is in no fleet: `bailiwick enroll --token-file FILE`")
}

impl AnchoredHeads {
    pub(super) fn line(&self) -> String {
        format!(
            "held against the fleet's log: {} of `{}`, in a log of {} entries with the root {}\n",
            style::count(self.heads.len(), "head", "heads"),
            escape::line(&self.machine),
            self.size,
            self.root
        )
    }

    pub(super) fn document(&self) -> Value {
        json!({ "machine": self.machine, "heads": self.heads.len(), "log_size": self.size, "log_root": self.root })
    }
}
