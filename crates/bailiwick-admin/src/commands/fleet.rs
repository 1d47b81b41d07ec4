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

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::facts;
use bailiwick_command::member_link::{MemberLink, block_on};
use bailiwick_fleet::entry::Role;
use bailiwick_member::enrol::{is_renewal_due, renew};
use bailiwick_member::hub::HubError;
use bailiwick_member::identity::Identity;
use bailiwick_member::now_ms;

use crate::args::fleet::{Fleet, FleetCommand, MemberRole};

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
