//! What one member may take of a hub: a few connections at a time, and so many requests. A machine that is hostile, or revoked and
//! still has its certificate, keeps no other member out.
//!
//! Both are counted by each hub for itself and kept nowhere. Requests of people are not counted: they are few, and one of them is what stops a
//! machine. Residual: as many hostile members as there are shares take all connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most connections of one member: one for each call that may wait, and some for all else.
const CONNECTIONS: usize = 80;
/// How many requests of a machine are answered at once after a pause, and how long it is until there is another one.
const BURST: u32 = 600;
const EACH: Duration = Duration::from_millis(50);
/// How many machines are remembered before those that were quiet are forgotten.
const REMEMBERED: usize = 20_000;

/// Connections of members, by what their certificates say.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<HashMap<String, usize>>);

/// One connection of a member.
#[derive(Debug)]
pub(crate) struct HeldConnection {
    all: Arc<Connections>,
    subject: String,
}

impl Connections {
    /// A place for one more, if the member has one left.
    pub(crate) fn hold(self: &Arc<Self>, subject: &str) -> Option<HeldConnection> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(subject.to_owned()).or_default();
        if *count >= CONNECTIONS {
            return None;
        }
        *count += 1;
        Some(HeldConnection { all: Arc::clone(self), subject: subject.to_owned() })
    }
}

impl Drop for HeldConnection {
    fn drop(&mut self) {
        let mut held = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.subject) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                held.remove(&self.subject);
            }
        }
    }
}

/// Requests of machines: for each, the moment from which on it owes nothing.
#[derive(Debug, Default)]
pub(crate) struct Paces(Mutex<HashMap<String, Instant>>);

impl Paces {
    /// Counts a request; whether it is answered.
    pub(crate) fn allow(&self, machine: &str, now: Instant) -> bool {
        let mut owed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if owed.len() >= REMEMBERED {
            owed.retain(|_, until| *until > now);
        }
        let until = owed.entry(machine.to_owned()).or_insert(now);
        let next = (*until).max(now) + EACH;
        let is_allowed = next.saturating_duration_since(now) <= EACH.saturating_mul(BURST);
        if is_allowed {
            *until = next;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_its_own_connections_and_gets_them_back() {
        let all = Arc::new(Connections::default());
        let held: Vec<_> = std::iter::from_fn(|| all.hold("m1")).take(CONNECTIONS + 1).collect();
        assert_eq!(held.len(), CONNECTIONS);
        assert!(all.hold("m2").is_some(), "another member's are its own");
        drop(held);
        assert!(all.hold("m1").is_some() && all.0.lock().unwrap().is_empty());
    }

    #[test]
    fn a_machine_that_asks_without_end_waits_and_no_other_does() {
        let (paces, start) = (Paces::default(), Instant::now());
        let answered = (0..2 * BURST).filter(|_| paces.allow("m1", start)).count();
        assert_eq!(answered, usize::try_from(BURST).unwrap());
        assert!(paces.allow("m2", start));
        let later = start + EACH * 3;
        assert_eq!((0..9).filter(|_| paces.allow("m1", later)).count(), 3, "as many as the time that passed");
        assert_eq!((0..2 * BURST).filter(|_| paces.allow("m1", start + EACH * BURST * 9)).count(), answered);
    }
}
