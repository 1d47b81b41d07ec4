//! What the log says of one server on this machine, when it is asked.
//!
//! A server is meant by any of its names: what people call it, what its manifest is called, and where its code comes from (`npm:NAME`, `pypi:NAME`, a
//! URL, a path). Manifests and guardrails of the log only narrow. A grant counts only on a machine that was enrolled with `--authoritative`.
//!
//! Fails closed when: the server is revoked, the machine's key was removed, or a manifest of the log cannot be read.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use bailiwick_fleet::Hash;
use bailiwick_fleet::entry::{Grant, Package, Revocation, Role, Rule};
use bailiwick_fleet::state::{FleetState, GrantEnd, ServerView, Subject};
use bailiwick_manifest::Manifest;

use crate::copy::LogCopy;
use crate::replica::{Replica, now_ms};

/// What a server is known by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerIdentity {
    /// Its names.
    pub names: Vec<String>,
    /// Its package, and its version once that is known.
    pub package: Option<Package>,
    /// What it says of itself, once that is known.
    pub surface: Option<Hash>,
}

/// What the log says of one server.
#[derive(Debug, Clone, Default)]
pub struct ServerRules {
    pub(crate) identity: ServerIdentity,
    pub(crate) ceilings: Vec<Rule>,
    pub(crate) guardrails: Vec<Rule>,
    pub(crate) grant: Option<Grant>,
    pub(crate) ended: Vec<(String, GrantEnd)>,
    pub(crate) surfaces: BTreeSet<Hash>,
    pub(crate) valid_until_ms: Option<u64>,
}

/// Why a server does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// It was revoked.
    #[error("the fleet revoked {what} (`{id}`): {reason}")]
    Revoked {
        /// What was revoked, in words.
        what: String,
        /// The id of the revocation.
        id: String,
        /// Why, in its author's words.
        reason: String,
    },
    /// The machine's key was removed.
    #[error("the fleet removed this machine (`{0}`): enrol it again with `bailiwick enroll`")]
    Removed(String),
    /// What it says of itself is not what was reviewed.
    #[error("what the server says of itself (`{0}`) is not what was reviewed in the fleet")]
    Unreviewed(Hash),
    /// A manifest of the log cannot be read.
    #[error("the fleet's manifest for `{0}` cannot be used: {1}")]
    Broken(String, String),
}

impl ServerIdentity {
    /// A server by its names.
    pub fn named<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        let mut identity = Self::default();
        names.into_iter().for_each(|name| identity.add_name(name));
        identity
    }

    /// Adds a name; `npm:NAME` and `pypi:NAME` are a package too.
    pub fn add_name(&mut self, name: impl Into<String>) {
        let name = name.into();
        if let Some((registry @ ("npm" | "pypi" | "oci"), package)) = name.split_once(':') {
            let package = Package { registry: registry.to_owned(), name: package.to_owned(), version: None };
            self.package.get_or_insert(package);
        }
        if !self.names.contains(&name) {
            self.names.push(name);
        }
    }

    /// Notes the version of its package.
    pub fn set_version(&mut self, version: &str) {
        if let Some(package) = &mut self.package {
            package.version = Some(version.to_owned());
        }
    }

    /// Its package, if it is one.
    #[must_use]
    pub const fn package(&self) -> Option<&Package> {
        self.package.as_ref()
    }

    fn subjects<'a>(&'a self, machine: &'a str) -> impl Iterator<Item = Subject<'a>> {
        // Also a server without a name is on this machine.
        let names = self.names.iter().map(String::as_str).chain(self.names.is_empty().then_some(""));
        let (package, surface) = (self.package.as_ref(), self.surface.as_ref());
        names.map(move |server| Subject { machine, server, package, surface })
    }
}

impl ServerRules {
    /// What the log says now.
    ///
    /// # Errors
    /// Why the server must not start.
    pub fn now(replica: &Replica, identity: ServerIdentity) -> Result<Self, RulesError> {
        let enrolment = replica.enrolment();
        Self::at(&replica.copy(), (&enrolment.name, enrolment.authoritative), identity, now_ms())
    }

