//! What another user of the machine finds of a console.

use std::os::unix::fs::PermissionsExt as _;

use bailiwick_testkit::skip;

use super::Served;
use crate::escape::{User, as_user};

#[test]
fn another_user_of_the_machine_finds_the_door_and_nothing_to_open_it_with() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can be another user too");
    }
    let served = Served::new(&[]);
    let home = served.home.path().to_owned();
    // A home that others may look into, as it is on many machines.
    for path in [home.clone(), home.join(".local"), home.join(".local/state")] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::write(home.join("open"), "for all").unwrap();
    let ask = |line: &str| {
        let output = as_user(User::Plain, "/bin/sh").args(["-c", line]).output().unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
    };
    let status = |path: &str| {
        let curl = "curl -sS -m 10 -o /dev/null -w '%{http_code}' --noproxy '*'";
        ask(&format!("{curl} http://127.0.0.1:{}{path}", served.port))
    };
    assert_eq!([status("/"), status("/api/state")], ["200", "401"], "the page is there, and shows nothing");
    let (home, console) = (home.display(), served.child.id());
    assert_eq!(ask(&format!("cat {home}/open")), "for all", "the control");
    for line in [
        format!("ls {home}/.local/state/bailiwick"),
        format!("cat {home}/.local/state/bailiwick/approvals.json"),
        format!("ls {home}/.local/state/bailiwick/journal"),
        format!("cat /proc/{console}/environ"),
        format!("ls -l /proc/{console}/fd"),
    ] {
        assert!(ask(&line).contains("Permission denied"), "{line}: {}", ask(&line));
    }
    assert!(!ask(&format!("cat /proc/{console}/cmdline")).contains(&served.code));
}
