//! Totals as metrics: cumulative, so that one that is sent twice says the same.

use std::collections::BTreeMap;
use std::time::Duration;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};

use crate::counts::{BOUNDS_US, Counts, Durations, Row};
use crate::logs::nanoseconds;
use crate::value::{attribute, text};

/// All totals, as they are at `now_us`.
pub(crate) fn metrics(counts: &Counts, now_us: u64) -> Vec<Metric> {
    let span = TimeSpan { start: nanoseconds(counts.since_us), end: nanoseconds(now_us) };
    let tool = "gen_ai.tool.name";
    let rows = |counted: &BTreeMap<Row, u64>, keys: &[&str]| {
        counted.iter().map(|(row, count)| span.point(row_attributes(row, keys), *count)).collect::<Vec<_>>()
    };
    let single = |count: u64| vec![span.point(Vec::new(), count)];
    let calls = rows(&counts.calls, &[tool, "bailiwick.server", "bailiwick.decision"]);
    let sums = [
        ("bailiwick.calls", "{call}", "Calls of tools, let through or not", calls),
        ("bailiwick.denials", "{denial}", "Refusals", rows(&counts.denials, &[tool, "error.type"])),
        ("bailiwick.sandbox.starts", "{start}", "Confined programs started", rows(&counts.starts, &[tool])),
        (
            "bailiwick.egress",
            "{decision}",
            "Decisions of the network",
            rows(&counts.egress, &["bailiwick.decision"]),
        ),
        ("bailiwick.export.skipped", "{event}", "Events too far behind to be sent", single(counts.skipped)),
        (
            "bailiwick.export.rejected",
            "{event}",
            "Events the collector did not take",
            single(counts.rejected),
        ),
        ("bailiwick.export.unreadable", "{line}", "Lines that are no records", single(counts.unreadable)),
        ("bailiwick.export.removed", "{line}", "Lines removed before they were read", single(counts.removed)),
    ];
    let mut all: Vec<Metric> =
        sums.into_iter().map(|(name, unit, what, points)| sum(name, unit, what, points)).collect();
    let points = counts.durations.iter().map(|(row, spent)| span.histogram(row, spent)).collect();
    all.push(Metric {
        name: "mcp.server.operation.duration".to_owned(),
        description: "How long calls of tools took".to_owned(),
        unit: "s".to_owned(),
        data: Some(Data::Histogram(Histogram {
            data_points: points,
            aggregation_temporality: AggregationTemporality::Cumulative.into(),
        })),
        ..Metric::default()
    });
    all
}

fn sum(name: &str, unit: &str, description: &str, data_points: Vec<NumberDataPoint>) -> Metric {
    let aggregation_temporality = AggregationTemporality::Cumulative.into();
    Metric {
        name: name.to_owned(),
        description: description.to_owned(),
        unit: unit.to_owned(),
        data: Some(Data::Sum(Sum { data_points, aggregation_temporality, is_monotonic: true })),
        ..Metric::default()
    }
}

/// The attributes of a row; that of all others says so in the conventions' way.
fn row_attributes(row: &Row, keys: &[&str]) -> Vec<KeyValue> {
    if row.is_empty() {
        let value = AnyValue { value: Some(Value::BoolValue(true)) };
        return vec![attribute("otel.metric.overflow", value)];
    }
    let said = keys.iter().zip(row).filter(|(_, value)| !value.is_empty());
    said.map(|(key, value)| attribute(*key, text(value.as_str()))).collect()
}

/// From when to when was counted.
struct TimeSpan {
    start: u64,
    end: u64,
}

impl TimeSpan {
    fn point(&self, attributes: Vec<KeyValue>, count: u64) -> NumberDataPoint {
        NumberDataPoint {
            attributes,
            start_time_unix_nano: self.start,
            time_unix_nano: self.end,
            value: Some(Number::AsInt(i64::try_from(count).unwrap_or(i64::MAX))),
            ..NumberDataPoint::default()
        }
    }

    fn histogram(&self, row: &Row, spent: &Durations) -> HistogramDataPoint {
        let mut attributes = row_attributes(row, &["gen_ai.tool.name"]);
        attributes.push(attribute("mcp.method.name", text("tools/call")));
        HistogramDataPoint {
            attributes,
            start_time_unix_nano: self.start,
            time_unix_nano: self.end,
            count: spent.count,
            sum: Some(Duration::from_micros(spent.sum_us).as_secs_f64()),
            bucket_counts: spent.buckets.clone(),
            explicit_bounds: BOUNDS_US.iter().map(|us| Duration::from_micros(*us).as_secs_f64()).collect(),
            ..HistogramDataPoint::default()
        }
    }
}
