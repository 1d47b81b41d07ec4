//! A console with a journal, a store of approvals and a manifest of its own.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bailiwick_console::{Console, ConsoleHost, ConsoleOptions, HostFault, ManifestPlace, OneTimeCode};
use bailiwick_door::Listening;
use bailiwick_guardrails::State;
use bailiwick_guardrails::approvals::{Consulted, Question, consult};
use bailiwick_journal::format::Event;
use bailiwick_journal::{Journal, Options};
use bailiwick_policy::capability::Capability;
use bailiwick_policy::digest::Digest;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::{Address, post};

/// The manifest that is shipped for the server of the session `shipped`.
pub(crate) const SHIPPED: &str =
    "name = 'n'\nversion = '1'\n\n[[tools]]\nname = 'read'\ncapabilities = ['fs:read:/shipped/**']\n";

/// What a console did to its host.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) recorded: Vec<Event>,
    pub(crate) granted: Vec<String>,
    pub(crate) codes: Vec<String>,
    pub(crate) accepted: Vec<String>,
}

struct TestHost {
    manifest: PathBuf,
    now: Arc<AtomicU64>,
    done: Arc<Mutex<Done>>,
}

impl ConsoleHost for TestHost {
    fn now_us(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    fn servers(&self) -> Result<Vec<Value>, HostFault> {
        Ok(Vec::new())
    }

    fn pins(&self) -> Result<Vec<Value>, HostFault> {
        Err(HostFault("the pins are damaged".to_owned()))
    }

    fn accept_pins(&self, identity: &str, seen: &str) -> Result<bool, HostFault> {
        self.done.lock().unwrap().accepted.push(identity.to_owned());
        Ok(seen == "this")
    }

    fn manifest_of(&self, session: &str) -> Option<ManifestPlace> {
        let shipped = match session {
            "s" => None,
            "shipped" => Some(SHIPPED.to_owned()),
            _ => return None,
        };
        let file = self.manifest.clone();
        Some(ManifestPlace { file, identity: "i".to_owned(), project: "/p".to_owned(), shipped })
    }

    fn replace_file(&self, file: &Path, text: &str) -> Result<(), HostFault> {
        std::fs::write(file, text).map_err(|error| HostFault(error.to_string()))
    }

    fn remove_file(&self, file: &Path) -> Result<(), HostFault> {
        std::fs::remove_file(file).map_err(|error| HostFault(error.to_string()))
    }

    fn note_grant(&self, _: &ManifestPlace, tool: &str, lines: &[Capability]) -> Result<(), HostFault> {
        let lines = lines.iter().map(|line| format!("{tool} {line}"));
        self.done.lock().unwrap().granted.extend(lines);
        Ok(())
    }

    fn forget_grant(&self, _: &ManifestPlace, _: &str, _: &[Capability]) -> Result<(), HostFault> {
        self.done.lock().unwrap().granted.clear();
        Ok(())
    }

    fn show_code(&self, code: &OneTimeCode) {
        self.done.lock().unwrap().codes.push(code.reveal().to_owned());
    }

    fn record(&self, event: Event) {
        self.done.lock().unwrap().recorded.push(event);
    }
}

/// A console that is served, and what it is served from.
pub(crate) struct Room {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) at: Address,
    pub(crate) code: String,
    pub(crate) done: Arc<Mutex<Done>>,
    /// The console's clock, in microseconds.
    pub(crate) now: Arc<AtomicU64>,
    served: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Room {
    pub(crate) async fn new() -> Self {
        Self::serving(tempfile::tempdir().unwrap(), false).await
    }

    pub(crate) async fn watching() -> Self {
        Self::serving(tempfile::tempdir().unwrap(), true).await
    }

    async fn serving(dir: tempfile::TempDir, watches_only: bool) -> Self {
        let state = State::open(&dir.path().join("state")).unwrap();
        let options = ConsoleOptions { journal: dir.path().join("journal"), state, watches_only };
        let done = Arc::<Mutex<Done>>::default();
        let now = Arc::new(AtomicU64::new(1_000_000));
        let host =
            TestHost { manifest: dir.path().join("m.toml"), now: Arc::clone(&now), done: Arc::clone(&done) };
        let (console, token, code) = Console::new(options, host, None).unwrap();
        let listening = Listening::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let at = Address { port: listening.port(), token: String::new() };
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(console.serve(listening, token, async { drop(stopped.await) }));
        Self { dir, at, code: code.reveal().to_owned(), done, now, served: Some((stop, serving)) }
    }

    /// The same with the token, as the page has it.
    pub(crate) async fn entered(mut self) -> Self {
        let heard = post(&self.at, "/enter", &self.code).await;
        self.at.token = heard.json()["token"].as_str().expect("a token").to_owned();
        self
    }

    /// Ends the console and starts another over the same files; the next page comes in anew.
    pub(crate) async fn restarted(mut self) -> Self {
        let (stop, serving) = self.served.take().unwrap();
        drop(stop);
        serving.await.unwrap();
        let Self { dir, .. } = self;
        Self::serving(dir, false).await.entered().await
    }

    pub(crate) fn journal(&self, session: &str) -> Journal {
        let dir = self.dir.path().join("journal");
        Journal::open(&dir, session.parse().unwrap(), Options::default()).unwrap()
    }

    /// Has a call wait for a person: its id and its digest.
    pub(crate) fn wait_for(&self, tool: &str, arguments: &str, of_session: bool) -> (String, String) {
        let digest = Digest::sha256(format!("{tool}{arguments}").as_bytes());
        let asked = Question {
            digest,
            tool,
            arguments,
            question: "may it?",
            now: 1,
            of_session,
            lasting: Some(digest),
        };
        let Consulted::Waiting(id) = consult(&self.state(), &asked).unwrap() else { panic!("it waits") };
        (id, digest.to_string())
    }

    pub(crate) fn state(&self) -> State {
        State::open(&self.dir.path().join("state")).unwrap()
    }
}
