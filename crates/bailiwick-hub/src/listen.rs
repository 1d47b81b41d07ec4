//! The hub's listener: TLS with client certificates, names of hosts, and limits on what a connection may take.
//!
//! A connection that has shown no certificate is a stranger: there are few places for them, the oldest goes for a new one, and each
//! has a moment to be done. One with a certificate of a trusted authority has a place of its own, of those that its member may
//! have. A certificate is asked for and not demanded in the handshake, because the log's files and enrolment need none;
//! `crate::service` demands it.
//!
//! Fails closed when: the certificate is of no trusted authority or has expired (the handshake ends), or `Host` names another host.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bailiwick_door::{Answer, Limits, Stranger, Strangers, answer_requests, closing, plain, retry_after};
use http::{HeaderMap, StatusCode, Uri};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::certificates::{self, Claim};
use crate::hub::Hub;
use crate::refusal::HubError;
use crate::service;
use crate::share::{Connections, HeldConnection};

/// Why the hub cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenFault {
    /// The address cannot be had.
    #[error("cannot listen on `{address}`: {cause}")]
    Bind {
        /// What was asked for.
        address: SocketAddr,
        /// What the system said.
        cause: std::io::Error,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
}

/// How TLS is ended, and which hosts are served.
#[derive(Clone)]
pub struct TlsFront {
    acceptor: TlsAcceptor,
    hosts: Arc<[String]>,
}

impl TlsFront {
    /// From PEM: the server's chain and key, and the authorities whose client certificates are taken. `more_hosts` are names beside those in
    /// the certificate.
    ///
    /// # Errors
    /// If something cannot be read.
    pub fn new(
        chain: &[u8],
        key: &[u8],
        client_authorities: &[&[u8]],
        more_hosts: &[String],
    ) -> Result<Self, ListenFault> {
        let fault = |why: String| ListenFault::Tls(why);
        let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|why| fault(format!("the certificate: {why}")))?;
        let first = chain.first().ok_or_else(|| fault("the certificate file has none".to_owned()))?;
        let mut hosts = certificates::hosts_of(first).map_err(|why| fault(why.to_string()))?;
        hosts.extend(more_hosts.iter().map(|host| host.to_ascii_lowercase()));
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|why| fault(format!("the key: {why}")))?;
        let mut roots = RootCertStore::empty();
        for authority in client_authorities.iter().flat_map(|pem| CertificateDer::pem_slice_iter(pem)) {
            let authority = authority.map_err(|why| fault(format!("a client authority: {why}")))?;
            roots.add(authority).map_err(|why| fault(format!("a client authority: {why}")))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .map_err(|why| fault(why.to_string()))?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|why| fault(why.to_string()))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(|why| fault(why.to_string()))?;
        // No session is resumed: each connection shows its certificate.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), hosts: hosts.into() })
    }

    /// Whether a request is for one of our hosts.
    fn serves(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let mut named = headers.get_all(http::header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else { return false };
        let host = host.to_str().unwrap_or_default().to_ascii_lowercase();
        let is_ours = |name: &str| self.hosts.iter().any(|own| own == without_port(name));
        is_ours(&host) && uri.authority().is_none_or(|authority| is_ours(authority.as_str()))
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// The limits of a hub: many members with short requests.
#[must_use]
pub fn hub_limits() -> Limits {
    let mut limits = Limits::default();
    limits.connections = 2048;
    limits.strangers = 512;
    limits.proof = Duration::from_secs(10);
    limits.headers = 32;
    limits.head_bytes = 16 << 10;
    limits.body_bytes = 256 << 10;
    limits.head = Duration::from_secs(5);
    limits.body = Duration::from_secs(10);
    limits
}

/// A socket that listens.
pub struct Listening {
    listener: TcpListener,
    /// Its address.
    pub address: SocketAddr,
}

impl Listening {
    /// Listens; port 0 takes a free one.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub async fn bind(address: SocketAddr) -> Result<Self, ListenFault> {
        let fault = |cause| ListenFault::Bind { address, cause };
        let listener = TcpListener::bind(address).await.map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        Ok(Self { listener, address })
    }

    /// Serves members over TLS until `halt`.
    pub async fn serve(self, front: TlsFront, limits: Limits, hub: Arc<Hub>, halt: CancellationToken) {
        let strangers = Strangers::new(limits.strangers, limits.connections);
        let members = Arc::new(Connections::default());
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = halt.cancelled() => break,
            };
            let Ok((stream, _)) = accepted else {
                strangers.evict(); // out of file descriptors: others have to end first
                sleep(limits.pause).await;
                continue;
            };
            while connections.try_join_next().is_some() {}
            let connection = Connection {
                front: front.clone(),
                limits,
                hub: Arc::clone(&hub),
                stranger: strangers.enter(),
                members: Arc::clone(&members),
                halt: halt.clone(),
            };
            connections.spawn(connection.run(stream));
        }
        drop(self.listener);
        let _unfinished = timeout(limits.ending, connections.join_all()).await;
    }

    /// Serves counters and health in clear text until `halt`: for probes and Prometheus.
    pub async fn serve_probes(self, hub: Arc<Hub>, halt: CancellationToken) {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = halt.cancelled() => return,
            };
            while connections.try_join_next().is_some() {}
            let Ok((stream, _)) = accepted else { continue };
            if connections.len() >= 16 {
                continue;
            }
            let hub = Arc::clone(&hub);
            connections.spawn(async move {
                let service = service_fn(move |request| {
                    let hub = Arc::clone(&hub);
                    async move { Ok::<_, std::convert::Infallible>(service::probe(&hub, &request).await) }
                });
                let mut builder = http1::Builder::new();
                builder
                    .timer(TokioTimer::new())
                    .header_read_timeout(Duration::from_secs(5))
                    .keep_alive(false);
                let _ended =
                    timeout(Duration::from_secs(10), builder.serve_connection(TokioIo::new(stream), service))
                        .await;
            });
        }
    }
}

