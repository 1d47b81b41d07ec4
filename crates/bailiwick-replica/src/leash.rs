//! What ends a server while it runs: the log says that it must not, or a grant or rule that it was started with has changed.
//!
//! A thread looks at the copy about twice a second. A call costs a look at two values in memory, and at the clock where a grant may end:
//! nothing is read from a file or the network for it.
//!
//! Fails closed when: the clock is moved back. A grant then ends by the time that has passed since the start.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use bailiwick_fleet::Hash;
use bailiwick_fleet::entry::Rule;
use bailiwick_guard::{Call, Interceptor, InterceptorError, Verdict};
use bailiwick_policy::denial::{Denial, DenialCode};
use tokio_util::sync::CancellationToken;

use crate::copy::LogCopy;
use crate::finding::LogFinding;
use crate::replica::{Replica, now_ms};
use crate::rules::{ServerIdentity, ServerRules, grant_ended};

/// How long before its grant ends a call asks the clock. The copy is looked at twice a second, so this is much more than it needs.
const NEAR_MS: u64 = 10_000;

/// Holds a running server to the log. Clones are the same.
#[derive(Clone)]
pub struct Leash(Arc<Held>);

struct Held {
    machine: String,
    is_authoritative: bool,
    started: ServerRules,
    clock: Clock,
    surface: Mutex<Option<Hash>>,
    /// When its grant ends if nothing newer is seen; never if it needs none.
    valid_until_ms: AtomicU64,
    /// Whether its grant may end before the copy is looked at again: only then a call asks the clock.
    is_near: AtomicBool,
    /// Why it has to end.
    why: OnceLock<String>,
    over: CancellationToken,
    /// Its threads run as long as this is held.
    replica: Option<Replica>,
}

/// The time that passes though the clock is moved back.
struct Clock {
    began_ms: u64,
    began: Instant,
}

impl Leash {
    /// Holds a server that was started with these rules, and looks at the log from now on. `on_finding` is told of forks and rollbacks.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn new(
        replica: &Replica,
        started: ServerRules,
        on_finding: impl Fn(&LogFinding) + Send + 'static,
    ) -> std::io::Result<Self> {
        let enrolment = replica.enrolment();
        let machine = (enrolment.name.clone(), enrolment.authoritative);
        let leash = Self::held(machine, started, Some(replica.clone()));
        let glancing = Arc::downgrade(&leash.0);
        let on_glance = move |copy: &LogCopy| {
            if let Some(held) = glancing.upgrade() {
                held.look(copy);
            }
        };
        replica.watch(on_finding, on_glance)?;
        Ok(leash)
    }

    fn held(
        (machine, is_authoritative): (String, bool),
        started: ServerRules,
        replica: Option<Replica>,
    ) -> Self {
        let valid_until_ms = AtomicU64::new(started.valid_until_ms.unwrap_or(u64::MAX));
        Self(Arc::new(Held {
            machine,
            is_authoritative,
            surface: Mutex::new(started.identity.surface),
            started,
            clock: Clock { began_ms: now_ms(), began: Instant::now() },
            valid_until_ms,
            is_near: AtomicBool::new(true),
            why: OnceLock::new(),
            over: CancellationToken::new(),
            replica,
        }))
    }

    /// Why the server has to end, once it has to.
    #[must_use]
    pub fn ended(&self) -> Option<&str> {
        self.0.why.get().map(String::as_str)
    }

    /// Cancelled when it has to end.
    #[must_use]
    pub fn over(&self) -> CancellationToken {
        self.0.over.clone()
    }

    /// Notes what the server says of itself, see [`bailiwick_fleet::entry::surface_digest`].
    pub fn note_surface(&self, surface: Hash) {
        *self.0.surface.lock().unwrap_or_else(PoisonError::into_inner) = Some(surface);
        if let Some(replica) = &self.0.replica {
            self.0.look(&replica.copy());
        }
    }
}

