//! Attributes: names of the semantic conventions for MCP and generative AI where there is one, else `bailiwick.…`.

use bailiwick_journal::format::{Event, RecordKind};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};

/// Text as a value.
pub(crate) fn text(text: impl Into<String>) -> AnyValue {
    AnyValue { value: Some(Value::StringValue(text.into())) }
}

/// A number as a value; one that is too large is the largest.
pub(crate) fn number(number: u64) -> AnyValue {
    AnyValue { value: Some(Value::IntValue(i64::try_from(number).unwrap_or(i64::MAX))) }
}

/// An attribute.
pub(crate) fn attribute(key: impl Into<String>, value: AnyValue) -> KeyValue {
    KeyValue { key: key.into(), value: Some(value), ..KeyValue::default() }
}

/// Whether the event is about a call of a tool.
pub(crate) const fn is_call(kind: RecordKind) -> bool {
    matches!(kind, RecordKind::ToolCalled | RecordKind::ToolFinished | RecordKind::GuardrailBlocked)
}

/// What an event says, but for its time and its place in the chain.
pub(crate) fn of_event(event: &Event) -> Vec<KeyValue> {
    let texts = [
        ("gen_ai.tool.name", event.tool()),
        ("bailiwick.server", event.server()),
        ("bailiwick.capability", event.capability()),
        ("bailiwick.code", event.code()),
        ("bailiwick.reason", event.reason()),
        ("bailiwick.agent", event.agent()),
        ("bailiwick.origin", event.origin()),
        ("bailiwick.risk", event.risk()),
        ("gen_ai.tool.call.arguments", event.args()),
        ("gen_ai.tool.call.result", event.result()),
    ];
    let digests = [
        ("bailiwick.args_digest", event.args_digest()),
        ("bailiwick.policy_hash", event.policy_hash()),
        ("bailiwick.plan_hash", event.plan_hash()),
    ];
    let mut all = vec![attribute("bailiwick.kind", text(event.kind().name()))];
    if is_call(event.kind()) {
        all.push(attribute("mcp.method.name", text("tools/call")));
        all.push(attribute("gen_ai.operation.name", text("execute_tool")));
    }
    all.extend(texts.into_iter().filter_map(|(key, said)| said.map(|said| attribute(key, text(said)))));
    all.extend(
        digests.into_iter().filter_map(|(key, said)| said.map(|it| attribute(key, text(it.to_string())))),
    );
    all.extend(event.decision().map(|decision| attribute("bailiwick.decision", text(decision.name()))));
    all.extend(event.duration_us().map(|spent| attribute("bailiwick.duration_us", number(spent))));
    all.extend(event.used_declared_capability().map(|declared| {
        let value = AnyValue { value: Some(Value::BoolValue(declared)) };
        attribute("bailiwick.used_declared_capability", value)
    }));
    let levels = event.enforcement().into_iter().flat_map(|held| held.iter());
    all.extend(levels.map(|(axis, level)| attribute(format!("bailiwick.enforcement.{axis}"), text(level))));
    all
}
