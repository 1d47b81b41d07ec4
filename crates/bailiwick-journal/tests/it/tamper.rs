//! Every kind of tampering is found and located.
use bailiwick_journal::format::{Chain, Digest, Line, Point, RecordBody, Signature, Tamper};
use bailiwick_journal::{Expected, Options, local_fingerprint};
use bailiwick_testkit::journal::{Dir, event, session};
use std::fs;

const A: &str = "a.000000.jsonl";

/// Sessions `a` and `b`, closed. Lines of each: 0-3 events, 4 head, 5-8 events, 9 head, 10-13 events, 14 head.
fn journal() -> Dir {
    let dir = Dir::new();
    for name in ["a", "b"] {
        write(&dir, name);
    }
    assert!(dir.verify().is_intact());
    dir
}

fn write(dir: &Dir, name: &str) -> Option<Point> {
    let journal = dir.open(name, Options::default());
    for round in 0..3 {
        for n in 0..4 {
            journal.append(event(format!("{round}.{n}"))).unwrap();
        }
        journal.flush().unwrap();
    }
    journal.close().unwrap()
}

fn lines(dir: &Dir, file: &str) -> Vec<String> {
    let text = fs::read_to_string(dir.file(file)).unwrap();
    text.split_inclusive('\n').map(Into::into).collect()
}

fn put(dir: &Dir, file: &str, lines: &[String]) {
    fs::write(dir.file(file), lines.concat()).unwrap();
}

/// Applies `change` to the lines of `file` and expects one problem there.
#[track_caller]
fn finds(file: &str, line: usize, tamper: Tamper, change: impl FnOnce(&mut Vec<String>)) {
    let dir = journal();
    let mut text = lines(&dir, file);
    change(&mut text);
    put(&dir, file, &text);
    assert_eq!(dir.problems(&Expected::default()), [(file.into(), line, tamper)]);
}

/// The line again after `change`, with a hash that is right.
fn rehash(line: &str, change: impl FnOnce(String) -> String) -> String {
    let (body, _) = line.split_once(",\"hash\":").unwrap();
    let body = change(format!("{body}}}"));
    let hash = Digest::sha256(body.as_bytes());
    format!("{},\"hash\":\"{hash}\"}}\n", body.strip_suffix('}').unwrap())
}

/// The whole chain again from the records: what someone can do who has everything but the key.
fn rechain(
    lines: &[String],
    mut sign: impl FnMut(&[u8], Signature) -> (Option<Digest>, Signature),
) -> Vec<String> {
    let mut chain = Chain::genesis(session("a"));
    let records = lines.iter().map(|line| Line::parse(line.trim_end().as_bytes()).unwrap().record().unwrap());
    records
        .map(|record| {
            let mut out = Vec::new();
            match record.entry {
                RecordBody::Event(event) => chain.push_event(&event, &mut out),
                RecordBody::Seal(mut seal, signature) => {
                    seal.key = sign(b"", signature).0.unwrap_or(seal.key);
                    chain.push_seal(&seal, |bytes| sign(bytes, signature).1, &mut out)
                }
            };
            String::from_utf8(out).unwrap()
        })
        .collect()
}

#[test]
fn an_edited_line() {
    finds(A, 7, Tamper::Edited, |l| l[6] = l[6].replace("\"shell\"", "\"other\""));
    finds(A, 7, Tamper::Edited, |l| l[6] = l[6].replace("\"tool\"", "\"tOol\""));
    finds(A, 7, Tamper::Edited, |l| l[6] = format!(" {}", l[6]));
    finds(A, 15, Tamper::Edited, |l| l[14] = l[14].replace("\"v\":2", "\"v\":1"));
}

#[test]
fn an_edited_line_with_its_hash_made_right() {
    finds(A, 8, Tamper::Edited, |l| l[6] = rehash(&l[6], |body| body.replace("\"shell\"", "\"other\"")));
}

#[test]
fn an_edited_line_with_every_hash_made_right() {
    finds(A, 10, Tamper::ForgedHead, |l| {
        l[6] = rehash(&l[6], |body| body.replace("\"shell\"", "\"other\""));
        *l = rechain(l, |_, signature| (None, signature));
    });
}

