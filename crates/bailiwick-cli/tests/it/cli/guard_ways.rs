//! Ways around the guard that agents leave open, and what is told to whom.

use serde_json::{Value, json};

use super::guard::{Place, bash};

fn verdict(answer: &Value) -> &str {
    answer["hookSpecificOutput"]["permissionDecision"].as_str().unwrap_or("allow")
}

#[test]
fn rules_above_the_session_hold() {
    let place = Place::new();
    let inner = place.project().join("inner");
    std::fs::create_dir_all(inner.join(".agents")).unwrap();
    let mut event = place.event("PreToolUse", bash("rm -rf x"));
    event["cwd"] = json!(inner);
    assert_eq!(verdict(&place.answer("claude-code", &event)), "deny", "a file above");
    // A file of its own does not replace the one above it, and cannot rename what that one speaks of.
    std::fs::write(inner.join(".agents/guardrails.toml"), "[capabilities]\n\"agent:Bash\" = \"other\"\n")
        .unwrap();
    event["session_id"] = json!("another");
    assert_eq!(verdict(&place.answer("claude-code", &event)), "deny", "two files");
    event["tool_input"]["command"] = json!("ls");
    event["tool_use_id"] = json!("ls");
    assert_eq!(verdict(&place.answer("claude-code", &event)), "allow");
}

#[test]
fn relative_names_lead_from_where_the_agent_is() {
    let place = Place::new();
    let sub = place.project().join("sub");
    std::fs::create_dir(&sub).unwrap();
    let judge = |tool: &str, input: Value| {
        let more = json!({"tool_name": tool, "tool_input": input, "cwd": sub});
        let answer = place.answer("claude-code", &place.event("PreToolUse", more));
        verdict(&answer).to_owned()
    };
    place.answer("claude-code", &place.event("PreToolUse", bash("ls")));
    assert_eq!(judge("Write", json!({"file_path": "../.agents/guardrails.toml"})), "deny");
    assert_eq!(judge("Bash", json!({"command": "cp x say.sh", "workdir": "../.agents"})), "deny");
    assert_eq!(judge("Bash", json!({"command": "cp x settings.json", "dir_path": "/p/.claude"})), "deny");
    assert_eq!(judge("Bash", json!({"command": "cp x say.sh"})), "allow", "another file of that name");
}

#[test]
fn a_program_that_waits_for_commands_is_not_started_where_they_are_not_seen() {
    let place = Place::new();
    let judge = |agent: &str, command: &str| {
        let answer = place.answer(agent, &place.event("PreToolUse", bash(command)));
        verdict(&answer).to_owned()
    };
    assert_eq!(judge("codex", "bash"), "deny");
    assert_eq!(judge("codex", "cd sub && python3 -i"), "deny");
    assert_eq!(judge("codex", "bash -c ls"), "allow");
    assert_eq!(judge("claude-code", "bash"), "allow", "its hooks see all there is");
}

#[test]
fn what_a_refused_call_is_said_to_have_done_counts_for_nothing() {
    let place = Place::new();
    place.run(&["trust", "--yes", "."]);
    let before = place.answer("claude-code", &place.event("PreToolUse", bash("rm -rf x")));
    assert_eq!(verdict(&before), "deny");
    let mut after = bash("rm -rf x");
    after["tool_response"] = json!({"is_error": true});
    assert_eq!(
        place.answer("claude-code", &place.event("PostToolUse", after)),
        Value::Null,
        "no script runs"
    );
    let mut failed = bash("ls");
    failed["tool_response"] = json!({"is_error": true});
    let said = place.answer("claude-code", &place.event("PostToolUse", failed));
    assert_eq!(said["hookSpecificOutput"]["additionalContext"], "said", "one that was not refused");
}

#[test]
fn an_approval_is_not_for_words_and_serves_two_settings_files() {
    let place = Place::new();
    let judge = |words: &str, id: &str| {
        let input = json!({"command": "make all", "description": words});
        let more = json!({"tool_name": "Bash", "tool_input": input, "tool_use_id": id});
        let answer = place.answer("codex", &place.event("PreToolUse", more));
        (verdict(&answer).to_owned(), answer)
    };
    let (word, answer) = judge("build", "1");
    assert_eq!(word, "deny");
    let reason = answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap().to_owned();
    let id = reason.split("bailiwick approve ").nth(1).unwrap().split('`').next().unwrap();
    assert_eq!(place.run(&["approve", "--yes", id]).exit, 0);
    assert_eq!(judge("other words", "2").0, "allow");
    assert_eq!(judge("other words", "2").0, "allow", "the same call, asked by another settings file");
    assert_eq!(judge("other words", "3").0, "deny", "another call");
}

