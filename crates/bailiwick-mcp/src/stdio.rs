//! Messages one a line, over any pair of streams.
//!
//! Every line is answered or passed on, whatever it holds, and the next one is read. Memory is bounded: a line has at
//! most 16 MiB, what is longer is skipped and answered; requests that wait for their answer are bounded in number and
//! size, and one more is told to come back later; of answers that wait to be read, one at a time is a line. When the input
//! ends or `exit` is sent, running calls have a moment to finish and are
//! then cut off; when the output is closed, at once.
//!
//! Fails closed when: a message can be read in two ways (a key that is given twice). It is refused.

pub(crate) mod frames;
pub(crate) mod message;
mod standard;

pub use self::standard::standard;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::ServerHandler;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetExtensions as _, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::{RoleServer, serve_directly_with_ct};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::frames::{Frame, Frames};
use self::message::Malformed;
use crate::room::Keeper;

/// How long running calls may take once the input has ended.
const LINGER: Duration = Duration::from_millis(1500);

/// How many requests may wait for their answers.
const MAX_PENDING: usize = 256;

/// How many bytes the requests that wait for their answers may have.
const MAX_PENDING_BYTES: usize = 64 * 1024 * 1024;

/// Serves until the input ends, the output is closed, or `stop` is cancelled. Every call was cancelled by then;
/// the threads that run them end on their own.
///
/// # Errors
/// If the service itself broke.
pub async fn serve<H, R, W>(handler: H, reader: R, writer: W, stop: CancellationToken) -> std::io::Result<()>
where
    H: ServerHandler,
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let transport = Lines::new(reader, writer, stop.clone());
    // Without an opening: a request of any era may come first.
    let running = serve_directly_with_ct(handler, transport, None, stop);
    running.waiting().await.map(drop).map_err(std::io::Error::other)
}

/// The transport.
struct Lines<R, W> {
    frames: Frames<R>,
    output: Output<W>,
    pending: Arc<Pending>,
    /// An answer of our own that is being written; nothing is read meanwhile.
    answering: Option<JoinHandle<()>>,
    /// The opening, until it is answered: nothing is read meanwhile, so that its answer comes first.
    opening: Option<RequestId>,
    /// Whether a legacy client has asked for the end: nothing new is begun.
    is_shut_down: bool,
    /// Since the input ended: until when calls may run.
    until: Option<Instant>,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn new(reader: R, writer: W, stop: CancellationToken) -> Self {
        Self {
            frames: Frames::new(reader),
            output: Output { writer: Arc::new(tokio::sync::Mutex::new(writer)), stop },
            pending: Arc::default(),
            answering: None,
            opening: None,
            is_shut_down: false,
            until: None,
        }
    }

    /// Writes a line of our own.
    fn answer(&mut self, line: Vec<u8>) {
        let output = self.output.clone();
        // A reader that has gone ends the service; nothing is left to do here.
        self.answering = Some(tokio::spawn(async move { drop(output.write(|| Ok(line)).await) }));
    }

    /// Lets a message in, if its request can wait for an answer.
    fn admit(&self, message: &mut ClientJsonRpcMessage, size: usize) -> Result<(), Malformed> {
        match message {
            JsonRpcMessage::Request(request) => {
                if self.is_shut_down {
                    return Err(Malformed::shut_down(request.id.clone()));
                }
                let keeper = self.pending.add(&request.id, size)?;
                request.request.extensions_mut().insert(keeper);
                Ok(())
            }
            JsonRpcMessage::Notification(note) => {
                if let ClientNotification::CancelledNotification(cancelled) = &note.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    drop(self.pending.remove(id));
                }
                Ok(())
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Ok(()),
        }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (output, pending) = (self.output.clone(), Arc::clone(&self.pending));
        async move {
            let mut kept = None;
            // Made when it is its turn: so there is never more than one line. And once the answer can be read its id
            // is free, and nothing is written before it.
            let made = || {
                let line = line(&item);
                kept = match &item {
                    JsonRpcMessage::Response(response) => pending.remove(&response.id),
                    JsonRpcMessage::Error(error) => error.id.as_ref().and_then(|id| pending.remove(id)),
                    JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
                };
                drop(item);
                line
            };
            let written = output.write(made).await;
            // Only now has the answer left, and its room is free.
            drop(kept);
            written
        }
    }

