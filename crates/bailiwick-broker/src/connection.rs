//! One connection to a brokered host: TLS is ended, each request is judged and filled, and passed on over TLS of our own.
//!
//! A request is read whole in its head and written anew, so that what a client left unclear is not sent on. The server is
//! verified by the system's authorities and the host's own name, at an address that was judged.
//!
//! Fails closed when the client does not trust the certificate, names another host, asks for a tunnel or another protocol,
//! or frames a request in two ways.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bailiwick_egress::{
    Code, Dialler, Refusal, Replayed, Request as Asked, Target, host_and_port, is_overriding,
};
use bailiwick_policy::net::{Host, percent_decoded};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::answer::{drop_hop_fields, redacted, refused};
use crate::body::{AnyBody, BodyError, stepped, whole};
use crate::find::Search;
use crate::referee::Referee;
use crate::request::{BodyKind, Filling, Used};
use crate::session::OpenSession;
use crate::sigv4;
use crate::trust::HTTP_2;
use crate::upstream::{HANDSHAKE, Upstream};
use crate::websocket::{self, Relay};

/// The longest body that a value is put into, or that is signed.
const MAX_FILLED: usize = 1024 * 1024;
const MAX_HEAD: usize = 64 * 1024;
const MAX_HEAD_2: u32 = 64 * 1024;
/// How many requests of one connection may be open, over HTTP/2.
const MAX_STREAMS: u32 = 32;

/// Fields by which a client would choose the letters of an answer, or what it is a difference to.
const FORMS: [HeaderName; 2] = [header::ACCEPT_CHARSET, HeaderName::from_static("a-im")];
/// Fields by which a request names the host that some servers take it to be for.
const NAMING: [&str; 6] = [
    "x-forwarded-host",
    "x-original-host",
    "x-host",
    "x-forwarded-server",
    "x-http-host-override",
    "forwarded",
];

/// A connection as the supervisor hands it over.
pub(crate) struct TakenConnection {
    pub(crate) session: Option<Arc<OpenSession>>,
    pub(crate) target: Target,
    pub(crate) client: Replayed,
    pub(crate) server: TcpStream,
    pub(crate) dialler: Dialler,
    pub(crate) idle: Duration,
}

/// What all requests of one connection share.
pub(crate) struct Connection {
    pub(crate) session: Arc<OpenSession>,
    pub(crate) target: Target,
    pub(crate) referee: Arc<Referee>,
    /// How long a body may lie still.
    pub(crate) idle: Duration,
    upstream: Upstream,
    /// What was refused in the middle of a body, so that its response can say so.
    broken: Arc<Mutex<Option<Refusal>>>,
    /// What goes on once the client has the response that ends HTTP.
    relay: Mutex<Option<Relay>>,
}

/// Takes a connection to its end.
pub(crate) async fn serve(session: Arc<OpenSession>, taken: TakenConnection, referee: Arc<Referee>) {
    let TakenConnection { target, client, server, dialler, idle, .. } = taken;
    let client = match accept(&session, &target, client).await {
        Ok(client) => client,
        Err(code) => return referee.tell(&Refusal::new(code), None).await,
    };
    let is_http2 = client.get_ref().1.alpn_protocol() == Some(HTTP_2);
    let upstream = Upstream::new(target.clone(), dialler, session.tls.clone(), server, idle);
    let connection = Arc::new(Connection {
        session,
        target,
        referee,
        idle,
        upstream,
        broken: Arc::default(),
        relay: Mutex::default(),
    });
    let kept = Arc::clone(&connection);
    let service = service_fn(|request| {
        let connection = Arc::clone(&connection);
        async move { Ok::<_, Infallible>(connection.answer(request).await) }
    });
    let client = TokioIo::new(client);
    // Either side may go away at any time.
    if is_http2 {
        let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(MAX_HEAD_2)
            .keep_alive_interval(idle)
            .auto_date_header(false)
            .serve_connection(client, service);
        drop(served.await);
    } else {
        let served = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(idle)
            .max_buf_size(MAX_HEAD)
            .auto_date_header(false)
            .serve_connection(client, service)
            .with_upgrades();
        drop(served.await);
        let relay = kept.relay.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(relay) = relay {
            relay.await;
        }
    }
}

/// Ends TLS with the client.
async fn accept(
    session: &OpenSession,
    target: &Target,
    client: Replayed,
) -> Result<TlsStream<Replayed>, Code> {
    let Host::Name(name) = &target.host else { return Err(Code::SecretInTheClear) };
    let config = session.authority.config_for(name).map_err(|_| Code::SecretRequest)?;
    let accepted = timeout(HANDSHAKE, TlsAcceptor::from(config).accept(client)).await;
    let Ok(Ok(client)) = accepted else { return Err(Code::SecretUntrusted) };
    // What the client named in its hello was judged; this is what TLS took for it.
    let sent = client.get_ref().1.server_name();
    if sent.is_none_or(|sent| !Host::new(sent).is_ok_and(|host| host == target.host)) {
        return Err(Code::TlsNameOther);
    }
    Ok(client)
}

