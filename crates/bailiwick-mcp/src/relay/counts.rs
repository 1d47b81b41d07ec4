//! What relays have done so far and one is doing now, for those who want to look.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// The era of the protocol that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// A session that `initialize` opens.
    Legacy,
    /// Every request says its version.
    Modern,
}

/// Calls, denials and the client's era.
#[derive(Debug, Default)]
pub struct RelayCounts {
    calls: AtomicU64,
    denials: AtomicU64,
    /// 0 while it is not known.
    era: AtomicU8,
    changed: Notify,
}

impl Era {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

impl RelayCounts {
    /// How many requests were judged.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// How many messages were refused.
    #[must_use]
    pub fn denials(&self) -> u64 {
        self.denials.load(Ordering::Relaxed)
    }

    /// The client's era, once it is known.
    #[must_use]
    pub fn era(&self) -> Option<Era> {
        match self.era.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Era::Legacy),
            _ => Some(Era::Modern),
        }
    }

    /// Waits until something has changed since the last wait.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(super) fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
    }

    pub(super) fn count_denial(&self) {
        self.denials.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
    }

    /// Notes the era of a request. A session that was opened stays one.
    pub(super) fn note_era(&self, era: Era) {
        let number = if era == Era::Legacy { 1 } else { 2 };
        let known = self.era.load(Ordering::Relaxed);
        if known == 0 || (known == 2 && era == Era::Legacy) {
            self.era.store(number, Ordering::Relaxed);
            self.changed.notify_one();
        }
    }
}

/// How long after its answer a call may still be the reason of a refusal: the sandbox's word of it comes another way than the
/// answer, and may come later.
const LATE: Duration = Duration::from_secs(1);

/// The calls that one server is answering, by the names of their tools.
#[derive(Debug, Default)]
pub struct CallsInFlight(Mutex<Vec<ServedCall>>);

#[derive(Debug)]
struct ServedCall {
    tool: String,
    ended: Option<Instant>,
}

impl CallsInFlight {
    /// Those that what the server does now may belong to: calls in flight, and calls that were answered within the last second.
    /// Each tool stands once.
    #[must_use]
    pub fn now(&self) -> Vec<String> {
        let mut calls = self.locked();
        calls.retain(|call| call.ended.is_none_or(|ended| ended.elapsed() < LATE));
        let mut tools: Vec<String> = calls.iter().map(|call| call.tool.clone()).collect();
        tools.sort_unstable();
        tools.dedup();
        tools
    }

    /// Notes a call that goes to the server, until the answer is dropped.
    pub(super) fn serve(&self, tool: &str) -> CallInFlight<'_> {
        self.begin(tool);
        CallInFlight { calls: self, tool: tool.to_owned() }
    }

    /// Notes a call that goes to the server.
    pub(super) fn begin(&self, tool: &str) {
        let mut calls = self.locked();
        calls.retain(|call| call.ended.is_none_or(|ended| ended.elapsed() < LATE));
        calls.push(ServedCall { tool: tool.to_owned(), ended: None });
    }

    /// Notes that one call of this tool was answered.
    pub(super) fn finish(&self, tool: &str) {
        let mut calls = self.locked();
        if let Some(call) = calls.iter_mut().find(|call| call.tool == tool && call.ended.is_none()) {
            call.ended = Some(Instant::now());
        }
    }

    fn locked(&self) -> MutexGuard<'_, Vec<ServedCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that the server is answering.
pub(super) struct CallInFlight<'a> {
    calls: &'a CallsInFlight,
    tool: String,
}

impl Drop for CallInFlight<'_> {
    fn drop(&mut self) {
        self.calls.finish(&self.tool);
    }
}
