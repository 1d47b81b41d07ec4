//! Events of the journal, for people and for programs.
//!
//! For programs a record is its line of the journal, member for member: what was read, `hash` included, whether or
//! not it holds. For people, every text of an event is escaped: tools and servers write what they like.

use bailiwick_command::moment;
use bailiwick_command::render::{escape, style};
use bailiwick_journal::format::{Decision, Event, Record};
use serde_json::Value;

/// The most characters of a text that one line shows.
const SHOWN: usize = 200;

/// How times are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Clock {
    /// As time passed since this moment.
    Since(u64),
    /// As they are.
    Utc,
}

impl Clock {
    pub(crate) fn show(self, time: u64) -> String {
        match self {
            Self::Since(now) => moment::ago(time, now),
            Self::Utc => moment::utc(time),
        }
    }
}

/// The record as a line of JSON, without a newline.
pub(crate) fn json_line(record: &Record) -> String {
    record.to_line()
}

/// The record as a value, to be put into a document.
pub(crate) fn json(record: &Record) -> Value {
    serde_json::from_str(&json_line(record)).unwrap_or(Value::Null)
}

/// `SESSION:SEQ`.
pub(crate) fn name(record: &Record) -> String {
    format!("{}:{}", record.session, record.seq)
}

/// The record on one line, without a newline.
pub(crate) fn text_line(record: &Record, clock: Clock) -> String {
    let time = style::faint(&format!("{:>8}", clock.show(record.time())));
    let name = name(record);
    let Some(event) = record.event() else { return format!("{time}  {name}  seal") };
    let tool = event.tool().map(|tool| format!("  {}", style::strong(&short(tool)))).unwrap_or_default();
    let detail = detail(event);
    let detail = if detail.is_empty() { detail } else { format!("  {detail}") };
    format!("{time}  {name}  {}  {}{tool}{detail}", decision(event.decision()), event.kind().name())
}

/// Every member of the record that is there, one on each line.
pub(crate) fn text_whole(record: &Record, clock: Clock) -> String {
    let mut text = format!("{}\n", style::strong(&name(record)));
    let mut field = |name: &str, value: &str| text += &format!("  {name:<12} {}\n", escape::line(value));
    let time = match clock {
        Clock::Utc => moment::utc(record.time()),
        Clock::Since(_) => format!("{} ({})", moment::utc(record.time()), clock.show(record.time())),
    };
    field("time", &time);
    let members = json(record);
    let members = members.as_object().into_iter().flatten();
    for (key, value) in members.filter(|(key, _)| !ELSEWHERE.contains(&key.as_str())) {
        field(key, &value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    field("prev", &record.prev.to_string());
    field("hash", &record.hash.to_string());
    text
}

/// Members that stand elsewhere in the text.
const ELSEWHERE: [&str; 6] = ["session", "seq", "time", "v", "prev", "hash"];

fn decision(decision: Option<Decision>) -> String {
    match decision {
        Some(Decision::Allow) => style::good("allow  "),
        Some(Decision::Rewrite) => style::warning("rewrite"),
        Some(Decision::Ask) => style::warning("ask    "),
        Some(Decision::Deny) => style::error("deny   "),
        None => "-      ".to_owned(),
    }
}

fn detail(event: &Event) -> String {
    let said = match (event.code(), event.reason(), event.capability()) {
        (Some(code), Some(reason), _) => format!("{}: {}", short(code), short(reason)),
        (Some(text), None, _) | (None, Some(text), None) | (None, _, Some(text)) => short(text),
        (None, None, None) => String::new(),
    };
    let server = event.server().map(|server| format!("server {}", short(server)));
    let took = event.duration_us().map(|micros| style::faint(&format!("in {}", moment::took(micros))));
    let parts = [Some(said).filter(|said| !said.is_empty()), server, took];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

/// Text of an event, harmless and not too long.
pub(crate) fn short(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    escape::line(&shown)
}
