//! Skipping a test, out loud.
//!
//! A test that cannot run here says why and passes; with `BAILIWICK_REQUIRE=all` in the environment the same
//! call fails, so that a machine which is meant to run everything cannot quietly run less.

/// Says why a test (or a part of one) does not run here. Return right after calling it.
///
/// # Panics
/// When `BAILIWICK_REQUIRE=all` is set.
pub fn skip(why: &str) {
    eprintln!("{}", notice(everything_required(), why).unwrap_or_else(|refusal| panic!("{refusal}")));
}

fn everything_required() -> bool {
    std::env::var_os("BAILIWICK_REQUIRE").is_some_and(|value| value == "all")
}

fn notice(required: bool, why: &str) -> Result<String, String> {
    if required { Err(format!("BAILIWICK_REQUIRE=all, but: {why}")) } else { Ok(format!("skipped: {why}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_is_a_failure_when_everything_is_required() {
        assert_eq!(notice(false, "no git here"), Ok("skipped: no git here".to_owned()));
        assert_eq!(notice(true, "no git here"), Err("BAILIWICK_REQUIRE=all, but: no git here".to_owned()));
    }
}
