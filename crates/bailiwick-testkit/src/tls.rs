//! Certificates of a test's own, and servers that show them.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// What a server shows, and its key.
pub type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A certificate authority that clients are told to trust.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, as clients are given it.
    pub pem: String,
    /// Its key, for another process of the same test.
    pub key_pem: String,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A new one.
    #[must_use]
    pub fn new() -> Self {
        Self::from_key(KeyPair::generate().unwrap())
    }

    /// The one with this key, made before; its certificate is another of the same name.
    #[must_use]
    pub fn from_pem(key: &str) -> Self {
        Self::from_key(KeyPair::from_pem(key).unwrap())
    }

    fn from_key(key: KeyPair) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Not the name that servers have by default: a certificate that names itself as its issuer would be untrusted.
        params.distinguished_name.push(rcgen::DnType::CommonName, "the test's authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let pem = params.self_signed(&key).unwrap().pem();
        let key_pem = key.serialize_pem();
        Self { issuer: Issuer::new(params, key), pem, key_pem }
    }

    /// A certificate for these names.
    #[must_use]
    pub fn identity(&self, names: &[&str]) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = params(names);
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        let leaf = params.signed_by(&key, &self.issuer).unwrap();
        (vec![leaf.der().clone()], private(&key))
    }

    /// A server of these names.
    #[must_use]
    pub fn server(&self, names: &[&str]) -> ServerConfig {
        server(self.identity(names))
    }
}

/// A certificate that nothing but itself vouches for.
#[must_use]
pub fn self_signed(names: &[&str]) -> Identity {
    let key = KeyPair::generate().unwrap();
    let certificate = params(names).self_signed(&key).unwrap();
    (vec![certificate.der().clone()], private(&key))
}

/// A server that asks its clients for no certificate.
#[must_use]
pub fn server(identity: Identity) -> ServerConfig {
    server_with(identity, rustls::crypto::ring::default_provider())
}

/// The same, with a provider of the test's choice.
#[must_use]
pub fn server_with((chain, key): Identity, provider: CryptoProvider) -> ServerConfig {
    let config = ServerConfig::builder_with_provider(Arc::new(provider));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    config.with_single_cert(chain, key).unwrap()
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    CertificateParams::new(names).unwrap()
}

fn private(key: &KeyPair) -> PrivateKeyDer<'static> {
    PrivatePkcs8KeyDer::from(key.serialize_der()).into()
}
