//! Links and special files in the way of an output, each where an agent could have put it.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn entries(directory: &Path) -> usize {
    directory.read_dir().unwrap().count()
}

#[test]
fn a_file_is_new_or_takes_the_place_and_the_mode_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    write(&path, "one", Existing::Keep).unwrap();
    assert_eq!(text(&path), "one");
    assert!(write(&path, "two", Existing::Keep).is_err());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::hard_link(&path, dir.path().join("other")).unwrap();
    write(&path, "three", Existing::Replace).unwrap();
    assert_eq!((text(&path), text(&dir.path().join("other"))), ("three".to_owned(), "one".to_owned()));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
    assert_eq!(entries(dir.path()), 2, "no draft is left");
}

#[test]
fn no_link_and_no_special_file_is_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let (victim, path) = (dir.path().join("victim"), dir.path().join("out"));
    std::fs::write(&victim, "mine").unwrap();
    for target in [victim.as_path(), Path::new("victim"), Path::new("nowhere")] {
        symlink(target, &path).unwrap();
        assert!(write(&path, "theirs", Existing::Replace).is_err());
        assert!(write(&path, "theirs", Existing::Keep).is_err());
        write(&path, "own", Existing::ReplaceLink).unwrap();
        assert!(!path.is_symlink() && text(&path) == "own");
        std::fs::remove_file(&path).unwrap();
    }
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    assert!(write(&path, "theirs", Existing::Replace).is_err(), "and it does not wait for a reader");
    assert_eq!((text(&victim).as_str(), entries(dir.path())), ("mine", 2));
}

#[test]
fn links_on_the_way_are_followed_only_where_they_are_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    for directory in ["real/deep", "writable"] {
        std::fs::create_dir_all(base.join(directory)).unwrap();
    }
    symlink("real", base.join("way")).unwrap();
    symlink(base.join("real"), base.join("writable/way")).unwrap();
    symlink("..", base.join("writable/up")).unwrap();
    symlink("turn", base.join("turn")).unwrap();
    let distrusted = [base.join("writable")];
    for (path, real) in [
        ("way/deep/new", "real/deep/new"),
        ("way/../real/./deep", "real/deep"),
        ("way/missing/deeper", "real/missing/deeper"),
        ("writable/way/new", "real/new"),
        ("writable/up/real/new", "real/new"),
    ] {
        assert_eq!(real_path(&base.join(path), &[]).unwrap(), base.join(real), "{path}");
        let refused = real_path(&base.join(path), &distrusted).is_err();
        assert_eq!(refused, path.starts_with("writable"), "{path}");
        let began = Draft::begin(&base.join(path), Existing::Replace, &distrusted);
        assert!(!(refused && began.is_ok()), "{path}");
    }
    assert!(real_path(&base.join("turn/x"), &[]).is_err(), "an endless link ends");
    assert!(real_path(&base.join("nothing/../real"), &[]).is_err(), "as the kernel has it");
}

#[test]
fn a_file_that_was_replaced_since_is_neither_written_nor_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let mut placed = Draft::begin(&path, Existing::Replace, &[]).unwrap().finish().unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "theirs").unwrap();
    placed.write_all("own").unwrap();
    placed.withdraw();
    assert_eq!(text(&path), "theirs");
}
