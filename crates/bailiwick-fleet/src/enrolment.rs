//! `fleet.toml`: which fleet a machine or a person belongs to, where the log is, and what it is verified with.
//!
//! `bailiwick enroll` writes it, everything else reads it. Beside it lie [`CERTIFICATE_FILE`], [`KEY_FILE`] and [`AUTHORITY_FILE`].
//! A machine's is in `/etc/bailiwick/fleet/` if that directory is there, else in `fleet` beside the user's settings; a person's (an approver or
//! an admin) is in `fleet/person` beside the user's settings and narrows nothing on the machine.
//!
//! Fails closed when: a field is missing, unknown or of another kind, a key is not one, or fewer witnesses are named than have to sign.

use std::fmt::Write as _;

use bailiwick_manifest::document::{self, Fields, Node};
use bailiwick_manifest::units::duration_ms;
use bailiwick_policy::finding::{Code, Collector, Finding, Findings};

use crate::checkpoint::Trust;
use crate::entry::Role;
use crate::note::{KeyUse, NoteKey};
use crate::state::DEFAULT_MAX_STALE_S;

/// The name of the file.
pub const ENROLMENT_FILE: &str = "fleet.toml";
/// The member's certificate chain, PEM.
pub const CERTIFICATE_FILE: &str = "member.pem";
/// The member's private key, PEM, for its owner alone.
pub const KEY_FILE: &str = "member.key";
/// The certificate authority that the hub's and the log's TLS certificates lead to, PEM; the roots of the host if it is not there.
pub const AUTHORITY_FILE: &str = "hub.pem";

/// How often the copy of the log is refreshed unless the file says otherwise, in milliseconds.
pub const DEFAULT_REFRESH_MS: u64 = 5_000;

/// The largest `fleet.toml` that is read.
pub const MAX_ENROLMENT: u64 = 256 * 1024;

/// What `fleet.toml` says.
///
/// # Examples
/// ```
/// use bailiwick_fleet::enrolment::Enrolment;
/// use bailiwick_fleet::note::NoteSigner;
///
/// let key = NoteSigner::new("fleet.example", &[7; 32])?.verifier();
/// let enrolment = Enrolment::machine("0a1b", "https://hub.example", "https://log.example", key);
/// assert_eq!(Enrolment::parse(&enrolment.to_text())?, enrolment);
/// assert!(Enrolment::parse("name = '0a1b'\n").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enrolment {
    /// The member's id, as the hub gave it. The log names a machine by it.
    pub name: String,
    /// What the member may do. Only a machine's enrolment narrows what runs.
    pub role: Role,
    /// URLs of hubs.
    pub hub: Vec<String>,
    /// Base URLs of the log's files, in the order in which they are asked.
    pub log: Vec<String>,
    /// The key of the hub that signs checkpoints; its name is the origin of the log.
    pub log_key: NoteKey,
    /// Keys of witnesses.
    pub witnesses: Vec<NoteKey>,
    /// How many witnesses sign a checkpoint.
    pub quorum: usize,
    /// How old the last look at the log may be before another is due, in milliseconds.
    pub refresh_ms: u64,
    /// Whether grants of the log count. Without it, nothing of the log grants anything.
    pub authoritative: bool,
    /// How old the copy of the log may be for a grant that says nothing of it, in seconds.
    pub max_stale_s: u64,
}

impl Enrolment {
    /// A machine with the defaults.
    #[must_use]
    pub fn machine(name: &str, hub: &str, log: &str, log_key: NoteKey) -> Self {
        Self {
            name: name.to_owned(),
            role: Role::Machine,
            hub: vec![hub.to_owned()],
            log: vec![log.to_owned()],
            log_key,
            witnesses: Vec::new(),
            quorum: 0,
            refresh_ms: DEFAULT_REFRESH_MS,
            authoritative: false,
            max_stale_s: DEFAULT_MAX_STALE_S,
        }
    }

