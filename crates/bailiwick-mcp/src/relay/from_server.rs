//! From the server to the client: answers find their requests, lists lose what is not declared, and what the server asks
//! its client for needs leave.

use std::sync::{Arc, PoisonError};
use std::task::{Context, Waker};

use bailiwick_policy::authority::Authority;
use bailiwick_policy::path::AbsPath;
use serde_json::Value;
use tokio::io::AsyncRead;

use super::features::{ClientFeature, judge_request, labelled, retain_granted, with_judged_inputs};
use super::from_client::{is_method, with_newline};
use super::from_peer::ServerMessage;
use super::listing::Listed;
use super::message::{INVALID_REQUEST, METHOD_NOT_FOUND, OWN_ERROR, RequestKey, error_line, line};
use super::pins::{ListKind, ListedTool};
use super::waiting::{Feature, Reply};
use super::{MAX_RESULT, Shared, listing};
use crate::answer::shown;
use crate::json;
use crate::stdio::frames::{Frame, Frames};

/// Lines longer than this end the relay: whom they answer cannot be known.
const LONGEST: usize = 64 * 1024 * 1024;

/// Reads until the server says nothing more.
pub(super) async fn read_all(shared: &Arc<Shared>, output: impl AsyncRead + Unpin) {
    let mut frames = Frames::with_longest(output, LONGEST);
    loop {
        shared.to_client.has_room().await;
        match frames.next().await {
            Ok(Frame::Whole(line)) => receive(shared, line),
            Ok(Frame::TooLong) => {
                return shared.note("the server wrote a line of more than 64 MiB, and is ended");
            }
            Ok(Frame::End) | Err(_) => return,
        }
    }
}

fn receive(shared: &Arc<Shared>, text: Vec<u8>) {
    if text.trim_ascii().is_empty() {
        return;
    }
    let text = one_line(text);
    let Some(message) = ServerMessage::read(&text) else {
        let start: String = String::from_utf8_lossy(&text).chars().take(100).collect();
        let start = shared.options.redactor.plain(&start).text;
        return shared.note(&format!("the server wrote something that is no message: {}", shown(&start)));
    };
    let key = message.id.map(RequestKey::from_raw);
    match (message.method, key) {
        (Some(method), None) => {
            if method.starts_with("notifications/") && text.len() <= MAX_RESULT {
                shared.send_to_client(with_newline(text));
            }
        }
        (Some(method), Some(Some(id))) => {
            let (shared, method) = (Arc::clone(shared), method.into_owned());
            go_on(&Arc::clone(&shared), async move { asked(&shared, id, &method, text).await });
        }
        (None, Some(Some(id))) => answered(shared, id, text),
        (_, _) => shared.note("the server wrote a message without a usable id; it was dropped"),
    }
}

/// The line without carriage returns within it: some clients take one for the end of a line. In JSON they stand between parts alone.
fn one_line(mut text: Vec<u8>) -> Vec<u8> {
    let end = text.trim_ascii_end().len();
    text.iter_mut().take(end).filter(|byte| **byte == b'\r').for_each(|byte| *byte = b' ');
    text
}

/// Does it at once; where it waits for a person, beside everything else.
fn go_on(shared: &Shared, work: impl Future<Output = ()> + Send + 'static) {
    let mut work = Box::pin(work);
    if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        let mut calls = shared.calls.lock().unwrap_or_else(PoisonError::into_inner);
        while calls.try_join_next().is_some() {}
        calls.spawn(work);
    }
}

/// An answer to one of the client's requests.
fn answered(shared: &Arc<Shared>, id: RequestKey, text: Vec<u8>) {
    let Some(reply) = shared.waiting.end(&id) else {
        shared.waiting.end_cancelled(&id);
        return shared.note("the server answered a request that is not open; the answer was dropped");
    };
    let too_large = || {
        let why =
            format!("the server's result has {} bytes, more than {MAX_RESULT}; ask for less", text.len());
        error_line(&id, OWN_ERROR, &why, None)
    };
    let text = if text.len() > MAX_RESULT { too_large() } else { text };
    if let Reply::Judged(call) = &reply {
        call.served.end();
    }
    if let Reply::Own(waits) = reply {
        return drop(waits.send(text));
    }
    let heard = Heard { shared: Arc::clone(shared), id, reply: Some(reply) };
    go_on(shared, async move {
        let text = with_judged_inputs(&heard.shared, &heard.id, text).await;
        heard.pass_on(text);
    });
}

/// An answer that is judged. What ends before a person has answered is answered too.
struct Heard {
    shared: Arc<Shared>,
    id: RequestKey,
    reply: Option<Reply>,
}

