//! Signed notes (C2SP signed-note): a text, an empty line, and signature lines, each with the name of a key and its id.
//!
//! Two kinds of key: Ed25519 over the text, and Ed25519 over the text and a time (C2SP tlog-cosignature, `cosignature/v1`), which
//! witnesses use. A line of an unknown key is ignored. A line of a known key that does not verify refuses the note.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

use crate::Hash;

/// What a signature line begins with: an em dash and a space.
const LINE: &str = "\u{2014} ";

/// The most signature lines that are read.
const MAX_LINES: usize = 64;

/// What a key signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyUse {
    /// The text of a note.
    Note,
    /// The text of a checkpoint and the time at which a witness saw it.
    Cosignature,
}

/// A public key with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteKey {
    name: String,
    key_use: KeyUse,
    public: [u8; 32],
}

/// A private key with its name.
pub struct NoteSigner {
    name: String,
    key_use: KeyUse,
    key: SigningKey,
}

/// A note whose signatures have not been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<NoteSignature>,
}

/// A signature line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteSignature {
    name: String,
    key_id: [u8; 4],
    bytes: Vec<u8>,
}

/// What a signature says that verifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vouched {
    /// When a witness saw the text, in seconds since 1970; only a cosignature says so.
    pub time_s: Option<u64>,
}

/// Why a note or a key is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// It is not a signed note.
    #[error("not a signed note: {0}")]
    Form(&'static str),
    /// A name that a key cannot have.
    #[error("`{0}` cannot name a key: no spaces, no `+`, not empty")]
    Name(String),
    /// It is not a public key.
    #[error("not a key of the form NAME+ID+KEY: {0}")]
    Key(&'static str),
    /// A known key's signature does not verify.
    #[error("the signature of `{0}` does not verify")]
    Signature(String),
    /// A known key signs twice.
    #[error("`{0}` signs twice")]
    Twice(String),
}

impl KeyUse {
    const fn algorithm(self) -> u8 {
        match self {
            Self::Note => 1,
            Self::Cosignature => 4,
        }
    }
}

impl NoteKey {
    /// A key by its name, use and 32 bytes.
    ///
    /// # Errors
    /// If the name cannot be one, or the bytes are no key.
    pub fn new(name: &str, key_use: KeyUse, public: [u8; 32]) -> Result<Self, NoteError> {
        check_name(name)?;
        let key =
            VerifyingKey::from_bytes(&public).map_err(|_| NoteError::Key("not a point of the curve"))?;
        if key.is_weak() {
            return Err(NoteError::Key("the key is weak"));
        }
        Ok(Self { name: name.to_owned(), key_use, public })
    }

    /// Reads `NAME+ID+KEY`, as its `Display` writes it.
    ///
    /// # Errors
    /// If it is not that.
    pub fn parse(text: &str) -> Result<Self, NoteError> {
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(NoteError::Key("two `+` are missing"));
        };
        let bytes = STANDARD.decode(key).map_err(|_| NoteError::Key("the key is not base64"))?;
        let (algorithm, public) = bytes.split_first().ok_or(NoteError::Key("the key is empty"))?;
        let key_use =
            [KeyUse::Note, KeyUse::Cosignature].into_iter().find(|own| own.algorithm() == *algorithm);
        let key_use = key_use.ok_or(NoteError::Key("the algorithm is unknown"))?;
        let public = public.try_into().map_err(|_| NoteError::Key("the key has not 32 bytes"))?;
        let parsed = Self::new(name, key_use, public)?;
        if hex_id(parsed.id()) == id { Ok(parsed) } else { Err(NoteError::Key("the id is another key's")) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it signs.
    #[must_use]
    pub const fn key_use(&self) -> KeyUse {
        self.key_use
    }

    /// The public key.
    #[must_use]
    pub const fn public(&self) -> &[u8; 32] {
        &self.public
    }

    /// Its id: the first four bytes of a hash of its name, use and key.
    #[must_use]
    pub fn id(&self) -> [u8; 4] {
        let hash = Hash::of_parts(&[self.name.as_bytes(), b"\n", &[self.key_use.algorithm()], &self.public]);
        let [first, second, third, fourth, ..] = *hash.as_bytes();
        [first, second, third, fourth]
    }

    /// Whether this key signed this text.
    fn holds(&self, text: &str, signature: &[u8]) -> Option<Vouched> {
        let (message, time_s, signature) = match self.key_use {
            KeyUse::Note => (text.to_owned(), None, signature),
            KeyUse::Cosignature => {
                let (time, signature) = signature.split_first_chunk::<8>()?;
                let time = u64::from_be_bytes(*time);
                (cosigned(text, time), Some(time), signature)
            }
        };
        let key = VerifyingKey::from_bytes(&self.public).ok()?;
        let signature = Signature::from_slice(signature).ok()?;
        key.verify_strict(message.as_bytes(), &signature).ok()?;
        Some(Vouched { time_s })
    }
}

impl std::fmt::Display for NoteKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut bytes = vec![self.key_use.algorithm()];
        bytes.extend_from_slice(&self.public);
        write!(f, "{}+{}+{}", self.name, hex_id(self.id()), STANDARD.encode(bytes))
    }
}

impl NoteSigner {
    /// A key that signs notes, from its 32 secret bytes.
    ///
    /// # Errors
    /// If the name cannot be one.
    pub fn new(name: &str, seed: &[u8; 32]) -> Result<Self, NoteError> {
        Self::with_use(name, seed, KeyUse::Note)
    }

