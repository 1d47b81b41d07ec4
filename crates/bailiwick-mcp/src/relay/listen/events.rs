//! Answers as streams of events, one message each.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bailiwick_door::{Answer, with_header};
use bytes::Bytes;
use http::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Interval, MissedTickBehavior, interval};

/// So often a stream without events says that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A client that has left more bytes than this unread hears no more.
const FULL: usize = 64 * 1024 * 1024;

/// How long a client waits before it comes again, in milliseconds.
const RETRY: u32 = 3000;

/// One event.
#[derive(Debug, Clone)]
pub(super) struct Event {
    /// By which a client says how far it came.
    pub(super) id: Option<String>,
    /// The message; `None` for an event that only has an id.
    pub(super) line: Option<Vec<u8>>,
}

/// Where events are put in. Dropping it ends the stream.
#[derive(Debug)]
pub(super) struct EventSink {
    sender: UnboundedSender<Event>,
    load: Arc<AtomicUsize>,
}

/// Where they come out.
pub(super) struct EventStream {
    receiver: UnboundedReceiver<Event>,
    load: Arc<AtomicUsize>,
    ticks: Interval,
    /// Events that come before all others.
    first: Vec<Event>,
    /// Dropped with the stream.
    _guard: Option<Box<dyn Send + Sync>>,
}

/// Two ends of a stream.
pub(super) fn stream() -> (EventSink, EventStream) {
    let (sender, receiver) = unbounded_channel();
    let load = Arc::new(AtomicUsize::new(0));
    let mut ticks = interval(KEEP_ALIVE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.reset();
    let sink = EventSink { sender, load: Arc::clone(&load) };
    (sink, EventStream { receiver, load, ticks, first: Vec::new(), _guard: None })
}

impl Event {
    pub(super) fn message(line: Vec<u8>) -> Self {
        Self { id: None, line: Some(line) }
    }

    pub(super) fn size(&self) -> usize {
        self.line.as_ref().map_or(0, Vec::len)
    }

    fn to_bytes(&self) -> Bytes {
        let mut text = Vec::with_capacity(self.size() + 64);
        if let Some(id) = &self.id {
            text.extend_from_slice(format!("id: {id}\n").as_bytes());
        }
        match &self.line {
            Some(line) => {
                text.extend_from_slice(b"event: message\ndata: ");
                // Outside of texts they are spaces; within, JSON has none.
                text.extend(
                    line.trim_ascii()
                        .iter()
                        .map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }),
                );
            }
            None => text.extend_from_slice(format!("retry: {RETRY}\ndata: ").as_bytes()),
        }
        text.extend_from_slice(b"\n\n");
        text.into()
    }
}

impl EventSink {
    /// Puts an event in; `false` if no stream is open for it.
    pub(super) fn send(&self, event: Event) -> bool {
        let load = self.load.fetch_add(event.size(), Ordering::AcqRel);
        load < FULL && self.sender.send(event).is_ok()
    }
}

impl EventStream {
    /// The next event, for answers that need no stream.
    pub(super) async fn next(&mut self) -> Option<Event> {
        self.receiver.recv().await
    }

    /// With these events before all others.
    pub(super) fn starting_with(mut self, events: impl IntoIterator<Item = Event>) -> Self {
        self.first.extend(events);
        self.first.reverse();
        self
    }

    /// With something that is dropped when the client has gone.
    pub(super) fn with_guard(mut self, guard: impl Send + Sync + 'static) -> Self {
        self._guard = Some(Box::new(guard));
        self
    }

    pub(super) fn into_answer(self) -> Answer {
        let answer = Response::new(self.boxed());
        let answer = with_header(answer, CONTENT_TYPE, "text/event-stream");
        with_header(answer, CACHE_CONTROL, "no-cache")
    }
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(event) = self.first.pop() {
            return Poll::Ready(Some(Ok(Frame::data(event.to_bytes()))));
        }
        match self.receiver.poll_recv(context) {
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(event)) => {
                self.load.fetch_sub(event.size(), Ordering::AcqRel);
                self.ticks.reset();
                return Poll::Ready(Some(Ok(Frame::data(event.to_bytes()))));
            }
            Poll::Pending => {}
        }
        match self.ticks.poll_tick(context) {
            Poll::Ready(_) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b":\n\n"))))),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_of_data() {
        let event = Event { id: Some("1/2".to_owned()), line: Some(b"{\"a\":\r\n1}\r\n".to_vec()) };
        assert_eq!(&event.to_bytes()[..], b"id: 1/2\nevent: message\ndata: {\"a\":  1}\n\n");
        let priming = Event { id: Some("0/1".to_owned()), line: None };
        assert_eq!(&priming.to_bytes()[..], b"id: 0/1\nretry: 3000\ndata: \n\n");
    }
}
