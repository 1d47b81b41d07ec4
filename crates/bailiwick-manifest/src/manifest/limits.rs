//! Reads the resource limits of a server.

use bailiwick_policy::finding::{Code, Collector, Finding};
use bailiwick_policy::limits::Limits;

use crate::document::{Fields, Node, Value};
use crate::units;

/// Reads a `limits` table.
pub(super) fn read_limits(node: &Node<'_>, found: &mut Collector) -> Limits {
    let Some(mut fields) = found.keep(Fields::from_node(node, "limits", Code::ManifestLimit)) else {
        return Limits::default();
    };
    let mut field = |key, read: fn(&Node<'_>) -> Result<u64, Finding>| {
        fields.optional(key).and_then(|node| found.keep(read(node).and_then(|value| positive(value, node))))
    };
    let limits = Limits {
        timeout_ms: field("timeout", duration),
        memory: field("memory", size),
        pids: field("pids", |node| node.whole(Code::ManifestLimit)),
        cpu_milli: field("cpu", processors),
        file_size: field("file_size", size),
    };
    fields.finish(Code::ManifestUnknownField, found);
    limits
}

/// The largest number that canonical JSON writes exactly; beyond it two manifests would have one hash.
const MAX_EXACT: u64 = (1 << 53) - 1;

/// Refuses a number that a snapshot cannot hold exactly.
pub(super) fn exact(value: u64, node: &Node<'_>, code: Code) -> Result<u64, Finding> {
    if value <= MAX_EXACT {
        return Ok(value);
    }
    Err(Finding::new(code, format!("`{value}` is larger than a snapshot can hold exactly"))
        .at(node.span)
        .help(format!("write at most {MAX_EXACT}, or leave it out")))
}

fn positive(value: u64, node: &Node<'_>) -> Result<u64, Finding> {
    if value > 0 {
        return exact(value, node, Code::ManifestLimit);
    }
    Err(Finding::new(Code::ManifestLimit, "a limit of zero lets nothing run")
        .at(node.span)
        .help("leave it out for the default"))
}

fn duration(node: &Node<'_>) -> Result<u64, Finding> {
    measure(node, units::duration_ms, "a duration such as `30s` or `500ms`")
}

fn size(node: &Node<'_>) -> Result<u64, Finding> {
    measure(node, units::bytes, "a size such as `512M` or `2G`")
}

fn measure(node: &Node<'_>, read: fn(&str) -> Option<u64>, what: &str) -> Result<u64, Finding> {
    let text = match &node.value {
        Value::Number(text) | Value::Text { text, .. } => &**text,
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Table(_) => {
            return Err(node.expected(Code::ManifestLimit, what));
        }
    };
    read(text).ok_or_else(|| {
        Finding::new(Code::ManifestLimit, format!("`{text}` is not {what}"))
            .at(node.span)
            .help(format!("write {what}"))
    })
}

fn processors(node: &Node<'_>) -> Result<u64, Finding> {
    let Value::Number(text) = &node.value else {
        return Err(node.expected(Code::ManifestLimit, "a number of processors such as `1.5`"));
    };
    units::thousandths(text).ok_or_else(|| {
        Finding::new(Code::ManifestLimit, format!("`{text}` is not a number of processors"))
            .at(node.span)
            .help("write a number such as `1` or `0.5`, with at most three decimals")
    })
}
