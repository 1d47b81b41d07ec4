//! One conversation with a relay: lines in, lines out.

use tokio_util::sync::CancellationToken;

use super::super::from_client::with_newline;
use super::super::lines::LineQueue;
use super::Conversation;
use crate::stdio::frames::{Frame, Frames};

/// Lines are at most this long: what a relay passes on is bounded, and has an envelope.
const LONGEST: usize = 80 * 1024 * 1024;

/// Where lines are said. Dropping it ends the conversation.
pub(super) struct Channel {
    lines: LineQueue,
    ended: CancellationToken,
}

impl Channel {
    /// Begins a conversation; `receive` gets each line that the relay says.
    pub(super) fn open(conversation: Conversation, receive: impl Fn(Vec<u8>) + Send + 'static) -> Self {
        let (lines, queued) = LineQueue::new();
        let ended = CancellationToken::new();
        tokio::spawn(queued.write_to(conversation.input));
        let (over, mut frames) = (ended.clone(), Frames::with_longest(conversation.output, LONGEST));
        tokio::spawn(async move {
            loop {
                match frames.next().await {
                    Ok(Frame::Whole(line)) if line.trim_ascii().is_empty() => {}
                    Ok(Frame::Whole(line)) => receive(line),
                    Ok(Frame::TooLong) => {}
                    Ok(Frame::End) | Err(_) => break,
                }
            }
            over.cancel();
        });
        Self { lines, ended }
    }

    pub(super) fn send(&self, line: Vec<u8>) {
        self.lines.push(with_newline(line));
    }

    /// Says nothing more: the relay ends the server.
    pub(super) fn close(&self) {
        self.lines.close();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Waits until the relay says nothing more.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.close();
    }
}
