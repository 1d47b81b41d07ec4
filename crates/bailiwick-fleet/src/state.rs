//! What verified entries mean now: which grants live, what is revoked, which rules and keys hold.
//!
//! Entries are applied one by one, in the order of the log. The state never asks for the time: it comes in as a value, with the time at
//! which the copy of the log was signed. A grant lives while the copy is not older than the grant allows. Revocations, pins and
//! rules that narrow hold however old the copy is.
//!
//! Fails closed when: a grant was revoked once (a later grant of the same id stays revoked), a machine's key was removed, or a lift is of a
//! revocation that never ends.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::Hash;
use crate::entry::{
    Bundle, Entry, EntryBody, Grant, HeadBatch, MemberKey, Package, Pin, Revocation, Role, Rule, RuleFormat,
    Target,
};
use crate::note::{KeyUse, NoteKey};

/// How old the copy may be for a grant that says nothing of it, in seconds.
pub const DEFAULT_MAX_STALE_S: u64 = 15 * 60;

/// What the log says, up to one of its sizes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetState {
    size: u64,
    max_stale_s: Option<u64>,
    bundles: BTreeMap<String, Bundle>,
    grants: BTreeMap<String, Grant>,
    pins: BTreeMap<String, Vec<Pin>>,
    revocations: Vec<Revocation>,
    members: BTreeMap<(Role, String, Hash), MemberKey>,
    heads: Vec<HeadBatch>,
}

/// The same in lists, to be kept in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateLists {
    /// How many entries were applied.
    pub size: u64,
    /// The last bundle of each name.
    pub bundles: Vec<Bundle>,
    /// The last grant of each id.
    pub grants: Vec<Grant>,
    /// Every pin.
    pub pins: Vec<Pin>,
    /// The revocations that hold.
    pub revocations: Vec<Revocation>,
    /// Keys of members, also removed ones.
    pub members: Vec<MemberKey>,
}

/// A server on a machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subject<'a> {
    /// The machine's id.
    pub machine: &'a str,
    /// The server's name.
    pub server: &'a str,
    /// Its package, if it is one.
    pub package: Option<&'a Package>,
    /// The digest of its surface, once it is known.
    pub surface: Option<&'a Hash>,
}

/// What the log says of one server on one machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerView {
    /// Why it must not run.
    pub revoked: Option<Revocation>,
    /// Manifests: ceilings.
    pub ceilings: Vec<Rule>,
    /// Guardrails.
    pub guardrails: Vec<Rule>,
    /// Grants that live.
    pub grants: Vec<Grant>,
    /// Grants that do not, and why.
    pub ended: Vec<(String, GrantEnd)>,
    /// Surfaces that were reviewed.
    pub surfaces: BTreeSet<Hash>,
    /// When the first of the grants ends if nothing newer is seen, in milliseconds since 1970.
    pub valid_until_ms: Option<u64>,
}

/// Why a grant from the log does not live.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantEnd {
    /// Its time is over.
    #[error("it expired")]
    Expired,
    /// It was revoked.
    #[error("it was revoked: {0}")]
    Revoked(String),
    /// The copy of the log is too old.
    #[error("the copy of the fleet's log is {age_s} s old, and this grant allows {max_stale_s} s")]
    Stale {
        /// How old it is.
        age_s: u64,
        /// How old it may be.
        max_stale_s: u64,
    },
}

impl FleetState {
    /// Applies the next entry.
    pub fn apply(&mut self, entry: &Entry) {
        self.size += 1;
        match &entry.body {
            EntryBody::Bundle(bundle) if bundle.rules.is_empty() => {
                self.bundles.remove(&bundle.name);
            }
            EntryBody::Bundle(bundle) => {
                self.bundles.insert(bundle.name.clone(), bundle.clone());
            }
            EntryBody::Grant(grant) => {
                self.grants.insert(grant.id.clone(), grant.clone());
            }
            EntryBody::Pin(pin) => self.pins.entry(pin.server.clone()).or_default().push(pin.clone()),
            EntryBody::Revocation(revocation) => self.revocations.push(revocation.clone()),
            EntryBody::Lift(lift) => {
                self.revocations.retain(|one| one.id != lift.revocation || !may_be_lifted(&one.target));
            }
            EntryBody::MemberKey(member) => self.add_member(member.clone()),
            EntryBody::Heads(batch) => self.heads.push(batch.clone()),
        }
    }

