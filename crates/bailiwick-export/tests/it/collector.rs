//! The collector of `collector.py`, and what it was sent.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bailiwick_export::{Collector, CursorFile, ExportOptions, Exporter, Sink, Step};
use bailiwick_journal::Options;
use bailiwick_remote::{Client, Resolver};
use bailiwick_testkit::skip;
use serde_json::Value;

/// A collector that runs.
pub(crate) struct Running {
    child: Child,
    mode: PathBuf,
    pub(crate) port: u16,
    lines: Receiver<Value>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _may_be_gone = self.child.kill();
        let _may_be_gone = self.child.wait();
    }
}

/// The Python that `scripts/test` gives the messages to.
fn python() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let python = cache.join("bailiwick/validators/bin/python");
    let has = Command::new(&python).args(["-c", "import opentelemetry.proto.logs.v1.logs_pb2"]).output();
    has.is_ok_and(|had| had.status.success()).then_some(python)
}

impl Running {
    /// On a free port, or on one that was free before; none where the messages are not installed.
    pub(crate) fn start(dir: &Path, port: u16) -> Option<Self> {
        let Some(python) = python() else {
            skip("opentelemetry-proto is not installed; scripts/test does it");
            return None;
        };
        let mode = dir.join("mode");
        std::fs::write(&mode, "take").unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/collector.py");
        let mut child = Command::new(python)
            .arg(script)
            .arg(&mode)
            .arg(port.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        out.read_line(&mut first).unwrap();
        Some(Self { child, mode, port: first.trim().parse().expect("it says its port"), lines: follow(out) })
    }

    /// How it answers from now on.
    pub(crate) fn answer(&self, mode: &str) {
        std::fs::write(&self.mode, mode).unwrap();
    }

    /// What it took since the last time. Every request that was answered is among it.
    pub(crate) fn taken(&self) -> Taken {
        let mut requests = Vec::new();
        while let Ok(request) = self.lines.recv_timeout(Duration::from_millis(300)) {
            requests.push(request);
        }
        Taken { requests }
    }
}

fn follow(out: BufReader<ChildStdout>) -> Receiver<Value> {
    let (send, lines) = channel();
    std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            drop(send.send(serde_json::from_str(&line).unwrap()));
        }
    });
    lines
}

/// Requests, decoded.
pub(crate) struct Taken {
    pub(crate) requests: Vec<Value>,
}

impl Taken {
    fn below(&self, path: &str, names: [&str; 3]) -> Vec<&Value> {
        let requests = self.requests.iter().filter(|request| request["path"] == path);
        let mut found = requests.map(|request| &request["body"]).collect::<Vec<_>>();
        for name in names {
            found =
                found.into_iter().flat_map(|value| value[name].as_array().into_iter().flatten()).collect();
        }
        found
    }

    pub(crate) fn logs(&self) -> Vec<&Value> {
        self.below("/v1/logs", ["resourceLogs", "scopeLogs", "logRecords"])
    }

    pub(crate) fn spans(&self) -> Vec<&Value> {
        self.below("/v1/traces", ["resourceSpans", "scopeSpans", "spans"])
    }

    /// The last total of each counter, all rows together.
    pub(crate) fn totals(&self) -> BTreeMap<String, u64> {
        let mut totals = BTreeMap::new();
        for metric in self.below("/v1/metrics", ["resourceMetrics", "scopeMetrics", "metrics"]) {
            let points = metric["sum"]["dataPoints"].as_array().into_iter().flatten();
            let count = |point: &Value| point["asInt"].as_str().unwrap_or("0").parse::<u64>().unwrap();
            totals.insert(metric["name"].as_str().unwrap().to_owned(), points.map(count).sum());
        }
        totals
    }

    /// The ids of the records, in the order they came in.
    pub(crate) fn uids(&self) -> Vec<String> {
        self.logs().into_iter().map(|record| attribute(record, "log.record.uid")).collect()
    }
}

/// The text of an attribute; empty if it is not there.
pub(crate) fn attribute(of: &Value, key: &str) -> String {
    let attributes = of["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    found.map_or_else(String::new, |found| {
        found["value"]["stringValue"].as_str().unwrap_or_default().to_owned()
    })
}

/// An exporter of the journal in `dir` to this port, with a cursor beside the journal.
pub(crate) fn exporter(dir: &Path, port: u16, bound_bytes: u64) -> Exporter {
    let client = Client::new(Resolver::default(), BTreeMap::new()).unwrap();
    let headers = [("authorization".to_owned(), b"Bearer of-a-source".to_vec())];
    let resource = [("service.name".to_owned(), "bailiwick".to_owned())];
    let base = format!("http://127.0.0.1:{port}/");
    let collector = Collector::new(client, &base, headers, resource).unwrap();
    let cursor = CursorFile::lock(&dir.join("cursor").join("c.json")).unwrap();
    let options = ExportOptions { journal: dir.join("journal"), bound_bytes };
    Exporter::open(&options, Some(cursor), Sink::Otlp(Box::new(collector))).unwrap()
}

/// Steps until nothing is new; the reason if something was not taken.
pub(crate) fn drain(exporter: &mut Exporter) -> Result<usize, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut sent = 0;
    loop {
        match runtime.block_on(exporter.step()).unwrap() {
            Step::Idle => return Ok(sent),
            Step::Sent(count) => sent += count,
            Step::Failed(why, _) => return Err(why.to_string()),
        }
    }
}

/// The journal's lines are written and sealed when it is closed: where a seal stands is then known.
pub(crate) fn at_the_end() -> Options {
    Options { flush_every: Duration::from_secs(60), ..Options::default() }
}
