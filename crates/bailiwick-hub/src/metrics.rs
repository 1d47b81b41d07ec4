//! Counters, as Prometheus reads them. They name routes and codes, never members or tools.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The counters of one hub.
#[derive(Debug, Default)]
pub struct Metrics {
    counts: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
    size: AtomicU64,
    publications: AtomicU64,
}

impl Metrics {
    /// One more of a route and a code.
    pub fn count(&self, route: &'static str, code: &'static str) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry((route, code)).or_default() += 1;
    }

    /// A checkpoint was signed for a tree of this size.
    pub fn published(&self, size: u64) {
        self.size.store(size, Ordering::Relaxed);
        self.publications.fetch_add(1, Ordering::Relaxed);
    }

    /// All of them as text.
    #[must_use]
    pub fn text(&self, checkpoint_ms: Option<u64>, is_database_up: bool) -> String {
        let mut text = String::from(
            "# HELP bailiwick_hub_requests_total Requests by route and result.\n# TYPE bailiwick_hub_requests_total counter\n",
        );
        for ((route, code), count) in self.counts.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // Writing to a `String` cannot fail.
            let _ =
                writeln!(text, "bailiwick_hub_requests_total{{route=\"{route}\",result=\"{code}\"}} {count}");
        }
        let gauges = [
            ("log_size", "Entries in the published log.", self.size.load(Ordering::Relaxed)),
            (
                "publications_total",
                "Checkpoints that were signed.",
                self.publications.load(Ordering::Relaxed),
            ),
            (
                "checkpoint_time_seconds",
                "When the served checkpoint was signed, since 1970.",
                checkpoint_ms.unwrap_or_default() / 1000,
            ),
            ("database_up", "Whether the database answers.", u64::from(is_database_up)),
        ];
        for (name, help, value) in gauges {
            let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
            let _ = writeln!(
                text,
                "# HELP bailiwick_hub_{name} {help}\n# TYPE bailiwick_hub_{name} {kind}\nbailiwick_hub_{name} {value}"
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_prometheus_text() {
        let metrics = Metrics::default();
        metrics.count("enrol", "ok");
        metrics.count("enrol", "ok");
        metrics.published(7);
        let text = metrics.text(Some(5_999), true);
        for line in [
            "bailiwick_hub_requests_total{route=\"enrol\",result=\"ok\"} 2",
            "bailiwick_hub_log_size 7",
            "bailiwick_hub_checkpoint_time_seconds 5",
            "bailiwick_hub_database_up 1",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} in {text}");
        }
    }
}
