//! Approvals: a person's consent to exactly one call, given outside of the agent.
//!
//! An approval is bound to the hash of tool and arguments, is used up by the call it allows, and expires. Where that hash
//! holds the session too, a person may consent to the same call for the rest of it. What waits for an answer has a short id. Fails closed when the store cannot be read or written.

use bailiwick_journal::format::{Decision, Event, RecordKind};
use bailiwick_policy::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::state::{State, StateFault, VERSION};

/// How long a question, and then its answer, is good: 15 minutes.
pub const VALID_US: u64 = 15 * 60 * 1_000_000;

/// How long consent for a session is good at most: 12 hours.
pub const SESSION_US: u64 = 12 * 60 * 60 * 1_000_000;

/// The file, in the state's directory: a reader may look whether it changed.
pub const FILE: &str = "approvals.json";
const LOCK: &str = "approvals.lock";
/// How many questions may wait; the oldest then give way.
const MAX_WAITING: usize = 256;
/// How many characters of the arguments a person is shown.
pub const MAX_SHOWN: usize = 2_000;

/// One question, and its answer if there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// What a person calls it.
    pub id: String,
    /// The hash of tool and arguments.
    pub digest: String,
    /// The tool.
    pub tool: String,
    /// Its arguments, shortened.
    pub arguments: String,
    /// Why a person is asked.
    pub question: String,
    /// Until when it is good, in microseconds since 1970.
    pub expires: u64,
    /// What a person said.
    pub answer: Option<Answer>,
    /// Whether its hash holds the session: the same call can be allowed for the rest of it.
    #[serde(default)]
    pub of_session: bool,
}

/// The store.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    version: u32,
    questions: Vec<Pending>,
}

/// What a person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// This call, once.
    Approved,
    /// This call, as often as it is made in its session.
    Session,
    /// No.
    Denied,
}

/// What the store says about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consulted {
    /// It was approved; the approval is used up now.
    Approved,
    /// It was denied.
    Denied,
    /// It waits for an answer under this id.
    Waiting(String),
}

/// A question to put into the store.
#[derive(Debug)]
pub struct Question<'a> {
    /// The hash of tool and arguments.
    pub digest: Digest,
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: &'a str,
    /// Why a person is asked.
    pub question: &'a str,
    /// Now, in microseconds since 1970.
    pub now: u64,
    /// Whether the hash holds the session.
    pub of_session: bool,
}

/// What came of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// It was recorded.
    Recorded(Pending),
    /// Nothing waits under this id: it has been answered, used or forgotten.
    Gone,
    /// It cannot be allowed for a session: its hash holds none.
    Sessionless,
}

impl Answer {
    /// The word that records have for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Session => "approved-for-session",
            Self::Denied => "denied",
        }
    }

    /// The event that records it, with a person's note if there is one.
    #[must_use]
    pub fn event(self, waiting: &Pending, note: &str) -> Event {
        let decision = match self {
            Self::Approved | Self::Session => Decision::Allow,
            Self::Denied => Decision::Deny,
        };
        let note = if note.is_empty() { String::new() } else { format!(": {note}") };
        Event::new(RecordKind::ApprovalDecided)
            .with_tool(waiting.tool.clone())
            .with_decision(decision)
            .with_code(self.word())
            .with_reason(format!("{} {}{note}", waiting.id, waiting.digest))
    }
}

/// Uses up an approval of exactly this call, or leaves a question for a person.
///
/// # Errors
/// If the store cannot be used: that is no consent.
pub fn consult(state: &State, asked: &Question<'_>) -> Result<Consulted, StateFault> {
    change(state, asked.now, |all| {
        let known = all.iter().position(|one| one.digest == asked.digest.to_string());
        match known.and_then(|at| all.get(at).map(|one| (at, one.answer, one.id.clone()))) {
            Some((at, Some(Answer::Approved), _)) => {
                all.remove(at);
                Consulted::Approved
            }
            Some((_, Some(Answer::Session), _)) => Consulted::Approved,
            Some((_, Some(Answer::Denied), _)) => Consulted::Denied,
            Some((_, None, id)) => Consulted::Waiting(id),
            None => {
                let id = new_id(asked);
                if all.len() >= MAX_WAITING {
                    all.remove(0);
                }
                all.push(Pending {
                    id: id.clone(),
                    digest: asked.digest.to_string(),
                    tool: asked.tool.to_owned(),
                    arguments: asked.arguments.chars().take(MAX_SHOWN).collect(),
                    question: asked.question.to_owned(),
                    expires: asked.now.saturating_add(VALID_US),
                    answer: None,
                    of_session: asked.of_session,
                });
                Consulted::Waiting(id)
            }
        }
    })
}