#[test]
fn settings_that_lose_our_hooks_are_not_loaded() {
    let place = Place::new();
    let home = place.0.path().canonicalize().unwrap();
    let settings = home.join(".claude/settings.json");
    std::fs::create_dir(home.join(".claude")).unwrap();
    let changed = || {
        let more = json!({"source": "user_settings", "file_path": settings});
        place.answer("claude-code", &place.event("ConfigChange", more))["decision"].clone()
    };
    std::fs::write(&settings, "{}").unwrap();
    assert_eq!(changed(), Value::Null, "never ours");
    assert_eq!(place.run(&["install", "--hooks", "claude-code"]).exit, 0);
    assert_eq!(changed(), Value::Null, "still ours");
    std::fs::write(&settings, "{}").unwrap();
    assert_eq!(changed(), "block");
    std::fs::write(home.join(".claude/settings.local.json"), "{\"disableAllHooks\": true}").unwrap();
    let more = json!({"source": "local_settings", "file_path": home.join(".claude/settings.local.json")});
    assert_eq!(place.answer("claude-code", &place.event("ConfigChange", more))["decision"], "block");
}

#[test]
fn a_fault_after_a_call_is_no_refusal_to_gemini() {
    let place = Place::new();
    std::fs::create_dir_all(place.0.path().join(".local/state")).unwrap();
    std::fs::write(place.0.path().join(".local/state/bailiwick"), "not a directory").unwrap();
    let more = || json!({"tool_name": "x", "tool_input": {}});
    assert_eq!(place.hook("gemini", &place.event("AfterTool", more())).exit, 1);
    assert_eq!(place.hook("gemini", &place.event("BeforeTool", more())).exit, 2);
    assert_eq!(place.hook("claude-code", &place.event("PostToolUse", more())).exit, 5);
}

