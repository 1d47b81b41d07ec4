//! `bailiwick fleet revoke` and `lift`: what is not honoured any more, on every machine.

use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::member_link::{MemberLink, package_of};
use bailiwick_command::render::{escape, style};
use bailiwick_command::terminal;
use bailiwick_fleet::entry::{EntryBody, Lift as LiftEntry, Revocation, Target};
use bailiwick_member::draw_id;

use super::FleetFault;
use super::publish::append;
use crate::args::fleet::{Lift, Revoke, RevokedKind};

pub(super) fn run(link: &MemberLink, args: &Revoke) -> Result<Answer, FleetFault> {
    let target = target(args)?;
    let question = format!("Revoke {} on every machine it concerns?", escape::line(&in_words(args)));
    if !args.yes && terminal::confirm(&question)? != Some(true) {
        return Ok(refused(Exit::Found, "not revoked: confirm at a terminal, or say --yes"));
    }
    let id = draw_id().map_err(|why| FleetFault::Other(why.into()))?;
    let revocation = Revocation { id: id.clone(), target, reason: args.reason.clone() };
    let index = append(link, EntryBody::Revocation(revocation))?;
    let text = format!(
        "{}: revoked {} with entry {index}\n  {id}\n",
        style::good("ok"),
        escape::line(&in_words(args))
    );
    Ok(Answer::result(Exit::Fine, text))
}

pub(super) fn lift(link: &MemberLink, args: &Lift) -> Result<Answer, FleetFault> {
    let body = LiftEntry { revocation: args.revocation.clone(), reason: args.reason.clone() };
    let index = append(link, EntryBody::Lift(body))?;
    let text =
        format!("{}: lifted {} with entry {index}\n", style::good("ok"), escape::line(&args.revocation));
    Ok(Answer::result(Exit::Fine, text))
}

fn target(args: &Revoke) -> Result<Target, FleetFault> {
    let what = match (args.kind, &args.what) {
        (RevokedKind::Everything, None) => return Ok(Target::Everything),
        (RevokedKind::Everything, Some(_)) => {
            return Err(FleetFault::usage("`everything` has nothing behind it: it ends every server"));
        }
        (_, None) => {
            return Err(FleetFault::usage("say which: `bailiwick fleet revoke KIND WHICH --reason TEXT`"));
        }
        (_, Some(what)) => what.clone(),
    };
    let hash = || what.parse().map_err(|_| FleetFault::usage("a SHA-256 of 64 hexadecimal digits is needed"));
    Ok(match args.kind {
        RevokedKind::Grant => Target::Grant { grant: what },
        RevokedKind::Token => Target::Token { sha256: hash()? },
        RevokedKind::Machine => Target::Machine { machine: what },
        RevokedKind::Pin => Target::Pin { surface: hash()? },
        RevokedKind::Server => Target::Server { server: what },
        RevokedKind::Everything => Target::Everything,
        RevokedKind::Package => Target::Package(package_of(&what).ok_or_else(|| {
            FleetFault::usage("a package is written npm:NAME, pypi:NAME or oci:NAME, with @VERSION behind it for one version")
        })?),
    })
}

fn in_words(args: &Revoke) -> String {
    let kind = match args.kind {
        RevokedKind::Grant => "the grant",
        RevokedKind::Token => "the token",
        RevokedKind::Machine => "the machine",
        RevokedKind::Package => "the package",
        RevokedKind::Pin => "the surface",
        RevokedKind::Server => "the server",
        RevokedKind::Everything => return "everything".to_owned(),
    };
    format!("{kind} `{}`", args.what.as_deref().unwrap_or_default())
}