/// Uses up an approval of exactly this call, if there is one. Leaves no question.
///
/// # Errors
/// If the store cannot be used.
pub fn take(state: &State, digest: Digest, now: u64) -> Result<bool, StateFault> {
    if state.read(FILE)?.is_none() {
        return Ok(false);
    }
    change(state, now, |all| {
        let one = all.iter().position(|one| one.digest == digest.to_string());
        match one.and_then(|at| all.get(at).map(|one| (at, one.answer))) {
            Some((at, Some(Answer::Approved))) => {
                all.remove(at);
                true
            }
            Some((_, Some(Answer::Session))) => true,
            Some((_, Some(Answer::Denied) | None)) | None => false,
        }
    })
}

/// Records a person's answer.
///
/// # Errors
/// If the store cannot be used.
pub fn answer(state: &State, id: &str, answer: Answer, now: u64) -> Result<Answered, StateFault> {
    change(state, now, |all| {
        let Some(one) = all.iter_mut().find(|one| one.id == id && one.answer.is_none()) else {
            return Answered::Gone;
        };
        let valid = match answer {
            Answer::Session if !one.of_session => return Answered::Sessionless,
            Answer::Session => SESSION_US,
            Answer::Approved | Answer::Denied => VALID_US,
        };
        one.answer = Some(answer);
        one.expires = now.saturating_add(valid);
        Answered::Recorded(one.clone())
    })
}

/// What waits for an answer.
///
/// # Errors
/// If the store cannot be used.
pub fn pending(state: &State, now: u64) -> Result<Vec<Pending>, StateFault> {
    change(state, now, |all| all.iter().filter(|one| one.answer.is_none()).cloned().collect())
}

fn change<T>(state: &State, now: u64, change: impl FnOnce(&mut Vec<Pending>) -> T) -> Result<T, StateFault> {
    let _lock = state.lock(LOCK)?;
    let before = load(state)?;
    let mut all = before.clone();
    all.retain(|one| one.expires > now);
    let result = change(&mut all);
    if all != before {
        let stored = Stored { version: VERSION, questions: all };
        let bytes = serde_json::to_vec_pretty(&stored)
            .map_err(|error| StateFault::new("write", &state.path(FILE), error))?;
        state.replace(FILE, &bytes, true)?;
    }
    Ok(result)
}

/// The questions of the store. Version 0.1.0 wrote them as a bare list.
fn load(state: &State) -> Result<Vec<Pending>, StateFault> {
    let fault = |error: serde_json::Error| StateFault::new("read", &state.path(FILE), error);
    let Some(bytes) = state.read(FILE)? else { return Ok(Vec::new()) };
    let value: Value = serde_json::from_slice(&bytes).map_err(fault)?;
    if value.is_array() {
        return serde_json::from_value(value).map_err(fault);
    }
    let version = value
        .get("version")
        .and_then(Value::as_u64)
        .map_or(0, |version| u32::try_from(version).unwrap_or(u32::MAX));
    state.check_version(FILE, version)?;
    serde_json::from_value::<Stored>(value).map(|stored| stored.questions).map_err(fault)
}

