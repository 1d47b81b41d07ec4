//! What a collector decodes, field by field, and what becomes of it when the collector is down, or the exporter.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use bailiwick_journal::format::{Decision, Enforcement, Event, RecordKind};
use bailiwick_journal::{Filter, Journal};
use bailiwick_testkit::journal::{all_records, event, session};
use serde_json::Value;

use crate::collector::{Running, at_the_end, attribute, drain, exporter};

const PLENTY: u64 = 1 << 30;

const HOSTILE: [&str; 5] = [
    "<script>alert(1)</script>",
    "\u{202e}gnp.exe\u{200b}",
    "{{7*7}} ${jndi:ldap://x} %s %n",
    "\u{1b}[2J\u{0}\u{9b}31m",
    "'; DROP TABLE logs; --",
];

fn write(dir: &Path, name: &str, events: impl IntoIterator<Item = Event>) {
    let journal = Journal::open(&dir.join("journal"), session(name), at_the_end()).unwrap();
    for event in events {
        journal.append(event).unwrap();
    }
    journal.close().unwrap();
}

/// The hashes of all events of the journal.
fn recorded(dir: &Path) -> BTreeSet<String> {
    all_records(&dir.join("journal"), Filter::default())
        .into_iter()
        .map(|record| record.hash.to_string())
        .collect()
}

/// A call that was let through and denied a host, and one that was refused.
fn story() -> Vec<Event> {
    let of = |kind| Event::new(kind).with_tool("shell");
    vec![
        of(RecordKind::ToolCalled)
            .with_decision(Decision::Allow)
            .with_args("{\"script\":\"curl\"}")
            .with_server("s"),
        of(RecordKind::SandboxStarted)
            .with_parent(0)
            .with_enforcement(Enforcement::new([("files", "kernel")]).unwrap()),
        of(RecordKind::EgressDenied)
            .with_parent(1)
            .with_decision(Decision::Deny)
            .with_code("net-not-granted")
            .with_capability("net:connect:evil.example:443"),
        of(RecordKind::SandboxEnded).with_parent(1).with_duration_us(30_000),
        of(RecordKind::ToolFinished).with_parent(0).with_duration_us(40_000),
        of(RecordKind::CapabilityDenied)
            .with_decision(Decision::Deny)
            .with_code("tool-forbidden")
            .with_reason("no"),
    ]
}

#[test]
fn what_was_recorded_is_decoded_by_another_implementation() {
    let dir = tempfile::tempdir().unwrap();
    let Some(collector) = Running::start(dir.path(), 0) else { return };
    write(dir.path(), "story", story());
    assert_eq!(drain(&mut exporter(dir.path(), collector.port, PLENTY)), Ok(6));
    let taken = collector.taken();
    assert!(taken.requests.iter().all(|request| request["headers"]["authorization"] == "Bearer of-a-source"));

    let records = all_records(&dir.path().join("journal"), Filter::default());
    let logs = taken.logs();
    assert_eq!((logs.len(), records.len()), (6, 6));
    for (log, record) in logs.iter().zip(&records) {
        let event = record.event().unwrap();
        assert_eq!(attribute(log, "log.record.uid"), record.hash.to_string());
        assert_eq!(attribute(log, "bailiwick.event.id"), format!("story:{}", record.seq));
        assert_eq!(log["timeUnixNano"], (event.time() * 1000).to_string());
        assert_eq!(log["eventName"], format!("bailiwick.{}", event.kind().name()));
        assert_eq!(attribute(log, "gen_ai.tool.name"), "shell");
        assert_eq!(attribute(log, "bailiwick.code"), event.code().unwrap_or_default());
        assert_eq!(attribute(log, "bailiwick.capability"), event.capability().unwrap_or_default());
        assert_eq!(attribute(log, "gen_ai.tool.call.arguments"), event.args().unwrap_or_default());
        let is_denial = event.decision() == Some(Decision::Deny);
        assert_eq!(log["severityText"], if is_denial { "WARN" } else { "INFO" });
        assert_eq!(attribute(log, "error.type").is_empty(), !is_denial);
    }
    assert_eq!(attribute(logs[0], "mcp.method.name"), "tools/call");
    assert_eq!(attribute(logs[0], "gen_ai.operation.name"), "execute_tool");
    assert_eq!(attribute(logs[1], "bailiwick.enforcement.files"), "kernel");

    spans_are_one_trace(&taken.spans());
    let totals = taken.totals();
    let expected = [
        ("bailiwick.calls", 2),
        ("bailiwick.denials", 2),
        ("bailiwick.sandbox.starts", 1),
        ("bailiwick.egress", 1),
    ];
    for (name, count) in expected {
        assert_eq!(totals[name], count, "{name}");
    }
    let text = serde_json::to_string(&taken.requests).unwrap();
    assert!(text.contains("mcp.server.operation.duration") && text.contains("\"bucketCounts\""), "{text}");
}

