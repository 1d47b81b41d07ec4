//! Many appenders share one journal; two journals never share one file.
use bailiwick_journal::{Durability, Filter, Journal, JournalFault, Options};
use bailiwick_testkit::child::{child, input, start};
use bailiwick_testkit::journal::{Dir, event, fsync, session};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::time::Duration;

#[test]
fn concurrent_appenders_are_all_recorded_under_their_numbers() {
    for (durability, each) in [(Durability::Group, 3000), (Durability::Fsync, 100)] {
        let dir = Dir::new();
        let options = Options { durability, queue: 256, ..Options::default() };
        let journal = dir.open("a", options);
        let acks: Vec<BTreeMap<u64, String>> = std::thread::scope(|scope| {
            let appender = |thread: usize| {
                let journal = journal.clone();
                scope.spawn(move || {
                    let named = (0..each).map(|n| format!("{thread}.{n}"));
                    named.map(|what| (journal.append(event(what.clone())).unwrap().seq, what)).collect()
                })
            };
            let threads: Vec<_> = (0..8).map(appender).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let last = journal.close().unwrap();
        let report = dir.verify();
        assert!(report.is_intact(), "{:?}", report.problems().collect::<Vec<_>>());
        assert_eq!(report.sessions[0].last, last);
        let expected: BTreeMap<u64, String> = acks.into_iter().flatten().collect();
        let found: BTreeMap<u64, String> = dir
            .records(Filter::default())
            .into_iter()
            .map(|record| (record.seq, record.event().unwrap().reason().unwrap().to_string()))
            .collect();
        assert_eq!(found.len(), 8 * each);
        assert_eq!(found, expected);
    }
}

#[test]
fn a_second_writer_is_refused_while_the_first_lives() {
    let dir = Dir::new();
    let first = dir.open("a", Options::default());
    let second = || Journal::open(&dir.path(), session("a"), Options::default()).err();
    assert_eq!(second(), Some(JournalFault::Locked(session("a"))));
    let other = dir.open("b", Options::default());
    first.append(event("x")).unwrap();
    first.close().unwrap();
    assert_eq!(second(), None);
    drop(other);
    assert!(dir.verify().is_intact());
}

#[test]
fn child_holds() {
    let input = input();
    let [dir] = input.as_slice() else { return };
    let journal = Journal::open(Path::new(dir), session("a"), fsync()).unwrap();
    journal.append(event("child")).unwrap();
    writeln!(std::io::stdout(), "holding").unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_second_process_is_refused_while_the_first_lives() {
    let dir = Dir::new();
    let mut holder = start(child("writers::child_holds"), &format!("{}\n", dir.path().display()));
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("holding")));
    let open = || Journal::open(&dir.path(), session("a"), Options::default());
    assert_eq!(open().err().unwrap().code(), "journal-locked");
    assert!(dir.verify().sessions[0].is_live);
    holder.kill().unwrap();
    holder.wait().unwrap();
    let journal = open().unwrap();
    assert_eq!(journal.append(event("parent")).unwrap().seq, 2);
    journal.close().unwrap();
    assert!(dir.verify().is_intact());
}

#[test]
fn a_live_journal_verifies_while_it_is_written() {
    let dir = Dir::new();
    let options = Options { flush_every: Duration::from_millis(1), ..Options::default() };
    let journal = dir.open("a", Options { segment_bytes: 100_000, ..options });
    std::thread::scope(|scope| {
        let writer = journal.clone();
        let thread = scope.spawn(move || {
            for n in 0..20_000 {
                writer.append(event(format!("{n}"))).unwrap();
            }
        });
        while !thread.is_finished() {
            let report = dir.verify();
            assert!(report.is_intact(), "{:?}", report.problems().collect::<Vec<_>>());
        }
    });
}

#[test]
fn a_closed_journal_and_a_too_large_event_are_refused() {
    let dir = Dir::new();
    let journal = dir.open("a", Options::default());
    let clone = journal.clone();
    assert_eq!(journal.append(event("\u{1}".repeat(11_000))).unwrap_err().code(), "journal-event-too-large");
    let long = event("\u{1}".repeat(10_000));
    journal.append(long.clone()).unwrap();
    journal.close().unwrap();
    assert_eq!(clone.append(event("late")).unwrap_err().code(), "journal-stopped");
    assert!(dir.verify().is_intact());
    assert_eq!(dir.records(Filter::default())[0].event().unwrap().reason(), long.reason());
}

#[test]
fn dropping_the_last_handle_writes_and_closes() {
    let dir = Dir::new();
    let journal = dir.open("a", Options { flush_every: Duration::from_secs(60), ..Options::default() });
    journal.append(event("x")).unwrap();
    drop(journal);
    assert_eq!(dir.records(Filter::default()).len(), 1);
    assert!(dir.verify().is_intact());
    assert!(std::fs::read_to_string(dir.file("index.jsonl")).unwrap().contains("index-closed"));
}

#[test]
fn events_reach_the_disk_without_being_asked_to() {
    let dir = Dir::new();
    let journal = dir.open("a", Options::default());
    // also when the writer has gone to sleep
    for round in 1..=2 {
        journal.append(event("x")).unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while dir.records(Filter::default()).len() < round {
            assert!(std::time::Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(2500));
    }
}
