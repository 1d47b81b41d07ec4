//! `bailiwick log tail -f`: what is added is shown, and it ends when it should.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use bailiwick_journal::format::{Event, RecordKind};
use bailiwick_journal::{Journal, Options};

use super::Demo;
use crate::cli::command;

fn follow(demo: &Demo) -> (Child, Lines<BufReader<ChildStdout>>) {
    let dir = demo.dir();
    let mut child =
        command(&["log", "tail", "-f", "-n", "1", "--format", "json", "--dir", dir.to_str().unwrap()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("\"seq\":17,"));
    (child, lines)
}

fn append(demo: &Demo, session: &str) -> Journal {
    let journal = Journal::open(&demo.dir(), session.parse().unwrap(), Options::default()).unwrap();
    journal.append(Event::new(RecordKind::Fault).with_code("first")).unwrap();
    journal
}

/// The exit code, within a time in which a person would have lost patience.
fn end(mut child: Child) -> i32 {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(20) {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().expect("it exits by itself");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    panic!("it does not end");
}

#[test]
fn new_events_of_any_session_are_shown_until_an_interrupt() {
    let demo = Demo::new();
    let (child, mut lines) = follow(&demo);
    let journal = append(&demo, "new");
    assert!(lines.next().unwrap().unwrap().contains("\"session\":\"new\""));
    journal.append(Event::new(RecordKind::Fault).with_code("second")).unwrap();
    assert!(lines.next().unwrap().unwrap().contains("\"code\":\"second\""));
    drop(append(&demo, "demo"));
    assert!(lines.next().unwrap().unwrap().contains("\"session\":\"demo\""));
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(end(child), 0);
    assert!(lines.next().is_none());
}

#[test]
fn it_ends_when_the_output_is_closed_even_if_nothing_happens() {
    let demo = Demo::new();
    let (child, lines) = follow(&demo);
    drop(lines);
    assert_eq!(end(child), 0);
}
