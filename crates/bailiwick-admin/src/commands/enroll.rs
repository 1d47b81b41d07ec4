//! `bailiwick enroll`: a machine or a person joins a fleet, renews its certificate, or leaves.
//!
//! The token is read from a file or stdin, never from the command line, where every process could see it. It says which hub, with which
//! key and authority, and which role; nothing else is trusted for that.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::member_link::{MemberLink, block_on};
use bailiwick_command::render::{escape, style};
use bailiwick_command::{facts, fleet_rules, moment, terminal};
use bailiwick_fleet::Hash;
use bailiwick_fleet::entry::Role;
use bailiwick_fleet::protocol::EnrolToken;
use bailiwick_journal::{SharedJournal, local_fingerprint};
use bailiwick_member::enrol::{EnrolWish, enrol, renew};
use bailiwick_member::identity::Identity;

use super::fleet::{lease, role_word};
use crate::args::fleet::{Enroll, Who};

/// The largest token that is read.
const MAX_TOKEN: u64 = 64 * 1024;

pub(super) fn run(args: &Enroll) -> anyhow::Result<Answer> {
    if args.renew {
        return renew_now(args.who);
    }
    if args.leave {
        return leave(args.who);
    }
    let token = match args.token_file.as_deref().map(token) {
        Some(Ok(token)) => token,
        Some(Err(why)) => return Ok(refused(Exit::Invalid, &why)),
        None => return Ok(refused(Exit::Usage, "`--token-file` is needed")),
    };
    let directory = directory_of(if token.role == Role::Machine { Who::Machine } else { Who::Person })?;
    if let Some(refusal) = enrolled_already(&directory, args.replace) {
        return Ok(refusal);
    }
    let journal_key = if token.role == Role::Machine { Some(journal_key()?) } else { None };
    let name = args.name.clone().unwrap_or_else(host_name);
    let authoritative = args.authoritative;
    let wish = EnrolWish { token: &token, hubs: args.hubs.clone(), name: &name, journal_key, authoritative };
    let enrolment = match block_on(enrol(&wish, &directory))? {
        Ok(enrolment) => enrolment,
        Err(why) => return Ok(refused(Exit::Found, &why.to_string())),
    };
    if enrolment.role == Role::Machine
        && let Err(why) = fleet_rules::refresh_once()
    {
        terminal::remark(&format!("{}: {}\n", style::warning("warning"), escape::line(&format!("{why:#}"))));
    }
    let ends = Identity::load(&directory)?.map_or(0, |identity| identity.expires_ms);
    let text = format!(
        "{}: {} `{}` of the fleet `{}`\n  in {}\n  certificate until {}, renewed by itself before\n",
        style::good("ok"),
        role_word(enrolment.role),
        escape::line(&enrolment.name),
        escape::line(enrolment.log_key.name()),
        escape::line(&directory.to_string_lossy()),
        moment::utc(ends.saturating_mul(1000)),
    );
    Ok(Answer::result(Exit::Fine, text))
}

/// Where the enrolment is, or will be.
fn directory_of(who: Who) -> anyhow::Result<PathBuf> {
    let directory = match who {
        Who::Machine => facts::fleet_dir(),
        Who::Person => facts::fleet_person_dir(),
    };
    directory.context("neither XDG_CONFIG_HOME nor HOME says where your settings are")
}

fn enrolled_already(directory: &Path, replaces: bool) -> Option<Answer> {
    let why = match Identity::load(directory) {
        Ok(None) => return None,
        _ if replaces => return None,
        Ok(Some(identity)) => {
            let (role, name) = (role_word(identity.enrolment.role), identity.enrolment.name);
            format!(
                "`{}` is enrolled already, as {role} `{name}`; `--replace` enrols anew",
                directory.display()
            )
        }
        Err(broken) => broken.to_string(),
    };
    Some(refused(Exit::Found, &why))
}

/// Reads a token; what is wrong with it never shows it.
fn token(path: &Path) -> Result<EnrolToken, String> {
    let mut text = String::new();
    let shown = if path == Path::new("-") { "stdin".to_owned() } else { format!("`{}`", path.display()) };
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(MAX_TOKEN).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(MAX_TOKEN).read_to_string(&mut text))
    };
    read.map_err(|fault| format!("cannot read the token from {shown}: {fault}"))?;
    EnrolToken::parse(&text).map_err(|why| format!("{shown}: {why}"))
}

/// The fingerprint of the journal's key, which is made if there is none.
fn journal_key() -> anyhow::Result<Hash> {
    let dir = facts::journal_dir().context("neither XDG_STATE_HOME nor HOME says where the journal is")?;
    drop(SharedJournal::open(&dir)?);
    let key = local_fingerprint(&dir)?.context("the journal has no key")?;
    Ok(Hash::from_bytes(*key.as_bytes()))
}

/// What the host calls itself, as far as a hub takes it.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain: String =
        name.trim().chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).take(100).collect();
    if plain.is_empty() { "machine".to_owned() } else { plain }
}

fn renew_now(who: Who) -> anyhow::Result<Answer> {
    let Some(identity) = Identity::load(&directory_of(who)?)? else { return Ok(not_enrolled()) };
    let text = match block_on(renew(&identity))? {
        Ok(ends) => {
            format!("{}: certificate until {}\n", style::good("ok"), moment::utc(ends.saturating_mul(1000)))
        }
        Err(why) => return Ok(refused(Exit::Found, &why.to_string())),
    };
    Ok(Answer::result(Exit::Fine, text))
}

fn leave(who: Who) -> anyhow::Result<Answer> {
    let directory = directory_of(who)?;
    let Some(identity) = Identity::load(&directory)? else { return Ok(not_enrolled()) };
    let (name, role) = (identity.enrolment.name.clone(), identity.enrolment.role);
    let mut unreturned = String::new();
    if role == Role::Machine
        && let Err(why) = lease::give_back_all(&MemberLink::new(identity)?)
    {
        unreturned =
            format!("  what is left of its leases counts as spent: {}\n", escape::line(&why.to_string()));
    }
    Identity::remove(&directory)?;
    let text = format!(
        "{}: left the fleet; the key is gone\n{unreturned}  an admin ends its certificate with `bailiwick fleet revoke machine {}`\n",
        style::good("ok"),
        escape::line(&name),
    );
    Ok(Answer::result(Exit::Fine, text))
}

fn not_enrolled() -> Answer {
    refused(Exit::Found, "nothing is enrolled here: `bailiwick enroll --token-file FILE`")
}
