//! The same tests once more as a user without any privilege, when root runs them.

#[test]
fn everything_holds_for_a_plain_user() {
    bailiwick_testkit::run_again_as_plain_user("shell::", &[]);
}
