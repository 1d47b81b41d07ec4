//! Artifacts run by the programs that this host has.

use std::io::{PipeReader, Read as _};
use std::time::{Duration, Instant};

use bailiwick_confine::{Exit, RunningProcess};
use bailiwick_policy::artifact::{ArtifactFile, Emitted, Provenance};
use bailiwick_policy::capability::CapabilitySet;
use bailiwick_policy::enforcement::{Aspect, Coverage, Floor, Held, Level};

use bailiwick_testkit::{on_a_poorer_host, skip, sleepers};

use super::*;
use crate::{HostPlanner, Pipes};

/// The plan of these capabilities.
fn plan(capabilities: &[&str]) -> Plan {
    let set = CapabilitySet::new(capabilities.iter().copied()).unwrap();
    HostPlanner::default().authority_plan("test", set.authority()).unwrap()
}

/// A shell line, and the pipe that it prints to.
fn shell(line: &str) -> (Command, PipeReader) {
    let (stdio, ends) = Pipes::open().unwrap();
    let args = ["-c", line].map(Into::into).to_vec();
    (Command { args, stdio, ..Command::new("sh") }, ends.stdout)
}

fn all(mut output: PipeReader) -> String {
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    text
}

fn start(
    plan: &Plan,
    artifact: &Artifact,
    command: Command,
    options: &Options,
    scratch: &Path,
) -> Result<RunningProcess, Refusal> {
    prepare(plan, artifact, command, options, scratch)?.start()
}

#[test]
fn every_backend_that_was_tried_has_an_answer_and_a_lack_has_a_fix() {
    for ability in Backend::abilities() {
        eprintln!("{ability:?}");
        match &ability.result {
            Ok(how) => assert!(!how.is_empty(), "{}", ability.name),
            Err(lack) => assert!(!lack.why.is_empty() && !lack.fix.is_empty(), "{}", ability.name),
        }
    }
}

/// Whether a backend does not work on a host that `wrapper` has made poorer; nothing where there is no such host.
fn lacks(wrapper: &str, name: &str) -> Option<bool> {
    let test = "external::tests::every_backend_that_was_tried_has_an_answer_and_a_lack_has_a_fix";
    let report = on_a_poorer_host(test, wrapper)?;
    let line = format!("Ability {{ name: {name:?}, result: Err(");
    Some(report.lines().any(|one| one.starts_with(&line)))
}

#[test]
fn a_host_without_user_namespaces_has_no_backend_that_needs_them() {
    let wrapper = "unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; exec capsh --drop=all -- -c \"PROBE\"'";
    for name in ["bwrap", "runc"] {
        assert!(lacks(wrapper, name).unwrap_or(true), "{name}");
    }
}

#[test]
fn firejail_inside_a_pid_namespace_is_no_backend() {
    if bailiwick_confine::host::system_program("firejail").is_none() {
        return skip("no firejail");
    }
    for wrapper in ["unshare -Urpf --mount-proc sh -c 'PROBE'", "unshare -pf --mount-proc sh -c 'PROBE'"] {
        assert!(lacks(wrapper, "firejail").unwrap_or(true), "{wrapper}");
    }
}

/// An artifact as the compiler writes one, with as little in it as shows the shape.
fn artifact(target: &'static str, plan: &Plan, argv: &[&str], files: &[(&str, &str)]) -> Artifact {
    let file =
        |(name, text): &(&str, &str)| ArtifactFile { name: (*name).to_owned(), text: (*text).to_owned() };
    let emitted = Emitted {
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        files: files.iter().map(file).collect(),
        notes: vec!["a note".to_owned()],
        coverage: Coverage::from_fn(|_| Held::kernel("as the compiler says")),
    };
    Artifact::new(target, plan, emitted, Provenance { manifest: None, compiler: "test".to_owned() })
}

const BWRAP: &str = "bwrap --unshare-user --unshare-pid --unshare-ipc --unshare-net --die-with-parent --new-session \
    --cap-drop ALL --clearenv --setenv PATH /usr/bin:/bin --ro-bind /usr /usr --symlink usr/bin /bin \
    --symlink usr/lib /lib --symlink usr/lib64 /lib64 --dev /dev --proc /proc --tmpfs /tmp --";

fn bwrap(plan: &Plan) -> Artifact {
    let files = [("bwrap.sh", "exit 1"), ("etc/passwd", "made:x:1:1::/:/bin/sh\n")];
    artifact("bwrap", plan, &BWRAP.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>(), &files)
}

const FIREJAIL: [&str; 7] =
    ["env", "-i", "PATH=/usr/bin:/bin", "firejail", "--quiet", "--profile=firejail.profile", "--"];

fn oci(plan: &Plan) -> Artifact {
    let bind = |path: &str| {
        format!(r#"{{"destination":"{path}","source":"{path}","type":"bind","options":["rbind","ro"]}}"#)
    };
    let links = ["/bin", "/lib", "/lib64", "/usr"].map(bind).join(",");
    let config = format!(
        r#"{{"ociVersion":"1.0.2","process":{{"terminal":false,"user":{{"uid":0,"gid":0}},"args":[],"cwd":"/",
        "env":["PATH=/usr/bin:/bin"],"noNewPrivileges":true}},"root":{{"path":"rootfs","readonly":true}},
        "mounts":[{links},{{"destination":"/proc","source":"proc","type":"proc"}}],"linux":{{"namespaces":[
        {{"type":"user"}},{{"type":"pid"}},{{"type":"mount"}},{{"type":"ipc"}},{{"type":"network"}}],
        "uidMappings":[{{"containerID":0,"hostID":0,"size":1}}],"gidMappings":[{{"containerID":0,"hostID":0,"size":1}}]}}}}"#
    );
    let files = [("config.json", &*config), ("config.rootless.json", &config), ("rootfs/.empty", "")];
    artifact("oci", plan, &["runc", "run", "--bundle", ".", "bailiwick"], &files)
}

