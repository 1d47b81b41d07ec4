//! Reading one line, strictly: the decoder accepts the canonical encoding of a known record and nothing else.
//!
//! Lines are hostile: anyone may have edited the file. Members must stand in order (so none is there twice),
//! every key and kind must be known, nesting is one level and only in `enforcement`, integers and strings have one
//! spelling, and a line has a greatest length. [`Line`] borrows from the text, so that verifying costs no
//! allocation. Whether the hash holds and the line follows another is [`Chain`](super::Chain)'s question.
mod cursor;
#[cfg(test)]
mod tests;

use super::FIRST_VERSION;
use super::event::is_token;
use super::{Decision, Digest, Enforcement, Event, MAX_LINE, Point, Record, RecordBody, RecordKind};
use super::{SEAL_DOMAIN, Seal, SealKind, SessionId, Signature, Text, VERSION, encode};
use cursor::Cursor;

/// Why a line is not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Longer than [`MAX_LINE`].
    #[error("the line is longer than {MAX_LINE} bytes")]
    TooLong,
    /// Not UTF-8.
    #[error("the line is not UTF-8")]
    NotUtf8,
    /// No `hash` member at the very end.
    #[error("the line does not end in its hash")]
    NoHash,
    /// Not canonical JSON.
    #[error("not canonical JSON at byte {0}")]
    NotCanonical(usize),
    /// A key that no record has.
    #[error("unknown field before byte {0}")]
    UnknownField(usize),
    /// A key out of order or there twice.
    #[error("field out of order or there twice before byte {0}")]
    FieldOrder(usize),
    /// A value its field cannot have.
    #[error("a value its field cannot have before byte {0}")]
    BadValue(usize),
    /// A field that must be there is not.
    #[error("field `{0}` is missing")]
    Missing(&'static str),
    /// Fields that this kind of record does not have.
    #[error("a field that this kind of record does not have")]
    Misplaced,
    /// A version we do not know.
    #[error("version {0} is not known")]
    Version(u64),
}

/// One line that has the right form. Nothing is known yet about its hash.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    body: &'a [u8],
    hash: Digest,
    fields: Fields<'a>,
    what: What,
    place: Standing<'a>,
    version: u64,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Event(RecordKind),
    Seal(SealKind, Digest, Signature),
}

#[derive(Debug, Clone, Copy)]
struct Standing<'a> {
    session: &'a str,
    seq: u64,
    prev: Digest,
    time: u64,
}

/// The members as they stand in the text; strings are still escaped.
#[derive(Debug, Clone, Default)]
struct Fields<'a> {
    agent: Option<&'a str>,
    args: Option<&'a str>,
    args_digest: Option<Digest>,
    capability: Option<&'a str>,
    code: Option<&'a str>,
    decision: Option<Decision>,
    duration_us: Option<u64>,
    enforcement: Option<&'a str>,
    head: Option<Digest>,
    head_seq: Option<u64>,
    key: Option<Digest>,
    kind: Option<&'a str>,
    origin: Option<&'a str>,
    parent: Option<u64>,
    plan_hash: Option<Digest>,
    policy_hash: Option<Digest>,
    prev: Option<Digest>,
    reason: Option<&'a str>,
    result: Option<&'a str>,
    risk: Option<&'a str>,
    seq: Option<u64>,
    server: Option<&'a str>,
    session: Option<&'a str>,
    sig: Option<Signature>,
    time: Option<u64>,
    tool: Option<&'a str>,
    used_declared_capability: Option<bool>,
    v: Option<u64>,
}

/// `,"hash":"` and 64 digits and `"}`.
const HASH_MEMBER: usize = 9 + 64 + 2;

