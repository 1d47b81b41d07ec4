//! Guardrails around a registry, in one process.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bailiwick_guard::{
    Answered, Approver, Call, Consent, Grant, Guarded, Outcome, Output, PendingCall, Registry, Session, Tool,
    ToolContext, ToolError, ToolFault,
};
use bailiwick_guardrails::{GUARDRAILS, Reload, SourceKind, State, Trust, trustable};
use bailiwick_manifest::caveats::Caveats;
use bailiwick_policy::denial::DenialCode;
use serde_json::{Value, json};

use bailiwick_testkit::journal::{Dir, fsync};

const RULES: &str = r#"
[[guard]]
match = "shell(command=^rm -rf)"
message = "no"

[[guard]]
match = "shell(command=^make)"
action = "ask"
message = "sure?"

[[guard]]
match = "shell(command=^ship)"
when = ["-shell(command=^prepare)"]
message = "prepare first"

[[hook]]
match = "shell(command=^echo)"
script = ".agents/say.sh"

[[validator]]
name = "v"
when = ["+ok:shell"]
script = ".agents/say.sh"
"#;

/// A tool that fails when told to, and counts how often it ran.
struct Bash(Arc<AtomicUsize>);

impl Tool for Bash {
    fn name(&self) -> &str {
        "Bash"
    }

    fn description(&self) -> &str {
        "runs"
    }

    fn schema(&self) -> Value {
        json!({"type": "object"})
    }

    async fn invoke(&self, args: Value, _: &ToolContext) -> Result<Output, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        if args["fail"] == true { Err(ToolError::failed("failed")) } else { Ok(json!("ran").into()) }
    }
}

struct Yes;

impl Approver for Yes {
    fn ask<'a>(
        &'a self,
        _: &'a Call,
        question: &'a str,
    ) -> std::pin::Pin<Box<dyn Future<Output = Consent> + Send + 'a>> {
        assert_eq!(question, "[guardrail] sure?");
        Box::pin(async { Consent::Given })
    }
}

struct Place {
    temp: Dir,
    project: tempfile::TempDir,
    ran: Arc<AtomicUsize>,
}

