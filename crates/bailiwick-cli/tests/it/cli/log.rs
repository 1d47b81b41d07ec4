//! `bailiwick log`, on journals that a real registry wrote.
//!
//! Lines of the fixture: 0–2 a call that runs; 3–5 `rm`, 6–8 a private address, 9–11 a variable, each denied in the
//! middle; 12 a path in the arguments; 13 a forbidden tool; 14–16 the second run; 17 no calls left; 18 the seal.

mod denials;
mod following;
mod tampered;

use std::path::PathBuf;

use bailiwick_journal::format::{Line, Point};
use serde_json::Value;
use tempfile::TempDir;

use super::{Ran, command, run};
use crate::journal;

/// A journal with the session `demo`, and what closing it said.
struct Demo {
    temp: TempDir,
    head: Point,
}

impl Demo {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let head = journal::write(&temp.path().join("journal"), "demo").unwrap();
        Self { temp, head }
    }

    fn dir(&self) -> PathBuf {
        self.temp.path().join("journal")
    }

    /// `bailiwick log ARGS --dir DIR`.
    fn log(&self, args: &[&str]) -> Ran {
        let dir = self.dir();
        run(&[&["log"], args, &["--dir", dir.to_str().unwrap()]].concat())
    }

    fn lines(&self, args: &[&str]) -> Vec<Value> {
        let ran = self.log(&[args, &["--format", "json"]].concat());
        assert_eq!((ran.exit, ran.err.as_str()), (0, ""), "{args:?}");
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn json(&self, args: &[&str]) -> Value {
        let ran = self.log(&[args, &["--format", "json"]].concat());
        serde_json::from_str(&ran.out)
            .unwrap_or_else(|fault| panic!("{args:?}: {fault}\n{}{}", ran.out, ran.err))
    }

    fn segment(&self) -> PathBuf {
        self.dir().join("demo.000000.jsonl")
    }
}

#[test]
fn what_goes_into_a_pipe_is_text_unless_json_is_asked_for() {
    let demo = Demo::new();
    for args in [&[][..], &["tail"], &["show", "demo:4"], &["why", "demo:4"], &["stats"], &["verify"]] {
        let (plain, text) = (demo.log(args), demo.log(&[args, &["--format", "text"]].concat()));
        assert_eq!((plain.exit, &*plain.out), (0, &*text.out), "{args:?}");
        assert!(!plain.out.is_empty() && !plain.out.starts_with('{'), "{args:?}: {}", plain.out);
        let json = demo.log(&[args, &["--format", "json"]].concat()).out;
        assert!(json.starts_with('{'), "{args:?}: {json}");
    }
}

fn seqs(lines: &[Value]) -> Vec<u64> {
    lines.iter().map(|line| line["seq"].as_u64().unwrap()).collect()
}

#[test]
fn tail_is_the_journal_line_for_line() {
    let demo = Demo::new();
    let text = std::fs::read_to_string(demo.segment()).unwrap();
    let events: Vec<&str> = text.lines().filter(|line| !line.contains("\"kind\":\"head\"")).collect();
    assert_eq!(events.len(), 18);
    assert_eq!(demo.log(&["tail", "-n", "100", "--format", "json"]).out.lines().collect::<Vec<_>>(), events);
    assert_eq!(demo.log(&["-n", "2", "--format", "json"]).out.lines().collect::<Vec<_>>(), events[16..]);
    assert_eq!(demo.log(&["-n", "0"]).out, "");
    for line in events {
        assert!(Line::parse(line.as_bytes()).unwrap().hash_holds());
    }
}

#[test]
fn tail_is_of_the_newest_session_unless_one_is_named() {
    let demo = Demo::new();
    let later = bailiwick_journal::Options { clock: || journal::NOON + 1, ..journal::still() };
    let name = "a-later-one".parse().unwrap();
    let journal = bailiwick_journal::Journal::open(&demo.dir(), name, later).unwrap();
    let event = bailiwick_journal::format::Event::new(bailiwick_journal::format::RecordKind::Fault);
    journal.append(event.with_server("s\u{1b}[2J")).unwrap();
    journal.close().unwrap();
    assert_eq!(demo.lines(&[])[0]["session"], "a-later-one");
    assert_eq!(seqs(&demo.lines(&["--session", "demo", "-n", "1"])), [17]);
    assert_eq!(demo.lines(&["--session", "nobody"]).len(), 0);
    let text = demo.log(&["tail", "--format", "text"]).out;
    assert!(
        text.contains("2026-01-01T12:00:00.000Z  a-later-one:0  -        fault  server s\\u{1b}[2J"),
        "{text}"
    );
}

#[test]
fn filters_select() {
    let demo = Demo::new();
    let select = |args: &[&str]| seqs(&demo.lines(&[&["tail", "-n", "99"], args].concat()));
    assert_eq!(select(&["--kind", "capability-denied"]), [4, 7, 10, 12, 13, 17]);
    assert_eq!(select(&["--decision", "deny", "--tool", "run"]), [4, 5, 7, 8, 10, 11, 17]);
    assert_eq!(select(&["--tool", "read"]), [12]);
    assert_eq!(select(&["--decision", "ask"]), [0_u64; 0]);
    assert_eq!(
        select(&["--since", "2026-01-01T12:00:00Z", "--until", "2026-01-01T13:00:01+01:00"]).len(),
        18
    );
    assert_eq!(select(&["--until", "2026-01-01T12:00:00Z"]), [0_u64; 0]);
    assert_eq!(select(&["--since", "2h"]), [0_u64; 0], "the fixture is older");
    assert_eq!(demo.log(&["--tool", "read", "tail"]).out, demo.log(&["tail", "--tool", "read"]).out);
    for bad in [
        &["tail", "--since", "yesterday"][..],
        &["--kind", "nonsense"],
        &["--decision", "maybe"],
        &["--session", "../x"],
        &["show"],
        &["show", "demo:x"],
        &["show", "other:1", "--session", "demo"],
        &["show", "1", "--tool", "run"],
        &["verify", "--since", "1d"],
        &["verify", "--head", "demo:1"],
        &["verify", "--key", "ABC"],
        &["export", "--format", "text"],
        &["-n", "1", "stats"],
        &["prune", "--older-than", "30"],
        &["prune", "--older-than", "30d"],
        &["prune", "--older-than", "30d", "--session", "demo", "--yes"],
    ] {
        assert_eq!(demo.log(bad).exit, 2, "{bad:?}");
    }
}