/// One connection of a member or a stranger.
struct Connection {
    front: TlsFront,
    limits: Limits,
    hub: Arc<Hub>,
    stranger: Arc<Stranger>,
    members: Arc<Connections>,
    halt: CancellationToken,
}

/// Whether there is a place for a connection.
enum Place {
    /// It is a stranger's, or one of its member's.
    Taken { _held: Option<HeldConnection> },
    /// Its member has no more.
    MemberFull,
    /// No member has.
    HubFull,
}

impl Connection {
    /// The place of a connection with this certificate.
    fn place(&self, claim: Option<&Claim>) -> Place {
        let Some(claim) = claim else { return Place::Taken { _held: None } };
        match self.members.hold(&claim.subject) {
            None => Place::MemberFull,
            Some(_) if !self.stranger.admit() => Place::HubFull,
            held => Place::Taken { _held: held },
        }
    }

    async fn run(self, stream: TcpStream) {
        let _nagle = stream.set_nodelay(true);
        // TLS has no state before there is something to read: a connection that sends nothing costs next to nothing.
        let started = async {
            stream.readable().await.ok()?;
            self.front.acceptor.accept(stream).await.ok()
        };
        let stream = tokio::select! {
            stream = started => stream,
            () = self.stranger.must_go(self.limits.proof) => None,
            () = self.halt.cancelled() => None,
        };
        let Some(stream) = stream else { return };
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let claim = certificate.and_then(|certificate| Claim::read(certificate).ok()).map(Arc::new);
        let place = self.place(claim.as_deref());
        self.talk(stream, claim, &place).await;
    }

    async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        claim: Option<Arc<Claim>>,
        place: &Place,
    ) {
        let (hub, front, limits) = (&self.hub, &self.front, &self.limits);
        let answer = |request: http::Request<hyper::body::Incoming>| {
            let claim = claim.clone();
            async move {
                let (head, body) = request.into_parts();
                if let Some(full) = full(place) {
                    full
                } else if !front.serves(&head.headers, &head.uri) {
                    closing(plain(StatusCode::MISDIRECTED_REQUEST, "this hub has another name"))
                } else {
                    service::answer(hub, claim.as_deref(), limits, head, body).await
                }
            }
        };
        answer_requests(stream, *limits, (&self.stranger, &self.halt), answer).await;
    }
}

/// What a connection hears that has no place.
fn full(place: &Place) -> Option<Answer> {
    let (status, code, why) = match place {
        Place::Taken { .. } => return None,
        Place::MemberFull => {
            (StatusCode::TOO_MANY_REQUESTS, "too-many-connections", "this member has too many connections")
        }
        Place::HubFull => {
            (StatusCode::SERVICE_UNAVAILABLE, "hub-full", "there are as many connections as this hub holds")
        }
    };
    Some(closing(retry_after(HubError::refused(status, code, why).answer(), "1")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_compared_without_its_port() {
        for (host, name) in [
            ("a:1", "a"),
            ("a", "a"),
            ("[::1]:8", "[::1]"),
            ("[::1]", "[::1]"),
            ("a:", "a:"),
            ("a:1x", "a:1x"),
        ] {
            assert_eq!(without_port(host), name, "{host}");
        }
    }
}
