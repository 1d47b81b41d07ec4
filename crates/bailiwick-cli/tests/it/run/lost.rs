//! What a command writes where nothing is kept is named, with the line that would keep it; as root and as a plain user.

use std::path::Path;

use super::{directory, err, unrecorded};
use crate::escape::{User, as_user};

/// Runs a script at a home of its own, as that user.
fn at_home(user: User, home: &Path, caps: &[String], text: &str) -> std::process::Output {
    let own = directory();
    let program = own.path().join("bailiwick");
    std::fs::copy(env!("CARGO_BIN_EXE_bailiwick"), &program).unwrap();
    open(own.path());
    let mut command = as_user(user, &program);
    command.arg("run").args(unrecorded(&[])).args(caps.iter().flat_map(|cap| ["--cap", cap]));
    command.args(["--", "/bin/sh", "-c", text]).env("HOME", home).current_dir("/usr/lib");
    command.output().unwrap()
}

fn open(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
}

#[test]
fn what_is_lost_is_counted_and_the_line_keeps_it() {
    let users: &[User] =
        if rustix::process::getuid().is_root() { &[User::Root, User::Plain] } else { &[User::Caller] };
    for user in users {
        let own = directory();
        open(own.path());
        let home = own.path().canonicalize().unwrap();
        let text = "mkdir -p ~/notes/a ~/.cache; echo x > ~/notes/a/one; echo x > /tmp/two; echo x > ~/.cache/three; exit 3";
        let caps = vec!["exec:spawn:mkdir".to_owned()];
        let ran = at_home(*user, &home, &caps, text);
        assert_eq!(ran.status.code(), Some(3), "{}", err(&ran));
        let shown = home.display();
        let line = format!(
            "note: 2 files are gone with the sandbox's own directories: `/tmp/two`, `{shown}/notes/a/one`; \
             to keep them: `mkdir -p {shown}/notes` and --cap fs:read,write:{shown}/notes"
        );
        assert!(err(&ran).contains(&line), "{}", err(&ran));
        assert!(!home.join("notes").exists());
        // The line is true: what it names is kept.
        std::fs::create_dir(home.join("notes")).unwrap();
        open(&home.join("notes"));
        let caps = vec!["exec:spawn:mkdir".to_owned(), format!("fs:read,write:{shown}/notes")];
        let ran = at_home(*user, &home, &caps, text);
        assert!(err(&ran).contains("note: 1 file is gone"), "{}", err(&ran));
        assert_eq!(std::fs::read_to_string(home.join("notes/a/one")).unwrap(), "x\n");
        // What is only read or not written is not named.
        let ran = at_home(*user, &home, &caps, "cat < ~/notes/a/one; true");
        assert_eq!(err(&ran).matches("gone").count(), 0, "{}", err(&ran));
    }
}

#[test]
fn an_argument_in_a_directory_that_is_not_kept_is_named_before() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bailiwick"));
    command.args(["run", "--no-journal", "--", "touch", "/tmp/new"]).current_dir("/usr/lib");
    let ran = command.output().unwrap();
    let text = err(&ran);
    assert!(ran.status.success(), "{text}");
    assert!(text.starts_with("note: `/tmp/new` lies in a directory of the sandbox's own"), "{text}");
    assert!(text.contains("1 file is gone"), "{text}");
}
