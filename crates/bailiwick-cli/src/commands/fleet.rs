//! `bailiwick fleet`: what this machine is in its fleet, and what persons see and do there.
//!
//! Nothing is decided here: the hub knows what a member may do. Whatever comes from other machines is escaped before it is shown.

mod approve;
mod budget;
mod inventory;
pub(super) mod lease;
mod members;
mod publish;
mod revoke;
mod status;
mod tokens;

use std::sync::Arc;

use anyhow::Context as _;
use bailiwick_fleet::entry::{Package, Role};
use bailiwick_member::enrol::{is_renewal_due, renew};
use bailiwick_member::hub::{Hub, HubError};
use bailiwick_member::identity::{Identity, IdentityError};
use bailiwick_member::now_ms;

pub(super) use self::inventory::{reporter, servers_here};
use super::trust::refused;
use crate::answer::{Answer, Exit};
use crate::args::fleet::{Fleet, FleetCommand, MemberRole};
use crate::facts;

pub(super) fn run(args: &Fleet) -> anyhow::Result<Answer> {
    match &args.command {
        FleetCommand::Status(shown) => status::run(shown.format),
        FleetCommand::Report(shown) => inventory::report(shown.format),
        FleetCommand::Lease(_) => lease::run(),
        FleetCommand::Ls(args) => as_person(|link| members::list(link, args)),
        FleetCommand::Diff(args) => as_person(|link| members::diff(link, args)),
        FleetCommand::Approve(args) => as_person(|link| approve::run(link, args)),
        FleetCommand::Revoke(args) => as_person(|link| revoke::run(link, args)),
        FleetCommand::Lift(args) => as_person(|link| revoke::lift(link, args)),
        FleetCommand::Budget(args) => as_person(|link| budget::run(link, args)),
        FleetCommand::Audit(args) => as_person(|link| members::audit(link, args)),
        FleetCommand::Publish(args) => as_person(|link| publish::run(link, args)),
        FleetCommand::Token(args) => as_person(|link| tokens::make(link, args)),
        FleetCommand::Admit(args) => as_person(|link| tokens::admit(link, args)),
    }
}

/// A member and its way to the hubs.
pub(super) struct MemberLink {
    pub(super) identity: Identity,
    pub(super) hub: Arc<Hub>,
}

impl MemberLink {
    pub(super) fn new(identity: Identity) -> anyhow::Result<Self> {
        let hub = Arc::new(Hub::new(&identity)?);
        Ok(Self { identity, hub })
    }
}

/// This machine in its fleet; nothing if it is in none.
///
/// # Errors
/// If it is enrolled and that cannot be used.
pub(super) fn machine() -> anyhow::Result<Option<MemberLink>> {
    let Some(directory) = facts::fleet_dir() else { return Ok(None) };
    let Some(identity) = Identity::load(&directory)? else { return Ok(None) };
    if identity.enrolment.role != Role::Machine {
        anyhow::bail!(
            "`{}` is the enrolment of a person, and a machine's is wanted there",
            directory.display()
        );
    }
    MemberLink::new(identity).map(Some)
}

/// Whether the enrolment is that of all users, and its key another user's: its rules hold, and what needs a hub does not go.
pub(super) fn is_key_of_host(fault: &anyhow::Error) -> bool {
    let directory = facts::fleet_dir().filter(|directory| facts::is_fleet_of_host(directory));
    directory.is_some() && matches!(fault.downcast_ref(), Some(IdentityError::AnotherUsers(_)))
}

/// Acts as the person who is enrolled here.
fn as_person(act: impl FnOnce(&MemberLink) -> Result<Answer, FleetFault>) -> anyhow::Result<Answer> {
    let directory =
        facts::fleet_person_dir().context("neither XDG_CONFIG_HOME nor HOME says where your settings are")?;
    let Some(identity) = Identity::load(&directory)? else {
        let why = "no person is enrolled here: an admin makes a token with `bailiwick fleet token --role approver`, and \
                   `bailiwick enroll --token-file FILE` takes it";
        return Ok(refused(Exit::Found, why));
    };
    let mut link = MemberLink::new(identity)?;
    if is_renewal_due(&link.identity, now_ms()) && block_on(renew(&link.identity))?.is_ok() {
        link = MemberLink::new(Identity::load(&directory)?.context("the enrolment is gone")?)?;
    }
    match act(&link) {
        Err(FleetFault::Hub(error @ HubError::Refused { .. })) => {
            Ok(refused(Exit::Found, &error.to_string()))
        }
        Err(FleetFault::Hub(error)) => Err(error.into()),
        Err(FleetFault::Input(answer)) => Ok(*answer),
        Err(FleetFault::Other(fault)) => Err(fault),
        Ok(answer) => Ok(answer),
    }
}

/// Why a command has no result.
enum FleetFault {
    Hub(HubError),
    /// Something that was given is wrong.
    Input(Box<Answer>),
    Other(anyhow::Error),
}

impl FleetFault {
    fn input(answer: Answer) -> Self {
        Self::Input(Box::new(answer))
    }

    fn usage(why: &str) -> Self {
        Self::input(refused(Exit::Usage, why))
    }
}

impl From<HubError> for FleetFault {
    fn from(error: HubError) -> Self {
        Self::Hub(error)
    }
}

impl From<anyhow::Error> for FleetFault {
    fn from(fault: anyhow::Error) -> Self {
        Self::Other(fault)
    }
}

/// Waits for something of the network.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work))
}

/// The word for a role.
pub(super) const fn role_word(role: Role) -> &'static str {
    match role {
        Role::Machine => "machine",
        Role::Approver => "approver",
        Role::Admin => "admin",
        Role::Hub => "hub",
    }
}

const fn role_of(role: MemberRole) -> Role {
    match role {
        MemberRole::Machine => Role::Machine,
        MemberRole::Approver => Role::Approver,
        MemberRole::Admin => Role::Admin,
    }
}

/// A package as it is written: `REGISTRY:NAME` or `REGISTRY:NAME@VERSION`. A scope begins with `@` too.
fn package_of(text: &str) -> Option<Package> {
    let (registry, rest) = text.split_once(':')?;
    let (name, version) = match rest.rsplit_once('@') {
        Some((name, version)) if !name.is_empty() => (name, Some(version.to_owned())),
        _ => (rest, None),
    };
    let is_known = ["npm", "pypi", "oci"].contains(&registry);
    let is_whole = !name.is_empty() && version.as_ref().is_none_or(|version| !version.is_empty());
    (is_known && is_whole).then(|| Package { registry: registry.to_owned(), name: name.to_owned(), version })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_read_with_its_scope_and_version() {
        let read = |text: &str| package_of(text).map(|package| (package.name, package.version));
        let name = |name: &str, version: Option<&str>| Some((name.to_owned(), version.map(str::to_owned)));
        assert_eq!(read("npm:@a/b"), name("@a/b", None));
        assert_eq!(read("npm:@a/b@1.2"), name("@a/b", Some("1.2")));
        assert_eq!(read("pypi:x@1"), name("x", Some("1")));
        for wrong in ["x", "npm:", "npm:x@", "gem:x", ":x", "npm"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
