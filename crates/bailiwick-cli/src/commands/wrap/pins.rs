//! The pins of a wrapped server while it runs: what is sent, what is withheld, and the gate's part in it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bailiwick_command::pin_store::{PinFile, PinnedServer, prompt_key, resource_key};
use bailiwick_fleet::Hash;
use bailiwick_guard::{Call, Interceptor, InterceptorError, Verdict};
use bailiwick_journal::Journal;
use bailiwick_journal::format::{Event, RecordKind};
use bailiwick_mcp::relay::{ListKind, ListedTool, PinKeeper};
use bailiwick_pins::{Drift, PinnedSubject, imitations, judge_drift};
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::digest::Digest;
use bailiwick_replica::Leash;
use serde_json::Value;

/// The pins of one server. Clones are the same.
#[derive(Clone)]
pub(super) struct KeptPins(Arc<Kept>);

struct Kept {
    /// Told what the server says of itself.
    leash: Option<Leash>,
    file: PinFile,
    journal: Journal,
    state: Mutex<PinState>,
}

struct PinState {
    server: PinnedServer,
    /// Tools by their names, prompts and resources by the names that they wait under.
    withheld: BTreeSet<String>,
    /// Whether the server told its tools since it was started; nothing if it was not asked.
    told: Option<bool>,
    /// Tools of other wrapped servers.
    foreign: Vec<String>,
}

impl KeptPins {
    /// Reads the pins of a server, which is new if there are none.
    ///
    /// # Errors
    /// If they are there and cannot be read.
    pub(super) fn open(name: &str, identity: &str, journal: &Journal) -> anyhow::Result<Self> {
        let file = PinFile::for_identity(identity)?;
        let server = file.read()?.unwrap_or_else(|| PinnedServer::new(name, identity));
        let changes = server.changes();
        let wider = changes.iter().filter(|change| change.drift == Drift::Widening);
        let withheld = wider.filter_map(|change| match &change.subject {
            PinnedSubject::Tool(name) => Some(name.clone()),
            PinnedSubject::Prompt(name) => Some(prompt_key(name)),
            PinnedSubject::Resource(uri) => Some(resource_key(uri)),
            PinnedSubject::Instructions => None,
        });
        let withheld = withheld.collect();
        // Damage of another server's file is that server's.
        let others =
            PinFile::all().unwrap_or_default().into_iter().filter(|(_, other)| other.identity != identity);
        let foreign = others.flat_map(|(_, other)| other.tool_names().cloned().collect::<Vec<_>>()).collect();
        let state = Mutex::new(PinState { withheld, server, told: None, foreign });
        Ok(Self(Arc::new(Kept { leash: None, file, journal: journal.clone(), state })))
    }

    /// The same, where the fleet is told what the server says of itself. No clone is there yet.
    pub(super) fn held_by(self, leash: Option<Leash>) -> Self {
        let held = Arc::try_unwrap(self.0).map(|kept| Arc::new(Kept { leash, ..kept }));
        let held = Self(held.unwrap_or_else(|shared| shared));
        held.tell_leash(&held.locked());
        held
    }

    /// Tells the leash what was pinned, once all tools are known.
    fn tell_leash(&self, state: &PinState) {
        if let (Some(leash), true) = (&self.0.leash, state.server.is_complete) {
            leash.note_surface(Hash::from_bytes(*state.server.surface_digest().as_bytes()));
        }
    }

    /// The digest of a tool as it is pinned; empty if it is not.
    pub(super) fn definition(&self, tool: &str) -> String {
        let state = self.locked();
        let pinned = state.server.tool(tool).map(|pinned| Digest::sha256(pinned.to_string().as_bytes()));
        pinned.map(|digest| digest.to_string()).unwrap_or_default()
    }

    /// The digest of everything that is pinned.
    pub(super) fn surface_digest(&self) -> Digest {
        self.locked().server.surface_digest()
    }

    fn locked(&self) -> MutexGuard<'_, PinState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the pins here and in the file. What cannot be kept is withheld.
    fn change(&self, state: &mut PinState, change: impl Fn(&mut PinnedServer)) -> bool {
        let (name, identity) = (state.server.name.clone(), state.server.identity.clone());
        change(&mut state.server);
        self.0.file.change(|| PinnedServer::new(&name, &identity), change).is_ok()
    }

