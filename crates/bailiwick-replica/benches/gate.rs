//! What a decision of the gate costs on a machine in a fleet: without it, held to the log, and held to it with a grant of the log that may end.
//!
//! The log is looked at aside all the while, ten times a second. `scripts/bench gate` runs it.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use bailiwick_fleet::entry::{EntryBody, Grant as LogGrant, Scope as Machines};
use bailiwick_guard::{Call, Grant, Output, Registry, Session, Tool, ToolContext, ToolError};
use bailiwick_journal::{Journal, Options};
use bailiwick_manifest::caveats::{Caveats, Scope};
use bailiwick_remote::{Client, Resolver};
use bailiwick_replica::{CopyStore, Leash, Replica, ServerIdentity, ServerRules};
use bailiwick_testkit::fleet::{LogServer, TestLog, enrolment};
use divan::{Bencher, black_box};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

/// A tool that does nothing.
struct Noop;

impl Tool for Noop {
    fn name(&self) -> &str {
        "noop"
    }

    fn schema(&self) -> Value {
        Value::Null
    }

    async fn invoke(&self, _: Value, _: &ToolContext) -> Result<Output, ToolError> {
        Ok(Output::default())
    }
}

struct Bench {
    dir: tempfile::TempDir,
    registry: Registry,
    grant: Grant,
}

fn leash(dir: &std::path::Path, has_grant: bool) -> Leash {
    let grant = EntryBody::Grant(LogGrant {
        id: "g1".to_owned(),
        scope: Machines::Every,
        server: "files".to_owned(),
        grant: String::new(),
        expires_ms: None,
        max_stale_s: None,
    });
    let server = LogServer::start(TestLog::with([grant]).files());
    let mut enrolment = enrolment(&[&server.url]);
    enrolment.authoritative = has_grant;
    let client =
        Arc::new(|| Client::new(Resolver::default(), BTreeMap::new()).map_err(|why| why.to_string()));
    let replica = Replica::open(CopyStore::new(dir, &enrolment), client).unwrap();
    let rules = ServerRules::now(&replica, ServerIdentity::named(["files"])).unwrap();
    assert_eq!(rules.grant().is_some(), has_grant);
    Leash::new(&replica, rules, |_| {}).unwrap()
}

fn bench(fleet: &str) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { queue: 1 << 20, ..Options::default() };
    let journal = Journal::open(&dir.path().join("journal"), "bench".parse().unwrap(), options).unwrap();
    let builder = Registry::builder(journal, Session::new("/")).tool(Noop);
    let builder = match fleet {
        "off" => builder,
        grant => builder.interceptor(leash(dir.path(), grant == "grant")),
    };
    let registry = builder.build().unwrap();
    let caveats = Caveats { exec: Scope::only(["git".to_owned()]), ..Caveats::top() };
    let grant = registry.mint_grant(&caveats).unwrap();
    Bench { dir, registry, grant }
}

/// One permit, the enqueued record included. Permits are dropped, and recorded as unused, outside the measured time.
#[divan::bench(args = ["off", "on", "grant", "off", "on", "grant"], sample_count = 20_000, sample_size = 1)]
fn authorize(bencher: Bencher<'_, '_>, fleet: &str) {
    let bench = bench(fleet);
    let args = json!({ "program": "git", "args": ["status"] });
    bencher.with_inputs(|| Call { tool: "noop".into(), args: args.clone() }).bench_local_values(|call| {
        bench.registry.gate().authorize(black_box(call), &bench.grant, None).is_ok()
    });
    drop(bench.dir);
}
