//! A permit is used up by using it.
use bailiwick_guard::{Permit, Tool};

async fn twice(permit: Permit, tool: impl Tool) {
    let _ = permit.run(&tool).await;
    let _ = permit.run(&tool).await;
}

fn main() {}
