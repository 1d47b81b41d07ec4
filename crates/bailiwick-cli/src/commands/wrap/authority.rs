//! What a server was granted in a project when it was first used there. More than that waits for a person.

use anyhow::Context as _;
use bailiwick_command::facts;
use bailiwick_command::pin_store::{PinFile, PinnedServer};
use bailiwick_manifest::Manifest;
use bailiwick_manifest::diff::Diff;
use bailiwick_manifest::snapshot::Snapshot;

/// Remembers what a server is granted, or compares it with what was.
///
/// # Errors
/// If it is more than before, or the pins cannot be used.
pub(super) fn remember(name: &str, identity: &str, manifest: &Manifest) -> anyhow::Result<()> {
    let project = facts::here().context("there is no current directory")?.display().to_string();
    let snapshot =
        Snapshot::from_manifest(manifest.clone()).map_err(|finding| anyhow::anyhow!("{finding}"))?;
    let text = snapshot.to_text().map_err(|finding| anyhow::anyhow!("{finding}"))?;
    let file = PinFile::for_identity(identity)?;
    let known = file.read()?.and_then(|server| server.granted(&project).map(str::to_owned));
    if known.as_deref() == Some(&text) {
        return Ok(());
    }
    let new = || PinnedServer::new(name, identity);
    let known = file.change(new, |server| server.grant_first(&project, &text))?;
    let known = Snapshot::parse(&known).map_err(|findings| anyhow::anyhow!("{findings}"))?;
    let diff = Diff::between(&known, &snapshot).map_err(|findings| anyhow::anyhow!("{findings}"))?;
    if !diff.widens() {
        return Ok(());
    }
    file.change(new, |server| server.note_grant(&project, &text))?;
    anyhow::bail!(
        "the server would be granted more than when it was first used here: {}. A person sees it with `bailiwick pins diff \
         {name}` and accepts it with `bailiwick pins approve {name}`",
        in_words(&diff)
    )
}

/// What is wider, in one line.
pub(super) fn in_words(diff: &Diff) -> String {
    let wider = diff.differences().iter().filter(|difference| difference.widens());
    let shown = wider.take(5).map(|difference| match (difference.tool(), difference.example()) {
        (Some(tool), Some(example)) => format!("{tool}: {} (`{example}`)", difference.message()),
        (None, Some(example)) => format!("{} (`{example}`)", difference.message()),
        (Some(tool), None) => format!("{tool}: {}", difference.message()),
        (None, None) => difference.message().to_owned(),
    });
    shown.collect::<Vec<_>>().join("; ")
}
