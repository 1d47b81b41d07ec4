//! Lines on their way out, in the order in which they were put in.
//!
//! Putting a line in never waits, so that order is kept; those who read from the other side wait for room instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// With more bytes than this on their way, nothing new is read.
const FULL: usize = 4 * 1024 * 1024;

/// Where lines are put in. Clones are the same queue.
#[derive(Clone)]
pub(super) struct LineQueue {
    sender: UnboundedSender<Option<Vec<u8>>>,
    load: Arc<Load>,
}

/// Where they come out.
pub(super) struct QueuedLines {
    receiver: UnboundedReceiver<Option<Vec<u8>>>,
    load: Arc<Load>,
}

#[derive(Default)]
struct Load {
    bytes: AtomicUsize,
    fewer: Notify,
}

impl LineQueue {
    pub(super) fn new() -> (Self, QueuedLines) {
        let (sender, receiver) = unbounded_channel();
        let load = Arc::new(Load::default());
        (Self { sender, load: Arc::clone(&load) }, QueuedLines { receiver, load })
    }

    /// Puts a line in. After the end it goes nowhere.
    pub(super) fn push(&self, line: Vec<u8>) {
        self.load.bytes.fetch_add(line.len(), Ordering::AcqRel);
        drop(self.sender.send(Some(line)));
    }

    /// No more lines.
    pub(super) fn close(&self) {
        drop(self.sender.send(None));
    }

    /// Waits until there is room for more.
    pub(super) async fn has_room(&self) {
        while self.load.bytes.load(Ordering::Acquire) > FULL && !self.sender.is_closed() {
            self.load.fewer.notified().await;
        }
    }
}

impl QueuedLines {
    /// Writes lines until there are no more, then closes the output.
    ///
    /// # Errors
    /// If the output is closed.
    pub(super) async fn write_to(mut self, mut output: impl AsyncWrite + Unpin) -> std::io::Result<()> {
        let written = async {
            while let Some(Some(line)) = self.receiver.recv().await {
                output.write_all(&line).await?;
                if self.receiver.is_empty() {
                    output.flush().await?;
                }
                self.load.bytes.fetch_sub(line.len(), Ordering::AcqRel);
                self.load.fewer.notify_one();
            }
            output.flush().await
        };
        let written = written.await;
        drop(self.receiver);
        self.load.fewer.notify_one();
        written
    }
}
