//! Neither has a context.
use bailiwick_guard::ToolContext;

fn main() {
    let _ = ToolContext { seq: 1 };
}
