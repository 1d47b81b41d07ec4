//! The gate's own way to make them is its own.
use bailiwick_guard::{Permit, ToolContext};

fn main() {
    let _ = ToolContext::mint;
    let _ = Permit::mint;
}
