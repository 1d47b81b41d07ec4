//! How calls end: in time, too late, cut off; and what is heard before.

use std::time::{Duration, Instant};

use bailiwick_guard::Stream;
use serde_json::json;

use super::desk::{Desk, processes, runtime};

fn mark(name: &str) -> String {
    format!("300.{}{}", std::process::id(), name.len())
}

#[test]
fn a_script_has_one_deadline_and_keeps_what_came_before() {
    let mark = mark("deadline");
    let desk = Desk::new(&["echo", "sleep", "cat"]);
    let script = format!("echo first; echo err >&2; sleep {mark} | cat; echo never");
    let started = Instant::now();
    let out = desk.call(json!({ "cmd": script, "timeout_ms": 900 })).unwrap();
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!((&out["timed_out"], &out["exit_code"]), (&json!(true), &json!(null)));
    assert_eq!((&out["stdout"], &out["stderr"]), (&json!("first\n"), &json!("err\n")));
    assert_eq!(processes(&mark), 0);
}

#[test]
fn nothing_outlives_its_program() {
    let mark = mark("survivors");
    let desk = Desk::new(&["sh", "sleep", "setsid", "nohup"]);
    for script in [
        format!("setsid sleep {mark} & sleep 0.2"),
        format!("nohup setsid sh -c 'sleep {mark} & sleep {mark}' > /dev/null 2>&1 & sleep 0.2"),
    ] {
        for form in [
            json!({ "program": "sh", "args": ["-c", script] }),
            json!({ "cmd": format!("sh -c \"{script}\"") }),
        ] {
            let out = desk.call(form).unwrap();
            assert_eq!(out["exit_code"], 0, "{out}");
            assert_eq!(processes(&mark), 0, "{script}");
        }
    }
}

#[test]
fn a_call_that_is_dropped_takes_its_programs_along() {
    let mark = mark("dropped");
    let desk = Desk::new(&["sh", "sleep", "setsid", "cat"]);
    let registry = desk.registry();
    let grant = registry.mint_grant(&desk.caveats).unwrap();
    let script = format!("sh -c 'setsid sleep {mark} & sleep {mark}' | cat");
    runtime().block_on(async {
        let call = registry.dispatch("shell", json!({ "cmd": script }), &grant);
        let mut call = Box::pin(call);
        let begun = Instant::now();
        while processes(&mark) < 2 {
            assert!(begun.elapsed() < Duration::from_secs(30), "it starts");
            assert!(tokio::time::timeout(Duration::from_millis(50), &mut call).await.is_err(), "it runs");
        }
        drop(call);
        let dropped = Instant::now();
        while processes(&mark) > 0 {
            assert!(dropped.elapsed() < Duration::from_secs(30), "it ends");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

#[test]
fn output_is_heard_in_order_while_it_comes() {
    let desk = Desk::new(&["sh", "sleep", "printf", "echo"]);
    // Each half of a character is written alone.
    let script = "printf 'one \\342'; sleep 0.3; printf '\\202\\254\\n'; echo oops >&2; sleep 0.3; echo two";
    let (out, news) = desk.hears(json!({ "program": "sh", "args": ["-c", script] }));
    assert_eq!((&out["stdout"], &out["stderr"]), (&json!("one €\ntwo\n"), &json!("oops\n")));
    let said: Vec<_> = news.iter().map(|news| (news.stream, news.text.as_str())).collect();
    assert_eq!(
        said,
        [
            (Stream::Output, "one "),
            (Stream::Output, "€\n"),
            (Stream::Errors, "oops\n"),
            (Stream::Output, "two\n"),
        ]
    );
}

#[test]
fn caps_hold_for_the_whole_script() {
    let desk = Desk::new(&["head", "tr", "sh"]);
    let half = "head -c 700000 /dev/zero";
    let (out, news) = desk.hears(json!({ "cmd": format!("{half}; {half}; sh -c '{half} >&2'") }));
    assert_eq!(out["stdout"].as_str().unwrap().len(), 1024 * 1024);
    assert_eq!(out["stderr"].as_str().unwrap().len(), 700_000);
    assert_eq!((&out["stdout_truncated"], &out["stderr_truncated"]), (&json!(true), &json!(false)));
    let heard: usize = news.iter().map(|news| news.text.len()).sum();
    assert_eq!(heard, 1024 * 1024 + 700_000, "what is not kept is not told");
    let text = "sh -c \"head -c 1048575 /dev/zero; printf '\\\\342\\\\202\\\\254'\"";
    let out = Desk::new(&["head", "sh"]).script(text).unwrap();
    assert_eq!(out["stdout"].as_str().unwrap().len(), 1024 * 1024 - 1, "no character is cut");
}

#[test]
fn input_is_shared_by_the_programs_of_a_script() {
    let desk = Desk::new(&["cat", "wc", "head", "echo"]);
    let big = "x".repeat(300_000);
    let out = desk.call(json!({ "cmd": "cat | wc -c; cat; echo end", "stdin": big })).unwrap();
    assert_eq!(out["stdout"], "300000\nend\n");
    let out = desk.call(json!({ "cmd": "echo unread", "stdin": big })).unwrap();
    assert_eq!(out["stdout"], "unread\n");
    let out = desk.call(json!({ "program": "head", "args": ["-c", "3"], "stdin": big })).unwrap();
    assert_eq!(out["stdout"], "xxx");
}
