//! Events as log records.

use bailiwick_journal::format::{Decision, RecordKind};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};

use crate::batch::Exported;
use crate::ids;
use crate::value::{attribute, of_event, text};

/// Microseconds as nanoseconds.
pub(crate) const fn nanoseconds(us: u64) -> u64 {
    us.saturating_mul(1000)
}

/// An event as a log record. Its `log.record.uid` is the hash of its line: equal in every copy.
pub(crate) fn log_record(exported: &Exported) -> LogRecord {
    let event = &exported.event;
    let (is_fault, is_denial) = (event.kind() == RecordKind::Fault, event.decision() == Some(Decision::Deny));
    let (number, word) = if is_fault {
        (SeverityNumber::Error, "ERROR")
    } else if is_denial {
        (SeverityNumber::Warn, "WARN")
    } else {
        (SeverityNumber::Info, "INFO")
    };
    let mut attributes = vec![
        attribute("log.record.uid", text(&*exported.hash)),
        attribute("bailiwick.event.id", text(ids::event_id(&exported.session, exported.seq))),
        attribute("session.id", text(exported.session.as_str())),
    ];
    attributes.extend(of_event(event));
    if is_denial || is_fault {
        attributes.extend(event.code().map(|code| attribute("error.type", text(code))));
    }
    LogRecord {
        time_unix_nano: nanoseconds(event.time()),
        observed_time_unix_nano: nanoseconds(event.time()),
        severity_number: number.into(),
        severity_text: word.to_owned(),
        body: Some(text(event.reason().unwrap_or_else(|| event.kind().name()))),
        attributes,
        trace_id: exported.trace_id.clone(),
        span_id: exported.span_id.clone(),
        event_name: format!("bailiwick.{}", event.kind().name()),
        ..LogRecord::default()
    }
}
