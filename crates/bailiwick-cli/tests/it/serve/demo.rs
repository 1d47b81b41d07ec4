//! The demonstration that other servers of this kind show, word for word.

use std::process::Output;

use serde_json::{Value, json};

use super::{command, home};

const CAVEATS: &str = r#"{"fs_read":"all","fs_write":"all","exec":{"only":["echo"]},"net":"all","max_calls":"unlimited","valid_for_generation":"all"}"#;

const MESSAGES: [&str; 3] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"shell","arguments":{"program":"echo","args":["hi"]}}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"shell","arguments":{"program":"rm","args":["-rf","/"]}}}"#,
];

fn piped() -> Output {
    let home = home();
    let mut command = command(&home, &[]);
    let mut child = command.env("AGENT_BRIDLE_CAVEATS", CAVEATS).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, (MESSAGES.join("\n") + "\n").as_bytes()).unwrap();
    drop(input);
    child.wait_with_output().unwrap()
}

#[test]
fn echo_runs_and_rm_is_denied() {
    let output = piped();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut answers: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(answers[0]["id"], 1, "the opening is answered first");
    answers.sort_by_key(|answer| answer["id"].as_i64());
    let [opened, echoed, denied] = <[Value; 3]>::try_from(answers).expect("three answers");
    assert_eq!(opened["result"]["serverInfo"]["name"], "bailiwick");
    assert_eq!(echoed["result"]["content"], json!([{ "type": "text", "text": "hi\n" }]));
    assert_eq!(echoed["result"]["isError"], false);
    assert_eq!(echoed["result"]["structuredContent"]["stdout"], "hi\n");
    assert_eq!(echoed["result"]["structuredContent"]["exit_code"], 0);
    assert_eq!(denied["result"]["isError"], true);
    assert_eq!(denied["result"]["content"].as_array().unwrap().len(), 1, "one text for one denial");
    let text = denied["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("denied: exec of \"rm\" is not within the granted authority\n"), "{text}");
    let decision = json!({ "decision": "deny", "code": "exec-not-granted", "grant": "exec:spawn:rm" });
    assert_eq!(denied["result"]["_meta"]["dev.bailiwick/decision"], decision);
}
