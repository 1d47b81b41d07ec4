//! Which calls a server was answering at a moment, so that what the sandbox refused it then is known to be of theirs.
//!
//! A call begins before its line is given to the server, and ends when its answer was read. What happens between the two by the
//! same clock may be of this call; nothing else may. How late one is told of it makes no difference.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many calls that have ended are remembered, at least, for those who hear late of what happened.
const REMEMBERED: usize = 1024;

/// Not yet.
const NEVER: u64 = u64::MAX;

/// The calls that one server is answering, and the last ones that it answered.
#[derive(Debug)]
pub struct CallsInFlight {
    clock: fn() -> u64,
    calls: Mutex<VecDeque<Arc<ServedCall>>>,
}

/// A call, from the moment in which it is given to the server to the moment in which its answer is read.
#[derive(Debug)]
pub(super) struct ServedCall {
    tool: Box<str>,
    clock: fn() -> u64,
    begun: AtomicU64,
    ended: AtomicU64,
}

impl CallsInFlight {
    /// None yet. The clock never goes back, and is that of those who ask [`at`](Self::at).
    #[must_use]
    pub fn new(clock: fn() -> u64) -> Self {
        Self { clock, calls: Mutex::default() }
    }

    /// The tools of the calls that the server was answering at a moment, each once.
    #[must_use]
    pub fn at(&self, moment: u64) -> Vec<String> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tools: Vec<String> =
            calls.iter().filter(|call| call.is_open_at(moment)).map(|call| call.tool.to_string()).collect();
        tools.sort_unstable();
        tools.dedup();
        tools
    }

    /// A call that was not given to the server yet.
    pub(super) fn call(&self, tool: &str) -> Arc<ServedCall> {
        let (begun, ended) = (AtomicU64::new(NEVER), AtomicU64::new(NEVER));
        Arc::new(ServedCall { tool: tool.into(), clock: self.clock, begun, ended })
    }

    /// Notes that a call is given to the server now.
    pub(super) fn begin(&self, call: &Arc<ServedCall>) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() >= 2 * REMEMBERED {
            let mut surplus = calls.len() - REMEMBERED;
            calls.retain(|call| {
                let forgotten = surplus > 0 && call.ended.load(Ordering::Acquire) != NEVER;
                surplus -= usize::from(forgotten);
                !forgotten
            });
        }
        call.begun.store((self.clock)(), Ordering::Release);
        calls.push_back(Arc::clone(call));
    }
}

impl ServedCall {
    /// Notes that its answer was read, or that none is waited for any more. Only the first time counts.
    pub(super) fn end(&self) {
        let now = (self.clock)();
        let _ = self.ended.compare_exchange(NEVER, now, Ordering::AcqRel, Ordering::Acquire);
    }

    fn is_open_at(&self, moment: u64) -> bool {
        (self.begun.load(Ordering::Acquire)..=self.ended.load(Ordering::Acquire)).contains(&moment)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
    }

    fn at(moment: u64, act: impl FnOnce()) {
        NOW.set(moment);
        act();
    }

    #[test]
    fn what_happened_is_of_the_calls_that_were_open_then_and_of_no_other() {
        let calls = CallsInFlight::new(|| NOW.get());
        let (first, second, third) = (calls.call("first"), calls.call("second"), calls.call("third"));
        at(10, || calls.begin(&first));
        at(20, || first.end());
        at(21, || calls.begin(&second));
        at(25, || calls.begin(&third));
        at(30, || second.end());
        at(99, || second.end());
        let none = Vec::<String>::new();
        assert_eq!(calls.at(9), none);
        assert_eq!(calls.at(15), ["first"]);
        assert_eq!(calls.at(20), ["first"], "told late, of a moment before the answer");
        assert_eq!(calls.at(22), ["second"], "an answer that was just given has no part in it");
        assert_eq!(calls.at(27), ["second", "third"]);
        assert_eq!(calls.at(1 << 40), ["third"]);
    }

    #[test]
    fn a_call_that_is_open_is_never_forgotten_and_the_last_ones_are_remembered() {
        let calls = CallsInFlight::new(|| NOW.get());
        let open = calls.call("open");
        at(1, || calls.begin(&open));
        for moment in 2..20_000 {
            let call = calls.call(if moment % 2 == 0 { "even" } else { "odd" });
            at(moment, || calls.begin(&call));
            call.end();
        }
        assert_eq!(calls.at(19_999 - 1000), ["odd", "open"]);
        assert_eq!(calls.at(19_998), ["even", "open"]);
        assert!(calls.calls.lock().unwrap().len() <= 2 * REMEMBERED);
    }
}
