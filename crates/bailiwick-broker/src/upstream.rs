//! The server of a brokered connection: dialled at addresses that were judged, verified, and spoken to in whichever version
//! of HTTP it offers.
//!
//! Over HTTP/1.1 one connection answers one request after the other; further ones are made while it is busy, as many as a
//! client may have requests open.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bailiwick_egress::{Code, Dialler, Refusal, Target};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::uri;
use hyper::{Request, Response, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::body::AnyBody;
use crate::trust::{HTTP_2, UpstreamTls};

/// How long a handshake may take.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(15);
/// How long a connection that has just answered may take to be free again.
const SETTLING: Duration = Duration::from_millis(5);
/// The longest head of a response.
const MAX_HEAD: usize = 64 * 1024;

/// A server.
pub(crate) struct Upstream {
    target: Target,
    dialler: Dialler,
    tls: UpstreamTls,
    idle: Duration,
    /// Connected already, and nothing said yet.
    first: Mutex<Option<TcpStream>>,
    idle_http1: Mutex<Vec<http1::SendRequest<AnyBody>>>,
    http2: Mutex<Option<http2::SendRequest<AnyBody>>>,
    /// Held while a connection is made, so that requests that come together share one over HTTP/2.
    connecting: tokio::sync::Mutex<()>,
}

enum Spoken {
    Http1(http1::SendRequest<AnyBody>),
    Http2(http2::SendRequest<AnyBody>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const fn unreachable() -> Refusal {
    Refusal::new(Code::Unreachable)
}

impl Upstream {
    pub(crate) fn new(
        target: Target,
        dialler: Dialler,
        tls: UpstreamTls,
        first: TcpStream,
        idle: Duration,
    ) -> Self {
        Self {
            target,
            dialler,
            tls,
            idle,
            first: Mutex::new(Some(first)),
            idle_http1: Mutex::default(),
            http2: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        }
    }

    /// Sends a request, whose URI has path and query alone, and gives the head of the response.
    pub(crate) async fn send(
        &self,
        mut parts: Parts,
        authority: &str,
        body: AnyBody,
    ) -> Result<Response<Incoming>, Refusal> {
        match self.spoken().await? {
            Spoken::Http2(mut spoken) => {
                parts.version = Version::HTTP_2;
                parts.headers.remove(header::HOST);
                parts.uri = absolute(&parts.uri, authority)?;
                answered(self.idle, spoken.send_request(Request::from_parts(parts, body))).await
            }
            Spoken::Http1(mut spoken) => {
                for_http1(&mut parts, authority)?;
                let response =
                    answered(self.idle, spoken.send_request(Request::from_parts(parts, body))).await?;
                lock(&self.idle_http1).push(spoken);
                Ok(response)
            }
        }
    }

    /// The same over a connection of its own that may become another protocol.
    pub(crate) async fn send_for_upgrade(
        &self,
        mut parts: Parts,
        authority: &str,
        body: AnyBody,
    ) -> Result<Response<Incoming>, Refusal> {
        let tls = self.connect(&self.tls.http1).await?;
        let (mut spoken, connection) = http1_handshake(tls).await?;
        tokio::spawn(connection.with_upgrades());
        for_http1(&mut parts, authority)?;
        answered(self.idle, spoken.send_request(Request::from_parts(parts, body))).await
    }

    /// Something over which a request can be sent now.
    async fn spoken(&self) -> Result<Spoken, Refusal> {
        if let Some(spoken) = self.at_hand().await {
            return Ok(spoken);
        }
        let _alone = self.connecting.lock().await;
        if let Some(spoken) = self.at_hand().await {
            return Ok(spoken);
        }
        let tls = self.connect(&self.tls.any).await?;
        if tls.get_ref().1.alpn_protocol() == Some(HTTP_2) {
            let builder = http2_builder();
            let (spoken, connection) =
                builder.handshake(TokioIo::new(tls)).await.map_err(|_| unreachable())?;
            tokio::spawn(connection);
            *lock(&self.http2) = Some(spoken.clone());
            return Ok(Spoken::Http2(spoken));
        }
        let (spoken, connection) = http1_handshake(tls).await?;
        tokio::spawn(connection);
        Ok(Spoken::Http1(spoken))
    }

    async fn at_hand(&self) -> Option<Spoken> {
        let http2 = lock(&self.http2).clone();
        if let Some(mut spoken) = http2 {
            if spoken.ready().await.is_ok() {
                return Some(Spoken::Http2(spoken));
            }
            *lock(&self.http2) = None;
        }
        let newest = {
            let mut idle = lock(&self.idle_http1);
            idle.retain(|spoken| !spoken.is_closed());
            let ready = idle.iter().position(http1::SendRequest::is_ready);
            match ready {
                Some(place) => return Some(Spoken::Http1(idle.swap_remove(place))),
                None => idle.pop(),
            }
        };
        let mut newest = newest?;
        match timeout(SETTLING, newest.ready()).await {
            Ok(Ok(())) => Some(Spoken::Http1(newest)),
            Ok(Err(_)) => None,
            Err(_) => {
                lock(&self.idle_http1).push(newest);
                None
            }
        }
    }

    /// TLS with the server, verified.
    async fn connect(&self, config: &Arc<ClientConfig>) -> Result<TlsStream<TcpStream>, Refusal> {
        let first = lock(&self.first).take();
        let stream = match first {
            Some(stream) => stream,
            None => self.dialler.dial().await.map_err(|_| unreachable())?,
        };
        let refuse = || Refusal::new(Code::SecretUpstream);
        let name = ServerName::try_from(self.target.host.to_string()).map_err(|_| refuse())?;
        let tls = timeout(HANDSHAKE, TlsConnector::from(Arc::clone(config)).connect(name, stream)).await;
        tls.map_err(|_| unreachable())?.map_err(|_| refuse())
    }
}

async fn answered(
    idle: Duration,
    response: impl Future<Output = hyper::Result<Response<Incoming>>>,
) -> Result<Response<Incoming>, Refusal> {
    timeout(idle, response).await.ok().and_then(Result::ok).ok_or_else(unreachable)
}

fn http2_builder() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.max_header_list_size(64 * 1024);
    builder
}

type Http1Connection = http1::Connection<TokioIo<TlsStream<TcpStream>>, AnyBody>;

async fn http1_handshake(
    tls: TlsStream<TcpStream>,
) -> Result<(http1::SendRequest<AnyBody>, Http1Connection), Refusal> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_HEAD);
    builder.handshake(TokioIo::new(tls)).await.map_err(|_| unreachable())
}

/// The head as HTTP/1.1 has it: the host in a field, and cookies in one.
fn for_http1(parts: &mut Parts, authority: &str) -> Result<(), Refusal> {
    let unsendable = || Refusal::new(Code::SecretRequest);
    parts.version = Version::HTTP_11;
    parts.headers.insert(header::HOST, HeaderValue::from_str(authority).map_err(|_| unsendable())?);
    let cookies: Vec<&[u8]> =
        parts.headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1 {
        let joined = HeaderValue::from_bytes(&cookies.join(&b"; "[..])).map_err(|_| unsendable())?;
        parts.headers.insert(header::COOKIE, joined);
    }
    Ok(())
}

fn absolute(target: &Uri, authority: &str) -> Result<Uri, Refusal> {
    let path = target.path_and_query().map_or("/", uri::PathAndQuery::as_str);
    let built = Uri::builder().scheme("https").authority(authority).path_and_query(path).build();
    built.map_err(|_| Refusal::new(Code::SecretRequest))
}
