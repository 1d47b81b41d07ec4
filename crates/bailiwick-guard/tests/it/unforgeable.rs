//! Permits and contexts cannot be made, copied or used twice: these programs must not compile.

#[test]
fn permits_cannot_be_forged() {
    let tests = trybuild::TestCases::new();
    tests.compile_fail("tests/unforgeable/*.rs");
}
