//! What a tool's policy lets through, compared by itself, and lines that were added behind it.
//!
//! A stance that lets more through is a widening also where no line uses it yet: the next line would pass unseen.

use std::collections::BTreeSet;

use bailiwick_policy::authority::Axis;
use bailiwick_policy::capability::Capability;
use bailiwick_policy::finding::{Code, Findings};
use bailiwick_policy::lattice::Containment;
use bailiwick_policy::path::AbsPath;

use super::Difference;
use super::compare::{about, code_for};
use crate::manifest::{Declared, Stance, Tool, ToolPolicy, named_for_writing, symbolic};

/// The subjects of a policy, by the name that its author writes.
const SUBJECTS: [(Axis, &str); 5] = [
    (Axis::FsRead, "filesystem.read"),
    (Axis::FsWrite, "filesystem.write"),
    (Axis::Net, "network"),
    (Axis::Env, "environment"),
    (Axis::Exec, "exec"),
];

/// Compares the policies of one tool. `known` are the axes on which a widening is reported already.
pub(super) fn compare_policies(
    before: &Tool,
    after: &Tool,
    known: &[Axis],
    found: &mut Vec<Difference>,
) -> Result<(), Findings> {
    let Some(new) = after.policy() else {
        if before.policy().is_some() {
            found.push(about(Code::PolicyRemoved, after, "its policy is gone"));
        }
        return Ok(());
    };
    if !new.is_enforced() && before.policy().is_none_or(ToolPolicy::is_enforced) {
        found.push(about(Code::EnforcementDisabled, after, "its policy is written down and not enforced"));
    }
    for (axis, subject) in SUBJECTS.into_iter().filter(|(axis, _)| !known.contains(axis)) {
        let (Some(stance), old) = (new.stance(axis), before.policy().and_then(|old| old.stance(axis))) else {
            continue;
        };
        let old_stance = old.unwrap_or(&Stance::Unspecified);
        let Some(excess) = loosened(axis, before.policy(), old_stance, new, stance)? else { continue };
        let message = format!(
            "its policy on `{subject}` was `{}` and is `{}`{excess}",
            old_stance.as_str(),
            stance.as_str()
        );
        found.push(about(code_for(axis), after, &message));
    }
    Ok(())
}

/// How the new stance lets more through than the old one, if it does: the end of a message.
///
/// A list that is gone is judged by what the lines then reach, not here.
fn loosened<T>(
    axis: Axis,
    before: Option<&ToolPolicy>,
    old: &Stance<T>,
    after: &ToolPolicy,
    new: &Stance<T>,
) -> Result<Option<String>, Findings> {
    Ok(match (old, new) {
        (Stance::Unspecified, Stance::All) | (Stance::None, Stance::Unspecified) => Some(String::new()),
        (Stance::Unspecified, _) | (_, Stance::Unspecified) => None,
        (Stance::None | Stance::Only(_) | Stance::All, Stance::None | Stance::Only(_) | Stance::All) => {
            let Some(before) = before else { return Ok(None) };
            match after.bound(&symbolic)?.within_on(axis, &before.bound(&symbolic)?) {
                Containment::Contained => None,
                Containment::Exceeds(excess) => Some(format!(": it no longer refuses to {excess}")),
                Containment::Undecided => Some(": which of the two is wider could not be decided".to_owned()),
            }
        }
    })
}

/// Reports lines that say more than before where the tool may not touch more: its policy hides them.
pub(super) fn compare_hidden(
    before: &Tool,
    after: &Tool,
    known: &[Axis],
    found: &mut Vec<Difference>,
) -> Result<(), Findings> {
    if after.policy().is_none() {
        return Ok(());
    }
    let (old, new) = (before.declared(&symbolic)?, after.declared(&symbolic)?);
    for axis in Axis::ALL.into_iter().filter(|axis| !known.contains(axis)) {
        let what = match new.within_on(axis, &old) {
            Containment::Contained => continue,
            Containment::Exceeds(excess) => excess.to_string(),
            Containment::Undecided => format!("reach more on {axis}, as far as can be decided"),
        };
        let message = format!("it now declares to {what}, beyond its policy");
        found.push(about(Code::CapabilityBeyondPolicy, after, &message));
    }
    Ok(())
}

/// Reports a file that runs later which a line newly names for writing: it was closed in a tree around it.
pub(super) fn newly_named<'a>(
    before: impl Iterator<Item = &'a Declared<Capability>>,
    after: impl Iterator<Item = &'a Declared<Capability>>,
) -> Option<String> {
    let named = |line: &Declared<Capability>| named_for_writing(&line.value);
    let old: BTreeSet<AbsPath> = before.filter_map(named).collect();
    after.filter_map(named).find(|path| !old.contains(path)).map(|path| {
        format!("a line now names {path} for writing: a file that runs later, which stays closed otherwise")
    })
}
