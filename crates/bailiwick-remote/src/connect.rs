//! The connection: a name resolved, its addresses screened as a whole, one of them dialled, and TLS verified.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use bailiwick_egress::{Known, Lookup, Resolver, Rules, Target, Verdict, decide};
use bailiwick_policy::capability::CapabilitySet;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::net::Host;
use bailiwick_policy::plan::Plan;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::endpoint::Endpoint;

/// How long one address is tried, and how long TLS may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many addresses are tried.
const TRIES: usize = 4;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing can be verified.
    #[error("TLS cannot be used: {0}")]
    Tls(String),
    /// The name leads nowhere.
    #[error("`{0}` has no address")]
    NoAddress(String),
    /// The name leads to an address that only a person may name.
    #[error(
        "`{0}` leads to a private address ({1}), which is reached only if its URL names the address itself"
    )]
    Private(String, IpAddr),
    /// The server is not there.
    #[error("cannot connect to `{0}`: {1}")]
    Unreachable(String, String),
    /// It is another server, or its certificate is not trusted.
    #[error("no secure connection to `{0}`: {1}")]
    Unverified(String, String),
}

pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Whom a client trusts and what it shows of itself, all PEM.
#[derive(Clone, Copy, Default)]
pub struct OwnTls<'a> {
    /// Authorities that the server's certificate has to lead to; the roots of the host if absent.
    pub authorities: Option<&'a [u8]>,
    /// A certificate chain that is shown to servers that ask for one, and its key.
    pub identity: Option<(&'a [u8], &'a [u8])>,
}

/// Makes connections.
pub(crate) struct Connector {
    lookup: Lookup,
    tls: TlsConnector,
    /// Whether a name may lead to an address of a private network.
    pub(crate) reaches_private: bool,
}

impl Connector {
    /// Trusts the roots of the host, or those that are named, and shows a certificate if there is one.
    pub(crate) fn new(
        resolver: Resolver,
        hosts: BTreeMap<Box<str>, Vec<IpAddr>>,
        own: &OwnTls<'_>,
    ) -> Result<Self, ConnectError> {
        let fault = |why: String| ConnectError::Tls(why);
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions();
        let builder = versions.map_err(|why| fault(why.to_string()))?;
        let builder = builder.with_root_certificates(trusted(own.authorities)?);
        let config = match own.identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
                let chain = chain.map_err(|why| fault(format!("the certificate: {why}")))?;
                let key = PrivateKeyDer::from_pem_slice(key);
                let key = key.map_err(|why| fault(format!("the key of the certificate: {why}")))?;
                builder.with_client_auth_cert(chain, key).map_err(|why| fault(why.to_string()))?
            }
        };
        let tls = TlsConnector::from(Arc::new(config));
        Ok(Self { lookup: Lookup::new(resolver, hosts, Duration::ZERO), tls, reaches_private: false })
    }

    pub(crate) async fn connect(&self, endpoint: &Endpoint) -> Result<Box<dyn Stream>, ConnectError> {
        let addresses = self.screened(endpoint).await?;
        let stream = dial(endpoint, &addresses).await?;
        if !endpoint.is_encrypted() {
            return Ok(Box::new(stream));
        }
        let host = endpoint.host().to_string();
        let unverified = |why: String| ConnectError::Unverified(host.clone(), why);
        let name = match endpoint.host() {
            Host::Ip(ip) => ServerName::from(*ip),
            Host::Name(name) => {
                ServerName::try_from(name.to_string()).map_err(|why| unverified(why.to_string()))?
            }
        };
        let secured = timeout(PATIENCE, self.tls.connect(name, stream)).await;
        let secured = secured.map_err(|_| unverified("it does not answer".to_owned()))?;
        Ok(Box::new(secured.map_err(|why| unverified(why.to_string()))?))
    }

    /// Where the endpoint leads, all of it, or why one address forbids it.
    async fn screened(&self, endpoint: &Endpoint) -> Result<Vec<IpAddr>, ConnectError> {
        let name = match endpoint.host() {
            Host::Ip(typed) => return Ok(vec![*typed]),
            Host::Name(name) if **name == *"localhost" => {
                return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
            }
            Host::Name(name) => name,
        };
        let addresses = self.lookup.addresses(name).await;
        match refused(endpoint, &addresses) {
            Some(ConnectError::Private(..)) if self.reaches_private => Ok(addresses),
            Some(why) => Err(why),
            None => Ok(addresses),
        }
    }
}

