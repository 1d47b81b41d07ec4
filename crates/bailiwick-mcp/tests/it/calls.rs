//! Calls and what comes of them.

use serde_json::{Value, json};

use crate::support::{Talk, call};

#[tokio::test]
async fn a_call_answers_with_structure_and_text() {
    let mut talk = Talk::start();
    let answer = talk.ask(call(1, "echo", json!({ "text": "hi" }))).await;
    let result = json!({
        "content": [{ "type": "text", "text": "hi" }],
        "structuredContent": { "text": "hi" },
        "isError": false,
    });
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 1, "result": result }));
}

#[tokio::test]
async fn a_denial_says_what_is_missing() {
    let mut talk = Talk::start();
    let answer = talk.ask(call(1, "echo", json!({ "text": "rm" }))).await;
    let result = json!({
        "content": [
            { "type": "text", "text": "denied: exec of \"rm\" is not within the granted authority\n\
                granted: exec:spawn:echo\n\
                a person can allow it by granting `exec:spawn:rm`; going around it will not work" },
        ],
        "isError": true,
        "_meta": { "dev.bailiwick/decision": {
            "decision": "deny", "code": "exec-not-granted", "grant": "exec:spawn:rm",
        } },
    });
    assert_eq!(answer["result"], result);
}

#[tokio::test]
async fn where_nothing_is_granted_a_denial_and_the_opening_say_how_to_grant() {
    let mut talk = Talk::with_guidance(Some("ask a person"));
    let opened = talk.ask(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} })).await;
    let instructions = opened["result"]["instructions"].as_str().unwrap();
    assert!(
        instructions.contains("Nothing is granted.") && instructions.ends_with("ask a person"),
        "{instructions}"
    );
    let answer = talk.ask(call(1, "echo", json!({ "text": "rm" }))).await;
    let denied = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(denied.contains("\ngranted: nothing\n") && denied.ends_with("ask a person"), "{denied}");
}

#[tokio::test]
async fn a_tool_that_fails_tells_the_model_and_an_unknown_one_the_client() {
    let mut talk = Talk::start();
    let failed = talk.ask(call(1, "echo", json!({ "text": 5 }))).await;
    assert_eq!(failed["result"]["isError"], true);
    assert_eq!(failed["result"]["content"][0]["text"], "echo: `text` is a string");
    let unknown = talk.ask(call(2, "no such\ntool", json!({}))).await;
    assert_eq!(unknown["error"], json!({ "code": -32602, "message": "Unknown tool: no such\\ntool" }));
}

#[tokio::test]
async fn a_call_that_is_a_notification_never_runs() {
    let mut talk = Talk::start();
    let mut note = call(1, "slow", json!({}));
    note.as_object_mut().unwrap().remove("id");
    talk.send(note.to_string().as_bytes()).await;
    talk.ping().await;
    talk.ask(call(2, "echo", json!({ "text": "hi" }))).await;
    talk.runs(0).await;
    talk.was_cut(0).await;
}

#[tokio::test]
async fn a_slow_call_never_blocks_a_ping() {
    let mut talk = Talk::start();
    talk.send(call(1, "slow", json!({})).to_string().as_bytes()).await;
    talk.runs(1).await;
    talk.ping().await;
    let answer = talk.ask(call(2, "echo", json!({ "text": "hi" }))).await;
    assert_eq!(answer["result"]["isError"], false);
}