impl<'a> Line<'a> {
    /// Reads one line, given without its newline.
    pub fn parse(line: &'a [u8]) -> Result<Self, LineError> {
        if line.len() > MAX_LINE {
            return Err(LineError::TooLong);
        }
        let text = std::str::from_utf8(line).map_err(|_| LineError::NotUtf8)?;
        let (body, hash) = split_hash(text).ok_or(LineError::NoHash)?;
        let fields = Fields::parse(body)?;
        let version = fields.v.ok_or(LineError::Missing("v"))?;
        if !(FIRST_VERSION..=VERSION).contains(&version) {
            return Err(LineError::Version(version));
        }
        let what = fields.what()?;
        if version == FIRST_VERSION
            && (fields.has_second_version() || matches!(what, What::Event(RecordKind::SandboxEnded)))
        {
            return Err(LineError::Misplaced);
        }
        let place = fields.standing()?;
        Ok(Self { body: body.as_bytes(), hash, fields, what, place, version })
    }

    /// Its place in the chain.
    pub const fn seq(&self) -> u64 {
        self.place.seq
    }

    /// The session it names.
    pub const fn session(&self) -> &'a str {
        self.place.session
    }

    /// The hash of the line before it, as it says.
    pub const fn prev(&self) -> &Digest {
        &self.place.prev
    }

    /// Its own hash, as it says.
    pub const fn hash(&self) -> &Digest {
        &self.hash
    }

    /// When it was written, in microseconds since 1970, as it says.
    pub const fn time(&self) -> u64 {
        self.place.time
    }

    /// What was decided, as it says.
    pub const fn decision(&self) -> Option<Decision> {
        self.fields.decision
    }

    /// The kind of event, unless it is a seal.
    pub const fn kind(&self) -> Option<RecordKind> {
        match self.what {
            What::Event(kind) => Some(kind),
            What::Seal(..) => None,
        }
    }

    /// The kind of seal, unless it is an event.
    pub const fn seal_kind(&self) -> Option<SealKind> {
        match self.what {
            What::Event(_) => None,
            What::Seal(kind, ..) => Some(kind),
        }
    }

    /// For a seal: its public key, as it says.
    pub const fn key(&self) -> Option<&Digest> {
        self.fields.key.as_ref()
    }

    /// Whether the tool it names is `tool`.
    pub fn is_for_tool(&self, tool: &str) -> bool {
        self.fields
            .tool
            .is_some_and(|raw| if raw.contains('\\') { unescape(raw) == tool } else { raw == tool })
    }

    /// Whether the hash is that of the rest of the line.
    pub fn hash_holds(&self) -> bool {
        Digest::sha256_of_parts(&[self.body, b"}"]) == self.hash
    }

    /// For a seal: its public key, its signature, and the bytes that were signed.
    pub fn signed_bytes(&self) -> Option<(Digest, Signature, Vec<u8>)> {
        let What::Seal(kind, key, signature) = self.what else { return None };
        let Standing { session, seq, prev, .. } = &self.place;
        let place = encode::ChainPosition { session, seq: *seq, prev, version: self.version };
        let seal = self.seal(kind, key)?;
        let mut bytes = SEAL_DOMAIN.to_vec();
        encode::seal(&seal, &place, None, &mut bytes);
        Some((key, signature, bytes))
    }

    /// The line as an owned record.
    pub fn record(&self) -> Option<Record> {
        let entry = match self.what {
            What::Event(kind) => RecordBody::Event(self.fields.event(kind, self.place.time)),
            What::Seal(kind, key, signature) => RecordBody::Seal(self.seal(kind, key)?, signature),
        };
        let session = self.place.session.parse().ok()?;
        let Standing { seq, prev, .. } = self.place;
        Some(Record { seq, session, prev, hash: self.hash, version: self.version, entry })
    }

    fn seal(&self, kind: SealKind, key: Digest) -> Option<Seal> {
        let point = match (self.fields.head_seq, self.fields.head) {
            (Some(seq), Some(hash)) => Some(Point { seq, hash }),
            _ => None,
        };
        Some(Seal { kind, session: self.place.session.parse().ok()?, point, time: self.place.time, key })
    }
}