impl Held {
    fn look(&self, copy: &LogCopy) {
        if let Err(why) = self.judge(copy, self.clock.now_ms()) {
            self.end(why);
        }
    }

    fn end(&self, why: String) {
        // The first reason counts.
        drop(self.why.set(why));
        self.over.cancel();
    }

    /// Why the server has to end by this copy, at this time.
    fn judge(&self, copy: &LogCopy, now_ms: u64) -> Result<(), String> {
        let surface = *self.surface.lock().unwrap_or_else(PoisonError::into_inner);
        let identity = ServerIdentity { surface, ..self.started.identity.clone() };
        let now = ServerRules::at(copy, (&self.machine, self.is_authoritative), identity, now_ms);
        let now = now.map_err(|why| why.to_string())?;
        if let Some(used) = &self.started.grant {
            let fresh_ms = copy.head().fresh_ms;
            if let Some(end) = copy.state().grant_end(used, now_ms, fresh_ms) {
                return Err(grant_ended(&used.id, &end));
            }
            if !copy.state().grants().any(|grant| grant == used) {
                return Err(format!("the fleet's grant `{}` has changed; start the server again", used.id));
            }
            let until = copy.state().last_moment(used, fresh_ms);
            self.valid_until_ms.store(until, Ordering::Release);
            self.is_near.store(until.saturating_sub(now_ms) < NEAR_MS, Ordering::Release);
        }
        let (ceilings, guardrails) = (&self.started.ceilings, &self.started.guardrails);
        match new_rule(&now.ceilings, ceilings).or_else(|| new_rule(&now.guardrails, guardrails)) {
            None => Ok(()),
            Some(rule) => {
                Err(format!("the fleet's rules `{}` for the server have changed; start it again", rule.name))
            }
        }
    }
}

impl Clock {
    fn now_ms(&self) -> u64 {
        let passed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        now_ms().max(self.began_ms.saturating_add(passed))
    }
}

impl Interceptor for Leash {
    fn name(&self) -> &'static str {
        "fleet"
    }

    fn judge(&self, _: &Call) -> Result<Verdict, InterceptorError> {
        let until = self.0.valid_until_ms.load(Ordering::Acquire);
        if until != u64::MAX
            && self.0.is_near.load(Ordering::Acquire)
            && self.0.clock.now_ms() > until
            && self.ended().is_none()
        {
            self.0.end("the fleet's grant has ended: the copy of the fleet's log is too old".to_owned());
        }
        Ok(match self.ended() {
            None => Verdict::Allow,
            Some(why) => Verdict::Deny(Denial::new(DenialCode::Revoked, why.to_owned())),
        })
    }
}

/// The first rule that was not there before.
fn new_rule<'r>(now: &'r [Rule], before: &[Rule]) -> Option<&'r Rule> {
    now.iter().find(|rule| !before.contains(rule))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_grant_that_is_over_refuses_the_next_call_whatever_a_thread_has_seen() {
        let allows = |until: Option<u64>| {
            let rules = ServerRules { valid_until_ms: until, ..ServerRules::default() };
            let leash = Leash::held(("m1".to_owned(), true), rules, None);
            let call = Call { tool: "t".into(), args: serde_json::Value::Null };
            matches!(leash.judge(&call), Ok(Verdict::Allow)) && leash.ended().is_none()
        };
        assert!(allows(None) && allows(Some(now_ms() + 60_000)));
        assert!(!allows(Some(now_ms() - 1)));
    }

    #[test]
    fn a_clock_that_is_moved_back_gains_no_time() {
        let began = Instant::now().checked_sub(Duration::from_secs(100)).unwrap();
        let ahead = Clock { began_ms: now_ms() + 3_600_000, began };
        assert!(
            ahead.now_ms() >= now_ms() + 3_600_000,
            "the clock said so at the start, and 100 s have passed since"
        );
        let usual = Clock { began_ms: now_ms() - 100_000, began };
        assert!(usual.now_ms() < now_ms() + 1_000);
    }
}
