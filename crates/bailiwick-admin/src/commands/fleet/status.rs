//! `bailiwick fleet status`: who this machine and this person are, whether a hub answers, and what leases are held.

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::member_link::{block_on, lease_directory};
use bailiwick_command::render::{escape, json as render_json, style};
use bailiwick_command::{facts, fleet_rules, moment};
use bailiwick_fleet::protocol::MemberRow;
use bailiwick_member::hub::{Hub, HubError};
use bailiwick_member::identity::{Identity, IdentityError};
use bailiwick_member::lease::{self, HeldLease};
use bailiwick_member::now_ms;
use serde_json::{Value, json};

use super::budget::unit_word;
use super::role_word;

/// What a user is told whose machine another one enrolled.
const RULES_ALONE: &str = "the machine of all users, enrolled by another one\n  the fleet's rules hold; what needs a hub is refused\n";

pub(super) fn run(format: AnswerFormat) -> anyhow::Result<Answer> {
    let directories = [facts::fleet_dir(), facts::fleet_person_dir()];
    let mut members = Vec::new();
    // Where all users are enrolled by another one: the rules hold, and what needs a hub does not go.
    let mut has_rules_alone = false;
    for directory in directories.into_iter().flatten() {
        match Identity::load(&directory) {
            Err(IdentityError::AnotherUsers(_)) if facts::is_fleet_of_host(&directory) => {
                has_rules_alone = true
            }
            loaded => {
                if let Some(identity) = loaded? {
                    let answer = hub_answer(&identity)?;
                    members.push((identity, answer));
                }
            }
        }
    }
    let leases = lease::held(&lease_directory()?)?;
    let text = match format {
        AnswerFormat::Json => render_json::document(&document(&members, has_rules_alone, &leases)),
        AnswerFormat::Text if members.is_empty() && !has_rules_alone => {
            "in no fleet: `bailiwick enroll --token-file FILE` joins one\n".to_owned()
        }
        AnswerFormat::Text => {
            let members = members.iter().map(|(identity, answer)| member(identity, answer.as_deref()));
            let copy = fleet_rules::copy_in_words()?;
            let rules = has_rules_alone.then(|| RULES_ALONE.to_owned());
            rules.into_iter().chain(members).chain([copy]).chain(leases.iter().map(lease_line)).collect()
        }
    };
    let is_cut_off = members.iter().any(|(_, answer)| answer.is_some());
    Ok(Answer::result(if is_cut_off { Exit::Found } else { Exit::Fine }, text))
}

/// Why no hub answers this member, if none does.
fn hub_answer(identity: &Identity) -> anyhow::Result<Option<String>> {
    let hub = Hub::new(identity)?;
    // A machine may not read this, and is told so only after the hub knew it.
    let asked: Result<Vec<MemberRow>, HubError> = block_on(hub.get("/v1/members?limit=1"))?;
    Ok(match asked {
        Ok(_) => None,
        Err(error) if error.code() == Some("role") => None,
        Err(error) => Some(error.to_string()),
    })
}

fn member(identity: &Identity, answer: Option<&str>) -> String {
    let enrolment = &identity.enrolment;
    let state = answer.map_or_else(
        || style::good("a hub answers"),
        |why| format!("{}: {}", style::error("no"), escape::line(why)),
    );
    let over = if identity.expires_ms <= now_ms() { ", which is over: enrol again" } else { "" };
    let authoritative =
        if enrolment.authoritative { "  the log may grant what this machine does not\n" } else { "" };
    format!(
        "{} `{}` of the fleet `{}`\n  {state}\n  certificate until {}{over}\n{authoritative}",
        role_word(enrolment.role),
        escape::line(&enrolment.name),
        escape::line(enrolment.log_key.name()),
        moment::utc(identity.expires_ms.saturating_mul(1000)),
    )
}

fn lease_line(lease: &HeldLease) -> String {
    format!(
        "lease of `{}`: {} of {} {} spent, until {}\n",
        escape::line(&lease.budget),
        lease.spent,
        lease.amount,
        unit_word(lease.unit),
        moment::utc(lease.expires_ms.saturating_mul(1000)),
    )
}

fn document(members: &[(Identity, Option<String>)], has_rules_alone: bool, leases: &[HeldLease]) -> Value {
    let member = |(identity, answer): &(Identity, Option<String>)| {
        let enrolment = &identity.enrolment;
        json!({
            "member": enrolment.name,
            "role": role_word(enrolment.role),
            "fleet": enrolment.log_key.name(),
            "hubs": enrolment.hub,
            "directory": identity.directory(),
            "authoritative": enrolment.authoritative,
            "certificate_until": moment::utc(identity.expires_ms.saturating_mul(1000)),
            "answers": answer.is_none(),
            "why": answer,
        })
    };
    json!({
        "format": "bailiwick.fleet-status/1",
        "members": members.iter().map(member).collect::<Vec<_>>(),
        "rules_alone": has_rules_alone,
        "leases": leases,
    })
}