    pub(crate) fn at(
        copy: &LogCopy,
        (machine, is_authoritative): (&str, bool),
        identity: ServerIdentity,
        now_ms: u64,
    ) -> Result<Self, RulesError> {
        refuse_revoked(copy.state(), machine, &identity)?;
        let fresh_ms = copy.head().fresh_ms;
        let mut rules = Self::default();
        let mut grants = Vec::new();
        for subject in identity.subjects(machine) {
            let view: ServerView = copy.state().view(&subject, now_ms, fresh_ms);
            add_new(&mut rules.ceilings, view.ceilings);
            add_new(&mut rules.guardrails, view.guardrails);
            if is_authoritative {
                add_new(&mut grants, view.grants);
                add_new(&mut rules.ended, view.ended);
            }
            rules.surfaces.extend(view.surfaces);
        }
        if let Some(surface) = identity.surface
            && !rules.surfaces.is_empty()
            && !rules.surfaces.contains(&surface)
        {
            return Err(RulesError::Unreviewed(surface));
        }
        grants.sort_by(|one, other| one.id.cmp(&other.id));
        rules.grant = grants.into_iter().next();
        rules.valid_until_ms = rules.grant.as_ref().map(|grant| copy.state().last_moment(grant, fresh_ms));
        Ok(Self { identity, ..rules })
    }

    /// What narrows the server.
    ///
    /// # Errors
    /// If one of them cannot be read: the server must not start then.
    pub fn ceilings(&self) -> Result<Vec<Manifest>, RulesError> {
        let read = |rule: &Rule| {
            let wrong = |why: bailiwick_policy::finding::Findings| {
                RulesError::Broken(rule.name.clone(), why.to_string())
            };
            Manifest::parse(&rule.text).map_err(wrong)
        };
        self.ceilings.iter().map(read).collect()
    }

    /// Guardrails, each with its name and text.
    pub fn guardrails(&self) -> impl Iterator<Item = (&str, &str)> {
        self.guardrails.iter().map(|rule| (rule.name.as_str(), rule.text.as_str()))
    }

    /// What the log grants; of several that live, the one with the first id.
    #[must_use]
    pub const fn grant(&self) -> Option<&Grant> {
        self.grant.as_ref()
    }

    /// The same where the grant is not used: that it ends changes nothing then.
    #[must_use]
    pub fn without_grant(self) -> Self {
        Self { grant: None, valid_until_ms: None, ..self }
    }

    /// What a person should know of it, a line each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let named = |rules: &[Rule]| {
            rules
                .iter()
                .map(|rule| format!("`{}`", rule.name))
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
        };
        if !self.ceilings.is_empty() {
            notes.push(format!(
                "the fleet narrows this server by its manifest for {}",
                named(&self.ceilings).join(", ")
            ));
        }
        if !self.guardrails.is_empty() {
            notes.push(format!("the fleet's guardrails {} hold", named(&self.guardrails).join(", ")));
        }
        if let (Some(grant), Some(until)) = (&self.grant, self.valid_until_ms) {
            let left_s = until.saturating_sub(now_ms()) / 1000;
            notes.push(format!(
                "the fleet grants it `{}`, for {left_s} s more if nothing newer is seen",
                grant.id
            ));
        }
        notes.extend(self.ended.iter().map(|(id, end)| grant_ended(id, end)));
        notes
    }
}

/// Refuses what the log says must not run.
pub(crate) fn refuse_revoked(
    state: &FleetState,
    machine: &str,
    identity: &ServerIdentity,
) -> Result<(), RulesError> {
    let mut subjects = identity.subjects(machine);
    if let Some(Revocation { id, target, reason }) =
        subjects.find_map(|subject| state.server_revocation(&subject))
    {
        return Err(RulesError::Revoked { what: in_words(target), id: id.clone(), reason: reason.clone() });
    }
    let is_own = |member: &str| member == machine;
    let is_member = state.keys(Role::Machine).any(|key| is_own(&key.member));
    let was_member = state.removed_keys(Role::Machine).any(|key| is_own(&key.member));
    if was_member && !is_member { Err(RulesError::Removed(machine.to_owned())) } else { Ok(()) }
}

/// Says that a grant has ended, since when, and what to do.
pub(crate) fn grant_ended(id: &str, end: &GrantEnd) -> String {
    let mut text = format!("the fleet's grant `{id}` has ended: {end}");
    if let GrantEnd::Stale { age_s, max_stale_s } = end {
        // Writing to a `String` cannot fail.
        let _ = write!(
            text,
            "; that was {} s ago. No web server in `log` of fleet.toml has a newer checkpoint, or none can be reached: when one can, \
             start the server again",
            age_s.saturating_sub(*max_stale_s)
        );
    }
    text
}

fn in_words(target: &bailiwick_fleet::entry::Target) -> String {
    use bailiwick_fleet::entry::Target;
    match target {
        Target::Everything => "everything".to_owned(),
        Target::Machine { machine } => format!("the machine `{machine}`"),
        Target::Server { server } => format!("the server `{server}`"),
        Target::Package(package) => format!("the package `{package}`"),
        Target::Pin { surface } => format!("what the server says of itself, `{surface}`"),
        Target::Grant { grant } => format!("the grant `{grant}`"),
        Target::Token { sha256 } => format!("the token with the SHA-256 `{sha256}`"),
    }
}

fn add_new<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}