fn spans_are_one_trace(spans: &[&Value]) {
    let named = |name: &str| {
        *spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{name}: {spans:?}"))
    };
    let call = spans.iter().find(|span| {
        span["name"] == "tools/call shell" && span["endTimeUnixNano"] != span["startTimeUnixNano"]
    });
    let call = call.unwrap();
    let (gate, sandbox, egress) = (named("gate shell"), named("sandbox shell"), named("egress shell"));
    for span in [gate, sandbox, egress] {
        assert_eq!(span["traceId"], call["traceId"], "{span}");
    }
    assert_eq!((&gate["parentSpanId"], &sandbox["parentSpanId"]), (&call["spanId"], &call["spanId"]));
    assert_eq!(egress["parentSpanId"], sandbox["spanId"]);
    assert_eq!(egress["status"]["code"], "STATUS_CODE_ERROR");
    let nanoseconds = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
    assert_eq!(nanoseconds(call, "endTimeUnixNano") - nanoseconds(call, "startTimeUnixNano"), 40_000_000);
}

#[test]
fn hostile_text_arrives_as_text() {
    let dir = tempfile::tempdir().unwrap();
    let Some(collector) = Running::start(dir.path(), 0) else { return };
    let in_each_field = |text: &&'static str| {
        Event::new(RecordKind::CapabilityDenied)
            .with_tool(*text)
            .with_server(*text)
            .with_code(*text)
            .with_reason(*text)
            .with_capability(*text)
            .with_args(*text)
            .with_decision(Decision::Deny)
    };
    write(dir.path(), "hostile", HOSTILE.iter().map(in_each_field));
    drain(&mut exporter(dir.path(), collector.port, PLENTY)).unwrap();
    let taken = collector.taken();
    let logs = taken.logs();
    assert_eq!(logs.len(), HOSTILE.len());
    for (log, text) in logs.iter().zip(HOSTILE) {
        for key in [
            "gen_ai.tool.name",
            "bailiwick.server",
            "bailiwick.code",
            "bailiwick.reason",
            "bailiwick.capability",
            "gen_ai.tool.call.arguments",
        ] {
            assert_eq!(attribute(log, key), text, "{key}");
        }
    }
    assert_eq!(taken.spans().len(), 2 * HOSTILE.len());
}

#[test]
fn a_collector_that_is_down_costs_nothing_up_to_the_bound() {
    let dir = tempfile::tempdir().unwrap();
    let Some(collector) = Running::start(dir.path(), 0) else { return };
    let port = collector.port;
    write(dir.path(), "before", (0..200).map(|number| event(format!("before {number}"))));
    let mut own = exporter(dir.path(), port, PLENTY);
    drain(&mut own).unwrap();
    let mut uids = collector.taken().uids();
    drop(collector);
    // As many events as a busy hour has, while there is no collector, or one that takes nothing.
    write(dir.path(), "during", (0..15_000).map(|number| event(format!("during {number}"))));
    assert!(drain(&mut own).unwrap_err().contains("cannot connect"), "nothing listens");
    drop(own);
    let collector = Running::start(dir.path(), port).unwrap();
    collector.answer("503");
    let mut own = exporter(dir.path(), port, PLENTY);
    for _ in 0..3 {
        assert!(drain(&mut own).unwrap_err().contains("503"));
    }
    collector.answer("take");
    assert_eq!(drain(&mut own), Ok(15_000));
    let taken = collector.taken();
    uids.extend(taken.uids());
    assert_eq!(uids.len(), 15_200, "each once");
    assert_eq!(uids.into_iter().collect::<BTreeSet<_>>(), recorded(dir.path()));
    let totals = taken.totals();
    assert_eq!((totals["bailiwick.calls"], totals["bailiwick.export.skipped"]), (15_200, 0));
}

