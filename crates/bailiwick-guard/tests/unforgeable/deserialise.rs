//! Neither comes from text.
use bailiwick_guard::{Permit, ToolContext};

fn from_text<T: for<'a> serde::Deserialize<'a>>() {}

fn main() {
    from_text::<Permit>();
    from_text::<ToolContext>();
}