    /// Reads `fleet.toml`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Findings> {
        let node = document::parse(text)?;
        let mut found = Collector::default();
        let mut fields = Fields::from_node(&node, "fleet.toml", CODE)?.closed();
        let name = keep_required(&mut fields, "name", &mut found, plain_text);
        let role = keep_optional(&mut fields, "role", &mut found, role).unwrap_or(Role::Machine);
        let hub = keep_optional(&mut fields, "hub", &mut found, |node| each(node, url)).unwrap_or_default();
        let log = keep_required(&mut fields, "log", &mut found, |node| each(node, url));
        let log_key = keep_required(&mut fields, "log_key", &mut found, |node| key(node, KeyUse::Note));
        let witness = |node: &Node<'_>| key(node, KeyUse::Cosignature);
        let witnesses = keep_optional(&mut fields, "witnesses", &mut found, |node| each(node, witness));
        let quorum = keep_optional(&mut fields, "quorum", &mut found, count).unwrap_or_default();
        let refresh_ms = keep_optional(&mut fields, "refresh", &mut found, duration);
        let authoritative = keep_optional(&mut fields, "authoritative", &mut found, |node| node.flag(CODE));
        let max_stale = keep_optional(&mut fields, "max_stale", &mut found, duration);
        fields.finish(CODE, &mut found);
        let witnesses = witnesses.unwrap_or_default();
        if quorum > witnesses.len() {
            let message = format!("{quorum} witnesses have to sign and {} are named", witnesses.len());
            found.push(Finding::new(CODE, message).at(node.span).help("name each in `witnesses`"));
        }
        if log.as_ref().is_some_and(Vec::is_empty) {
            found.push(
                Finding::new(CODE, "`log` is empty").at(node.span).help("name where the log's files are"),
            );
        }
        let read = name.zip(log).zip(log_key).map(|((name, log), log_key)| Self {
            name,
            role,
            hub,
            log,
            log_key,
            witnesses,
            quorum,
            refresh_ms: refresh_ms.unwrap_or(DEFAULT_REFRESH_MS),
            authoritative: authoritative.unwrap_or_default(),
            max_stale_s: max_stale.map_or(DEFAULT_MAX_STALE_S, |ms| ms / 1000),
        });
        match found.finish(read)? {
            Some(read) => Ok(read),
            // Every field that is missing has left a finding, so this is not reached.
            None => Err(Finding::new(CODE, "fleet.toml is not complete").at(node.span).into()),
        }
    }

    /// The text of `fleet.toml`.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::from("# Written by `bailiwick enroll`.\n");
        let list = |items: &[String]| items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", ");
        let witnesses: Vec<String> = self.witnesses.iter().map(ToString::to_string).collect();
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "name = {}\nrole = {}", quoted(&self.name), quoted(role_word(self.role)));
        let _ = writeln!(text, "hub = [{}]\nlog = [{}]", list(&self.hub), list(&self.log));
        let _ = writeln!(text, "log_key = {}", quoted(&self.log_key.to_string()));
        let _ = writeln!(text, "witnesses = [{}]\nquorum = {}", list(&witnesses), self.quorum);
        let _ = writeln!(text, "refresh = \"{}ms\"\nauthoritative = {}", self.refresh_ms, self.authoritative);
        let _ = writeln!(text, "max_stale = \"{}s\"", self.max_stale_s);
        text
    }

    /// Whose signatures a checkpoint needs, before the log itself said anything of the hub's keys.
    #[must_use]
    pub fn trust(&self) -> Trust {
        Trust {
            origin: self.log_key.name().to_owned(),
            hub_keys: vec![self.log_key.clone()],
            witnesses: self.witnesses.clone(),
            quorum: self.quorum,
        }
    }
}

const CODE: Code = Code::CaveatsShape;

const ROLES: [(&str, Role); 3] =
    [("machine", Role::Machine), ("approver", Role::Approver), ("admin", Role::Admin)];

fn keep_required<T>(
    fields: &mut Fields<'_, '_>,
    key: &'static str,
    found: &mut Collector,
    read: impl Fn(&Node<'_>) -> Result<T, Finding>,
) -> Option<T> {
    let node = found.keep(fields.required(key, CODE))?;
    found.keep(read(node))
}

fn keep_optional<T>(
    fields: &mut Fields<'_, '_>,
    key: &'static str,
    found: &mut Collector,
    read: impl Fn(&Node<'_>) -> Result<T, Finding>,
) -> Option<T> {
    let node = fields.optional(key)?;
    found.keep(read(node))
}

fn each<T>(node: &Node<'_>, read: impl Fn(&Node<'_>) -> Result<T, Finding>) -> Result<Vec<T>, Finding> {
    node.list(CODE)?.iter().map(read).collect()
}

fn plain_text(node: &Node<'_>) -> Result<String, Finding> {
    let text = node.text(CODE)?;
    let is_plain = !text.is_empty() && text.len() <= 128 && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain { Ok(text.to_owned()) } else { Err(node.expected(CODE, "a name without spaces")) }
}

fn url(node: &Node<'_>) -> Result<String, Finding> {
    let text = node.text(CODE)?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_clean =
        text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains(['@', '#', '?', '"', '\\']);
    let has_host = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', ':']));
    if is_clean && has_host {
        Ok(text.trim_end_matches('/').to_owned())
    } else {
        Err(node.expected(CODE, "a URL that starts with `https://`, without a user, query or fragment"))
    }
}

fn key(node: &Node<'_>, key_use: KeyUse) -> Result<NoteKey, Finding> {
    let wrong =
        |why: String| Finding::new(CODE, why).at(node.span).help("write NAME+ID+KEY, as the hub prints it");
    let key = NoteKey::parse(node.text(CODE)?).map_err(|why| wrong(why.to_string()))?;
    if key.key_use() == key_use {
        Ok(key)
    } else {
        Err(wrong(format!("`{}` is not a key of that kind", key.name())))
    }
}

fn role(node: &Node<'_>) -> Result<Role, Finding> {
    let word = node.text(CODE)?;
    let known = ROLES.into_iter().find(|(known, _)| *known == word).map(|(_, role)| role);
    known.ok_or_else(|| node.expected(CODE, "`\"machine\"`, `\"approver\"` or `\"admin\"`"))
}

fn role_word(role: Role) -> &'static str {
    ROLES.into_iter().find(|(_, known)| *known == role).map_or("machine", |(word, _)| word)
}

fn duration(node: &Node<'_>) -> Result<u64, Finding> {
    duration_ms(node.text(CODE)?).ok_or_else(|| node.expected(CODE, "a duration as `\"5s\"` or `\"15m\"`"))
}

fn count(node: &Node<'_>) -> Result<usize, Finding> {
    usize::try_from(node.whole(CODE)?).map_err(|_| node.expected(CODE, "a small number"))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests;
