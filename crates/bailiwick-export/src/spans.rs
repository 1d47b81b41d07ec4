//! Spans: the call, the gate that judged it, the sandbox it ran in, and what that reached.
//!
//! A span is made when it ends. What has begun is kept with the cursor, the newest of each session, so that a span has the
//! same ids and the same start whichever process ends it.

use std::collections::BTreeMap;

use bailiwick_journal::format::{Decision, Event, RecordKind, SessionId};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use serde::{Deserialize, Serialize};

use crate::ids;
use crate::logs::nanoseconds;
use crate::value::{attribute, of_event, text};

/// How many spans of a session may have begun.
const MOST_BEGUN: usize = 256;

/// A span that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Begun {
    /// The number of the line where its trace starts.
    root: u64,
    /// The number of the line that caused it.
    parent: Option<u64>,
    /// When, in microseconds since 1970.
    time: u64,
}

/// Where an event stands among spans: its trace, its span, and the spans that ended with it.
pub(crate) struct Traced {
    pub(crate) trace_id: Vec<u8>,
    pub(crate) span_id: Vec<u8>,
    pub(crate) ended: Vec<Span>,
}

/// Places an event among the spans that have begun in its session.
pub(crate) fn trace(
    begun: &mut BTreeMap<u64, Begun>,
    session: &SessionId,
    seq: u64,
    event: &Event,
) -> Traced {
    let parent = event.parent();
    let root = parent.map_or(seq, |parent| begun.get(&parent).map_or(parent, |begun| begun.root));
    if begins(event) {
        begun.insert(seq, Begun { root, parent, time: event.time() });
        while begun.len() > MOST_BEGUN {
            begun.pop_first();
        }
    }
    let place = SpanPlace { session, root, seq, event };
    let ended = match event.kind() {
        RecordKind::ToolCalled => vec![place.gate(seq)],
        RecordKind::CapabilityDenied | RecordKind::GuardrailBlocked => match parent {
            Some(call) => vec![place.gate(call)],
            None => vec![place.refused_call(), place.gate(seq)],
        },
        RecordKind::ToolFinished => place.end(begun, "tools/call", SpanKind::Server),
        RecordKind::SandboxEnded => place.end(begun, "sandbox", SpanKind::Internal),
        RecordKind::ApprovalDecided if parent.is_some() => place.end(begun, "approval", SpanKind::Internal),
        RecordKind::EgressAllowed | RecordKind::EgressDenied => vec![place.egress()],
        RecordKind::CapabilityGranted
        | RecordKind::SandboxStarted
        | RecordKind::ApprovalAsked
        | RecordKind::ApprovalDecided
        | RecordKind::PinChanged
        | RecordKind::SessionStarted
        | RecordKind::SessionEnded
        | RecordKind::Fault => Vec::new(),
    };
    let span = if is_span(event) { seq } else { parent.unwrap_or(seq) };
    Traced { trace_id: ids::trace_id(session, root), span_id: ids::span_id(session, span), ended }
}

const fn begins(event: &Event) -> bool {
    matches!(event.kind(), RecordKind::ToolCalled | RecordKind::SandboxStarted | RecordKind::ApprovalAsked)
}

/// Whether its own number names a span.
const fn is_span(event: &Event) -> bool {
    begins(event) || matches!(event.kind(), RecordKind::EgressAllowed | RecordKind::EgressDenied)
}

/// An event, and the trace it is part of.
struct SpanPlace<'a> {
    session: &'a SessionId,
    root: u64,
    seq: u64,
    event: &'a Event,
}

