//! Guardrails from outside: agents' hooks in their own formats, processes that race, settings that come back.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Ran;

const RULES: &str = r#"
[[guard]]
match = "shell(command=^rm -rf)"
message = "no"

[[guard]]
match = "shell(command=^make\\b)"
action = "ask"
message = "sure?"

[[hook]]
on = "error"
script = ".agents/say.sh"

[[validator]]
name = "v"
when = ["+filesystem-write"]
script = ".agents/say.sh"
"#;

/// A home, a project in it, and the state below.
pub(super) struct Place(pub(super) tempfile::TempDir);

impl Place {
    pub(super) fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir_all(place.project().join(".agents")).unwrap();
        std::fs::write(place.project().join(".agents/guardrails.toml"), RULES).unwrap();
        let script = place.project().join(".agents/say.sh");
        std::fs::write(&script, "#!/bin/sh\necho said\nexit 1\n").unwrap();
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        place
    }

    pub(super) fn project(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap().join("project")
    }

    fn state(&self) -> PathBuf {
        self.0.path().join(".local/state/bailiwick")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = super::command(args);
        command.env("HOME", self.0.path().canonicalize().unwrap()).current_dir(self.project());
        command
    }

    pub(super) fn run(&self, args: &[&str]) -> Ran {
        super::done(self.command(args).output().unwrap())
    }

    pub(super) fn hook(&self, agent: &str, event: &Value) -> Ran {
        self.raw(agent, &event.to_string())
    }

    fn raw(&self, agent: &str, text: &str) -> Ran {
        self.hook_with(&[agent], text)
    }

    pub(super) fn hook_with(&self, args: &[&str], text: &str) -> Ran {
        let mut command = self.command(&[&["hook"], args].concat());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        super::done(child.wait_with_output().unwrap())
    }

    pub(super) fn answer(&self, agent: &str, event: &Value) -> Value {
        let ran = self.hook(agent, event);
        assert_eq!((ran.exit, ran.err.as_str()), (0, ""), "{event}");
        if ran.out.is_empty() { Value::Null } else { serde_json::from_str(&ran.out).unwrap() }
    }

    pub(super) fn event(&self, name: &str, more: Value) -> Value {
        let mut event = json!({"hook_event_name": name, "session_id": "s", "cwd": self.project()});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    }
}

pub(super) fn bash(command: &str) -> Value {
    json!({"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": command})
}

#[test]
fn claude_code_and_codex_get_what_they_understand() {
    let place = Place::new();
    place.run(&["trust", "--yes", "."]);
    for agent in ["claude-code", "codex"] {
        let pre = |command: &str| place.answer(agent, &place.event("PreToolUse", bash(command)));
        assert_eq!(pre("ls"), Value::Null, "an allowed call is left to the agent's own permissions");
        let denied = &pre("sudo rm -fr x")["hookSpecificOutput"];
        assert_eq!(
            (&denied["permissionDecision"], &denied["permissionDecisionReason"]),
            (&json!("deny"), &json!("[guardrail] no"))
        );
        let asked = &pre("make all")["hookSpecificOutput"]["permissionDecision"];
        assert_eq!(asked, if agent == "codex" { "deny" } else { "ask" }, "a hook of Codex cannot ask");
        let mut failed = bash("ls");
        failed["tool_response"] = json!({"is_error": true});
        let said = place.answer(agent, &place.event("PostToolUse", failed));
        assert_eq!(
            said,
            json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "said"}})
        );
        place.answer(agent, &place.event("PreToolUse", json!({"tool_name": "Write", "tool_input": {}})));
        let stop =
            |again: bool| place.answer(agent, &place.event("Stop", json!({"stop_hook_active": again})));
        assert_eq!(
            stop(false),
            json!({"decision": "block", "reason": "<validation validator=\"v\">\nsaid\n</validation>"})
        );
        assert_eq!(stop(true), Value::Null);
    }
    let mut unattended = place.event("PreToolUse", bash("make x"));
    unattended["permission_mode"] = json!("bypassPermissions");
    assert_eq!(
        place.answer("claude-code", &unattended)["hookSpecificOutput"]["permissionDecision"],
        "deny",
        "no one to ask"
    );
}

