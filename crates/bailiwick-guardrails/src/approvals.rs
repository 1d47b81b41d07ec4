//! Approvals: a person's consent to exactly one call, given outside of the agent.
//!
//! An approval is bound to the hash of tool and arguments, is used up by the call it allows, and expires. Where that hash
//! holds the session too, a person may consent to the same call for the rest of it. With a second hash, which holds no session, a
//! person may consent to the same call always: that is a rule, kept until it is taken back or what it is bound to changes. What
//! waits for an answer has a short id. Fails closed when the store cannot be read or written.

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
    /// The hash that a rule for it is known by; nothing if there can be none.
    #[serde(default)]
    pub lasting: Option<String>,
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
    /// This call, until the rule is taken back.
    Always,
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
    /// The hash of the same without the session, if a person may allow it always.
    pub lasting: Option<Digest>,
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
    /// It cannot be allowed always: its risk is high, or more was asked than is shown.
    NoRule,
}

impl Pending {
    /// The rule that allows it always, in words: what is written when a person says so.
    #[must_use]
    pub fn rule(&self) -> Vec<String> {
        vec![
            format!("always allow {}", self.tool),
            format!("  with   {}", self.arguments),
            if self.of_session {
                "  while  the tool and its manifest are what they are now".to_owned()
            } else {
                "  until  it is taken back".to_owned()
            },
        ]
    }
}

