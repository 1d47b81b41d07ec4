//! Connections that have not shown the token yet.
//!
//! They have a place of their own, so that they cannot take one from clients that have: a new one is always let in, and
//! the oldest goes for it. Each has a moment to send a request with the token, and is closed then.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// All of them, and the places of those that are strangers no more.
#[derive(Debug)]
pub struct Strangers {
    waiting: Mutex<VecDeque<(u64, CancellationToken)>>,
    most: usize,
    next: AtomicU64,
    known: Arc<Semaphore>,
}

/// One connection.
#[derive(Debug)]
pub struct Stranger {
    all: Arc<Strangers>,
    id: u64,
    /// Another took its place.
    evicted: CancellationToken,
    /// It has shown the token.
    admitted: CancellationToken,
    place: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Strangers {
    /// At most `most` strangers, and `known` connections that are none.
    #[must_use]
    pub fn new(most: usize, known: usize) -> Arc<Self> {
        let known = Arc::new(Semaphore::new(known));
        Arc::new(Self { waiting: Mutex::default(), most, next: AtomicU64::new(0), known })
    }

    /// Lets a connection in. The oldest stranger goes if there are too many.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> Arc<Stranger> {
        let stranger = Stranger {
            all: Arc::clone(self),
            id: self.next.fetch_add(1, Ordering::Relaxed),
            evicted: CancellationToken::new(),
            admitted: CancellationToken::new(),
            place: Mutex::new(None),
        };
        let mut waiting = self.locked();
        waiting.push_back((stranger.id, stranger.evicted.clone()));
        let too_many = waiting.len() > self.most;
        drop(waiting);
        if too_many {
            self.evict();
        }
        Arc::new(stranger)
    }

    /// Closes the oldest.
    pub fn evict(&self) {
        if let Some((_, oldest)) = self.locked().pop_front() {
            oldest.cancel();
        }
    }

    fn leave(&self, id: u64) {
        self.locked().retain(|(waiting, _)| *waiting != id);
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, VecDeque<(u64, CancellationToken)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stranger {
    /// It has shown the token. Whether there is a place for it among those that have.
    #[must_use]
    pub fn admit(&self) -> bool {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if place.is_none() {
            *place = Arc::clone(&self.all.known).try_acquire_owned().ok();
        }
        let admitted = place.is_some();
        drop(place);
        if admitted && !self.admitted.is_cancelled() {
            self.all.leave(self.id);
            self.admitted.cancel();
        }
        admitted
    }

    /// Ends when the connection has to go: another took its place, or it showed no token for so long.
    pub async fn must_go(&self, moment: Duration) {
        tokio::select! {
            () = self.evicted.cancelled() => {}
            () = tokio::time::sleep(moment) => {}
            () = self.admitted.cancelled() => std::future::pending().await,
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.all.leave(self.id);
    }
}
