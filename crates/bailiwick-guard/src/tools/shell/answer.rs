//! The result of a call: what was printed, how it ended, what was refused, and by whom everything was held.

use std::collections::BTreeSet;

use bailiwick_launch::{Exit, NetworkEvent, Status};
use bailiwick_policy::denial::Denial;
use bailiwick_policy::enforcement::Level;
use serde_json::{Map, Value, json};

use super::script::Ending;
use super::streams::Captured;
use crate::outcome::Output;

/// Where clients find what held a call: `_meta` of the protocol, for a model has no use for it.
const ENFORCEMENT: &str = "dev.bailiwick/enforcement";
/// More notes than these are only counted.
const MOST_NOTES: usize = 10;

/// Everything that a result says.
pub(super) struct Answer {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) timed_out: bool,
    /// What was refused while it ran, as far as it is known.
    pub(super) denied: Option<Denial>,
    pub(super) statuses: Vec<Status>,
    pub(super) dropped: Vec<String>,
}

impl Answer {
    /// How one program ended.
    pub(super) const fn of_exit(
        exit: Exit,
        timed_out: bool,
        statuses: Vec<Status>,
        dropped: Vec<String>,
    ) -> Self {
        let (code, signal) = match exit {
            Exit::Code(code) => (Some(code), None),
            Exit::Signal(signal) => (None, Some(signal)),
        };
        Self { code, signal, timed_out, denied: None, statuses, dropped }
    }

    /// How a script ended; one that was denied on the way has the code of a program that may not start.
    pub(super) fn of_ending(ending: Ending, statuses: Vec<Status>, dropped: Vec<String>) -> Self {
        let (code, signal, timed_out, denied) = match ending {
            Ending::Ended(last) => (Some(last.code), last.signal, false, None),
            Ending::TimedOut => (None, Some(9), true, None),
            Ending::Denied(denial) => (Some(126), None, false, Some(denial)),
        };
        Self { code, signal, timed_out, denied, statuses, dropped }
    }

    /// The result, with what held it beside it.
    pub(super) fn to_output(&self, out: Captured, err: Captured, network: &[NetworkEvent]) -> Output {
        let structured = Some(self.structured(out, err, network));
        let meta = Map::from_iter([(ENFORCEMENT.to_owned(), self.enforcement())]);
        Output { structured, meta, ..Output::default() }
    }

    fn structured(&self, out: Captured, err: Captured, network: &[NetworkEvent]) -> Value {
        let dropped: BTreeSet<&String> = self.dropped.iter().collect();
        let denials = self.denied.iter().map(denied).chain(network.iter().filter_map(refused));
        json!({
            "exit_code": self.code,
            "signal": self.signal,
            "stdout": out.text,
            "stderr": err.text,
            "timed_out": self.timed_out,
            "stdout_truncated": out.truncated,
            "stderr_truncated": err.truncated,
            "denials": denials.collect::<Vec<Value>>(),
            "dropped_env": dropped,
        })
    }

    /// What held the programs, by whom each axis was held, and what of the grant was left out.
    fn enforcement(&self) -> Value {
        let notes: BTreeSet<&String> = self.statuses.iter().flat_map(|status| &status.details).collect();
        json!({
            "sandbox": self.statuses.first().map(|status| status.backend),
            "levels": self.levels(),
            "notes": notes.iter().take(MOST_NOTES).collect::<Vec<_>>(),
            "more_notes": notes.len().saturating_sub(MOST_NOTES),
        })
    }

    /// By whom each axis was held, in the sandbox that held it least; nothing if none was needed.
    fn levels(&self) -> Map<String, Value> {
        let mut weakest: Vec<(&'static str, Level)> = Vec::new();
        for (aspect, held) in self.statuses.iter().flat_map(|status| status.coverage.iter()) {
            match weakest.iter_mut().find(|(name, _)| *name == aspect.as_str()) {
                Some((_, level)) => *level = held.level.min(*level),
                None => weakest.push((aspect.as_str(), held.level)),
            }
        }
        weakest.into_iter().map(|(name, level)| (name.to_owned(), level.as_str().into())).collect()
    }
}

fn denied(denial: &Denial) -> Value {
    json!({ "code": denial.code().as_str(), "message": denial.message(), "grant": denial.smallest_lines() })
}

fn refused(event: &NetworkEvent) -> Option<Value> {
    let refusal = event.refusal()?;
    let port = event.port().map(|port| format!(":{port}")).unwrap_or_default();
    let message = format!("{}{port}: {}", event.host(), refusal.code().meaning());
    Some(json!({ "code": refusal.code().as_str(), "message": message, "grant": refusal.grant() }))
}

/// The JSON Schema of a result.
pub(super) fn schema() -> Value {
    let text = json!({ "type": "string" });
    let flag = json!({ "type": "boolean" });
    let maybe = |kind: &str, about: &str| json!({ "type": [kind, "null"], "description": about });
    let texts = |about: &str| json!({ "type": "array", "items": text, "description": about });
    json!({
        "type": "object",
        "properties": {
            "exit_code": maybe("integer", "Of the program or of the script's last pipeline; null if it was ended."),
            "signal": maybe("integer", "The signal that ended it."),
            "stdout": text,
            "stderr": text,
            "timed_out": { "type": "boolean", "description": "Its time was over; the output is what came until then." },
            "stdout_truncated": flag,
            "stderr_truncated": flag,
            "denials": {
                "type": "array",
                "description": "What was refused while it ran, as far as it is known.",
                "items": {
                    "type": "object",
                    "properties": {
                        "code": text,
                        "message": text,
                        "grant": maybe("string", "The smallest grant that would allow it, if one would."),
                    },
                    "required": ["code", "message", "grant"],
                },
            },
            "dropped_env": texts("Variables that were not set because they make programs load other code."),
        },
        "required": [
            "exit_code", "signal", "stdout", "stderr", "timed_out", "stdout_truncated", "stderr_truncated",
            "denials", "dropped_env",
        ],
        "additionalProperties": false,
    })
}
