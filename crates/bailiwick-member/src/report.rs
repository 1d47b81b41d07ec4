//! Reports: what runs on this machine, and the heads of its journal, sent each minute by whichever process comes first.
//!
//! There is no daemon. Each process that wraps a server calls [`Reporter::report_if_due`] now and then; a lock and a file that all
//! share say whether it is due. Heads are sent when they changed. Nothing of this holds up a call.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bailiwick_fleet::Hash;
use bailiwick_fleet::entry::JournalHead;
use bailiwick_fleet::protocol::{HeadReport, InventoryReport, InventoryServer};
use bailiwick_journal::{JournalFault, local_fingerprint, sealed_heads};
use serde::{Deserialize, Serialize};

use crate::hub::{Hub, HubError};
use crate::{files, now_ms};

/// How long there is between two reports.
pub const REPORT_EVERY_MS: u64 = 60_000;
/// How long an inventory that did not change is not sent again.
const INVENTORY_EVERY_MS: u64 = 300_000;
/// The most heads in one request.
const MAX_HEADS: usize = 256;

/// Why a report was not sent, or not taken.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The hub refuses or does not answer.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// The journal cannot be read.
    #[error("the journal cannot be read: {0}")]
    Journal(#[from] JournalFault),
    /// What was sent cannot be kept.
    #[error("cannot use `{0}`: {1}")]
    File(PathBuf, std::io::Error),
}

/// What was sent last.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Sent {
    member: String,
    /// When the last report was sent, in milliseconds since 1970.
    report_ms: u64,
    inventory_ms: u64,
    inventory: Option<Hash>,
    /// The last number of each session.
    heads: BTreeMap<String, u64>,
}

/// Sends reports of one machine.
pub struct Reporter {
    hub: Arc<Hub>,
    member: String,
    journal: PathBuf,
    file: PathBuf,
}

/// What was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reported {
    /// Heads of sessions.
    pub heads: usize,
    /// Servers of the inventory, if it was sent.
    pub servers: Option<usize>,
}

/// The copy of the log that an inventory names.
#[derive(Debug, Clone, Copy)]
pub struct LogCopy {
    /// Its size.
    pub size: u64,
    /// Its root.
    pub root: Hash,
}

impl Reporter {
    /// Reports of the machine `member`, whose journal is in a directory; what was sent is kept in `state`.
    #[must_use]
    pub fn new(hub: Arc<Hub>, member: &str, journal: &Path, state: &Path) -> Self {
        let (journal, file) = (journal.to_owned(), state.join("reported.json"));
        Self { hub, member: member.to_owned(), journal, file }
    }

    /// Reports if the last report is a minute old and no other process does so now.
    ///
    /// # Errors
    /// Why a report was not sent or not taken.
    pub async fn report_if_due(
        &self,
        gather: impl FnOnce() -> (LogCopy, Vec<InventoryServer>),
    ) -> Result<Option<Reported>, ReportError> {
        let lock = self.lock_file()?;
        if lock.try_lock().is_err() || now_ms() < self.sent()?.report_ms.saturating_add(REPORT_EVERY_MS) {
            return Ok(None);
        }
        self.send(gather()).await.map(Some)
    }

    /// Reports now.
    ///
    /// # Errors
    /// Why a report was not sent or not taken.
    pub async fn report(&self, log: LogCopy, servers: Vec<InventoryServer>) -> Result<Reported, ReportError> {
        let lock = self.lock_file()?;
        lock.lock().map_err(|why| self.fault(why))?;
        self.send((log, servers)).await
    }

    async fn send(&self, (log, servers): (LogCopy, Vec<InventoryServer>)) -> Result<Reported, ReportError> {
        let mut sent = self.sent()?;
        let now = now_ms();
        sent.report_ms = now;
        let servers = self.send_inventory(&mut sent, log, servers).await;
        let heads = self.send_heads(&mut sent).await;
        // Also after a refusal: a hub that refuses is asked again in a minute, not at once.
        let bytes = serde_json::to_vec(&sent).map_err(|why| self.fault(why.into()))?;
        files::replace(&self.file, &bytes).map_err(|why| self.fault(why))?;
        Ok(Reported { heads: heads?, servers: servers? })
    }

    async fn send_inventory(
        &self,
        sent: &mut Sent,
        log: LogCopy,
        servers: Vec<InventoryServer>,
    ) -> Result<Option<usize>, ReportError> {
        let (now, version) = (now_ms(), env!("CARGO_PKG_VERSION").to_owned());
        let text = serde_json::to_vec(&servers).unwrap_or_default();
        let hash = Hash::of_parts(&[&text, log.root.as_bytes()]);
        let is_known = sent.inventory == Some(hash);
        if is_known && now < sent.inventory_ms.saturating_add(INVENTORY_EVERY_MS) {
            return Ok(None);
        }
        let count = servers.len();
        let report =
            InventoryReport { time_ms: now, version, log_size: log.size, log_root: log.root, servers };
        self.hub.tell("/v1/inventory", &report).await?;
        (sent.inventory, sent.inventory_ms) = (Some(hash), now);
        Ok(Some(count))
    }

    async fn send_heads(&self, sent: &mut Sent) -> Result<usize, ReportError> {
        let Some(key) = local_fingerprint(&self.journal)? else { return Ok(0) };
        let (key, time_ms) = (Hash::from_bytes(*key.as_bytes()), now_ms());
        let changed = sealed_heads(&self.journal)?.into_iter().filter(|(session, point)| {
            sent.heads.get(session.as_str()).is_none_or(|known| *known != point.seq)
        });
        let heads: Vec<JournalHead> = changed
            .map(|(session, point)| JournalHead {
                machine: self.member.clone(),
                session: session.as_str().to_owned(),
                seq: point.seq,
                hash: Hash::from_bytes(*point.hash.as_bytes()),
                key,
                time_ms,
            })
            .collect();
        let mut refused = None;
        for some in heads.chunks(MAX_HEADS) {
            match self.hub.tell("/v1/heads", &HeadReport { heads: some.to_vec() }).await {
                Ok(()) => sent.heads.extend(some.iter().map(|head| (head.session.clone(), head.seq))),
                // One session that went back does not keep those of the other requests from the hub.
                Err(error) if error.is_final() => refused = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        refused.map_or(Ok(heads.len()), |error| Err(error.into()))
    }

    fn sent(&self) -> Result<Sent, ReportError> {
        let bytes = files::read(&self.file).map_err(|why| self.fault(why))?;
        // What cannot be read, or is another member's, is sent again.
        let sent = bytes.and_then(|bytes| serde_json::from_slice::<Sent>(&bytes).ok());
        let sent = sent.filter(|sent| sent.member == self.member);
        Ok(sent.unwrap_or_else(|| Sent { member: self.member.clone(), ..Sent::default() }))
    }

    fn lock_file(&self) -> Result<std::fs::File, ReportError> {
        files::lock_file(&self.file.with_extension("lock")).map_err(|why| self.fault(why))
    }

    fn fault(&self, why: std::io::Error) -> ReportError {
        ReportError::File(self.file.clone(), why)
    }
}