impl Place {
    fn new(rules: &str) -> Self {
        let project = tempfile::tempdir().unwrap();
        let place = Self { temp: Dir::new(), project, ran: Arc::default() };
        std::fs::create_dir_all(place.dir().join(".agents")).unwrap();
        place.write(rules);
        let script = place.dir().join(".agents/say.sh");
        std::fs::write(&script, "#!/bin/sh\necho said\nexit 1\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(script, mode).unwrap();
        place
    }

    fn dir(&self) -> PathBuf {
        self.project.path().canonicalize().unwrap()
    }

    fn write(&self, rules: &str) {
        std::fs::write(self.dir().join(GUARDRAILS), rules).unwrap();
    }

    fn state(&self) -> State {
        State::open(&self.temp.path().with_file_name("state")).unwrap()
    }

    fn trust(&self) {
        Trust::add(&self.state(), &self.dir(), trustable(&self.dir()).unwrap().unwrap().0).unwrap();
    }

    fn guarded(&self) -> (Guarded, Grant) {
        let journal = self.temp.open("guarded", fsync());
        let builder = Registry::builder(journal, Session::new(self.dir()))
            .tool(Bash(Arc::clone(&self.ran)))
            .approver(Yes);
        let guarded = Guarded::around(builder, &self.dir(), &self.state(), None).unwrap();
        let grant = guarded.registry().mint_grant(&Caveats::top()).unwrap();
        (guarded, grant)
    }
}

/// Whether the tool ran and succeeded.
fn ran(answered: &Answered) -> bool {
    answered.result.as_ref().is_ok_and(Outcome::is_success)
}

fn bash(args: Value, grant: &Grant) -> PendingCall {
    PendingCall::new("Bash", args, grant)
}

fn sh(command: &str) -> Value {
    json!({ "command": command })
}

fn code(result: &Result<Outcome, ToolFault>) -> Option<DenialCode> {
    result.as_ref().ok().and_then(Outcome::denial).map(bailiwick_policy::denial::Denial::code)
}

#[tokio::test]
async fn calls_are_judged_asked_about_and_followed_by_scripts() {
    let place = Place::new(RULES);
    place.trust();
    let (guarded, grant) = place.guarded();
    let blocked = guarded.run(bash(sh("sudo rm -fr x"), &grant)).await;
    assert_eq!(code(&blocked.result), Some(DenialCode::GuardrailBlocked));
    assert!(blocked.result.unwrap().denial().unwrap().to_string().contains("[guardrail] no"));
    assert_eq!(place.ran.load(Ordering::SeqCst), 0, "it never ran");
    assert!(guarded.end_turn("x", "main").await.is_empty(), "a blocked call is no entry");
    assert!(ran(&guarded.run(bash(sh("make"), &grant)).await), "the approver said yes");
    let texts = |answered: Answered| answered.injected.into_iter().map(|one| one.text).collect::<Vec<_>>();
    assert_eq!(texts(guarded.run(bash(sh("echo x"), &grant)).await), ["said"]);
    let failed = json!({"command": "echo y", "fail": true});
    assert_eq!(texts(guarded.run(bash(failed, &grant)).await), ["said"], "hooks see failures too");
    let turn = guarded.end_turn("x", "main").await;
    assert_eq!(turn.iter().map(|one| one.source).collect::<Vec<_>>(), [SourceKind::Validator]);
    assert!(guarded.end_turn("x", "main").await.is_empty(), "its window is used up");
}

#[tokio::test]
async fn a_batch_is_judged_in_order_before_any_of_it_runs() {
    let place = Place::new(RULES);
    let (guarded, grant) = place.guarded();
    let calls = |commands: [&str; 2], grant: &Grant| commands.map(|command| bash(sh(command), grant)).into();
    let answers = guarded.run_batch(calls(["ship it", "prepare"], &grant)).await;
    assert!(!ran(&answers[0]) && ran(&answers[1]));
    let (guarded, grant) = Place::new(RULES).guarded();
    let answers = guarded.run_batch(calls(["prepare", "ship it"], &grant)).await;
    assert!(answers.iter().all(ran), "{answers:?}");
}

#[tokio::test]
async fn a_reload_that_breaks_keeps_the_last_good_rules() {
    let place = Place::new(RULES);
    let (guarded, grant) = place.guarded();
    place.write("[[guards]]");
    assert!(
        matches!(guarded.reload().unwrap(), Reload::KeptOld(why) if why.contains("guardrail-unknown-field"))
    );
    assert!(!ran(&guarded.run(bash(sh("rm -rf x"), &grant)).await), "the old rules");
    assert!(ran(&guarded.run(bash(sh("ls"), &grant)).await));
    place.write(
        "[[guard]]\nmatch = \"shell(command=^ls)\"\nwhen = [\"+shell(command=^ls)\"]\nmessage = \"once\"",
    );
    assert_eq!(guarded.reload().unwrap(), Reload::Changed);
    assert!(!ran(&guarded.run(bash(sh("ls"), &grant)).await), "the past counts under new rules");
    let (broken, grant) = Place::new("nonsense").guarded();
    let refused = broken.run(bash(sh("ls"), &grant)).await;
    assert_eq!(code(&refused.result), Some(DenialCode::GuardrailBroken), "broken from the start");
}

#[tokio::test]
async fn no_tool_of_the_registry_changes_what_holds_it() {
    let place = Place::new(RULES);
    let (guarded, grant) = place.guarded();
    for command in ["bailiwick trust .", "echo > .agents/guardrails.toml"] {
        let refused = guarded.run(bash(sh(command), &grant)).await;
        assert_eq!(code(&refused.result), Some(DenialCode::GuardrailProtected), "{command}");
    }
}