impl Answer {
    /// The word that records have for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Session => "approved-for-session",
            Self::Always => "approved-always",
            Self::Denied => "denied",
        }
    }

    /// The event that records it, with a person's note if there is one.
    #[must_use]
    pub fn event(self, waiting: &Pending, note: &str) -> Event {
        let decision = match self {
            Self::Approved | Self::Session | Self::Always => Decision::Allow,
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
        let known = all.iter().position(|one| one.is_about(asked.digest, asked.lasting));
        match known.and_then(|at| all.get(at).map(|one| (at, one.answer, one.id.clone()))) {
            Some((at, Some(Answer::Approved), _)) => {
                all.remove(at);
                Consulted::Approved
            }
            Some((_, Some(Answer::Session | Answer::Always), _)) => Consulted::Approved,
            Some((_, Some(Answer::Denied), _)) => Consulted::Denied,
            Some((_, None, id)) => Consulted::Waiting(id),
            None => {
                let id = new_id(asked);
                let is_rule = |one: &Pending| one.answer == Some(Answer::Always);
                if all.iter().filter(|one| !is_rule(one)).count() >= MAX_WAITING
                    && let Some(oldest) = all.iter().position(|one| !is_rule(one))
                {
                    all.remove(oldest);
                }
                // A rule is for what a person saw, all of it.
                let is_shown = asked.arguments.chars().count() < MAX_SHOWN;
                all.push(Pending {
                    id: id.clone(),
                    digest: asked.digest.to_string(),
                    tool: asked.tool.to_owned(),
                    arguments: asked.arguments.chars().take(MAX_SHOWN).collect(),
                    question: asked.question.to_owned(),
                    expires: asked.now.saturating_add(VALID_US),
                    answer: None,
                    of_session: asked.of_session,
                    lasting: asked.lasting.filter(|_| is_shown).map(|lasting| lasting.to_string()),
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
pub fn take(state: &State, digest: Digest, lasting: Option<Digest>, now: u64) -> Result<bool, StateFault> {
    if state.read(FILE)?.is_none() {
        return Ok(false);
    }
    change(state, now, |all| {
        let one = all.iter().position(|one| one.is_about(digest, lasting));
        match one.and_then(|at| all.get(at).map(|one| (at, one.answer))) {
            Some((at, Some(Answer::Approved))) => {
                all.remove(at);
                true
            }
            Some((_, Some(Answer::Session | Answer::Always))) => true,
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
            Answer::Always => match one.lasting.clone() {
                None => return Answered::NoRule,
                Some(lasting) => {
                    one.digest = lasting;
                    u64::MAX
                }
            },
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

/// The calls that are allowed always.
///
/// # Errors
/// If the store cannot be used.
pub fn rules(state: &State, now: u64) -> Result<Vec<Pending>, StateFault> {
    change(state, now, |all| all.iter().filter(|one| one.answer == Some(Answer::Always)).cloned().collect())
}

/// Takes back a rule; nothing if there is none under this id.
///
/// # Errors
/// If the store cannot be used.
pub fn take_back(state: &State, id: &str, now: u64) -> Result<Option<Pending>, StateFault> {
    change(state, now, |all| {
        let found = all.iter().position(|one| one.id == id && one.answer == Some(Answer::Always));
        found.map(|at| all.remove(at))
    })
}

impl Pending {
    /// Whether a call of these hashes is what this was asked about; for a rule, the second one counts.
    fn is_about(&self, digest: Digest, lasting: Option<Digest>) -> bool {
        match self.answer {
            Some(Answer::Always) => lasting.is_some_and(|lasting| self.digest == lasting.to_string()),
            Some(Answer::Approved | Answer::Session | Answer::Denied) | None => {
                self.digest == digest.to_string()
            }
        }
    }

    /// The event that records that a rule was taken back.
    #[must_use]
    pub fn taken_back(&self) -> Event {
        Event::new(RecordKind::ApprovalDecided)
            .with_tool(self.tool.clone())
            .with_decision(Decision::Deny)
            .with_code("rule-taken-back")
            .with_reason(format!("{} {}", self.id, self.digest))
    }
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
        Question {
            digest,
            tool: "shell",
            arguments: "{}",
            question: "may it?",
            now,
            of_session: false,
            lasting: None,
        }
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
        assert!(!take(&state, this, None, VALID_US).unwrap(), "over");
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
            assert!(take(&state, this, None, now).unwrap() && !take(&state, other, None, now).unwrap());
        }
        assert!(!take(&state, this, None, SESSION_US).unwrap(), "over");
    }

    #[test]
    fn a_rule_is_for_the_same_call_in_every_session_until_it_is_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(&dir.path().join("state")).unwrap();
        let [one, two, call, other] =
            ["one", "two", "call", "other"].map(|text| Digest::sha256(text.as_bytes()));
        let lasting = |digest, lasting, now| Question { of_session: true, lasting, ..asked(digest, now) };
        let ask = |asked: &Question<'_>| match consult(&state, asked).unwrap() {
            Consulted::Waiting(id) => id,
            said @ (Consulted::Approved | Consulted::Denied) => panic!("it waits: {said:?}"),
        };
        let id = ask(&lasting(one, None, 0));
        assert_eq!(answer(&state, &id, Answer::Always, 0).unwrap(), Answered::NoRule, "none is offered");
        assert!(matches!(answer(&state, &id, Answer::Denied, 0).unwrap(), Answered::Recorded(_)));
        let long = "x".repeat(MAX_SHOWN);
        let id = ask(&Question { arguments: &long, ..lasting(other, Some(other), 0) });
        assert_eq!(
            answer(&state, &id, Answer::Always, 0).unwrap(),
            Answered::NoRule,
            "not all of it is shown"
        );
        let id = ask(&lasting(two, Some(call), 0));
        let Answered::Recorded(rule) = answer(&state, &id, Answer::Always, 0).unwrap() else {
            panic!("a rule")
        };
        assert!(rule.rule().join("\n").contains("always allow shell"), "{rule:?}");
        // In another session the first hash is another one.
        let late = 1000 * SESSION_US;
        assert_eq!(
            consult(&state, &lasting(Digest::sha256(b"three"), Some(call), late)).unwrap(),
            Consulted::Approved
        );
        assert!(take(&state, two, Some(call), late).unwrap());
        assert!(!take(&state, two, Some(other), late).unwrap() && !take(&state, call, None, late).unwrap());
        // It gives way to no number of questions.
        for number in 0..=MAX_WAITING {
            ask(&asked(Digest::sha256(number.to_string().as_bytes()), late));
        }
        assert_eq!(rules(&state, late).unwrap().len(), 1);
        assert!(take_back(&state, "nope", late).unwrap().is_none());
        assert_eq!(take_back(&state, &id, late).unwrap().map(|rule| rule.id), Some(id));
        assert!(!take(&state, two, Some(call), late).unwrap());
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
