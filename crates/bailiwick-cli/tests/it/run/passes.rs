//! What passes through: the directory, the three descriptors, the report, the sandbox's own loopback.

use std::io::{Read as _, Write as _};
use std::process::Stdio;

use super::{directory, err, out, script, sh};

#[test]
fn the_working_directory_stays_if_it_is_visible() {
    let own = directory();
    let here = own.path().display().to_string();
    let at = |caps: &[&str]| out(&script(caps, &[], "pwd").current_dir(&here).output().expect("it starts"));
    assert_eq!(at(&[&format!("fs:read:{here}")]), format!("{here}\n"));
    assert_eq!(at(&[]), "/\n");
}

#[test]
fn a_hundred_megabytes_pass_through() {
    const SIZE: usize = 100 << 20;
    let mut child = script(&["exec:spawn:cat"], &[], "exec cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let block: Vec<u8> = (0..1 << 20).map(|number: u32| number.wrapping_mul(31).to_le_bytes()[1]).collect();
    let sent = block.clone();
    let writer = std::thread::spawn(move || (0..100).try_for_each(|_| stdin.write_all(&sent)));
    let (mut stdout, mut total, mut got) = (child.stdout.take().expect("a pipe"), 0, vec![0; 1 << 20]);
    while total < SIZE {
        stdout.read_exact(&mut got).expect("all of it");
        assert!(got == block, "changed after {total} bytes");
        total += got.len();
    }
    assert_eq!(stdout.read(&mut got).expect("the end"), 0);
    writer.join().expect("the writer ends").expect("it reads all");
    assert!(child.wait().expect("it ends").success());
}

/// A file among the descriptors would lie on the host's own mount, where code can be loaded from.
#[test]
fn a_redirected_file_is_read_and_not_started() {
    let own = directory();
    let code = own.path().join("code");
    std::fs::copy("/usr/bin/id", &code).expect("a program");
    let loader = if cfg!(target_arch = "x86_64") {
        "/lib64/ld-linux-x86-64.so.2"
    } else {
        "/lib/ld-linux-aarch64.so.1"
    };
    let text = format!("{loader} /proc/self/fd/0");
    let from_file = || Stdio::from(std::fs::File::open(&code).expect("there"));
    let outside = std::process::Command::new("/bin/sh").args(["-c", &text]).stdin(from_file()).output();
    assert!(out(&outside.expect("it starts")).contains("uid="), "without a sandbox it would start");
    let grant = format!("fs:read,write:{}", own.path().display());
    let said = script(&[&grant], &[], &text).stdin(from_file()).output().expect("it starts");
    assert!(!out(&said).contains("uid="), "{}", out(&said));
    let read = script(&["exec:spawn:cat"], &[], "exec cat").stdin(from_file()).output().expect("it starts");
    assert_eq!(read.stdout, std::fs::read(&code).expect("there"));
}

#[test]
fn a_file_takes_output_where_the_caller_stands_in_it_and_in_one_order() {
    let own = directory();
    let path = own.path().join("text");
    let bailiwick = env!("CARGO_BIN_EXE_bailiwick");
    let text = format!(
        "{{ echo before; {bailiwick} run --no-journal -- /bin/sh -c 'echo one; echo two >&2; echo three'; echo after; }} > {} 2>&1",
        path.display()
    );
    assert!(std::process::Command::new("/bin/sh").args(["-c", &text]).status().expect("it starts").success());
    assert_eq!(std::fs::read_to_string(&path).expect("there"), "before\none\ntwo\nthree\nafter\n");
}

#[test]
fn the_report_says_what_was_held() {
    let own = directory();
    let path = own.path().join("report.json").display().to_string();
    assert!(sh(&[], &["--report", &path], "exit 0").status.success());
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).expect("a report")).expect("JSON");
    assert_eq!(report["backend"], "native");
    assert!(report["coverage"].is_object(), "{report}");
}

#[test]
fn a_program_can_talk_to_itself_without_any_network() {
    let python = "import socket; s = socket.create_server(('127.0.0.1', 0)); \
                  c = socket.create_connection(s.getsockname()); a, _ = s.accept(); \
                  c.sendall(b'hello'); print(a.recv(5).decode())";
    let said = std::process::Command::new(env!("CARGO_BIN_EXE_bailiwick"))
        .args(["run", "--no-journal", "--", "/usr/bin/python3", "-c", python])
        .output()
        .expect("it starts");
    assert_eq!(out(&said), "hello\n", "{}", err(&said));
}

#[test]
fn what_the_report_notes_is_true_and_said_once() {
    let own = directory();
    let here = own.path().display().to_string();
    std::fs::create_dir_all(own.path().join("real/inner")).unwrap();
    std::fs::create_dir(own.path().join("other")).unwrap();
    std::os::unix::fs::symlink("real", own.path().join("link")).unwrap();
    std::os::unix::fs::symlink("other", own.path().join("direct")).unwrap();
    let mut caps: Vec<String> =
        (0..40).map(|number| format!("fs:read:{here}/link/.agents{number}")).collect();
    caps.extend(["direct", "link/inner", "link/inner"].map(|name| format!("fs:read:{here}/{name}")));
    let caps: Vec<&str> = caps.iter().map(String::as_str).collect();
    let report = format!("{here}/report.json");
    assert!(sh(&caps, &["--report", &report], ":").status.success());
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let notes: Vec<&str> =
        report["details"].as_array().unwrap().iter().filter_map(|note| note.as_str()).collect();
    let of = |word: &str| notes.iter().copied().filter(|note| note.contains(word)).collect::<Vec<_>>();
    assert_eq!(of(".agents").len(), 8, "{notes:?}");
    assert!(of(".agents").iter().all(|note| note.contains("does not exist and is left out")), "{notes:?}");
    assert!(notes.iter().any(|note| note.ends_with("; so it is with 32 more")), "{notes:?}");
    let linked = [
        format!("`{here}/direct` is a link: `{here}/other` is what is granted"),
        format!("`{here}/link/inner` leads through a link: `{here}/real/inner` is what is granted"),
    ];
    assert_eq!(of("is what is granted"), linked, "{notes:?}");
}
