//! Limits on this host, by whatever holds them here, and by resource limits alone.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bailiwick_policy::enforcement::{Level, Precision, judge};

use super::*;
use crate::sys::before_exec::before_exec;

const PLAIN: Situation = Situation { own_user_namespace: false, host_root: false, counts_by_namespace: true };
const NONE: Limits = Limits { timeout_ms: None, memory: None, pids: None, cpu_milli: None, file_size: None };

impl Applied {
    /// How well the limits are held together.
    fn held(&self) -> Held {
        judge::limits(&Limits { memory: Some(1), ..NONE }, &self.mechanism())
    }
}

fn nowhere() -> Places {
    Places::nowhere()
}

/// Starts a shell that waits for a line before it does `line`, under limits; gives it once it is in its groups.
fn start(applied: &Arc<Applied>, line: &str) -> Child {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &format!("read go; {line}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let within = Arc::clone(applied);
    before_exec(&mut command, move || within.set_resources());
    let mut child = command.spawn().unwrap();
    applied.enter(child.id()).unwrap();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    child
}

fn output(applied: Applied, line: &str) -> (std::process::ExitStatus, String) {
    let applied = Arc::new(applied);
    let output = start(&applied, line).wait_with_output().unwrap();
    (output.status, String::from_utf8(output.stdout).unwrap())
}

const HOG: &str = "python3 -Ic 'x = bytearray(200 << 20); print(\"got it\")'";

#[test]
fn memory_is_held_by_a_group_where_there_is_one() {
    let limits = Limits { memory: Some(64 << 20), ..NONE };
    let applied = Applied::prepare(&limits, &Places::find(), PLAIN);
    if !applied.held().why.contains("control group v") {
        return bailiwick_testkit::skip(&format!("no group for memory: {}", applied.held().why));
    }
    assert_eq!(applied.held().precision, Precision::Exact);
    // Many small processes together, which a resource limit would not stop.
    let many = "for i in 1 2 3 4 5 6; do python3 -Ic 'x = bytearray(20 << 20); import time; time.sleep(1); \
        print(\"got it\")' & done; wait";
    let (_, together) = output(applied, many);
    assert!(together.lines().count() < 6, "{together}");
    let applied = Applied::prepare(&limits, &Places::find(), PLAIN);
    let (_, out) = output(applied, HOG);
    assert_eq!(out, "");
}

#[test]
fn processes_are_held_by_a_group_where_there_is_one() {
    let limits = Limits { pids: Some(5), ..NONE };
    let applied = Applied::prepare(&limits, &Places::find(), PLAIN);
    if !applied.held().why.contains("control group v") {
        return bailiwick_testkit::skip(&format!("no group for pids: {}", applied.held().why));
    }
    let script = "import os\nn = 0\ntry:\n while n < 50:\n  p = os.fork()\n  if p == 0: import time; time.sleep(2); os._exit(0)\n  n += 1\nexcept OSError: pass\nprint(n)";
    let (_, out) = output(applied, &format!("exec python3 -Ic '{script}'"));
    // The limit and one, less the process itself.
    assert_eq!(out.trim(), "5");
}

#[test]
fn processor_time_is_held_by_a_group_where_there_is_one() {
    let limits = Limits { cpu_milli: Some(100), ..NONE };
    let applied = Applied::prepare(&limits, &Places::find(), PLAIN);
    if !applied.held().why.contains("control group v") {
        return bailiwick_testkit::skip(&format!("no group for cpu: {}", applied.held().why));
    }
    let applied = Arc::new(applied);
    let line = "exec timeout 0.5 sh -c 'while :; do :; done'";
    start(&applied, line).wait_with_output().unwrap();
    let counts =
        applied.groups.iter().map(|group| std::fs::read_to_string(group.directory().join("cpu.stat")));
    let counts: String = counts.flatten().collect();
    let throttled = counts.lines().find_map(|line| line.strip_prefix("nr_throttled "));
    assert!(throttled.is_some_and(|times| times != "0"), "{counts}");
}

#[test]
fn groups_are_removed_with_their_limits_also_after_a_kill() {
    let limits = Limits { memory: Some(64 << 20), pids: Some(9), ..NONE };
    let places = Places::find();
    let applied = Arc::new(Applied::prepare(&limits, &places, PLAIN));
    let directories: Vec<_> = applied.groups.iter().map(|group| group.directory().to_owned()).collect();
    if directories.is_empty() {
        return bailiwick_testkit::skip("this process may make no group");
    }
    let mut child = start(&applied, "sleep 60");
    assert!(directories.iter().all(|directory| directory.exists()));
    child.kill().unwrap();
    child.wait().unwrap();
    let sleep =
        directories.iter().flat_map(|directory| std::fs::read_to_string(directory.join("cgroup.procs")));
    for pid in sleep.flat_map(|text| text.lines().map(ToOwned::to_owned).collect::<Vec<_>>()) {
        Command::new("kill").args(["-9", &pid]).status().unwrap();
    }
    drop(Arc::into_inner(applied).or_else(|| panic!("still used")));
    assert!(directories.iter().all(|directory| !directory.exists()), "{directories:?}");
}

#[test]
fn without_groups_memory_is_held_for_each_process() {
    let limits = Limits { memory: Some(64 << 20), ..NONE };
    let applied = Applied::prepare(&limits, &nowhere(), PLAIN);
    assert_eq!((applied.held().level, applied.held().precision), (Level::Kernel, Precision::Superset));
    assert_eq!(output(applied, HOG).1, "");
    let roomy = Applied::prepare(&Limits { memory: Some(512 << 20), ..NONE }, &nowhere(), PLAIN);
    assert_eq!(output(roomy, HOG).1, "got it\n");
}

#[test]
fn a_file_grows_to_its_limit_and_no_core_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let big = directory.path().join("big");
    let applied = Applied::prepare(&Limits { file_size: Some(1 << 20), ..NONE }, &nowhere(), PLAIN);
    let (status, _) =
        output(applied, &format!("ulimit -c; exec head -c 5000000 /dev/zero > {}", big.display()));
    assert!(status.signal() == Some(libc::SIGXFSZ) || !status.success());
    assert_eq!(std::fs::metadata(&big).unwrap().len(), 1 << 20);
    let (_, core) = output(Applied::prepare(&NONE, &nowhere(), PLAIN), "ulimit -H -c");
    assert_eq!(core.trim(), "0");
}