/// The text before the hash member, and the hash.
fn split_hash(text: &str) -> Option<(&str, Digest)> {
    let (body, member) = text.split_at_checked(text.len().checked_sub(HASH_MEMBER)?)?;
    let hex = member.strip_prefix(",\"hash\":\"")?.strip_suffix("\"}")?;
    Some((body, Digest::from_hex(hex.as_bytes())?))
}

impl<'a> Fields<'a> {
    /// Reads `{"key":value,…` without the closing brace.
    fn parse(body: &'a str) -> Result<Self, LineError> {
        let mut fields = Self::default();
        let mut cursor = Cursor::new(body);
        let mut last = "";
        cursor.expect("{")?;
        loop {
            let key = cursor.string()?;
            cursor.expect(":")?;
            fields.member(key, &mut cursor)?;
            if key <= last {
                return Err(LineError::FieldOrder(cursor.at()));
            }
            last = key;
            if cursor.is_done() {
                return Ok(fields);
            }
            cursor.expect(",")?;
        }
    }

    fn member(&mut self, key: &str, cursor: &mut Cursor<'a>) -> Result<(), LineError> {
        match key {
            "agent" => self.agent = Some(cursor.string()?),
            "args" => self.args = Some(cursor.string()?),
            "args_digest" => self.args_digest = Some(cursor.digest()?),
            "capability" => self.capability = Some(cursor.string()?),
            "code" => self.code = Some(cursor.string()?),
            "decision" => {
                let name = cursor.string()?;
                let decision = Decision::from_name(name).ok_or(LineError::BadValue(cursor.at()))?;
                self.decision = Some(decision);
            }
            "duration_us" => self.duration_us = Some(cursor.integer()?),
            "enforcement" => self.enforcement = Some(enforcement(cursor)?),
            "head" => self.head = Some(cursor.digest()?),
            "head_seq" => self.head_seq = Some(cursor.integer()?),
            "key" => self.key = Some(cursor.digest()?),
            "kind" => self.kind = Some(cursor.string()?),
            "origin" => self.origin = Some(cursor.string()?),
            "parent" => self.parent = Some(cursor.integer()?),
            "plan_hash" => self.plan_hash = Some(cursor.digest()?),
            "policy_hash" => self.policy_hash = Some(cursor.digest()?),
            "prev" => self.prev = Some(cursor.digest()?),
            "reason" => self.reason = Some(cursor.string()?),
            "result" => self.result = Some(cursor.string()?),
            "risk" => self.risk = Some(cursor.string()?),
            "seq" => self.seq = Some(cursor.integer()?),
            "server" => self.server = Some(cursor.string()?),
            "session" => self.session = Some(cursor.string()?),
            "sig" => {
                let hex = cursor.string()?.as_bytes();
                self.sig = Some(Signature::from_hex(hex).ok_or(LineError::BadValue(cursor.at()))?);
            }
            "time" => self.time = Some(cursor.integer()?),
            "tool" => self.tool = Some(cursor.string()?),
            "used_declared_capability" => self.used_declared_capability = Some(cursor.flag()?),
            "v" => self.v = Some(cursor.integer()?),
            _ => return Err(LineError::UnknownField(cursor.at())),
        }
        Ok(())
    }

    /// Whether it has a member that the first version does not know.
    const fn has_second_version(&self) -> bool {
        self.agent.is_some()
            || self.origin.is_some()
            || self.risk.is_some()
            || self.used_declared_capability.is_some()
    }

    fn what(&self) -> Result<What, LineError> {
        let name = self.kind.ok_or(LineError::Missing("kind"))?;
        if let Some(kind) = RecordKind::from_name(name) {
            let sealed = self.key.is_some() || self.sig.is_some();
            let pointed = self.head.is_some() || self.head_seq.is_some();
            return if sealed || pointed { Err(LineError::Misplaced) } else { Ok(What::Event(kind)) };
        }
        let kind = SealKind::from_name(name).ok_or(LineError::BadValue(0))?;
        let key = self.key.ok_or(LineError::Missing("key"))?;
        let signature = self.sig.ok_or(LineError::Missing("sig"))?;
        if self.has_event_fields() || self.head.is_some() != self.head_seq.is_some() {
            return Err(LineError::Misplaced);
        }
        Ok(What::Seal(kind, key, signature))
    }

