//! A start is recorded before it happens, its end afterwards, and without a record there is no start.

use std::io::Read as _;
use std::path::Path;

use bailiwick_journal::format::{Record, RecordKind};
use bailiwick_journal::{Filter, Options, SharedJournal};
use bailiwick_launch::{
    Command, Exit, HostPlanner, Launch, LaunchError, Launched, Launcher, Pipes, RecordError, Recorder,
};
use bailiwick_policy::capability::CapabilitySet;
use bailiwick_policy::plan::Plan;
use bailiwick_testkit::journal::Dir;

fn plan(lines: &[&str]) -> Plan {
    let granted = CapabilitySet::new(lines.iter().copied()).unwrap();
    HostPlanner::default().authority_plan("test", granted.authority()).unwrap()
}

fn shell(line: &str) -> (Command, Pipes) {
    let (stdio, ends) = Pipes::open().unwrap();
    (Command { args: ["-c", line].map(Into::into).to_vec(), stdio, ..Command::new("sh") }, ends)
}

fn launched(
    plan: &Plan,
    line: &str,
    recorder: Recorder,
    by: &Launcher,
) -> Result<(Launched, Pipes), LaunchError> {
    let (command, ends) = shell(line);
    let launch = Launch::new(plan, command, recorder).held_by(by.clone(), Path::new("/tmp"));
    Ok((launch.prepare()?.start()?, ends))
}

/// A directory that a program may write, and a line that leaves a mark there.
fn marked() -> (tempfile::TempDir, Plan, String) {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let plan = plan(&[&format!("fs:read,write:{}", dir.path().display())]);
    let line = format!("echo ran >{}/mark", dir.path().display());
    (dir, plan, line)
}

#[test]
fn what_cannot_be_recorded_is_not_started() {
    for by in [Launcher::Native, Launcher::Landlock] {
        let (dir, plan, line) = marked();
        let journal = Dir::new();
        let closed = journal.open("a", Options::default());
        let recorder = Recorder::session("test", closed.clone());
        closed.close().unwrap();
        let refused = launched(&plan, &line, recorder, &by).err().unwrap();
        assert!(matches!(refused, LaunchError::Unrecorded(RecordError::Journal(_))), "{refused}");
        assert_eq!(refused.exit_code(), 125);
        assert!(!dir.path().join("mark").exists(), "{by:?}: it ran");

        let journal = Dir::new();
        let shared = SharedJournal::open(&journal.path()).unwrap();
        std::fs::remove_dir_all(journal.path()).unwrap();
        std::fs::write(journal.path(), "in its place").unwrap();
        let refused = launched(&plan, &line, Recorder::shared("test", shared), &by).err().unwrap();
        assert!(matches!(refused, LaunchError::Unrecorded(_)), "{refused}");
        assert!(!dir.path().join("mark").exists(), "{by:?}: it ran");

        let recorder = Recorder::session("test", Dir::new().open("a", Options::default()));
        let (mut running, _ends) = launched(&plan, &line, recorder, &by).unwrap();
        assert_eq!(running.wait().unwrap(), Exit::Code(0));
        assert!(dir.path().join("mark").exists(), "(control)");
    }
}

fn events(records: &[Record], kind: RecordKind) -> Vec<&Record> {
    records.iter().filter(|record| record.event().is_some_and(|event| event.kind() == kind)).collect()
}

#[test]
fn the_start_stands_in_the_journal_while_the_program_runs() {
    let journal = Dir::new();
    let recorder = Recorder::shared("test", SharedJournal::open(&journal.path()).unwrap());
    let (mut running, mut ends) =
        launched(&plan(&[]), "echo running; read line; exit 3", recorder, &Launcher::Native).unwrap();
    let mut said = [0; 8];
    ends.stdout.read_exact(&mut said).unwrap();
    let records = journal.records(Filter::default());
    assert_eq!(events(&records, RecordKind::SandboxStarted).len(), 1);
    assert_eq!(events(&records, RecordKind::SandboxEnded).len(), 0);
    drop(ends.stdin);
    let exit = running.wait().unwrap();
    running.finish(&exit.to_string()).unwrap();
    let records = journal.records(Filter::default());
    let (began, ended) =
        (events(&records, RecordKind::SandboxStarted), events(&records, RecordKind::SandboxEnded));
    let event = ended[0].event().unwrap();
    assert_eq!((event.parent(), event.reason()), (Some(began[0].seq), Some("exit code 3")));
    assert!(event.duration_us().is_some());
    let started = began[0].event().unwrap();
    assert_eq!(started.tool(), Some("test"));
    assert_eq!(started.plan_hash(), Some(plan(&[]).digest()));
    assert!(started.enforcement().unwrap().iter().any(|axis| axis == ("fs", "kernel")));
    assert!(journal.verify().is_intact());
}

#[test]
fn a_start_that_did_not_happen_is_recorded_as_such() {
    let journal = Dir::new();
    let recorder = Recorder::shared("test", SharedJournal::open(&journal.path()).unwrap());
    let program = tempfile::Builder::new().prefix("none").tempfile_in("/var/tmp").unwrap();
    std::fs::write(program.path(), "\u{7f}ELF").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(program.path(), mode).unwrap();
    let path = program.into_temp_path();
    let plan = plan(&[]);
    let refused =
        Launch::new(&plan, Command::new(path.as_os_str()), recorder).prepare().map(|ready| ready.start());
    match refused {
        // Seen before anything was recorded.
        Err(_) => assert!(journal.records(Filter::default()).is_empty()),
        Ok(started) => {
            assert!(started.is_err(), "it is no program");
            let records = journal.records(Filter::default());
            let ended = events(&records, RecordKind::SandboxEnded);
            assert_eq!(ended[0].event().unwrap().reason(), Some("it did not start"));
        }
    }
}
