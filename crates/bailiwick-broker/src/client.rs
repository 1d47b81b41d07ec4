//! Requests of the supervisor's own to the hosts of brokered secrets: for a tool that is no program of a sandbox.
//!
//! They go the way of a sandbox's: over a socket to the process that holds the values, which ends TLS, asks for each request
//! whether it may be sent, puts values in, and takes them out of what is answered. No value is in this process.
//!
//! The caller judges host and addresses, and dials, before a connection is handed over.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bailiwick_egress::{
    Code, Dialler, EgressOutcome, Event, Handover, Refusal, Replayed, Rules, Target, Teller, TlsEnd,
};
use bailiwick_policy::plan::Network;
use tokio::net::{TcpStream, UnixStream};

use crate::process::Brokering;

/// The secrets of one caller in the supervisor itself.
pub struct BrokeredClient {
    end: Arc<dyn TlsEnd>,
    rules: Rules,
    placeholders: Vec<(Box<str>, String)>,
    authority: Vec<u8>,
    tell: Teller,
    refused: Arc<Mutex<Option<Refusal>>>,
}

/// A server that was dialled, at one of the addresses that were judged.
pub struct Dialled {
    /// Connected, and nothing said yet.
    pub server: TcpStream,
    /// Where.
    pub address: IpAddr,
    /// All addresses that were judged.
    pub addresses: Vec<IpAddr>,
    /// How long another connection may take to be made, and how long nothing may move.
    pub patience: (Duration, Duration),
}

impl BrokeredClient {
    /// With the secrets of a session that was opened for it alone; `tell` records each decision.
    #[must_use]
    pub fn new(
        brokering: Brokering,
        network: &Network,
        tell: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Self {
        let placeholders =
            brokering.placeholders().map(|(name, text)| (name.into(), text.to_owned())).collect();
        let (authority, refused) = (brokering.authority().to_vec(), Arc::<Mutex<Option<Refusal>>>::default());
        let kept = Arc::clone(&refused);
        let tell: Teller = Arc::new(move |event: Event| {
            if let Some(refusal) = event.refusal() {
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal.clone());
            }
            tell(&event);
        });
        Self { end: brokering.open(), rules: Rules::new(network), placeholders, authority, tell, refused }
    }

    /// Whether a secret is used at this host and port.
    #[must_use]
    pub fn ends(&self, target: &Target) -> bool {
        self.end.ends(target)
    }

    /// The secrets, by name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.placeholders.iter().map(|(name, _)| &**name)
    }

    /// What stands for a secret in requests.
    #[must_use]
    pub fn placeholder(&self, name: &str) -> Option<&str> {
        self.placeholders.iter().find(|(own, _)| **own == *name).map(|(_, text)| text.as_str())
    }

    /// The certificate that speaks for the hosts, as PEM; no other is to be trusted for them.
    #[must_use]
    pub fn authority(&self) -> &[u8] {
        &self.authority
    }

    /// A connection to a host of secrets, and what has to run for as long as it is used.
    ///
    /// # Errors
    /// If there are no more descriptors.
    pub fn connect(
        &self,
        target: Target,
        dialled: Dialled,
    ) -> io::Result<(UnixStream, impl Future<Output = ()> + Send + use<>)> {
        let Dialled { server, address, addresses, patience: (patience, idle) } = dialled;
        let (own, theirs) = std::os::unix::net::UnixStream::pair()?;
        own.set_nonblocking(true)?;
        let own = UnixStream::from_std(own)?;
        let sockets = addresses.iter().map(|address| SocketAddr::new(*address, target.port)).collect();
        let connection = Handover {
            client: Replayed::from_parts(Vec::new(), theirs.into())?,
            server,
            address,
            dialler: Dialler::new(sockets, patience),
            rules: self.rules.clone(),
            tell: Arc::clone(&self.tell),
            idle,
            target,
        };
        Ok((own, self.end.take(connection)))
    }

    /// Has it recorded that something is not sent at all.
    #[must_use]
    pub fn refuse(&self, target: &Target, request: (&str, &str), code: Code) -> Refusal {
        let refusal = Refusal::new(code);
        (self.tell)(Event::of_request(target, request, EgressOutcome::Refused(refusal.clone())));
        refusal
    }

    /// What was refused last.
    #[must_use]
    pub fn refused(&self) -> Option<Refusal> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
