//! What was really held: per aspect, by which mechanism, and what a person should know of it.

use std::collections::{BTreeMap, BTreeSet};

use bailiwick_policy::enforcement::Coverage;
use serde_json::{Value, json};

/// What a sandbox holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Per aspect.
    pub coverage: Coverage,
    /// By which backend.
    pub backend: &'static str,
    /// What was left out, narrowed or cannot be covered: one line each.
    pub details: Vec<String>,
    /// Limits that were asked for and that nothing holds: one line each.
    pub unheld_limits: Vec<String>,
}

impl Status {
    /// For machines; fields are only ever added.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "backend": self.backend,
            "coverage": self.coverage.to_json(),
            "details": self.details,
            "unheld_limits": self.unheld_limits,
        })
    }
}

/// The most notes of one kind that are given one by one.
const MOST_ALIKE: usize = 8;

/// Notes, each once. Of many that differ in nothing but the paths, the first are given and the others counted.
pub(crate) fn counted(notes: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut kinds: BTreeMap<String, (usize, Vec<String>)> = BTreeMap::new();
    for note in notes {
        if !seen.insert(note.clone()) {
            continue;
        }
        // Paths stand in backticks.
        let kind = note.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let first_seen = kinds.len();
        kinds.entry(kind).or_insert_with(|| (first_seen, Vec::new())).1.push(note);
    }
    let mut kinds: Vec<(usize, Vec<String>)> = kinds.into_values().collect();
    kinds.sort_by_key(|(first_seen, _)| *first_seen);
    kinds.into_iter().flat_map(|(_, alike)| shortened(alike)).collect()
}

fn shortened(mut alike: Vec<String>) -> Vec<String> {
    let more = alike.len().saturating_sub(MOST_ALIKE);
    alike.truncate(MOST_ALIKE);
    if let Some(last) = alike.last_mut().filter(|_| more > 0) {
        *last += &format!("; so it is with {more} more");
    }
    alike
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_given_once_and_many_alike_are_counted() {
        let missing = |number: usize| format!("`/x/{number}` does not exist and is left out");
        let link = "`/l` is a link: `/p` is what is granted".to_owned();
        let mut notes: Vec<String> = (0..420).map(missing).collect();
        notes.insert(1, link.clone());
        notes.extend([missing(0), link.clone()]);
        let given = counted(notes);
        assert_eq!(given.len(), MOST_ALIKE + 1, "{given:?}");
        assert_eq!((&given[0], &given[MOST_ALIKE]), (&missing(0), &link));
        assert_eq!(given[MOST_ALIKE - 1], missing(MOST_ALIKE - 1) + "; so it is with 412 more");
        let few: Vec<String> = (0..MOST_ALIKE).map(missing).collect();
        assert_eq!(counted(few.clone()), few);
    }
}