impl SpanPlace<'_> {
    /// The check of a call: from when it was asked to what was decided.
    fn gate(&self, call: u64) -> Span {
        let mut span = self.span("gate", SpanKind::Internal, ids::gate_id(self.session, self.seq));
        span.parent_span_id = ids::span_id(self.session, call);
        // How long a check took stands only where the call was refused in it.
        span.start_time_unix_nano = nanoseconds(self.start());
        span
    }

    /// A call that ended at the gate.
    fn refused_call(&self) -> Span {
        let mut span = self.span("tools/call", SpanKind::Server, ids::span_id(self.session, self.seq));
        span.start_time_unix_nano = nanoseconds(self.start());
        span
    }

    fn egress(&self) -> Span {
        let mut span = self.span("egress", SpanKind::Client, ids::span_id(self.session, self.seq));
        let parent = self.event.parent();
        span.parent_span_id = parent.map_or_else(Vec::new, |parent| ids::span_id(self.session, parent));
        span
    }

    /// The span that this event's parent began, which ends here.
    fn end(&self, begun: &mut BTreeMap<u64, Begun>, name: &str, kind: SpanKind) -> Vec<Span> {
        let Some(first) = self.event.parent() else { return Vec::new() };
        let began = begun.get(&first);
        let mut span = self.span(name, kind, ids::span_id(self.session, first));
        let parent = began.and_then(|began| began.parent);
        span.parent_span_id = parent.map_or_else(Vec::new, |parent| ids::span_id(self.session, parent));
        // What took the time is measured by a clock that does not jump; the start is the end without it.
        let start = if self.event.duration_us().is_some() {
            self.start()
        } else {
            began.map_or(self.event.time(), |began| began.time)
        };
        span.start_time_unix_nano = nanoseconds(start);
        vec![span]
    }

    fn start(&self) -> u64 {
        self.event.time().saturating_sub(self.event.duration_us().unwrap_or_default())
    }

    /// A span of no length at the event.
    fn span(&self, name: &str, kind: SpanKind, span_id: Vec<u8>) -> Span {
        let end = nanoseconds(self.event.time());
        let is_denial = self.event.decision() == Some(Decision::Deny);
        let code = self.event.code().filter(|_| is_denial);
        let mut attributes = vec![
            attribute("bailiwick.event.id", text(ids::event_id(self.session, self.seq))),
            attribute("session.id", text(self.session.as_str())),
        ];
        attributes.extend(of_event(self.event));
        attributes.extend(code.map(|code| attribute("error.type", text(code))));
        let status = is_denial.then(|| Status {
            message: self.event.reason().unwrap_or_default().to_owned(),
            code: StatusCode::Error.into(),
        });
        Span {
            trace_id: ids::trace_id(self.session, self.root),
            span_id,
            name: self.event.tool().map_or_else(|| name.to_owned(), |tool| format!("{name} {tool}")),
            kind: kind.into(),
            start_time_unix_nano: end,
            end_time_unix_nano: end,
            attributes,
            status,
            ..Span::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_its_gate_its_sandbox_and_what_that_reached_are_one_trace() {
        let session: SessionId = "s".parse().unwrap();
        let event = |kind, time| Event::new(kind).with_tool("shell").at(time);
        let story = [
            (1, event(RecordKind::ToolCalled, 100).with_decision(Decision::Allow)),
            (2, event(RecordKind::SandboxStarted, 110).with_parent(1)),
            (
                3,
                event(RecordKind::EgressDenied, 120)
                    .with_parent(2)
                    .with_decision(Decision::Deny)
                    .with_code("net-not-granted"),
            ),
            (4, event(RecordKind::SandboxEnded, 150).with_parent(2).with_duration_us(40)),
            (5, event(RecordKind::ToolFinished, 160).with_parent(1).with_duration_us(60)),
        ];
        let mut begun = BTreeMap::new();
        let spans: Vec<Span> =
            story.iter().flat_map(|(seq, event)| trace(&mut begun, &session, *seq, event).ended).collect();
        let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["gate shell", "egress shell", "sandbox shell", "tools/call shell"]);
        let trace_id = ids::trace_id(&session, 1);
        assert!(spans.iter().all(|span| span.trace_id == trace_id));
        let call = ids::span_id(&session, 1);
        assert_eq!((&spans[3].span_id, spans[3].parent_span_id.len()), (&call, 0));
        assert_eq!(spans[0].parent_span_id, call);
        assert_eq!(spans[2].parent_span_id, call);
        assert_eq!(spans[1].parent_span_id, spans[2].span_id);
        assert_eq!((spans[3].start_time_unix_nano, spans[3].end_time_unix_nano), (100_000, 160_000));
        assert_eq!(spans[1].status.as_ref().unwrap().code, i32::from(StatusCode::Error));
    }

    #[test]
    fn what_has_begun_is_bounded() {
        let (session, mut begun): (SessionId, _) = ("s".parse().unwrap(), BTreeMap::new());
        for seq in 0..1000 {
            trace(&mut begun, &session, seq, &Event::new(RecordKind::ToolCalled));
        }
        assert_eq!(begun.len(), MOST_BEGUN);
    }
}
