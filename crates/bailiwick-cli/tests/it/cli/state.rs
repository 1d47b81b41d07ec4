//! State that version 0.1.0 left behind: it is read, verified, carried on and undone by the command of today.
//!
//! `tests/fixtures/state-0.1.0` was written by that version; its README says how. A test works on a copy, with the
//! modes that git does not keep, and with the paths and times of its own where a file has them in plain text.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bailiwick_policy::digest::Digest;
use serde_json::{Value, json};

use super::Ran;

/// The directory whose guardrails were trusted, as `trust.json` has it.
const OLD_PROJECT: &str = "/srv/bailiwick-0.1.0/project";

/// A home with a copy of the fixture.
struct OldHome(tempfile::TempDir);

impl OldHome {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/state-0.1.0");
        copy(&fixture.join("state"), &home.state());
        copy(&fixture.join("project"), &home.project());
        fs::set_permissions(home.project().join(".agents/check.sh"), Permissions::from_mode(0o755)).unwrap();
        copy(&fixture.join("claude"), &home.path().join(".claude"));
        home
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn project(&self) -> PathBuf {
        self.path().join("project")
    }

    fn state(&self) -> PathBuf {
        self.path().join(".local/state/bailiwick")
    }

    /// Puts this home's paths in the place of those that 0.1.0 saw.
    fn replace(&self, file: &str, from: &str, to: &str) {
        let path = self.state().join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file}: {text}");
        fs::write(&path, text.replace(from, to)).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = super::command(args);
        command.env("HOME", self.path()).current_dir(self.project());
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        super::done(self.command(args).output().unwrap())
    }

    /// One event of an agent that calls `bailiwick hook generic`.
    fn hook(&self, args: &[&str], event: &Value) -> Ran {
        let mut command = self.command(&[&["hook", "generic"], args].concat());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        super::done(child.wait_with_output().unwrap())
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, Permissions::from_mode(0o700)).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
            fs::set_permissions(&target, Permissions::from_mode(0o600)).unwrap();
        }
    }
}

#[test]
fn the_journal_of_0_1_0_is_verified_and_shown() {
    let home = OldHome::new();
    let verified = home.run(&["log", "verify", "--format", "json"]);
    assert_eq!(verified.exit, 0, "{}{}", verified.out, verified.err);
    let stats: Value = serde_json::from_str(&home.run(&["log", "stats", "--format", "json"]).out).unwrap();
    let kinds = json!({"capability-denied": 2, "sandbox-started": 2, "session-ended": 2});
    assert_eq!((&stats["kind"], &stats["code"]["guardrail-blocked"]), (&kinds, &json!(1)), "{stats}");
}

#[test]
fn a_changed_line_of_0_1_0_is_found() {
    let home = OldHome::new();
    let journal = home.state().join("journal");
    let segment = fs::read_dir(&journal).unwrap().map(|entry| entry.unwrap().path());
    let segment = segment.filter(|path| path.to_string_lossy().ends_with(".000000.jsonl")).min().unwrap();
    let text = fs::read_to_string(&segment).unwrap();
    let changed = text.replacen("\"seq\":0", "\"seq\":1", 1);
    assert_ne!(changed, text);
    fs::write(&segment, changed).unwrap();
    assert_eq!(home.run(&["log", "verify"]).exit, 1);
}

#[test]
fn trust_of_0_1_0_holds_until_a_script_changes() {
    let home = OldHome::new();
    home.replace("trust.json", OLD_PROJECT, home.project().to_str().unwrap());
    let event = json!({"event": "before", "session": "new", "tool": "Bash", "cwd": home.project(),
                       "params": {"command": "rm -rf build"}});
    let denied = home.hook(&[], &event);
    assert!(
        denied.out.contains("\"code\":\"guardrail-blocked\""),
        "the rule decides: {}{}",
        denied.out,
        denied.err
    );
    fs::write(home.project().join(".agents/check.sh"), "#!/bin/sh\necho other\n").unwrap();
    let changed = home.hook(&[], &event);
    assert!(changed.out.contains("guardrail-changed"), "{}{}", changed.out, changed.err);
    assert_eq!(home.run(&["trust", "--yes", "."]).exit, 0);
    let store: Value = serde_json::from_slice(&fs::read(home.state().join("trust.json")).unwrap()).unwrap();
    assert_eq!(store["version"], 1, "{store}");
}

#[test]
fn questions_of_0_1_0_are_pending_and_can_be_answered() {
    let home = OldHome::new();
    let path = home.state().join("approvals.json");
    let mut questions: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert!(questions.is_array(), "0.1.0 wrote a bare list");
    let soon = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(600);
    questions[0]["expires"] = json!(u64::try_from(soon.as_micros()).unwrap());
    fs::write(&path, questions.to_string()).unwrap();
    let id = questions[0]["id"].as_str().unwrap();
    let waiting = home.run(&["pending", "--format", "json"]);
    assert!(waiting.out.contains(id), "{}{}", waiting.out, waiting.err);
    assert_eq!(home.run(&["approve", "--yes", id]).exit, 0);
    let stored: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!((&stored["version"], &stored["questions"][0]["answer"]), (&json!(1), &json!("approved")));
}

#[test]
fn a_session_of_0_1_0_is_counted_on() {
    let home = OldHome::new();
    let manifest = home.path().join("agent.toml");
    let text =
        "name = 'agent'\nversion = '1'\n[[tools]]\nname = 'Bash'\n[tools.constraints]\nmax_invocations = 3\n";
    fs::write(&manifest, text).unwrap();
    let call = |number: u32| {
        json!({"event": "before", "session": "old", "tool": "Bash", "id": format!("new-{number}"),
               "params": {"command": "ls"}})
    };
    let args = ["--manifest", manifest.to_str().unwrap()];
    // Two calls are in the log of 0.1.0.
    let third = home.hook(&args, &call(3));
    assert!(third.out.contains("\"allow\""), "{}{}", third.out, third.err);
    let fourth = home.hook(&args, &call(4));
    assert!(fourth.out.contains("\"deny\""), "{}{}", fourth.out, fourth.err);
}

#[test]
fn hook_entries_of_0_1_0_are_undone_byte_for_byte() {
    let home = OldHome::new();
    let settings = home.path().join(".claude/settings.json");
    let before = fs::read(home.path().join(".claude/settings.before.json")).unwrap();
    assert_ne!(fs::read(&settings).unwrap(), before);
    // What a file was before is kept under the hash of its path.
    let name: String =
        Digest::sha256(settings.as_os_str().as_encoded_bytes()).to_string().chars().take(32).collect();
    let kept = home.state().join("install");
    let old = fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().path()).next().unwrap();
    fs::rename(old, kept.join(name)).unwrap();
    let undone = home.run(&["install", "--hooks", "--undo", "claude-code"]);
    assert_eq!(undone.exit, 0, "{}{}", undone.out, undone.err);
    assert_eq!(fs::read(&settings).unwrap(), before);
}

#[test]
fn hook_entries_of_0_1_0_are_known_in_an_edited_file() {
    let home = OldHome::new();
    let settings = home.path().join(".claude/settings.json");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, text.replacen('{', "{\n  \"added\": true,", 1)).unwrap();
    assert_eq!(home.run(&["install", "--hooks", "--undo", "claude-code"]).exit, 0);
    let left = fs::read_to_string(&settings).unwrap();
    assert!(!left.contains("bailiwick") && left.contains("\"added\": true"), "{left}");
    assert!(left.contains("// kept by hand"), "comments stay: {left}");
}
