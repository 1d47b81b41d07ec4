//! A machine in a fleet: what its log revokes ends while it runs, what it narrows is narrower, and what cannot be known starts nothing.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bailiwick_fleet::enrolment::Enrolment;
use bailiwick_fleet::entry::{
    Bundle, EntryBody, Grant, Package, Pin, Rule, RuleFormat, Scope, Target, surface_digest,
};
use bailiwick_testkit::fleet::{LogServer, Manners, TestLog, enrolment, revocation};
use serde_json::{Value, json};

use super::{World, Wrapped, call, text};
use crate::run::{eventually, processes};

const MORTAL: &str =
    "name = 'mortal'\nversion = '1'\n[[tools]]\nname = 'wait'\ncapabilities = ['exec:spawn:sleep']\n";

/// A machine, its log, and the web server that has it.
struct Fleet {
    world: World,
    log: TestLog,
    server: LogServer,
}

impl Fleet {
    fn new(bodies: impl IntoIterator<Item = EntryBody>) -> Self {
        Self::enrolled(bodies, |_| {})
    }

    fn enrolled(bodies: impl IntoIterator<Item = EntryBody>, change: impl FnOnce(&mut Enrolment)) -> Self {
        let log = TestLog::with(bodies);
        let server = LogServer::start(log.files());
        let world = World::new();
        let mut enrolment = enrolment(&[&server.url]);
        change(&mut enrolment);
        std::fs::create_dir_all(world.path(".config/bailiwick/fleet")).expect("a directory");
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["m1".to_owned()]).expect("a certificate");
        for (name, text) in [
            ("member.pem", cert.pem()),
            ("member.key", signing_key.serialize_pem()),
            ("member.expires", u64::MAX.to_string()),
            ("fleet.toml", enrolment.to_text()),
        ] {
            let file = world.write(&format!(".config/bailiwick/fleet/{name}"), &text);
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
        }
        Self { world, log, server }
    }

    fn push(&mut self, body: EntryBody) {
        self.log.push(body);
        self.server.publish(self.log.files());
    }

    /// What one call of a shell tool of an agent comes to.
    fn hook(&self, command: &str) -> Output {
        let event = json!({
            "session_id": "s", "cwd": self.world.path(""), "hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_input": { "command": command },
        });
        let mut hook = self.world.bailiwick(&["hook", "claude-code"]);
        let piped = std::process::Stdio::piped;
        let mut child = hook.stdin(piped()).stdout(piped()).stderr(piped()).spawn().expect("it starts");
        let input = child.stdin.take().expect("a pipe");
        serde_json::to_writer(input, &event).expect("it reads");
        child.wait_with_output().expect("it ends")
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn everything() -> EntryBody {
    revocation("r1", Target::Everything)
}

fn ceiling(server: &str, text: &str) -> EntryBody {
    bundle(RuleFormat::Manifest, server, text)
}

fn bundle(format: RuleFormat, name: &str, text: &str) -> EntryBody {
    let rule = Rule { format, name: name.to_owned(), text: text.to_owned() };
    EntryBody::Bundle(Bundle { name: name.to_owned(), scope: Scope::Every, rules: vec![rule] })
}

/// Why nothing was started.
fn refusal(mut wrapped: Wrapped) -> String {
    let answer = wrapped.initialize();
    let why = answer["result"]["instructions"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    assert_eq!(wrapped.end().0, Some(125), "{why}");
    why
}

/// A copy of a package whose server does nothing but wait.
pub(crate) fn planted(project: &Path, version: &str) -> PathBuf {
    let package = project.join("node_modules/@a/files");
    std::fs::create_dir_all(&package).expect("a directory");
    let manifest = json!({ "name": "@a/files", "version": version });
    std::fs::write(package.join("package.json"), manifest.to_string()).expect("a file");
    let program = package.join("server.sh");
    std::fs::write(&program, "#!/bin/sh\nwhile IFS= read -r line; do :; done\n").expect("a file");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    program
}

#[test]
fn a_revoked_package_version_ends_the_server_that_runs_and_is_recorded() {
    let package = |version: &str| Package {
        registry: "npm".to_owned(),
        name: "@a/files".to_owned(),
        version: Some(version.to_owned()),
    };
    let mut fleet = Fleet::new([revocation("r0", Target::Package(package("1.2.2")))]);
    let program = planted(&fleet.world.path(""), "1.2.3");
    let program = program.to_str().expect("text");
    let mut wrapped = fleet.world.wrap(MORTAL, &[], &[program]);
    wrapped.send(&call(7, "wait", &json!({})));
    assert!(eventually(|| fleet.world.recorded().contains("tool-called")));
    fleet.push(revocation("r1", Target::Package(package("1.2.3"))));
    let answer = wrapped.next();
    let why = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(why.contains("the fleet revoked the package `npm:@a/files@1.2.3` (`r1`): leaked"), "{why}");
    assert!(!wrapped.child.wait().expect("it ends").success());
    let recorded = fleet.world.recorded();
    let ends: Vec<&str> = recorded.lines().filter(|line| line.contains("\"session-ended\"")).collect();
    assert!(
        ends.iter().any(|line| line.contains("\"revoked\"") && line.contains("npm:@a/files@1.2.3")),
        "{ends:?}"
    );
    let why = refusal(fleet.world.wrap(MORTAL, &[], &[program]));
    assert!(why.contains("the fleet revoked the package"), "{why}");
}

#[test]
fn every_way_to_wrap_a_server_ends_with_everything() {
    let stateless =
        MORTAL.replace("[[tools]]", "[package]\nidentity = 'npm:@a/mortal'\nstateless = true\n[[tools]]");
    let ways: [(&str, &[&str]); 3] =
        [(MORTAL, &[]), (&stateless, &["--restart", "on-failure"]), (&stateless, &["--isolate", "tool"])];
    for (manifest, options) in ways {
        let mut fleet = Fleet::new([]);
        let mut wrapped = fleet.world.wrap_script(manifest, options, "*) ;;");
        wrapped.send(&call(7, "wait", &json!({})));
        assert!(eventually(|| fleet.world.recorded().contains("tool-called")), "{options:?}");
        fleet.push(everything());
        let answer = wrapped.next();
        let why = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(why.contains("the fleet revoked everything (`r1`): leaked"), "{options:?}: {why}");
        assert!(!wrapped.child.wait().expect("it ends").success(), "{options:?}");
    }
    let mut fleet = Fleet::new([]);
    let mut listening = fleet.world.wrap_script(MORTAL, &["--listen", "127.0.0.1:0"], "*) ;;");
    assert!(eventually(|| fleet.world.recorded().contains("session-started")));
    fleet.push(everything());
    listening.child.wait().expect("it ends");
    assert!(fleet.world.recorded().contains("the fleet revoked everything"));
}

#[test]
fn runs_and_sessions_end_with_everything_and_none_begins() {
    let mut fleet = Fleet::new([]);
    let word = format!("73{}", std::process::id());
    let piped = std::process::Stdio::piped;
    let mut run = fleet.world.bailiwick(&["run", "--cap", "exec:spawn:sleep", "--", "sleep", &word]);
    let run =
        run.stdin(std::process::Stdio::null()).stdout(piped()).stderr(piped()).spawn().expect("it starts");
    let serve = Wrapped::spawned(fleet.world.bailiwick(&["serve", "--cap", "exec:spawn:sleep"]));
    let sleeps = || processes(&word).iter().any(|line| line.starts_with("sleep "));
    assert!(eventually(sleeps) && eventually(|| fleet.world.recorded().contains("serves `")));
    fleet.push(everything());
    let ended = run.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(124), "{}", said(&ended));
    assert!(said(&ended).contains("the fleet revoked everything (`r1`): leaked"), "{}", said(&ended));
    // Its input is still open: it is not the client that ends it.
    let Wrapped { child, input: _input, .. } = serve;
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(fleet.world.recorded().matches("the fleet revoked everything").count(), 2);
    for args in
        [&["run", "--cap", "exec:spawn:true", "--", "true"][..], &["serve", "--cap", "exec:spawn:true"]]
    {
        let refused = fleet.world.run(args);
        assert!(
            !refused.status.success() && said(&refused).contains("the fleet revoked everything"),
            "{args:?}"
        );
    }
}

#[test]
fn hooks_refuse_what_the_log_refuses() {
    let rules = "[[guard]]\nmatch = 'shell(curl)'\nmessage = 'the office says no'\n";
    let mut fleet = Fleet::new([bundle(RuleFormat::Guardrails, "office", rules)]);
    assert!(!said(&fleet.hook("ls")).contains("deny"), "{}", said(&fleet.hook("ls")));
    assert!(said(&fleet.hook("curl https://a.test")).contains("the office says no"));
    fleet.push(everything());
    // A hook does not wait for the network: another process looks, and a later hook knows.
    assert!(eventually(|| said(&fleet.hook("ls")).contains("the fleet revoked everything (`r1`): leaked")));
}

#[test]
fn a_ceiling_of_the_log_narrows_what_is_granted_here() {
    let fleet = Fleet::new([]);
    let dir = fleet.world.path("notes");
    std::fs::create_dir_all(dir.join("open")).expect("a directory");
    for name in ["open/a.txt", "b.txt"] {
        std::fs::write(dir.join(name), format!("text of {name}")).expect("a file");
    }
    let dir = dir.to_str().expect("text");
    let cap = format!("fs:read:{dir}/**");
    let cat = |fleet: &Fleet, name: &str| {
        fleet.world.run(&[
            "run",
            "--cap",
            &cap,
            "--cap",
            "exec:spawn:cat",
            "--",
            "cat",
            &format!("{dir}/{name}"),
        ])
    };
    let read = |fleet: &Fleet, name: &str| said(&cat(fleet, name)).contains("text of");
    assert!(read(&fleet, "open/a.txt") && read(&fleet, "b.txt"));
    let mut fleet = fleet;
    let text = format!(
        "name = 'cat'\nversion = '1'\nserver_capabilities = ['fs:read:{dir}/open/**', 'fs:read:/etc/**', 'exec:spawn:cat']\n"
    );
    fleet.push(ceiling("cat", &text));
    assert!(eventually(|| !read(&fleet, "b.txt")));
    assert!(read(&fleet, "open/a.txt"), "{}", said(&cat(&fleet, "open/a.txt")));
    fleet.push(ceiling("cat", "name = 'cat'\n"));
    assert!(eventually(
        || said(&cat(&fleet, "open/a.txt")).contains("fleet's manifest for `cat` cannot be used")
    ));
}

#[test]
fn a_ceiling_with_tools_leaves_a_wrapped_server_no_other() {
    let manifest = "name = 'two'\nversion = '1'\n[[tools]]\nname = 'one'\ncapabilities = []\n[[tools]]\nname = 'other'\ncapabilities = []\n";
    let only = "name = 'two'\nversion = '1'\n[[tools]]\nname = 'one'\ncapabilities = []\n";
    let answers = "*tools/call*) id=${line#*'\"id\":'}; id=${id%%[,\\}]*}
        printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"ran\"}]}}\\n' \"$id\";;";
    for (bodies, expected) in [(vec![], "ran"), (vec![ceiling("two", only)], "")] {
        let fleet = Fleet::new(bodies);
        let mut wrapped = fleet.world.wrap_script(manifest, &[], answers);
        assert_eq!(text(&wrapped.ask(&call(1, "one", &json!({})))), "ran");
        let other: Value = wrapped.ask(&call(2, "other", &json!({})));
        assert_eq!(other.to_string().contains("\"text\":\"ran\""), expected == "ran", "{other}");
        wrapped.end();
    }
}

#[test]
fn a_grant_of_the_log_ends_when_the_copy_is_too_old() {
    let grant = EntryBody::Grant(Grant {
        id: "g1".to_owned(),
        scope: Scope::Every,
        server: "npm:@a/files".to_owned(),
        grant: MORTAL.to_owned(),
        expires_ms: None,
        max_stale_s: Some(5),
    });
    let start = |fleet: &Fleet| {
        let program = planted(&fleet.world.path(""), "1.2.3");
        let mut command = fleet.world.bailiwick(&["wrap", "--"]);
        command.arg(program);
        Wrapped::spawned(command)
    };
    let local = Fleet::new([grant.clone()]);
    assert!(refusal(start(&local)).contains("no manifest is there"), "the machine is not authoritative");
    let fleet = Fleet::enrolled([grant.clone()], |enrolment| enrolment.authoritative = true);
    let (server, is_signed) = (fleet.server.clone(), Arc::new(AtomicBool::new(true)));
    let goes_on = Arc::clone(&is_signed);
    let hub = std::thread::spawn(move || {
        while goes_on.load(Ordering::Acquire) {
            server.publish(TestLog::with([grant.clone()]).files());
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    });
    // It starts while the hub signs, and then nothing newer is to be had.
    let mut wrapped = start(&fleet);
    wrapped.send(&call(1, "wait", &json!({})));
    assert!(eventually(|| fleet.world.recorded().contains("tool-called")));
    is_signed.store(false, Ordering::Release);
    hub.join().expect("it ends");
    fleet.server.behave(Manners::Fails(503));
    let answer = wrapped.next();
    let why = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(why.contains("the fleet's grant") && why.contains("has ended"), "{why}");
    assert!(!wrapped.child.wait().expect("it ends").success());
    let why = refusal(start(&fleet));
    assert!(why.contains("grant `g1` has ended") && why.contains("no manifest is there"), "{why}");
}

#[test]
fn what_cannot_be_known_of_the_fleet_starts_nothing() {
    let tries = |fleet: &Fleet| {
        let run = said(&fleet.world.run(&["run", "--cap", "exec:spawn:echo", "--", "echo", "it ran"]));
        let wrapped = refusal(fleet.world.wrap_script(MORTAL, &[], "*) ;;"));
        let serve = said(&fleet.world.run(&["serve", "--cap", "exec:spawn:true"]));
        [run, wrapped, serve, said(&fleet.hook("ls"))]
    };
    let fleet = Fleet::new([]);
    fleet.server.behave(Manners::Fails(404));
    for text in tries(&fleet) {
        assert!(text.contains("no copy of the fleet's log") && !text.contains("it ran\n"), "{text}");
    }
    fleet.server.behave(Manners::Files);
    assert!(
        said(&fleet.world.run(&["run", "--cap", "exec:spawn:echo", "--", "echo", "it ran"]))
            .contains("it ran")
    );
    fleet.world.write(".config/bailiwick/fleet/fleet.toml", "name = 'm1'\n");
    for text in tries(&fleet) {
        assert!(text.contains("fleet.toml") && !text.contains("it ran\n"), "{text}");
    }
    let unconfined =
        ["run", "--unconfined-i-accept-the-risk", "--cap", "exec:spawn:echo", "--", "echo", "it ran"];
    fleet.world.write(".config/bailiwick/fleet/fleet.toml", &enrolment(&[&fleet.server.url]).to_text());
    assert!(said(&fleet.world.run(&unconfined)).contains("in a fleet"));
}

#[test]
fn a_server_that_says_something_else_than_was_reviewed_is_ended() {
    let tool = json!({ "name": "wait", "inputSchema": { "type": "object" } });
    let tools = BTreeMap::from([("wait".to_owned(), tool)]);
    let script = r#"while IFS= read -r line; do case "$line" in
        *'"id":"bailiwick-'*tools/list*) own=${line#*'"id":"'}; own=${own%%'"'*}
            printf '{"jsonrpc":"2.0","id":"%s","result":{"tools":[{"name":"wait","inputSchema":{"type":"object"}}]}}\n' "$own";;
        *tools/call*) id=${line#*'"id":'}; id=${id%%,*}
            printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"ran"}]}}\n' "$id";;
    esac; done"#;
    for (instructions, runs) in [(None, true), (Some("of another version"), false)] {
        let surface = surface_digest(instructions, &tools).expect("a digest");
        let pin = EntryBody::Pin(Pin { server: "mortal".to_owned(), package: None, surface });
        let fleet = Fleet::new([pin]);
        let mut wrapped = fleet.world.wrap(MORTAL, &[], &["/bin/sh", "-c", script]);
        let answer = wrapped.ask(&call(1, "wait", &json!({}))).to_string();
        assert_eq!(
            (answer.contains("\"ran\""), answer.contains("reviewed in the fleet")),
            (runs, !runs),
            "{answer}"
        );
        if !runs {
            assert!(!wrapped.child.wait().expect("it ends").success());
        }
    }
}
