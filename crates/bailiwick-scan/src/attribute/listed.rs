//! The tools that were found in the source, beside those that the server lists while it runs.

use std::collections::BTreeSet;

use super::{Plan, Planned};

impl Planned {
    /// Takes out objects that are registered by name too or have no name in the source, and a loop that registers objects which were
    /// found by themselves. What they do is then the server's.
    pub(super) fn without_doubles(&mut self) {
        let others = self.tools.iter().filter(|plan| !plan.is_record && plan.is_named);
        let known: BTreeSet<String> = others.map(|plan| plan.name.clone()).collect();
        self.tools.retain(|plan| !plan.is_record || (plan.is_named && !known.contains(&plan.name)));
        let has_objects = self.tools.iter().any(|plan| plan.is_record);
        self.tools.retain(|plan| !has_objects || plan.is_named || !plan.unresolved);
    }

    /// Gives the tools that are listed and not named in the source to the handler that picks them. The names of those that no
    /// handler picks, and of those that are in the source and not listed.
    pub(super) fn add_listed(&mut self, listed: &[String]) -> (Vec<String>, Vec<String>) {
        let known: BTreeSet<String> = self.tools.iter().map(|plan| plan.name.clone()).collect();
        let unlisted = known.iter().filter(|name| !listed.contains(name)).cloned().collect();
        let missing = listed.iter().filter(|name| !known.contains(*name));
        let Some(picker) = self.dispatchers.first().or(self.lost.first()) else {
            return (missing.cloned().collect(), unlisted);
        };
        let branches = self.tools.iter().flat_map(|plan| &plan.others).copied().collect::<BTreeSet<_>>();
        let picked = missing.map(|name| Plan {
            name: name.clone(),
            language: picker.language,
            unit: picker.unit,
            extent: picker.extent,
            handlers: picker.handlers.clone(),
            declared: picker.declared.clone(),
            others: branches.clone(),
            unresolved: picker.unresolved,
            is_record: false,
            is_named: true,
        });
        let picked: Vec<Plan> = picked.collect();
        self.tools.extend(picked);
        (Vec::new(), unlisted)
    }
}
