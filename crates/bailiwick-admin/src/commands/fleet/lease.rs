//! `bailiwick fleet lease --return`: what this machine has of the fleet's budgets goes back.

use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::member_link::{MemberLink, block_on, lease_directory, machine};
use bailiwick_command::render::style;
use bailiwick_member::lease::{self, Purse};

pub(super) fn run() -> anyhow::Result<Answer> {
    let Some(link) = machine()? else {
        return Ok(refused(Exit::Found, "this machine is in no fleet: `bailiwick enroll --token-file FILE`"));
    };
    let count = give_back_all(&link)?;
    let text = format!("{}: returned {}\n", style::good("ok"), style::count(count, "lease", "leases"));
    Ok(Answer::result(Exit::Fine, text))
}

/// Returns every lease of this machine; answers how many.
pub(in crate::commands) fn give_back_all(link: &MemberLink) -> anyhow::Result<usize> {
    let directory = lease_directory()?;
    let held = lease::held(&directory)?;
    for one in &held {
        let purse = Purse::new(&directory, &link.identity.enrolment.name, &one.budget, one.unit);
        block_on(purse.give_back(&link.hub))??;
    }
    Ok(held.len())
}
