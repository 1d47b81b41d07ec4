//! What is trusted: outside, the system's certificate authorities; inside, the same and that of the session.

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

/// Where programs inside find the list; all of its contents are public.
pub(crate) const BUNDLE: &str = "/etc/ssl/bailiwick.pem";

/// Variables by which programs are told of a list.
pub(crate) const VARIABLES: [&str; 8] = [
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "PIP_CERT",
];

/// Where distributions keep the list of the system.
const SYSTEM: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// HTTP/2 and HTTP/1.1, as TLS names them.
pub(crate) const HTTP_2: &[u8] = b"h2";
pub(crate) const HTTP_1: &[u8] = b"http/1.1";

/// How TLS is spoken to servers.
#[derive(Clone)]
pub(crate) struct UpstreamTls {
    /// Offering both versions of HTTP.
    pub(crate) any: Arc<ClientConfig>,
    /// Offering HTTP/1.1 alone: WebSockets start there.
    pub(crate) http1: Arc<ClientConfig>,
}

/// The authorities of the system.
pub(crate) struct SystemRoots(Vec<CertificateDer<'static>>);

impl SystemRoots {
    /// Reads them. What cannot be read is not trusted.
    pub(crate) fn load() -> Self {
        Self(rustls_native_certs::load_native_certs().certs)
    }

    /// How we speak to servers: verified, and without anything that could be sent twice.
    pub(crate) fn upstream(&self) -> Result<UpstreamTls, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(self.0.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut http1 = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        http1.alpn_protocols = vec![HTTP_1.to_vec()];
        http1.enable_early_data = false;
        let mut any = http1.clone();
        any.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1.to_vec()];
        Ok(UpstreamTls { any: Arc::new(any), http1: Arc::new(http1) })
    }

    /// The list for the inside: these and one more.
    pub(crate) fn bundle_with(&self, own: &str) -> Vec<u8> {
        let mut text = String::from(own);
        for certificate in &self.0 {
            text += "-----BEGIN CERTIFICATE-----\n";
            let encoded = STANDARD.encode(certificate);
            for line in encoded.as_bytes().chunks(64) {
                text += std::str::from_utf8(line).unwrap_or_default();
                text.push('\n');
            }
            text += "-----END CERTIFICATE-----\n";
        }
        text.into_bytes()
    }
}

/// The places inside at which the list stands: a file of its own, and wherever this system has one.
pub(crate) fn places() -> Vec<PathBuf> {
    let found = SYSTEM.iter().filter_map(|path| std::fs::canonicalize(path).ok());
    let mut places: Vec<PathBuf> = std::iter::once(PathBuf::from(BUNDLE)).chain(found).collect();
    places.sort();
    places.dedup();
    places
}
