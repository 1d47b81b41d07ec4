//! The state directory of this user.

use anyhow::Context as _;
use bailiwick_guardrails::State;

use crate::facts;

/// The state directory of this user, opened.
///
/// # Errors
/// If the environment names none, or it cannot be used.
pub fn state() -> anyhow::Result<State> {
    let dir = facts::state_dir().context("neither XDG_STATE_HOME nor HOME says where the state is")?;
    Ok(State::open(&dir)?)
}
