//! An interactive shell on a terminal: a prompt, the window's size, Ctrl-C, and its exit code.

use std::io::{Read, Write as _};
use std::process::{Command, Stdio};

use bailiwick_testkit::skip;

#[test]
fn a_shell_works_on_a_terminal() {
    if !std::path::Path::new("/usr/bin/script").exists() {
        return skip("no `script` here to make a terminal");
    }
    let run = format!(
        "stty rows 33 cols 99; exec {} run --no-journal --cap exec:spawn:stty --cap exec:spawn:sleep -- bash --norc",
        env!("CARGO_BIN_EXE_bailiwick")
    );
    let mut child = Command::new("/usr/bin/timeout")
        .args(["120", "/usr/bin/script", "-qec", &run, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let (mut keys, mut screen) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let mut step = |typed: &str, shown: &str| {
        keys.write_all(typed.as_bytes()).expect("it reads");
        until(&mut screen, shown);
    };
    step("", "bash-");
    step("stty size\n", "33 99");
    step("echo begun-$((6 * 7)); sleep 1000\n", "begun-42");
    std::thread::sleep(std::time::Duration::from_millis(300));
    step("\x03", "bash-");
    step("echo after-$((7 * 8))\n", "after-56");
    step("exit 5\n", "exit");
    assert_eq!(child.wait().expect("it ends").code(), Some(5));
}

fn until(screen: &mut impl Read, shown: &str) {
    let mut all = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&all).contains(shown) {
        let count = screen.read(&mut byte).expect("readable");
        assert!(count > 0, "`{shown}` did not appear in: {}", String::from_utf8_lossy(&all));
        all.extend(byte);
    }
}
