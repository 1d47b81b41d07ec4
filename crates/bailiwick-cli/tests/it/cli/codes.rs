//! `docs/codes.md` is printed from the table in `bailiwick-policy`, and stays so.

use super::run;

#[test]
fn the_document_of_codes_is_the_table() {
    let path = super::root().join("docs/codes.md");
    let now = run(&["codes"]).out;
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &now).expect("docs/codes.md can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, now, "docs/codes.md is out of date: run the tests with UPDATE_GOLDEN=1");
}
