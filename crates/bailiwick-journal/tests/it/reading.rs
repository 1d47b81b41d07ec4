//! Filters, following, and lines that cannot be read.
use bailiwick_journal::format::{Decision, Event, Record, RecordKind};
use bailiwick_journal::{Filter, Follow, Options, last_records, records, sessions};
use bailiwick_testkit::journal::{Dir, event, session};
use std::fs;

fn journal() -> Dir {
    let dir = Dir::new();
    for name in ["a", "b"] {
        let journal = dir.open(name, Options::default());
        let denied =
            Event::new(RecordKind::CapabilityDenied).with_decision(Decision::Deny).with_tool("net\"x");
        journal.append(denied.at(100)).unwrap();
        journal
            .append(Event::new(RecordKind::CapabilityGranted).with_decision(Decision::Allow).at(200))
            .unwrap();
        journal.append(Event::new(RecordKind::ToolFinished).with_tool("shell").at(300)).unwrap();
        journal.close().unwrap();
    }
    dir
}

#[test]
fn filters_choose() {
    let dir = journal();
    let count = |filter: Filter| dir.records(filter).len();
    assert_eq!(count(Filter::default()), 6);
    assert_eq!(count(Filter { with_seals: true, ..Filter::default() }), 8);
    assert_eq!(count(Filter { session: Some(session("b")), ..Filter::default() }), 3);
    assert_eq!(count(Filter { session: Some(session("c")), ..Filter::default() }), 0);
    assert_eq!(count(Filter { tool: Some("shell".into()), ..Filter::default() }), 2);
    assert_eq!(count(Filter { tool: Some("net\"x".into()), ..Filter::default() }), 2);
    assert_eq!(count(Filter { decision: Some(Decision::Deny), ..Filter::default() }), 2);
    assert_eq!(count(Filter { since: Some(200), until: Some(300), ..Filter::default() }), 2);
}

#[test]
fn following_sees_each_event_once_across_segments_and_sessions() {
    let dir = journal();
    let mut follow = Follow::from_end(&dir.path(), Filter::default()).unwrap();
    let mut all = Follow::from_start(&dir.path(), Filter::default());
    assert_eq!(all.poll().unwrap().len(), 6);
    assert!(follow.poll().unwrap().is_empty());
    let journal = dir.open("c", Options { segment_bytes: 1000, ..Options::default() });
    let mut seen = Vec::new();
    for n in 0..30 {
        journal.append(event(format!("{n}"))).unwrap();
        if n % 3 == 0 {
            journal.flush().unwrap();
            seen.extend(follow.poll().unwrap());
        }
    }
    journal.close().unwrap();
    seen.extend(follow.poll().unwrap());
    let reasons: Vec<_> =
        seen.into_iter().map(|found| found.unwrap().event().unwrap().reason().unwrap().to_string()).collect();
    assert_eq!(reasons, (0..30).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_line_that_is_no_record_is_handed_out_with_its_place() {
    let dir = journal();
    let path = dir.file("a.000000.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen('\n', "\nnonsense\n", 1)).unwrap();
    let found: Vec<_> = records(&dir.path(), Filter::default()).unwrap().map(Result::unwrap).collect();
    let bad: Vec<_> = found.iter().filter_map(|found| found.as_ref().err()).collect();
    assert_eq!((found.len(), bad.len(), bad[0].line), (7, 1, 2));
    assert!(
        bad[0].to_string().ends_with("a.000000.jsonl:2: the line does not end in its hash"),
        "{}",
        bad[0]
    );
}

#[test]
fn a_directory_that_is_not_there_is_empty() {
    let dir = Dir::new();
    assert!(dir.records(Filter::default()).is_empty());
    assert!(dir.verify().is_intact());
}

#[test]
fn sessions_are_listed_with_their_size_and_last_line() {
    let dir = Dir::new();
    assert_eq!(sessions(&dir.path()).unwrap(), []);
    let clock: [fn() -> u64; 2] = [|| 7, || 9];
    for (name, clock) in ["a", "b"].into_iter().zip(clock) {
        let journal = dir.open(name, Options { clock, ..Options::default() });
        journal.append(event("x")).unwrap();
        journal.close().unwrap();
    }
    let listed = sessions(&dir.path()).unwrap();
    let seen: Vec<_> = listed.iter().map(|one| (one.session.as_str(), one.segments, one.last)).collect();
    assert_eq!(seen, [("a", 1, Some(7)), ("b", 1, Some(9))]);
    assert_eq!(listed[0].bytes, fs::metadata(dir.file("a.000000.jsonl")).unwrap().len());
}

#[test]
fn the_last_records_are_read_from_the_end_across_segments() {
    let dir = Dir::new();
    let journal = dir.open("a", Options { segment_bytes: 1, ..Options::default() });
    for n in 0..9 {
        journal.append(event(format!("{n}"))).unwrap();
        journal.flush().unwrap();
    }
    journal.close().unwrap();
    let last = |count| {
        let (records, unreadable) =
            last_records(&dir.path(), &session("a"), &Filter::default(), count).unwrap();
        assert!(unreadable.is_empty());
        let text = |record: &Record| record.event().unwrap().reason().unwrap().to_owned();
        records.iter().map(text).collect::<String>()
    };
    assert_eq!([last(0), last(1), last(4)], ["", "8", "5678"]);
    assert_eq!((last(9), last(99)), ("012345678".into(), "012345678".into()));
}
