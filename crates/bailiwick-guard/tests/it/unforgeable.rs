//! Permits and contexts cannot be made, copied or used twice: these programs must not compile.

use bailiwick_guard::{Permit, ToolContext};

#[test]
fn permits_cannot_be_forged() {
    let tests = trybuild::TestCases::new();
    tests.compile_fail("tests/unforgeable/*.rs");
}

/// Compiles only while neither can come from text: if one could, two implementations would fit, and which is meant
/// could not be said.
#[test]
fn permits_do_not_come_from_text() {
    trait Textless<Way> {
        fn is_textless() -> bool {
            true
        }
    }
    struct FromText;
    impl<T> Textless<()> for T {}
    impl<T: serde::de::DeserializeOwned> Textless<FromText> for T {}
    assert!(<Permit as Textless<_>>::is_textless() && <ToolContext as Textless<_>>::is_textless());
}
