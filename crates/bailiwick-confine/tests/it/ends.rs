//! How a sandbox ends: with its program, with its supervisor, at once and as a whole.

use std::io::Read;
use std::time::{Duration, Instant};

use bailiwick_confine::{Change, Exit, Fault, Options, Step};
use rustix::io::Errno;

use crate::support::{directory, eventually, prepare, script, sh, start};

#[test]
fn codes_and_signals_come_back() {
    let (_own, w) = directory();
    assert_eq!(sh(&[], "exit 7", &w).exit, Exit::Code(7));
    assert_eq!(sh(&[], "kill -SEGV $$", &w).exit, Exit::Signal(libc_sigsegv()));
}

fn libc_sigsegv() -> i32 {
    11
}

#[test]
fn a_program_that_is_not_permitted_at_the_last_moment_does_not_run() {
    let (_own, w) = directory();
    let granted = format!("fs:read,write:{}", w.display());
    let witness = w.join("ran");
    let spawn = |permit: Result<(), Fault>| {
        let (prepared, _reader) = prepare(&[&granted], script("echo > ran", &w), Options::default())
            .unwrap_or_else(|r| panic!("{r}"));
        // The sandbox is ready long before the permit comes: it waits.
        let late = || {
            std::thread::sleep(Duration::from_millis(200));
            assert!(!witness.exists(), "it ran before it was permitted");
            permit
        };
        prepared.spawn_after(late).and_then(|(mut confined, ())| confined.wait())
    };
    assert!(spawn(Err(Fault::new(Step::Handshake, Errno::ACCESS))).is_err());
    assert!(!witness.exists(), "it was not permitted");
    assert_eq!(spawn(Ok(())).unwrap(), Exit::Code(0));
    assert!(witness.exists());
}

#[test]
fn a_signal_reaches_the_program() {
    let (_own, w) = directory();
    let text = "trap 'echo got it; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let (mut confined, mut reader) = start(&["exec:spawn:sleep"], script(text, &w));
    let mut said = [0; 6];
    reader.read_exact(&mut said).unwrap();
    assert_eq!(confined.wait_until(Instant::now() + Duration::from_millis(20)).unwrap(), None);
    confined.signal(15).unwrap();
    assert_eq!(confined.wait().unwrap(), Exit::Code(3));
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "got it\n");
}

#[test]
fn what_it_started_ends_with_it() {
    let (_own, w) = directory();
    let (mut confined, mut reader) = start(
        &["exec:spawn:sleep", "exec:spawn:setsid"],
        script("setsid sleep 1000 & sleep 1001 & echo x", &w),
    );
    assert_eq!(confined.wait().unwrap(), Exit::Code(0));
    // The pipe is closed once the last of them is gone.
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "x\n");
}

#[test]
fn once_the_end_is_told_no_other_process_is_left() {
    let (_own, w) = directory();
    let many =
        "i=0; while [ $i -lt 200 ]; do sleep 1000 & setsid sleep 1001 & i=$((i+1)); done; echo x; exit 4";
    for leave in [false, true] {
        let (mut confined, mut reader) = start(&["exec:spawn:sleep", "exec:spawn:setsid"], script(many, &w));
        let pid = confined.pid();
        assert_eq!(confined.wait_for_change().unwrap(), Change::Ended(Exit::Code(4)));
        // A process that is left would hold the pipe open, and reading from it would have to wait.
        rustix::io::ioctl_fionbio(&reader, true).unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x\n");
        if leave {
            confined.leave();
        }
        drop(confined);
        // One that was left is not reaped before this process ends, but runs nothing any more.
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        match leave {
            true => eventually("it has ended", || state().contains(") Z ")),
            false => assert_eq!(state(), ""),
        }
    }
}

#[test]
fn dropping_it_ends_everything() {
    let (_own, w) = directory();
    let (confined, mut reader) = start(&["exec:spawn:sleep"], script("sleep 1000 & echo x; sleep 1001", &w));
    let pid = confined.pid();
    let mut said = [0; 2];
    reader.read_exact(&mut said).unwrap();
    drop(confined);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
}

/// Starts this test binary as a supervisor that never ends by itself; its sandbox writes its first process's number.
#[test]
fn nothing_is_left_when_the_supervisor_is_killed() {
    const ROLE: &str = "BAILIWICK_TEST_SUPERVISOR";
    if let Some(directory) = std::env::var_os(ROLE) {
        supervise(std::path::Path::new(&directory));
    }
    let (_own, w) = directory();
    for round in 0..5 {
        let mut supervisor = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "ends::nothing_is_left_when_the_supervisor_is_killed"])
            .env(ROLE, &w)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let ready = w.join("pid");
        eventually("the sandbox runs", || {
            std::fs::read_to_string(&ready).is_ok_and(|text| text.ends_with('\n'))
        });
        let pid = std::fs::read_to_string(&ready).unwrap().trim().to_owned();
        supervisor.kill().unwrap();
        supervisor.wait().unwrap();
        eventually("pid 1 is gone", || !std::path::Path::new("/proc").join(&pid).exists());
        assert_eq!(std::fs::read_dir(&w).unwrap().count(), 1, "nothing but the number is left");
        std::fs::remove_file(&ready).unwrap();
        assert!(round < 5);
    }
}

fn supervise(w: &std::path::Path) -> ! {
    let cap = format!("fs:read,write:{}", w.display());
    let (confined, _reader) = start(&[&cap, "exec:spawn:sleep"], script("sleep 1000 & sleep 1001", w));
    std::fs::write(w.join("pid"), format!("{}\n", confined.pid())).unwrap();
    loop {
        std::thread::sleep(Duration::from_secs(100));
    }
}

/// A network is what a sandbox waits for its supervisor with: killed before, it is waited for in vain.
#[test]
fn nothing_is_left_when_the_supervisor_is_killed_while_it_starts() {
    const ROLE: &str = "BAILIWICK_TEST_STARTER";
    if std::env::var_os(ROLE).is_some() {
        let command = script("sleep 1000", std::path::Path::new("/"));
        let (_confined, _reader) = start(&["exec:spawn:sleep", "net:connect:example.com:443"], command);
        std::thread::sleep(Duration::from_secs(100));
    }
    for _ in 0..20 {
        let mut supervisor = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "ends::nothing_is_left_when_the_supervisor_is_killed_while_it_starts"])
            .env(ROLE, "")
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut first = None;
        while first.is_none() && supervisor.try_wait().unwrap().is_none() {
            first = child_of(supervisor.id());
        }
        supervisor.kill().unwrap();
        supervisor.wait().unwrap();
        let first = first.unwrap();
        eventually("pid 1 has ended", || has_ended(&first));
    }
}

/// Whether a process is gone, or only waits to be reaped by its new parent.
fn has_ended(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_none_or(|state| state.is_empty() || state.starts_with('Z'))
}

/// A process that another has started, whichever of its threads did.
fn child_of(pid: u32) -> Option<String> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let children = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    children.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).next()
}

#[test]
fn a_sandbox_outlives_the_thread_that_started_it() {
    let (_own, w) = directory();
    let thread = std::thread::spawn(move || start(&["exec:spawn:sleep"], script("sleep 0.2; exit 5", &w)));
    let (mut confined, _reader) = thread.join().unwrap();
    assert_eq!(confined.wait().unwrap(), Exit::Code(5));
}

#[test]
fn big_outputs_pass_straight_through() {
    let (_own, w) = directory();
    let said = sh(&[], "head -c 30000000 /dev/zero", &w);
    assert_eq!(said.text.len(), 30_000_000);
}
