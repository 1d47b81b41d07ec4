//! Resource limits of a server.

use crate::document::{Fields, Node, Value};
use crate::finding::{Code, Collector, Finding};
use crate::units;

/// What a server may use; absent means the sandbox's own default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Wall-clock time of one call, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Memory, in bytes.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// Processor time, in thousandths of a processor.
    pub cpu_milli: Option<u64>,
    /// The largest file that may be written, in bytes.
    pub file_size: Option<u64>,
}

/// One kind of limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Wall-clock time of one call.
    Timeout,
    /// Memory.
    Memory,
    /// Processes and threads.
    Pids,
    /// Processor time.
    Cpu,
    /// The largest file.
    FileSize,
}

impl Limit {
    /// The name that a manifest has for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
            Self::FileSize => "file_size",
        }
    }
}

impl Limits {
    /// The limits that are declared.
    pub fn declared(&self) -> impl Iterator<Item = Limit> {
        let all = [
            (Limit::Timeout, self.timeout_ms),
            (Limit::Memory, self.memory),
            (Limit::Pids, self.pids),
            (Limit::Cpu, self.cpu_milli),
            (Limit::FileSize, self.file_size),
        ];
        all.into_iter().filter(|(_, value)| value.is_some()).map(|(limit, _)| limit)
    }
}

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
