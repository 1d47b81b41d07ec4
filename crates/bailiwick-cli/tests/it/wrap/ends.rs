//! How a wrapped server, its client and the relay end, and what is left.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{World, call};
use crate::run::{eventually, processes};

const MANIFEST: &str =
    "name = 'mortal'\nversion = '1'\n[[tools]]\nname = 'wait'\ncapabilities = ['exec:spawn:sleep']\n";

/// Whether the server's own child runs: the command line of the relay has the word too.
fn sleeps(word: &str) -> bool {
    processes(word).iter().any(|line| line.starts_with("sleep "))
}

#[test]
fn a_dead_server_answers_what_waits_with_its_exit_code() {
    let world = World::new();
    let mut wrapped = world.wrap_script(MANIFEST, &[], "*die*) exit 3;; *) ;;");
    wrapped.send(&call(1, "wait", &json!({})));
    wrapped.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }));
    wrapped.send(&call(3, "wait", &json!({ "a": "die" })));
    let mut ids = Vec::new();
    for _ in 0..3 {
        let answer = wrapped.next();
        let why = answer["error"]["message"].as_str().expect("an error").to_owned();
        assert!(why.contains("the server has ended") && why.contains('3'), "{why}");
        ids.push(answer["id"].as_u64());
    }
    ids.sort_unstable();
    assert_eq!(ids, [Some(1), Some(2), Some(3)]);
    assert_eq!(wrapped.child.wait().expect("it ends").code(), Some(3));
}

#[test]
fn a_server_that_ignores_the_end_of_its_input_is_ended() {
    let world = World::new();
    let word = format!("71{}", std::process::id());
    let script = format!("trap '' TERM; while :; do sleep {word}; done");
    let wrapped = world.wrap(MANIFEST, &[], &["/bin/sh", "-c", &script]);
    assert!(eventually(|| sleeps(&word)));
    let (code, _) = wrapped.end();
    assert_eq!(code, Some(137));
    assert!(eventually(|| processes(&word).is_empty()), "{:?}", processes(&word));
}

#[test]
fn a_server_that_is_killed_says_so_to_all_that_waits() {
    let world = World::new();
    let mut wrapped = world.wrap_script(MANIFEST, &[], "*) kill -KILL $$;;");
    let answer = wrapped.ask(&call(1, "wait", &json!({})));
    assert!(answer["error"]["message"].as_str().expect("an error").contains("signal 9"), "{answer}");
    assert_eq!(wrapped.child.wait().expect("it ends").code(), Some(137));
}

#[test]
fn killing_or_asking_the_relay_leaves_nothing() {
    for (round, signal) in [Signal::KILL, Signal::TERM].into_iter().enumerate() {
        let world = World::new();
        let word = format!("72{round}{}", std::process::id());
        let mut wrapped = world.wrap_script(MANIFEST, &[], &format!("*) sleep {word};;"));
        wrapped.send(&call(1, "wait", &json!({})));
        assert!(eventually(|| sleeps(&word)), "{signal:?}");
        kill_process(Pid::from_child(&wrapped.child), signal).expect("a signal");
        if signal == Signal::TERM {
            assert!(wrapped.next()["error"]["message"].is_string());
        }
        assert!(!wrapped.child.wait().expect("it ends").success());
        assert!(eventually(|| processes(&word).is_empty()), "{signal:?}: {:?}", processes(&word));
    }
}

#[test]
fn a_client_that_does_not_read_stderr_is_answered_and_told_the_end() {
    let world = World::new();
    // Far more than a pipe holds: all of it is said on stderr, which is not read here before the end.
    let noise = "*\"noise\"*) i=0; while [ $i -lt 3000 ]; do echo 'a banner of a server that speaks where only messages may stand'; i=$((i+1)); done
        printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\\n';;";
    let mut wrapped = world.wrap_script(MANIFEST, &[], noise);
    let answer = wrapped.ask(&call(1, "wait", &json!({ "noise": true })));
    assert!(answer["result"].is_object(), "{answer}");
    drop(wrapped.input.take());
    let ended = eventually(|| wrapped.child.try_wait().expect("a child").is_some());
    if !ended {
        drop(wrapped.child.kill());
    }
    assert!(ended, "it waits for who reads stderr");
}

#[test]
fn without_a_usable_manifest_a_server_without_tools_says_what_to_do() {
    let world = World::new();
    let broken =
        world.write("broken.toml", "name = 'x'\nversion = '1'\nserver_capabilities = ['fs:raed:/x']\n");
    let broken = broken.display().to_string();
    for (options, expected) in [
        (vec![], "bailiwick wrap --manifest server.toml -- /bin/false now"),
        (vec!["--manifest", "/no/such.toml"], "/no/such.toml"),
        (vec!["--manifest", &broken], "raed"),
    ] {
        let mut command = world.bailiwick(&["wrap"]);
        command.args(&options).args(["--", "/bin/false", "now"]);
        let mut wrapped = super::Wrapped::spawned(command);
        let answer = wrapped.initialize();
        let instructions = answer["result"]["instructions"].as_str().expect("instructions");
        assert!(instructions.contains(expected), "{instructions}");
        let list = wrapped.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
        assert_eq!(list["result"]["tools"], json!([]));
        let (code, stderr) = wrapped.end();
        assert_eq!(code, Some(125));
        assert!(stderr.contains(expected), "{stderr}");
    }
}

#[test]
fn files_that_are_gone_with_the_sandbox_are_named_at_the_end() {
    for (line, is_told) in [("", true), ("'fs:read,write:~/notes'", false)] {
        let world = World::new();
        std::fs::create_dir(world.path("notes")).expect("a directory");
        let manifest = format!(
            "name = 'writes'\nversion = '1'\nserver_capabilities = [{line}]\n[[tools]]\nname = 'write'\n\
             capabilities = ['exec:spawn:mkdir']\n"
        );
        let writes = "*tools/call*) mkdir -p \"$HOME/notes\"; echo text > \"$HOME/notes/a\"
            printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\\n';;";
        let mut wrapped = world.wrap_script(&manifest, &[], writes);
        assert!(wrapped.ask(&call(1, "write", &json!({})))["result"].is_object());
        let (_, said) = wrapped.end();
        let named = format!("the line fs:read,write:{}", world.path("notes").display());
        let is_named =
            said.contains("1 file is gone with the sandbox's own directories") && said.contains(&named);
        assert_eq!(is_named, is_told, "{said}");
        assert_eq!(world.recorded().contains("gone with the sandbox"), is_told);
        assert_eq!(world.path("notes/a").exists(), !is_told, "what was granted is kept");
    }
}