#[test]
fn gemini_cursor_and_others_get_what_they_understand() {
    let place = Place::new();
    place.run(&["trust", "--yes", "."]);
    let shell = |command: &str| json!({"tool_name": "run_shell_command", "tool_input": {"command": command}});
    let gemini = |name: &str, more: Value| place.answer("gemini", &place.event(name, more));
    assert_eq!(gemini("BeforeTool", shell("ls")), json!({}));
    assert_eq!(
        gemini("BeforeTool", shell("rm -rf x")),
        json!({"decision": "deny", "reason": "[guardrail] no"})
    );
    let failed = json!({"tool_name": "x", "tool_input": {}, "tool_response": {"error": "no"}});
    assert_eq!(gemini("AfterTool", failed)["hookSpecificOutput"]["additionalContext"], "said");
    gemini("BeforeTool", json!({"tool_name": "write_file", "tool_input": {}}));
    assert_eq!(gemini("AfterAgent", json!({"prompt_response": "done"}))["decision"], "deny");
    let cursor = |name: &str, more: Value| {
        let mut event =
            json!({"hook_event_name": name, "conversation_id": "c", "workspace_roots": [place.project()]});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        place.answer("cursor", &event)
    };
    let tool = |command: &str| json!({"tool_name": "Shell", "tool_input": {"command": command}});
    assert_eq!(cursor("preToolUse", tool("ls")), json!({}));
    assert_eq!(cursor("preToolUse", tool("rm -rf x"))["permission"], "deny");
    assert_eq!(cursor("preToolUse", tool("make"))["permission"], "deny", "an ask is not held there");
    assert_eq!(cursor("beforeShellExecution", json!({"command": "make", "cwd": "/"}))["permission"], "ask");
    cursor("preToolUse", json!({"tool_name": "Write", "tool_input": {}}));
    assert!(cursor("stop", json!({"status": "completed", "loop_count": 0}))["followup_message"].is_string());
    let generic = |event: Value| place.answer("generic", &event);
    let before = |command: &str| json!({"event": "before", "session": "g", "cwd": place.project(), "tool": "Bash", "params": {"command": command}});
    assert_eq!(generic(before("ls")), json!({"decision": "allow"}));
    assert_eq!(generic(before("rm -rf x"))["code"], "guardrail-blocked");
}

