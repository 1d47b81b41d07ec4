//! From a server that is listed nowhere to one behind `wrap`, by what the messages say; what is recorded, pinned and signed on the way.

use std::path::PathBuf;
use std::process::Output;

use bailiwick_testkit::skip;
use serde_json::json;

use super::{World, Wrapped, call, text};
use crate::run::tree_of;

/// A server that reads what it is asked for, and asks its environment.
const SERVER: &str = r#"import json, os, sys

EXTRA = []
TOOLS = [
    {"name": "read", "description": "reads", "inputSchema": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
    {"name": "token", "description": "says whether it has a token", "inputSchema": {"type": "object"}},
]


def run(name, arguments):
    for extra in EXTRA:
        open(os.path.join(sys.argv[1], extra)).read()
    if name == "token":
        return "yes" if os.environ.get("NOTES_TOKEN") else "no"
    return open(os.path.join(sys.argv[1], arguments["name"])).read()


def answer(message):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        try:
            said, failed = run(params["name"], params.get("arguments", {})), False
        except Exception as why:
            said, failed = str(why), True
        return {"content": [{"type": "text", "text": said}], "isError": failed}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message)
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    reply.update({"result": result} if result is not None else {"error": {"code": -32601, "message": "no"}})
    print(json.dumps(reply), flush=True)
"#;

/// A home with a project in it, a server beside it, and a secret among the notes.
struct Project {
    world: World,
}

impl Project {
    /// Nothing where there is no Python.
    fn new() -> Option<Self> {
        if !std::path::Path::new("/usr/bin/python3").exists() {
            skip("no python3 here");
            return None;
        }
        let world = World::new();
        for dir in ["work", "notes", "code"] {
            std::fs::create_dir(world.path(dir)).unwrap();
        }
        for (name, text) in [
            ("notes/a.txt", "alpha"),
            ("notes/b.txt", "beta"),
            ("notes/.env", "SECRET=hush"),
            ("code/server.py", SERVER),
        ] {
            world.write(name, text);
        }
        Some(Self { world })
    }

    fn path(&self, name: &str) -> String {
        self.world.path(name).canonicalize().unwrap_or_else(|_| self.world.path(name)).display().to_string()
    }

    /// The server's own command.
    fn server(&self) -> Vec<String> {
        vec!["/usr/bin/python3".to_owned(), self.path("code/server.py"), self.path("notes")]
    }

    fn bailiwick(&self, words: &[&str]) -> std::process::Command {
        let mut command = self.world.bailiwick(words);
        command.arg("--").args(self.server()).current_dir(self.world.path("work"));
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.bailiwick(words).stdin(std::process::Stdio::null()).output().unwrap()
    }

    /// Learns from these calls of `read`.
    fn learn(&self, names: &[&str], options: &[&str]) -> Output {
        let calls: String = names
            .iter()
            .map(|name| format!("{}\n", json!({ "tool": "read", "arguments": { "name": name } })))
            .collect();
        self.world.write("calls.jsonl", &calls);
        let calls = self.path("calls.jsonl");
        self.run(&[&["learn", "--no-journal", "--net", "deny", "--calls", &calls], options].concat())
    }

