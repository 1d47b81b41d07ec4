//! Clients that are broken or mean.

use std::io::Write as _;

use serde_json::{Value, json};

use super::{Served, memory, shell};

const CASES: &str = include_str!("../../../../bailiwick-mcp/tests/it/malformed.tsv");

/// The plain cases of the table; those with raw bytes are tried in process.
#[test]
fn malformed_lines_are_answered_over_pipes() {
    let mut served = Served::start(&["--cap", "exec:spawn:echo"]);
    let rows = CASES.lines().filter(|row| !row.starts_with('#') && !row.contains("{{"));
    let mut count = 0;
    for row in rows.filter(|row| !row.is_empty()) {
        let [code, id, input] = row.splitn(3, '\t').collect::<Vec<_>>().try_into().expect(row);
        served.send(input);
        if let Ok(code) = code.parse::<i64>() {
            let answer = served.next();
            let id: Value = serde_json::from_str(id).unwrap();
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{row}: {answer}");
        }
        served.ping();
        count += 1;
    }
    assert!(count >= 60, "{count}");
    assert_eq!(served.end(), (0, String::new()));
}

#[test]
fn frames_that_are_too_long_do_not_fill_the_memory() {
    let mut served = Served::start(&["--cap", "exec:spawn:echo"]);
    served.ping();
    let frame = vec![b'x'; 17 << 20];
    for _ in 0..100 {
        served.send(&frame);
        let answer = served.next();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &Value::Null));
    }
    served.ping();
    let peak = memory(served.child.id(), "VmHWM");
    assert!(peak < 96 << 10, "{peak} KiB at its peak");
    assert_eq!(served.end().0, 0);
}

#[test]
fn many_small_values_do_not_fill_the_memory() {
    let mut served = Served::start(&["--cap", "exec:spawn:echo"]);
    let list = format!("[{}0]", "0,".repeat(7 << 20));
    let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{list}}}}}"#);
    for _ in 0..10 {
        served.send(&message);
        assert_eq!(served.next()["error"]["code"], -32600);
    }
    let peak = memory(served.child.id(), "VmHWM");
    assert!(peak < 128 << 10, "{peak} KiB at its peak");
    assert_eq!(served.end().0, 0);
}

#[test]
fn a_reader_that_goes_away_ends_it_cleanly() {
    let mut served = Served::start(&["--cap", "exec:spawn:sleep"]);
    served.send(shell(1, json!({ "program": "sleep", "args": ["600"] })).to_string());
    served.ping();
    // The thread that reads the output ends with its receiver, and with it the pipe.
    let (_, closed) = std::sync::mpsc::channel();
    drop(std::mem::replace(&mut served.lines, closed));
    for _ in 0..50 {
        let input = served.input.as_mut().unwrap();
        if input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n").is_err() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let output = served.child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
