//! What is sent at once: records of the journal, and the spans that ended with them.

use bailiwick_journal::format::{Event, SessionId};
use opentelemetry_proto::tonic::trace::v1::Span;

use crate::counts::Counts;

/// One event and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Exported {
    pub(crate) session: SessionId,
    pub(crate) seq: u64,
    /// The hash of its line.
    pub(crate) hash: String,
    /// Its line, as it stands in the journal.
    pub(crate) line: String,
    pub(crate) event: Event,
    /// The trace and span that it belongs to.
    pub(crate) trace_id: Vec<u8>,
    pub(crate) span_id: Vec<u8>,
}

/// What is sent at once.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    pub(crate) events: Vec<Exported>,
    pub(crate) spans: Vec<Span>,
    /// The totals once this is counted too.
    pub(crate) counts: Counts,
}

impl Batch {
    /// How many events there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}