#[test]
fn a_dropped_line() {
    finds(A, 7, Tamper::Dropped, |l| drop(l.remove(6)));
    finds(A, 1, Tamper::Dropped, |l| drop(l.remove(0)));
    finds(A, 5, Tamper::Dropped, |l| drop(l.remove(4)));
}

#[test]
fn reordered_lines() {
    finds(A, 6, Tamper::Reordered, |l| l.swap(5, 7));
    finds(A, 1, Tamper::Reordered, |l| l.swap(0, 14));
}

#[test]
fn a_duplicated_line() {
    finds(A, 8, Tamper::Duplicated, |l| l.insert(7, l[6].clone()));
    finds(A, 16, Tamper::Duplicated, |l| l.push(l[14].clone()));
    finds(A, 16, Tamper::Duplicated, |l| l.push(l[2].clone()));
}

#[test]
fn a_line_from_another_session() {
    let other = lines(&journal(), "b.000000.jsonl");
    finds(A, 7, Tamper::Spliced, |l| l[6] = other[6].clone());
    finds(A, 16, Tamper::Spliced, |l| l.push(other[0].clone()));
    finds(A, 1, Tamper::Spliced, |l| *l = other);
}

#[test]
fn a_first_line_that_is_none() {
    let one = Digest::sha256(b"").to_string();
    finds(A, 1, Tamper::BadGenesis, |l| {
        l[0] = rehash(&l[0], |body| body.replace(&Digest::ZERO.to_string(), &one));
    });
}

#[test]
fn a_truncated_tail() {
    finds(A, 11, Tamper::TruncatedTail, |l| l.truncate(10));
    finds(A, 1, Tamper::TruncatedTail, Vec::clear);
}

#[test]
fn a_truncated_tail_with_an_older_head_file() {
    let dir = journal();
    let text = lines(&dir, A);
    put(&dir, A, &text[..10]);
    fs::write(dir.file("a.head"), text[9].trim_end()).unwrap();
    assert_eq!(dir.problems(&Expected::default()), [(A.into(), 11, Tamper::TruncatedTail)]);
}

#[test]
fn a_truncated_tail_of_a_session_that_was_never_closed() {
    let dir = journal();
    let mut index = lines(&dir, "index.jsonl");
    index.truncate(3);
    assert!(index[2].contains("\"index-opened\"") && index[2].contains("\"b\""));
    put(&dir, "index.jsonl", &index);
    let text = lines(&dir, "b.000000.jsonl");
    put(&dir, "b.000000.jsonl", &text[..10]);
    assert_eq!(dir.problems(&Expected::default()), [("b.000000.jsonl".into(), 11, Tamper::TruncatedTail)]);
}

#[test]
fn a_head_kept_elsewhere_finds_what_local_files_cannot() {
    let dir = Dir::new();
    let last = write(&dir, "a").unwrap();
    let mut index = lines(&dir, "index.jsonl");
    index.truncate(1);
    put(&dir, "index.jsonl", &index);
    let text = lines(&dir, A);
    put(&dir, A, &text[..10]);
    fs::write(dir.file("a.head"), text[9].trim_end()).unwrap();
    assert_eq!(dir.problems(&Expected::default()), [], "a roll-back of everything cannot be seen locally");
    let expected = Expected { heads: vec![(session("a"), last)], ..Expected::default() };
    assert_eq!(dir.problems(&expected), [(A.into(), 11, Tamper::TruncatedTail)]);
}

/// Rolled back, and gone on with by someone who has the key but not the index.
#[test]
fn a_fork() {
    let dir = Dir::new();
    write(&dir, "a");
    let saved = [A, "a.head", "index.jsonl"].map(|name| (name, fs::read(dir.file(name)).unwrap()));
    write(&dir, "a");
    let index = fs::read(dir.file("index.jsonl")).unwrap();
    for (name, bytes) in &saved {
        fs::write(dir.file(name), bytes).unwrap();
    }
    fs::write(dir.file("index.jsonl"), &index).unwrap();
    let open = bailiwick_journal::Journal::open(&dir.path(), session("a"), Options::default());
    assert_eq!(open.err().unwrap().code(), "journal-damaged");
    fs::write(dir.file("index.jsonl"), &saved[2].1).unwrap();
    write(&dir, "a");
    fs::write(dir.file("index.jsonl"), &index).unwrap();
    assert_eq!(dir.problems(&Expected::default()), [(A.into(), 30, Tamper::Rewritten)]);
}

