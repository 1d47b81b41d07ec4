//! What events of real agents mean, as `tests/agents` recorded them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

fn event(name: &str, value: &Value) -> Event {
    agent(name).unwrap().event(value).unwrap()
}

fn ended(name: &str, value: &Value) -> (String, Option<bool>) {
    let EventKind::After { result, success, .. } = event(name, value).kind else { panic!("no end: {value}") };
    (result, success)
}

fn tool(name: &str, value: &Value) -> String {
    let EventKind::Before { tool, .. } = event(name, value).kind else { panic!("no call: {value}") };
    tool
}

fn after(name: &str, tool: &str, key: &str, result: Value) -> Value {
    json!({"hook_event_name": name, "session_id": "s", "tool_name": tool, "tool_input": {}, key: result})
}

#[test]
fn results_are_texts_and_ends_are_as_the_agent_says() {
    let bash = json!({"stdout": "a\nb", "stderr": "", "interrupted": false});
    let claude = after("PostToolUse", "Bash", "tool_response", bash);
    assert_eq!(ended("claude-code", &claude), ("a\nb".to_owned(), Some(true)));
    let failed = after("PostToolUseFailure", "Bash", "error", json!("Exit code 3"));
    assert_eq!(ended("claude-code", &failed), ("Exit code 3".to_owned(), Some(false)));
    let codex = after("PostToolUse", "Bash", "tool_response", json!("a\nb"));
    assert_eq!(ended("codex", &codex), ("a\nb".to_owned(), None));
    let report =
        "<untrusted_context>\nOutput: a\nb\nExit Code: 3\nProcess Group PGID: 1\n</untrusted_context>";
    let gemini = after("AfterTool", "run_shell_command", "tool_response", json!({"llmContent": report}));
    assert_eq!(ended("gemini", &gemini), ("a\nb".to_owned(), Some(false)));
    let report = "<untrusted_context>\nOutput: Exit Code: 1\nb\nProcess Group PGID: 1\n</untrusted_context>";
    let gemini = after("AfterTool", "run_shell_command", "tool_response", json!({"llmContent": report}));
    assert_eq!(ended("gemini", &gemini).0, "Exit Code: 1\nb");
    let report =
        "Command: echo hi\nDirectory: (root)\nOutput: hi\nError: (none)\nExit Code: 0\nSignal: (none)";
    let qwen = after("PostToolUse", "run_shell_command", "tool_response", json!({"llmContent": report}));
    assert_eq!(ended("qwen", &qwen), ("hi".to_owned(), Some(true)));
    let text = json!({"result_type": "success", "text_result_for_llm": "hi\n<shellId: 1 completed with exit code 3>"});
    let copilot = after("PostToolUse", "Bash", "tool_result", text);
    assert_eq!(ended("copilot", &copilot), ("hi".to_owned(), Some(false)));
    let open = json!({"event": "after", "session": "s", "tool": "bash", "result": "x", "success": null});
    assert_eq!(ended("opencode", &open).1, None);
}

#[test]
fn servers_are_named_by_the_event_where_it_says_so() {
    let context = json!({"hook_event_name": "BeforeTool", "session_id": "s", "tool_name": "mcp_my_notes_drop",
        "mcp_context": {"server_name": "my_notes", "tool_name": "drop"}});
    assert_eq!(tool("gemini", &context), "my_notes:drop");
    let server = json!({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "mcp__my_notes__drop",
        "mcp_server": {"name": "my notes", "source": "user"}});
    assert_eq!(tool("claude-code", &server), "my notes:drop");
}

#[test]
fn a_subagent_is_told_apart() {
    let value = json!({"hook_event_name": "SubagentStop", "session_id": "s", "agent_id": "a1", "agent_type": "reviewer"});
    let event = event("claude-code", &value);
    assert_eq!(event.subagent, "a1");
    assert!(matches!(event.kind, EventKind::Stop { role, .. } if role == "reviewer"));
}

#[test]
fn the_file_of_copilot_names_the_events_that_are_read() {
    let copilot = agent("copilot").unwrap();
    let text = copilot.add_hooks(None, std::path::Path::new("/usr/bin/bailiwick")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let names: BTreeSet<&str> = value["hooks"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, copilot.events().collect());
    let hook = json!([{"type": "command", "bash": "/usr/bin/bailiwick hook copilot", "timeoutSec": 310}]);
    assert_eq!((&value["version"], &value["hooks"]["Stop"]), (&json!(1), &hook));
}

#[test]
fn our_program_moves_and_its_options_stay() {
    for agent in &AGENTS {
        let add =
            |text: Option<&str>, program: &str| agent.add_hooks(text, std::path::Path::new(program)).unwrap();
        let old = add(None, "/old place/bailiwick");
        let ours = [format!(" hook {}\"", agent.name), format!("\"hook\",\"{}\"]", agent.name)];
        let with_role = old
            .replace(&ours[0], &ours[0].replace('"', " --role x\""))
            .replace(&ours[1], &ours[1].replace(']', ",\"--role\",\"x\"]"));
        assert_ne!(with_role, old, "{}", agent.name);
        let moved = add(Some(&with_role), "/new/bailiwick");
        let command = agent.configured_command(&moved).unwrap();
        assert_eq!(command, format!("/new/bailiwick hook {} --role x", agent.name));
        assert!(!moved.contains("/old place"), "{moved}");
        assert_eq!(add(Some(&moved), "/new/bailiwick"), moved, "{}", agent.name);
    }
}

#[test]
fn lines_without_their_last_mark_are_not_touched() {
    let opencode = agent("opencode").unwrap();
    let program = std::path::Path::new("/usr/bin/bailiwick");
    let text = opencode.add_hooks(None, program).unwrap().replace("// <<< bailiwick", "");
    assert!(matches!(opencode.add_hooks(Some(&text), program), Err(HookSettingsError::NoEnd(_))));
    assert!(matches!(opencode.remove_hooks(&text), Err(HookSettingsError::NoEnd(_))));
    let theirs = opencode.add_hooks(Some("export const Other = 1;\n"), program);
    assert_eq!(theirs, Err(HookSettingsError::NotOurs));
}

#[test]
fn a_dry_event_is_a_call_of_the_shell() {
    for agent in AGENTS.iter().chain([&GENERIC]) {
        let event = agent.event(&agent.dry_event()).unwrap();
        assert_eq!(event.session, format!("{}-{DRY_SESSION}", agent.name));
        let EventKind::Before { params, .. } = event.kind else { panic!("{}", agent.name) };
        assert_eq!(params["command"], "bailiwick trust .", "{}", agent.name);
    }
}