#[test]
fn an_event_is_shown_with_what_caused_it_and_what_it_caused() {
    let demo = Demo::new();
    let shown = demo.json(&["show", "demo:3"]);
    assert_eq!(shown["event"]["kind"], "tool-called");
    assert_eq!(seqs(shown["children"].as_array().unwrap()), [4, 5]);
    assert_eq!(shown["parent"], Value::Null);
    let shown = demo.json(&["show", "4"]);
    assert_eq!((&shown["parent"]["seq"], &shown["event"]["code"]), (&3.into(), &"exec-not-granted".into()));
    assert_eq!(demo.json(&["show", "18", "--session", "demo"])["event"]["kind"], "head");
    let text = demo.log(&["show", "demo:4", "--format", "text"]).out;
    assert!(text.starts_with("demo:4\n  time         2026-01-01T12:00:00.000Z\n"), "{text}");
    assert!(text.contains("  capability   exec:spawn:rm\n"), "{text}");
    assert!(
        text.contains("caused by\n  2026-01-01T12:00:00.000Z  demo:3  allow    tool-called  run\n"),
        "{text}"
    );
    let missing = demo.log(&["show", "demo:99"]);
    assert_eq!((missing.exit, missing.err.as_str()), (2, "error: session `demo` has no event 99\n"));
}

#[test]
fn stats_count() {
    let demo = Demo::new();
    let stats = demo.json(&["stats"]);
    assert_eq!((&stats["events"], &stats["sessions"]), (&18.into(), &serde_json::json!(["demo"])));
    assert_eq!(stats["decision"], serde_json::json!({ "deny": 9, "allow": 9 }));
    assert_eq!((&stats["kind"]["capability-denied"], &stats["tool"]["run"]), (&6.into(), &16.into()));
    assert_eq!(stats["code"]["budget-spent"], 1);
    assert_eq!(stats["bytes"], std::fs::metadata(demo.segment()).unwrap().len());
    assert_eq!(stats["first"], "2026-01-01T12:00:00.000Z");
    let text = demo.log(&["stats", "--tool", "read", "--format", "text"]).out;
    assert!(text.starts_with("1 event in 1 session, "), "{text}");
    assert!(text.contains("\ncode\n         1  argument-outside-policy\n"), "{text}");
}

#[test]
fn an_export_is_one_document() {
    let demo = Demo::new();
    let document = demo.json(&["export", "--decision", "deny"]);
    assert_eq!(document["format"], "bailiwick.journal/1");
    assert_eq!(seqs(document["events"].as_array().unwrap()), [4, 5, 7, 8, 10, 11, 12, 13, 17]);
    assert_eq!(document["unreadable"], serde_json::json!([]));
    assert_eq!(demo.json(&["export", "--tool", "nobody"])["events"], serde_json::json!([]));
    let out = demo.temp.path().join("out.json");
    let ran = demo.log(&["export", "--format", "json", "--out", out.to_str().unwrap()]);
    assert_eq!((ran.exit, ran.err.as_str()), (0, ""));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), demo.log(&["export"]).out);
    let nowhere = demo.temp.path().join("no/where.json");
    assert_eq!(demo.log(&["export", "--out", nowhere.to_str().unwrap()]).exit, 5);
}

#[test]
fn the_directory_is_found_where_it_is_by_default() {
    let demo = Demo::new();
    let home = demo.temp.path();
    std::fs::create_dir_all(home.join(".local/state/bailiwick")).unwrap();
    std::fs::rename(demo.dir(), home.join(".local/state/bailiwick/journal")).unwrap();
    let exit = |name: &str, value: &std::path::Path| {
        let output = command(&["log", "stats"]).env_remove("HOME").env(name, value).output().unwrap();
        output.status.code().unwrap()
    };
    assert_eq!(exit("HOME", home), 0);
    assert_eq!(exit("XDG_STATE_HOME", &home.join(".local/state")), 0);
    assert_eq!(exit("XDG_STATE_HOME", home), 3, "there is none");
    assert_eq!(exit("XDG_STATE_HOME", "relative".as_ref()), 2, "neither says where");
}

#[test]
fn old_segments_are_removed_and_the_rest_still_verifies() {
    let demo = Demo::new();
    let kept = demo.json(&["prune", "--older-than", "5200w", "--yes"]);
    assert_eq!(kept["sessions"], serde_json::json!([]));
    let removed = demo.log(&["prune", "--older-than", "1d", "--yes", "--format", "text"]);
    assert_eq!(
        (removed.exit, removed.out.as_str()),
        (0, "removed: demo: 1 segment, up to line 18 (all of it)\n")
    );
    assert!(!demo.segment().exists());
    assert_eq!(demo.log(&["verify"]).exit, 0);
    let head = format!("demo:18:{}", demo.head.hash);
    assert_eq!(demo.log(&["verify", "--head", &head]).exit, 0, "the tombstone knows the last line");
    assert_eq!(demo.json(&["verify", "--session", "demo"])["sessions"][0]["removed_up_to"]["seq"], 18);
}
