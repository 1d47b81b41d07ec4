//! What the gate costs. `scripts/bench guard` prints the peer beside it.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use bailiwick_guard::{Call, Grant, Output, Registry, Session, Tool, ToolContext, ToolError};
use bailiwick_journal::{Journal, Options};
use bailiwick_manifest::caveats::{Caveats, Scope};
use divan::counter::ItemsCount;
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
    _dir: tempfile::TempDir,
    registry: Registry,
    grant: Grant,
}

fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { queue: 1 << 20, ..Options::default() };
    let journal = Journal::open(&dir.path().join("journal"), "bench".parse().unwrap(), options).unwrap();
    let registry = Registry::builder(journal, Session::new("/")).tool(Noop).build().unwrap();
    let caveats = Caveats { exec: Scope::only(["git".to_owned()]), ..Caveats::top() };
    let grant = registry.mint_grant(&caveats).unwrap();
    Bench { _dir: dir, registry, grant }
}

/// One permit, the enqueued record included. Permits are dropped, and recorded as unused, outside the measured time.
#[divan::bench(args = ["null", "small"], sample_count = 20_000, sample_size = 1)]
fn authorize(bencher: Bencher<'_, '_>, kind: &str) {
    let bench = bench();
    let args = if kind == "null" { Value::Null } else { json!({ "program": "git", "args": ["status"] }) };
    bencher.with_inputs(|| Call { tool: "noop".into(), args: args.clone() }).bench_local_values(|call| {
        bench.registry.gate().authorize(black_box(call), &bench.grant, None).is_ok()
    });
}

/// Whole calls of a tool that does nothing.
#[divan::bench(sample_count = 20)]
fn dispatch(bencher: Bencher<'_, '_>) {
    const CALLS: usize = 50_000;
    let bench = bench();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    bencher.counter(ItemsCount::new(CALLS)).bench_local(|| {
        runtime.block_on(async {
            for _ in 0..CALLS {
                bench.registry.dispatch("noop", Value::Null, &bench.grant).await.unwrap();
            }
        });
    });
}
