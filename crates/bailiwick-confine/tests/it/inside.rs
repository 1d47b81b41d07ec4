//! What a program finds around itself.

use std::collections::BTreeMap;

use bailiwick_confine::{Command, Options};
use bailiwick_policy::enforcement::{Aspect, Level};

use crate::support::{directory, prepare, run_with, script, sh};

#[test]
fn no_capability_is_left_and_none_can_come_back() {
    let (_own, w) = directory();
    // Where something can be written, the first process keeps a capability and the program has filters of its own.
    let writable = format!("fs:read,write:{}", w.display());
    for caps in [&[][..], &[writable.as_str()]] {
        let text = sh(caps, "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status", &w).ok();
        for line in text.lines() {
            let (name, value) = line.split_once(':').unwrap();
            let expected = match name {
                "NoNewPrivs" => "1",
                "Seccomp" => "2",
                _ => "0000000000000000",
            };
            assert_eq!(value.trim(), expected, "{line}");
        }
        assert_eq!(text.lines().count(), 7);
    }
}

#[test]
fn only_its_own_processes_exist() {
    let (_own, w) = directory();
    let writable = format!("fs:read,write:{}", w.display());
    for caps in [&[][..], &[writable.as_str()]] {
        let text = sh(caps, "for p in /proc/[0-9]*; do echo $p; done; echo $$", &w).ok();
        let (shown, own) = text.trim_end().split_once('\n').unwrap();
        assert_eq!(shown, format!("/proc/{own}"), "pid 1 is hidden");
        for attempt in ["cat /proc/1/environ", "cat /proc/1/maps", "ls /proc/1/fd", "ls /proc/1/root/"] {
            sh(caps, attempt, &w).refused();
        }
        sh(caps, "kill -9 1; kill -STOP 1; echo alive", &w).ok();
    }
}

/// Instances of inotify count for the user on the host, who has 128 of them.
#[test]
fn the_users_inotify_instances_are_not_exhausted() {
    let python = "/usr/bin/python3";
    if !std::path::Path::new(python).exists() {
        return;
    }
    let (_own, w) = directory();
    let text =
        "import ctypes; c = ctypes.CDLL(None); print(sum(c.inotify_init1(0) >= 0 for _ in range(1000)))";
    let mut command = Command::new(python);
    command.args = vec!["-I".into(), "-c".into(), text.into()];
    command.cwd = Some(w);
    let made: u32 = run_with(&[], command, Options::default()).ok().trim().parse().unwrap();
    assert!((1..=64).contains(&made), "{made}");
}

#[test]
fn proc_says_nothing_of_the_host_and_takes_nothing() {
    let (_own, w) = directory();
    for file in
        ["keys", "kallsyms", "timer_list", "kcore", "cmdline", "kpagecount", "vmallocinfo", "slabinfo"]
    {
        let said = sh(&[], &format!("head -c 64 /proc/{file}"), &w);
        assert!(
            said.text.is_empty() || said.exit != bailiwick_confine::Exit::Code(0),
            "{file}: {}",
            said.text
        );
    }
    let boot = sh(&[], "cat /proc/sys/kernel/random/boot_id", &w).ok();
    assert_eq!(boot.trim(), "00000000-0000-0000-0000-000000000000");
    let writes = [
        "/proc/sys/kernel/core_pattern",
        "/proc/sysrq-trigger",
        "/proc/sys/vm/drop_caches",
        "/proc/self/oom_score_adj",
    ];
    for file in writes {
        sh(&[], &format!("echo 1 > {file}"), &w).refused();
    }
    sh(&[], "cat /proc/cpuinfo /proc/meminfo > /dev/null", &w).ok();
}

#[test]
fn every_mount_forbids_what_it_should() {
    let (_own, w) = directory();
    let cap = format!("fs:read,write:{}", w.display());
    let text = sh(&[&cap], "cat /proc/self/mountinfo", &w).ok();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let (place, options) = (fields[4], fields[5]);
        let has = |option: &str| options.split(',').any(|one| one == option);
        let device = place.starts_with("/dev/") || fields[3] == "/null";
        let writable = device || place == "/tmp" || place.starts_with(w.to_str().unwrap());
        let program = place.starts_with("/usr/bin/") || place.starts_with("/usr/lib/") || place == "/";
        assert!(has("nosuid"), "{line}");
        assert!(has("nodev") || device, "{line}");
        assert!(has("noexec") || program, "{line}");
        assert!(has("ro") || writable, "{line}");
        assert!(
            !fields[6..].iter().any(|field| field.starts_with("shared:") || field.starts_with("master:")),
            "{line}"
        );
    }
    assert!(text.lines().count() > 20, "{text}");
}

#[test]
fn devices_are_few_and_work() {
    let (_own, w) = directory();
    let text = sh(
        &[],
        "echo x > /dev/null; head -c 4 /dev/urandom > /tmp/r; head -c 2 /dev/zero > /tmp/z; ls /dev",
        &w,
    )
    .ok();
    assert_eq!(text, "fd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\nurandom\nzero\n");
    sh(&[], "echo x > /dev/shm/a && cat /dev/shm/a", &w).ok();
}

