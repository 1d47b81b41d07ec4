//! Facts that are kept between scans: reused when nothing changed, ignored when they are damaged.

use std::path::Path;

use bailiwick_scan::{Options, Report};

fn scan(source: &Path, cache: &Path) -> Report {
    let options = Options { cache: Some(cache.to_owned()), ..super::options() };
    bailiwick_scan::scan(&[source.to_owned()], &options, &|_| {}).unwrap()
}

fn uses(report: &Report) -> Vec<String> {
    report.server().uses().iter().filter_map(bailiwick_scan::Use::capability).collect()
}

fn entries(cache: &Path) -> Vec<std::path::PathBuf> {
    let directories = std::fs::read_dir(cache).unwrap().map(|directory| directory.unwrap().path());
    directories
        .flat_map(|directory| std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()))
        .collect()
}

#[test]
fn only_what_changed_is_read_again() {
    let (source, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(source.path().join("a.py"), "open('/a')").unwrap();
    std::fs::write(source.path().join("b.py"), "open('/b')").unwrap();
    assert_eq!(scan(source.path(), cache.path()).reused(), 0);
    let again = scan(source.path(), cache.path());
    assert_eq!((again.reused(), uses(&again)), (2, vec!["fs:read:/a".to_owned(), "fs:read:/b".to_owned()]));
    std::fs::write(source.path().join("b.py"), "open('/c')").unwrap();
    let changed = scan(source.path(), cache.path());
    assert_eq!(
        (changed.reused(), uses(&changed)),
        (1, vec!["fs:read:/a".to_owned(), "fs:read:/c".to_owned()])
    );
}

#[test]
fn damaged_and_swapped_entries_are_ignored() {
    let (source, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(source.path().join("a.py"), "open('/a')").unwrap();
    scan(source.path(), cache.path());
    let entry = entries(cache.path()).pop().unwrap();
    let whole = std::fs::read_to_string(&entry).unwrap();
    let other_key = whole.replacen("\"key\":\"", "\"key\":\"0", 1).replace("/a", "/evil");
    for damaged in ["", "{", "null", whole.get(..whole.len() / 2).unwrap(), &other_key] {
        std::fs::write(&entry, damaged).unwrap();
        let report = scan(source.path(), cache.path());
        assert_eq!((report.reused(), uses(&report)), (0, vec!["fs:read:/a".to_owned()]), "{damaged}");
    }
}

#[test]
fn the_same_text_in_another_language_is_another_entry() {
    let (source, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(source.path().join("a.js"), "fetch('https://a.test/')").unwrap();
    std::fs::write(source.path().join("a.ts"), "fetch('https://a.test/')").unwrap();
    scan(source.path(), cache.path());
    assert_eq!(entries(cache.path()).len(), 2);
}

#[test]
fn a_cache_that_cannot_be_written_changes_nothing() {
    let source = tempfile::tempdir().unwrap();
    let file = source.path().join("a.py");
    std::fs::write(&file, "open('/a')").unwrap();
    let report = scan(&file, &file.join("below-a-file"));
    assert_eq!(uses(&report), ["fs:read:/a"]);
}