    /// A key that cosigns checkpoints as a witness, from its 32 secret bytes.
    ///
    /// # Errors
    /// If the name cannot be one.
    pub fn witness(name: &str, seed: &[u8; 32]) -> Result<Self, NoteError> {
        Self::with_use(name, seed, KeyUse::Cosignature)
    }

    fn with_use(name: &str, seed: &[u8; 32], key_use: KeyUse) -> Result<Self, NoteError> {
        check_name(name)?;
        Ok(Self { name: name.to_owned(), key_use, key: SigningKey::from_bytes(seed) })
    }

    /// The public key.
    #[must_use]
    pub fn verifier(&self) -> NoteKey {
        let public = self.key.verifying_key().to_bytes();
        NoteKey { name: self.name.clone(), key_use: self.key_use, public }
    }

    /// Signs a text. `time_s` is what a witness says of when it saw the text; other keys do not use it.
    #[must_use]
    pub fn sign(&self, text: &str, time_s: u64) -> NoteSignature {
        let bytes = match self.key_use {
            KeyUse::Note => self.key.sign(text.as_bytes()).to_bytes().to_vec(),
            KeyUse::Cosignature => {
                let signature = self.key.sign(cosigned(text, time_s).as_bytes());
                [&time_s.to_be_bytes()[..], &signature.to_bytes()].concat()
            }
        };
        NoteSignature { name: self.name.clone(), key_id: self.verifier().id(), bytes }
    }
}

impl Note {
    /// A note with these signatures. The text ends with a line feed.
    ///
    /// # Errors
    /// If the text cannot be that of a note.
    pub fn new(text: String, signatures: Vec<NoteSignature>) -> Result<Self, NoteError> {
        if !text.ends_with('\n') || text.contains("\n\n") {
            return Err(NoteError::Form("the text is empty or has an empty line"));
        }
        if text.chars().any(|letter| letter.is_control() && letter != '\n') {
            return Err(NoteError::Form("the text has control characters"));
        }
        Ok(Self { text, signatures })
    }

    /// Reads a note.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(bytes: &[u8]) -> Result<Self, NoteError> {
        let whole = std::str::from_utf8(bytes).map_err(|_| NoteError::Form("it is not UTF-8"))?;
        let at = whole.rfind("\n\n").ok_or(NoteError::Form("there is no empty line"))?;
        let (text, lines) =
            whole.split_at_checked(at + 1).ok_or(NoteError::Form("there is no empty line"))?;
        let lines = lines.strip_prefix('\n').and_then(|lines| lines.strip_suffix('\n'));
        let lines: Vec<&str> =
            lines.ok_or(NoteError::Form("its last line has no end"))?.split('\n').collect();
        if lines.len() > MAX_LINES {
            return Err(NoteError::Form("it has too many signatures"));
        }
        let signatures = lines.into_iter().map(signature_line).collect::<Result<_, _>>()?;
        Self::new(text.to_owned(), signatures)
    }

    /// The text, with its last line feed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Adds a signature.
    pub fn push(&mut self, signature: NoteSignature) {
        self.signatures.push(signature);
    }

    /// What this key says of the text; nothing if it did not sign.
    ///
    /// # Errors
    /// If its signature does not verify, or there are two.
    pub fn vouched_by(&self, key: &NoteKey) -> Result<Option<Vouched>, NoteError> {
        let id = key.id();
        let mut own = self.signatures.iter().filter(|line| line.name == key.name && line.key_id == id);
        let Some(line) = own.next() else { return Ok(None) };
        if own.next().is_some() {
            return Err(NoteError::Twice(key.name.clone()));
        }
        let vouched = key.holds(&self.text, &line.bytes);
        vouched.map(Some).ok_or_else(|| NoteError::Signature(key.name.clone()))
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|line| {
            writeln!(f, "{LINE}{} {}", line.name, STANDARD.encode([&line.key_id[..], &line.bytes].concat()))
        })
    }
}

fn signature_line(line: &str) -> Result<NoteSignature, NoteError> {
    const WRONG: NoteError = NoteError::Form("a signature line is not `\u{2014} NAME BASE64`");
    let (name, encoded) = line.strip_prefix(LINE).and_then(|rest| rest.split_once(' ')).ok_or(WRONG)?;
    check_name(name)?;
    let bytes = STANDARD.decode(encoded).map_err(|_| WRONG)?;
    let (key_id, bytes) = bytes.split_first_chunk::<4>().ok_or(WRONG)?;
    Ok(NoteSignature { name: name.to_owned(), key_id: *key_id, bytes: bytes.to_vec() })
}

/// What a witness signs.
fn cosigned(text: &str, time_s: u64) -> String {
    format!("cosignature/v1\ntime {time_s}\n{text}")
}

fn check_name(name: &str) -> Result<(), NoteError> {
    let is_wrong = |letter: char| letter.is_whitespace() || letter.is_control() || letter == '+';
    if name.is_empty() || name.len() > 255 || name.contains(is_wrong) {
        return Err(NoteError::Name(name.chars().take(80).flat_map(char::escape_debug).collect()));
    }
    Ok(())
}

fn hex_id(id: [u8; 4]) -> String {
    format!("{:08x}", u32::from_be_bytes(id))
}

#[cfg(test)]
mod tests;
