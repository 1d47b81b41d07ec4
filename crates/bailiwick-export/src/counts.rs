//! What is counted: totals since the cursor was made, kept with it, so that a batch that is sent again changes nothing.

use std::collections::BTreeMap;

use bailiwick_journal::format::{Decision, Event, RecordKind};
use serde::{Deserialize, Serialize};

/// How many rows one counter has at most; tools are named by servers. What comes after is counted in one row.
const MOST_ROWS: usize = 500;

/// The bounds of the buckets of durations, in microseconds: those that the conventions for MCP advise.
pub(crate) const BOUNDS_US: [u64; 14] = [
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    300_000_000,
];

/// What a row is counted by: values in the order of the counter's attributes; none is the row of all others.
pub(crate) type Row = Vec<String>;

/// Totals, kept with the cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Counts {
    /// When counting began, in microseconds since 1970.
    pub(crate) since_us: u64,
    /// By tool, server and decision.
    #[serde(with = "rows")]
    pub(crate) calls: BTreeMap<Row, u64>,
    /// By tool and code.
    #[serde(with = "rows")]
    pub(crate) denials: BTreeMap<Row, u64>,
    /// By decision.
    #[serde(with = "rows")]
    pub(crate) egress: BTreeMap<Row, u64>,
    /// By tool.
    #[serde(with = "rows")]
    pub(crate) starts: BTreeMap<Row, u64>,
    /// By tool.
    #[serde(with = "rows")]
    pub(crate) durations: BTreeMap<Row, Durations>,
    /// Events that lay too far behind and were not sent.
    pub skipped: u64,
    /// Events that the collector did not take.
    pub rejected: u64,
    /// Lines that are no records.
    pub unreadable: u64,
    /// Lines that retention removed before they were read.
    pub removed: u64,
}

/// How long calls of a tool took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Durations {
    /// One more than there are bounds.
    pub(crate) buckets: Vec<u64>,
    pub(crate) count: u64,
    pub(crate) sum_us: u64,
}

impl Durations {
    fn add(&mut self, spent_us: u64) {
        self.buckets.resize(BOUNDS_US.len() + 1, 0);
        let at = BOUNDS_US.iter().position(|bound| spent_us <= *bound).unwrap_or(BOUNDS_US.len());
        if let Some(bucket) = self.buckets.get_mut(at) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum_us = self.sum_us.saturating_add(spent_us);
    }
}

impl Counts {
    /// Counts an event.
    pub(crate) fn add(&mut self, event: &Event) {
        let owned = |said: Option<&str>| said.unwrap_or_default().to_owned();
        let (tool, server) = (owned(event.tool()), owned(event.server()));
        let decided = event.decision().map_or("", Decision::name).to_owned();
        let is_denial = event.decision() == Some(Decision::Deny);
        match event.kind() {
            RecordKind::ToolCalled => *row(&mut self.calls, vec![tool.clone(), server, decided]) += 1,
            // A call that was refused leaves no other line.
            RecordKind::CapabilityDenied | RecordKind::GuardrailBlocked if event.parent().is_none() => {
                *row(&mut self.calls, vec![tool.clone(), server, decided]) += 1;
            }
            RecordKind::ToolFinished => {
                if let Some(spent) = event.duration_us() {
                    row(&mut self.durations, vec![tool.clone()]).add(spent);
                }
            }
            RecordKind::SandboxStarted => *row(&mut self.starts, vec![tool.clone()]) += 1,
            RecordKind::EgressAllowed | RecordKind::EgressDenied => {
                *row(&mut self.egress, vec![decided]) += 1;
            }
            RecordKind::CapabilityGranted
            | RecordKind::CapabilityDenied
            | RecordKind::SandboxEnded
            | RecordKind::GuardrailBlocked
            | RecordKind::ApprovalAsked
            | RecordKind::ApprovalDecided
            | RecordKind::PinChanged
            | RecordKind::SessionStarted
            | RecordKind::SessionEnded
            | RecordKind::Fault => {}
        }
        if is_denial {
            *row(&mut self.denials, vec![tool, owned(event.code())]) += 1;
        }
    }
}

/// The row of these values, or that of all others when there are too many.
fn row<T: Default>(rows: &mut BTreeMap<Row, T>, values: Row) -> &mut T {
    let is_full = rows.len() >= MOST_ROWS && !rows.contains_key(&values);
    rows.entry(if is_full { Row::new() } else { values }).or_default()
}

/// Rows as a list of pairs: JSON has no lists for keys.
mod rows {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Row;

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        rows: &BTreeMap<Row, T>,
        into: S,
    ) -> Result<S::Ok, S::Error> {
        into.collect_seq(rows.iter())
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<Row, T>, D::Error> {
        Ok(Vec::<(Row, T)>::deserialize(from)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_bounded_and_survive_being_kept() {
        let mut counts = Counts::default();
        for number in 0..2 * MOST_ROWS {
            let event =
                Event::new(RecordKind::ToolFinished).with_tool(format!("t{number}")).with_duration_us(15_000);
            counts.add(&event);
        }
        assert_eq!(counts.durations.len(), MOST_ROWS + 1);
        assert_eq!(counts.durations[&Row::new()].count, MOST_ROWS as u64);
        assert_eq!(counts.durations[&vec!["t1".to_owned()]].buckets[1], 1);
        let text = serde_json::to_string(&counts).unwrap();
        assert_eq!(serde_json::from_str::<Counts>(&text).unwrap(), counts);
    }

    #[test]
    fn a_refused_call_is_a_call_and_a_denial_within_one_is_not() {
        let mut counts = Counts::default();
        let denied = Event::new(RecordKind::CapabilityDenied).with_tool("t").with_decision(Decision::Deny);
        counts.add(&denied.clone().with_code("tool-forbidden"));
        counts.add(&denied.with_code("net-not-granted").with_parent(3));
        assert_eq!(counts.calls.values().sum::<u64>(), 1);
        assert_eq!(counts.denials.len(), 2);
    }
}
