//! What a console is told of this machine, and what it has written here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bailiwick_command::hook_records::act;
use bailiwick_command::output::Existing;
use bailiwick_command::pin_store::{PinFile, PinnedServer};
use bailiwick_command::started::only_shipped;
use bailiwick_command::{facts, output, running, terminal};
use bailiwick_console::{ConsoleHost, HostFault, ManifestPlace, OneTimeCode};
use bailiwick_journal::format::Event;
use bailiwick_pins::{PinnedSubject, ServerSurface};
use bailiwick_policy::capability::Capability;
use bailiwick_policy::digest::Digest;
use serde_json::{Value, json};

use crate::commands::{pins, ps};

/// This machine, and the manifests of the sessions that were seen to run.
#[derive(Debug)]
pub(super) struct ThisHost {
    /// The address of the page.
    page: String,
    known: Mutex<BTreeMap<String, KnownServer>>,
}

/// What is remembered of a server, by its session: it may have ended when a person looks.
#[derive(Debug, Clone)]
struct KnownServer {
    manifest: Option<PathBuf>,
    identity: String,
    project: String,
}

impl KnownServer {
    /// The file that holds it, or the one that would in place of what is shipped.
    fn place(self) -> Option<ManifestPlace> {
        let Self { manifest, identity, project } = self;
        let (file, shipped) = match manifest {
            Some(file) => (file, None),
            None => {
                let (name, text) = only_shipped(&identity, Path::new(&project))?;
                (facts::server_manifests()?.join(format!("{name}.toml")), Some(text.to_owned()))
            }
        };
        Some(ManifestPlace { file, identity, project, shipped })
    }
}

impl ThisHost {
    /// For a page at this address.
    pub(super) fn new(page: String) -> Self {
        Self { page, known: Mutex::default() }
    }
}

fn fault(error: impl std::fmt::Display) -> HostFault {
    HostFault(format!("{error:#}"))
}

impl ConsoleHost for ThisHost {
    fn now_us(&self) -> u64 {
        facts::now_us()
    }

    fn servers(&self) -> Result<Vec<Value>, HostFault> {
        let all = running::all().map_err(fault)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for server in &all {
            if let (Some(session), Some(project)) = (&server.session, &server.project) {
                let (identity, project) = (server.identity.clone(), project.clone());
                let manifest = server.manifest.clone();
                known.insert(session.clone(), KnownServer { manifest, identity, project });
            }
        }
        Ok(all.iter().map(ps::as_json).collect())
    }

    fn pins(&self) -> Result<Vec<Value>, HostFault> {
        Ok(PinFile::all().map_err(fault)?.iter().map(|(_, server)| pinned(server)).collect())
    }

    fn accept_pins(&self, identity: &str, seen: &str) -> Result<bool, HostFault> {
        let file = PinFile::for_identity(identity).map_err(fault)?;
        let accept = |now: &mut PinnedServer| what_waits(now) == seen && now.accept(None);
        file.change(|| PinnedServer::new("", identity), accept).map_err(fault)
    }

    fn manifest_of(&self, session: &str) -> Option<ManifestPlace> {
        drop(self.servers());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(session).cloned();
        known?.place()
    }

    fn replace_file(&self, file: &Path, text: &str) -> Result<(), HostFault> {
        let made = file.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.map_err(anyhow::Error::from)
            .and_then(|()| output::write(file, text, Existing::Replace).map_err(anyhow::Error::from))
            .map_err(|error| HostFault(format!("cannot write `{}`: {error}", file.display())))
    }

    fn remove_file(&self, file: &Path) -> Result<(), HostFault> {
        std::fs::remove_file(file)
            .map_err(|error| HostFault(format!("cannot remove `{}`: {error}", file.display())))
    }

    fn note_grant(&self, place: &ManifestPlace, tool: &str, lines: &[Capability]) -> Result<(), HostFault> {
        change_grant(place, |server| server.grant_more(&place.project, tool, lines))
    }

    fn forget_grant(&self, place: &ManifestPlace, tool: &str, lines: &[Capability]) -> Result<(), HostFault> {
        change_grant(place, |server| server.grant_less(&place.project, tool, lines))
    }

    fn show_code(&self, code: &OneTimeCode) {
        terminal::remark(&format!("a page was opened; the next one: {}#code={}\n", self.page, code.reveal()));
    }

    fn record(&self, event: Event) {
        act(event);
    }
}

fn change_grant(
    place: &ManifestPlace,
    change: impl FnOnce(&mut PinnedServer) -> anyhow::Result<()>,
) -> Result<(), HostFault> {
    let file = PinFile::for_identity(&place.identity).map_err(fault)?;
    if file.read().map_err(fault)?.is_none() {
        return Ok(());
    }
    file.change(|| PinnedServer::new("", &place.identity), change).map_err(fault)?.map_err(fault)
}

/// One server as the page shows it.
fn pinned(server: &PinnedServer) -> Value {
    let (old, new) = (server.surface(), server.surface_now());
    let changes: Vec<Value> = server
        .changes()
        .iter()
        .map(|change| {
            json!({
                "subject": change.subject.to_string(), "drift": change.drift.as_str(), "reasons": change.reasons,
                "old": part(&old, &change.subject), "new": part(&new, &change.subject),
            })
        })
        .collect();
    let grants: Vec<Value> = server
        .waiting_grants()
        .map(|(project, old, new)| json!({ "project": project, "wider": pins::wider(old, new) }))
        .collect();
    json!({
        "name": server.name, "identity": server.identity, "tools": server.tool_count(),
        "changes": changes, "grants": grants, "seen": what_waits(server),
    })
}

fn part(surface: &ServerSurface, subject: &PinnedSubject) -> Value {
    let found = match subject {
        PinnedSubject::Instructions => surface.instructions.clone().map(Value::from),
        PinnedSubject::Tool(name) => surface.tools.get(name).cloned(),
        PinnedSubject::Prompt(name) => surface.prompts.get(name).cloned(),
        PinnedSubject::Resource(uri) => surface.resources.get(uri).cloned(),
    };
    found.unwrap_or(Value::Null)
}

/// What names exactly what waits of a server: what is accepted is what was shown.
fn what_waits(server: &PinnedServer) -> String {
    Digest::sha256(server.waiting_text().as_bytes()).to_string()
}