    /// Pins something at first use. Another process may have been first: what is in the file counts.
    fn pin_first(&self, state: &mut PinState, pin: impl Fn(&mut PinnedServer)) -> bool {
        let (name, identity) = (state.server.name.clone(), state.server.identity.clone());
        let now = self.0.file.change(
            || PinnedServer::new(&name, &identity),
            |server| {
                pin(server);
                server.clone()
            },
        );
        now.map(|now| state.server = now).is_ok()
    }

    fn record(&self, subject: &str, drift: Drift, reasons: &[String]) {
        let event = Event::new(RecordKind::PinChanged)
            .with_code(drift.as_str())
            .with_reason(format!("{subject}: {}", reasons.join("; ")));
        drop(self.0.journal.append(event));
    }
}

impl KeptPins {
    /// What becomes of a tool of a list.
    fn listed_tool(&self, name: &str, tool: &Value) -> ListedTool {
        let mut state = self.locked();
        if state.server.tool(name).is_none() && !state.server.is_complete {
            let found = self.imitations(&state, name, tool);
            if !self.pin_first(&mut state, |server| server.pin_tool(name, tool, &found)) {
                return ListedTool::Withheld;
            }
        }
        let Some(pinned) = state.server.tool(name).cloned() else {
            if state.server.waiting_tool(name) != Some(tool) {
                self.change(&mut state, |server| server.note_tool(name, tool));
                self.record(&format!("tool {name}"), Drift::Widening, &["the tool is new".to_owned()]);
            }
            state.withheld.insert(name.to_owned());
            return ListedTool::Withheld;
        };
        if pinned == *tool {
            if state.server.waiting_tool(name).is_some() {
                self.change(&mut state, |server| server.note_tool(name, tool));
            }
            state.withheld.remove(name);
            return ListedTool::AsWritten;
        }
        let old = state.server.surface();
        let mut new = old.clone();
        new.tools.insert(name.to_owned(), tool.clone());
        let foreign: Vec<&str> = state.foreign.iter().map(String::as_str).collect();
        let changes = judge_drift(&old, &new, &foreign);
        let drift = changes.iter().map(|change| change.drift).max().unwrap_or(Drift::Widening);
        if state.server.waiting_tool(name) != Some(tool) {
            let reasons: Vec<String> = changes.into_iter().flat_map(|change| change.reasons).collect();
            self.change(&mut state, |server| server.note_tool(name, tool));
            self.record(&format!("tool {name}"), drift, &reasons);
        }
        match drift {
            Drift::Harmless => {
                state.withheld.remove(name);
                ListedTool::Pinned(pinned.to_string())
            }
            Drift::Widening => {
                state.withheld.insert(name.to_owned());
                ListedTool::Withheld
            }
        }
    }

    /// How a tool that is used for the first time passes for one of another server: recorded, and shown to people.
    fn imitations(&self, state: &PinState, name: &str, tool: &Value) -> Vec<String> {
        let foreign: Vec<&str> = state.foreign.iter().map(String::as_str).collect();
        let found = imitations(name, tool, &foreign);
        if !found.is_empty() {
            let event = Event::new(RecordKind::PinChanged)
                .with_code("tool-imitated")
                .with_tool(name.to_owned())
                .with_reason(format!("tool {name}: {}", found.join("; ")));
            drop(self.0.journal.append(event));
        }
        found
    }

    /// What becomes of a prompt or a resource of a list.
    fn listed_other(&self, kind: ListKind, key: &str, entry: &Value) -> ListedTool {
        let mut state = self.locked();
        let is_first = state.server.other(key).is_none() && !state.server.has_seen(list_name(kind));
        if is_first
            && !self.pin_first(&mut state, |server| server.pin_first_other(list_name(kind), key, entry))
        {
            return ListedTool::Withheld;
        }
        let pinned = state.server.other(key).cloned();
        if pinned.as_ref() == Some(entry) {
            self.change(&mut state, |server| server.note_other(key, entry));
            state.withheld.remove(key);
            return ListedTool::AsWritten;
        }
        let mut noted = state.server.clone();
        noted.note_other(key, entry);
        let changes = noted.changes().into_iter().filter(|change| waits_as(&change.subject) == key);
        let change = changes.max_by_key(|change| change.drift);
        let (drift, reasons) =
            change.map_or((Drift::Widening, Vec::new()), |change| (change.drift, change.reasons));
        if state.server.waiting_tool(key) != Some(entry) {
            self.record(key.trim_start(), drift, &reasons);
        }
        match (drift, pinned) {
            (Drift::Widening, _) => {
                self.change(&mut state, |server| server.note_other(key, entry));
                state.withheld.insert(key.to_owned());
                ListedTool::Withheld
            }
            (Drift::Harmless, Some(pinned)) => {
                self.change(&mut state, |server| server.note_other(key, entry));
                state.withheld.remove(key);
                ListedTool::Pinned(pinned.to_string())
            }
            // Lists of resources grow: a new one without a cue is pinned as it is.
            (Drift::Harmless, None) => {
                let kept = self.change(&mut state, |server| server.pin_other(key, entry));
                if kept { ListedTool::AsWritten } else { ListedTool::Withheld }
            }
        }
    }
}