#[test]
fn a_torn_line() {
    finds(A, 15, Tamper::TornTail, |l| l[14].truncate(40));
}

#[test]
fn an_unsigned_tail() {
    let dir = journal();
    let mut text = lines(&dir, A);
    let last = Line::parse(text[14].trim_end().as_bytes()).unwrap().record().unwrap();
    let mut chain = Chain::genesis(session("a")).after(Point { seq: 14, hash: last.hash });
    let mut out = Vec::new();
    chain.push_event(&event("forged"), &mut out);
    chain.push_event(&event("forged too"), &mut out);
    text.push(String::from_utf8(out).unwrap());
    put(&dir, A, &text);
    assert_eq!(dir.problems(&Expected::default()), [(A.into(), 16, Tamper::UnsignedTail)]);
}

#[test]
fn a_forged_head() {
    let flip = |line: &str| {
        rehash(line, |body| {
            let (before, after) = body.split_once("\"sig\":\"").unwrap();
            let flipped = if after.starts_with('0') { "1" } else { "0" };
            format!("{before}\"sig\":\"{flipped}{}", &after[1..])
        })
    };
    finds(A, 10, Tamper::ForgedHead, |l| l[9] = flip(&l[9]));
    // the time of a head is signed too
    finds(A, 10, Tamper::ForgedHead, |l| {
        l[9] = rehash(&l[9], |body| body.replace("\"time\":1", "\"time\":2"))
    });
}

/// Everything signed again with the key of another directory.
fn resign(dir: &Dir, other: &Dir) {
    let scratch = Dir::new();
    fs::create_dir(scratch.path()).unwrap();
    fs::copy(other.file("key"), scratch.file("key")).unwrap();
    fs::remove_dir_all(dir.path()).unwrap();
    fs::create_dir(dir.path()).unwrap();
    fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    fs::copy(other.file("key"), dir.file("key")).unwrap();
    write(dir, "a");
}

#[test]
fn a_replaced_key() {
    let (dir, other) = (journal(), journal());
    let fingerprint = local_fingerprint(&dir.path()).unwrap();
    // the key alone: nothing that was sealed is sealed with it
    fs::copy(other.file("key"), dir.file("key")).unwrap();
    let found = dir.problems(&Expected::default());
    assert_eq!(found[0], ("index.jsonl".into(), 1, Tamper::ReplacedKey));
    assert!(
        found.iter().any(|(file, line, tamper)| file == A && (*line, *tamper) == (5, Tamper::ReplacedKey))
    );
    // everything signed again: only a fingerprint kept elsewhere tells
    resign(&dir, &other);
    assert_eq!(dir.problems(&Expected::default()), []);
    let found = dir.problems(&Expected { key: fingerprint, ..Expected::default() });
    assert_eq!(found[0], ("index.jsonl".into(), 1, Tamper::ReplacedKey));
    assert!(found.contains(&(A.into(), 5, Tamper::ReplacedKey)));
    assert!(found.contains(&("a.head".into(), 0, Tamper::ReplacedKey)));
}

#[test]
fn a_removed_session() {
    let dir = journal();
    fs::remove_file(dir.file(A)).unwrap();
    assert_eq!(dir.problems(&Expected::default()), [(A.into(), 0, Tamper::MissingSession)]);
    fs::remove_file(dir.file("a.head")).unwrap();
    let found = dir.problems(&Expected::default());
    assert_eq!(found, [("a.head".into(), 0, Tamper::DamagedIndex), (A.into(), 0, Tamper::MissingSession)]);
}

#[test]
fn a_missing_or_damaged_head_file() {
    let dir = journal();
    fs::write(dir.file("a.head"), "nonsense").unwrap();
    assert_eq!(dir.problems(&Expected::default()), [("a.head".into(), 0, Tamper::DamagedIndex)]);
    fs::remove_file(dir.file("a.head")).unwrap();
    assert_eq!(dir.problems(&Expected::default()), [("a.head".into(), 0, Tamper::DamagedIndex)]);
}

