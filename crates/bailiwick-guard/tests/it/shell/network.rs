//! What the network refused is in the result, and nothing else is.

use bailiwick_manifest::caveats::Scope;
use serde_json::json;

use super::desk::Desk;

#[test]
fn a_refused_name_is_in_the_result_with_its_grant() {
    let mut desk = Desk::new(&["getent", "echo"]);
    desk.caveats.net = Scope::only(["granted.test".to_owned()]);
    for form in [
        json!({ "program": "getent", "args": ["ahosts", "other.test"] }),
        json!({ "cmd": "getent ahosts other.test | echo; getent ahosts other.test" }),
    ] {
        let out = desk.call(form).unwrap();
        assert_ne!(out["exit_code"], 0, "{out}");
        let denials = out["denials"].as_array().unwrap();
        assert_eq!(denials.len(), 1, "each once: {out}");
        assert!(denials[0]["message"].as_str().unwrap().starts_with("other.test"), "{out}");
        assert_eq!(denials[0]["grant"], "net:connect:other.test", "{out}");
    }
    let out = desk.call(json!({ "program": "getent", "args": ["ahosts", "granted.test"] })).unwrap();
    assert_eq!((&out["exit_code"], &out["denials"]), (&json!(0), &json!([])), "{out}");
}
