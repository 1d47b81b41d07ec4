//! The fallback, tried from inside.

use super::*;
use bailiwick_testkit::skip;

use crate::process::RunningProcess;
use crate::testing::{all, plan, shell};

fn start(plan: &Plan, command: Command, options: &Options) -> Result<RunningProcess, Refusal> {
    prepare(plan, command, options)?.start()
}

fn run(plan: &Plan, line: &str) -> Option<String> {
    if let Err(fault) = Level::of_kernel() {
        skip(&fault.to_string());
        return None;
    }
    let (command, output) = shell(line);
    let mut launched = start(plan, command, &Options::default()).unwrap();
    launched.wait().unwrap();
    Some(all(output))
}

#[test]
fn only_what_is_granted_can_be_read_written_and_started() {
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    let (own, other) = (directory.path().join("own"), directory.path().join("other"));
    for place in [&own, &other] {
        std::fs::create_dir(place).unwrap();
        std::fs::write(place.join("f"), "text\n").unwrap();
    }
    let (own, other) = (own.to_str().unwrap(), other.to_str().unwrap());
    let plan = plan(&[&format!("fs:read,write:{own}/**"), "exec:spawn:cat"]);
    let line = format!(
        "cat {own}/f; cat {other}/f && echo LEAK; echo x > {own}/g; cat {own}/g; echo x > {other}/g && echo LEAK; \
         id && echo LEAK; /lib64/ld-linux-x86-64.so.2 /usr/bin/id && echo LEAK; kill -0 {} && echo LEAK; \
         cat /proc/1/environ && echo LEAK; echo $HOME",
        std::process::id()
    );
    let Some(out) = run(&plan, &line) else { return };
    assert!(out.starts_with("text\n") && out.contains("\nx\n"), "{out}");
    assert!(!out.contains("LEAK"), "{out}");
}

#[test]
fn what_may_only_be_read_can_be_read() {
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::write(directory.path().join("f"), "text\n").unwrap();
    let own = directory.path().to_str().unwrap();
    let plan = plan(&[&format!("fs:read:{own}/**"), "exec:spawn:cat"]);
    let Some(out) = run(&plan, &format!("cat {own}/f; echo x > {own}/f && echo LEAK")) else { return };
    assert!(out.starts_with("text\n") && !out.contains("LEAK"), "{out}");
}

#[test]
fn there_is_no_socket() {
    let plan = plan(&["exec:spawn:python3"]);
    let script = "import socket\nfor f, t in ((2, 1), (2, 2), (10, 1), (1, 1), (16, 3), (17, 3)):\n try: \
        socket.socket(f, t); print(\"LEAK\", f)\n except OSError as e: print(e.errno)\n";
    let Some(out) = run(&plan, &format!("/usr/bin/python3 -Ic '{script}'")) else { return };
    assert_eq!(out, "1\n1\n1\n1\n1\n1\n");
}

#[test]
fn what_it_cannot_hold_it_says_or_refuses() {
    let Ok(level) = Level::of_kernel() else { return skip("no landlock") };
    let held = judge::coverage(&plan(&[]), &mechanism(level, LimitMechanism::Found(Vec::new())));
    assert!(
        held.held(bailiwick_policy::enforcement::Aspect::Files).why.contains("modes and times are not held")
    );
    assert_eq!(
        held.held(bailiwick_policy::enforcement::Aspect::Files).precision,
        bailiwick_policy::enforcement::Precision::Superset
    );
    let hosts = plan(&["net:connect:example.com:443"]);
    let (command, _output) = shell("true");
    let refused = start(&hosts, command, &Options::default()).unwrap_err().to_string();
    assert!(refused.contains("`net` must be `mediated`"), "{refused}");
}

#[test]
fn a_path_that_must_stay_hidden_is_not_granted_with_its_directory() {
    use bailiwick_policy::capability::CapabilitySet;
    use bailiwick_policy::facts::HostFacts;
    use bailiwick_policy::path::AbsPath;
    let set = CapabilitySet::new(["fs:read:/usr/share/**"]).unwrap();
    let refused = |hidden: &str| {
        let facts = HostFacts::unknown().with_protected(AbsPath::new(hidden).unwrap());
        refuse_hidden(&Plan::for_authority("test", set.authority(), &facts).unwrap()).is_err()
    };
    assert!(refused("/usr/share/keys"));
    assert!(refused("/usr/share"));
    assert!(!refused("/usr/sharing"));
    assert!(!refused("/var/lib/keys"));
}

#[test]
fn killing_ends_what_was_started_also_in_another_session() {
    if let Err(fault) = Level::of_kernel() {
        return skip(&fault.to_string());
    }
    let plan = plan(&["exec:spawn:sleep", "exec:spawn:setsid"]);
    // A number of seconds that no other process sleeps for.
    let seconds = format!("{}.77", 4000 + std::process::id() % 1000);
    let (command, output) = shell(&format!("setsid sleep {seconds} & sleep {seconds}; :"));
    let mut launched = start(&plan, command, &Options::default()).unwrap();
    let reached = |count: usize| {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while bailiwick_testkit::sleepers(&seconds) != count && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        bailiwick_testkit::sleepers(&seconds) == count
    };
    assert!(reached(2), "{}", {
        launched.kill();
        all(output)
    });
    launched.kill();
    assert!(reached(0));
}
