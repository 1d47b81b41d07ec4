//! From the server to the client: answers find their requests, lists lose what is not declared, and what the server asks
//! its client for needs leave.

use std::sync::Arc;

use bailiwick_policy::authority::Authority;
use bailiwick_policy::denial::DenialCode;
use bailiwick_policy::path::AbsPath;
use serde_json::Value;
use tokio::io::AsyncRead;

use super::from_client::{is_method, with_newline};
use super::message::{METHOD_NOT_FOUND, OWN_ERROR, RequestKey, ServerMessage, error_line, line};
use super::pins::ListedTool;
use super::waiting::{Feature, Reply};
use super::{MAX_RESULT, Shared, listing};
use crate::answer::shown;
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

fn receive(shared: &Shared, text: Vec<u8>) {
    if text.trim_ascii().is_empty() {
        return;
    }
    let read = std::str::from_utf8(&text).ok();
    let message = read.and_then(|text| serde_json::from_str::<ServerMessage<'_>>(text).ok());
    let Some(message) = message else {
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
            let method = method.into_owned();
            asked(shared, id, &method, text);
        }
        (None, Some(Some(id))) => answered(shared, &id, text),
        (_, _) => shared.note("the server wrote a message without a usable id; it was dropped"),
    }
}

/// An answer to one of the client's requests.
fn answered(shared: &Shared, id: &RequestKey, text: Vec<u8>) {
    let Some(reply) = shared.waiting.end(id) else {
        return shared.note("the server answered what nobody waits for; the answer was dropped");
    };
    let too_large = || {
        let why =
            format!("the server's result has {} bytes, more than {MAX_RESULT}; ask for less", text.len());
        error_line(id, OWN_ERROR, &why, None)
    };
    let text = if text.len() > MAX_RESULT { too_large() } else { text };
    match reply {
        Reply::Passed => shared.send_to_client(with_newline(text)),
        Reply::Opening => shared.send_to_client(with_pinned_instructions(shared, text)),
        Reply::ToolList => shared.send_to_client(with_declared_tools(shared, text)),
        Reply::Judged(call) => drop(call.send(text)),
    }
}

/// An opening with the instructions that were pinned.
fn with_pinned_instructions(shared: &Shared, text: Vec<u8>) -> Vec<u8> {
    let pinned = std::str::from_utf8(&text).ok();
    let pinned = pinned
        .and_then(|text| listing::with_instructions(text, |said| shared.options.pins.instructions(said)));
    pinned.unwrap_or_else(|| with_newline(text))
}

/// A list without the tools that the gate does not know.
fn with_declared_tools(shared: &Shared, text: Vec<u8>) -> Vec<u8> {
    let registry = shared.options.tools.registry();
    let listed = |name: &str, tool: &Value| {
        let is_declared = !is_method(name) && registry.has_tool(name);
        if is_declared { shared.options.pins.listed(name, tool) } else { ListedTool::Withheld }
    };
    let list = std::str::from_utf8(&text).ok().and_then(|text| listing::with_listed_tools(text, listed));
    match list {
        Some((list, is_last)) => {
            if is_last {
                shared.options.pins.list_ended();
            }
            list
        }
        None if serde_json::from_slice::<ServerMessage<'_>>(&text)
            .is_ok_and(|message| message.result.is_none()) =>
        {
            with_newline(text)
        }
        None => {
            shared.note("the server's list of tools cannot be read; it was dropped");
            let message: Option<ServerMessage<'_>> = serde_json::from_slice(&text).ok();
            let id = message.and_then(|message| message.id).and_then(RequestKey::from_raw);
            id.map(|id| error_line(&id, OWN_ERROR, "the server's list of tools cannot be read", None))
                .unwrap_or_default()
        }
    }
}

/// A request of the server's to its client.
fn asked(shared: &Shared, id: RequestKey, method: &str, text: Vec<u8>) {
    let feature = match method {
        "ping" => Feature::Other,
        "roots/list" => Feature::Roots,
        _ => {
            let reason = format!("the server asked its client for `{}`", shown(method));
            shared.record_refusal(DenialCode::ClientFeatureRefused, &reason);
            let why = format!("`{}` is not granted to this server", shown(method));
            return shared.to_server.push(error_line(&id, METHOD_NOT_FOUND, &why, None));
        }
    };
    if text.len() <= MAX_RESULT && shared.waiting.asked(id, feature) {
        shared.send_to_client(with_newline(text));
    }
}

/// A client's list of roots without those that are not granted.
pub(super) fn with_granted_roots(text: &[u8], authority: &Authority) -> Vec<u8> {
    let Ok(mut message) = serde_json::from_slice::<Value>(text) else { return Vec::new() };
    let roots = message.get_mut("result").and_then(|result| result.get_mut("roots"));
    if let Some(Value::Array(roots)) = roots {
        roots.retain(|root| {
            root.get("uri").and_then(Value::as_str).is_some_and(|uri| is_granted(uri, authority))
        });
    }
    line(&message)
}

fn is_granted(uri: &str, authority: &Authority) -> bool {
    let path = uri.strip_prefix("file://").and_then(bailiwick_policy::net::percent_decoded);
    let path =
        path.and_then(|path| String::from_utf8(path).ok()).and_then(|path| AbsPath::new(path.as_str()).ok());
    path.is_some_and(|path| authority.read().covers(&path) || authority.write().covers(&path))
}
