//! Consent cannot be made up.
use bailiwick_guard::{Approval, Call};

fn main() {
    let call = Call { tool: "x".into(), args: serde_json::Value::Null };
    let _ = Approval::for_call(&call);
}
