//! Log entries and their canonical bytes: JSON with sorted keys (RFC 8785) and a version.
//!
//! [`Entry::parse`] takes only what [`Entry::to_bytes`] writes: an unknown version, an unknown kind, an unknown or repeated key and another
//! spelling of the same value are refused, so that two readers cannot understand one entry differently.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::Hash;
use crate::tile::MAX_ENTRY;

/// The version of the form.
pub const ENTRY_VERSION: u64 = 1;

/// The largest number in an entry: more is not exact in every reader of JSON.
const MAX_NUMBER: u64 = (1 << 53) - 1;

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The version of the form: [`ENTRY_VERSION`].
    pub version: u64,
    /// When it was appended, in milliseconds since 1970.
    pub time_ms: u64,
    /// The member that asked for it.
    pub by: String,
    /// What it says.
    pub body: EntryBody,
}

/// What an entry says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EntryBody {
    /// Rules for servers: manifests and guardrails. A later bundle of the same name replaces it.
    Bundle(Bundle),
    /// A grant. A later grant of the same id replaces it.
    Grant(Grant),
    /// What a server says of itself, as it was reviewed.
    Pin(Pin),
    /// Something is not honoured any more.
    Revocation(Revocation),
    /// A revocation of a package version, a server or everything ends.
    Lift(Lift),
    /// A member's key is added or removed.
    MemberKey(MemberKey),
    /// Journal heads of machines.
    Heads(HeadBatch),
}

/// Which machines something is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Scope {
    /// All machines.
    Every,
    /// These machines, by id.
    Machines(BTreeSet<String>),
    /// Machines with one of these labels.
    Labels(BTreeSet<String>),
}

/// Rules for servers. They only narrow what is local.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// Its name.
    pub name: String,
    /// Whom it is for.
    pub scope: Scope,
    /// Its rules. An empty list ends the bundle of this name.
    pub rules: Vec<Rule>,
}

/// One file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What it is.
    pub format: RuleFormat,
    /// The server that a manifest is for, or the name of the guardrails file.
    pub name: String,
    /// Its text, as it would stand in a file.
    pub text: String,
}

/// What the text of a rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleFormat {
    /// A manifest: a ceiling for what a server may be granted.
    Manifest,
    /// A guardrails file: rules that refuse or ask.
    Guardrails,
}

/// A grant that comes from the log. It counts on machines that were enrolled with `--authoritative`, and ends when it expires, is revoked, or
/// the copy of the log is too old.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Its id.
    pub id: String,
    /// Whom it is for.
    pub scope: Scope,
    /// The server it is for.
    pub server: String,
    /// What is granted: the text of a manifest or of a grant file.
    pub grant: String,
    /// When it ends, in milliseconds since 1970; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// How old the copy of the log may be, in seconds; 15 minutes if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_stale_s: Option<u64>,
}

/// A package at one version, or at any.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Where it comes from: `npm`, `pypi` or `oci`.
    pub registry: String,
    /// Its name.
    pub name: String,
    /// Its version; every version if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// What a server says of itself, as it was reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The server.
    pub server: String,
    /// Its package, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<Package>,
    /// The digest of its surface, see [`surface_digest`].
    pub surface: Hash,
}

/// Something is not honoured any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revocation {
    /// Its id.
    pub id: String,
    /// What.
    pub target: Target,
    /// Why, for people.
    pub reason: String,
}

/// What a revocation is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Target {
    /// A grant.
    Grant {
        /// Its id.
        grant: String,
    },
    /// A token, by the SHA-256 of its bytes.
    Token {
        /// The SHA-256.
        sha256: Hash,
    },
    /// A machine, for good.
    Machine {
        /// Its id.
        machine: String,
    },
    /// A package.
    Package(Package),
    /// What a server says of itself.
    Pin {
        /// The digest of the surface.
        surface: Hash,
    },
    /// A server by its name.
    Server {
        /// The name.
        server: String,
    },
    /// Every server on every machine.
    Everything,
}

/// A revocation ends. One of a grant, a token or a machine never does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lift {
    /// The revocation.
    pub revocation: String,
    /// Why, for people.
    pub reason: String,
}

/// What a member may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Ask for approvals and leases, send heads and its inventory.
    Machine,
    /// Answer approvals.
    Approver,
    /// Change rules, revoke, enrol.
    Admin,
    /// Sign checkpoints.
    Hub,
}

/// A member's key is added or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberKey {
    /// The member: a machine's id, a person's name, or the name of the hub's note key.
    pub member: String,
    /// What it may do.
    pub role: Role,
    /// The key: 64 hexadecimal digits. The hub's is its Ed25519 key, a machine's that of its journal, others' the SHA-256 of the certificate's public key.
    pub key: Hash,
    /// Labels of a machine.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<String>,
    /// Whether it is removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

/// Heads of journals that were gathered for a while. They stand in a file of their own, so that not every machine reads all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadBatch {
    /// The SHA-256 of the file `heads/SHA256`, see [`encode_heads`].
    pub sha256: Hash,
    /// How many heads it has.
    pub count: u64,
    /// How many bytes it has.
    pub bytes: u64,
}

/// The head of one session of one machine's journal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalHead {
    /// The machine.
    pub machine: String,
    /// The session of its journal.
    pub session: String,
    /// The number of the session's last sealed line.
    pub seq: u64,
    /// The hash of that line.
    pub hash: Hash,
    /// The fingerprint of the journal's key.
    pub key: Hash,
    /// When the machine read it, in milliseconds since 1970.
    pub time_ms: u64,
}

