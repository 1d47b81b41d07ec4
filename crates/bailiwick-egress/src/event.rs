//! Events: every decision, as one line for people and as JSON for programs.
//!
//! Text that a client chose is escaped and cut: an event is safe on a terminal and in a log.

use std::fmt;
use std::net::IpAddr;

use serde_json::{Map, Value};

use crate::decide::Refusal;

/// The most characters of a client's own text that an event repeats.
const MAX_TEXT: usize = 260;

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    host: String,
    port: Option<u16>,
    request: Option<String>,
    outcome: EgressOutcome,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EgressOutcome {
    /// The connection goes to this address.
    Allowed(IpAddr),
    /// A connection from this address to a port that is listened on outside was handed in.
    Accepted(IpAddr),
    /// It goes nowhere.
    Refused(Refusal),
}

impl Event {
    pub(crate) fn new(host: &str, port: Option<u16>, outcome: EgressOutcome) -> Self {
        Self { host: harmless(host), port, request: None, outcome }
    }

    /// The same event, about one HTTP request.
    pub(crate) fn about(mut self, method: &str, target: &str) -> Self {
        self.request = Some(harmless(&format!("{method} {target}")));
        self
    }

    /// The name or address that was asked for.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; `None` where only a name was asked for.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// Method and target, where a plain HTTP request was judged.
    #[must_use]
    pub fn request(&self) -> Option<&str> {
        self.request.as_deref()
    }

    /// What was decided.
    #[must_use]
    pub const fn outcome(&self) -> &EgressOutcome {
        &self.outcome
    }

    /// The refusal, if it is one.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Refusal> {
        match &self.outcome {
            EgressOutcome::Refused(refusal) => Some(refusal),
            EgressOutcome::Allowed(_) | EgressOutcome::Accepted(_) => None,
        }
    }

    /// The event as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut json = Map::new();
        let mut set = |key: &str, value: Value| drop(json.insert(key.to_owned(), value));
        set("host", self.host.as_str().into());
        set("port", self.port.into());
        set("request", self.request.as_deref().into());
        match &self.outcome {
            EgressOutcome::Allowed(address) => {
                set("verdict", "allowed".into());
                set("address", address.to_string().into());
            }
            EgressOutcome::Accepted(peer) => {
                set("verdict", "accepted".into());
                set("peer", peer.to_string().into());
            }
            EgressOutcome::Refused(refusal) => {
                set("verdict", "refused".into());
                set("code", refusal.code().as_str().into());
                set("reason", refusal.code().meaning().into());
                set("grant", refusal.grant().into());
            }
        }
        Value::Object(json)
    }
}

impl fmt::Display for Event {
    /// `allowed api.github.com:443`, `refused evil.test: not granted`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match &self.outcome {
            EgressOutcome::Allowed(_) => "allowed",
            EgressOutcome::Accepted(_) => "accepted",
            EgressOutcome::Refused(_) => "refused",
        };
        write!(f, "{verdict} {}", self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        if let Some(request) = &self.request {
            write!(f, " {request}")?;
        }
        if let EgressOutcome::Accepted(peer) = &self.outcome {
            write!(f, " from {peer}")?;
        }
        self.refusal().map_or(Ok(()), |refusal| write!(f, ": {}", refusal.code().meaning()))
    }
}

fn harmless(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_graphic() || letter == ' ';
    let mut safe = String::new();
    for letter in text.chars().take(MAX_TEXT) {
        if plain(letter) { safe.push(letter) } else { safe.extend(letter.escape_unicode()) }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Code;

    #[test]
    fn an_event_is_one_harmless_line() {
        let refused =
            EgressOutcome::Refused(Refusal::new(Code::HostNotGranted).grantable("net:connect:evil.test"));
        let event = Event::new("evil.test", None, refused.clone());
        assert_eq!(event.to_string(), "refused evil.test: not granted");
        assert_eq!(event.to_json()["grant"], "net:connect:evil.test");
        let allowed =
            Event::new("api.github.com", Some(443), EgressOutcome::Allowed("1.1.1.1".parse().unwrap()));
        assert_eq!(allowed.to_string(), "allowed api.github.com:443");
        let nasty = Event::new("a\u{1b}[2J\n", Some(80), refused).about("GET", "/\u{202e}\u{0}");
        assert_eq!(nasty.to_string(), "refused a\\u{1b}[2J\\u{a}:80 GET /\\u{202e}\\u{0}: not granted");
        assert!(Event::new(&"x".repeat(9_000), None, nasty.outcome().clone()).to_string().len() < 400);
    }
}