#[test]
fn a_session_from_a_file_tries_hooks_and_validators_too() {
    let place = Place::new();
    let file = place.project().join("session.jsonl");
    let lines = [
        json!({"event": "before", "tool": "Bash", "params": {"command": "ls"}, "expect": {"decision": "allow"}}),
        json!({"event": "before", "tool": "Bash", "params": {"command": "rm -rf x"}, "expect": {"decision": "deny", "message": "no"}}),
        json!({"event": "after", "tool": "Bash", "params": {"command": "ls"}, "success": false, "expect": {"inject": "said"}}),
        json!({"event": "before", "tool": "Write", "params": {}, "expect": {"decision": "allow"}}),
        json!({"event": "stop", "text": "done", "expect": {"inject": "validator=\"v\""}}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&file, text).unwrap();
    let untrusted = place.run(&["guard", "test", "--events", "session.jsonl"]);
    assert_eq!(untrusted.exit, 1, "{}", untrusted.out);
    assert!(
        untrusted.out.contains("session.jsonl:3: ") && untrusted.out.contains("not trusted"),
        "{}",
        untrusted.out
    );
    place.run(&["trust", "--yes", "."]);
    let ran = place.run(&["guard", "test", "--events", "session.jsonl"]);
    assert_eq!((ran.exit, ran.out.as_str()), (0, "ok: 5 events in session.jsonl\n"));
}

#[test]
fn doctor_runs_the_command_that_is_configured() {
    let place = Place::new();
    let home = place.0.path().canonicalize().unwrap();
    assert_eq!(place.run(&["doctor", "--agents"]).exit, 1, "no hooks");
    for agent in ["claude-code", "codex", "gemini", "qwen", "cursor", "opencode", "copilot"] {
        assert_eq!(place.run(&["install", "--hooks", agent]).exit, 0, "{agent}");
    }
    let ran = place.run(&["doctor", "--agents"]);
    assert_eq!((ran.exit, ran.out.matches("refuses what it must").count()), (0, 7), "{}", ran.out);
    assert!(
        ran.out.contains("no event of the agent") && ran.out.contains("no trust in these hooks"),
        "{}",
        ran.out
    );
    place.answer("claude-code", &place.event("PreToolUse", bash("ls")));
    assert!(place.run(&["doctor", "--agents"]).out.contains("last event of the agent"));
    let settings = home.join(".claude/settings.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    let program = text.split('"').find(|part| part.ends_with(" hook claude-code")).unwrap();
    let gone = text.replace(program, "/nowhere/bailiwick hook claude-code");
    std::fs::write(&settings, gone).unwrap();
    let ran = place.run(&["doctor", "--agents"]);
    assert!(ran.exit == 1 && ran.out.contains("exit code 127"), "{}", ran.out);
}

#[test]
fn a_role_can_be_set_for_all_agents_or_those_of_a_type() {
    let place = Place::new();
    let rules = "[[validator]]\nname = \"v\"\nroles = [\"developer\"]\nscript = \".agents/say.sh\"\n";
    std::fs::write(place.project().join(".agents/guardrails.toml"), rules).unwrap();
    place.run(&["trust", "--yes", "."]);
    let speaks = |roles: &[&str], agent_type: Option<&str>| {
        let more = agent_type.map_or_else(|| json!({}), |name| json!({"agent_id": "a", "agent_type": name}));
        let event = place.event("Stop", more).to_string();
        place.hook_with(&[&["claude-code"], roles].concat(), &event).out.contains("said")
    };
    assert!(!speaks(&[], None) && speaks(&[], Some("developer:general")), "the agent's own word");
    assert!(speaks(&["--role", "developer"], None) && speaks(&["--role", "developer"], Some("reviewer")));
    let of_types = ["--role", "main=other", "--role", "reviewer=developer:review"];
    assert!(
        !speaks(&of_types, None)
            && speaks(&of_types, Some("reviewer"))
            && speaks(&of_types, Some("developer"))
    );
    assert!(!speaks(&["--role", "x=developer", "--role", "other"], Some("developer")), "one for the rest");
}

#[test]
fn an_entry_with_options_of_ours_stays_ours() {
    let place = Place::new();
    let home = place.0.path().canonicalize().unwrap();
    for (agent, file) in
        [("claude-code", ".claude/settings.json"), ("copilot", ".copilot/hooks/bailiwick.json")]
    {
        assert_eq!(place.run(&["install", "--hooks", agent]).exit, 0);
        let path = home.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let command = format!(" hook {agent}\"");
        let with_role = format!(" hook {agent} --role developer\"");
        std::fs::write(&path, text.replace(&command, &with_role)).unwrap();
        assert!(place.run(&["install", "--hooks", agent]).out.contains("needs no change"));
        let ran = place.run(&["doctor", "--agents"]);
        assert!(ran.exit == 0 && ran.out.contains("refuses what it must"), "{}", ran.out);
        assert_eq!(place.run(&["install", "--hooks", "--undo", agent]).exit, 0);
        assert!(!path.exists(), "{agent}: nothing was there before");
    }
}

/// What is not known to have succeeded does not open what may only run after it.
#[test]
fn an_unknown_end_is_no_success_to_a_manifest() {
    let place = Place::new();
    let text = "name = \"db\"\nversion = \"1.0.0\"\n[[tools]]\nname = \"drop\"\n[tools.constraints]\n\
                only_after = [\"backup\"]\n[[tools]]\nname = \"backup\"\n";
    std::fs::write(place.project().join("m.toml"), text).unwrap();
    let hook = |event: &str, tool: &str, id: &str, success: Value| {
        let event = json!({"event": event, "session": "s", "cwd": place.project(), "tool": tool, "id": id, "params": {}, "success": success});
        place.hook_with(&["generic", "--manifest", "m.toml"], &event.to_string()).out
    };
    let backup = |id: &str, success: Value| {
        assert!(hook("before", "db:backup", id, Value::Null).contains("allow"));
        hook("after", "db:backup", id, success);
    };
    backup("1", Value::Null);
    assert!(hook("before", "db:drop", "2", Value::Null).contains("only run after"));
    backup("3", json!(true));
    assert!(hook("before", "db:drop", "4", Value::Null).contains("allow"), "the control");
}

#[test]
fn messages_reach_an_agent_one_by_one_with_their_source() {
    let place = Place::new();
    let more = "\n[[hook]]\nscript = \".agents/say.sh\"\n";
    let path = place.project().join(".agents/guardrails.toml");
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + more).unwrap();
    place.run(&["trust", "--yes", "."]);
    let event = json!({"event": "after", "session": "s", "cwd": place.project(), "tool": "Bash", "params": {"command": "ls"}, "success": false});
    let one = json!({"source": "guardrail_hook", "script": ".agents/say.sh", "text": "said"});
    assert_eq!(place.answer("generic", &event), json!({"inject": [one, one]}));
    let write =
        json!({"event": "before", "session": "s", "cwd": place.project(), "tool": "Write", "params": {}});
    place.answer("generic", &write);
    let stop = json!({"event": "stop", "session": "s", "cwd": place.project(), "text": "done"});
    assert_eq!(place.answer("generic", &stop)["inject"][0]["source"], "guardrail_validator");
}

#[test]
fn lint_says_where_a_rule_would_not_match() {
    let place = Place::new();
    let lint = |rule: &str| {
        let text = format!("[[guard]]\nmatch = '{rule}'\nmessage = 'no'\n");
        std::fs::write(place.project().join(".agents/guardrails.toml"), text).unwrap();
        let ran = place.run(&["guard", "lint"]);
        (ran.exit, ran.out)
    };
    let (exit, out) = lint(r"filesystem-write(content=secret)");
    assert!(exit == 0 && out.contains("guardrail-partial-argument"), "{out}");
    assert!(
        out.contains("`Edit` and `NotebookEdit` of Claude Code") || out.contains("`Edit` of Claude Code"),
        "{out}"
    );
    assert!(out.contains("`replace` of Gemini CLI") && !out.contains("`Write`"), "{out}");
    let (exit, out) = lint(r"filesystem-write(paths=generated)");
    assert!(exit == 0 && !out.contains("partial"), "{out}");
    let (exit, out) = lint(r"filesystem-read(paths=\.env)");
    assert!(exit == 0 && out.contains("guardrail-shell-unseen") && !out.contains("partial"), "{out}");
    let (exit, out) = lint(r"agent:Read(command=x)");
    assert!(exit == 1 && out.contains("guardrail-dead-argument"), "{out}");
    assert_eq!(lint(r"agent:Read(path=x)").0, 0, "another name for `file_path`");
}
