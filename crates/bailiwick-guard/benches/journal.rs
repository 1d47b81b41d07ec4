//! How fast the journal is.
fn main() {}
