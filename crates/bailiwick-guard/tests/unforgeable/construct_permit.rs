//! A permit has no public fields and no constructor.
use bailiwick_guard::Permit;

fn main() {
    let _ = Permit { call: todo!(), context: todo!(), grant: todo!(), index: 0, settled: false };
}