#[test]
fn whatever_goes_wrong_before_a_call_blocks_it() {
    let place = Place::new();
    for (agent, text) in [
        ("claude-code", "not json"),
        ("claude-code", "{}"),
        ("claude-code", "{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Bash\"}"),
        ("codex", "{\"hook_event_name\":\"PreToolUse\",\"session_id\":\"s\"}"),
        ("gemini", ""),
        ("cursor", "[]"),
        ("generic", "{\"event\":\"befor\",\"session\":\"s\",\"tool\":\"x\"}"),
    ] {
        let ran = place.raw(agent, text);
        assert_eq!((ran.exit, ran.out.as_str()), (2, ""), "{agent} {text}");
        assert!(ran.err.contains("nothing runs"), "{}", ran.err);
    }
    std::fs::create_dir_all(place.state()).unwrap();
    std::fs::set_permissions(place.state(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    assert_eq!(
        place.hook("claude-code", &place.event("PreToolUse", bash("ls"))).exit,
        2,
        "a state others may write to"
    );
}

#[test]
fn no_variable_switches_the_rules_off() {
    let place = Place::new();
    let event = place.event("PreToolUse", bash("rm -rf x")).to_string();
    let names =
        ["BAILIWICK_DISABLE", "BAILIWICK_OFF", "BAILIWICK_REQUIRE", "BAILIWICK_ALLOW", "BAILIWICK_SKIP"];
    let mut command = place.command(&["hook", "claude-code"]);
    command.envs(names.map(|name| (name, "1"))).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(event.as_bytes()).unwrap();
    assert!(super::done(child.wait_with_output().unwrap()).out.contains("\"deny\""));
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let agents = sources.join("../../bailiwick-clients/src/hooks");
    let agents = std::fs::read_dir(agents).unwrap().map(|entry| entry.unwrap().path());
    let agents: Vec<_> = agents.filter(|path| path.is_file()).collect();
    assert!(agents.len() > 6, "{agents:?}");
    for path in agents
        .into_iter()
        .chain(["commands/hook.rs", "../../bailiwick-command/src/facts.rs"].map(|name| sources.join(name)))
    {
        let source = std::fs::read_to_string(&path).unwrap();
        assert!(!source.contains("\"BAILIWICK_"), "{} reads a variable of ours", path.display());
    }
}

#[test]
fn a_thousand_processes_lose_no_entry() {
    let place = Place::new();
    let batch = 50;
    for round in 0..1000 / batch {
        let children: Vec<_> = (0..batch)
            .map(|number| {
                let event = place.event("PreToolUse", bash(&format!("echo {round} {number}")));
                let mut command = place.command(&["hook", "claude-code"]);
                let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
                child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
                child
            })
            .collect();
        assert!(children.into_iter().all(|mut child| child.wait().unwrap().success()));
    }
    let log = std::fs::read_to_string(place.state().join("sessions/claude-code-s.log")).unwrap();
    let keys: std::collections::BTreeSet<&str> =
        log.lines().filter_map(|line| line.split("\"key\":\"").nth(1)).collect();
    assert_eq!(keys.len(), 1000, "every call has its own line");
    let summary = std::fs::read_to_string(place.state().join("sessions/claude-code-s.sum")).unwrap();
    assert!(summary.contains("\"calls\":1000,"), "{summary}");
}

#[test]
fn a_call_waits_for_a_person_who_approves_it_once() {
    let place = Place::new();
    let pre = |id: &str| {
        let mut call = bash("make all");
        call["tool_use_id"] = id.into();
        place.answer("codex", &place.event("PreToolUse", call))
    };
    assert_ne!(pre("1"), Value::Null);
    let pending: Value = serde_json::from_str(&place.run(&["pending", "--format", "json"]).out).unwrap();
    let id = pending["pending"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(place.run(&["approve", &id]).exit, 1, "without a terminal it takes a --yes");
    assert_eq!(place.run(&["approve", "--yes", &id]).exit, 0);
    assert_eq!(pre("2"), Value::Null);
    assert_eq!(pre("2"), Value::Null, "a second settings file asks about the same call");
    assert_ne!(pre("3"), Value::Null, "used up");
    let pending: Value = serde_json::from_str(&place.run(&["pending", "--format", "json"]).out).unwrap();
    let id = pending["pending"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(place.run(&["deny", &id]).exit, 0);
    assert!(pre("4").to_string().contains("said no"));
    assert_eq!(place.run(&["approve", "--yes", "nothing"]).exit, 1);
}

#[test]
fn refusals_are_recorded_by_default() {
    let place = Place::new();
    let journal = place.state().join("journal");
    place.answer("claude-code", &place.event("PreToolUse", bash("ls")));
    assert!(!journal.exists(), "calls that are allowed are not recorded unless asked for");
    place.answer("claude-code", &place.event("PreToolUse", bash("rm -rf x")));
    let log = place.run(&["log", "--format", "json", "--decision", "deny"]);
    assert!(log.out.contains("guardrail-blocked"), "{}{}", log.out, log.err);
    assert_eq!(place.run(&["log", "verify"]).exit, 0);
}

#[test]
fn a_manifest_holds_the_arguments_of_hooked_tools() {
    let place = Place::new();
    let manifest = place.project().join("m.toml");
    let text = format!(
        "name = \"m\"\nversion = \"1.0.0\"\n[[tools]]\nname = \"Read\"\ncapabilities = [\"fs:read:{}/docs/**\"]\n",
        place.project().display()
    );
    std::fs::write(&manifest, text).unwrap();
    let read = |path: &str| {
        let event =
            place.event("PreToolUse", json!({"tool_name": "Read", "tool_input": {"file_path": path}}));
        let mut command = place.command(&["hook", "claude-code", "--manifest", "m.toml"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        super::done(child.wait_with_output().unwrap()).out
    };
    assert_eq!(read(&format!("{}/docs/a.md", place.project().display())), "");
    assert!(read("/etc/passwd").contains("\"deny\""));
}

#[test]
fn a_manifest_counts_over_the_session_of_hooked_tools() {
    let place = Place::new();
    let text = "name = \"db\"\nversion = \"1.0.0\"\n[[tools]]\nname = \"drop\"\n[tools.constraints]\nonly_after = [\"backup\"]\n\
                [[tools]]\nname = \"backup\"\n[tools.constraints]\nmax_invocations = 2\n\
                [[tools]]\nname = \"copy\"\n[tools.constraints]\nfleet_budget = { name = \"copies\" }\n";
    std::fs::write(place.project().join("m.toml"), text).unwrap();
    let hook = |event: &str, tool: &str, id: u32| {
        let mut fields = json!({"tool_name": tool, "tool_input": {}, "tool_use_id": id.to_string()});
        if event == "PostToolUse" {
            fields["tool_response"] = json!({"content": "done"});
        }
        let event = place.event(event, fields);
        let mut command = place.command(&["hook", "claude-code", "--manifest", "m.toml"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        super::done(child.wait_with_output().unwrap()).out
    };
    let before = |tool: &str, id: u32| hook("PreToolUse", tool, id);
    assert!(before("mcp__db__drop", 1).contains("only run after `backup`"));
    assert!(before("mcp__db__other", 2).contains("declares no tool `other`"));
    assert_eq!(before("mcp__elsewhere__drop", 3), "", "of another server");
    assert_eq!(before("mcp__db__backup", 4), "");
    assert!(before("mcp__db__drop", 5).contains("only run after `backup`"), "it has not ended");
    assert_eq!(hook("PostToolUse", "mcp__db__backup", 4), "");
    assert_eq!(before("mcp__db__drop", 6), "");
    assert_eq!(before("mcp__db__backup", 7), "");
    assert!(before("mcp__db__backup", 8).contains("as often as it may"));
    assert!(before("mcp__db__copy", 9).contains("which a hook cannot"), "no lease is spent here");
}

#[test]
fn settings_come_back_as_they_were() {
    let place = Place::new();
    let home = place.0.path().canonicalize().unwrap();
    let odd = "{\n\t// mine\n  \"model\" : \"x\",\n  \"hooks\": {\"Stop\": [ {\"hooks\": [{\"type\":\"command\",\"command\":\"true\"}]} ] }\n}";
    for directory in [".claude", ".codex", ".cursor", ".gemini"] {
        std::fs::create_dir(home.join(directory)).unwrap();
    }
    let claude = home.join(".claude/settings.json");
    std::fs::write(&claude, odd).unwrap();
    assert_eq!(place.run(&["install", "--hooks"]).exit, 0);
    let installed = std::fs::read_to_string(&claude).unwrap();
    assert!(
        installed.contains("// mine")
            && installed.contains("hook claude-code")
            && installed.contains("\"true\"")
    );
    for file in [".codex/hooks.json", ".cursor/hooks.json", ".gemini/settings.json"] {
        let value: Value = serde_json::from_str(&std::fs::read_to_string(home.join(file)).unwrap()).unwrap();
        assert!(value["hooks"].to_string().contains(" hook "), "{file}");
    }
    assert!(place.run(&["install", "--hooks"]).out.contains("needs no change"), "twice is once");
    assert_eq!(std::fs::read_to_string(&claude).unwrap(), installed);
    assert_eq!(place.run(&["install", "--hooks", "--undo"]).exit, 0);
    assert_eq!(std::fs::read_to_string(&claude).unwrap(), odd, "byte for byte");
    assert!(!home.join(".codex/hooks.json").exists(), "what we made is gone");
    place.run(&["install", "--hooks", "claude-code"]);
    let edited = std::fs::read_to_string(&claude).unwrap().replace("\"x\"", "\"y\"");
    std::fs::write(&claude, &edited).unwrap();
    place.run(&["install", "--hooks", "--undo", "claude-code"]);
    let left = std::fs::read_to_string(&claude).unwrap();
    assert!(
        left.contains("\"y\"") && left.contains("\"true\"") && !left.contains("hook claude-code"),
        "{left}"
    );
    std::fs::write(&claude, "{ nonsense").unwrap();
    let refused = place.run(&["install", "--hooks", "claude-code"]);
    assert_eq!((refused.exit, std::fs::read_to_string(&claude).unwrap().as_str()), (3, "{ nonsense"));
}

#[test]
fn a_dry_run_shows_the_change_and_makes_none() {
    let place = Place::new();
    let home = place.0.path().canonicalize().unwrap();
    for directory in [".claude", ".codex"] {
        std::fs::create_dir(home.join(directory)).unwrap();
    }
    let claude = home.join(".claude/settings.json");
    std::fs::write(&claude, "{\n  // mine\n  \"model\": \"x\"\n}\n").unwrap();
    let files = || {
        let walked = std::process::Command::new("find").arg(&home).args(["-type", "f"]).output().unwrap();
        let mut paths: Vec<_> =
            String::from_utf8(walked.stdout).unwrap().lines().map(str::to_owned).collect();
        paths.sort();
        paths.into_iter().map(|path| (std::fs::read(&path).unwrap(), path)).collect::<Vec<_>>()
    };
    // What a diff says is what `patch` makes of it.
    let patched = |undo: &[&str]| {
        let before = files();
        let dry = place.run(&[&["install", "--hooks", "--dry-run"][..], undo].concat());
        assert_eq!((dry.exit, dry.err.as_str()), (0, ""), "{}", dry.out);
        assert!(before == files(), "it wrote something");
        dry.out
    };
    let dry = patched(&[]);
    let (old, new) = (format!("--- {}\n", claude.display()), format!("+++ {}\n", claude.display()));
    assert!(dry.contains(&old) && dry.contains(&new), "{dry}");
    assert!(dry.contains("\n   // mine\n") && dry.contains("hook claude-code\",\n"), "{dry}");
    let codex = home.join(".codex/hooks.json");
    assert!(dry.contains(&format!("--- /dev/null\n+++ {}\n@@ -0,0 +1,", codex.display())), "{dry}");
    assert_eq!(place.run(&["install", "--hooks"]).exit, 0);
    let added = |diff: &str| diff.lines().filter(|line| line.starts_with('+')).count() - 2;
    let installed = std::fs::read_to_string(&claude).unwrap().lines().count()
        + std::fs::read_to_string(&codex).unwrap().lines().count();
    let removed = dry.lines().filter(|line| line.starts_with('-') && !line.starts_with("---")).count();
    assert_eq!(added(&dry) + 4 - removed, installed, "{dry}");
    assert!(patched(&[]).contains("needs no change"));
    let undone = patched(&["--undo"]);
    assert!(undone.contains(&format!("--- {}\n+++ /dev/null\n", codex.display())), "{undone}");
    let gone = undone.lines().any(|line| line.starts_with('-') && line.contains("hook claude-code"));
    assert!(gone, "{undone}");
}

#[test]
fn a_starter_is_written_and_passes() {
    let place = Place::new();
    assert_eq!(place.run(&["guard", "init"]).exit, 3, "never over a file that is there");
    assert_eq!(place.run(&["guard", "init", "--force"]).exit, 0);
    for args in [&["guard", "lint"][..], &["guard", "test"], &["trust", "--yes", "."]] {
        let ran = place.run(args);
        assert_eq!(ran.exit, 0, "{args:?} {}{}", ran.out, ran.err);
    }
    let explained = place.run(&["guard", "explain", "Bash", "env rm -fr ~", "--format", "json"]);
    let value: Value = serde_json::from_str(&explained.out).unwrap();
    assert_eq!(
        (explained.exit, &value["verdict"], &value["commands"]),
        (1, &json!("block"), &json!(["rm -fr ~"]))
    );
    std::fs::write(place.project().join(".agents/guardrails.toml"), "[[guard]]\nmatch = \"shel(comand=x)\"\nmessage = \"m\"\nexamples.block = [\"y\"]\n[[guard]]\nmatch = \"shell(comand=x)\"\nmessage = \"m\"").unwrap();
    let lint = place.run(&["guard", "lint"]);
    assert!(
        lint.exit == 1
            && lint.out.contains("guardrail-dead-target")
            && lint.out.contains("guardrail-dead-argument"),
        "{}",
        lint.out
    );
    let tested = place.run(&["guard", "test"]);
    assert!(tested.exit == 1 && tested.out.contains("guardrail-example"), "{}", tested.out);
}
