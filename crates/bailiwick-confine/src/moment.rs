//! Moments of the one clock by which refusals and messages of a server are put in order.
//!
//! The sandbox's first process reads it before it answers a call that it refuses, so a refusal lies before everything that the
//! program does next. The clock is steady and the same in every process of this host; no sandbox of ours changes it.

use rustix::time::{ClockId, clock_gettime};

/// A moment since this host was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// This one.
    #[must_use]
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        Self(
            seconds
                .saturating_mul(1_000_000_000)
                .saturating_add(u64::try_from(now.tv_nsec).unwrap_or_default()),
        )
    }

    /// In nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    pub(crate) const fn to_bytes(self) -> [u8; 8] {
        self.0.to_ne_bytes()
    }

    pub(crate) const fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(u64::from_ne_bytes(bytes))
    }
}
