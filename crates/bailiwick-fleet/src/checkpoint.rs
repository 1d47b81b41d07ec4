//! Checkpoints (C2SP tlog-checkpoint): the signed head of the log, and which head may follow which.
//!
//! The text has four lines: the origin, the size, the root, and `time MILLISECONDS`. How fresh a checkpoint is follows from that time,
//! never from when it was fetched, because caches replay old files. A checkpoint is opened by a [`Trust`], the only maker of
//! [`SignedHead`]; [`judge_successor`] is the only judge of which head may replace another.
//!
//! Fails closed when: the origin is another, no trusted hub key signs, fewer witnesses than wanted sign, there is a line that is
//! not known, or the time lies in the future by more than [`MAX_SKEW_MS`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::Hash;
use crate::note::{Note, NoteError, NoteKey, NoteSigner};

/// How far in the future a checkpoint's time may lie: clocks differ.
pub const MAX_SKEW_MS: u64 = 60_000;

/// The head of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The name of the log.
    pub origin: String,
    /// How many entries it has.
    pub size: u64,
    /// The root of its tree.
    pub root: Hash,
    /// When it was signed, in milliseconds since 1970.
    pub time_ms: u64,
}

/// Whose signatures a checkpoint needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// The name of the log.
    pub origin: String,
    /// Keys of the hub: one of them signs.
    pub hub_keys: Vec<NoteKey>,
    /// Keys of witnesses.
    pub witnesses: Vec<NoteKey>,
    /// How many witnesses sign.
    pub quorum: usize,
}

/// A checkpoint whose signatures were verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedHead {
    /// What it says.
    pub checkpoint: Checkpoint,
    /// How fresh it is, in milliseconds since 1970: the hub's time, or that of the oldest witness the quorum needs, if it is earlier.
    pub fresh_ms: u64,
    /// Names of the witnesses that signed.
    pub witnesses: Vec<String>,
}

/// Why a checkpoint is not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// It is no signed note, or a signature does not verify.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// Its text is not that of a checkpoint.
    #[error("not a checkpoint: {0}")]
    Form(&'static str),
    /// It is another log's.
    #[error("the checkpoint is of the log `{0}`, not of `{1}`")]
    Origin(String, String),
    /// No trusted key of the hub signed it.
    #[error("no trusted key of the hub signed the checkpoint")]
    Unsigned,
    /// Too few witnesses signed it.
    #[error("{0} of the {1} witnesses that are needed signed the checkpoint")]
    Quorum(usize, usize),
}

/// How a verified head relates to the one that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Succession {
    /// The same tree, signed later or at the same time.
    Same,
    /// A larger tree: its consistency has to be shown before it is taken.
    Grown,
}

/// Why a verified head does not replace the one that is held. Each names both roots.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SuccessionError {
    /// The hub signed a smaller tree later.
    #[error(
        "the log was rolled back: held size {held_size} with root {held_root}, offered size {size} with root {root}, signed later"
    )]
    RolledBack {
        /// The size that is held.
        held_size: u64,
        /// The root that is held.
        held_root: Hash,
        /// The size that is offered.
        size: u64,
        /// The root that is offered.
        root: Hash,
    },
    /// An older checkpoint, as a cache may send.
    #[error(
        "an older checkpoint was offered: held size {held_size} with root {held_root}, offered size {size} with root {root}"
    )]
    Replayed {
        /// The size that is held.
        held_size: u64,
        /// The root that is held.
        held_root: Hash,
        /// The size that is offered.
        size: u64,
        /// The root that is offered.
        root: Hash,
    },
    /// Two trees of which none goes on from the other.
    #[error("the log was forked: at size {size} its root was {held_root} and is {root}")]
    Forked {
        /// The size at which they differ.
        size: u64,
        /// The root that is held.
        held_root: Hash,
        /// The root that is offered.
        root: Hash,
    },
    /// Its time lies in the future.
    #[error(
        "the checkpoint with root {root} is signed for {ahead_ms} ms from now; held root {held_root}; nothing new is taken as long \
         as this machine's clock is behind"
    )]
    Future {
        /// The root that is held.
        held_root: Hash,
        /// The root that is offered.
        root: Hash,
        /// By how much.
        ahead_ms: u64,
    },
}

impl SuccessionError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::RolledBack { .. } => "fleet-log-rolled-back",
            Self::Replayed { .. } => "fleet-checkpoint-replayed",
            Self::Forked { .. } => "fleet-log-forked",
            Self::Future { .. } => "fleet-checkpoint-future",
        }
    }
}

impl Checkpoint {
    /// The text that is signed.
    #[must_use]
    pub fn text(&self) -> String {
        let root = STANDARD.encode(self.root.as_bytes());
        format!("{}\n{}\n{root}\ntime {}\n", self.origin, self.size, self.time_ms)
    }

