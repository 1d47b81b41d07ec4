//! `bailiwick fleet lease --return`: what this machine has of the fleet's budgets goes back.

use std::path::PathBuf;

use anyhow::Context as _;
use bailiwick_member::lease::{self, Purse};

use super::{MemberLink, block_on};
use crate::answer::{Answer, Exit};
use crate::commands::trust::refused;
use crate::facts;
use crate::render::style;

pub(super) fn run() -> anyhow::Result<Answer> {
    let Some(link) = super::machine()? else {
        return Ok(refused(Exit::Found, "this machine is in no fleet: `bailiwick enroll --token-file FILE`"));
    };
    let count = give_back_all(&link)?;
    let text = format!("{}: returned {}\n", style::good("ok"), style::count(count, "lease", "leases"));
    Ok(Answer::result(Exit::Fine, text))
}

/// Where leases are kept.
pub(in crate::commands) fn directory() -> anyhow::Result<PathBuf> {
    let state = facts::state_dir().context("neither XDG_STATE_HOME nor HOME says where the state is")?;
    Ok(state.join("fleet").join("leases"))
}

/// Returns every lease of this machine; answers how many.
pub(in crate::commands) fn give_back_all(link: &MemberLink) -> anyhow::Result<usize> {
    let directory = directory()?;
    let held = lease::held(&directory)?;
    for one in &held {
        let purse = Purse::new(&directory, &link.identity.enrolment.name, &one.budget, one.unit);
        block_on(purse.give_back(&link.hub))??;
    }
    Ok(held.len())
}
