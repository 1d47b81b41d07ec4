//! `bailiwick fleet publish`: rules, grants and reviewed surfaces for the fleet's log.
//!
//! What machines could not read is not appended: manifests and guardrails are read here as every machine will read them.

use std::path::Path;

use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::input;
use bailiwick_command::member_link::{MemberLink, block_on, package_of};
use bailiwick_command::render::{escape, style};
use bailiwick_fleet::Hash;
use bailiwick_fleet::entry::{Bundle, Entry, EntryBody, Grant, Pin, Rule, RuleFormat, Scope};
use bailiwick_fleet::protocol::Appended;
use bailiwick_member::{draw_id, now_ms};

use super::FleetFault;
use crate::args::fleet::{Publish, Published, ScopeOptions};

pub(super) fn run(link: &MemberLink, args: &Publish) -> Result<Answer, FleetFault> {
    let (what, body) = match &args.what {
        Published::Bundle { name, manifests, guardrails, end, scope } => {
            if !end && manifests.is_empty() && guardrails.is_empty() {
                return Err(FleetFault::usage(
                    "a bundle has a `--manifest` or `--guardrails`, or `--end` ends it",
                ));
            }
            let mut rules = rules(manifests, RuleFormat::Manifest)?;
            rules.extend(self::rules(guardrails, RuleFormat::Guardrails)?);
            let bundle = Bundle { name: name.clone(), scope: scope_of(scope), rules };
            (format!("the bundle `{name}`"), EntryBody::Bundle(bundle))
        }
        Published::Grant { id, server, file, expires, max_stale, scope } => {
            let (source, _) = input::grant(file).map_err(|fault| FleetFault::input(fault.refusal()))?;
            let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            let grant = Grant {
                id: id.clone(),
                scope: scope_of(scope),
                server: server.clone(),
                grant: source.text().to_owned(),
                expires_ms: expires.map(|time| now_ms().saturating_add(ms(time.0))),
                max_stale_s: max_stale.map(|time| time.0.as_secs()),
            };
            (format!("the grant `{id}`"), EntryBody::Grant(grant))
        }
        Published::Pin { server, surface, package } => {
            let package = package.as_deref().map(|text| {
                package_of(text).ok_or_else(|| {
                    FleetFault::usage("a package is written npm:NAME[@VERSION], pypi:… or oci:…")
                })
            });
            let surface = Hash::from_bytes(*surface.as_bytes());
            let pin = Pin { server: server.clone(), package: package.transpose()?, surface };
            (format!("what `{server}` says of itself"), EntryBody::Pin(pin))
        }
    };
    let index = append(link, body)?;
    let text = format!("{}: {} is entry {index} of the log\n", style::good("ok"), escape::line(&what));
    Ok(Answer::result(Exit::Fine, text))
}

/// Appends an entry once, whichever hub answers.
pub(super) fn append(link: &MemberLink, body: EntryBody) -> Result<u64, FleetFault> {
    // The hub writes the time and the member: about as many bytes as these.
    Entry::new(now_ms(), &link.identity.enrolment.name, body.clone())
        .to_bytes()
        .map_err(|why| FleetFault::input(refused(Exit::Invalid, &why.to_string())))?;
    let key = draw_id().map_err(|why| FleetFault::Other(why.into()))?;
    let appended: Appended = block_on(link.hub.post_once("/v1/entries", &key, &body))??;
    Ok(appended.index)
}

/// `NAME=FILE` each.
fn rules(given: &[String], format: RuleFormat) -> Result<Vec<Rule>, FleetFault> {
    let rule = |text: &String| {
        let (name, file) =
            text.split_once('=').filter(|(name, file)| !name.is_empty() && !file.is_empty()).ok_or_else(
                || FleetFault::usage("write NAME=FILE: the server, or a name for the guardrails"),
            )?;
        let invalid = |fault: input::InputError| FleetFault::input(fault.refusal());
        let source = match format {
            RuleFormat::Manifest => input::manifest(Path::new(file)).map_err(invalid)?.0,
            RuleFormat::Guardrails => guardrails(Path::new(file))?,
        };
        Ok(Rule { format, name: name.to_owned(), text: source.text().to_owned() })
    };
    given.iter().map(rule).collect()
}

fn guardrails(file: &Path) -> Result<bailiwick_policy::finding::Source, FleetFault> {
    let source = input::read(file).map_err(|fault| FleetFault::input(fault.refusal()))?;
    match bailiwick_guardrails::compile_text(source.text()) {
        Ok(_) => Ok(source),
        Err(findings) => Err(FleetFault::input(input::InputError::Wrong(source, findings).refusal())),
    }
}

fn scope_of(given: &ScopeOptions) -> Scope {
    match (given.machines.is_empty(), given.labels.is_empty()) {
        (false, _) => Scope::Machines(given.machines.iter().cloned().collect()),
        (true, false) => Scope::Labels(given.labels.iter().cloned().collect()),
        (true, true) => Scope::Every,
    }
}