/// The certificates that a server's has to lead to.
fn trusted(authorities: Option<&[u8]>) -> Result<RootCertStore, ConnectError> {
    let mut trusted = RootCertStore::empty();
    let Some(pem) = authorities else {
        let found = rustls_native_certs::load_native_certs();
        if trusted.add_parsable_certificates(found.certs).0 == 0 {
            return Err(ConnectError::Tls("this host has no root certificates".to_owned()));
        }
        return Ok(trusted);
    };
    for authority in CertificateDer::pem_slice_iter(pem) {
        let wrong = |why: String| ConnectError::Tls(format!("the certificate authority: {why}"));
        trusted
            .add(authority.map_err(|why| wrong(why.to_string()))?)
            .map_err(|why| wrong(why.to_string()))?;
    }
    if trusted.is_empty() {
        return Err(ConnectError::Tls("the file of the certificate authority has no certificate".to_owned()));
    }
    Ok(trusted)
}

/// What the decision of the network allowlist says, where exactly this host and port are granted.
fn refused(endpoint: &Endpoint, addresses: &[IpAddr]) -> Option<ConnectError> {
    let host = endpoint.host().to_string();
    let Some(first) = addresses.first() else { return Some(ConnectError::NoAddress(host)) };
    let line = format!("net:connect:{host}:{}", endpoint.port());
    let granted = CapabilitySet::new([line.as_str()]).ok();
    let plan =
        granted.and_then(|set| Plan::for_authority("remote", set.authority(), &HostFacts::unknown()).ok());
    let target = Target::new(endpoint.host().clone(), endpoint.port());
    let known = Known { addresses: Some(addresses), hello: None };
    let verdict = plan.map(|plan| decide(&Rules::new(plan.network()), &target, known));
    match verdict {
        Some(Verdict::Listen | Verdict::Allow(_)) => None,
        Some(Verdict::Resolve | Verdict::Refuse(_)) | None => {
            let private = addresses.iter().find(|ip| bailiwick_policy::net::is_special(**ip));
            Some(ConnectError::Private(host, *private.unwrap_or(first)))
        }
    }
}

/// Connects to the first of the addresses that answers.
async fn dial(endpoint: &Endpoint, addresses: &[IpAddr]) -> Result<TcpStream, ConnectError> {
    let mut why = "no address was tried".to_owned();
    for address in addresses.iter().take(TRIES) {
        match timeout(PATIENCE, TcpStream::connect((*address, endpoint.port()))).await {
            Ok(Ok(stream)) => {
                // Each request is one write, which must not wait for the next.
                drop(stream.set_nodelay(true));
                return Ok(stream);
            }
            Ok(Err(error)) => why = error.to_string(),
            Err(_) => why = format!("no answer within {} s", PATIENCE.as_secs()),
        }
    }
    Err(ConnectError::Unreachable(endpoint.origin(), why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_screened_as_a_whole() {
        let endpoint = Endpoint::new("https://mcp.example.com/").unwrap();
        let ips = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
        assert!(refused(&endpoint, &ips(&["93.184.215.14", "2606:2800:21f:cb07::1"])).is_none());
        for private in
            ["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "fd00::1", "::ffff:10.0.0.1", "0.0.0.0"]
        {
            let why = refused(&endpoint, &ips(&["93.184.215.14", private]));
            assert!(matches!(why, Some(ConnectError::Private(_, _))), "{private}");
        }
        assert!(matches!(refused(&endpoint, &[]), Some(ConnectError::NoAddress(_))));
    }
}
