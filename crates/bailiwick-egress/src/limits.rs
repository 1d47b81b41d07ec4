//! Bounds on what a sandbox may make the supervisor hold or do.

use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Bounds of one session. None of them is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time, those that still say their first words included.
    pub connections: usize,
    /// Connections at a time that have not said whom they are for.
    pub pending: usize,
    /// How long a client may take for its first words, and for the head of any later request.
    pub hello: Duration,
    /// How long resolving may take, and how long dialling.
    pub dial: Duration,
    /// How long a connection may lie still.
    pub idle: Duration,
    /// How long a connection may lie still of which one side has closed.
    pub half_closed: Duration,
    /// How long the addresses of a name count before it is resolved again.
    pub answer: Duration,
    /// Different names in a session. Each has its own address for as long as the session lasts.
    pub names: u32,
    /// Different names a second, after a burst of ten seconds' worth.
    pub names_a_second: u32,
    /// Names a second that only a wildcard grants and that are looked up outside, after a burst of ten seconds'
    /// worth: each could carry a few bytes to the zone's name server.
    pub wildcard_lookups_a_second: u32,
    /// Different names in a session that one wildcard alone grants and that are looked up outside.
    pub wildcard_names: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            pending: 1024,
            hello: Duration::from_secs(10),
            dial: Duration::from_secs(10),
            idle: Duration::from_secs(600),
            half_closed: Duration::from_secs(60),
            answer: Duration::from_secs(5),
            names: 8192,
            names_a_second: 50,
            wildcard_lookups_a_second: 5,
            wildcard_names: 512,
        }
    }
}

/// Lets this process open as many files as its hard limit allows; a connection takes two, and while bytes flow four
/// more. For the whole process, so it is the program's choice and not the library's.
pub fn raise_file_limit() {
    let now = getrlimit(Resource::Nofile);
    // Kernels take no more than this by default; without a hard limit it is plenty.
    let most = now.maximum.unwrap_or(1 << 20);
    let wanted = Rlimit { current: Some(most), maximum: now.maximum };
    // The old limit stays if this is refused, and then fewer connections fit: they are refused one by one.
    setrlimit(Resource::Nofile, wanted).ok();
}

/// So many in a burst, then so many a second.
#[derive(Debug)]
pub(crate) struct Bucket {
    a_second: u32,
    left: u32,
    filled: Instant,
}

/// How many seconds' worth a burst may be.
const BURST: u32 = 10;

impl Bucket {
    pub(crate) fn new(a_second: u32, now: Instant) -> Self {
        Self { a_second, left: a_second.saturating_mul(BURST), filled: now }
    }

    /// Takes one, if one is left.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.filled).as_millis();
        let more = since.saturating_mul(u128::from(self.a_second)) / 1000;
        if let Some(more) = u32::try_from(more).ok().filter(|more| *more > 0) {
            self.left = self.left.saturating_add(more).min(self.a_second.saturating_mul(BURST));
            self.filled = now;
        }
        let taken = self.left > 0;
        self.left = self.left.saturating_sub(1);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::new(2, start);
        assert_eq!((0..100).filter(|_| bucket.take(start)).count(), 20);
        assert!(!bucket.take(start + Duration::from_millis(499)));
        assert!(
            bucket.take(start + Duration::from_millis(500))
                && !bucket.take(start + Duration::from_millis(500))
        );
        let later = start + Duration::from_secs(3600);
        assert_eq!((0..100).filter(|_| bucket.take(later)).count(), 20, "no more than a burst is saved up");
    }
}
