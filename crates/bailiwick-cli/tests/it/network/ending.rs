//! What is left when the supervisor is gone: nothing.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use bailiwick_confine::{Command, Options, Prepared, Stdio};
use bailiwick_egress::{Egress, Sockets};
use bailiwick_policy::capability::CapabilitySet;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::Plan;

use super::inside::{self, ANSWER};
use super::servers;
use super::world::{Stage, in_world, test_name, users};
use super::{GOOD, WORLD};

const RAW: &str = "net:connect:good.test:7000?protocol=raw";
const SAY: &str = "say good.test 7000 ping";

#[test]
fn a_killed_supervisor_takes_the_sandbox_and_its_network_along() {
    if !in_world(test_name!()) {
        return;
    }
    let seen = servers::echo(&format!("{GOOD}:7000"));
    for user in users() {
        let stage = Stage::new(*user);
        let mut run = stage.client(&[RAW], &WORLD).spawn().unwrap();
        let mut talk = Talk::new(run.stdin.take().unwrap(), run.stdout.take().unwrap());
        assert_eq!(talk.tried(SAY).as_deref(), Some("ping"), "(control)");
        assert!(lives(&stage.path("client")), "the sandbox runs");
        let before = seen.count();
        run.kill().unwrap();
        run.wait().unwrap();
        // In the moment before the kernel has ended it, it may still try.
        let last = talk.tried(SAY);
        assert!(last.as_ref().is_none_or(|answer| answer.starts_with("no: ")), "{last:?}");
        let since = Instant::now();
        while lives(&stage.path("client")) {
            assert!(since.elapsed() < Duration::from_secs(60), "a process outlived the supervisor");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(seen.count(), before);
    }
}

#[test]
fn a_dropped_network_answers_nothing_more() {
    if !in_world(test_name!()) {
        return;
    }
    let seen = servers::echo(&format!("{GOOD}:7000"));
    let stage = Stage::new(users()[0]);
    let set = CapabilitySet::new([RAW, &format!("env:read:{}", inside::MARK)]).unwrap();
    let plan = Plan::for_authority("test", set.authority(), &HostFacts::unknown()).unwrap();
    let (input, output) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    let stdio = Stdio::Descriptors {
        stdin: input.0.into(),
        stdout: output.1.into(),
        stderr: std::fs::File::create("/dev/null").unwrap().into(),
    };
    let args = inside::ARGUMENTS.into_iter().map(Into::into).collect();
    let env = [(inside::MARK.into(), "1".into())].into();
    let command = Command { args, env, stdio, ..Command::new(stage.path("client")) };
    let prepared = Prepared::new(&plan, command, Options::default()).unwrap_or_else(|why| panic!("{why}"));
    let mut confined = prepared.spawn().unwrap_or_else(|fault| panic!("{fault}"));
    let taken = confined.take_egress().unwrap();
    let sockets = Sockets {
        dns_udp: taken.dns_udp,
        dns_tcp: taken.dns_tcp,
        relays: taken.relays,
        redirected: taken.redirected,
        ..Sockets::default()
    };
    let hosts = [("good.test".into(), vec![GOOD.parse().unwrap()])].into();
    let options = bailiwick_egress::Options { hosts, ..bailiwick_egress::Options::default() };
    let running = Egress::new(plan.network(), options).serve(sockets).unwrap();
    let mut talk = Talk::new(input.1, output.0);
    assert_eq!(talk.tried(SAY).as_deref(), Some("ping"), "(control)");
    assert_eq!(talk.tried("say 44.128.0.1 7000 ping").as_deref(), Some("ping"), "(control)");
    drop(running);
    let before = seen.count();
    assert_eq!(talk.tried("address good.test").as_deref(), Some("no: AddrNotAvailable"));
    assert_eq!(talk.tried("say 44.128.0.1 7000 ping").as_deref(), Some("no: ConnectionRefused"));
    assert_eq!(seen.count(), before);
}

/// Attempts made one by one.
pub(super) struct Talk<W, R> {
    input: W,
    output: BufReader<R>,
}

impl<W: Write, R: Read> Talk<W, R> {
    pub(super) fn new(input: W, output: R) -> Self {
        Self { input, output: BufReader::new(output) }
    }

    /// What comes of an attempt, if there still is somebody to make it.
    pub(super) fn tried(&mut self, attempt: &str) -> Option<String> {
        writeln!(self.input, "{attempt}").ok()?;
        let mut lines = self.output.by_ref().lines().map_while(Result::ok);
        lines.find_map(|line| line.strip_prefix(ANSWER).map(str::to_owned))
    }
}

/// Whether a process runs this program.
fn lives(program: &Path) -> bool {
    let about = std::fs::metadata(program).unwrap();
    let same = |id: &std::ffi::OsStr| {
        use std::os::unix::fs::MetadataExt as _;
        let exe = std::fs::metadata(Path::new("/proc").join(id).join("exe"));
        exe.is_ok_and(|exe| (exe.dev(), exe.ino()) == (about.dev(), about.ino()))
    };
    std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).any(|entry| same(&entry.file_name()))
}
