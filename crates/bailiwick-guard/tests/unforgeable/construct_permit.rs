//! A permit has no public fields and no constructor.
use bailiwick_guard::{Call, Grant, Permit, ToolContext};

fn forge(call: Call, context: ToolContext, grant: Grant) -> Permit {
    Permit { call, context, grant, index: 0 }
}

fn main() {}
