//! JSON that every parser reads alike: what the gate judges is what the server understands.
//!
//! Fails closed when: a key is given twice; a key only looks like one that is judged (another case, a compatibility
//! form, invisible characters, NUL); the text is no UTF-8 or has a lone surrogate; a number is out of range; it nests
//! deeper than 128; it holds a bare carriage return, which some servers take for the end of a line.

use bailiwick_guard::arguments::{names_a_host, names_a_path};
use bailiwick_pins::fold::folded;
use serde::de::Error as _;
use serde_json::Value;

use crate::json::{self, StrictValue};

/// Keys of an envelope that are judged.
const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// Keys of parameters that are judged.
const PARAMS: [&str; 10] = [
    "name",
    "arguments",
    "uri",
    "ref",
    "argument",
    "_meta",
    "requestId",
    "notifications",
    "requestState",
    "inputResponses",
];

/// Reads one line.
pub(super) fn read(line: &[u8]) -> serde_json::Result<StrictValue> {
    let text = line.strip_suffix(b"\r").unwrap_or(line);
    if text.contains(&b'\r') {
        return Err(serde_json::Error::custom(
            "it has a carriage return, which some programs take for the end of a line",
        ));
    }
    json::read_with(text, |key, depth| imitates(key, depth).then_some("a key passes for another one"))
}

/// Whether a key of arguments passes for one that the manifest marks without being it.
pub(super) fn imitates_a_mark(args: &Value, marks: &[&str]) -> bool {
    match args {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            let imitates =
                |mark: &&str| *mark != key && !marks.contains(&key.as_str()) && folded(mark) == folded(key);
            marks.iter().any(imitates) || imitates_a_mark(value, marks)
        }),
        Value::Array(items) => items.iter().any(|item| imitates_a_mark(item, marks)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether a key at this depth only looks like one that is judged.
fn imitates(key: &str, depth: usize) -> bool {
    let plain = folded(key);
    match depth {
        0 => ENVELOPE.contains(&&*plain) && !ENVELOPE.contains(&key),
        1 => PARAMS.iter().any(|judged| folded(judged) == plain) && !PARAMS.contains(&key),
        _ => plain != key && is_telling(&plain) && !is_telling(key),
    }
}

/// Whether arguments of this name are judged by their name.
fn is_telling(key: &str) -> bool {
    names_a_path(key) || names_a_host(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_read(text: &str) -> bool {
        read(text.as_bytes()).is_ok()
    }

    #[test]
    fn a_key_that_passes_for_a_judged_one_is_refused_where_that_one_is_judged() {
        assert!(is_read(
            r#"{"method":"m","params":{"name":"n","arguments":{"Name":1,"Method":2,"Path":"/"}}}"#
        ));
        for text in [
            r#"{"Method":"m"}"#,
            r#"{"method\u0000":"m"}"#,
            r#"{"\uff4dethod":"m"}"#,
            r#"{"me\u200bthod":"m"}"#,
            r#"{"params":{"Name":"n"}}"#,
            r#"{"params":{"argument\u017f":{}}}"#,
            r#"{"params":{"arguments":{"pa\u00adth":"/"}}}"#,
            r#"{"params":{"arguments":{"a":[{"f\u0131le\u200b":1,"fi\u200ble":1}]}}}"#,
        ] {
            assert!(!is_read(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_strict_json_is_refused() {
        for text in [
            &b"{\"a\":1,\"a\":2}"[..],
            b"{\"a\":{\"b\":1,\"\\u0062\":2}}",
            b"\"\\ud800\"",
            b"\"\xff\"",
            b"{} {}",
            b"\xef\xbb\xbf{}",
            b"{\"a\":\r1}",
            b"[NaN]",
            b"{'a':1}",
            b"[1,]",
            b"// x\n{}",
        ] {
            assert!(read(text).is_err(), "{}", String::from_utf8_lossy(text));
        }
        assert!(read(b"{\"a\":1}\r").is_ok());
        assert!(is_read(&format!("{}{}", "[".repeat(127), "]".repeat(127))));
        assert!(!is_read(&format!("{}{}", "[".repeat(129), "]".repeat(129))));
    }

    #[test]
    fn a_marked_argument_is_not_imitated() {
        let args = |text: &str| read(text.as_bytes()).unwrap().value;
        assert!(!imitates_a_mark(&args(r#"{"target":1,"a":[{"target":2}],"other":1}"#), &["target"]));
        assert!(imitates_a_mark(&args(r#"{"target":1,"a":[{"Target":2}]}"#), &["target"]));
        assert!(!imitates_a_mark(&args(r#"{"target":1,"Target":2}"#), &["target", "Target"]));
    }
}
