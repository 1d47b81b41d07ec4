//! How a session ends.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Talk, call};

#[tokio::test]
async fn the_end_of_the_input_waits_a_moment_and_ends_what_runs() {
    let mut talk = Talk::start();
    talk.send(call(1, "slow", json!({})).to_string().as_bytes()).await;
    talk.runs(1).await;
    let since = Instant::now();
    drop(talk.input.take());
    let running = std::sync::Arc::clone(&talk.running);
    talk.ends().await;
    running.are_cut(1).await;
    assert!(since.elapsed() < Duration::from_secs(60), "the call itself takes longer");
}

#[tokio::test]
async fn what_was_asked_before_the_input_ended_is_answered() {
    let mut talk = Talk::start();
    for id in 0..20 {
        talk.send(call(id, "echo", json!({ "text": "hi" })).to_string().as_bytes()).await;
    }
    drop(talk.input.take());
    for _ in 0..20 {
        assert_eq!(talk.next().await["result"]["isError"], false);
    }
    talk.ends().await;
}

#[tokio::test]
async fn a_last_line_needs_no_newline() {
    use tokio::io::AsyncWriteExt as _;
    let mut talk = Talk::start();
    let line = call(1, "echo", json!({ "text": "hi" })).to_string();
    talk.input.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
    drop(talk.input.take());
    assert_eq!(talk.next().await["id"], 1);
    talk.ends().await;
}

#[tokio::test]
async fn a_closed_output_ends_the_session_and_what_runs() {
    let mut talk = Talk::start();
    talk.send(call(1, "slow", json!({})).to_string().as_bytes()).await;
    talk.runs(1).await;
    let Talk { mut input, output, served, running, .. } = talk;
    drop(output);
    let input = input.as_mut().unwrap();
    tokio::io::AsyncWriteExt::write_all(input, b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n")
        .await
        .unwrap();
    tokio::time::timeout(Duration::from_secs(10), served).await.expect("in time").unwrap().unwrap();
    running.are_cut(1).await;
}

#[tokio::test]
async fn who_started_it_can_stop_it() {
    let mut talk = Talk::start();
    talk.send(call(1, "slow", json!({})).to_string().as_bytes()).await;
    talk.runs(1).await;
    talk.stop.cancel();
    let running = std::sync::Arc::clone(&talk.running);
    talk.ends().await;
    running.are_cut(1).await;
}

#[tokio::test]
async fn requests_with_unread_answers_do_not_pile_up() {
    let mut talk = Talk::start();
    let text = "x".repeat(1000);
    let line = |id: usize| call(id, "echo", json!({ "text": text })).to_string();
    let mut sent = 0;
    // Nothing is read: at some time nothing more is taken.
    while tokio::time::timeout(Duration::from_millis(300), talk.send(line(sent).as_bytes())).await.is_ok() {
        sent += 1;
        assert!(sent < 5000, "everything was taken");
    }
}

#[tokio::test]
async fn a_legacy_shutdown_is_answered_and_exit_ends_the_session() {
    let mut talk = Talk::start();
    talk.send(br#"{"jsonrpc":"2.0","id":1,"method":"shutdown"}"#).await;
    assert_eq!(talk.next().await, json!({ "jsonrpc": "2.0", "id": 1, "result": null }));
    talk.send(call(2, "echo", json!({ "text": "hi" })).to_string().as_bytes()).await;
    let late = talk.next().await;
    assert_eq!((&late["id"], &late["error"]["code"]), (&json!(2), &json!(-32600)), "{late}");
    talk.send(br#"{"jsonrpc":"2.0","method":"exit"}"#).await;
    talk.send(br#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#).await;
    // The input is still open: it is the notification that ends the session.
    talk.ends().await;
}

#[tokio::test]
async fn an_exit_waits_a_moment_for_what_runs_and_ends_it() {
    let mut talk = Talk::start();
    talk.send(call(1, "echo", json!({ "text": "hi" })).to_string().as_bytes()).await;
    talk.send(call(2, "slow", json!({})).to_string().as_bytes()).await;
    talk.runs(1).await;
    talk.send(br#"{"jsonrpc":"2.0","method":"exit"}"#).await;
    let running = std::sync::Arc::clone(&talk.running);
    talk.ends().await;
    running.are_cut(1).await;
}

#[tokio::test]
async fn an_exit_with_an_id_is_no_notification() {
    let mut talk = Talk::start();
    talk.send(br#"{"jsonrpc":"2.0","id":1,"method":"exit"}"#).await;
    assert_eq!(talk.next().await["error"]["code"], -32601);
    talk.send(br#"{"jsonrpc":"2.0","method":"shutdown"}"#).await;
    talk.send(br#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
    assert_eq!(talk.next().await["result"], json!({}));
}
