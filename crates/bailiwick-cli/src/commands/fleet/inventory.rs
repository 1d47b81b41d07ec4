//! What runs on this machine, as the hub is told; and `bailiwick fleet report`.

use std::collections::BTreeMap;

use anyhow::Context as _;
use bailiwick_fleet::Hash;
use bailiwick_fleet::entry::Package;
use bailiwick_fleet::merkle::empty_root;
use bailiwick_fleet::protocol::InventoryServer;
use bailiwick_member::report::{LogCopy, Reported, Reporter};
use serde_json::json;

use super::{MemberLink, block_on, package_of};
use crate::answer::{Answer, Exit};
use crate::args::AnswerFormat;
use crate::commands::trust::refused;
use crate::pin_store::PinFile;
use crate::render::{json as render_json, style};
use crate::running;
use crate::{facts, fleet_rules};

pub(super) fn report(format: AnswerFormat) -> anyhow::Result<Answer> {
    let Some(link) = super::machine()? else {
        return Ok(refused(Exit::Found, "this machine is in no fleet: `bailiwick enroll --token-file FILE`"));
    };
    let (log, servers) = servers_here();
    let Reported { heads, servers } = match block_on(reporter(&link)?.report(log, servers))? {
        Ok(reported) => reported,
        Err(why) => return Ok(refused(Exit::Found, &why.to_string())),
    };
    let text = match format {
        AnswerFormat::Json => render_json::document(
            &json!({ "format": "bailiwick.fleet-report/1", "heads": heads, "servers": servers }),
        ),
        AnswerFormat::Text => {
            let inventory = servers.map_or_else(
                || "the inventory is as it was".to_owned(),
                |count| format!("the inventory of {}", style::count(count, "server", "servers")),
            );
            let heads = style::count(heads, "journal head", "journal heads");
            format!("{}: {heads}, {inventory}\n", style::good("sent"))
        }
    };
    Ok(Answer::result(Exit::Fine, text))
}

/// What sends this machine's reports.
pub(in crate::commands) fn reporter(link: &MemberLink) -> anyhow::Result<Reporter> {
    let state = facts::state_dir().context("neither XDG_STATE_HOME nor HOME says where the state is")?;
    let journal =
        facts::journal_dir().context("neither XDG_STATE_HOME nor HOME says where the journal is")?;
    let member = &link.identity.enrolment.name;
    Ok(Reporter::new(std::sync::Arc::clone(&link.hub), member, &journal, &state.join("fleet")))
}

/// The copy of the log that is held here, and every server that was pinned or runs.
pub(in crate::commands) fn servers_here() -> (LogCopy, Vec<InventoryServer>) {
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
