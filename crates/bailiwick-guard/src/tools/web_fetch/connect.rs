//! The connection: the host resolved once, the answer judged as a whole, one of the judged addresses dialled.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use bailiwick_launch::{Dialled, Lookup};
use bailiwick_policy::net::{Host, NetRequest, Scheme, canonical_ip};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::secrets::Filled;
use super::target::Target;
use super::{WebFetch, failed};
use crate::gate::ToolContext;
use crate::tool::ToolError;

/// How long one address is tried.
const MAX_DIAL: Duration = Duration::from_secs(5);
/// How many addresses are tried.
const MAX_DIALS: usize = 4;

/// Why no server can be spoken to inside TLS.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum TlsError {
    #[error("a root certificate cannot be used: {0}")]
    Root(rustls::Error),
    #[error("this host has no root certificates, so no server can be trusted")]
    NoRoots,
    #[error("{0}")]
    Config(rustls::Error),
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
enum ConnectError {
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("`{0}`: {1}")]
    Name(String, InvalidDnsNameError),
    #[error("no secure connection to `{0}`: {1}")]
    Handshake(String, std::io::Error),
    #[error("`{0}` has no address")]
    NoAddress(String),
    #[error("cannot connect to {0}: {1}")]
    Refused(IpAddr, std::io::Error),
    #[error("cannot connect to {0}: no answer within {seconds} s", seconds = MAX_DIAL.as_secs())]
    Silent(IpAddr),
}

/// A connection, plain or inside TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection, and what has to run for as long as it is used.
pub(super) struct Connected {
    pub(super) stream: Box<dyn Stream>,
    pub(super) _running: JoinSet<()>,
}

impl WebFetch {
    /// A connection that `request` may use. One that is filled with secrets goes to the process that holds them.
    pub(super) async fn connect(
        &self,
        lookup: &Lookup,
        (target, filled): (&Target, Option<&Filled<'_>>),
        request: &NetRequest,
        context: &ToolContext,
    ) -> Result<Connected, ToolError> {
        let addresses = resolved(lookup, &target.host).await;
        if addresses.is_empty() {
            return Err(failed(ConnectError::NoAddress(target.host.to_string())));
        }
        context.check_addresses(request, &addresses)?;
        let (stream, address) = dial(target, &addresses).await.map_err(failed)?;
        if let Some(filled) = filled {
            let patience = (MAX_DIAL, filled.idle);
            let dialled = Dialled { server: stream, address, addresses, patience };
            return handed_over(filled, &target.host, dialled).await;
        }
        context.reached(request, address);
        let stream: Box<dyn Stream> = match target.scheme {
            Scheme::Http => Box::new(stream),
            Scheme::Https => {
                let config = self.tls.get_or_init(|| self.client_config()).clone().map_err(failed)?;
                Box::new(secured(stream, &target.host, config).await.map_err(failed)?)
            }
        };
        Ok(Connected { stream, _running: JoinSet::new() })
    }

    fn client_config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        for own in &self.roots {
            roots.add(own.clone()).map_err(TlsError::Root)?;
        }
        if roots.is_empty() {
            return Err(TlsError::NoRoots);
        }
        trusting(roots)
    }
}

/// The same to the process that holds the secrets, which alone speaks for their hosts here.
async fn handed_over(filled: &Filled<'_>, host: &Host, dialled: Dialled) -> Result<Connected, ToolError> {
    let mut roots = RootCertStore::empty();
    let own = CertificateDer::from_pem_slice(filled.client.authority()).map_err(failed)?;
    roots.add(own).map_err(|fault| failed(TlsError::Root(fault)))?;
    let (stream, relay) = filled.client.connect(filled.at.clone(), dialled).map_err(failed)?;
    let mut running = JoinSet::new();
    running.spawn(relay);
    let stream = secured(stream, host, trusting(roots).map_err(failed)?).await.map_err(failed)?;
    Ok(Connected { stream: Box::new(stream), _running: running })
}

fn trusting(roots: RootCertStore) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(TlsError::Config)?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

async fn secured<S: Stream>(
    stream: S,
    host: &Host,
    config: Arc<ClientConfig>,
) -> Result<impl Stream + use<S>, ConnectError> {
    let name = match host {
        Host::Name(name) => ServerName::try_from(name.to_string())
            .map_err(|source| ConnectError::Name(host.to_string(), source))?,
        Host::Ip(ip) => ServerName::IpAddress((*ip).into()),
    };
    let secured = TlsConnector::from(config).connect(name, stream).await;
    secured.map_err(|source| ConnectError::Handshake(host.to_string(), source))
}

/// Where a host leads. `localhost` is this machine; no name server is asked.
async fn resolved(lookup: &Lookup, host: &Host) -> Vec<IpAddr> {
    let addresses = match host {
        Host::Ip(ip) => vec![*ip],
        Host::Name(name) if **name == *"localhost" || name.ends_with(".localhost") => {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        }
        Host::Name(name) => lookup.addresses(name).await,
    };
    addresses.into_iter().map(canonical_ip).collect()
}

/// Connects to the first of the addresses that answers.
async fn dial(target: &Target, addresses: &[IpAddr]) -> Result<(TcpStream, IpAddr), ConnectError> {
    let mut why = ConnectError::NoAddress(target.host.to_string());
    for address in addresses.iter().take(MAX_DIALS) {
        match tokio::time::timeout(MAX_DIAL, TcpStream::connect((*address, target.port))).await {
            Ok(Ok(stream)) => return Ok((stream, *address)),
            Ok(Err(error)) => why = ConnectError::Refused(*address, error),
            Err(_) => why = ConnectError::Silent(*address),
        }
    }
    Err(why)
}