#[test]
fn what_lies_beyond_the_bound_is_counted_and_said() {
    let dir = tempfile::tempdir().unwrap();
    let Some(collector) = Running::start(dir.path(), 0) else { return };
    write(dir.path(), "long", (0..6_000).map(|number| event(format!("event {number}"))));
    let bound = 512 * 1024;
    let sent = drain(&mut exporter(dir.path(), collector.port, bound)).unwrap();
    let taken = collector.taken();
    let skipped = taken.totals()["bailiwick.export.skipped"];
    assert_eq!(taken.uids().len(), sent);
    assert_eq!(sent as u64 + skipped, 6_000);
    assert!(skipped > 0 && sent > 500, "{skipped} of 6,000");
    assert_eq!(taken.totals()["bailiwick.calls"], 6_000, "what is skipped is counted as what it was");
    // The newest are those that arrive.
    let last = taken.logs().last().copied().unwrap().clone();
    assert_eq!(last["body"]["stringValue"], "event 5999");
}

#[test]
fn an_exporter_that_was_killed_sends_the_same_again_under_the_same_ids() {
    let dir = tempfile::tempdir().unwrap();
    let Some(collector) = Running::start(dir.path(), 0) else { return };
    let cursor = dir.path().join("cursor/c.json");
    write(dir.path(), "one", story());
    drain(&mut exporter(dir.path(), collector.port, PLENTY)).unwrap();
    let kept = fs::read(&cursor).unwrap();
    collector.taken();
    write(dir.path(), "two", story());
    drain(&mut exporter(dir.path(), collector.port, PLENTY)).unwrap();
    let first = collector.taken();
    // Killed before the cursor was kept: it stands where it stood.
    fs::write(&cursor, kept).unwrap();
    drain(&mut exporter(dir.path(), collector.port, PLENTY)).unwrap();
    let second = collector.taken();
    assert_eq!((first.uids(), first.uids().len()), (second.uids(), 6));
    let ids = |spans: Vec<&Value>| {
        spans.iter().map(|span| (span["traceId"].clone(), span["spanId"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(ids(first.spans()), ids(second.spans()));
    assert_eq!(first.totals(), second.totals(), "totals do not count twice");
    let distinct: BTreeSet<String> = ids(first.spans()).iter().map(|(_, span)| span.to_string()).collect();
    assert_eq!(distinct.len(), first.spans().len(), "a span has its id alone");
}

#[test]
fn what_the_collector_never_takes_is_counted_and_the_rest_arrives() {
    let dir = tempfile::tempdir().unwrap();
    let Some(collector) = Running::start(dir.path(), 0) else { return };
    let poison = |number| if number == 37 { event("poison") } else { event(format!("fine {number}")) };
    write(dir.path(), "mixed", (0..100).map(poison));
    collector.answer("400 poison");
    let mut own = exporter(dir.path(), collector.port, PLENTY);
    drain(&mut own).unwrap();
    let taken = collector.taken();
    assert_eq!(taken.uids().len(), 99);
    // The record, and the span of its gate.
    assert_eq!(own.counts().rejected, 2);
    assert_eq!(taken.totals()["bailiwick.export.rejected"], 2);
    collector.answer("partial");
    write(dir.path(), "partial", [event("one")]);
    drain(&mut own).unwrap();
    assert_eq!(own.counts().rejected, 3);
}

#[test]
fn what_no_seal_follows_waits() {
    let dir = tempfile::tempdir().unwrap();
    let Some(collector) = Running::start(dir.path(), 0) else { return };
    write(dir.path(), "sealed", [event("one")]);
    let file = dir.path().join("journal/sealed.000000.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    let unsealed: String = whole.lines().take(1).map(|line| format!("{line}\n")).collect();
    fs::write(&file, unsealed).unwrap();
    let mut own = exporter(dir.path(), collector.port, PLENTY);
    assert_eq!(drain(&mut own), Ok(0));
    fs::write(&file, whole).unwrap();
    assert_eq!(drain(&mut own), Ok(1));
    assert_eq!(collector.taken().uids().len(), 1);
}

#[test]
fn lines_that_were_removed_or_spoilt_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let Some(collector) = Running::start(dir.path(), 0) else { return };
    write(dir.path(), "holes", (0..10).map(|number| event(format!("event {number}"))));
    let file = dir.path().join("journal/holes.000000.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let spoilt: Vec<String> = text
        .lines()
        .enumerate()
        .filter(|(at, _)| !(2..5).contains(at))
        .map(|(at, line)| if at == 7 { "spoilt\n".to_owned() } else { format!("{line}\n") })
        .collect();
    fs::write(&file, spoilt.concat()).unwrap();
    let mut own = exporter(dir.path(), collector.port, PLENTY);
    drain(&mut own).unwrap();
    assert_eq!((own.counts().removed, own.counts().unreadable), (3, 1));
    assert_eq!(collector.taken().uids().len(), 6);
}