    fn manifest(&self) -> PathBuf {
        self.world.path("server.toml")
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The words behind a command that a message names.
fn named_command(message: &str, start: &str) -> Vec<String> {
    let (_, rest) = message.split_once(start).unwrap_or_else(|| panic!("no `{start}` in: {message}"));
    let line = format!("{start}{}", rest.split(['`', '\n']).next().unwrap());
    shlex::split(&line).unwrap().into_iter().skip(1).collect()
}

#[test]
fn the_messages_lead_from_an_unknown_server_to_one_behind_wrap() {
    let Some(project) = Project::new() else { return };
    let go = |words: &[String]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = project.world.bailiwick(&words);
        command.current_dir(project.world.path("work"));
        command
    };
    let explained = project.run(&["wrap", "--explain"]);
    assert_eq!(explained.status.code(), Some(125), "{}", said(&explained));
    // Round one: what the refusal says.
    let learned = go(&named_command(&said(&explained), "bailiwick learn")).output().unwrap();
    assert_eq!(learned.status.code(), Some(0), "{}", said(&learned));
    // Round two: what `learn` says next, and then.
    let replayed = go(&named_command(&said(&learned), "bailiwick replay")).output().unwrap();
    assert_eq!(replayed.status.code(), Some(0), "{}", said(&replayed));
    let mut wrapped = Wrapped::spawned(go(&named_command(&said(&learned), "bailiwick wrap")));
    let hello = wrapped.initialize();
    assert_eq!(hello["result"]["serverInfo"]["name"], "notes", "{hello}");
    assert_eq!(text(&wrapped.ask(&call(2, "token", &json!({})))), "no");
    wrapped.end();
}

#[test]
fn calls_that_were_recorded_with_their_arguments_drive_learn_and_replay() {
    let Some(project) = Project::new() else { return };
    assert_eq!(project.learn(&["a.txt", "b.txt"], &["--out", "../server.toml"]).status.code(), Some(0));
    let manifest = project.manifest().display().to_string();
    let mut wrapped =
        Wrapped::spawned(project.bailiwick(&["wrap", "--record-arguments", "--manifest", &manifest]));
    wrapped.initialize();
    assert_eq!(text(&wrapped.ask(&call(2, "read", &json!({ "name": "b.txt" })))), "beta");
    wrapped.ask(&call(3, "read", &json!({ "name": "sk-0123456789abcdefghijkl" })));
    wrapped.end();
    let recorded = project.world.recorded();
    assert!(recorded.contains("b.txt") && !recorded.contains("sk-0123456789"), "{recorded}");
    let line = recorded.lines().find(|line| line.contains("tool-called")).unwrap().trim_end_matches(',');
    let session =
        serde_json::from_str::<serde_json::Value>(line).unwrap()["session"].as_str().unwrap().to_owned();
    let from = ["--from-journal", session.as_str(), "--net", "deny"];
    let learned = project.run(&[&["learn", "--no-generate", "--out", "../again.toml"], &from[..]].concat());
    assert!(said(&learned).contains("from 1 call and"), "one had a secret in it: {}", said(&learned));
    assert!(said(&learned).contains("no whole arguments"), "and that is said: {}", said(&learned));
    let replayed = project.run(&[&["replay", "../again.toml"], &from[..]].concat());
    assert!(said(&replayed).contains("1 call answers the same"), "{}", said(&replayed));
}

#[test]
fn a_replay_is_signed_and_another_key_only_claims() {
    let Some(project) = Project::new() else { return };
    assert_eq!(project.learn(&["a.txt"], &["--out", "../server.toml"]).status.code(), Some(0));
    let manifest = project.manifest().display().to_string();
    let calls = project.path("calls.jsonl");
    let replayed = project.run(&["replay", &manifest, "--calls", &calls]);
    assert_eq!(replayed.status.code(), Some(0), "{}", said(&replayed));
    let whole = std::fs::read_to_string(&manifest).unwrap();
    assert!(whole.contains("verified = { version = "), "{whole}");
    let explained = || said(&project.run(&["wrap", "--explain", "--manifest", &manifest]));
    assert!(explained().contains("verified: 1 call"), "{}", explained());
    // A line more, with the same signature.
    std::fs::write(&manifest, whole.replace("fs:read:$", "fs:read,write:$")).unwrap();
    assert!(explained().contains("the signature does not hold"), "{}", explained());
    std::fs::write(&manifest, &whole).unwrap();
    // The key of another person.
    let mut elsewhere = project.bailiwick(&["wrap", "--explain", "--manifest", &manifest]);
    elsewhere.env("XDG_STATE_HOME", project.world.path("other-state"));
    let claimed = said(&elsewhere.stdin(std::process::Stdio::null()).output().unwrap());
    assert!(claimed.contains("claimed: 1 call") && claimed.contains("not yours"), "{claimed}");
}

#[test]
fn a_version_that_touches_something_new_adds_exactly_that_line() {
    let Some(project) = Project::new() else { return };
    std::fs::create_dir_all(project.world.path("other")).unwrap();
    project.world.write("other/extra.txt", "extra");
    assert_eq!(project.learn(&["a.txt"], &["--out", "../server.toml"]).status.code(), Some(0));
    let before = std::fs::read_to_string(project.manifest()).unwrap();
    project.world.write("before.toml", &before);
    let again = project.learn(&["a.txt"], &["--update", "../server.toml"]);
    assert!(said(&again).contains("0 new lines"), "{}", said(&again));
    let extra = format!("EXTRA = [\"{}/extra.txt\"]", project.path("other"));
    project.world.write("code/server.py", &SERVER.replace("EXTRA = []", &extra));
    let updated = project.learn(&["a.txt"], &["--update", "../server.toml", "--read", "../other"]);
    let new: Vec<String> =
        said(&updated).lines().filter(|line| line.starts_with("+ ")).map(str::to_owned).collect();
    assert_eq!(new, ["+ fs:read:~/other/extra.txt"], "{}", said(&updated));
    let manifest = project.manifest().display().to_string();
    let diff = project.world.run(&["diff", "before.toml", &manifest]);
    assert_eq!(diff.status.code(), Some(1), "it widened: {}", said(&diff));
    let shown = said(&diff);
    assert!(shown.contains("other/extra.txt"), "{shown}");
    let after = std::fs::read_to_string(&manifest).unwrap();
    let added = after.lines().filter(|line| !before.contains(*line)).map(str::trim);
    // Both tools need it; what else is new says why.
    let mut added: Vec<&str> = added.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    added.dedup();
    assert_eq!(added, ["\"fs:read:~/other/extra.txt\","], "{after}");
}

#[test]
fn an_audit_shows_for_each_tool_what_is_declared_what_its_source_does_and_what_was_done() {
    let Some(project) = Project::new() else { return };
    assert_eq!(project.learn(&["a.txt"], &["--out", "../server.toml"]).status.code(), Some(0));
    let (calls, code) = (project.path("calls.jsonl"), project.path("code"));
    let audit = || {
        let done =
            project.run(&["audit", "../server.toml", "--calls", &calls, "--source", &code, "--net", "deny"]);
        (done.status.code(), said(&done))
    };
    let (code_of_same, same) = audit();
    assert_eq!(code_of_same, Some(0), "{same}");
    let of_read = |what: &str| {
        same.lines().skip_while(|line| *line != "read").find(|line| line.starts_with(what)).unwrap()
    };
    for what in ["  declared", "  done"] {
        assert!(of_read(what).contains(" fs:read:$"), "{what}: {same}");
    }
    assert!(of_read("  source").len() > "  source".len(), "{same}");
    // One more tool uses what one tool alone declares.
    let server = SERVER.replace(
        "if name == \"token\":",
        "if name == \"token\":\n        open(os.path.join(sys.argv[1], \"b.txt\")).read()",
    );
    project.world.write("code/server.py", &server);
    let (code_of_more, more) = audit();
    assert_eq!(code_of_more, Some(1), "{more}");
    let undeclared: Vec<&str> = more.lines().filter(|line| line.starts_with("+ ")).collect();
    assert!(undeclared.len() == 1 && undeclared[0].ends_with(" used and not declared by token"), "{more}");
    assert!(!more.contains("declared and not used"), "{more}");
}

#[test]
fn calls_that_fail_are_said() {
    let Some(project) = Project::new() else { return };
    let learned = said(&project.learn(&["a.txt", "gone.txt"], &[]));
    assert!(learned.contains("1 of your 2 calls failed") && learned.contains("No such file"), "{learned}");
    let made_up = said(&project.run(&["learn", "--no-journal", "--server", "--net", "deny"]));
    assert!(made_up.contains("2 calls were made up from the schemas, and 1 of them failed"), "{made_up}");
}

#[test]
fn a_server_that_does_not_start_is_heard() {
    let Some(project) = Project::new() else { return };
    project.world.write("code/server.py", "raise SystemExit('the licence is missing')\n");
    let failed = project.run(&["learn", "--no-journal", "--server", "--net", "deny"]);
    assert_ne!(failed.status.code(), Some(0), "{}", said(&failed));
    assert!(said(&failed).lines().any(|line| line == "  the licence is missing"), "{}", said(&failed));
}

#[test]
fn own_code_stays_as_it_is_while_it_is_learned() {
    let Some(project) = Project::new() else { return };
    let server = SERVER.replace(
        "    if name == \"token\":",
        "    for own in [__file__, \"notes.log\"]:\n        try: open(own, \"a\").write(\"# more\\n\")\n        except OSError: pass\n    if name == \"token\":",
    );
    project.world.write("code/server.py", &server);
    let mut learn = project.bailiwick(&["learn", "--no-journal", "--server", "--net", "deny"]);
    // The server's own directory is the current one.
    let done = learn.current_dir(project.path("code")).stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    let written: Vec<String> = said(&done)
        .lines()
        .filter(|line| line.starts_with("A ") || line.starts_with("M "))
        .map(str::to_owned)
        .collect();
    assert!(
        written.iter().any(|line| line.ends_with("code/notes.log")),
        "what is no code can be written: {written:?}"
    );
    assert!(!written.iter().any(|line| line.ends_with("server.py")), "{written:?}");
    assert!(said(&done).contains("it wants to change what it was started from"), "{}", said(&done));
}

#[test]
fn a_secret_in_the_way_becomes_a_question_and_nothing_changes() {
    let Some(project) = Project::new() else { return };
    project.world.write("notes/id_rsa", "hush");
    let tree = tree_of(&project.world.path("notes"));
    let learned = project.learn(&["a.txt", ".env", "id_rsa"], &[]);
    assert_eq!(learned.status.code(), Some(0), "{}", said(&learned));
    let text = said(&learned);
    for secret in [".env", "id_rsa"] {
        assert!(
            text.lines().any(|line| line.starts_with("# ?") && line.contains(secret)),
            "{secret}: {text}"
        );
    }
    assert!(!text.contains("hush"), "what is in it was never seen: {text}");
    assert_eq!(tree_of(&project.world.path("notes")), tree);
}

#[test]
fn variables_are_named_as_observed_and_never_with_values() {
    let Some(project) = Project::new() else { return };
    let mut asked = project.bailiwick(&["learn", "--no-journal", "--server", "--net", "deny"]);
    let asked = said(&asked.env("NOTES_TOKEN", "hush-hush").output().unwrap());
    assert!(
        asked.contains("it reads this variable (observed)") && asked.contains("env:read:NOTES_TOKEN"),
        "{asked}"
    );
    assert!(!asked.contains("hush-hush"), "{asked}");
    let calls = project.path("calls.jsonl");
    project.world.write("calls.jsonl", "{\"tool\": \"token\"}\n");
    let words = [
        "learn",
        "--no-journal",
        "--net",
        "deny",
        "--calls",
        &calls,
        "--env",
        "NOTES_TOKEN",
        "--env",
        "UNREAD_ONE",
    ];
    let mut given = project.bailiwick(&words);
    let given = said(&given.env("NOTES_TOKEN", "hush-hush").env("UNREAD_ONE", "hush-too").output().unwrap());
    assert!(given.contains("observed to be read: by itself; first NOTES_TOKEN"), "{given}");
    assert!(given.contains("assumed to be read: by itself; first UNREAD_ONE"), "{given}");
    assert!(!given.contains("hush-"), "{given}");
}

#[test]
fn code_outside_of_the_system_is_pinned_and_a_changed_file_starts_nothing() {
    let Some(project) = Project::new() else { return };
    let tool = project.world.write("code/notes-server", &format!("#!/usr/bin/python3\n{SERVER}"));
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let tool = tool.canonicalize().unwrap();
    let run = |words: &[&str]| {
        let mut command = project.world.bailiwick(words);
        command.arg("--").arg(&tool).arg(project.path("notes")).current_dir(project.world.path("work"));
        command.stdin(std::process::Stdio::null()).output().unwrap()
    };
    let learned = run(&["learn", "--no-journal", "--server", "--net", "deny", "--out", "../server.toml"]);
    assert_eq!(learned.status.code(), Some(0), "{}", said(&learned));
    let text = std::fs::read_to_string(project.manifest()).unwrap();
    assert!(
        text.contains("[pins.files]") && text.contains(&format!("\"{}\" = \"sha256:", tool.display())),
        "{text}"
    );
    let manifest = project.manifest().display().to_string();
    let explain = || run(&["wrap", "--explain", "--manifest", &manifest]);
    assert_eq!(explain().status.code(), Some(0), "{}", said(&explain()));
    std::fs::write(&tool, format!("#!/usr/bin/python3\n{SERVER}# planted\n")).unwrap();
    let refused = explain();
    assert_eq!(refused.status.code(), Some(125), "{}", said(&refused));
    assert!(
        said(&refused).contains("has changed") && said(&refused).contains("learn --update"),
        "{}",
        said(&refused)
    );
    let replayed = run(&["replay", &manifest]);
    assert_eq!(replayed.status.code(), Some(1), "{}", said(&replayed));
    let updated = run(&["learn", "--no-journal", "--server", "--net", "deny", "--update", "../server.toml"]);
    assert_eq!(updated.status.code(), Some(0), "{}", said(&updated));
    assert_eq!(explain().status.code(), Some(0), "what the message says helps: {}", said(&explain()));
}

#[test]
fn servers_are_learned_as_a_plain_user() {
    let programs = [env!("CARGO_BIN_EXE_bailiwick"), env!("CARGO_BIN_EXE_bailiwick-scan")];
    bailiwick_testkit::run_again_as_plain_user("wrap::learned::", &programs);
}
