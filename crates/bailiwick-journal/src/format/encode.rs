//! Writing one record as canonical JSON, member by member in RFC 8785 order, without a value tree.
//!
//! Every key is ASCII, so byte order is the order RFC 8785 asks for. A property test compares the output with
//! an independent canonicaliser.
use super::{Digest, Event, MAX_INTEGER, Seal, Signature};

/// Where a record stands in its chain.
pub(super) struct ChainPosition<'a> {
    pub(super) session: &'a str,
    pub(super) seq: u64,
    pub(super) prev: &'a Digest,
    pub(super) version: u64,
}

/// Writes the event, up to and with the closing brace, without `hash`.
pub(super) fn event(event: &Event, place: &ChainPosition<'_>, out: &mut Vec<u8>) {
    let mut o = Members::open(out);
    o.text("agent", event.agent());
    o.text("args", event.args());
    o.digest("args_digest", event.args_digest.as_ref());
    o.text("capability", event.capability());
    o.text("code", event.code());
    o.plain("decision", event.decision.map(super::Decision::name));
    o.integer("duration_us", event.duration_us);
    if let Some(enforcement) = &event.enforcement {
        o.key("enforcement");
        let mut inner = Members::open(o.out);
        for (axis, level) in enforcement.iter() {
            inner.plain(axis, Some(level));
        }
        inner.close();
    }
    o.plain("kind", Some(event.kind.name()));
    o.text("origin", event.origin());
    o.integer("parent", event.parent);
    o.digest("plan_hash", event.plan_hash.as_ref());
    o.digest("policy_hash", event.policy_hash.as_ref());
    o.digest("prev", Some(place.prev));
    o.text("reason", event.reason());
    o.text("result", event.result());
    o.text("risk", event.risk());
    o.integer("seq", Some(place.seq));
    o.text("server", event.server());
    o.plain("session", Some(place.session));
    o.integer("time", Some(event.time));
    o.text("tool", event.tool());
    o.flag("used_declared_capability", event.used_declared_capability);
    o.integer("v", Some(place.version));
    o.close();
}

/// Writes the seal, up to and with the closing brace, without `hash`. Without `signature`: what is signed.
pub(super) fn seal(seal: &Seal, place: &ChainPosition<'_>, signature: Option<&Signature>, out: &mut Vec<u8>) {
    let mut o = Members::open(out);
    o.digest("head", seal.point.as_ref().map(|point| &point.hash));
    o.integer("head_seq", seal.point.as_ref().map(|point| point.seq));
    o.digest("key", Some(&seal.key));
    o.plain("kind", Some(seal.kind.name()));
    o.digest("prev", Some(place.prev));
    o.integer("seq", Some(place.seq));
    o.plain("session", Some(seal.session.as_str()));
    if let Some(signature) = signature {
        o.key("sig");
        o.out.push(b'"');
        signature.push_hex(o.out);
        o.out.push(b'"');
    }
    o.integer("time", Some(seal.time));
    o.integer("v", Some(place.version));
    o.close();
}

/// Turns the record that starts at `start` into a line: hashes it and puts `hash` and a newline last.
pub(super) fn finish(start: usize, out: &mut Vec<u8>) -> Digest {
    let hash = Digest::sha256(out.get(start..).unwrap_or_default());
    out.pop();
    out.extend_from_slice(b",\"hash\":\"");
    hash.push_hex(out);
    out.extend_from_slice(b"\"}\n");
    hash
}

struct Members<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> Members<'a> {
    fn open(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    fn close(self) {
        self.out.push(b'}');
    }

    fn key(&mut self, key: &str) {
        self.out.extend_from_slice(if self.first { b"\"" } else { b",\"" });
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.first = false;
    }

    fn text(&mut self, key: &str, value: Option<&str>) {
        if let Some(text) = value {
            self.key(key);
            self.out.push(b'"');
            escape(text, self.out);
            self.out.push(b'"');
        }
    }

    /// Text that is known to need no escaping.
    fn plain(&mut self, key: &str, value: Option<&str>) {
        if let Some(text) = value {
            self.key(key);
            self.out.push(b'"');
            self.out.extend_from_slice(text.as_bytes());
            self.out.push(b'"');
        }
    }

    fn flag(&mut self, key: &str, value: Option<bool>) {
        if let Some(value) = value {
            self.key(key);
            self.out.extend_from_slice(if value { b"true" } else { b"false" });
        }
    }

    fn digest(&mut self, key: &str, value: Option<&Digest>) {
        if let Some(digest) = value {
            self.key(key);
            self.out.push(b'"');
            digest.push_hex(self.out);
            self.out.push(b'"');
        }
    }

    fn integer(&mut self, key: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.key(key);
            decimal(value.min(MAX_INTEGER), self.out);
        }
    }
}

fn decimal(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut used = 0;
    for slot in digits.iter_mut().rev() {
        *slot = b'0' + u8::try_from(value % 10).unwrap_or(0);
        value /= 10;
        used += 1;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(digits.len() - used..).unwrap_or_default());
}

fn escape(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    while let Some(stop) = first_to_escape(rest) {
        let (clean, tail) = rest.split_at(stop);
        out.extend_from_slice(clean);
        let Some((byte, tail)) = tail.split_first() else { return };
        escape_byte(*byte, out);
        rest = tail;
    }
    out.extend_from_slice(rest);
}

const fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Where the first byte stands that a string cannot hold as it is. Looks at sixteen bytes at once.
pub(super) fn first_to_escape(bytes: &[u8]) -> Option<usize> {
    let is_clean = |chunk: &[u8; 16]| !chunk.iter().fold(false, |found, byte| found | needs_escape(*byte));
    let clean = 16 * bytes.as_chunks::<16>().0.iter().take_while(|chunk| is_clean(chunk)).count();
    let at = bytes.get(clean..)?.iter().position(|byte| needs_escape(*byte))?;
    Some(clean + at)
}

fn escape_byte(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x09 => b't',
        0x0a => b'n',
        0x0c => b'f',
        0x0d => b'r',
        _ => {
            let low = byte & 15;
            let low = if low < 10 { b'0' + low } else { b'a' + low - 10 };
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', b'0' + (byte >> 4), low]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}
