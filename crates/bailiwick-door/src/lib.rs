//! The only HTTP listener: what stands in front of every service that Bailiwick offers on this machine.
//!
//! A [`Listening`] socket takes connections on the loopback interface alone, or on another one in TLS ([`ServerTls`]). A request reaches its [`Service`] only with
//! the right `Host`, no foreign `Origin` and the token (`door`), and within [`Limits`]: how much it may bring, how long it
//! may take, how many connections there may be. Credentials are taken off it first. Then there is an orderly end.
//!
//! Fails closed when: an address is not of this machine's loopback interface and there is no TLS, no token can be drawn, or its file
//! cannot be made anew for its owner alone.
//! Residual: every program of the same user can read the token too; connections to the loopback interface are not
//! encrypted, and the kernel keeps other users from reading them.
#![forbid(unsafe_code)]

mod answer;
mod door;
mod held_port;
mod limits;
mod strangers;
mod tls;
mod token;

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use http::request::Parts;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

pub use answer::{Answer, closing, filled, plain, read_body, retry_after, with_header};
pub use door::DoorRules;
pub use limits::Limits;
pub use strangers::{Stranger, Strangers};
pub use tls::{ServerTls, TlsFault};
pub use token::{Token, TokenFault, TokenFile};

use held_port::HeldPort;

/// Answers the requests that were let in.
pub trait Service: Send + Sync + 'static {
    /// Answers one request. Its body was not read yet; [`read_body`] does that within the limits.
    fn answer(&self, head: Parts, body: Incoming) -> impl Future<Output = Answer> + Send;

    /// Told that the listener ends: what runs has to end too, so that answers are not waited for.
    fn end(&self) -> impl Future<Output = ()> + Send;
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ListenFault {
    /// The address would be reachable from elsewhere.
    #[error("`{0}` is not an address of the loopback interface; only 127.0.0.1 and [::1] are served")]
    NotLoopback(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on `{address}`: {cause}")]
    Bind {
        /// What was asked for.
        address: SocketAddr,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Sandboxes cannot be kept from the port.
    #[error("cannot keep sandboxes from this port with a file in `{}`: {cause}", directory.display())]
    Held {
        /// Where.
        directory: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
}

/// A socket that listens, and serves nothing yet.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<ServerTls>,
    held: Option<HeldPort>,
}

impl Listening {
    /// Listens; port 0 takes a free one.
    ///
    /// # Errors
    /// If the address is not of the loopback interface, or cannot be had.
    pub async fn bind(address: SocketAddr) -> Result<Self, ListenFault> {
        if !address.ip().is_loopback() {
            return Err(ListenFault::NotLoopback(address));
        }
        Self::bind_any(address, None).await
    }

    /// Listens on any address, in TLS.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub async fn bind_tls(address: SocketAddr, tls: ServerTls) -> Result<Self, ListenFault> {
        Self::bind_any(address, Some(tls)).await
    }

    /// Has the supervisors of this user's sandboxes refuse the way here, whatever is granted: they look into this directory.
    ///
    /// # Errors
    /// If that cannot be said there.
    pub fn kept_from_sandboxes(mut self, directory: &Path) -> Result<Self, ListenFault> {
        let held = HeldPort::hold(directory, self.port());
        let held = held.map_err(|cause| ListenFault::Held { directory: directory.to_owned(), cause })?;
        self.held = Some(held);
        Ok(self)
    }

    async fn bind_any(address: SocketAddr, tls: Option<ServerTls>) -> Result<Self, ListenFault> {
        let bind = |cause| ListenFault::Bind { address, cause };
        let listener = TcpListener::bind(address).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        Ok(Self { listener, address, tls, held: None })
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where clients connect.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        match &self.tls {
            None => format!("http://{}{path}", self.address),
            Some(tls) => format!("https://{}:{}{path}", tls.name, self.port()),
        }
    }

    /// These rules, under the one name that clients have for this.
    #[must_use]
    pub fn name(&self, rules: DoorRules) -> DoorRules {
        match &self.tls {
            None => rules.under_one_name(self.address.ip()),
            Some(tls) => rules.under_tls_name(&tls.name),
        }
    }

    /// Lets a service answer the requests that `entry` admits. Ends some time after `stop` does, when the connections
    /// have ended or `limits.ending` is over.
    pub async fn serve<S: Service>(
        self,
        entry: DoorRules,
        limits: Limits,
        service: Arc<S>,
        stop: impl Future<Output = ()>,
    ) {
        let halt = CancellationToken::new();
        let door = Arc::new(Door { port: self.port(), entry, limits, service: Arc::clone(&service) });
        let mut connections = JoinSet::new();
        tokio::select! {
            () = stop => {}
            () = accept((&self.listener, self.tls.as_ref()), &door, &halt, &mut connections) => {}
        }
        drop(self.listener);
        drop(self.held);
        halt.cancel();
        service.end().await;
        let _unfinished = timeout(limits.ending, connections.join_all()).await;
    }
}

/// What all connections of a server share.
struct Door<S> {
    port: u16,
    entry: DoorRules,
    limits: Limits,
    service: Arc<S>,
}

impl<S: Service> Door<S> {
    async fn answer(&self, request: Request<Incoming>, stranger: &Stranger) -> Answer {
        let (mut head, body) = request.into_parts();
        if let Err(refusal) = self.entry.admit(self.port, &mut head) {
            return refusal.answer();
        }
        if !self.entry.is_open(head.uri.path()) && !stranger.admit() {
            let full =
                plain(StatusCode::SERVICE_UNAVAILABLE, "there are as many connections as this server holds");
            return closing(retry_after(full, "1"));
        }
        self.service.answer(head, body).await
    }
}

/// Takes every connection at once: none waits for those before it, and one that shows no token does not delay the others.
async fn accept<S: Service>(
    (listener, tls): (&TcpListener, Option<&ServerTls>),
    door: &Arc<Door<S>>,
    halt: &CancellationToken,
    connections: &mut JoinSet<()>,
) {
    let strangers = Strangers::new(door.limits.strangers, door.limits.connections);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            strangers.evict(); // out of file descriptors: others have to end first
            sleep(door.limits.pause).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let (door, halt, stranger) = (Arc::clone(door), halt.clone(), strangers.enter());
        match tls {
            None => connections.spawn(serve_connection(stream, door, halt, stranger)),
            Some(tls) => connections.spawn(serve_tls(stream, tls.clone(), door, halt, stranger)),
        };
    }
}

