//! The certificate authority of one session: its key is in memory only, it may speak for the brokered hosts alone, and
//! nothing outside of the sandbox trusts it.
//!
//! Leaves are good for a day and made anew before half of it is over.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, NameConstraints,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use time::OffsetDateTime;

use crate::trust::{HTTP_1, HTTP_2};

const HOUR: Duration = Duration::from_secs(3600);
/// How long a leaf is good for, and how long one is used.
const LEAF: Duration = HOUR.saturating_mul(23);
const USED: Duration = HOUR.saturating_mul(12);
/// How long the authority is good for: longer than a session lasts.
const AUTHORITY: Duration = HOUR.saturating_mul(24 * 365);
/// Clocks inside are the host's own; this is for rounding.
const BEFORE: Duration = HOUR;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    /// It cannot be made.
    #[error("cannot make a certificate: {0}")]
    Made(#[from] rcgen::Error),
    /// TLS does not take it.
    #[error("cannot use a certificate: {0}")]
    Tls(#[from] rustls::Error),
}

/// The authority of a session.
pub(crate) struct SessionAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    leaves: Mutex<HashMap<Box<str>, Leaf>>,
}

/// When a leaf was made, and what TLS is ended with.
type Leaf = (Instant, Arc<ServerConfig>);

impl SessionAuthority {
    /// A new one, for these hosts.
    pub(crate) fn new(hosts: &BTreeSet<Box<str>>) -> Result<Self, CertificateError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = named("Bailiwick, this sandbox only");
        (params.not_before, params.not_after) = period(AUTHORITY);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let subtrees = hosts.iter().map(|host| GeneralSubtree::DnsName(host.to_string()));
        // What is permitted binds names alone, so addresses are excluded.
        let addresses = [CidrSubnet::V4([0; 4], [0; 4]), CidrSubnet::V6([0; 16], [0; 16])];
        params.name_constraints = Some(NameConstraints {
            permitted_subtrees: subtrees.collect(),
            excluded_subtrees: addresses.map(GeneralSubtree::IpAddress).into(),
        });
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        Ok(Self {
            pem: certificate.pem(),
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, key),
            leaves: Mutex::default(),
        })
    }

    /// Its certificate as text.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// What TLS to a host is ended with.
    pub(crate) fn config_for(&self, host: &str) -> Result<Arc<ServerConfig>, CertificateError> {
        let mut leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made, config)) = leaves.get(host)
            && made.elapsed() < USED
        {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(self.make(host)?);
        leaves.insert(host.into(), (Instant::now(), Arc::clone(&config)));
        Ok(config)
    }

    fn make(&self, host: &str) -> Result<ServerConfig, CertificateError> {
        let mut params = CertificateParams::new(vec![host.to_owned()])?;
        params.distinguished_name = named("Bailiwick");
        (params.not_before, params.not_after) = period(LEAF);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let leaf = params.signed_by(&key, &self.issuer)?;
        let chain = vec![leaf.der().clone(), self.certificate.clone()];
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1.to_vec()];
        // Nothing is read before the handshake is over: what was recorded cannot be sent again.
        config.max_early_data_size = 0;
        Ok(config)
    }
}

fn named(name: &str) -> rcgen::DistinguishedName {
    let mut names = rcgen::DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

fn period(lasts: Duration) -> (OffsetDateTime, OffsetDateTime) {
    let now = SystemTime::now();
    (OffsetDateTime::from(now - BEFORE), OffsetDateTime::from(now + lasts))
}

#[cfg(test)]
mod tests;
