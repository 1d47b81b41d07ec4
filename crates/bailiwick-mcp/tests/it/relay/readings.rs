//! What a server says, written in every way that some client could take for more than the relay read: none of it reaches the client.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::{Relayed, run};

const MANIFEST: &str = "name = 'notes'\nversion = '1'\n[[tools]]\nname = 'read'\n";

/// The mark of what must never be heard.
const EVIL: &str = "evil";

/// Keys of an envelope, and what a server could put there a second time.
static SECOND: LazyLock<Vec<(&str, Value)>> = LazyLock::new(|| {
    vec![
        ("jsonrpc", json!("evil")),
        ("id", json!("evil")),
        ("method", json!("sampling/createMessage-evil")),
        ("params", json!({ "messages": EVIL })),
        ("result", json!({ "tools": [{ "name": EVIL }], "instructions": EVIL })),
        ("error", json!({ "code": 1, "message": EVIL })),
    ]
});

/// Ways to write a key so that some parser takes it for the key.
fn spellings(key: &str) -> Vec<String> {
    let mut letters = key.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase).collect::<String>();
    let rest = letters.as_str();
    let wide = key.chars().map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap_or(c)).collect::<String>();
    let escaped = key.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect::<String>();
    let long_s = key.replace('s', "\u{17f}");
    let mut all = vec![
        key.to_owned(),
        escaped,
        format!("{first}{rest}"),
        key.to_uppercase(),
        wide,
        format!("{key}\\u0000"),
        format!("{key}\u{200b}"),
    ];
    all.extend((long_s != key).then_some(long_s));
    all
}

/// The object with one more field before or behind its own; keys stand as they are written.
fn with_field(object: &Map<String, Value>, key: &str, value: &Value, is_first: bool) -> String {
    let own: Vec<String> = object.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    let (own, more) = (own.join(","), format!("\"{key}\":{value}"));
    if is_first { format!("{{{more},{own}}}") } else { format!("{{{own},{more}}}") }
}

/// Sends the server's line, and returns what the client hears before the answer to a later request.
async fn heard_of(relayed: &mut Relayed, line: &str) -> Vec<String> {
    relayed.serve(line).await;
    relayed.send(r#"{"jsonrpc":"2.0","id":"fence","method":"ping"}"#).await;
    while !relayed.arrived().await.contains("\"fence\"") {}
    relayed.serve(r#"{"jsonrpc":"2.0","id":"fence","result":{}}"#).await;
    let mut heard = Vec::new();
    loop {
        let next = relayed.heard().await;
        if next.contains("\"fence\"") {
            return heard;
        }
        heard.push(next);
    }
}

/// A relay whose client waits for the answer to a request of this method.
async fn waiting_for(method: &str) -> Relayed {
    let mut relayed = Relayed::start(MANIFEST);
    let params = if method == "tools/call" { r#"{"name":"read","arguments":{}}"# } else { "{}" };
    relayed.send(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)).await;
    relayed.arrived().await;
    relayed
}

async fn assert_unheard(method: &str, line: &str) {
    let mut relayed = waiting_for(method).await;
    for heard in heard_of(&mut relayed, line).await {
        assert!(!heard.contains(EVIL), "{method}: {line}\nbecame {heard}");
    }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

#[test]
fn no_key_of_an_envelope_is_given_a_second_time_in_any_spelling() {
    run(async {
        let bases = [
            ("tools/list", json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [] } })),
            ("initialize", json!({ "jsonrpc": "2.0", "id": 1, "result": { "capabilities": {} } })),
            ("ping", json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": 1, "message": "no" } })),
            ("ping", json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" })),
            ("ping", json!({ "jsonrpc": "2.0", "id": 9, "method": "roots/list", "params": {} })),
            ("ping", json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": {} })),
        ];
        for (method, base) in bases {
            let base = object(base);
            for (key, value) in SECOND.iter() {
                // A first `params` or `error` is what the message says; a second one is another reading.
                let is_data = ["params", "jsonrpc"].contains(key) && !base.contains_key(*key);
                for spelling in spellings(key).into_iter().skip(if is_data { 2 } else { 0 }) {
                    for is_first in [true, false] {
                        assert_unheard(method, &with_field(&base, &spelling, value, is_first)).await;
                    }
                }
            }
        }
    });
}

#[test]
fn no_judged_part_of_a_result_is_given_a_second_time_in_any_spelling() {
    run(async {
        let input = json!({ "x": { "method": "sampling/createMessage", "params": { "messages": EVIL } } });
        let parts = [
            ("tools/list", json!({ "tools": [] }), "tools", json!([{ "name": EVIL }])),
            ("tools/list", json!({ "tools": [] }), "inputRequests", input.clone()),
            ("tools/call", json!({ "content": [] }), "inputRequests", input.clone()),
            ("ping", json!({}), "inputRequests", input),
        ];
        for (method, result, key, value) in parts {
            for spelling in spellings(key) {
                for is_first in [true, false] {
                    let result = with_field(&object(result.clone()), &spelling, &value, is_first);
                    let result = result.replace(",}", "}").replace("{,", "{");
                    assert_unheard(method, &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)).await;
                }
            }
        }
    });
}

/// The value with one of its objects written as the list of its values.
fn as_lists(value: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    if let Value::Object(fields) = value {
        let values = || fields.values().cloned().collect::<Vec<_>>();
        all.push(Value::Array(values()));
        // As a derived reader would take it: id, method, result.
        let order = ["id", "method", "params", "result", "error"];
        let named = order.map(|key| fields.get(key).cloned().unwrap_or_default()).to_vec();
        all.push(Value::Array(named.clone()));
        all.push(Value::Array(vec![named[0].clone(), named[1].clone(), named[3].clone()]));
        for (key, inner) in fields {
            for inner in as_lists(inner) {
                let mut changed = fields.clone();
                changed.insert(key.clone(), inner);
                all.push(Value::Object(changed));
            }
        }
    }
    all
}

#[test]
fn a_list_is_no_object_wherever_it_stands() {
    run(async {
        let list = json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [{ "name": EVIL }] } });
        let input = json!({ "jsonrpc": "2.0", "id": 1, "result": { "inputRequests": {
            "x": { "method": "elicitation/create", "params": { "message": EVIL } } } } });
        let asks =
            json!({ "jsonrpc": "2.0", "id": 5, "method": "sampling/createMessage", "params": { "a": EVIL } });
        for (method, base) in [("tools/list", list), ("tools/call", input), ("ping", asks)] {
            for line in as_lists(&base) {
                assert_unheard(method, &line.to_string()).await;
            }
        }
    });
}

#[test]
fn a_carriage_return_hides_no_message() {
    run(async {
        let hidden = r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}"#;
        let line =
            format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"a\":\r{hidden}\r,\"b\":1}}");
        let mut relayed = waiting_for("ping").await;
        let heard = heard_of(&mut relayed, &line).await;
        assert_eq!(heard.len(), 1, "{heard:?}");
        assert!(!heard[0].contains('\r'), "{heard:?}");
        assert_eq!(heard[0], line.replace('\r', " "));
    });
}

#[test]
fn what_says_one_thing_still_passes() {
    run(async {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"Tools":1,"x":[1]},"error":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"},"result":null}"#,
            r#"{"vendor":{"Method":"x"},"jsonrpc":"2.0","id":1,"result":{}}"#,
        ] {
            let mut relayed = waiting_for("ping").await;
            assert_eq!(heard_of(&mut relayed, line).await, [line]);
        }
    });
}
