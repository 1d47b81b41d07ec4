//! Bailiwick.

use std::hint::black_box;

use bailiwick_journal::{Journal, Options};
use bailiwick_guard::{Output, Registry, Session, Tool, ToolContext, ToolError};
use bailiwick_policy::authority::{Authority, Request, Spawn};
use bailiwick_policy::capability::{CapabilitySet, Program};
use bailiwick_manifest::caveats::Caveats;
use bailiwick_policy::net::{Host, NetRequest, Speak};
use bailiwick_policy::path::AbsPath;

fn session() -> Authority {
    let set = CapabilitySet::new([
        "fs:read,write:/workspace/**",
        "net:connect:api.github.com:443",
        "exec:spawn:git",
        "exec:spawn:cargo",
        "env:inject:GITHUB_TOKEN",
        "clock:system",
    ]);
    set.expect("valid").authority().clone()
}

fn asking(request: Request) -> impl FnMut() -> bool {
    let authority = session();
    move || black_box(&authority).allows(black_box(&request))
}

pub fn spawn(name: &str) -> impl FnMut() -> bool + use<> {
    asking(Request::Spawn(Spawn::plain(Program::Name(name.into()))))
}

pub fn reach(host: &str) -> impl FnMut() -> bool + use<> {
    asking(Request::Net(NetRequest::new(Host::new(host).expect("a host"), 443, Speak::Tls)))
}

/// Whole calls through a registry, each recorded twice in a journal on disk.
pub fn dispatch() -> impl FnMut() -> bool {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options { queue: 1 << 20, ..Options::default() };
    let journal = Journal::open(&dir.path().join("journal"), "peers".parse().expect("a name"), options);
    let registry = Registry::builder(journal.expect("a journal"), Session::new("/")).tool(Noop).build();
    let registry = registry.expect("a registry");
    let grant = registry.mint_grant(&Caveats::top()).expect("a grant");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    move || {
        let _ = &dir;
        runtime.block_on(registry.dispatch("noop", serde_json::Value::Null, &grant)).is_ok()
    }
}

struct Noop;

impl Tool for Noop {
    fn name(&self) -> &str {
        "noop"
    }

    fn schema(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    async fn invoke(&self, _: serde_json::Value, _: &ToolContext) -> Result<Output, ToolError> {
        Ok(Output::default())
    }
}

pub fn write(path: &str) -> impl FnMut() -> bool + use<> {
    asking(Request::Write(AbsPath::new(path).expect("a path")))
}