#[test]
fn the_environment_is_what_the_plan_names() {
    let (_own, w) = directory();
    let mut command = script("cat /proc/self/environ", &w);
    command.env = BTreeMap::from([("TOKEN".into(), "t".into()), ("OTHER".into(), "o".into())]);
    let text = run_with(&["env:inject:TOKEN", "exec:spawn:cat"], command, Options::default()).ok();
    let mut names: Vec<&str> = text.split('\0').filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    names.retain(|name| !["", "PWD"].contains(name)); // the shell's own
    assert_eq!(names, ["HOME", "LANG", "PATH", "TERM", "TOKEN", "USER"], "{text}");
}

#[test]
fn three_descriptors_and_no_more() {
    let (_own, w) = directory();
    // A descriptor that survives exec, as a careless parent has them.
    let leaked = std::fs::File::open("/etc/passwd").unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    let text = sh(&[], "ls /proc/self/fd", &w).ok();
    assert_eq!(text, "0\n1\n2\n3\n", "3 is the listing itself");
}

#[test]
fn the_working_directory_is_kept_if_it_is_visible() {
    let (_own, w) = directory();
    let cap = format!("fs:read:{}", w.display());
    assert_eq!(sh(&[&cap], "pwd", &w).ok().trim(), w.to_str().unwrap());
    assert_eq!(sh(&[], "pwd", &w).ok().trim(), "/");
}

#[test]
fn a_directory_is_no_descriptor_for_a_program() {
    let stdin = std::fs::File::open("/").unwrap().into();
    let null = || std::fs::File::open("/dev/null").unwrap().into();
    let mut command = Command::new("true");
    command.stdio = bailiwick_confine::Stdio::Descriptors { stdin, stdout: null(), stderr: null() };
    let plan = crate::support::plan(&[]);
    let refusal = bailiwick_confine::Prepared::new(&plan, command, Options::default()).err().unwrap();
    assert!(refusal.to_string().contains("descriptor 0 is a directory"), "{refusal}");
}

#[test]
fn nothing_is_reached_without_a_network() {
    let (_own, w) = directory();
    let host = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!("echo x > /dev/tcp/127.0.0.1/{}", host.local_addr().unwrap().port());
    assert!(run_with(&[], bash(&text, &w), Options::default()).refused().contains("refused"));
    let away = run_with(&[], bash("echo x > /dev/tcp/192.0.2.1/22", &w), Options::default());
    assert!(away.refused().contains("unreachable"));
}

#[test]
fn a_network_hands_its_sockets_out() {
    let (_own, w) = directory();
    let (prepared, _reader) =
        prepare(&["net:connect:example.com:443"], script("true", &w), Options::default()).unwrap();
    assert_eq!(prepared.predicted().held(Aspect::Network).level, Level::Mediated);
    let mut confined = prepared.spawn().unwrap();
    let sockets = confined.take_egress().unwrap();
    assert!(!sockets.dns_udp.is_empty() && !sockets.dns_tcp.is_empty() && !sockets.relays.is_empty());
    assert!(confined.take_egress().is_none());
    confined.wait().unwrap();
}

#[test]
fn a_terminal_of_its_own() {
    use std::io::Read;
    let mut command = Command::new("bash");
    command.args = vec!["-c".into(), "test -t 0 && echo tty > /dev/tty && stty size; ls /dev/pts".into()];
    command.stdio = bailiwick_confine::Stdio::Terminal;
    let plan = crate::support::plan(&["exec:spawn:stty", "exec:spawn:ls"]);
    let mut confined =
        bailiwick_confine::Prepared::new(&plan, command, Options::default()).unwrap().spawn().unwrap();
    let mut terminal = std::fs::File::from(confined.terminal().unwrap());
    let mut text = Vec::new();
    let _ = terminal.read_to_end(&mut text); // a terminal ends with EIO
    assert_eq!(confined.wait().unwrap(), bailiwick_confine::Exit::Code(0));
    assert_eq!(String::from_utf8_lossy(&text), "tty\r\n0 0\r\n0  ptmx\r\n");
}

#[test]
fn the_status_says_what_is_held() {
    let (_own, w) = directory();
    let (prepared, _reader) = prepare(&[], script("true", &w), Options::default()).unwrap();
    let predicted = prepared.predicted().clone();
    let mut confined = prepared.spawn().unwrap();
    assert_eq!(confined.status().coverage, predicted);
    for aspect in
        [Aspect::Files, Aspect::Network, Aspect::Exec, Aspect::Environment, Aspect::Ipc, Aspect::Processes]
    {
        assert_eq!(confined.status().coverage.held(aspect).level, Level::Kernel, "{aspect}");
    }
    assert_eq!(confined.status().to_json()["backend"], "native");
    confined.wait().unwrap();
}

fn bash(text: &str, cwd: &std::path::Path) -> Command {
    let mut command = script(text, cwd);
    command.program = "bash".into();
    command
}