impl Connection {
    async fn answer(self: &Arc<Self>, request: Request<Incoming>) -> Response<AnyBody> {
        let (method, path) = (request.method().to_string(), path_of(request.uri()));
        let is_http2 = request.version() == Version::HTTP_2;
        match self.pass(request).await {
            Ok(response) => response,
            Err(NotSent::Recorded(refusal)) => refused(&self.target, &refusal, is_http2),
            Err(NotSent::Refused(refusal)) => {
                let refusal = self.taken_from_body().unwrap_or(refusal);
                self.tell(&refusal, &method, &path).await;
                refused(&self.target, &refusal, is_http2)
            }
        }
    }

    /// Has a refusal of one request recorded. A placeholder that was misdirected is not repeated in a record.
    pub(crate) async fn tell(&self, refusal: &Refusal, method: &str, path: &str) {
        let shown = if refusal.code() == Code::SecretMisdirected {
            path.split('?').next().filter(|path| !self.session.placeholders.is_in(path.as_bytes()))
        } else {
            Some(path)
        };
        self.referee.tell(refusal, Some((method, shown.unwrap_or("/")))).await;
    }

    /// Has this go on once HTTP is over.
    pub(crate) fn go_on_with(&self, relay: Relay) {
        *self.relay.lock().unwrap_or_else(PoisonError::into_inner) = Some(relay);
    }

    /// What a look at the body refused.
    fn taken_from_body(&self) -> Option<Refusal> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn pass(self: &Arc<Self>, mut request: Request<Incoming>) -> Result<Response<AnyBody>, NotSent> {
        let path = path_of(request.uri());
        let is_websocket = websocket::is_asked_for(request.version(), request.method(), request.headers());
        let opens = is_websocket && self.session.secrets_for(&self.target).any(|own| own.usage.websocket);
        let asked = self.read(&request, &path, opens)?;
        let authority = authority_of(&request)?;
        let token = self.session.refresh(&self.target).await;
        token.map_err(|_| Refusal::new(Code::SecretUpstream))?;
        let client = opens.then(|| hyper::upgrade::on(&mut request));
        let (mut parts, body, used) = self.fill(request, &path, &authority).await?;
        self.referee.ask(&asked, &used.names()).await.map_err(NotSent::Recorded)?;
        drop(used);
        if let Some(client) = client {
            websocket::restore_fields(&mut parts.headers);
            let response = self.upstream.send_for_upgrade(parts, &authority, body).await?;
            return Ok(websocket::answered(self, asked, client, response)?);
        }
        let response = self.upstream.send(parts, &authority, body).await?;
        Ok(redacted(response, &self.session.redactor(), self.idle)?)
    }

    /// What is asked for. Refuses what is not for one host, or not plain HTTP.
    fn read(&self, request: &Request<Incoming>, path: &str, opens: bool) -> Result<Asked, Refusal> {
        let refuse = |code| Err(Refusal::new(code));
        let headers = request.headers();
        let named = |name: header::HeaderName| headers.contains_key(name);
        if *request.method() == Method::CONNECT || (named(header::UPGRADE) && !opens) {
            return refuse(Code::HttpTunnel);
        }
        let two_ways = named(header::CONTENT_LENGTH) && named(header::TRANSFER_ENCODING);
        let old = matches!(request.version(), Version::HTTP_09 | Version::HTTP_10);
        let unframed = old && named(header::TRANSFER_ENCODING);
        let strange = headers.keys().any(|name| name.as_str().contains('_') && is_framing(name.as_str()));
        if two_ways || unframed || strange || headers.get_all(header::CONTENT_LENGTH).iter().count() > 1 {
            return refuse(Code::SecretRequest);
        }
        let (host, port) = host_of(request)?;
        if headers.iter().any(|(name, value)| names_another(name.as_str(), value, &host)) {
            return refuse(Code::HttpHostOther);
        }
        Ok(Asked {
            method: request.method().as_str().into(),
            host,
            // HTTPS without a port is 443; a request for another one is not for this connection.
            port: Some(port.unwrap_or(443)),
            path: path.into(),
            overridden: headers.keys().any(|name| is_overriding(name.as_str())) || overrides_in_query(path),
        })
    }

    /// Values in the places of placeholders; the rest of the head as the server needs it.
    async fn fill(
        &self,
        request: Request<Incoming>,
        path: &str,
        authority: &str,
    ) -> Result<(Parts, AnyBody, Used<'_>), Refusal> {
        let mut filling = Filling { session: &self.session, target: &self.target, used: Used::default() };
        let (mut parts, body) = request.into_parts();
        let signed = sigv4::SignedRequest::read(&parts, authority, filling.signing());
        drop_hop_fields(&mut parts.headers);
        for name in [header::RANGE, header::IF_RANGE, header::EXPECT] {
            parts.headers.remove(name);
        }
        for name in FORMS {
            parts.headers.remove(name);
        }
        filling.headers(&mut parts.headers, signed.is_some())?;
        parts.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let target = filling.target(path)?;
        parts.uri = target.parse::<Uri>().map_err(|_| Refusal::new(Code::SecretRequest))?;
        parts.extensions.clear();
        let kind = BodyKind::from_headers(&parts.headers).filter(|kind| filling.fills(*kind));
        let body = match kind {
            None if signed.as_ref().is_some_and(sigv4::SignedRequest::covers_body) => {
                let read = self.read_whole(body).await?;
                filling.has_none(&read)?;
                Err(read)
            }
            None => Ok(self.watched(body)),
            Some(kind) => {
                let read = self.read_whole(body).await?;
                let filled = match kind {
                    BodyKind::Form => filling.form(&read)?,
                    BodyKind::Json => filling.json(&read)?,
                };
                parts.headers.remove(header::CONTENT_LENGTH);
                Err(filled)
            }
        };
        if let Some(signed) = signed {
            signed.sign_anew(&mut parts, &mut filling, body.as_ref().err())?;
        }
        Ok((parts, body.unwrap_or_else(whole), filling.used))
    }

