//! The hash of a call: tool and arguments, whatever order the arguments' keys came in.
//!
//! Canonical JSON (RFC 8785), written directly because every call needs it; a test holds it to the canonicaliser.

use std::cmp::Ordering;

use bailiwick_policy::digest::Digest;
use serde_json::Value;

use crate::verdict::Call;

/// Whole numbers up to here are written alike by everyone.
const MAX_EXACT: u64 = (1 << 53) - 1;

/// The hash of tool and arguments.
pub fn digest(call: &Call) -> Digest {
    let mut text = Vec::with_capacity(256);
    text.extend_from_slice(call.tool.as_bytes());
    text.push(0);
    write_canonical(&mut text, &call.args);
    Digest::sha256(&text)
}

fn write_canonical(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_canonical(out, item);
            }
            out.push(b']');
        }
        Value::Object(fields) if fields.keys().is_sorted_by(|a, b| order(a, b).is_lt()) => {
            write_fields(out, fields.iter());
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by(|(a, _), (b, _)| order(a, b));
            write_fields(out, fields.into_iter());
        }
        Value::Number(number) => match number.as_i64() {
            Some(whole) if whole.unsigned_abs() <= MAX_EXACT => {
                out.extend_from_slice(whole.to_string().as_bytes())
            }
            _ => write_slowly(out, value),
        },
    }
}

fn write_fields<'a>(out: &mut Vec<u8>, fields: impl Iterator<Item = (&'a String, &'a Value)>) {
    out.push(b'{');
    for (index, (key, item)) in fields.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_text(out, key);
        out.push(b':');
        write_canonical(out, item);
    }
    out.push(b'}');
}

/// The order of keys: by UTF-16 units, which for ASCII is the order of bytes.
fn order(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    let plain = text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
    if plain {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        write_slowly(out, &Value::String(text.to_owned()));
    }
}

/// What the canonicaliser says; if it says nothing, the value's own text, which differs from every other's.
fn write_slowly(out: &mut Vec<u8>, value: &Value) {
    let text = serde_json_canonicalizer::to_vec(value).unwrap_or_else(|_| value.to_string().into_bytes());
    out.extend_from_slice(&text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(|number| json!(number)),
            any::<String>().prop_map(Value::from),
            "[\u{0}-\u{7f}\u{e000}\u{10000}]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[a-c\u{e000}\u{10000}]{0,2}", inner), 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_writes_what_the_canonicaliser_writes(value in any_value()) {
            let mut written = Vec::new();
            write_canonical(&mut written, &value);
            prop_assert_eq!(String::from_utf8(written).unwrap(), serde_json_canonicalizer::to_string(&value).unwrap());
        }
    }

    #[test]
    fn the_order_of_keys_does_not_matter_and_the_rest_does() {
        let of = |tool: &str, args: Value| digest(&Call { tool: tool.into(), args });
        assert_eq!(of("t", json!({"a": 1, "b": 2})), of("t", json!({"b": 2, "a": 1})));
        assert_ne!(of("t", json!({"a": 1})), of("t", json!({"a": 2})));
        assert_ne!(of("t", json!({})), of("u", json!({})));
        assert_ne!(of("t", json!("1")), of("t", json!(1)));
    }
}
