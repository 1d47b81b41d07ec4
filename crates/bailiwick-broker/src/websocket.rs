//! WebSockets, where a secret's table allows them: a placeholder in the first message becomes the value.
//!
//! Frames are read and written anew on both sides, whole message by whole message: one that was cut into frames in the
//! middle of a placeholder or of a value is judged as one. Compression is not offered to the server, and each side's pings
//! are answered here.
//!
//! Fails closed when a message is longer than [`MOST`], or a later message has a placeholder.
//!
//! Residual: a value that a server spreads over several messages.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bailiwick_egress::{Code, Refusal, Request as Asked};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{HeaderMap, Method, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::answer::{clean, drop_hop_fields, redacted};
use crate::body::{AnyBody, whole};
use crate::connection::{Connection, field};
use crate::request::{Filling, Used};

/// The longest message.
const MOST: usize = 4 * 1024 * 1024;

/// What goes on once a connection became a WebSocket.
pub(crate) type Relay = Pin<Box<dyn Future<Output = ()> + Send>>;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Whether a request asks for a WebSocket and nothing else.
pub(crate) fn is_asked_for(version: Version, method: &Method, headers: &HeaderMap) -> bool {
    let is = |name: &str, text: &str| field(headers, name).is_some_and(|own| own.eq_ignore_ascii_case(text));
    let upgrades = field(headers, "connection")
        .is_some_and(|all| all.split(',').any(|one| one.trim().eq_ignore_ascii_case("upgrade")));
    version == Version::HTTP_11
        && *method == Method::GET
        && upgrades
        && is("upgrade", "websocket")
        && is("sec-websocket-version", "13")
        && headers.contains_key(header::SEC_WEBSOCKET_KEY)
        && !headers.contains_key(header::CONTENT_LENGTH)
        && !headers.contains_key(header::TRANSFER_ENCODING)
}

/// The fields of the request that are between two parties, as we say them.
pub(crate) fn restore_fields(headers: &mut HeaderMap) {
    headers.remove(header::SEC_WEBSOCKET_EXTENSIONS);
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

/// The answer to a request for a WebSocket; its messages are passed on once the client has it.
pub(crate) fn answered(
    connection: &Arc<Connection>,
    asked: Asked,
    client: OnUpgrade,
    mut response: Response<Incoming>,
) -> Result<Response<AnyBody>, Refusal> {
    let redactor = connection.session.redactor();
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return redacted(response, &redactor, connection.idle);
    }
    let withheld = || Refusal::new(Code::SecretResponse);
    if response.headers().contains_key(header::SEC_WEBSOCKET_EXTENSIONS) {
        return Err(withheld());
    }
    let server = hyper::upgrade::on(&mut response);
    let mut headers = response.headers().clone();
    drop_hop_fields(&mut headers);
    let mut headers = clean(&headers, &redactor).ok_or_else(withheld)?;
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    connection.go_on_with(Box::pin(relay(Arc::clone(connection), asked, client, server)));
    let mut answer = Response::new(whole(Bytes::new()));
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *answer.headers_mut() = headers;
    Ok(answer)
}

async fn relay(connection: Arc<Connection>, asked: Asked, client: OnUpgrade, server: OnUpgrade) {
    let (Ok(client), Ok(server)) = tokio::join!(client, server) else { return };
    let config = WebSocketConfig::default().max_message_size(Some(MOST)).max_frame_size(Some(MOST));
    let socket =
        |upgraded, role| WebSocketStream::from_raw_socket(TokioIo::new(upgraded), role, Some(config));
    let (mut client, mut server) = (socket(client, Role::Server).await, socket(server, Role::Client).await);
    let mut is_first = true;
    loop {
        let goes_on = tokio::select! {
            said = client.next() => match said {
                Some(Ok(message)) => {
                    match to_server(&connection, &asked, message, &mut is_first).await {
                        Ok(message) => pass_on(&mut server, message).await,
                        Err(refusal) => {
                            connection.tell(&refusal, &asked.method, &asked.path).await;
                            false
                        }
                    }
                }
                Some(Err(_)) | None => false,
            },
            said = server.next() => match said {
                Some(Ok(message)) => pass_on(&mut client, to_client(&connection, message)).await,
                Some(Err(_)) | None => false,
            },
        };
        if !goes_on {
            break;
        }
    }
    let _ = tokio::join!(client.close(None), server.close(None)); // either may be gone
}

/// Whether more may come.
async fn pass_on(socket: &mut Socket, message: Option<Message>) -> bool {
    let Some(message) = message else { return true };
    let is_last = message.is_close();
    socket.send(message).await.is_ok() && !is_last
}

/// What the server is sent for a message; nothing for one that is answered here.
async fn to_server(
    connection: &Connection,
    asked: &Asked,
    message: Message,
    is_first: &mut bool,
) -> Result<Option<Message>, Refusal> {
    if message.is_ping() || message.is_pong() {
        return Ok(None);
    }
    let used = Used::default();
    let mut filling = Filling { session: &connection.session, target: &connection.target, used };
    if let Message::Close(frame) = &message {
        let reason = frame.as_ref().map(|frame| frame.reason.as_bytes()).unwrap_or_default();
        filling.has_none(reason)?;
        return Ok(Some(message));
    }
    let is_text = message.is_text();
    let text = message.into_data();
    if !std::mem::take(is_first) {
        filling.has_none(&text)?;
        return remade(is_text, text).map(Some);
    }
    let filled = filling.first_message(&text)?;
    connection.referee.ask(asked, &filling.used.names()).await?;
    remade(is_text, filled.map_or(text, |filled| Bytes::copy_from_slice(&filled))).map(Some)
}

fn remade(is_text: bool, bytes: Bytes) -> Result<Message, Refusal> {
    if !is_text {
        return Ok(Message::Binary(bytes));
    }
    Utf8Bytes::try_from(bytes).map(Message::Text).map_err(|_| Refusal::new(Code::SecretRequest))
}

/// What the client is sent for a message.
fn to_client(connection: &Connection, message: Message) -> Option<Message> {
    let redactor = connection.session.redactor();
    if message.is_ping() || message.is_pong() {
        return None;
    }
    if let Message::Close(frame) = message {
        let frame = frame.map(|frame| {
            let reason = String::from_utf8_lossy(&redactor.redact(frame.reason.as_bytes())).into_owned();
            CloseFrame { code: frame.code, reason: reason.into() }
        });
        return Some(Message::Close(frame));
    }
    let is_text = message.is_text();
    let clean = Bytes::from(redactor.redact(&message.into_data()));
    // Every byte that was replaced was one of ASCII, so a text is still one.
    remade(is_text, clean).ok()
}
