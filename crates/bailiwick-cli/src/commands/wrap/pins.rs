//! The pins of a wrapped server while it runs: what is sent, what is withheld, and the gate's part in it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bailiwick_guard::{Call, Interceptor, InterceptorError, Verdict};
use bailiwick_journal::Journal;
use bailiwick_journal::format::{Event, Kind};
use bailiwick_mcp::relay::{ListedTool, PinKeeper};
use bailiwick_pins::{Drift, PinnedSubject, judge_drift};
use bailiwick_policy::denial::{Denial, DenialCode};
use serde_json::Value;

use crate::pin_store::{PinFile, PinnedServer};

/// The pins of one server. Clones are the same.
#[derive(Clone)]
pub(super) struct KeptPins(Arc<Kept>);

struct Kept {
    file: PinFile,
    journal: Journal,
    state: Mutex<PinState>,
}

struct PinState {
    server: PinnedServer,
    withheld: BTreeSet<String>,
}

impl KeptPins {
    /// Reads the pins of a server, which is new if there are none.
    ///
    /// # Errors
    /// If they are there and cannot be read.
    pub(super) fn open(name: &str, identity: &str, journal: &Journal) -> anyhow::Result<Self> {
        let file = PinFile::of(identity)?;
        let server = file.read()?.unwrap_or_else(|| PinnedServer::new(name, identity));
        let changes = server.changes();
        let tools = changes.iter().filter(|change| change.drift == Drift::Widening);
        let withheld = tools.filter_map(|change| match &change.subject {
            PinnedSubject::Tool(name) => Some(name.clone()),
            PinnedSubject::Instructions | PinnedSubject::Prompt(_) => None,
        });
        let state = Mutex::new(PinState { withheld: withheld.collect(), server });
        Ok(Self(Arc::new(Kept { file, journal: journal.clone(), state })))
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

    fn record(&self, subject: &str, drift: Drift, reasons: &[String]) {
        let event = Event::new(Kind::PinChanged)
            .with_code(drift.as_str())
            .with_reason(format!("{subject}: {}", reasons.join("; ")));
        drop(self.0.journal.append(event));
    }
}

impl PinKeeper for KeptPins {
    fn listed(&self, name: &str, tool: &Value) -> ListedTool {
        let mut state = self.locked();
        let Some(pinned) = state.server.tool(name).cloned() else {
            if !state.server.is_complete {
                let kept = self.change(&mut state, |server| server.pin_tool(name, tool));
                return if kept { ListedTool::AsWritten } else { ListedTool::Withheld };
            }
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
        let changes = judge_drift(&old, &new, &[]);
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

    fn list_ended(&self) {
        let mut state = self.locked();
        if !state.server.is_complete {
            self.change(&mut state, |server| server.is_complete = true);
        }
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
        if !state.withheld.contains(&*call.tool) {
            return Ok(Verdict::Allow);
        }
        let message = format!(
            "the tool `{}` is not what it was when it was first used; a person sees the change with `bailiwick pins diff {}` \
             and accepts it with `bailiwick pins approve {}`",
            call.tool, state.server.name, state.server.name
        );
        Ok(Verdict::Deny(Denial::new(DenialCode::InterceptorDenied, message)))
    }
}