impl Heard {
    fn pass_on(mut self, text: Vec<u8>) {
        let Some(reply) = self.reply.take() else { return };
        let shared = &*self.shared;
        match reply {
            Reply::Passed => shared.send_to_client(with_newline(text)),
            Reply::Opening => shared.send_to_client(with_pinned_instructions(shared, text)),
            Reply::List(kind) => shared.send_to_client(with_pinned_list(shared, kind, text)),
            Reply::Own(waits) => drop(waits.send(text)),
            Reply::Judged(call) => call.answer(text),
        }
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        let Some(reply) = self.reply.take() else { return };
        let why = "the server has ended before a person allowed what it asked for";
        let line = error_line(&self.id, OWN_ERROR, why, None);
        match reply {
            Reply::Judged(call) => call.answer(line),
            Reply::Passed | Reply::Opening | Reply::List(_) | Reply::Own(_) => {
                self.shared.send_to_client(line);
            }
        }
    }
}

/// An opening with the instructions that were pinned.
fn with_pinned_instructions(shared: &Shared, text: Vec<u8>) -> Vec<u8> {
    let pinned = std::str::from_utf8(&text).ok();
    let pinned = pinned
        .and_then(|text| listing::with_instructions(text, |said| shared.options.pins.instructions(said)));
    pinned.unwrap_or_else(|| with_newline(text))
}

/// A page of a list as it may be seen: without tools that the gate does not know, and as it was pinned. `None` if it is none.
pub(super) fn listed_page(shared: &Shared, kind: ListKind, text: &[u8]) -> Option<Listed> {
    let registry = shared.options.tools.registry();
    let listed = |name: &str, entry: &Value| {
        let is_seen = kind != ListKind::Tools || (!is_method(name) && registry.has_tool(name));
        if is_seen { shared.options.pins.listed(kind, name, entry) } else { ListedTool::Withheld }
    };
    let list = std::str::from_utf8(text).ok().and_then(|text| listing::with_listed(text, kind, listed))?;
    if list.next.is_none() {
        shared.options.pins.list_ended(kind);
    }
    Some(list)
}

/// A list as it may be seen.
fn with_pinned_list(shared: &Shared, kind: ListKind, text: Vec<u8>) -> Vec<u8> {
    match listed_page(shared, kind, &text) {
        Some(list) => list.line,
        None if ServerMessage::read(&text).is_some_and(|message| message.result.is_none()) => {
            with_newline(text)
        }
        None => {
            shared.note("a list of the server cannot be read; it was dropped");
            let id = ServerMessage::read(&text).and_then(|message| message.answered_id());
            id.map(|id| error_line(&id, OWN_ERROR, "the server's list cannot be read", None))
                .unwrap_or_default()
        }
    }
}

/// A request of the server's to its client.
async fn asked(shared: &Shared, id: RequestKey, method: &str, text: Vec<u8>) {
    if let RequestKey::Text(id) = &id
        && shared.desk.is_ours(id)
    {
        return shared.note("the server asked its client under an id of ours; it was dropped");
    }
    if method == "ping" {
        if shared.waiting.asked(id, Feature::Other) {
            shared.send_to_client(with_newline(text));
        }
        return;
    }
    // What a person may be asked about has one reading.
    let Ok(message) = json::read(&text) else {
        let why = "the request can be read in two ways; it was not passed on";
        return shared.to_server.push(error_line(&id, INVALID_REQUEST, why, None));
    };
    let params = message.get("params").cloned().unwrap_or_default();
    let feature = match judge_request(shared, method, &params).await {
        Ok(feature) => feature,
        Err(why) => return shared.to_server.push(error_line(&id, METHOD_NOT_FOUND, &why, None)),
    };
    let kept = if feature == ClientFeature::Roots { Feature::Roots } else { Feature::Other };
    if text.len() > MAX_RESULT || !shared.waiting.asked(id, kept) {
        return;
    }
    let label = std::str::from_utf8(&text).ok();
    let label = label.and_then(|text| labelled(text, feature, shared.options.client.server()));
    match label {
        Some(label) => shared.send_to_client(with_newline(label.into_bytes())),
        // A question to a person that cannot be labelled is not passed on.
        None if feature == ClientFeature::Elicitation => {
            shared.note("the server asked a person in a way that cannot be read; it was dropped");
        }
        None => shared.send_to_client(with_newline(text)),
    }
}

/// A client's list of roots without those that are not granted.
pub(super) fn with_granted_roots(text: &[u8], authority: &Authority) -> Vec<u8> {
    let Ok(mut message) = serde_json::from_slice::<Value>(text) else { return Vec::new() };
    let roots = message.get_mut("result").and_then(|result| result.get_mut("roots"));
    if let Some(Value::Array(roots)) = roots {
        retain_granted(roots, authority);
    }
    line(&message)
}

pub(super) fn is_granted(uri: &str, authority: &Authority) -> bool {
    let path = uri.strip_prefix("file://").and_then(bailiwick_policy::net::percent_decoded);
    let path =
        path.and_then(|path| String::from_utf8(path).ok()).and_then(|path| AbsPath::new(path.as_str()).ok());
    path.is_some_and(|path| authority.read().covers(&path) || authority.write().covers(&path))
}