    /// Reads the text that is signed.
    ///
    /// # Errors
    /// If it is not written exactly as [`Checkpoint::text`] does.
    pub fn parse(text: &str) -> Result<Self, CheckpointError> {
        let mut lines = text.split('\n');
        let mut next =
            |missing| lines.next().filter(|line| !line.is_empty()).ok_or(CheckpointError::Form(missing));
        let origin = next("the origin is missing")?.to_owned();
        let size = next("the size is missing")?.parse();
        let size = size.map_err(|_| CheckpointError::Form("the size is not a number"))?;
        let root = STANDARD.decode(next("the root is missing")?).ok().and_then(|root| root.try_into().ok());
        let root = Hash::from_bytes(root.ok_or(CheckpointError::Form("the root is not 32 bytes in base64"))?);
        let time = next("the time is missing")?.strip_prefix("time ").and_then(|time| time.parse().ok());
        let time_ms = time.ok_or(CheckpointError::Form("the fourth line is not `time MILLISECONDS`"))?;
        let parsed = Self { origin, size, root, time_ms };
        if parsed.text() == text {
            Ok(parsed)
        } else {
            Err(CheckpointError::Form("there is more than four lines, or a number with zeros before it"))
        }
    }

    /// The signed note, with the hub's signature.
    ///
    /// # Errors
    /// If the origin cannot be written.
    pub fn sign(&self, hub: &NoteSigner) -> Result<Vec<u8>, NoteError> {
        let text = self.text();
        let signature = hub.sign(&text, self.time_ms / 1000);
        Ok(Note::new(text, vec![signature])?.to_string().into_bytes())
    }
}

/// A signed checkpoint with one more signature, of a witness that saw it at this time.
///
/// # Errors
/// If it is no signed note.
pub fn cosign(signed: &[u8], witness: &NoteSigner, time_s: u64) -> Result<Vec<u8>, NoteError> {
    let mut note = Note::parse(signed)?;
    let signature = witness.sign(note.text(), time_s);
    note.push(signature);
    Ok(note.to_string().into_bytes())
}

impl Trust {
    /// The hub alone, without witnesses.
    #[must_use]
    pub fn hub(origin: &str, hub_keys: Vec<NoteKey>) -> Self {
        Self { origin: origin.to_owned(), hub_keys, witnesses: Vec::new(), quorum: 0 }
    }

    /// Opens a signed checkpoint.
    ///
    /// # Errors
    /// Why it is not trusted.
    pub fn open(&self, signed: &[u8]) -> Result<SignedHead, CheckpointError> {
        let note = Note::parse(signed)?;
        let checkpoint = Checkpoint::parse(note.text())?;
        if checkpoint.origin != self.origin {
            return Err(CheckpointError::Origin(checkpoint.origin, self.origin.clone()));
        }
        let mut is_signed = false;
        for key in &self.hub_keys {
            is_signed |= note.vouched_by(key)?.is_some();
        }
        if !is_signed {
            return Err(CheckpointError::Unsigned);
        }
        let mut seen = Vec::new();
        for key in distinct(&self.witnesses) {
            if let Some(vouched) = note.vouched_by(key)? {
                let time = vouched.time_s.map_or(checkpoint.time_ms, |time| time.saturating_mul(1000));
                seen.push((time, key.name().to_owned()));
            }
        }
        if seen.len() < self.quorum {
            return Err(CheckpointError::Quorum(seen.len(), self.quorum));
        }
        seen.sort_by(|one, other| other.cmp(one));
        let oldest = self.quorum.checked_sub(1).and_then(|at| seen.get(at)).map(|(time, _)| *time);
        // A cosignature has whole seconds: rounding down would make a fresh checkpoint look older by up to one.
        let fresh_ms =
            oldest.map_or(checkpoint.time_ms, |time| time.saturating_add(999).min(checkpoint.time_ms));
        Ok(SignedHead { checkpoint, fresh_ms, witnesses: seen.into_iter().map(|(_, name)| name).collect() })
    }
}

/// Whether a verified head may replace the one that is held. A head that has grown still needs its consistency shown.
///
/// # Errors
/// Why it may not.
pub fn judge_successor(
    held: Option<&SignedHead>,
    offered: &SignedHead,
    now_ms: u64,
) -> Result<Succession, SuccessionError> {
    let new = &offered.checkpoint;
    let ahead_ms = new.time_ms.saturating_sub(now_ms);
    if ahead_ms > MAX_SKEW_MS {
        let held_root = held.map_or_else(crate::merkle::empty_root, |held| held.checkpoint.root);
        return Err(SuccessionError::Future { held_root, root: new.root, ahead_ms });
    }
    let Some(old) = held.map(|held| &held.checkpoint) else { return Ok(Succession::Grown) };
    let (held_size, held_root, size, root) = (old.size, old.root, new.size, new.root);
    if size == held_size && root != held_root {
        return Err(SuccessionError::Forked { size, held_root, root });
    }
    if size < held_size && new.time_ms > old.time_ms {
        return Err(SuccessionError::RolledBack { held_size, held_root, size, root });
    }
    if size < held_size || (size == held_size && new.time_ms < old.time_ms) {
        return Err(SuccessionError::Replayed { held_size, held_root, size, root });
    }
    Ok(if size == held_size { Succession::Same } else { Succession::Grown })
}

/// Each witness once: a key that is listed twice counts once.
fn distinct(keys: &[NoteKey]) -> impl Iterator<Item = &NoteKey> {
    keys.iter().enumerate().filter_map(|(at, key)| {
        let before = keys.get(..at).unwrap_or_default();
        (!before.iter().any(|other| other.public() == key.public())).then_some(key)
    })
}

#[cfg(test)]
mod tests;
