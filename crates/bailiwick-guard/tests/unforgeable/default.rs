//! Neither comes from nothing.
use bailiwick_guard::{Permit, ToolContext};

fn from_nothing<T: Default>() {}

fn main() {
    from_nothing::<Permit>();
    from_nothing::<ToolContext>();
}
