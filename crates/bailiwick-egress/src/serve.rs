//! Starting and stopping: sockets in, a running session out.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use bailiwick_policy::plan::{Network, Ports};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::entrance::{Entrance, Listeners};
use crate::event::Event;
use crate::handover::TlsEnd;
use crate::limits::Limits;
use crate::resolve::Resolver;
use crate::session::Session;
use crate::stream::Source;
use crate::{closed, connect, entrance, relay};

/// How bytes are copied once nothing is left to check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Copying {
    /// In the kernel, through a pipe.
    #[default]
    Splice,
    /// Through a buffer of ours.
    Buffer,
}

/// How a session is run. Nothing in here grants anything.
pub struct Options {
    /// Who resolves names.
    pub resolver: Resolver,
    /// Names with fixed addresses, in the spelling of [`bailiwick_policy::net::Host`]. They are screened as any other.
    pub hosts: BTreeMap<Box<str>, Vec<IpAddr>>,
    /// Bounds.
    pub limits: Limits,
    /// How bytes are copied.
    pub copying: Copying,
    /// What ends TLS for some hosts, if anything does.
    pub tls_end: Option<Arc<dyn TlsEnd>>,
    /// Told of every decision. It is called between packets, so it must not wait.
    pub events: Box<dyn Fn(Event) + Send + Sync>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            resolver: Resolver::default(),
            hosts: BTreeMap::new(),
            limits: Limits::default(),
            copying: Copying::default(),
            tls_end: None,
            events: Box::new(drop),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { resolver, hosts, limits, copying, .. } = self;
        f.debug_struct("Options")
            .field("resolver", resolver)
            .field("hosts", hosts)
            .field("limits", limits)
            .field("copying", copying)
            .finish_non_exhaustive()
    }
}

/// The sockets that were made inside a sandbox's network namespace.
#[derive(Debug, Default)]
pub struct Sockets {
    /// On port 53, bound to every address.
    pub dns_udp: Vec<UdpSocket>,
    /// The same over TCP.
    pub dns_tcp: Vec<TcpListener>,
    /// For connections.
    pub relays: Vec<TcpListener>,
    /// For connections from outside; those that [`Egress::listening`] takes are handed in through them.
    pub entrances: Vec<Entrance>,
    /// Whether connections were redirected to the relays by the kernel, which then knows where they were meant to
    /// go; else they were made to the very address and port the relay sees.
    pub redirected: bool,
}

/// A socket on which a sandbox without a namespace of ours finds its proxy.
#[derive(Debug)]
pub enum Front {
    /// TCP. Every process that reaches it has what the plan grants.
    Tcp(TcpListener),
    /// A Unix socket, guarded by its place in the file system.
    Unix(UnixListener),
}

/// An allowlist, ready to run.
pub struct Egress {
    session: Arc<Session>,
    ports: Ports,
    listeners: Listeners,
    closed: bool,
}

impl std::fmt::Debug for Egress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Egress").field("ports", &self.ports).finish_non_exhaustive()
    }
}

/// A running allowlist. It stops, with all its connections, when this is dropped.
#[derive(Debug)]
pub struct Running {
    stop: Option<Stop>,
    thread: Option<JoinHandle<()>>,
}

/// What ends a running one when it is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "dropping them is what counts")]
enum Stop {
    Runtime(oneshot::Sender<()>),
    Closed(UnixStream),
}

impl Egress {
    /// The allowlist of a plan's network.
    #[must_use]
    pub fn new(network: &Network, options: Options) -> Self {
        let session = Arc::new(Session::new(network, options));
        let closed = *network == Network::None;
        Self { session, ports: network.ports(), listeners: Listeners::default(), closed }
    }

    /// The same, where connections from outside to these ports are handed in.
    #[must_use]
    pub fn listening(self, listeners: Listeners) -> Self {
        Self { closed: self.closed && listeners.is_empty(), listeners, ..self }
    }

    /// The ports that need a relay inside; more than can be listened on one by one need a redirection.
    #[must_use]
    pub const fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Answers a sandbox's sockets, on a thread of its own.
    ///
    /// # Errors
    /// If a socket cannot be used or no thread can be started.
    pub fn serve(self, sockets: Sockets) -> io::Result<Running> {
        if self.closed {
            let (stop, thread) = closed::serve(self.session, sockets.dns_udp)?;
            return Ok(Running { stop: Some(Stop::Closed(stop)), thread: Some(thread) });
        }
        Running::start(move || self.answer(sockets))
    }

    /// Serves a proxy for a sandbox that is in no namespace of ours, on a thread of its own.
    ///
    /// # Errors
    /// If the socket cannot be used or no thread can be started.
    pub fn front(self, front: Front) -> io::Result<Running> {
        Running::start(move || self.stand_in_front(front))
    }

    /// The same as [`Egress::serve`] within a runtime of the caller's. Dropping it ends everything.
    ///
    /// # Errors
    /// If a socket cannot be used. Otherwise it does not return.
    pub async fn run(self, sockets: Sockets) -> io::Result<()> {
        self.answer(sockets)?.join_all().await;
        Ok(())
    }

    fn answer(self, sockets: Sockets) -> io::Result<JoinSet<()>> {
        let mut tasks = JoinSet::new();
        for socket in sockets.dns_udp {
            socket.set_nonblocking(true)?;
            let socket = tokio::net::UdpSocket::from_std(socket)?;
            tasks.spawn(relay::datagrams(Arc::clone(&self.session), socket));
        }
        for listener in sockets.dns_tcp {
            tasks.spawn(relay::queries(Arc::clone(&self.session), asynchronous(listener)?));
        }
        for listener in sockets.relays {
            let listener = asynchronous(listener)?;
            tasks.spawn(relay::relay(Arc::clone(&self.session), listener, sockets.redirected));
        }
        entrance::serve(&self.session, self.listeners, sockets.entrances, &mut tasks)?;
        Ok(tasks)
    }

    fn stand_in_front(self, front: Front) -> io::Result<JoinSet<()>> {
        let source = match front {
            Front::Tcp(listener) => Source::Tcp(asynchronous(listener)?),
            Front::Unix(listener) => {
                listener.set_nonblocking(true)?;
                Source::Unix(tokio::net::UnixListener::from_std(listener)?)
            }
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(connect::serve(self.session, source));
        Ok(tasks)
    }
}

fn asynchronous(listener: TcpListener) -> io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

impl Running {
    fn start(tasks: impl FnOnce() -> io::Result<JoinSet<()>>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // For the host's resolver, which blocks.
            .max_blocking_threads(16)
            .build()?;
        let mut tasks = {
            let _inside = runtime.enter();
            tasks()?
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let run = move || {
            runtime.block_on(async {
                // Ends when told to, or when the sender is dropped.
                drop(stopped.await);
                tasks.abort_all();
            });
            drop(tasks);
            // The host's resolver may hang; it is not waited for.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("egress".to_owned()).spawn(run)?;
        Ok(Self { stop: Some(Stop::Runtime(stop)), thread: Some(thread) })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there ended the session: nothing is let through any more.
            drop(thread.join());
        }
    }
}
