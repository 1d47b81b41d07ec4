//! What a wrapped server cannot do, whatever it is asked for, and what leaves a trace.

use serde_json::json;

use super::{World, call, text};

const MANIFEST: &str = r#"
name = "shelf"
version = "1"
server_capabilities = ["env:inject:SHELF_TOKEN"]

[[tools]]
name = "look"
capabilities = []

[[tools]]
name = "guarded"
capabilities = []
constraints = { confirm = true }
"#;

/// Answers call 1 with whether it could open a file that nobody granted, and call 2 with a variable.
const SCRIPT: &str = r#"
    *'"id":1,'*|*'"id":1}'*) x=closed; [ -r "$SECRET_FILE_OF_TEST" ] && x=seen; if read -r y < FILE; then x=open; fi
        printf '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$x";;
    *'"id":2,'*|*'"id":2}'*) printf '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"[%s][%s]"}]}}\n' "$SHELF_TOKEN" "$OTHER_TOKEN";;
    *'"id":3,'*|*'"id":3}'*) echo "a banner"; printf '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"ran"}]}}\n';;
"#;

#[test]
fn the_sandbox_holds_what_the_gate_cannot_see() {
    let world = World::new();
    let secret = world.write("secret", "hush\n");
    let script = SCRIPT.replace("FILE", &secret.display().to_string());
    let mut wrapped = world.wrap_script(MANIFEST, &[], &script);
    assert_eq!(text(&wrapped.ask(&call(1, "look", &json!({})))), "closed");
    let (code, _) = wrapped.end();
    assert_eq!(code, Some(0));
    // The same server reads it where that is granted.
    let granted = MANIFEST.replacen(
        "capabilities = []",
        &format!("capabilities = [\"fs:read:{}\"]", secret.display()),
        1,
    );
    let mut wrapped = world.wrap_script(&granted, &[], &script);
    assert_eq!(text(&wrapped.ask(&call(1, "look", &json!({})))), "open");
    drop(wrapped.end());
    let recorded = world.recorded();
    assert!(recorded.contains("sandbox-started") && recorded.contains("tool-called"), "{recorded}");
}

#[test]
fn a_secret_is_given_and_never_comes_back() {
    let world = World::new();
    let manifest = world.write("manifest.toml", MANIFEST);
    let script =
        format!("while IFS= read -r line; do case \"$line\" in {} {SCRIPT} esac; done", super::UNLISTED);
    let mut command = world.bailiwick(&["wrap", "--manifest"]);
    command.arg(manifest).args(["--", "/bin/sh", "-c", &script]);
    command.env("SHELF_TOKEN", "tok-12345-abc").env("OTHER_TOKEN", "not-granted");
    let mut wrapped = super::Wrapped::spawned(command);
    assert_eq!(text(&wrapped.ask(&call(2, "look", &json!({})))), "[[secret SHELF_TOKEN]][]");
    drop(wrapped.end());
}

#[test]
fn a_call_that_needs_consent_runs_once_after_a_person_gave_it() {
    let world = World::new();
    let mut wrapped = world.wrap_script(MANIFEST, &[], SCRIPT);
    let denied = wrapped.ask(&call(3, "guarded", &json!({ "a": 1 })));
    assert_eq!(denied["result"]["_meta"]["dev.bailiwick/decision"]["code"], "consent-missing", "{denied}");
    let said = text(&denied);
    let id = said
        .split("bailiwick approve ")
        .nth(1)
        .and_then(|rest| rest.split('`').next())
        .expect("an id")
        .to_owned();
    assert!(world.run(&["approve", &id, "--yes"]).status.success(), "{said}");
    let other = wrapped.ask(&call(3, "guarded", &json!({ "a": 2 })));
    assert_eq!(other["result"]["isError"], true, "another call is another question: {other}");
    assert_eq!(text(&wrapped.ask(&call(3, "guarded", &json!({ "a": 1 })))), "ran");
    assert_eq!(
        wrapped.ask(&call(3, "guarded", &json!({ "a": 1 })))["result"]["isError"],
        true,
        "it was for one call"
    );
    let (_, stderr) = wrapped.end();
    assert!(stderr.contains("no message: a banner"), "{stderr}");
}

#[test]
fn the_fixture_has_only_its_declared_tools() {
    let world = World::new();
    let manifest =
        "name = 'fixture'\nversion = '1'\n[[tools]]\nname = 'test_simple_text'\ncapabilities = []\n";
    let version = env!("CARGO_PKG_VERSION");
    let server =
        [env!("CARGO_BIN_EXE_bailiwick-fixture"), "--for", version, "serve", "--fixture", "conformance"];
    let mut wrapped = world.wrap(manifest, &["--name", "suite"], &server);
    assert!(wrapped.initialize()["result"]["serverInfo"].is_object());
    let list = wrapped.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let names: Vec<_> =
        list["result"]["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["test_simple_text"]);
    assert_eq!(wrapped.ask(&call(2, "test_simple_text", &json!({})))["result"]["isError"], json!(null));
    let unknown = wrapped.ask(&call(3, "test_image_content", &json!({})));
    assert_eq!(unknown["error"]["message"], "Unknown tool: test_image_content");
    assert_eq!(wrapped.end().0, Some(0));
    assert!(world.run(&["log", "verify"]).status.success());
    assert!(world.recorded().contains("tool-not-found"));
}

#[test]
fn explain_says_who_may_do_what_and_starts_nothing() {
    let world = World::new();
    let wrapped = world.wrap(MANIFEST, &["--explain"], &["/bin/sh", "-c", "exit 9"]);
    let first = wrapped.lines.recv_timeout(super::PATIENCE).expect("a line");
    assert_eq!(first, "server shelf");
    let all: Vec<String> = wrapped.lines.iter().collect();
    assert!(
        all.iter().any(|line| line == "tool look") && all.iter().any(|line| line.contains("kernel")),
        "{all:?}"
    );
    assert_eq!(wrapped.end().0, Some(0));
}

#[test]
fn wrapped_servers_are_held_as_a_plain_user() {
    bailiwick_testkit::run_again_as_plain_user(
        "wrap::confined::the_sandbox_holds",
        &[env!("CARGO_BIN_EXE_bailiwick")],
    );
}