/// Eight letters that no other question has, with overwhelming likelihood.
fn new_id(asked: &Question<'_>) -> String {
    let mut random = [0_u8; 16];
    // Without randomness the hash and the time tell questions apart: an id is a name, not a secret.
    let _ = getrandom::fill(&mut random);
    let text = format!("{:?} {} {}", random, asked.digest, asked.now);
    Digest::sha256(text.as_bytes()).to_string().chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(digest: Digest, now: u64) -> Question<'static> {
        Question { digest, tool: "shell", arguments: "{}", question: "may it?", now, of_session: false }
    }

    #[test]
    fn an_approval_is_for_one_call_once_and_for_a_while() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(&dir.path().join("state")).unwrap();
        let (this, other) = (Digest::sha256(b"this"), Digest::sha256(b"other"));
        let Consulted::Waiting(id) = consult(&state, &asked(this, 0)).unwrap() else { panic!("it waits") };
        assert_eq!(consult(&state, &asked(this, 1)).unwrap(), Consulted::Waiting(id.clone()), "asked once");
        let answered = |id: &str, given| answer(&state, id, given, 2).unwrap();
        assert_eq!(answered("nope", Answer::Approved), Answered::Gone);
        assert_eq!(answered(&id, Answer::Session), Answered::Sessionless, "its hash holds no session");
        assert!(matches!(answered(&id, Answer::Approved), Answered::Recorded(_)));
        assert_eq!(answered(&id, Answer::Denied), Answered::Gone, "answered already");
        assert!(matches!(consult(&state, &asked(other, 3)).unwrap(), Consulted::Waiting(_)), "another call");
        assert_eq!(consult(&state, &asked(this, 4)).unwrap(), Consulted::Approved);
        assert!(
            matches!(consult(&state, &asked(this, 5)).unwrap(), Consulted::Waiting(new) if new != id),
            "used up"
        );
    }

    #[test]
    fn an_answer_expires_and_a_no_is_a_no() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(&dir.path().join("state")).unwrap();
        let this = Digest::sha256(b"this");
        let Consulted::Waiting(id) = consult(&state, &asked(this, 0)).unwrap() else { panic!("it waits") };
        answer(&state, &id, Answer::Approved, 0).unwrap();
        assert!(!take(&state, this, VALID_US).unwrap(), "over");
        let Consulted::Waiting(id) = consult(&state, &asked(this, VALID_US)).unwrap() else {
            panic!("it waits")
        };
        answer(&state, &id, Answer::Denied, VALID_US).unwrap();
        assert_eq!(consult(&state, &asked(this, VALID_US + 1)).unwrap(), Consulted::Denied);
        assert!(pending(&state, VALID_US + 1).unwrap().is_empty());
    }

    #[test]
    fn consent_for_a_session_is_for_the_same_call_as_often_as_it_comes() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(&dir.path().join("state")).unwrap();
        let (this, other) = (Digest::sha256(b"this"), Digest::sha256(b"other"));
        let of_session = |digest, now| Question { of_session: true, ..asked(digest, now) };
        let Consulted::Waiting(id) = consult(&state, &of_session(this, 0)).unwrap() else {
            panic!("it waits")
        };
        assert!(matches!(answer(&state, &id, Answer::Session, 0).unwrap(), Answered::Recorded(_)));
        for now in [1, VALID_US + 1, SESSION_US - 1] {
            assert_eq!(consult(&state, &of_session(this, now)).unwrap(), Consulted::Approved);
            assert!(take(&state, this, now).unwrap() && !take(&state, other, now).unwrap());
        }
        assert!(!take(&state, this, SESSION_US).unwrap(), "over");
    }

    #[test]
    fn a_store_of_the_first_version_is_read_and_one_of_a_newer_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(&dir.path().join("state")).unwrap();
        let one = r#"{"id":"1a2b","digest":"d","tool":"t","arguments":"{}","question":"q","expires":9,"answer":null}"#;
        state.replace(FILE, format!("[{one}]").as_bytes(), false).unwrap();
        assert_eq!(pending(&state, 0).unwrap().len(), 1);
        assert!(matches!(answer(&state, "1a2b", Answer::Denied, 0).unwrap(), Answered::Recorded(_)));
        let written: Value = serde_json::from_slice(&state.read(FILE).unwrap().unwrap()).unwrap();
        assert_eq!((&written["version"], &written["questions"][0]["answer"]), (&1.into(), &"denied".into()));
        let newer = format!(r#"{{"version":{},"questions":{{}}}}"#, VERSION + 1);
        state.replace(FILE, newer.as_bytes(), false).unwrap();
        let fault = pending(&state, 0).unwrap_err().to_string();
        assert!(fault.contains("it has version 2, and this program knows 1"), "{fault}");
    }
}