#[test]
fn a_forged_head_file() {
    let dir = journal();
    let line = lines(&dir, A)[14].clone();
    let forged = rehash(&line, |body| body.replace("\"seq\":14", "\"seq\":4"));
    fs::write(dir.file("a.head"), forged.trim_end()).unwrap();
    assert_eq!(dir.problems(&Expected::default()), [("a.head".into(), 0, Tamper::ForgedHead)]);
}

#[test]
fn a_changed_index() {
    let index = "index.jsonl";
    finds(index, 1, Tamper::Edited, |l| l[0] = l[0].replace("\"session\":\"a\"", "\"session\":\"c\""));
    finds(index, 2, Tamper::Reordered, |l| l.swap(1, 2));
    let dir = journal();
    let mut text = lines(&dir, index);
    text.remove(1);
    put(&dir, index, &text);
    assert_eq!(dir.problems(&Expected::default())[0], (index.into(), 2, Tamper::Dropped));
    let dir = journal();
    let mut text = lines(&dir, index);
    text[3].truncate(100);
    put(&dir, index, &text);
    assert_eq!(dir.problems(&Expected::default()), [(index.into(), 4, Tamper::TornTail)]);
    fs::remove_file(dir.file(index)).unwrap();
    let gone = (index.to_string(), 0, Tamper::DamagedIndex);
    assert_eq!(dir.problems(&Expected::default()), [gone.clone(), gone]);
}

/// An event and a seal behind the last line of `a`, as someone makes them who does not have the key.
fn continued(dir: &Dir, key: Option<Digest>, sign: impl Fn(&[u8], Signature) -> Signature) {
    let mut text = lines(dir, A);
    let last = Line::parse(text[14].trim_end().as_bytes()).unwrap().record().unwrap();
    let RecordBody::Seal(mut seal, signature) = last.entry else { return };
    seal.key = key.unwrap_or(seal.key);
    let mut chain = Chain::genesis(session("a")).after(Point { seq: 14, hash: last.hash });
    let mut out = Vec::new();
    chain.push_event(&event("forged"), &mut out);
    chain.push_seal(&seal, |bytes| sign(bytes, signature), &mut out);
    text.push(String::from_utf8(out).unwrap());
    put(dir, A, &text);
}

/// The writer must not seal what it did not write.
#[test]
fn a_forged_continuation_is_found_and_not_continued() {
    let theirs = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    let public = Digest::from_bytes(theirs.verifying_key().to_bytes());
    let sign = |bytes: &[u8]| Signature::from_bytes(ed25519_dalek::Signer::sign(&theirs, bytes).to_bytes());
    for tamper in [Tamper::ForgedHead, Tamper::ReplacedKey] {
        let dir = journal();
        if tamper == Tamper::ForgedHead {
            continued(&dir, None, |_, signature| signature);
        } else {
            continued(&dir, Some(public), |bytes, _| sign(bytes));
        }
        assert_eq!(dir.problems(&Expected::default()), [(A.into(), 17, tamper)]);
        let open = bailiwick_journal::Journal::open(&dir.path(), session("a"), Options::default());
        let fault = open.err().unwrap();
        assert_eq!(fault.code(), "journal-damaged");
        assert!(fault.to_string().contains("forged-head at line 17"), "{fault}");
    }
}

#[test]
fn a_journal_that_was_tampered_with_is_not_continued() {
    for change in [
        |l: &mut Vec<String>| l[6] = l[6].replace("\"shell\"", "\"other\""),
        |l: &mut Vec<String>| l.truncate(10),
        |l: &mut Vec<String>| drop(l.remove(3)),
        |l: &mut Vec<String>| l[14] = "{}\n".into(),
        Vec::clear,
    ] {
        let dir = journal();
        let mut text = lines(&dir, A);
        change(&mut text);
        put(&dir, A, &text);
        let before = fs::read(dir.file(A)).unwrap();
        let fault = bailiwick_journal::Journal::open(&dir.path(), session("a"), Options::default());
        assert_eq!(fault.err().unwrap().code(), "journal-damaged");
        assert_eq!(fs::read(dir.file(A)).unwrap(), before);
    }
}