/// Why bytes are no entry, or an entry has no bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// It has a version that is not known here.
    #[error("entry version {0} is not known; this program reads version {ENTRY_VERSION}: upgrade it")]
    Version(u64),
    /// It is not an entry.
    #[error("not an entry: {0}")]
    Form(String),
    /// It says the same as an entry, in other bytes.
    #[error("the entry is not in its canonical form")]
    NotCanonical,
    /// It has more bytes than fit.
    #[error("the entry has {0} bytes; at most {MAX_ENTRY} fit: split the bundle")]
    TooLarge(usize),
    /// A number that not every reader reads alike.
    #[error("a number of the entry is larger than 2^53 - 1")]
    Number,
}

#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

impl Entry {
    /// An entry of the version that is written here.
    #[must_use]
    pub fn new(time_ms: u64, by: &str, body: EntryBody) -> Self {
        Self { version: ENTRY_VERSION, time_ms, by: by.to_owned(), body }
    }

    /// Its canonical bytes.
    ///
    /// # Errors
    /// If they do not fit, or a number is too large.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EntryError> {
        let value = serde_json::to_value(self).map_err(|why| EntryError::Form(why.to_string()))?;
        if has_large_number(&value) {
            return Err(EntryError::Number);
        }
        let bytes = canonical(&value)?;
        if bytes.len() > MAX_ENTRY { Err(EntryError::TooLarge(bytes.len())) } else { Ok(bytes) }
    }

    /// Reads canonical bytes.
    ///
    /// # Errors
    /// If they are not exactly what [`Entry::to_bytes`] writes.
    pub fn parse(bytes: &[u8]) -> Result<Self, EntryError> {
        if bytes.len() > MAX_ENTRY {
            return Err(EntryError::TooLarge(bytes.len()));
        }
        let wrong = |why: serde_json::Error| EntryError::Form(why.to_string());
        let Versioned { version } = serde_json::from_slice(bytes).map_err(wrong)?;
        if version != ENTRY_VERSION {
            return Err(EntryError::Version(version));
        }
        let entry: Self = serde_json::from_slice(bytes).map_err(wrong)?;
        if entry.to_bytes()? == bytes { Ok(entry) } else { Err(EntryError::NotCanonical) }
    }
}

impl Scope {
    /// Whether a machine with this id and these labels is meant.
    #[must_use]
    pub fn covers(&self, machine: &str, labels: &BTreeSet<String>) -> bool {
        match self {
            Self::Every => true,
            Self::Machines(machines) => machines.contains(machine),
            Self::Labels(wanted) => !wanted.is_disjoint(labels),
        }
    }
}

impl Package {
    /// Whether this names the other: the same package, at the same version or at any.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.registry == other.registry
            && self.name == other.name
            && (self.version.is_none() || self.version == other.version)
    }
}

impl std::fmt::Display for Package {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.registry, self.name)?;
        self.version.as_ref().map_or(Ok(()), |version| write!(f, "@{version}"))
    }
}

/// The digest of what a server says of itself: its instructions and the definition of each of its tools, in canonical JSON. Lists of prompts and
/// resources grow while a server runs; they are no part of it.
///
/// # Errors
/// If a definition has no canonical form.
pub fn surface_digest(
    instructions: Option<&str>,
    tools: &BTreeMap<String, serde_json::Value>,
) -> Result<Hash, EntryError> {
    Ok(Hash::sha256(&canonical(&serde_json::json!({ "instructions": instructions, "tools": tools }))?))
}

/// The bytes of a file of heads: canonical JSON, one head a line, sorted, each once.
///
/// # Errors
/// If a number is too large.
pub fn encode_heads(heads: &BTreeSet<JournalHead>) -> Result<Vec<u8>, EntryError> {
    let mut bytes = Vec::new();
    for head in heads {
        let value = serde_json::to_value(head).map_err(|why| EntryError::Form(why.to_string()))?;
        if has_large_number(&value) {
            return Err(EntryError::Number);
        }
        bytes.extend(canonical(&value)?);
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// Reads a file of heads that an entry names.
///
/// # Errors
/// If it is another file, or not one of heads.
pub fn decode_heads(batch: &HeadBatch, bytes: &[u8]) -> Result<BTreeSet<JournalHead>, EntryError> {
    if Hash::sha256(bytes) != batch.sha256 {
        return Err(EntryError::Form(format!(
            "the file of heads is not the one with the SHA-256 {}",
            batch.sha256
        )));
    }
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let heads = lines.map(serde_json::from_slice).collect::<Result<BTreeSet<JournalHead>, _>>();
    let heads = heads.map_err(|why| EntryError::Form(why.to_string()))?;
    let is_counted = u64::try_from(heads.len()).is_ok_and(|count| count == batch.count);
    if is_counted && encode_heads(&heads)? == bytes { Ok(heads) } else { Err(EntryError::NotCanonical) }
}

fn canonical(value: &serde_json::Value) -> Result<Vec<u8>, EntryError> {
    serde_json_canonicalizer::to_vec(value).map_err(|why| EntryError::Form(why.to_string()))
}

fn has_large_number(value: &serde_json::Value) -> bool {
    use serde_json::Value;
    match value {
        Value::Number(number) => number.as_u64().is_none_or(|number| number > MAX_NUMBER),
        Value::Array(items) => items.iter().any(has_large_number),
        Value::Object(fields) => fields.values().any(has_large_number),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests;