#[tokio::test]
async fn a_cancelled_call_is_cut_off_recorded_and_never_answered() {
    let mut talk = Talk::start();
    talk.send(call("x", "slow", json!({})).to_string().as_bytes()).await;
    talk.runs(1).await;
    let note =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "x" } });
    talk.send(note.to_string().as_bytes()).await;
    talk.was_cut(1).await;
    let (_, others) = talk.ask_hearing(&json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" })).await;
    assert_eq!(others, Vec::<Value>::new());
    let filter = bailiwick_journal::Filter::default();
    let recorded = || {
        let records = bailiwick_journal::records(talk.journal.path(), filter.clone()).unwrap();
        records.filter_map(Result::ok).any(|record| format!("{record:?}").contains("tool-cancelled"))
    };
    for _ in 0..500 {
        if recorded() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the journal does not say that the call was cut off");
}

#[tokio::test]
async fn progress_is_told_to_who_asks_and_only_grows() {
    let mut talk = Talk::start();
    let mut asked = call(1, "slow", json!({}));
    asked["params"]["_meta"] = json!({ "progressToken": "p" });
    talk.send(asked.to_string().as_bytes()).await;
    let started = std::time::Instant::now();
    let mut last = 0.0;
    for _ in 0..4 {
        let note = talk.next().await;
        assert_eq!(note["method"], "notifications/progress");
        assert_eq!(note["params"]["progressToken"], "p");
        let progress = note["params"]["progress"].as_f64().unwrap();
        assert!(progress > last, "{progress} after {last}");
        assert!(note["params"]["message"].as_str().unwrap().starts_with("tick\n"));
        last = progress;
    }
    // Ten a second at most, though the tool talks a thousand times a second.
    assert!(started.elapsed() >= std::time::Duration::from_millis(290), "{:?}", started.elapsed());
}

#[tokio::test]
async fn who_does_not_ask_for_progress_hears_none() {
    let mut talk = Talk::start();
    talk.send(call(1, "slow", json!({})).to_string().as_bytes()).await;
    talk.runs(1).await;
    tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    let (_, others) = talk.ask_hearing(&json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" })).await;
    assert_eq!(others, Vec::<Value>::new());
}

#[tokio::test]
async fn one_call_too_many_is_told_to_come_back() {
    let mut talk = Talk::start();
    for id in 0..bailiwick_mcp::MAX_CALLS {
        talk.send(call(id, "slow", json!({})).to_string().as_bytes()).await;
    }
    talk.runs(bailiwick_mcp::MAX_CALLS).await;
    let answer = talk.ask(call("more", "echo", json!({ "text": "hi" }))).await;
    assert_eq!(answer["error"]["code"], -32000);
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("busy: "), "{answer}");
    talk.ping().await;
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 0 } });
    talk.send(note.to_string().as_bytes()).await;
    talk.was_cut(1).await;
    let answer = talk.ask(call("again", "echo", json!({ "text": "hi" }))).await;
    assert_eq!(answer["result"]["isError"], false);
}

#[tokio::test]
async fn an_id_that_waits_for_its_answer_is_not_taken_twice() {
    let mut talk = Talk::start();
    talk.send(call(1, "slow", json!({})).to_string().as_bytes()).await;
    talk.runs(1).await;
    let answer = talk.ask(call(1, "echo", json!({ "text": "hi" }))).await;
    assert_eq!(answer["error"]["code"], -32600);
    talk.runs(1).await;
}

#[tokio::test]
async fn who_wants_to_know_of_denials_is_told() {
    let mut talk = Talk::start();
    let rm = |id: u8| call(id, "echo", json!({ "text": "rm" }));
    assert_eq!(talk.ask_hearing(&rm(1)).await.1, Vec::<Value>::new());
    let set = |level: &str| json!({ "jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": { "level": level } });
    assert_eq!(talk.ask(set("info")).await["result"], json!({}));
    let (_, heard) = talk.ask_hearing(&rm(3)).await;
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0]["method"], "notifications/message");
    assert_eq!(heard[0]["params"]["level"], "warning");
    assert_eq!(heard[0]["params"]["data"]["code"], "exec-not-granted");
    talk.ask(set("error")).await;
    assert_eq!(talk.ask_hearing(&rm(4)).await.1, Vec::<Value>::new());
    assert_eq!(talk.ask(set("loud")).await["error"]["code"], -32602);
}
