//! The connection: the host resolved once, the answer judged as a whole, one of the judged addresses dialled.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use bailiwick_launch::Lookup;
use bailiwick_policy::net::{Host, NetRequest, Scheme, canonical_ip};
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

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

impl WebFetch {
    /// A connection that `request` may use.
    pub(super) async fn connect(
        &self,
        lookup: &Lookup,
        target: &Target,
        request: &NetRequest,
        context: &ToolContext,
    ) -> Result<Box<dyn Stream>, ToolError> {
        let addresses = resolved(lookup, &target.host).await;
        if addresses.is_empty() {
            return Err(failed(ConnectError::NoAddress(target.host.to_string())));
        }
        context.check_addresses(request, &addresses)?;
        let (stream, address) = dial(target, &addresses).await.map_err(failed)?;
        context.reached(request, address);
        match target.scheme {
            Scheme::Http => Ok(Box::new(stream)),
            Scheme::Https => Ok(Box::new(self.secured(stream, &target.host).await.map_err(failed)?)),
        }
    }

    async fn secured(&self, stream: TcpStream, host: &Host) -> Result<impl Stream + use<>, ConnectError> {
        let config = self.tls.get_or_init(|| self.client_config()).clone()?;
        let name = match host {
            Host::Name(name) => ServerName::try_from(name.to_string())
                .map_err(|source| ConnectError::Name(host.to_string(), source))?,
            Host::Ip(ip) => ServerName::IpAddress((*ip).into()),
        };
        let secured = TlsConnector::from(config).connect(name, stream).await;
        secured.map_err(|source| ConnectError::Handshake(host.to_string(), source))
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
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(TlsError::Config)?;
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
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
