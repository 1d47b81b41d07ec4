//! A journal that was changed is not intact, and the place is named.

use super::Demo;
use crate::journal;
use bailiwick_policy::digest::Digest;

/// Changes the lines of the session, then verifies: the exit code and the problems as text.
fn after(change: impl FnOnce(&mut Vec<String>)) -> (i32, String) {
    let demo = Demo::new();
    let text = std::fs::read_to_string(demo.segment()).unwrap();
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    change(&mut lines);
    std::fs::write(demo.segment(), lines.concat()).unwrap();
    let ran = demo.log(&["verify", "--format", "text"]);
    let document = demo.json(&["verify"]);
    assert_eq!(document["intact"], false);
    let dir = demo.dir().to_str().unwrap().to_owned() + "/";
    (ran.exit, ran.out.lines().next().unwrap().replace(&dir, ""))
}

#[test]
fn an_intact_journal_says_so_and_what_to_keep() {
    let demo = Demo::new();
    let ran = demo.log(&["verify", "--format", "text"]);
    assert_eq!((ran.exit, ran.err.as_str()), (0, ""));
    let key = bailiwick_journal::local_fingerprint(&demo.dir()).unwrap().unwrap();
    let (head, key) = (format!("demo:18:{}", demo.head.hash), key.to_string());
    assert!(ran.out.starts_with("intact: 1 session, 19 lines: "), "{}", ran.out);
    assert!(
        ran.out.contains(&format!("\n  bailiwick log verify --key {key} --head {head}\n")),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("not shown by this:\n  who can read the key"), "{}", ran.out);
    assert_eq!(demo.log(&["verify", "--key", &key, "--head", &head]).exit, 0);
    let document = demo.json(&["verify", "--key", &key]);
    assert_eq!((&document["intact"], &document["key_given"]), (&true.into(), &true.into()));
}

#[test]
fn what_was_done_is_located() {
    let edited = after(|lines| lines[3] = lines[3].replace("run", "RUN"));
    assert_eq!(edited, (1, "demo.000000.jsonl:4: edited: its content does not have its hash".into()));
    let (exit, dropped) = after(|lines| drop(lines.remove(4)));
    assert_eq!(exit, 1);
    assert!(dropped.starts_with("demo.000000.jsonl:5: dropped: "), "{dropped}");
    let (_, swapped) = after(|lines| lines.swap(6, 7));
    assert!(swapped.starts_with("demo.000000.jsonl:7: reordered: "), "{swapped}");
    let (exit, cut) = after(|lines| lines.truncate(10));
    assert_eq!(exit, 1);
    assert!(cut.starts_with("demo.000000.jsonl:11: truncated-tail: "), "{cut}");
    let (_, torn) = after(|lines| lines[18].truncate(30));
    assert!(torn.starts_with("demo.000000.jsonl:19: torn-tail: "), "{torn}");
}

#[test]
fn another_history_with_another_key_is_found_against_what_was_kept() {
    let demo = Demo::new();
    let kept = bailiwick_journal::local_fingerprint(&demo.dir()).unwrap().unwrap().to_string();
    let head = format!("demo:18:{}", demo.head.hash);
    std::fs::remove_dir_all(demo.dir()).unwrap();
    journal::write(&demo.dir(), "demo").unwrap();
    assert_eq!(demo.log(&["verify"]).exit, 0, "by itself it is sound");
    let ran = demo.log(&["verify", "--key", &kept, "--format", "text"]);
    assert_eq!(ran.exit, 1);
    assert!(ran.out.contains("replaced-key: it was signed with key "), "{}", ran.out);
    let ran = demo.log(&["verify", "--head", &head, "--format", "text"]);
    assert!(ran.exit == 1 && ran.out.contains("demo.000000.jsonl:19: rewritten: "), "{}", ran.out);
    let gone = format!("gone:1:{}", Digest::sha256(b"x"));
    assert_eq!(demo.log(&["verify", "--head", &gone]).exit, 1);
}

#[test]
fn a_line_that_is_no_record_is_named_and_never_left_out_in_silence() {
    let demo = Demo::new();
    let text = std::fs::read_to_string(demo.segment()).unwrap();
    let broken = text.replacen("{\"args_digest\"", "{\"ar\u{1b}gs_digest\"", 1);
    assert_ne!(text, broken);
    std::fs::write(demo.segment(), broken).unwrap();
    for args in [&["tail"][..], &["stats"], &["export"]] {
        let ran = demo.log(args);
        assert_eq!(ran.exit, 3, "{args:?}");
        assert!(ran.err.contains("demo.000000.jsonl:1: "), "{}", ran.err);
        assert!(!ran.err.contains('\u{1b}') && !ran.out.is_empty(), "{args:?}");
    }
    let export: serde_json::Value = serde_json::from_str(&demo.log(&["export"]).out).unwrap();
    assert_eq!(export["unreadable"].as_array().unwrap().len(), 1);
    let kept = demo.log(&["prune", "--older-than", "1d", "--yes", "--format", "text"]);
    assert_eq!(kept.exit, 1, "what does not verify is kept");
    assert!(kept.out.starts_with("kept: demo: "), "{}", kept.out);
    assert!(demo.segment().exists());
}

#[test]
fn nothing_is_not_intact() {
    let demo = Demo::new();
    assert_eq!(demo.log(&["verify", "--session", "nobody"]).exit, 3);
    std::fs::remove_file(demo.segment()).unwrap();
    let ran = demo.log(&["verify", "--format", "text"]);
    assert!(ran.exit == 1 && ran.out.contains(": missing-session: "), "{}", ran.out);
    std::fs::remove_dir_all(demo.dir()).unwrap();
    for args in [&["verify"][..], &["tail"], &["show", "1"], &["stats"], &["export"], &["why", "1"]] {
        let ran = demo.log(args);
        assert_eq!((ran.exit, ran.out.as_str()), (3, ""), "{args:?}");
    }
    assert_eq!(demo.log(&["prune", "--older-than", "1d", "--yes"]).exit, 3);
    assert!(!demo.dir().exists(), "reading makes nothing");
    std::fs::create_dir(demo.dir()).unwrap();
    assert_eq!(demo.log(&["verify"]).exit, 3);
}
