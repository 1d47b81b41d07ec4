//! Streamable HTTP for any handler, in both eras of the protocol, on the loopback interface alone.
//!
//! `rmcp` speaks the protocol: sessions and event streams for clients that initialize, self-contained requests for
//! those that do not, and the headers that have to repeat the body. Added here is what stands in front of it: who may
//! come in (`door`), how much a request may bring and how long it may take ([`Limits`]), how many sessions there may
//! be, and an orderly end.
//!
//! Fails closed when: an address is not of this machine's loopback interface, no token can be drawn, or its file
//! cannot be made anew for its owner alone. Only the fixture, which can do nothing, can be served without a token.
//! Residual: whoever reads as the same user reads the token too; connections to the loopback interface are not
//! encrypted, and the kernel keeps other users from reading them.

mod door;
mod exchange;
mod limits;
mod sessions;
mod strangers;
mod token;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::ServerHandler;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

pub use limits::Limits;
pub use token::{Token, TokenFault, TokenFile};

use crate::fixture::Fixture;
use door::Door;
use exchange::Exchange;
use strangers::{Stranger, Strangers};

/// The one path that is served.
pub const PATH: &str = "/mcp";

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum HttpFault {
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
}

/// A socket that listens on the loopback interface, and serves nothing yet.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listening {
    /// Listens; port 0 takes a free one.
    pub async fn bind(address: SocketAddr) -> Result<Self, HttpFault> {
        if !address.ip().is_loopback() {
            return Err(HttpFault::NotLoopback(address));
        }
        let bind = |cause| HttpFault::Bind { address, cause };
        let listener = TcpListener::bind(address).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        Ok(Self { listener, address })
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Where clients connect.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Serves what `handler` makes, one for each session and one for each request without, to whoever has the token.
    /// Ends some time after `stop` does, when the connections have ended or `limits.ending` is over.
    pub async fn serve<H: ServerHandler + Send + 'static>(
        self,
        token: Token,
        limits: Limits,
        handler: impl Fn() -> H + Send + Sync + 'static,
        stop: impl Future<Output = ()>,
    ) {
        self.run(Some(token), limits, handler, stop).await;
    }

    /// Serves the conformance fixture; without a token, to every process of this machine.
    pub async fn serve_fixture(
        self,
        token: Option<Token>,
        limits: Limits,
        fixture: Fixture,
        stop: impl Future<Output = ()>,
    ) {
        self.run(token, limits, move || fixture.clone(), stop).await;
    }

    async fn run<H: ServerHandler + Send + 'static>(
        self,
        token: Option<Token>,
        limits: Limits,
        handler: impl Fn() -> H + Send + Sync + 'static,
        stop: impl Future<Output = ()>,
    ) {
        let halt = CancellationToken::new();
        let door = Door::new(self.port(), token);
        let exchange = Arc::new(Exchange::new(door, limits, handler, halt.clone()));
        let mut connections = JoinSet::new();
        tokio::select! {
            () = stop => {}
            () = accept(&self.listener, &exchange, limits, &halt, &mut connections) => {}
        }
        drop(self.listener);
        halt.cancel();
        exchange.close_sessions().await;
        let _unfinished = timeout(limits.ending, connections.join_all()).await;
    }
}

/// Takes every connection at once: none waits for those before it, and one that shows no token keeps nobody out.
async fn accept<H: ServerHandler + Send + 'static>(
    listener: &TcpListener,
    exchange: &Arc<Exchange<H>>,
    limits: Limits,
    halt: &CancellationToken,
    connections: &mut JoinSet<()>,
) {
    let strangers = Strangers::new(limits.strangers, limits.connections);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            strangers.evict(); // out of file descriptors: others have to end first
            sleep(limits.pause).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let (exchange, halt, stranger) = (Arc::clone(exchange), halt.clone(), strangers.enter());
        connections.spawn(converse(stream, exchange, limits, halt, stranger));
    }
}

/// One connection, to its end.
async fn converse<H: ServerHandler + Send + 'static>(
    stream: TcpStream,
    exchange: Arc<Exchange<H>>,
    limits: Limits,
    halt: CancellationToken,
    stranger: Arc<Stranger>,
) {
    let known = Arc::clone(&stranger);
    let service = service_fn(move |request| {
        let (exchange, known) = (Arc::clone(&exchange), Arc::clone(&known));
        async move { Ok::<_, std::convert::Infallible>(exchange.answer(request, &known).await) }
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
