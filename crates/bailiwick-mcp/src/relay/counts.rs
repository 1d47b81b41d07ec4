//! What relays have done so far, for those who want to look.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

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
