//! Requests and answers over connections that are kept, each within its bounds.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bailiwick_egress::Resolver;
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use crate::connect::{ConnectError, Connector, OwnTls};
use crate::endpoint::{Endpoint, EndpointError};

/// All headers of an answer together, and how many there may be.
const MAX_HEAD: usize = 64 * 1024;
const MAX_HEADERS: usize = 100;

/// How many redirects are followed.
const MAX_HOPS: usize = 5;

/// How many connections are kept, and for how long.
const MAX_IDLE: usize = 8;
const IDLE: Duration = Duration::from_secs(30);

const AGENT: &str = concat!("bailiwick/", env!("CARGO_PKG_VERSION"));

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The request cannot be written.
    #[error("the request cannot be written: {0}")]
    Request(http::Error),
    /// The connection broke off, or what came over it is no HTTP.
    #[error("`{0}` gave no usable answer: {1}")]
    Unusable(String, String),
    /// It took too long.
    #[error("`{0}` said nothing for {1} s")]
    Silent(String, u64),
    /// A redirect that is not followed.
    #[error("`{0}` redirects to `{1}`, which is not followed: {2}; if you trust it, write its URL")]
    Redirected(String, String, String),
    /// The answer is in a coding that was not asked for.
    #[error("`{0}` answers in a coding that was not asked for")]
    Coded(String),
    /// There is more than there may be.
    #[error("the answer of `{0}` has more than {1} bytes")]
    TooLarge(String, usize),
}

type Sender = SendRequest<Full<Bytes>>;

/// Connections that wait for their next request, by origin.
type Idle = Arc<Mutex<Vec<(String, Instant, Sender)>>>;

/// Asks servers that run elsewhere.
pub struct Client {
    connector: Connector,
    idle: Idle,
}

/// A status, headers, and a body that has not been read yet.
pub struct Answered {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Body,
}

/// A body, piece by piece. Dropping it before its end closes the connection.
pub struct Body {
    incoming: Incoming,
    origin: String,
    patience: Duration,
    /// Until the end was reached.
    sender: Option<Sender>,
    idle: Idle,
}

impl Client {
    /// Names are resolved so; the host's roots are trusted.
    ///
    /// # Errors
    /// If no server can be verified.
    pub fn new(resolver: Resolver, hosts: BTreeMap<Box<str>, Vec<IpAddr>>) -> Result<Self, ConnectError> {
        Self::with_tls(resolver, hosts, &OwnTls::default())
    }

