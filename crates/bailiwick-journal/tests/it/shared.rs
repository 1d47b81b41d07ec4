//! The shared journal of a day: many writers, one session, and what is left when they are killed or files are changed.
use bailiwick_journal::format::Record;
use bailiwick_journal::{Expected, Filter, JournalFault, Retained, SharedJournal, now_us, retain, verify};
use bailiwick_testkit::child::{child, input, start};
use bailiwick_testkit::journal::{Dir, event};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn open(dir: &Dir) -> SharedJournal {
    SharedJournal::open(&dir.path()).unwrap()
}

fn segment(dir: &Dir) -> PathBuf {
    dir.file(&format!("{}.000000.jsonl", open(dir).session()))
}

fn head(dir: &Dir) -> PathBuf {
    dir.file(&format!("{}.head", open(dir).session()))
}

/// One run: a line that begins it, one that names the first as its parent.
fn one_run(journal: &SharedJournal, what: &str) {
    let began = journal.append([event(format!("{what} began"))]).unwrap().seq;
    journal.append([event(format!("{what} ended")).with_parent(began)]).unwrap();
}

fn reasons(dir: &Dir) -> Vec<String> {
    let reason =
        |record: Record| record.event().and_then(|event| event.reason()).unwrap_or_default().to_owned();
    dir.records(Filter::default()).into_iter().map(reason).collect()
}

fn assert_intact(dir: &Dir) {
    let report = dir.verify();
    assert!(report.is_intact(), "{:?}", report.problems().collect::<Vec<_>>());
}

#[test]
fn many_writers_share_one_session_and_lose_nothing() {
    let dir = Dir::new();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let journal = open(&dir);
            scope.spawn(move || (0..25).for_each(|n| one_run(&journal, &format!("{thread}.{n}"))));
        }
    });
    assert_intact(&dir);
    let records = dir.records(Filter::default());
    assert_eq!(records.len(), 2 * 8 * 25);
    for record in &records {
        let event = record.event().unwrap();
        let Some(parent) = event.parent() else { continue };
        let began = records.iter().find(|one| one.seq == parent).unwrap().event().unwrap();
        let of = |text: &str| text.split(' ').next().unwrap().to_owned();
        assert_eq!(of(began.reason().unwrap()), of(event.reason().unwrap()), "a run's lines belong together");
    }
    let mut names: Vec<String> = dir
        .path()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 4, "one segment, its head, the index and the key: {names:?}");
    assert!(names[0].starts_with("day-20"), "{names:?}");
}

#[test]
fn child_shares() {
    let input = input();
    let [dir, round] = input.as_slice() else { return };
    let journal = SharedJournal::open(Path::new(dir)).unwrap();
    for n in 0_u64.. {
        let what = format!("{round}.{n}");
        let ack = journal.append([event(what.clone())]).unwrap();
        std::io::stdout().lock().write_all(format!("ack {} {what}\n", ack.seq).as_bytes()).unwrap();
    }
}

#[test]
fn killed_writers_lose_nothing_that_was_acknowledged_and_leave_it_intact() {
    let dir = Dir::new();
    let mut acknowledged = Vec::new();
    for round in 0..30 {
        let input = |writer: u32| format!("{}\n{round}-{writer}\n", dir.path().display());
        let mut writers: Vec<_> =
            (0..3).map(|writer| start(child("shared::child_shares"), &input(writer))).collect();
        let mut heard: Vec<_> =
            writers.iter_mut().map(|writer| BufReader::new(writer.stdout.take().unwrap()).lines()).collect();
        let firsts: Vec<String> = heard
            .iter_mut()
            .map(|lines| lines.find_map(|line| line.ok().filter(|l| l.contains("ack "))).unwrap())
            .collect();
        std::thread::sleep(Duration::from_micros(round * 137 % 3000));
        for writer in &mut writers {
            writer.kill().unwrap();
            writer.wait().unwrap();
        }
        for (first, lines) in firsts.into_iter().zip(heard) {
            for line in [first].into_iter().chain(lines.map_while(Result::ok)) {
                let Some((seq, what)) = line.split_once("ack ").and_then(|(_, ack)| ack.split_once(' '))
                else {
                    continue;
                };
                acknowledged.push((seq.parse::<u64>().unwrap(), what.to_owned()));
            }
        }
    }
    one_run(&open(&dir), "last");
    assert_intact(&dir);
    let records = dir.records(Filter::default());
    for (seq, what) in &acknowledged {
        let found = records.iter().find(|record| record.seq == *seq).and_then(|record| record.event());
        assert_eq!(found.and_then(|event| event.reason()), Some(what.as_str()), "line {seq}");
    }
}