    /// May be dropped and called again at any await: nothing that was read is lost.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(answering) = &mut self.answering {
                drop(answering.await);
                self.answering = None;
            }
            if let Some(opening) = &self.opening {
                self.pending.answered(opening).await;
                self.opening = None;
            }
            if let Some(until) = self.until {
                self.pending.ended(until).await;
                // What still runs is cut off now.
                self.output.stop.cancel();
                return None;
            }
            let read = match self.frames.next().await {
                Ok(Frame::Whole(text)) => message::read(&text).and_then(|message| match message {
                    Some(mut message) => self.admit(&mut message, text.len()).map(|()| Some(message)),
                    None => Ok(None),
                }),
                Ok(Frame::TooLong) => Err(Malformed::too_long()),
                // An input that cannot be read any more has ended.
                Ok(Frame::End) | Err(_) => {
                    self.until = Some(Instant::now() + LINGER);
                    continue;
                }
            };
            match read {
                Ok(Some(message)) => match ending(&message) {
                    Some(Ending::Shutdown(id)) => {
                        drop(self.pending.remove(&id));
                        self.is_shut_down = true;
                        self.answer(message::null_result(id));
                    }
                    Some(Ending::Exit) => self.until = Some(Instant::now() + LINGER),
                    None => {
                        self.opening = opening(&message);
                        return Some(message);
                    }
                },
                Ok(None) => {}
                Err(malformed) => self.answer(malformed.to_line()),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        if let Some(answering) = self.answering.take() {
            drop(answering.await);
        }
        Ok(())
    }
}

/// How clients of the first era end a session: the request `shutdown`, then the notification `exit`.
enum Ending {
    Shutdown(RequestId),
    Exit,
}

fn ending(message: &ClientJsonRpcMessage) -> Option<Ending> {
    match message {
        JsonRpcMessage::Request(request) => {
            let ClientRequest::CustomRequest(custom) = &request.request else { return None };
            (custom.method == "shutdown").then(|| Ending::Shutdown(request.id.clone()))
        }
        JsonRpcMessage::Notification(note) => {
            let ClientNotification::CustomNotification(custom) = &note.notification else { return None };
            (custom.method == "exit").then_some(Ending::Exit)
        }
        JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => None,
    }
}

/// The id of an `initialize`.
fn opening(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Request(request) => {
            matches!(request.request, ClientRequest::InitializeRequest(_)).then(|| request.id.clone())
        }
        JsonRpcMessage::Response(_) | JsonRpcMessage::Notification(_) | JsonRpcMessage::Error(_) => None,
    }
}

/// A message as a line. It is measured first: a buffer that grows is up to three times as large as what it holds.
fn line(item: &ServerJsonRpcMessage) -> std::io::Result<Vec<u8>> {
    let mut length = Length(1);
    serde_json::to_writer(&mut length, item)?;
    let mut line = Vec::with_capacity(length.0);
    serde_json::to_writer(&mut line, item)?;
    line.push(b'\n');
    Ok(line)
}

/// Counts what is written.
struct Length(usize);

impl std::io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Where answers go. A message is written whole before the next.
struct Output<W> {
    writer: Arc<tokio::sync::Mutex<W>>,
    stop: CancellationToken,
}

impl<W: AsyncWrite + Unpin> Output<W> {
    /// Writes a line that is made when it is its turn.
    async fn write(&self, line: impl FnOnce() -> std::io::Result<Vec<u8>>) -> std::io::Result<()> {
        let mut writer = self.writer.lock().await;
        let line = line()?;
        let written = async {
            writer.write_all(&line).await?;
            writer.flush().await
        };
        let written = written.await;
        if written.is_err() {
            self.stop.cancel();
        }
        written
    }
}

impl<W> Clone for Output<W> {
    fn clone(&self) -> Self {
        Self { writer: Arc::clone(&self.writer), stop: self.stop.clone() }
    }
}

/// Requests that wait for their answers, with their sizes.
#[derive(Default)]
struct Pending {
    requests: Mutex<HashMap<RequestId, Waiting>>,
    fewer: Notify,
}

struct Waiting {
    size: usize,
    /// The room that the answer takes.
    keeper: Keeper,
}

impl Pending {
    fn add(&self, id: &RequestId, size: usize) -> Result<Keeper, Malformed> {
        let mut requests = self.locked();
        if requests.contains_key(id) {
            return Err(Malformed::repeated(id.clone()));
        }
        let bytes = requests.values().map(|waiting| waiting.size).sum::<usize>() + size;
        if requests.len() >= MAX_PENDING || bytes > MAX_PENDING_BYTES {
            return Err(Malformed::busy(id.clone()));
        }
        let keeper = Keeper::default();
        requests.insert(id.clone(), Waiting { size, keeper: keeper.clone() });
        Ok(keeper)
    }

    /// Forgets a request; the room of its answer is the caller's to give back.
    fn remove(&self, id: &RequestId) -> Option<Keeper> {
        let removed = self.locked().remove(id);
        self.fewer.notify_one();
        removed.map(|waiting| waiting.keeper)
    }

    /// Waits until a request has its answer.
    async fn answered(&self, id: &RequestId) {
        while self.locked().contains_key(id) {
            self.fewer.notified().await;
        }
    }

    /// Waits until nothing waits any more, or for this long.
    async fn ended(&self, until: Instant) {
        while !self.locked().is_empty() && Instant::now() < until {
            drop(tokio::time::timeout_at(until, self.fewer.notified()).await);
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, Waiting>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