/// The same in TLS. A client that takes too long for its handshake is let go.
async fn serve_tls<S: Service>(
    stream: TcpStream,
    tls: ServerTls,
    door: Arc<Door<S>>,
    halt: CancellationToken,
    stranger: Arc<Stranger>,
) {
    let accepted = tokio::select! {
        accepted = timeout(door.limits.head, tls.acceptor.accept(stream)) => accepted,
        () = halt.cancelled() => return,
    };
    if let Ok(Ok(stream)) = accepted {
        serve_connection(stream, door, halt, stranger).await;
    }
}

/// One connection, to its end.
async fn serve_connection<S: Service>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    door: Arc<Door<S>>,
    halt: CancellationToken,
    stranger: Arc<Stranger>,
) {
    let answer = |request| {
        let (door, known) = (Arc::clone(&door), Arc::clone(&stranger));
        async move { door.answer(request, &known).await }
    };
    answer_requests(stream, door.limits, (&stranger, &halt), answer).await;
}

/// Answers the requests of one connection within these limits, until it ends, the stranger has to go or the server ends.
pub async fn answer_requests<F: Future<Output = Answer>>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    limits: Limits,
    (stranger, halt): (&Stranger, &CancellationToken),
    answer: impl Fn(Request<Incoming>) -> F,
) {
    let service = service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, std::convert::Infallible>(answer.await) }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_buf_size(limits.head_bytes)
            .max_headers(limits.headers)
            .serve_connection(TokioIo::new(stream), service)
    );
    tokio::select! {
        _ended = connection.as_mut() => {}
        () = stranger.must_go(limits.proof) => {}
        () = halt.cancelled() => {
            connection.as_mut().graceful_shutdown();
            let _unfinished = timeout(limits.ending, connection).await;
        }
    }
}
