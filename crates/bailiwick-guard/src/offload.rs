//! Calls run on threads that may block, never on those that drive the runtime.
//!
//! A call is judged and run as a whole by one thread of the runtime's blocking pool, so nothing that a tool, an
//! interceptor or the gate does can keep the runtime from answering others. The number of such threads is bounded; a
//! call that was cancelled keeps its place until its thread has really let go of it.
//!
//! Residual: a thread cannot be stopped from outside. What was cancelled ends at its next `await`, or where it looks at
//! its [`CancelFlag`]; the context does that at every check. Without a runtime there is nothing to keep free, and the
//! call runs where it is awaited.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

use crate::tool::ToolFault;

/// How many calls have a thread at the same time.
const MAX_THREADS: usize = 128;

/// Says to running work that nothing waits for its result any more. Clones are the same flag.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Whether to stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// A guard that sets the flag when it is dropped.
    pub(crate) fn set_on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }
}

/// Sets a flag when it is dropped.
#[derive(Debug)]
pub(crate) struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Release);
    }
}

/// The threads that calls of one registry run on.
pub(crate) struct CallThreads(Arc<Semaphore>);

impl CallThreads {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MAX_THREADS)))
    }

    /// Runs work on a thread of its own. Dropping the answer cancels the work.
    ///
    /// # Errors
    /// If the work panicked or the runtime is ending.
    pub(crate) async fn run<T, F>(
        &self,
        work: impl FnOnce(CancelFlag) -> F + Send + 'static,
    ) -> Result<T, ToolFault>
    where
        T: Send + 'static,
        F: Future<Output = T>,
    {
        let flag = CancelFlag::default();
        let Ok(runtime) = Handle::try_current() else { return Ok(work(flag).await) };
        let place = Arc::clone(&self.0).acquire_owned().await.map_err(|_| ToolFault::Cancelled)?;
        let on_drop = flag.set_on_drop();
        let (waiting, given_up) = oneshot::channel::<()>();
        let thread = tokio::task::spawn_blocking(move || {
            let _place = place;
            runtime.block_on(async move {
                tokio::select! {
                    biased;
                    _ = given_up => None,
                    done = work(flag) => Some(done),
                }
            })
        });
        let done = thread.await;
        drop((on_drop, waiting));
        match done {
            Ok(Some(done)) => Ok(done),
            Ok(None) => Err(ToolFault::Cancelled),
            Err(fault) if fault.is_panic() => Err(ToolFault::Failed("the call panicked".to_owned())),
            Err(_) => Err(ToolFault::Cancelled),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn work_that_blocks_leaves_the_runtime_alone_and_hears_that_it_is_cancelled() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        runtime.block_on(async {
            let threads = CallThreads::new();
            let work = threads.run(move |flag| async move {
                while !flag.is_set() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                tell.send(()).unwrap();
            });
            let late = tokio::time::timeout(Duration::from_millis(50), work).await;
            assert!(late.is_err(), "the timer of the only thread ran out while the work blocked");
        });
        told.recv_timeout(Duration::from_secs(10)).unwrap();
    }

    #[test]
    fn a_panic_is_a_failure_and_without_a_runtime_work_runs_in_place() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let threads = CallThreads::new();
        let panicked = runtime.block_on(threads.run(|_| async {
            if true {
                panic!("on purpose");
            }
        }));
        assert!(matches!(panicked, Err(ToolFault::Failed(_))));
        let mut plain = std::pin::pin!(threads.run(|_| async { 7 }));
        let polled = plain.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        assert!(matches!(polled, std::task::Poll::Ready(Ok(7))));
    }
}
