//! What the sandbox refused a wrapped server, in the journal as it happens: with the tool if one call was being answered, else
//! with every call that was.
//!
//! Programs, Unix sockets and names that run code later are seen always; files only with `--tell`, because looking at every open costs too
//! much. Each thing is recorded once. Residual: the sandbox says what was asked for, not by which thread of the server.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bailiwick_journal::Journal;
use bailiwick_journal::format::{Decision, Event, RecordKind};
use bailiwick_launch::{CallsInFlight, Launched, Observation, attributed};
use bailiwick_policy::denial::DenialCode;

/// How many are told to a client whose server has ended.
const SHOWN: usize = 3;

/// What was refused last, in words.
pub(super) struct SandboxRefusals(Arc<Mutex<Vec<String>>>);

impl SandboxRefusals {
    /// Records what is refused from now on.
    pub(super) fn record(
        launched: &mut Launched,
        server: &str,
        journal: &Journal,
        serving: CallsInFlight,
    ) -> Self {
        let last = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&last);
        let (server, journal) = (server.to_owned(), journal.clone());
        launched.tell_live(move |seen, when| {
            let Some(refused) = Refused::from_observation(seen) else { return };
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(refused.words.clone());
            if kept.len() > SHOWN {
                kept.remove(0);
            }
            drop(kept);
            let event = attributed(refused.event(&server), &server, &serving(when));
            // A journal that takes no more refuses the next call.
            drop(journal.append(event));
        });
        Self(last)
    }

    /// What was refused last.
    pub(super) fn last(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One refusal of the sandbox.
struct Refused {
    code: DenialCode,
    /// What the server did.
    words: String,
    /// The grant that would allow it, if that is known.
    capability: Option<String>,
}

impl Refused {
    fn from_observation(seen: &Observation) -> Option<Self> {
        let (code, verb, path, line) = match seen {
            Observation::SocketRefused(path) => return Some(Self::socket(path.as_deref())),
            Observation::SocketUnmade => return Some(Self::socket(None)),
            Observation::ProgramRefused(path) => {
                (DenialCode::ExecNotGranted, "tried to start", path, "exec:spawn")
            }
            Observation::NameRefused(path) => {
                (DenialCode::WriteNotGranted, "tried to change what runs later in", path, "fs:write")
            }
            Observation::ReadRefused(path)
            | Observation::ListRefused(path)
            | Observation::LookRefused(path) => {
                (DenialCode::ReadNotGranted, "tried to read", path, "fs:read")
            }
            Observation::WriteRefused(path) | Observation::MakeRefused(path) => {
                (DenialCode::WriteNotGranted, "tried to write", path, "fs:write")
            }
            Observation::NamespaceRefused(path) => {
                (DenialCode::ExecNotGranted, "tried to make a sandbox of its own in", path, "exec:spawn")
            }
            Observation::ShellText(_)
            | Observation::ShellScript(_)
            | Observation::Listening(_)
            | Observation::Connecting(_) => return None,
        };
        let path = path.display();
        Some(Self { code, words: format!("{verb} {path}"), capability: Some(format!("{line}:{path}")) })
    }

    /// A Unix socket; which one is known only where some are granted.
    fn socket(path: Option<&Path>) -> Self {
        let code = DenialCode::IpcNotGranted;
        let Some(path) = path.map(Path::display) else {
            return Self { code, words: "tried to make a Unix socket".to_owned(), capability: None };
        };
        let words = format!("tried to reach the Unix socket {path}");
        Self { code, words, capability: Some(format!("ipc:connect:unix:{path}")) }
    }

    fn event(&self, server: &str) -> Event {
        let event = Event::new(RecordKind::CapabilityDenied)
            .with_tool(server.to_owned())
            .with_decision(Decision::Deny)
            .with_code(self.code.as_str())
            .with_reason(format!("the server {}, and the sandbox refused it", self.words));
        self.capability.iter().fold(event, |event, capability| event.with_capability(capability.clone()))
    }
}
