//! What the page asks for and does, one path each. Each act is one that a command does too, and is recorded as that is.

use bailiwick_guardrails::approvals::{self, Answer as Given, Answered, Pending};
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::host::{ConsoleHost, HostFault};
use crate::reply::Reply;
use crate::{Console, grant, history, sessions};

/// What changes something: only with an origin, and not in a console that only watches.
pub(crate) const CHANGING: [&str; 5] =
    ["/api/answer", "/api/take-back", "/api/pins/accept", "/api/grant/apply", "/api/grant/undo"];

/// How many events a page is given that names no number.
const SOME: usize = 2_000;
/// The longest note of a person.
const MAX_NOTE: usize = 500;

/// Answers a request whose body was read.
pub(crate) fn act<H: ConsoleHost>(
    console: &Console<H>,
    (method, path): (&str, &str),
    query: &str,
    body: &Bytes,
) -> Reply {
    match (method, path) {
        ("GET", "/api/events") => events(console, query),
        ("GET", "/api/sessions") => sessions::list(console),
        ("POST", "/api/verify") => sessions::verified(console),
        ("POST", "/api/answer") => with_body(body, |asked| answer(console, &asked)),
        ("POST", "/api/take-back") => with_body(body, |asked| take_back(console, &asked)),
        ("POST", "/api/pins/accept") => with_body(body, |asked| accept(console, &asked)),
        ("POST", "/api/grant/preview") => with_body(body, |asked| grant::preview(console, &asked)),
        ("POST", "/api/grant/apply") => with_body(body, |asked| grant::apply(console, &asked)),
        ("POST", "/api/grant/undo") => with_body(body, |asked| grant::undo(console, &asked)),
        _ => Reply::refused(StatusCode::NOT_FOUND, "there is nothing here"),
    }
}

fn with_body<T: DeserializeOwned>(body: &Bytes, act: impl FnOnce(T) -> Reply) -> Reply {
    match serde_json::from_slice(body) {
        Ok(asked) => act(asked),
        Err(error) => Reply::invalid(&format!("this is not what is asked for here: {error}")),
    }
}

/// A value of a query, which no value of ours needs to be escaped in.
pub(crate) fn queried<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

fn events<H: ConsoleHost>(console: &Console<H>, query: &str) -> Reply {
    let number = |name: &str| queried(query, name).map(str::parse::<u64>).transpose();
    let (Ok(limit), Ok(until)) = (number("limit"), number("until")) else {
        return Reply::invalid("`limit` and `until` are numbers");
    };
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(SOME);
    match history::newest(&console.options.journal, limit, until) {
        Ok(document) => Reply::text("application/json", document),
        Err(fault) => Reply::fault(&fault.to_string()),
    }
}

/// Everything but events and what waits for an answer.
pub(crate) fn state_value<H: ConsoleHost>(console: &Console<H>) -> Value {
    let listed = |found: Result<Vec<Value>, HostFault>| match found {
        Ok(all) => json!({ "all": all }),
        Err(fault) => json!({ "all": [], "fault": fault.to_string() }),
    };
    json!({
        "servers": listed(console.host.servers()),
        "pins": listed(console.host.pins()),
        "watches_only": console.options.watches_only,
        "journal": console.options.journal.to_string_lossy(),
    })
}

pub(crate) fn state<H: ConsoleHost>(console: &Console<H>) -> Reply {
    let mut state = state_value(console);
    if let Some(state) = state.as_object_mut() {
        state.insert("waiting".to_owned(), waiting(console));
    }
    Reply::json(&state)
}

/// What waits for an answer.
pub(crate) fn waiting<H: ConsoleHost>(console: &Console<H>) -> Value {
    let one = |one: &Pending| {
        json!({
            "id": one.id, "tool": one.tool, "arguments": one.arguments, "question": one.question,
            "digest": one.digest, "expires_us": one.expires, "of_session": one.of_session,
            "is_shortened": one.arguments.chars().count() >= approvals::MAX_SHOWN,
            "rule": one.lasting.is_some().then(|| one.rule()),
        })
    };
    let (state, now) = (&console.options.state, console.host.now_us());
    let listed = |all: &[Pending]| all.iter().map(one).collect::<Vec<_>>();
    match approvals::pending(state, now).and_then(|all| Ok((all, approvals::rules(state, now)?))) {
        Ok((all, rules)) => json!({ "all": listed(&all), "rules": listed(&rules) }),
        Err(fault) => json!({ "all": [], "rules": [], "fault": fault.to_string() }),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerAsked {
    id: String,
    /// What the page showed: an id is a name, and this is what is answered.
    digest: String,
    answer: Said,
    #[serde(default)]
    note: String,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum Said {
    Once,
    Session,
    Always,
    Deny,
}

fn answer<H: ConsoleHost>(console: &Console<H>, asked: &AnswerAsked) -> Reply {
    if asked.note.chars().count() > MAX_NOTE {
        return Reply::invalid("a note has at most 500 characters");
    }
    let (state, now) = (&console.options.state, console.host.now_us());
    let given = match asked.answer {
        Said::Once => Given::Approved,
        Said::Session => Given::Session,
        Said::Always => Given::Always,
        Said::Deny => Given::Denied,
    };
    let waits = match approvals::pending(state, now) {
        Ok(all) => all.into_iter().any(|one| one.id == asked.id && one.digest == asked.digest),
        Err(fault) => return Reply::fault(&fault.to_string()),
    };
    if !waits {
        return Reply::conflict("this was answered elsewhere, or is over");
    }
    match approvals::answer(state, &asked.id, given, now) {
        Ok(Answered::Recorded(waiting)) => {
            console.host.record(given.event(&waiting, asked.note.trim()));
            Reply::json(&json!({ "answered": given.word(), "id": waiting.id }))
        }
        Ok(Answered::Gone) => Reply::conflict("this was answered elsewhere, or is over"),
        Ok(Answered::Sessionless) => Reply::conflict("this call belongs to no session: allow it once"),
        Ok(Answered::NoRule) => Reply::conflict("this call is allowed one by one, not by a rule"),
        Err(fault) => Reply::fault(&fault.to_string()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TakeBackAsked {
    id: String,
}

fn take_back<H: ConsoleHost>(console: &Console<H>, asked: &TakeBackAsked) -> Reply {
    match approvals::take_back(&console.options.state, &asked.id, console.host.now_us()) {
        Ok(Some(rule)) => {
            console.host.record(rule.taken_back());
            Reply::json(&json!({ "taken_back": rule.id }))
        }
        Ok(None) => Reply::conflict("there is no such rule any more"),
        Err(fault) => Reply::fault(&fault.to_string()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptAsked {
    identity: String,
    seen: String,
}

fn accept<H: ConsoleHost>(console: &Console<H>, asked: &AcceptAsked) -> Reply {
    match console.host.accept_pins(&asked.identity, &asked.seen) {
        Ok(true) => Reply::json(&json!({ "accepted": asked.identity })),
        Ok(false) => Reply::conflict("there is nothing to accept, or it changed since it was shown"),
        Err(fault) => Reply::fault(&fault.to_string()),
    }
}
