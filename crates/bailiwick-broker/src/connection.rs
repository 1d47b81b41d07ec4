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
    Code, Dialler, EgressOutcome, Event, Handover, Refusal, Request as Asked, Rules, Target, Teller,
    host_and_port, is_overriding, judge_request,
};
use bailiwick_policy::net::Host;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{self, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, Uri, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::answer::{drop_hop_fields, redacted, refused};
use crate::body::{AnyBody, BodyError, stepped, whole};
use crate::find::Search;
use crate::request::{BodyKind, Filling, Used};
use crate::session::OpenBroker;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(15);
/// The longest body that a value is put into.
const MAX_FILLED: usize = 1024 * 1024;
const MAX_HEAD: usize = 64 * 1024;

/// What all requests of one connection share.
struct Connection {
    broker: Arc<OpenBroker>,
    target: Target,
    dialler: Dialler,
    rules: Rules,
    tell: Teller,
    address: std::net::IpAddr,
    idle: Duration,
    /// The server: connected, spoken to, or neither.
    server: tokio::sync::Mutex<Server>,
    /// What was refused in the middle of a body, so that its response can say so.
    broken: Arc<Mutex<Option<Refusal>>>,
}

enum Server {
    Connected(TcpStream),
    Spoken(SendRequest<AnyBody>),
    Gone,
}

/// Takes a connection to its end.
pub(crate) async fn serve(broker: Arc<OpenBroker>, handover: Handover) {
    let Handover { target, client, server, address, dialler, rules, tell, idle } = handover;
    let refuse = |code| tell(Event::of_connection(&target, EgressOutcome::Refused(Refusal::new(code))));
    let Host::Name(name) = &target.host else { return refuse(Code::SecretInTheClear) };
    let Ok(config) = broker.authority.config_for(name) else { return refuse(Code::SecretRequest) };
    let accepted = timeout(HANDSHAKE, TlsAcceptor::from(config).accept(client)).await;
    let Ok(Ok(client)) = accepted else { return refuse(Code::SecretUntrusted) };
    // What the client named in its hello was judged; this is what TLS took for it.
    if client
        .get_ref()
        .1
        .server_name()
        .is_none_or(|sent| !Host::new(sent).is_ok_and(|host| host == target.host))
    {
        return refuse(Code::TlsNameOther);
    }
    let connection = Arc::new(Connection {
        broker,
        target,
        dialler,
        rules,
        tell,
        address,
        idle,
        server: tokio::sync::Mutex::new(Server::Connected(server)),
        broken: Arc::default(),
    });
    let service = service_fn(|request| {
        let connection = Arc::clone(&connection);
        async move { Ok::<_, Infallible>(connection.answer(request).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .max_buf_size(MAX_HEAD)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(client), service);
    // Either side may go away at any time.
    drop(served.await);
}

impl Connection {
    async fn answer(&self, request: Request<Incoming>) -> Response<AnyBody> {
        let (method, path) = (request.method().to_string(), path_of(request.uri()));
        match self.pass(request).await {
            Ok(response) => response,
            Err(refusal) => {
                let refusal = self.taken_from_body().unwrap_or(refusal);
                // A placeholder that was misdirected is not repeated in a record.
                let shown = if refusal.code() == Code::SecretMisdirected {
                    path.split('?').next().filter(|path| !self.broker.placeholders.is_in(path.as_bytes()))
                } else {
                    Some(path.as_str())
                };
                let outcome = EgressOutcome::Refused(refusal.clone());
                (self.tell)(Event::of_request(&self.target, (&method, shown.unwrap_or("/")), outcome));
                refused(&self.target, &refusal)
            }
        }
    }

    /// What a look at the body refused.
    fn taken_from_body(&self) -> Option<Refusal> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn pass(&self, request: Request<Incoming>) -> Result<Response<AnyBody>, Refusal> {
        let (method, path) = (request.method().clone(), path_of(request.uri()));
        self.judge(&request, &path)?;
        let (filled, used) = self.fill(request, &path).await?;
        used.judge(method.as_str(), &path)?;
        let outcome = match used.names() {
            none if none.is_empty() => EgressOutcome::Allowed(self.address),
            names => EgressOutcome::Brokered(self.address, names),
        };
        drop(used);
        (self.tell)(Event::of_request(&self.target, (method.as_str(), &path), outcome));
        let response = self.send(filled).await?;
        redacted(response, &self.broker.redactor)
    }

    /// Refuses what is not for this host, not granted, or not plain HTTP.
    fn judge(&self, request: &Request<Incoming>, path: &str) -> Result<(), Refusal> {
        let refuse = |code| Err(Refusal::new(code));
        let headers = request.headers();
        let named = |name: header::HeaderName| headers.contains_key(name);
        if *request.method() == Method::CONNECT || named(header::UPGRADE) {
            return refuse(Code::HttpTunnel);
        }
        let two_ways = named(header::CONTENT_LENGTH) && named(header::TRANSFER_ENCODING);
        let http_1_0 = request.version() != Version::HTTP_11 && named(header::TRANSFER_ENCODING);
        let strange = headers.keys().any(|name| name.as_str().contains('_') && is_framing(name.as_str()));
        if two_ways || http_1_0 || strange || headers.get_all(header::CONTENT_LENGTH).iter().count() > 1 {
            return refuse(Code::SecretRequest);
        }
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return refuse(Code::HttpUnreadable) };
        let (host, port) =
            host.to_str().map_err(|_| Code::HttpUnreadable).and_then(host_and_port).map_err(Refusal::new)?;
        if let Some(authority) = request.uri().authority() {
            let same_scheme = request.uri().scheme_str() == Some("https");
            let (other, other_port) = host_and_port(authority.as_str()).map_err(Refusal::new)?;
            let default = |port: Option<u16>| port.unwrap_or(443);
            if !same_scheme || other != host || default(other_port) != default(port) {
                return refuse(Code::HttpHostOther);
            }
        }
        let asked = Asked {
            method: request.method().as_str().into(),
            host,
            // HTTPS without a port is 443; a request for another one is not for this connection.
            port: Some(port.unwrap_or(443)),
            path: path.into(),
            overridden: headers.keys().any(|name| is_overriding(name.as_str())),
        };
        judge_request(&self.rules, &self.target, &self.dialler.addresses(), &asked)
    }

    /// Values in the places of placeholders; the rest of the head as the server needs it.
    async fn fill(
        &self,
        request: Request<Incoming>,
        path: &str,
    ) -> Result<(Request<AnyBody>, Used<'_>), Refusal> {
        let mut filling = Filling { broker: &self.broker, target: &self.target, used: Used::default() };
        let (mut parts, body) = request.into_parts();
        drop_hop_fields(&mut parts.headers);
        for name in [header::RANGE, header::IF_RANGE, header::EXPECT] {
            parts.headers.remove(name);
        }
        filling.headers(&mut parts.headers)?;
        parts.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let target = filling.target(path)?;
        parts.uri = target.parse::<Uri>().map_err(|_| Refusal::new(Code::SecretRequest))?;
        parts.version = Version::HTTP_11;
        parts.extensions.clear();
        let kind = BodyKind::of(&parts.headers).filter(|kind| filling.fills(*kind));
        let body = match kind {
            None => self.watched(body),
            Some(kind) => {
                let too_long = |_| Refusal::new(Code::SecretRequest);
                let read = Limited::new(body, MAX_FILLED).collect().await.map_err(too_long)?.to_bytes();
                let filled = match kind {
                    BodyKind::Form => filling.form(&read)?,
                    BodyKind::Json => filling.json(&read)?,
                };
                parts.headers.remove(header::CONTENT_LENGTH);
                whole(filled)
            }
        };
        Ok((Request::from_parts(parts, body), filling.used))
    }

    /// A body that breaks off where a placeholder is found in it.
    fn watched(&self, body: Incoming) -> AnyBody {
        if body.is_end_stream() {
            return whole(Bytes::new());
        }
        let (finder, mut search) = (Arc::clone(&self.broker.placeholders), Search::default());
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
        stepped(body, Box::new(step))
    }

    async fn send(&self, request: Request<AnyBody>) -> Result<Response<Incoming>, Refusal> {
        let mut server = self.server.lock().await;
        let kept = match std::mem::replace(&mut *server, Server::Gone) {
            Server::Connected(stream) => Some(self.speak(stream).await?),
            Server::Spoken(mut spoken) => spoken.ready().await.is_ok().then_some(spoken),
            Server::Gone => None,
        };
        let mut spoken = match kept {
            Some(spoken) => spoken,
            None => {
                let stream = self.dialler.dial().await.map_err(|_| Refusal::new(Code::Unreachable))?;
                self.speak(stream).await?
            }
        };
        let response = timeout(self.idle, spoken.send_request(request)).await;
        let response = response.ok().and_then(Result::ok).ok_or_else(|| Refusal::new(Code::Unreachable))?;
        *server = Server::Spoken(spoken);
        Ok(response)
    }

    /// TLS with the server, verified, and HTTP inside.
    async fn speak(&self, stream: TcpStream) -> Result<SendRequest<AnyBody>, Refusal> {
        let refuse = |_| Refusal::new(Code::SecretUpstream);
        let name = ServerName::try_from(self.target.host.to_string())
            .map_err(|_| Refusal::new(Code::SecretUpstream))?;
        let connector = TlsConnector::from(Arc::clone(&self.broker.client));
        let tls = timeout(HANDSHAKE, connector.connect(name, stream)).await;
        let tls = tls.map_err(|_| Refusal::new(Code::Unreachable))?.map_err(refuse)?;
        let (spoken, connection) = hyper::client::conn::http1::handshake(TokioIo::new(tls))
            .await
            .map_err(|_| Refusal::new(Code::Unreachable))?;
        tokio::spawn(connection);
        Ok(spoken)
    }
}

/// Path and query, as they were sent.
fn path_of(uri: &Uri) -> String {
    uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string)
}

/// A field that frames a request, in a spelling that some servers take for it.
fn is_framing(name: &str) -> bool {
    let plain = name.replace('_', "-");
    ["content-length", "transfer-encoding", "host", "connection", "authorization"].contains(&plain.as_str())
}