#[test]
fn a_process_limit_is_claimed_only_where_it_means_what_was_asked() {
    let limits = Limits { pids: Some(8), cpu_milli: Some(500), ..NONE };
    let held = |situation| Applied::prepare(&limits, &nowhere(), situation).each()[0].1.clone();
    let own = Situation { own_user_namespace: true, ..PLAIN };
    assert_eq!(held(own).level, Level::Kernel);
    for weaker in
        [PLAIN, Situation { host_root: true, ..own }, Situation { counts_by_namespace: false, ..own }]
    {
        assert_eq!(held(weaker).level, Level::Unsupported, "{weaker:?}");
    }
    let both = Applied::prepare(&limits, &nowhere(), own);
    assert_eq!(both.held().level, Level::Unsupported, "no group for the processor");
    assert!(both.held().why.contains("cpu: no control group"), "{}", both.held().why);
    assert_eq!(Applied::prepare(&NONE, &nowhere(), PLAIN).held().level, Level::Unsupported);
    let timed = Limits { timeout_ms: Some(9), file_size: Some(9), ..NONE };
    assert_eq!(Applied::prepare(&timed, &nowhere(), PLAIN).held().level, Level::Mediated);
}

#[test]
fn a_process_limit_of_a_user_namespace_counts_its_own_processes() {
    let tools = ["/usr/bin/setpriv", "/usr/bin/unshare"];
    if !tools.iter().all(|tool| std::path::Path::new(tool).exists()) || !is_root() {
        return bailiwick_testkit::skip("needs root, setpriv and unshare to become a plain user");
    }
    let script = "import os\nn = 0\ntry:\n while n < 50:\n  p = os.fork()\n  if p == 0: import time; time.sleep(1); os._exit(0)\n  n += 1\nexcept OSError: pass\nprint(n)";
    let own = Situation { own_user_namespace: true, ..PLAIN };
    let applied = Applied::prepare(&Limits { pids: Some(8), ..NONE }, &nowhere(), own);
    let other_user = "exec setpriv --reuid=61234 --regid=61234 --clear-groups unshare -U";
    let (status, out) = output(applied, &format!("{other_user} python3 -Ic '{script}'"));
    assert!(status.success());
    assert_eq!(out.trim(), "7", "eight with the first");
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

#[test]
fn kernels_are_told_apart_by_their_release() {
    for (release, counts) in
        [("6.18.4-x", true), ("5.14.0", true), ("5.13.19", false), ("4.19", false), ("?", false)]
    {
        assert_eq!(counts_by_namespace(release), counts, "{release}");
    }
}