    fn has_event_fields(&self) -> bool {
        let texts = [self.args, self.capability, self.code, self.enforcement];
        let more = [self.reason, self.result, self.risk, self.server, self.tool, self.agent, self.origin];
        let digests = [self.args_digest, self.plan_hash, self.policy_hash];
        texts.iter().chain(&more).any(Option::is_some)
            || digests.iter().any(Option::is_some)
            || self.decision.is_some()
            || self.duration_us.is_some()
            || self.parent.is_some()
            || self.used_declared_capability.is_some()
    }

    fn standing(&self) -> Result<Standing<'a>, LineError> {
        let session = self.session.ok_or(LineError::Missing("session"))?;
        if !SessionId::is_valid(session) {
            return Err(LineError::BadValue(0));
        }
        let seq = self.seq.ok_or(LineError::Missing("seq"))?;
        let prev = self.prev.ok_or(LineError::Missing("prev"))?;
        let time = self.time.ok_or(LineError::Missing("time"))?;
        Ok(Standing { session, seq, prev, time })
    }

    fn event(&self, kind: RecordKind, time: u64) -> Event {
        let text = |raw: Option<&str>| raw.map(|raw| Text::from(unescape(raw)));
        Event {
            kind,
            decision: self.decision,
            time,
            parent: self.parent,
            duration_us: self.duration_us,
            agent: text(self.agent),
            origin: text(self.origin),
            tool: text(self.tool),
            server: text(self.server),
            capability: text(self.capability),
            code: text(self.code),
            reason: text(self.reason),
            args_digest: self.args_digest,
            policy_hash: self.policy_hash,
            plan_hash: self.plan_hash,
            enforcement: self.enforcement.and_then(read_enforcement),
            args: text(self.args),
            result: text(self.result),
            risk: text(self.risk),
            used_declared_capability: self.used_declared_capability,
        }
    }
}

/// Checks the one nested object and returns its text.
fn enforcement<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, LineError> {
    let start = cursor.mark();
    let mut last = "";
    let mut count = 0;
    cursor.expect("{")?;
    while !cursor.take("}") {
        if count > 0 {
            cursor.expect(",")?;
        }
        let axis = cursor.string()?;
        cursor.expect(":")?;
        let level = cursor.string()?;
        count += 1;
        if !is_token(axis) || !is_token(level) || count > Enforcement::MAX_AXES {
            return Err(LineError::BadValue(cursor.at()));
        }
        if axis <= last {
            return Err(LineError::FieldOrder(cursor.at()));
        }
        last = axis;
    }
    Ok(cursor.since(start))
}

/// Reads what [`enforcement`] accepted.
fn read_enforcement(raw: &str) -> Option<Enforcement> {
    let inner = raw.strip_prefix('{')?.strip_suffix('}')?;
    let pairs = inner.split(',').filter(|pair| !pair.is_empty());
    Enforcement::new(pairs.filter_map(|pair| {
        let (axis, level) = pair.split_once(':')?;
        Some((axis.trim_matches('"'), level.trim_matches('"')))
    }))
    .ok()
}

/// Undoes the escapes of text that [`Cursor::string`] accepted.
fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((clean, tail)) = rest.split_once('\\') {
        text.push_str(clean);
        let mut chars = tail.chars();
        match chars.next() {
            Some('b') => text.push('\u{8}'),
            Some('t') => text.push('\t'),
            Some('n') => text.push('\n'),
            Some('f') => text.push('\u{c}'),
            Some('r') => text.push('\r'),
            Some('u') => {
                let (hex, after) = chars.as_str().split_at_checked(4).unwrap_or_default();
                text.extend(u32::from_str_radix(hex, 16).ok().and_then(char::from_u32));
                chars = after.chars();
            }
            Some(same) => text.push(same),
            None => {}
        }
        rest = chars.as_str();
    }
    text.push_str(rest);
    text
}