fn artifacts(plan: &Plan) -> Vec<Artifact> {
    let profile = "caps.drop all\nnonewprivs\nnoroot\nnet none\nprivate-dev\n";
    let firejail = artifact("firejail", plan, &FIREJAIL, &[("firejail.profile", profile)]);
    let all = vec![bwrap(plan), oci(plan), firejail];
    all.into_iter().filter(is_usable).collect()
}

fn is_usable(artifact: &Artifact) -> bool {
    let probe = backend(artifact).unwrap().probe();
    probe.inspect_err(|lack| skip(&format!("{}: {}", artifact.target(), lack.why))).is_ok()
}

fn options() -> Options {
    Options { floor: Some(Floor::none()), ..Options::default() }
}

#[test]
fn each_backend_runs_a_command_with_its_variables_and_nothing_else() {
    let plan = plan(&["env:inject:SECRET"]);
    for artifact in artifacts(&plan) {
        let scratch = tempfile::tempdir_in("/tmp").unwrap();
        let line = "echo \"$SECRET $OTHER\"; tr '\\0' ' ' </proc/1/cmdline | grep -c s3cre[t]; ls /proc/self/fd | wc -l; exit 7";
        let (mut command, output) = shell(line);
        command.env = [("SECRET", "s3cret"), ("OTHER", "no")].map(|(n, v)| (n.into(), v.into())).into();
        // This one was not closed.
        let open = std::fs::File::open("/etc/hostname").unwrap();
        rustix::io::fcntl_setfd(&open, rustix::io::FdFlags::empty()).unwrap();
        let mut launched = start(&plan, &artifact, command, &options(), scratch.path()).unwrap();
        drop(open);
        assert_eq!(launched.status().details, ["a note"]);
        assert_eq!(launched.wait().unwrap(), Exit::Code(7), "{}", artifact.target());
        drop(launched);
        // Standard descriptors, the directory that is listed, and nothing of ours.
        assert_eq!(all(output), "s3cret \n0\n4\n", "{}", artifact.target());
        let left = std::fs::read_dir(scratch.path()).unwrap().count();
        assert_eq!(left, 0, "{}: its directory is gone", artifact.target());
    }
}

#[test]
fn stub_files_are_shown() {
    let plan = plan(&[]);
    let artifact = bwrap(&plan);
    if !is_usable(&artifact) {
        return;
    }
    let (command, output) = shell("cat /etc/passwd; id -u");
    let mut launched = start(&plan, &artifact, command, &options(), Path::new("/tmp")).unwrap();
    launched.wait().unwrap();
    assert!(all(output).starts_with("made:x:1"));
}

#[test]
fn killing_ends_the_whole_tree() {
    let plan = plan(&[]);
    for artifact in artifacts(&plan) {
        // A number of seconds that no other process sleeps for.
        let seconds = format!("{}.{}", 3000 + std::process::id() % 1000, artifact.target().len());
        let line = format!("setsid sleep {seconds} & setsid sh -c 'sleep {seconds}; :' & echo started; wait");
        let (command, output) = shell(&line);
        let mut launched = start(&plan, &artifact, command, &options(), Path::new("/tmp")).unwrap();
        let sleeping = || sleepers(&seconds);
        let deadline = Instant::now() + Duration::from_secs(5);
        while sleeping() < 2 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(sleeping() >= 2, "{}", artifact.target());
        assert_eq!(launched.wait_until(Instant::now()).unwrap(), None);
        launched.kill();
        let deadline = Instant::now() + Duration::from_secs(2);
        while sleeping() > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(sleeping(), 0, "{}", artifact.target());
        drop(output);
    }
}

#[test]
fn limits_hold_for_what_another_backend_runs() {
    let limited = plan(&[]).with_limits(bailiwick_policy::limits::Limits {
        file_size: Some(1 << 16),
        ..bailiwick_policy::limits::Limits::default()
    });
    let artifact = bwrap(&limited);
    if !is_usable(&artifact) {
        return;
    }
    let (command, output) = shell("exec 2>/dev/null; head -c 100000 /dev/zero > /tmp/f; wc -c < /tmp/f");
    let mut launched = start(&limited, &artifact, command, &options(), Path::new("/tmp")).unwrap();
    assert_eq!(launched.status().coverage.held(Aspect::Limits).level, Level::Kernel);
    launched.wait().unwrap();
    assert!(all(output).contains("65536"));
}

#[test]
fn what_is_not_a_backend_or_below_the_floor_is_refused() {
    let plan = plan(&[]);
    let other = artifact("kubernetes", &plan, &[], &[]);
    let refused = |artifact: &Artifact, options: &Options| {
        let (command, _output) = shell("true");
        start(&plan, artifact, command, options, Path::new("/tmp")).unwrap_err().to_string()
    };
    assert!(refused(&other, &options()).contains("`kubernetes` cannot be used"));
    if is_usable(&bwrap(&plan)) {
        let mut weak = bwrap(&plan);
        let emitted = Emitted {
            argv: weak.argv().to_vec(),
            files: Vec::new(),
            notes: Vec::new(),
            coverage: Coverage::from_fn(|_| Held::unsupported("nothing")),
        };
        weak = Artifact::new("bwrap", &plan, emitted, Provenance { manifest: None, compiler: String::new() });
        assert!(refused(&weak, &Options::default()).contains("cannot hold what is demanded"));
    }
}