#[test]
fn a_torn_end_is_repaired_and_recorded() {
    let dir = Dir::new();
    one_run(&open(&dir), "first");
    let mut text = std::fs::read(segment(&dir)).unwrap();
    text.extend_from_slice(b"{\"kind\":\"tool-ca");
    std::fs::write(segment(&dir), text).unwrap();
    assert!(!dir.verify().is_intact(), "(control)");
    one_run(&open(&dir), "second");
    assert_intact(&dir);
    assert!(
        reasons(&dir).iter().any(|reason| reason.starts_with("a torn end of 16 bytes")),
        "{:?}",
        reasons(&dir)
    );
}

#[test]
fn a_writer_that_was_killed_before_it_kept_the_head_leaves_a_whole_journal() {
    let dir = Dir::new();
    let journal = open(&dir);
    one_run(&journal, "first");
    let before = std::fs::read(head(&dir)).unwrap();
    one_run(&journal, "second");
    std::fs::write(head(&dir), before).unwrap();
    assert_intact(&dir);
    one_run(&journal, "third");
    assert_intact(&dir);
    assert_eq!(reasons(&dir).len(), 6);
}

/// A change of a segment's bytes.
type Change = fn(Vec<u8>) -> Vec<u8>;

#[test]
fn nothing_is_added_to_a_history_that_was_changed() {
    let cut = |text: Vec<u8>| {
        text[..text[..text.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1].to_vec()
    };
    let edited =
        |text: Vec<u8>| String::from_utf8(text).unwrap().replace("last ended", "last edited").into_bytes();
    let emptied = |_| Vec::new();
    let ways: [(&str, Change); 3] = [("cut", cut), ("edited", edited), ("emptied", emptied)];
    for (what, change) in ways {
        let dir = Dir::new();
        one_run(&open(&dir), "first");
        one_run(&open(&dir), "last");
        let text = std::fs::read(segment(&dir)).unwrap();
        std::fs::write(segment(&dir), change(text)).unwrap();
        let added = open(&dir).append([event("more")]);
        if what == "edited" {
            // The end still stands, so it is appended to; the change is found by who verifies.
            added.unwrap();
        } else {
            assert!(matches!(added, Err(JournalFault::Damaged { .. })), "{what}: {added:?}");
        }
        assert!(!dir.verify().is_intact(), "{what}");
    }
}

#[test]
fn retention_keeps_the_journal_of_today() {
    let dir = Dir::new();
    one_run(&open(&dir), "first");
    let kept = retain(&dir.path(), u64::MAX, now_us()).unwrap();
    assert_eq!(kept, []);
    one_run(&open(&dir), "second");
    assert_intact(&dir);
    let later = now_us() + 3 * 86_400_000_000;
    let removed = retain(&dir.path(), u64::MAX, later).unwrap();
    assert!(matches!(removed[..], [Retained::Removed { is_whole: true, .. }]), "(control) {removed:?}");
    assert!(verify(&dir.path(), &Expected::default()).unwrap().is_intact());
}

#[test]
fn verifying_while_others_write_finds_nothing_wrong() {
    let dir = Dir::new();
    one_run(&open(&dir), "first");
    std::thread::scope(|scope| {
        let journal = open(&dir);
        scope.spawn(move || (0..100).for_each(|n| one_run(&journal, &n.to_string())));
        (0..20).for_each(|_| assert_intact(&dir));
    });
}
