//! What `bailiwick ps` shows of this server while it runs.
//!
//! The file is written soon after something changed, not at every call. That it cannot be written stops nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bailiwick_command::facts;
use bailiwick_command::running::{RunningFile, RunningServer};
use bailiwick_confine::Status;
use bailiwick_journal::Journal;
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_mcp::relay::RelayCounts;

use super::WrappedServer;

/// How long changes are gathered before they are written.
const PAUSE: Duration = Duration::from_millis(200);

/// The state of one server, gone when this is dropped.
pub(super) struct RunState {
    file: RunningFile,
    server: RunningServer,
}

impl RunState {
    /// Says that a server runs; `None` if that cannot be kept.
    pub(super) fn begin(
        server: &WrappedServer,
        identity: &str,
        server_pid: u32,
        journal: &Journal,
        held: Option<&Status>,
    ) -> Option<Self> {
        let authority = server.checked.authority().capabilities();
        let server = RunningServer {
            name: server.name.clone(),
            identity: identity.to_owned(),
            package: server.package.clone(),
            command: server.run.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            pid: std::process::id(),
            server_pid,
            since: facts::now_us(),
            authority: authority.map(|lines| lines.iter().map(ToString::to_string).collect()),
            session: server.is_recorded.then(|| journal.session().to_string()),
            era: None,
            manifest: server.manifest_file.clone(),
            project: facts::here().ok().map(|dir| dir.display().to_string()),
            calls: 0,
            denials: 0,
            manifest_hash: server.fleet.as_ref().and_then(|_| manifest_hash(server)),
            enforcement: held.filter(|_| server.fleet.is_some()).map(levels).unwrap_or_default(),
            is_served: false,
        };
        RunningFile::begin(&server).ok().map(|file| Self { file, server })
    }

    /// Writes what changes, until this is dropped.
    pub(super) async fn follow(mut self, counts: Arc<RelayCounts>) {
        loop {
            counts.changed().await;
            tokio::time::sleep(PAUSE).await;
            self.server.era = counts.era().map(|era| era.as_str().to_owned());
            (self.server.calls, self.server.denials) = (counts.calls(), counts.denials());
            // It is tried again after the next change.
            drop(self.file.write(&self.server));
        }
    }
}

/// The SHA-256 of the manifest as it holds here.
fn manifest_hash(server: &WrappedServer) -> Option<String> {
    let snapshot = Snapshot::from_manifest(server.checked.manifest().clone()).ok()?;
    snapshot.hash().strip_prefix("sha256:").map(str::to_owned)
}

/// The level of each axis.
fn levels(status: &Status) -> BTreeMap<String, String> {
    let axes = status.coverage.iter();
    axes.map(|(axis, held)| (axis.as_str().to_owned(), held.level.as_str().to_owned())).collect()
}
