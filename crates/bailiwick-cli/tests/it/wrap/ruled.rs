//! Rules of a manifest on arguments, hosts in arguments, and a gate that only records.

use serde_json::{Value, json};

use super::{World, call, text};

const MANIFEST: &str = r#"
name = "ruled"
version = "1"

[[tools]]
name = "push"
capabilities = []

[[tools.rules]]
when = { argument = "/branch", matches = '^release/' }
then = "deny"
message = "releases are cut by people"

[[tools.rules]]
when = { argument = "/count", number = "101.." }
then = "ask"
message = "that is a lot"

[[tools]]
name = "get"
capabilities = ["net:connect:api.test:443"]

[[tools]]
name = "note"
capabilities = []
"#;

/// Answers every call.
const SCRIPT: &str = r#"
    *'"id":1,'*|*'"id":1}'*) printf '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"ran"}]}}\n';;
"#;

fn code(answer: &Value) -> &Value {
    &answer["result"]["_meta"]["dev.bailiwick/decision"]["code"]
}

#[test]
fn rules_refuse_or_ask_by_the_arguments_alone() {
    let world = World::new();
    let mut wrapped = world.wrap_script(MANIFEST, &[], SCRIPT);
    let mut push = |arguments: Value| wrapped.ask(&call(1, "push", &arguments));
    assert_eq!(text(&push(json!({ "branch": "main" }))), "ran");
    let refused = push(json!({ "branch": "release/1" }));
    assert_eq!(code(&refused), "argument-rule", "{refused}");
    assert!(text(&refused).contains("releases are cut by people"), "{refused}");
    assert_eq!(code(&push(json!({ "branch": ["main", "release/1"] }))), "argument-rule");
    assert_eq!(code(&push(json!({ "branch": "main", "count": 101 }))), "consent-missing");
    assert_eq!(text(&push(json!({ "branch": "main", "count": 100 }))), "ran");
    let imitation = push(json!({ "Branch": "release/1" }));
    assert_eq!(imitation["error"]["code"], -32602, "a key that passes for a judged one: {imitation}");
    drop(wrapped.end());
    assert!(world.recorded().contains("argument-rule"));
}

#[test]
fn hosts_in_arguments_are_held_to_the_tools_own_network() {
    let world = World::new();
    let mut wrapped = world.wrap_script(MANIFEST, &[], SCRIPT);
    let mut ask = |tool: &str, arguments: Value| wrapped.ask(&call(1, tool, &arguments));
    assert_eq!(text(&ask("get", json!({ "url": "https://api.test/x" }))), "ran");
    let refused = ask("get", json!({ "url": "https://evil.test/x" }));
    assert_eq!(code(&refused), "argument-host", "{refused}");
    assert!(text(&refused).contains("net:connect:evil.test:443"), "it says what would allow it: {refused}");
    assert_eq!(
        text(&ask("get", json!({ "query": "what is https://evil.test/x" }))),
        "ran",
        "free text is no host"
    );
    assert_eq!(text(&ask("note", json!({ "url": "https://evil.test/x" }))), "ran", "the tool has no network");
    drop(wrapped.end());
}

#[test]
fn audit_records_what_the_gate_would_refuse_and_needs_the_users_word() {
    let world = World::new();
    let mut refused = world.wrap_script(MANIFEST, &["--mode", "audit"], SCRIPT);
    let instructions = refused.initialize()["result"]["instructions"].clone();
    assert!(instructions.as_str().is_some_and(|text| text.contains("audit = true")), "{instructions}");
    assert_eq!(refused.end().0, Some(125));

    std::fs::create_dir_all(world.path(".config/bailiwick")).expect("a directory");
    world.write(".config/bailiwick/config.toml", "[wrap]\naudit = true\n");
    let mut wrapped = world.wrap_script(MANIFEST, &["--mode", "audit"], SCRIPT);
    assert_eq!(text(&wrapped.ask(&call(1, "push", &json!({ "branch": "release/1" })))), "ran");
    assert_eq!(text(&wrapped.ask(&call(1, "push", &json!({ "count": 500 })))), "ran");
    let undeclared = wrapped.ask(&call(1, "other", &json!({})));
    assert_eq!(undeclared["error"]["code"], -32602, "what is not declared is not there: {undeclared}");
    let (_, stderr) = wrapped.end();
    assert!(stderr.contains("AUDIT MODE"), "{stderr}");
    let recorded = world.recorded();
    assert!(recorded.contains("would-deny") && recorded.contains("argument-rule: "), "{recorded}");
    assert!(recorded.contains("consent-missing: "), "{recorded}");
    let shown = world.run(&["log", "tail", "-n", "50"]).stdout;
    assert!(String::from_utf8_lossy(&shown).contains("would-deny"));
    // With the word in the settings, and without the flag, the gate holds.
    let mut enforced = world.wrap_script(MANIFEST, &[], SCRIPT);
    assert_eq!(code(&enforced.ask(&call(1, "push", &json!({ "branch": "release/1" })))), "argument-rule");
    drop(enforced.end());
}
