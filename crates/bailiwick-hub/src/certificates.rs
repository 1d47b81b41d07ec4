//! Certificates: the fleet's authority, what it signs for members and for the hub's TLS, and who a certificate says it is.
//!
//! A member's certificate names it by a SPIFFE id in its subject alternative name, `spiffe://FLEET/ROLE/ID`, and is good for client
//! authentication alone. What a certificate says is only a claim: `crate::members` looks up what that member may do now.
//!
//! Fails closed when: a request for a certificate is not signed with its own key, or a certificate has no SPIFFE id or several.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SignatureAlgorithm,
};
use sha2::{Digest as _, Sha256};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// How long a member's certificate is good for; it is renewed with `POST /v1/renew`.
pub const MEMBER_LASTS: Duration = DAY.saturating_mul(90);
/// How long the hub's own certificate is good for.
const SERVER_LASTS: Duration = DAY.saturating_mul(825);
/// How long the authority is good for.
const AUTHORITY_LASTS: Duration = DAY.saturating_mul(3650);
/// Clocks of members may be behind.
const BEFORE: Duration = Duration::from_secs(3600);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateFault {
    /// It cannot be made.
    #[error("cannot make a certificate: {0}")]
    Made(#[from] rcgen::Error),
    /// It cannot be read.
    #[error("cannot read the {0}")]
    Read(&'static str),
    /// The request for a certificate is refused.
    #[error("the request for a certificate is refused: {0}")]
    Request(&'static str),
}

/// The fleet's authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    name: String,
    pem: String,
    der: Vec<u8>,
}

/// A public key out of a request that was signed with it.
#[derive(Debug)]
pub struct RequestedKey {
    bits: Vec<u8>,
    algorithm: &'static SignatureAlgorithm,
    hash: [u8; 32],
}

/// Who a client certificate says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The SPIFFE id.
    pub subject: String,
    /// The SHA-256 of the public key.
    pub key_hash: [u8; 32],
}

impl Authority {
    /// A new one, for a fleet of this name.
    ///
    /// # Errors
    /// If no certificate can be made.
    pub fn create(name: &str) -> Result<Self, CertificateFault> {
        let key = KeyPair::generate()?;
        let params = authority_params(name);
        let certificate = params.self_signed(&key)?;
        let (pem, der) = (certificate.pem(), certificate.der().to_vec());
        Ok(Self { issuer: Issuer::new(params, key), name: name.to_owned(), pem, der })
    }

    /// The one that `create` made.
    ///
    /// # Errors
    /// If the files are no certificate and its key.
    pub fn open(certificate: &[u8], key: &[u8]) -> Result<Self, CertificateFault> {
        const WRONG: CertificateFault = CertificateFault::Read("authority's certificate");
        let key = std::str::from_utf8(key).map_err(|_| CertificateFault::Read("authority's key"))?;
        let key = KeyPair::from_pem(key)?;
        let pem = std::str::from_utf8(certificate).map_err(|_| WRONG)?.to_owned();
        let (_, block) = x509_parser::pem::parse_x509_pem(certificate).map_err(|_| WRONG)?;
        let parsed = block.parse_x509().map_err(|_| WRONG)?;
        let mut names = parsed.subject().iter_common_name();
        let (Some(name), None) = (names.next().and_then(|name| name.as_str().ok()), names.next()) else {
            return Err(WRONG);
        };
        if parsed.public_key().subject_public_key.data.as_ref() != key.public_key_raw() {
            return Err(CertificateFault::Read("authority: its key is another certificate's"));
        }
        let issuer = Issuer::new(authority_params(name), key);
        Ok(Self { issuer, name: name.to_owned(), pem, der: block.contents.clone() })
    }

    /// Its certificate, PEM.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Its certificate, DER.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Its private key, PEM.
    #[must_use]
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// A certificate chain and a key for the hub's own TLS, PEM.
    ///
    /// # Errors
    /// If the name of the host cannot be in a certificate.
    pub fn server(&self, host: &str) -> Result<(String, String), CertificateFault> {
        let mut params = params_for(host, SERVER_LASTS);
        params.subject_alt_names = CertificateParams::new(vec![host.to_owned()])?.subject_alt_names;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let leaf = params.signed_by(&key, &self.issuer)?;
        Ok((leaf.pem() + &self.pem, key.serialize_pem()))
    }

    /// The SPIFFE id of a member.
    #[must_use]
    pub fn subject(&self, role: &str, member: &str) -> String {
        format!("spiffe://{}/{role}/{member}", self.name)
    }

    /// A member's certificate chain, PEM, and when it ends, in milliseconds since 1970.
    ///
    /// # Errors
    /// If no certificate can be made.
    pub fn member(&self, subject: &str, key: &RequestedKey) -> Result<(String, u64), CertificateFault> {
        let mut params = params_for("Bailiwick member", MEMBER_LASTS);
        params.subject_alt_names = vec![SanType::URI(subject.try_into()?)];
        let end = u64::try_from(params.not_after.unix_timestamp()).unwrap_or_default().saturating_mul(1000);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let leaf = params.signed_by(key, &self.issuer)?;
        Ok((leaf.pem() + &self.pem, end))
    }
}

impl RequestedKey {
    /// The key of a request (PKCS #10, PEM) that is signed with it. Names and extensions that it asks for are not read.
    ///
    /// # Errors
    /// If it is none, its signature does not verify, or the key is of an algorithm that is not issued.
    pub fn read(pem: &str) -> Result<Self, CertificateFault> {
        let wrong = CertificateFault::Request;
        let (rest, block) =
            x509_parser::pem::parse_x509_pem(pem.as_bytes()).map_err(|_| wrong("it is not PEM"))?;
        if !rest.trim_ascii().is_empty() {
            return Err(wrong("there is something behind it"));
        }
        let (rest, request) =
            X509CertificationRequest::from_der(&block.contents).map_err(|_| wrong("it is not PKCS #10"))?;
        if !rest.is_empty() {
            return Err(wrong("there is something behind it"));
        }
        request.verify_signature().map_err(|_| wrong("it is not signed with its own key"))?;
        let key = &request.certification_request_info.subject_pki;
        let bits = key.subject_public_key.data.to_vec();
        let algorithm = match key.algorithm.algorithm.to_id_string().as_str() {
            "1.2.840.10045.2.1" if bits.len() == 65 => &rcgen::PKCS_ECDSA_P256_SHA256,
            "1.3.101.112" if bits.len() == 32 => &rcgen::PKCS_ED25519,
            _ => return Err(wrong("the key is neither ECDSA on P-256 nor Ed25519")),
        };
        Ok(Self { bits, algorithm, hash: Sha256::digest(key.raw).into() })
    }

    /// The SHA-256 of the public key.
    #[must_use]
    pub const fn hash(&self) -> &[u8; 32] {
        &self.hash
    }
}

impl PublicKeyData for RequestedKey {
    fn der_bytes(&self) -> &[u8] {
        &self.bits
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        self.algorithm
    }
}

impl Claim {
    /// What a certificate says whose chain was verified by TLS.
    ///
    /// # Errors
    /// If it has no SPIFFE id, or several.
    pub fn read(der: &[u8]) -> Result<Self, CertificateFault> {
        const WRONG: CertificateFault = CertificateFault::Read("client certificate");
        let (_, certificate) = X509Certificate::from_der(der).map_err(|_| WRONG)?;
        let names = certificate.subject_alternative_name().map_err(|_| WRONG)?.ok_or(WRONG)?;
        let mut ids = names
            .value
            .general_names
            .iter()
            .filter_map(|name| if let GeneralName::URI(uri) = name { Some(*uri) } else { None });
        let (Some(subject), None) = (ids.next(), ids.next()) else { return Err(WRONG) };
        let is_plain = subject.len() <= 255 && subject.bytes().all(|byte| byte.is_ascii_graphic());
        if !subject.starts_with("spiffe://") || !is_plain {
            return Err(WRONG);
        }
        let key_hash = Sha256::digest(certificate.public_key().raw).into();
        Ok(Self { subject: subject.to_owned(), key_hash })
    }
}

/// The DNS names and addresses that a certificate (DER) is for.
///
/// # Errors
/// If it is no certificate.
pub fn hosts_of(der: &[u8]) -> Result<Vec<String>, CertificateFault> {
    const WRONG: CertificateFault = CertificateFault::Read("server's certificate");
    let (_, certificate) = X509Certificate::from_der(der).map_err(|_| WRONG)?;
    let Some(names) = certificate.subject_alternative_name().map_err(|_| WRONG)? else {
        return Ok(Vec::new());
    };
    let hosts = names.value.general_names.iter().filter_map(|name| {
        if let GeneralName::DNSName(name) = name {
            return Some(name.to_ascii_lowercase());
        }
        if let GeneralName::IPAddress(bytes) = name { address(bytes) } else { None }
    });
    Ok(hosts.collect())
}

fn address(bytes: &[u8]) -> Option<String> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(std::net::Ipv4Addr::from(four).to_string());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|sixteen| format!("[{}]", std::net::Ipv6Addr::from(sixteen)))
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = params_for(name, AUTHORITY_LASTS);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

/// What every certificate of the hub's has: a common name, and a period from a little before now.
fn params_for(name: &str, lasts: Duration) -> CertificateParams {
    let (mut params, now) = (CertificateParams::default(), SystemTime::now());
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    (params.not_before, params.not_after) = ((now - BEFORE).into(), (now + lasts).into());
    params
}

#[cfg(test)]
mod tests;
