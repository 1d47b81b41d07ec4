//! This machine as a member of its fleet: its way to the hubs, and what it reports of itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use bailiwick_fleet::Hash;
use bailiwick_fleet::entry::{Package, Role};
use bailiwick_fleet::merkle::empty_root;
use bailiwick_fleet::protocol::InventoryServer;
use bailiwick_member::hub::Hub;
use bailiwick_member::identity::{Identity, IdentityError};
use bailiwick_member::report::{LogCopy, Reporter};

use crate::pin_store::PinFile;
use crate::{facts, fleet_rules, running};

/// A member and its way to the hubs.
pub struct MemberLink {
    /// Who the member is.
    pub identity: Identity,
    /// The hubs.
    pub hub: Arc<Hub>,
}

impl MemberLink {
    /// The way of a member to its hubs.
    ///
    /// # Errors
    /// If its certificate cannot be used.
    pub fn new(identity: Identity) -> anyhow::Result<Self> {
        let hub = Arc::new(Hub::new(&identity)?);
        Ok(Self { identity, hub })
    }
}

/// This machine in its fleet; nothing if it is in none.
///
/// # Errors
/// If it is enrolled and that cannot be used.
pub fn machine() -> anyhow::Result<Option<MemberLink>> {
    let Some(directory) = facts::fleet_dir() else { return Ok(None) };
    let Some(identity) = Identity::load(&directory)? else { return Ok(None) };
    if identity.enrolment.role != Role::Machine {
        anyhow::bail!(
            "`{}` is the enrolment of a person, and a machine's is wanted there",
            directory.display()
        );
    }
    MemberLink::new(identity).map(Some)
}

/// Whether the enrolment is that of all users, and its key another user's: its rules hold, and what needs a hub does not go.
pub fn is_key_of_host(fault: &anyhow::Error) -> bool {
    let directory = facts::fleet_dir().filter(|directory| facts::is_fleet_of_host(directory));
    directory.is_some() && matches!(fault.downcast_ref(), Some(IdentityError::AnotherUsers(_)))
}

/// What sends this machine's reports.
pub fn reporter(link: &MemberLink) -> anyhow::Result<Reporter> {
    let state = facts::state_dir().context("neither XDG_STATE_HOME nor HOME says where the state is")?;
    let journal =
        facts::journal_dir().context("neither XDG_STATE_HOME nor HOME says where the journal is")?;
    let member = &link.identity.enrolment.name;
    Ok(Reporter::new(std::sync::Arc::clone(&link.hub), member, &journal, &state.join("fleet")))
}

/// The copy of the log that is held here, and every server that was pinned or runs.
pub fn servers_here() -> (LogCopy, Vec<InventoryServer>) {
    let mut servers: BTreeMap<String, InventoryServer> = BTreeMap::new();
    let blank = |name: &str, identity: &str| InventoryServer {
        server: name.to_owned(),
        package: package_of(identity),
        surface: None,
        manifest: None,
        enforcement: BTreeMap::new(),
        running: false,
    };
    // What cannot be read is not told: the hub shows what a machine says of itself.
    for (_, pinned) in PinFile::all().unwrap_or_default() {
        let server =
            servers.entry(pinned.identity.clone()).or_insert_with(|| blank(&pinned.name, &pinned.identity));
        server.surface = Some(Hash::from_bytes(*pinned.surface_digest().as_bytes()));
    }
    for running in running::all().unwrap_or_default().into_iter().filter(|running| !running.is_served) {
        let server = servers
            .entry(running.identity.clone())
            .or_insert_with(|| blank(&running.name, &running.identity));
        server.server = running.name;
        // With its version, which the identity has not.
        server.package = running.package.as_deref().and_then(package_of).or(server.package.take());
        server.manifest = running.manifest_hash.as_deref().and_then(|hash| hash.parse().ok());
        server.enforcement = running.enforcement;
        server.running = true;
    }
    let mut servers: Vec<InventoryServer> =
        servers.into_values().filter(|server| is_name(&server.server)).collect();
    for server in &mut servers {
        server.package.take_if(|package| !is_plain(package));
    }
    servers.sort();
    (copy_here().unwrap_or(LogCopy { size: 0, root: empty_root() }), servers)
}

/// The copy of the log that is held here, if there is one.
fn copy_here() -> Option<LogCopy> {
    let enrolment = fleet_rules::enrolment().ok()??;
    let copy = fleet_rules::store(&enrolment).ok()?.load().ok()??;
    let head = &copy.head().checkpoint;
    Some(LogCopy { size: head.size, root: head.root })
}

/// Whether a hub takes what is said of a package.
fn is_plain(package: &Package) -> bool {
    let words = [&package.registry, &package.name].into_iter().chain(&package.version);
    words.into_iter().all(|word| is_name(word))
}

/// Whether a hub takes it as a name.
fn is_name(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:/@+-".contains(&byte))
}

/// Where leases are kept.
pub fn lease_directory() -> anyhow::Result<PathBuf> {
    let state = facts::state_dir().context("neither XDG_STATE_HOME nor HOME says where the state is")?;
    Ok(state.join("fleet").join("leases"))
}

/// Waits for something of the network.
pub fn block_on<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work))
}

/// A package as it is written: `REGISTRY:NAME` or `REGISTRY:NAME@VERSION`. A scope begins with `@` too.
pub fn package_of(text: &str) -> Option<Package> {
    let (registry, rest) = text.split_once(':')?;
    let (name, version) = match rest.rsplit_once('@') {
        Some((name, version)) if !name.is_empty() => (name, Some(version.to_owned())),
        _ => (rest, None),
    };
    let is_known = ["npm", "pypi", "oci"].contains(&registry);
    let is_whole = !name.is_empty() && version.as_ref().is_none_or(|version| !version.is_empty());
    (is_known && is_whole).then(|| Package { registry: registry.to_owned(), name: name.to_owned(), version })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_read_with_its_scope_and_version() {
        let read = |text: &str| package_of(text).map(|package| (package.name, package.version));
        let name = |name: &str, version: Option<&str>| Some((name.to_owned(), version.map(str::to_owned)));
        assert_eq!(read("npm:@a/b"), name("@a/b", None));
        assert_eq!(read("npm:@a/b@1.2"), name("@a/b", Some("1.2")));
        assert_eq!(read("pypi:x@1"), name("x", Some("1")));
        for wrong in ["x", "npm:", "npm:x@", "gem:x", ":x", "npm"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