    async fn read_whole(&self, body: Incoming) -> Result<Bytes, Refusal> {
        let unread = || Refusal::new(Code::SecretRequest);
        let read = timeout(self.idle, Limited::new(body, MAX_FILLED).collect()).await;
        Ok(read.map_err(|_| unread())?.map_err(|_| unread())?.to_bytes())
    }

    /// A body that breaks off where a placeholder is found in it.
    fn watched(&self, body: Incoming) -> AnyBody {
        if body.is_end_stream() {
            return whole(Bytes::new());
        }
        let (finder, mut search) = (Arc::clone(&self.session.placeholders), Search::default());
        let broken = Arc::clone(&self.broken);
        let step = move |piece: Option<&Bytes>| {
            let piece = piece.cloned().unwrap_or_default();
            let mut any = false;
            search.feed(&finder, &piece, |_| any = true);
            if any {
                let refusal = Refusal::new(Code::SecretMisdirected);
                *broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
                return Err(BodyError::from("a placeholder in the body"));
            }
            Ok(piece)
        };
        stepped(body, self.idle, Box::new(step))
    }
}

/// Why a request was not sent, and whether that is on record already.
enum NotSent {
    Recorded(Refusal),
    Refused(Refusal),
}

impl From<Refusal> for NotSent {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Whom a request names: in its target, its field `Host`, or in both alike.
fn host_of(request: &Request<Incoming>) -> Result<(Host, Option<u16>), Refusal> {
    let read = |text: &str| host_and_port(text).map_err(Refusal::new);
    let unreadable = || Refusal::new(Code::HttpUnreadable);
    let other = || Refusal::new(Code::HttpHostOther);
    let mut fields = request.headers().get_all(header::HOST).iter();
    let field = match (fields.next(), fields.next()) {
        (Some(field), None) => Some(read(field.to_str().map_err(|_| unreadable())?)?),
        (None, _) if request.version() == Version::HTTP_2 => None,
        _ => return Err(unreadable()),
    };
    let named = match request.uri().authority() {
        None => None,
        Some(_) if request.uri().scheme_str() != Some("https") => return Err(other()),
        Some(authority) => Some(read(authority.as_str())?),
    };
    let default = |port: Option<u16>| port.unwrap_or(443);
    match (named, field) {
        (Some(one), Some(two)) if one.0 != two.0 || default(one.1) != default(two.1) => Err(other()),
        (Some(one), _) | (None, Some(one)) => Ok(one),
        (None, None) => Err(unreadable()),
    }
}

/// The host as the client wrote it, for the server.
fn authority_of(request: &Request<Incoming>) -> Result<String, Refusal> {
    let field = request.headers().get(header::HOST).and_then(|field| field.to_str().ok());
    let authority = request.uri().authority().map(hyper::http::uri::Authority::as_str).or(field);
    authority.map(str::to_owned).ok_or_else(|| Refusal::new(Code::HttpUnreadable))
}

/// Path and query, as they were sent.
pub(crate) fn path_of(uri: &Uri) -> String {
    uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string)
}

/// Whether a field names another host than this one.
fn names_another(name: &str, value: &HeaderValue, host: &Host) -> bool {
    let plain = name.replace('_', "-");
    if !NAMING.contains(&plain.as_str()) {
        return false;
    }
    let text = value.to_str().unwrap_or_default().trim().to_ascii_lowercase();
    if plain == "forwarded" {
        return text.contains("host") || text.is_empty();
    }
    !host_and_port(&text).is_ok_and(|(named, _)| named == *host)
}

/// Whether a query names another method, as frameworks take it.
fn overrides_in_query(path: &str) -> bool {
    let query = path.split_once('?').map(|(_, query)| query).unwrap_or_default();
    query.split('&').any(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        percent_decoded(name).is_some_and(|name| {
            name.eq_ignore_ascii_case(b"_method") || std::str::from_utf8(&name).is_ok_and(is_overriding)
        })
    })
}

/// A field that frames a request, in a spelling that some servers take for it.
fn is_framing(name: &str) -> bool {
    let plain = name.replace('_', "-");
    ["content-length", "transfer-encoding", "host", "connection", "authorization"].contains(&plain.as_str())
}

/// Fields of a head, for those that look at them.
pub(crate) fn field<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