    /// The same state, where a grant that says nothing of it allows the copy to be this old.
    #[must_use]
    pub const fn with_max_stale(mut self, max_stale_s: u64) -> Self {
        self.max_stale_s = Some(max_stale_s);
        self
    }

    /// Forgets what one machine's rules do not need: keys of other members than this machine and the hub, and files of heads.
    pub fn keep_for(&mut self, machine: &str) {
        self.members.retain(|(role, member, _), _| *role == Role::Hub || member == machine);
        self.heads.clear();
    }

    /// What is kept in a file. Files of heads are not.
    #[must_use]
    pub fn to_lists(&self) -> StateLists {
        StateLists {
            size: self.size,
            bundles: self.bundles.values().cloned().collect(),
            grants: self.grants.values().cloned().collect(),
            pins: self.pins.values().flatten().cloned().collect(),
            revocations: self.revocations.clone(),
            members: self.members.values().cloned().collect(),
        }
    }

    /// What was kept in a file.
    #[must_use]
    pub fn from_lists(lists: StateLists) -> Self {
        let mut state = Self { size: lists.size, revocations: lists.revocations, ..Self::default() };
        state.bundles = lists.bundles.into_iter().map(|bundle| (bundle.name.clone(), bundle)).collect();
        state.grants = lists.grants.into_iter().map(|grant| (grant.id.clone(), grant)).collect();
        for pin in lists.pins {
            state.pins.entry(pin.server.clone()).or_default().push(pin);
        }
        lists.members.into_iter().for_each(|member| state.add_member(member));
        state
    }

    fn add_member(&mut self, member: MemberKey) {
        self.members.insert((member.role, member.member.clone(), member.key), member);
    }

    /// How many entries were applied.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The keys that may sign checkpoints: the first one and those that the log added, but for those that it removed.
    #[must_use]
    pub fn hub_keys(&self, first: &NoteKey) -> Vec<NoteKey> {
        let added = self.keys(Role::Hub).filter_map(note_key);
        let removed: Vec<NoteKey> = self.removed_keys(Role::Hub).filter_map(note_key).collect();
        let mut keys: Vec<NoteKey> = std::iter::once(first.clone()).chain(added).collect();
        keys.retain(|key| !removed.iter().any(|removed| removed.public() == key.public()));
        keys
    }

    /// The revocations that hold, in the order of the log.
    #[must_use]
    pub fn revocations(&self) -> &[Revocation] {
        &self.revocations
    }

