//! `wrap --restart on-failure`: a server that has failed is started again for the same client, which opened it once.

use serde_json::{Value, json};

use super::{World, Wrapped, call, text};
use crate::run::{eventually, processes};

const STATELESS: &str =
    "name = 'again'\nversion = '1'\n[package]\nidentity = '/usr/bin/dash'\nstateless = true\n";

const TOOLS: &str = "[[tools]]\nname = 'say'\n[[tools]]\nname = 'die'\n[[tools]]\nname = 'leave'\n[[tools]]\nname = 'once'\n\
                     constraints = { max_invocations = 1 }\n[[tools]]\nname = 'sleep'\ncapabilities = ['exec:spawn:sleep', 'net:connect:a.test']\n";

/// Says whether it was opened, and how many calls its process has had.
const SCRIPT: &str = r#"
    *'"initialize"'*) id=${line#*\"id\":}; id=${id%%,*}; opened=opened
        printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id";;
    *'notifications/initialized'*) opened="$opened twice";;
    *'"die"'*) exit 3;;
    *'"leave"'*) exit 0;;
    *'"sleep"'*) sleep WORD;;
    *'"tools/call"'*) id=${line#*\"id\":}; id=${id%%,*}; count=$((count + 1))
        printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s %s"}]}}\n' "$id" "$opened" "$count";;
"#;

fn start(world: &World, word: &str, options: &[&str]) -> Wrapped {
    world.wrap_script(&format!("{STATELESS}{TOOLS}"), options, &SCRIPT.replace("WORD", word))
}

fn ask(wrapped: &mut Wrapped, id: u64, tool: &str) -> Value {
    wrapped.ask(&call(id, tool, &json!({})))
}

#[test]
fn a_server_that_fails_is_started_again_and_opened_as_before() {
    let world = World::new();
    let mut wrapped = start(&world, "1", &["--restart", "on-failure"]);
    wrapped.initialize();
    assert_eq!(text(&ask(&mut wrapped, 1, "say")), "opened twice 1");
    assert_eq!(text(&ask(&mut wrapped, 2, "once")), "opened twice 2");
    let dead = ask(&mut wrapped, 3, "die");
    let why = dead["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("the server has ended") && why.contains('3'), "{dead}");
    // The first thing that is heard is the answer: the client is not opened again.
    assert_eq!(text(&ask(&mut wrapped, 4, "say")), "opened twice 1");
    // What was used up stays so: the budget is of the conversation.
    let refused = ask(&mut wrapped, 5, "once");
    assert_eq!(refused["result"]["_meta"]["dev.bailiwick/decision"]["code"], "tool-too-often", "{refused}");
    let (code, errors) = wrapped.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("it is started again in 250 ms"), "{errors}");
    assert_eq!(world.recorded().matches("sandbox-started").count(), 2);
    assert!(world.run(&["log", "verify"]).status.success());
}

#[test]
fn without_the_option_it_stays_ended_and_one_that_ends_well_does_so_with_it() {
    for (options, tool, code) in [(&[][..], "die", 3), (&["--restart", "on-failure"][..], "leave", 0)] {
        let world = World::new();
        let mut wrapped = start(&world, "1", options);
        wrapped.initialize();
        assert!(ask(&mut wrapped, 1, tool)["error"]["message"].is_string());
        assert_eq!(wrapped.child.wait().expect("it ends").code(), Some(code), "{tool}");
        assert_eq!(world.recorded().matches("sandbox-started").count(), 1);
    }
}

#[test]
fn a_server_that_fails_again_and_again_is_given_up() {
    let world = World::new();
    let mut wrapped = world.wrap(
        &format!("{STATELESS}{TOOLS}"),
        &["--restart", "on-failure"],
        &["/bin/sh", "-c", "exit 4"],
    );
    let answer = ask(&mut wrapped, 1, "say");
    assert!(answer["error"]["message"].as_str().unwrap_or_default().contains('4'), "{answer}");
    assert_eq!(wrapped.child.wait().expect("it ends").code(), Some(4));
    assert_eq!(world.recorded().matches("sandbox-started").count(), 5);
}

#[test]
fn a_server_that_may_keep_something_is_not_started() {
    for (manifest, options) in [
        (format!("name = 'kept'\nversion = '1'\n{TOOLS}"), &["--restart", "on-failure"][..]),
        (format!("{STATELESS}{TOOLS}"), &["--restart", "on-failure", "--isolate", "tool"][..]),
    ] {
        let world = World::new();
        let mut wrapped = world.wrap_script(&manifest, options, SCRIPT);
        let why = wrapped.initialize()["result"]["instructions"].as_str().unwrap_or_default().to_owned();
        assert!(why.contains("`--restart on-failure`"), "{why}");
        assert_eq!(wrapped.end().0, Some(125));
    }
}

#[test]
fn no_process_outlives_a_client_whose_server_was_started_again() {
    let world = World::new();
    let word = format!("79{}", std::process::id());
    let mut wrapped = start(&world, &word, &["--restart", "on-failure"]);
    wrapped.initialize();
    assert!(ask(&mut wrapped, 1, "die")["error"]["message"].is_string());
    wrapped.send(&call(2, "sleep", &json!({})));
    assert!(eventually(|| processes(&word).iter().any(|line| line.starts_with("sleep "))));
    drop(wrapped.end());
    assert!(eventually(|| processes(&word).is_empty()), "{:?}", processes(&word));
}
