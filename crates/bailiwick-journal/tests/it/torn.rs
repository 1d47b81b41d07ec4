//! A crash at any byte of a write: what was sealed stays, what was torn is repaired, and the repair is recorded.
use bailiwick_journal::{Filter, Options};
use bailiwick_testkit::journal::{Dir, event};
use std::fs;

const A: &str = "a.000000.jsonl";

#[test]
fn a_write_torn_at_any_byte_is_repaired_and_recorded() {
    let dir = Dir::new();
    let journal = dir.open("a", Options::default());
    journal.append(event("kept")).unwrap();
    journal.flush().unwrap();
    let (head, index) = (fs::read(dir.file("a.head")).unwrap(), fs::read(dir.file("index.jsonl")).unwrap());
    let sealed = fs::read(dir.file(A)).unwrap().len();
    journal.append(event("torn one")).unwrap();
    journal.append(event("torn two")).unwrap();
    journal.close().unwrap();
    let whole = fs::read(dir.file(A)).unwrap();
    let zeros = |cut: usize| [&whole[..cut], &[0; 100]].concat();
    for cut in (sealed..whole.len()).step_by(7).chain([sealed + 1, whole.len() - 1]) {
        for torn in [whole[..cut].to_vec(), zeros(cut)] {
            fs::write(dir.file("a.head"), &head).unwrap();
            fs::write(dir.file("index.jsonl"), &index).unwrap();
            fs::write(dir.file(A), &torn).unwrap();
            repaired(&dir, cut, torn.len() > sealed);
        }
    }
}

fn repaired(dir: &Dir, cut: usize, is_torn: bool) {
    dir.open("a", Options::default()).close().unwrap();
    let report = dir.verify();
    assert!(report.is_intact(), "cut at {cut}: {:?}", report.problems().collect::<Vec<_>>());
    let records = dir.records(Filter::default());
    let has = |code: &str| records.iter().any(|record| record.event().unwrap().code() == Some(code));
    assert!(records[0].event().unwrap().reason() == Some("kept"));
    assert_eq!(has("journal-repaired") || has("journal-unsigned-tail"), is_torn, "cut at {cut}");
    let is_there = |what: &str| records.iter().any(|record| record.event().unwrap().reason() == Some(what));
    assert!(!is_there("torn one") || has("journal-unsigned-tail"), "cut at {cut}");
}

#[test]
fn a_torn_index_is_repaired_and_recorded() {
    let dir = Dir::new();
    dir.open("a", Options::default()).close().unwrap();
    let path = dir.file("index.jsonl");
    let mut text = fs::read(&path).unwrap();
    text.truncate(text.len() - 10);
    fs::write(&path, text).unwrap();
    dir.open("b", Options::default()).close().unwrap();
    assert!(dir.verify().is_intact());
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches("\"index-repaired\"").count(), 1, "{text}");
}