    /// The last grant of each id.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.grants.values()
    }

    /// The last bundle of each name.
    pub fn bundles(&self) -> impl Iterator<Item = &Bundle> {
        self.bundles.values()
    }

    /// Every pin.
    pub fn pins(&self) -> impl Iterator<Item = &Pin> {
        self.pins.values().flatten()
    }

    /// Files of journal heads, the oldest first.
    #[must_use]
    pub fn heads(&self) -> &[HeadBatch] {
        &self.heads
    }

    /// Keys of members that were not removed.
    pub fn members(&self) -> impl Iterator<Item = &MemberKey> {
        self.members.values().filter(|member| !member.removed)
    }

    /// Keys with this role that were not removed.
    pub fn keys(&self, role: Role) -> impl Iterator<Item = &MemberKey> {
        self.members().filter(move |member| member.role == role)
    }

    /// Keys with this role that were removed and not added again.
    pub fn removed_keys(&self, role: Role) -> impl Iterator<Item = &MemberKey> {
        self.members.values().filter(move |member| member.removed && member.role == role)
    }

    /// The labels of a machine.
    #[must_use]
    pub fn labels(&self, machine: &str) -> BTreeSet<String> {
        let own = self.keys(Role::Machine).filter(|member| member.member == machine);
        own.flat_map(|member| member.labels.iter().cloned()).collect()
    }

    /// Why a token, by its SHA-256, is not honoured.
    #[must_use]
    pub fn token_revocation(&self, sha256: &Hash) -> Option<&Revocation> {
        self.revoked(|target| match target {
            Target::Token { sha256: revoked } => revoked == sha256,
            Target::Everything => true,
            Target::Grant { .. }
            | Target::Machine { .. }
            | Target::Package(_)
            | Target::Pin { .. }
            | Target::Server { .. } => false,
        })
    }

    /// Why a server must not run on a machine.
    #[must_use]
    pub fn server_revocation(&self, subject: &Subject<'_>) -> Option<&Revocation> {
        self.revoked(|target| match target {
            Target::Everything => true,
            Target::Machine { machine } => machine == subject.machine,
            Target::Server { server } => server == subject.server,
            Target::Package(package) => subject.package.is_some_and(|own| package.covers(own)),
            Target::Pin { surface } => subject.surface == Some(surface),
            Target::Grant { .. } | Target::Token { .. } => false,
        })
    }

    /// Why a grant does not live: `now_ms` is the time, `fresh_ms` when the copy of the log was signed.
    #[must_use]
    pub fn grant_end(&self, grant: &Grant, now_ms: u64, fresh_ms: u64) -> Option<GrantEnd> {
        let is_target = |target: &Target| matches!(target, Target::Grant { grant: id } if *id == grant.id);
        if let Some(revocation) = self.revoked(is_target) {
            return Some(GrantEnd::Revoked(revocation.reason.clone()));
        }
        if grant.expires_ms.is_some_and(|at| at <= now_ms) {
            return Some(GrantEnd::Expired);
        }
        let max_stale_s = self.max_stale_s(grant);
        let age_ms = now_ms.saturating_sub(fresh_ms);
        let is_stale = age_ms > max_stale_s.saturating_mul(1000);
        is_stale.then_some(GrantEnd::Stale { age_s: age_ms / 1000, max_stale_s })
    }

    /// What the log says of a server on a machine.
    #[must_use]
    pub fn view(&self, subject: &Subject<'_>, now_ms: u64, fresh_ms: u64) -> ServerView {
        let labels = self.labels(subject.machine);
        let mut view =
            ServerView { revoked: self.server_revocation(subject).cloned(), ..ServerView::default() };
        for bundle in self.bundles.values().filter(|bundle| bundle.scope.covers(subject.machine, &labels)) {
            for rule in &bundle.rules {
                match rule.format {
                    RuleFormat::Manifest if rule.name == subject.server => view.ceilings.push(rule.clone()),
                    RuleFormat::Manifest => {}
                    RuleFormat::Guardrails => view.guardrails.push(rule.clone()),
                }
            }
        }
        let own = self.grants.values().filter(|grant| grant.server == subject.server);
        for grant in own.filter(|grant| grant.scope.covers(subject.machine, &labels)) {
            match self.grant_end(grant, now_ms, fresh_ms) {
                Some(end) => view.ended.push((grant.id.clone(), end)),
                None => view.grants.push(grant.clone()),
            }
        }
        let pins = self.pins.get(subject.server).into_iter().flatten();
        view.surfaces = pins.map(|pin| pin.surface).collect();
        view.valid_until_ms = view.grants.iter().map(|grant| self.last_moment(grant, fresh_ms)).min();
        view
    }

    /// When a grant that lives ends, if nothing newer is seen.
    #[must_use]
    pub fn last_moment(&self, grant: &Grant, fresh_ms: u64) -> u64 {
        let stale = fresh_ms.saturating_add(self.max_stale_s(grant).saturating_mul(1000));
        grant.expires_ms.map_or(stale, |expires| expires.min(stale))
    }

    fn max_stale_s(&self, grant: &Grant) -> u64 {
        grant.max_stale_s.or(self.max_stale_s).unwrap_or(DEFAULT_MAX_STALE_S)
    }

    fn revoked(&self, mut is_meant: impl FnMut(&Target) -> bool) -> Option<&Revocation> {
        self.revocations.iter().find(|revocation| is_meant(&revocation.target))
    }
}

/// The key that a hub's entry names.
fn note_key(member: &MemberKey) -> Option<NoteKey> {
    NoteKey::new(&member.member, KeyUse::Note, *member.key.as_bytes()).ok()
}

/// Whether a revocation of this may end. What is gone stays gone where a new id can be given.
const fn may_be_lifted(target: &Target) -> bool {
    match target {
        Target::Package(_) | Target::Pin { .. } | Target::Server { .. } | Target::Everything => true,
        Target::Grant { .. } | Target::Token { .. } | Target::Machine { .. } => false,
    }
}

#[cfg(test)]
mod tests;