    /// The same with authorities and a certificate of its own.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub fn with_tls(
        resolver: Resolver,
        hosts: BTreeMap<Box<str>, Vec<IpAddr>>,
        own: &OwnTls<'_>,
    ) -> Result<Self, ConnectError> {
        Ok(Self { connector: Connector::new(resolver, hosts, own)?, idle: Arc::default() })
    }

    /// The same for a service of the user's own, whose name may lead to a private address. TLS is verified as ever.
    #[must_use]
    pub const fn for_own_network(mut self) -> Self {
        self.connector.reaches_private = true;
        self
    }

    /// Sends a request to this endpoint, and follows redirects within its origin that repeat the request as it is. Nothing
    /// may be silent for longer than `patience`.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn send(
        &self,
        endpoint: &Endpoint,
        request: &Request<Bytes>,
        patience: Duration,
    ) -> Result<Answered, SendError> {
        let mut target = endpoint.clone();
        for _ in 0..=MAX_HOPS {
            let answered = self.send_once(&target, request, patience).await?;
            let Some(to) = redirect(&answered) else { return Ok(answered) };
            let elsewhere = |why: &str| {
                let shown = to.chars().take(200).flat_map(char::escape_debug).collect();
                SendError::Redirected(target.origin(), shown, why.to_owned())
            };
            let next = target.join(&to).map_err(|why: EndpointError| elsewhere(&why.to_string()))?;
            if !next.is_same_origin(endpoint) {
                return Err(elsewhere("it is another server"));
            }
            if answered.status.as_u16() < 307 && request.method() != Method::GET {
                return Err(elsewhere("it would become another request"));
            }
            target = next;
        }
        let why = format!("more than {MAX_HOPS} redirects");
        Err(SendError::Unusable(endpoint.origin(), why))
    }

    async fn send_once(
        &self,
        endpoint: &Endpoint,
        request: &Request<Bytes>,
        patience: Duration,
    ) -> Result<Answered, SendError> {
        let origin = endpoint.origin();
        let unusable = |why: &hyper::Error| SendError::Unusable(origin.clone(), chain(why));
        let mut request = written(endpoint, request)?;
        loop {
            let kept = self.take(&origin);
            let is_kept = kept.is_some();
            let mut sender = match kept {
                Some(sender) => sender,
                None => self.open(endpoint).await?,
            };
            let answer = timeout(patience, sender.try_send_request(request)).await;
            match answer.map_err(|_| SendError::Silent(origin.clone(), patience.as_secs()))? {
                Ok(response) => return self.answered(endpoint, response, sender, patience),
                // A server may close a connection that it kept; then nothing was sent.
                Err(mut error) => match error.take_message().filter(|_| is_kept) {
                    Some(unsent) => request = unsent,
                    None => return Err(unusable(error.error())),
                },
            }
        }
    }

    fn answered(
        &self,
        endpoint: &Endpoint,
        response: Response<Incoming>,
        sender: Sender,
        patience: Duration,
    ) -> Result<Answered, SendError> {
        let (head, incoming) = response.into_parts();
        let is_plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
        if !head.headers.get_all(CONTENT_ENCODING).iter().all(is_plain) {
            return Err(SendError::Coded(endpoint.origin()));
        }
        let (origin, idle) = (endpoint.origin(), Arc::clone(&self.idle));
        let body = Body { incoming, origin, patience, sender: Some(sender), idle };
        Ok(Answered { status: head.status, headers: head.headers, body })
    }

    fn take(&self, origin: &str) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(_, since, sender)| since.elapsed() < IDLE && !sender.is_closed());
        let at = idle.iter().rposition(|(own, _, sender)| own == origin && sender.is_ready())?;
        Some(idle.remove(at).2)
    }

    async fn open(&self, endpoint: &Endpoint) -> Result<Sender, SendError> {
        let stream = self.connector.connect(endpoint).await?;
        let mut builder = http1::Builder::new();
        builder.max_buf_size(MAX_HEAD).max_header_size(MAX_HEAD).max_headers(MAX_HEADERS);
        let opened = builder.handshake(TokioIo::new(stream)).await;
        let (sender, connection) =
            opened.map_err(|why| SendError::Unusable(endpoint.origin(), chain(&why)))?;
        // It ends when both the sender and the body are gone.
        tokio::spawn(connection);
        Ok(sender)
    }
}

impl Body {
    /// The next piece; nothing after the last.
    ///
    /// # Errors
    /// If it breaks off, or nothing comes.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, SendError> {
        loop {
            let next = timeout(self.patience, self.incoming.frame()).await;
            let next = next.map_err(|_| SendError::Silent(self.origin.clone(), self.patience.as_secs()))?;
            match next {
                None => {
                    self.keep_connection();
                    return Ok(None);
                }
                Some(Err(why)) => return Err(SendError::Unusable(self.origin.clone(), chain(&why))),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// All of it.
    ///
    /// # Errors
    /// If it breaks off, takes too long, or has more bytes than this.
    pub async fn read(mut self, most: usize) -> Result<Vec<u8>, SendError> {
        // One that says how much it is, and that it is too much, is not waited for.
        if usize::try_from(self.incoming.size_hint().lower()).is_ok_and(|said| said > most) {
            return Err(SendError::TooLarge(self.origin, most));
        }
        let mut all = Vec::new();
        while let Some(piece) = self.chunk().await? {
            if all.len() + piece.len() > most {
                return Err(SendError::TooLarge(self.origin, most));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    fn keep_connection(&mut self) {
        let Some(sender) = self.sender.take() else { return };
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push((self.origin.clone(), Instant::now(), sender));
        }
    }
}

/// The request as it is sent: the caller's headers, and those that every request has.
fn written(endpoint: &Endpoint, request: &Request<Bytes>) -> Result<Request<Full<Bytes>>, SendError> {
    let authority =
        HeaderValue::try_from(endpoint.authority()).map_err(|why| SendError::Request(why.into()))?;
    let body = Full::new(request.body().clone());
    let mut written = Request::builder().method(request.method().clone()).uri(endpoint.target());
    if let Some(headers) = written.headers_mut() {
        headers.extend(request.headers().iter().map(|(name, value)| (name.clone(), value.clone())));
        headers.insert(HOST, authority);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    written.body(body).map_err(SendError::Request)
}

/// Where an answer says to ask instead.
fn redirect(answered: &Answered) -> Option<String> {
    let is_redirect = matches!(answered.status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let to = answered.headers.get(LOCATION).filter(|_| is_redirect)?;
    Some(String::from_utf8_lossy(to.as_bytes()).into_owned())
}

/// An error and what caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