/// What something waits as.
fn waits_as(subject: &PinnedSubject) -> String {
    match subject {
        PinnedSubject::Instructions => String::new(),
        PinnedSubject::Tool(name) => name.clone(),
        PinnedSubject::Prompt(name) => prompt_key(name),
        PinnedSubject::Resource(uri) => resource_key(uri),
    }
}

const fn list_name(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tools => "tools",
        ListKind::Prompts => "prompts",
        ListKind::Resources => "resources",
        ListKind::Templates => "templates",
    }
}

impl PinKeeper for KeptPins {
    fn listed(&self, kind: ListKind, name: &str, entry: &Value) -> ListedTool {
        match kind {
            ListKind::Tools => self.listed_tool(name, entry),
            ListKind::Prompts => self.listed_other(kind, &prompt_key(name), entry),
            ListKind::Resources | ListKind::Templates => self.listed_other(kind, &resource_key(name), entry),
        }
    }

    fn list_ended(&self, kind: ListKind) {
        let mut state = self.locked();
        match kind {
            ListKind::Tools => {
                state.told = Some(true);
                if !state.server.is_complete {
                    self.change(&mut state, |server| server.is_complete = true);
                }
                self.tell_leash(&state);
            }
            ListKind::Prompts | ListKind::Resources | ListKind::Templates => {
                if !state.server.has_seen(list_name(kind)) {
                    self.change(&mut state, |server| server.see_all(list_name(kind)));
                }
            }
        }
    }

    fn needs_list(&self) -> bool {
        self.locked().told.is_none()
    }

    fn list_failed(&self) {
        self.locked().told = Some(false);
    }

    fn instructions(&self, text: Option<&str>) -> Option<String> {
        let mut state = self.locked();
        let old = state.server.surface();
        if !state.server.is_complete {
            self.change(&mut state, |server| server.pin_instructions(text));
            return text.map(str::to_owned);
        }
        // Also where they are the same again: nothing waits then.
        self.change(&mut state, |server| server.note_instructions(text));
        if old.instructions.as_deref() != text {
            self.record("instructions", Drift::Harmless, &["the pinned text is sent".to_owned()]);
        }
        old.instructions
    }
}

/// Calls of tools that are withheld are denied.
impl Interceptor for KeptPins {
    fn name(&self) -> &'static str {
        "pins"
    }

    fn judge(&self, call: &Call) -> Result<Verdict, InterceptorError> {
        let state = self.locked();
        let deny = |message: String| Ok(Verdict::Deny(Denial::new(DenialCode::InterceptorDenied, message)));
        let argument = |name: &str| call.args.get(name).and_then(Value::as_str).unwrap_or_default();
        let key = match &*call.tool {
            "prompts/get" => prompt_key(argument("name")),
            "resources/read" | "resources/subscribe" => resource_key(argument("uri")),
            tool => tool.to_owned(),
        };
        let name = &state.server.name;
        if state.withheld.contains(&key) {
            return deny(format!(
                "{} is not what it was when it was first used; a person sees the change with `bailiwick pins diff {name}` and \
                 accepts it with `bailiwick pins approve {name}`",
                if key == *call.tool { format!("the tool `{key}`") } else { key.trim_start().to_owned() },
            ));
        }
        if state.told == Some(false) && state.server.tool(&key).is_some() {
            return deny(format!(
                "the server did not say what its tools are, so `{key}` cannot be compared with what it was; start the server \
                 again"
            ));
        }
        Ok(Verdict::Allow)
    }
}
