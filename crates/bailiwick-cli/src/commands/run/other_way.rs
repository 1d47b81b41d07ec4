//! A host without user namespaces: what the backend that needs none would hold of a plan, and what not.

use bailiwick_command::render::{escape, style};
use bailiwick_confine::fallback;
use bailiwick_launch::{LaunchError, Refusal};
use bailiwick_policy::enforcement::{Coverage, Floor, Precision};
use bailiwick_policy::plan::Plan;

/// What to add to the refusal of the native sandbox, if it is for want of namespaces.
pub(super) fn without_namespaces(error: &LaunchError, plan: &Plan, floor: &Floor) -> String {
    let LaunchError::Refused(Refusal::Unusable { backend, .. }) = error else { return String::new() };
    let coverage = fallback::coverage_here(plan).filter(|_| backend == "native");
    coverage.map(|coverage| told(&coverage, floor)).unwrap_or_default()
}

fn told(coverage: &Coverage, floor: &Floor) -> String {
    let note = style::warning("note");
    let mut text = format!("{note}: `--backend landlock` needs no user namespaces; of this plan it holds:\n");
    for (aspect, held) in coverage.iter() {
        let precision = if held.precision == Precision::Exact { "" } else { ", wider than asked" };
        text += &format!("  {aspect}: {}{precision} ({})\n", held.level, escape::line(&held.why));
    }
    let missing: Vec<String> = coverage.below(floor).iter().map(ToString::to_string).collect();
    if !missing.is_empty() {
        let missing = escape::line(&missing.join("; "));
        text += &format!("  it refuses this run too, unless less is demanded: {missing}\n");
    }
    text
}
