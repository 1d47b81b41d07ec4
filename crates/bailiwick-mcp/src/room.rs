//! How much memory all calls together may take.
//!
//! A call takes as much room as its tool says it can come to hold, before it runs; one that finds none waits. The room
//! is given back when the thread that ran the call has let go of it and the answer has left the server, whichever is
//! later: an unread answer is as large as one that is being made.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What all calls together may hold. Every call but one may be of `shell`, for hours, and the largest call that there
/// is still finds room.
const BUDGET: usize = 512 * 1024 * 1024;

/// What is counted, in bytes.
const UNIT: usize = 1024;

/// Room for calls.
pub(crate) struct Room(Arc<Semaphore>);

/// Room that a call has taken.
pub(crate) type Taken = Arc<OwnedSemaphorePermit>;

impl Room {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(BUDGET / UNIT)))
    }

    /// Takes room for so many bytes, as soon as there is some. Nothing if the server is ending.
    pub(crate) async fn take(&self, bytes: usize) -> Option<Taken> {
        let units = u32::try_from(bytes.min(BUDGET).div_ceil(UNIT)).unwrap_or(u32::MAX);
        Arc::clone(&self.0).acquire_many_owned(units).await.ok().map(Arc::new)
    }
}

/// Keeps the room of an answer until its sender drops it. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Keeper(Arc<Mutex<Option<Taken>>>);

impl Keeper {
    pub(crate) fn keep(&self, taken: Taken) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(taken);
    }
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keeper")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn room_is_back_when_the_last_holder_lets_go() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let room = Room::new();
            let more_than_all = room.take(10 * BUDGET).await.unwrap();
            let keeper = Keeper::default();
            keeper.keep(Arc::clone(&more_than_all));
            drop(more_than_all);
            let soon = Duration::from_millis(20);
            assert!(tokio::time::timeout(soon, room.take(1)).await.is_err(), "the keeper still has it");
            drop(keeper);
            assert!(room.take(BUDGET).await.is_some());
        });
    }
}
