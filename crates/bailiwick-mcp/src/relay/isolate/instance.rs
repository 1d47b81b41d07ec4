//! One instance: started, opened as the client opened the base, and then spoken to.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    CallsInFlight, InstanceStreams, Instances, LONGEST, ServedCall, Split, answered_id, with_id, with_newline,
};
use crate::relay::lines::{LineQueue, QueuedLines};
use crate::relay::message::RequestKey;
use crate::stdio::frames::{Frame, Frames};

/// How long an instance may take to open.
pub(in crate::relay) const OPENING: Duration = Duration::from_secs(30);

/// How long the reason of an end may take to be known.
pub(in crate::relay) const PARTING: Duration = Duration::from_secs(6);

/// The id of our own opening of an instance. It never reaches the client, and the client's never reaches it.
const OPEN: &str = "bailiwick-open";

/// What is said to an instance, from the moment in which it is first wanted.
pub(super) struct RunningInstance {
    pub(super) lines: LineQueue,
    /// Calls that it is answering: known to its process once that runs.
    in_flight: Arc<Mutex<EarlyCalls>>,
}

#[derive(Default)]
struct EarlyCalls {
    waiting: Vec<Arc<ServedCall>>,
    known: Option<Arc<CallsInFlight>>,
}

impl RunningInstance {
    /// Says nothing more to it.
    pub(super) fn close(&self) {
        self.lines.close();
    }

    pub(super) fn begin(&self, call: &Arc<ServedCall>) {
        let mut calls = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        match &calls.known {
            Some(known) => known.begin(call),
            None => calls.waiting.push(Arc::clone(call)),
        }
    }
}

/// Starts an instance beside all else; what is said to it meanwhile waits.
pub(super) fn start<I: Instances>(
    split: &Arc<Split<I>>,
    number: usize,
    opening: Option<Vec<u8>>,
    opened: Option<Vec<u8>>,
) -> RunningInstance {
    let (lines, queued) = LineQueue::new();
    let in_flight = Arc::new(Mutex::new(EarlyCalls::default()));
    let running = RunningInstance { lines, in_flight: Arc::clone(&in_flight) };
    let split = Arc::clone(split);
    tokio::spawn(async move {
        let why = match split.instances.start(number).await {
            Ok(streams) => {
                in_flight.lock().unwrap_or_else(PoisonError::into_inner).know(&streams.in_flight);
                run(&split, number, streams, queued, (opening, opened)).await
            }
            Err(why) => format!("the server's instance for this tool did not start: {why}"),
        };
        split.instance_ended(number, &why);
    });
    running
}

impl EarlyCalls {
    fn know(&mut self, calls: &Arc<CallsInFlight>) {
        self.waiting.drain(..).for_each(|call| calls.begin(&call));
        self.known = Some(Arc::clone(calls));
    }
}

/// Opens an instance and relays until it has ended; how it ended.
async fn run<I: Instances>(
    split: &Arc<Split<I>>,
    number: usize,
    streams: InstanceStreams,
    queued: QueuedLines,
    (opening, opened): (Option<Vec<u8>>, Option<Vec<u8>>),
) -> String {
    let InstanceStreams { mut input, output, over, reason, .. } = streams;
    let mut frames = Frames::with_longest(output, LONGEST);
    if let Some(opening) = opening {
        let is_open = tokio::time::timeout(OPENING, open(&mut input, &mut frames, &opening, opened)).await;
        if !is_open.is_ok_and(|is_open| is_open) {
            drop(input);
            over.cancel();
            let why =
                tokio::time::timeout(PARTING, reason).await.ok().and_then(Result::ok).unwrap_or_default();
            return format!("the server's instance for this tool did not open as the server did; {why}");
        }
    }
    let writer = tokio::spawn(queued.write_to(input));
    loop {
        split.to_relay.has_room().await;
        match frames.next().await {
            Ok(Frame::Whole(line)) if line.trim_ascii().is_empty() => {}
            Ok(Frame::Whole(line)) => split.receive_from_instance(number, line),
            Ok(Frame::TooLong | Frame::End) | Err(_) => break,
        }
    }
    over.cancel();
    writer.abort();
    let why = tokio::time::timeout(PARTING, reason).await.ok().and_then(Result::ok);
    why.unwrap_or_else(|| "the server's instance for this tool has ended".to_owned())
}

/// Says to it what the client said to the base. Its answer is dropped; only that it answers counts.
pub(in crate::relay) async fn open(
    input: &mut (impl AsyncWrite + Unpin),
    frames: &mut Frames<impl AsyncRead + Unpin>,
    opening: &[u8],
    opened: Option<Vec<u8>>,
) -> bool {
    use tokio::io::AsyncWriteExt as _;
    let Some(opening) = with_id(opening, &Value::from(OPEN)) else { return false };
    if input.write_all(&opening).await.is_err() || input.flush().await.is_err() {
        return false;
    }
    let own = RequestKey::Text(OPEN.into());
    loop {
        let Ok(Frame::Whole(line)) = frames.next().await else { return false };
        if answered_id(&line) == Some(own.clone()) {
            let answer: Option<Value> = serde_json::from_slice(&line).ok();
            if answer.is_none_or(|answer| answer.get("result").is_none()) {
                return false;
            }
            break;
        }
    }
    let Some(opened) = opened else { return true };
    input.write_all(&with_newline(opened)).await.is_ok() && input.flush().await.is_ok()
}
