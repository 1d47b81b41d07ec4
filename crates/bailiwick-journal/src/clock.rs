//! The one place of the journal that asks what time it is.
use std::time::SystemTime;

/// Microseconds since 1970; 0 when the clock stands before that.
pub fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
