//! Neither can be copied.
use bailiwick_guard::{Permit, ToolContext};

fn copies<T: Clone>() {}

fn main() {
    copies::<Permit>();
    copies::<ToolContext>();
}
