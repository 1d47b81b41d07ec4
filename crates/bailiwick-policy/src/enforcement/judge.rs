//! Judgements that follow from a plan alone, the same for every target and sandbox.
//!
//! What is granted whole, or not declared at all, is held by nobody: nothing refuses it, so it is never `kernel`.

use super::Held;
use crate::capability::ClockActions;
use crate::manifest::{Limit, Limits};
use crate::plan::Plan;

/// The clock and the time zones, which no sandbox here hides.
#[must_use]
pub fn clock(plan: &Plan) -> Held {
    let all = ClockActions::SYSTEM.union(ClockActions::TZDATA);
    if plan.clock().is_some_and(|granted| granted.contains(all)) {
        return Held::unsupported("the clock and the time zones are granted: nothing refuses them");
    }
    Held::unsupported("every process can read the clock, and the base shows the time zones")
}

/// Programs, where nothing chooses among those that are visible.
#[must_use]
pub fn every_program(plan: &Plan) -> Held {
    if plan.exec().any.is_some() {
        return Held::unsupported("every program is granted: nothing refuses one, wherever it lies");
    }
    Held::unsupported("every program that is visible can be started; there is no list of programs")
}

/// Limits, of which those in `holds` are held by the kernel, `how`. As good as the weakest that is declared.
#[must_use]
pub fn limits(declared: &Limits, holds: &[Limit], how: &str) -> Held {
    let missed: Vec<&str> =
        declared.declared().filter(|limit| !holds.contains(limit)).map(Limit::as_str).collect();
    match (declared.declared().next(), &*missed) {
        (None, _) => no_limits(),
        (Some(_), []) => Held::kernel(how),
        (Some(_), missed) => Held::unsupported(format!("nothing here holds {}", missed.join(", "))),
    }
}

/// A plan that declares no limit.
#[must_use]
pub fn no_limits() -> Held {
    Held::unsupported("no limit is declared: nothing is limited")
}
