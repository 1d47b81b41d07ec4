//! Real journals for tests and documents: written by a registry whose gate lets some calls through and not others.
//!
//! The clock stands still and nothing is flushed in between, so that every line but its hashes is known.

use std::path::Path;
use std::time::Duration;

use bailiwick_guard::{Output, Registry, Session, Tool, ToolContext, ToolError};
use bailiwick_journal::format::Point;
use bailiwick_journal::{Journal, Options};
use bailiwick_manifest::Manifest;
use bailiwick_manifest::caveats::{Caveats, Scope};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::lattice::CountBound;
use serde_json::{Value, json};

const MANIFEST: &str = r#"
name = "demo"
version = "1.0.0"

[[tools]]
name = "run"
capabilities = ["exec:spawn:git", "exec:spawn:rm", "net:connect:api.example.com:443", "env:read:LANG"]

[[tools]]
name = "read"
capabilities = ["fs:read:/srv/notes/**"]

[[tools]]
name = "drop"
constraints.forbidden = true
"#;

/// Noon of the first day of 2026, at all times.
pub(crate) const NOON: u64 = 1_767_268_800_000_000;

/// A tool that does nothing but ask whether it may.
struct Asks(&'static str);

impl Tool for Asks {
    fn name(&self) -> &str {
        self.0
    }

    fn schema(&self) -> Value {
        json!({})
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
        for (key, value) in args.as_object().into_iter().flatten() {
            let text = value.as_str().unwrap_or_default();
            match key.as_str() {
                "program" => context.check_exec(text)?,
                "host" => context.check_net(text, 443)?,
                "variable" => drop(context.env(text)?),
                _ => {}
            }
        }
        Ok(Output::default())
    }
}

/// How a journal of the fixture is written: only closing it flushes.
pub(crate) fn still() -> Options {
    Options { flush_every: Duration::from_secs(3600), clock: || NOON, ..Options::default() }
}

/// Writes a session of eight calls, most of them denied something. The last line is worth keeping.
pub(crate) fn write(dir: &Path, session: &str) -> Option<Point> {
    let journal = Journal::open(dir, session.parse().unwrap(), still()).unwrap();
    let checked = Manifest::parse(MANIFEST).unwrap().check(&HostFacts::unknown()).unwrap();
    let surroundings = Session::new("/srv").with_top_level(["etc".to_owned(), "srv".to_owned()]);
    let registry = Registry::builder(journal.clone(), surroundings)
        .tool(Asks("run"))
        .tool(Asks("read"))
        .tool(Asks("drop"))
        .manifest(&checked)
        .build()
        .unwrap();
    let exec = Scope::only(["git".to_owned(), "make".to_owned()]);
    let grant =
        registry.mint_grant(&Caveats { exec, max_calls: CountBound::AtMost(2), ..Caveats::top() }).unwrap();
    let calls = [
        ("run", json!({ "program": "git" })),
        ("run", json!({ "program": "rm" })),
        ("run", json!({ "host": "169.254.169.254" })),
        ("run", json!({ "variable": "TOKEN" })),
        ("read", json!({ "path": "/etc/hosts" })),
        ("drop", json!({})),
        ("run", json!({ "program": "git" })),
        ("run", json!({ "program": "git" })),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for (tool, args) in calls {
        drop(runtime.block_on(registry.dispatch(tool, args, &grant)));
    }
    drop(registry);
    journal.close().unwrap()
}
