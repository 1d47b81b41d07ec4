//! What the notes of several targets say in the same words.

use bailiwick_policy::plan::Plan;

use crate::script;

/// The notes about variables that the caller must set when it starts the sandbox.
pub(crate) fn environment_notes(plan: &Plan, how: &str, notes: &mut Vec<String>) {
    let environment = plan.environment();
    let names: Vec<&str> = script::passed(plan).collect();
    if !names.is_empty() {
        notes.push(format!("set {} when starting it: {how}", names.join(", ")));
    }
    if environment.read_all {
        notes.push("`env:read:*` passes nothing: name each variable".to_owned());
    }
}
