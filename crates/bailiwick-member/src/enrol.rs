//! Enrolment: a token becomes an identity, and a certificate is renewed before it ends.
//!
//! The key is drawn here and is sent nowhere: the hub gets a request for a certificate that is signed with it. The hub's TLS
//! certificate is verified against the authority in the token, so that nothing is sent to another. A token that was used for a key
//! answers the same key again: an enrolment whose answer was lost is repeated with the key that lies beside it.

use std::path::{Path, PathBuf};

use bailiwick_fleet::Hash;
use bailiwick_fleet::admin::RenewRequest;
use bailiwick_fleet::enrolment::{DEFAULT_REFRESH_MS, Enrolment};
use bailiwick_fleet::entry::Role;
use bailiwick_fleet::note::{NoteError, NoteKey};
use bailiwick_fleet::protocol::{EnrolAnswer, EnrolRequest, EnrolToken};
use bailiwick_fleet::state::DEFAULT_MAX_STALE_S;
use bailiwick_remote::OwnTls;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use zeroize::Zeroizing;

use crate::files;
use crate::hub::{Hub, HubError, HubSetupError};
use crate::identity::{Identity, IdentityError, write_certificate};

/// A key whose enrolment was not answered yet.
const DRAFT_KEY: &str = "member.key.draft";

/// A certificate is renewed when less than this is left of it, in milliseconds: 30 days.
const RENEW_BEFORE_MS: u64 = 30 * 24 * 3600 * 1000;

/// What is wanted.
pub struct EnrolWish<'a> {
    /// The token.
    pub token: &'a EnrolToken,
    /// URLs of hubs; that of the token if there is none.
    pub hubs: Vec<String>,
    /// The name for people.
    pub name: &'a str,
    /// The fingerprint of the journal's key, for a machine.
    pub journal_key: Option<Hash>,
    /// Whether manifests of the log may grant what the machine itself does not.
    pub authoritative: bool,
}

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// The hub refuses or does not answer.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// The hub cannot be asked.
    #[error(transparent)]
    Setup(#[from] HubSetupError),
    /// A file cannot be read or written.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A key or a request for a certificate cannot be made.
    #[error("a key and a request for a certificate cannot be made: {0}")]
    Key(#[from] rcgen::Error),
    /// The token or the answer has something that is no key.
    #[error("the token or the hub's answer has a key that is none: {0}")]
    NoteKey(#[from] NoteError),
    /// The token is of another shape.
    #[error("the token's certificate authority is not base64")]
    Authority,
    /// The hub gives another role.
    #[error("the token is for the role `{0:?}` and the hub answers `{1:?}`")]
    Role(Role, Role),
}

/// Enrols with a token, and writes the identity into a directory.
///
/// # Errors
/// Why there is none.
pub async fn enrol(wish: &EnrolWish<'_>, directory: &Path) -> Result<Enrolment, EnrolError> {
    let authority = wish.token.authority.as_deref().map(pem_of).transpose()?;
    let hubs = if wish.hubs.is_empty() { vec![wish.token.hub.clone()] } else { wish.hubs.clone() };
    let own = OwnTls { authorities: authority.as_deref().map(str::as_bytes), identity: None };
    let hub = Hub::at(&hubs, &own)?;
    let key = draft_key(directory)?;
    let asked = EnrolRequest {
        secret: wish.token.secret,
        csr: request_for_certificate(&key)?,
        name: wish.name.to_owned(),
        journal_key: wish.journal_key,
    };
    let answer: EnrolAnswer = hub.post("/v1/enrol", &asked).await?;
    if answer.role != wish.token.role {
        return Err(EnrolError::Role(wish.token.role, answer.role));
    }
    let enrolment = Enrolment {
        name: answer.member.clone(),
        role: answer.role,
        hub: hubs,
        log: vec![wish.token.log.clone()],
        log_key: NoteKey::parse(&wish.token.key)?,
        witnesses: answer.witnesses.iter().map(|key| NoteKey::parse(key)).collect::<Result<_, _>>()?,
        quorum: answer.quorum,
        refresh_ms: DEFAULT_REFRESH_MS,
        authoritative: wish.authoritative,
        max_stale_s: DEFAULT_MAX_STALE_S,
    };
    let key = Zeroizing::new(key.serialize_pem());
    let certificate = (answer.certificate.as_str(), answer.expires_ms);
    Identity::write(directory, &enrolment, certificate, &key, authority.as_deref())?;
    let draft = directory.join(DRAFT_KEY);
    std::fs::remove_file(&draft).map_err(|cause| file_error("remove", draft, cause))?;
    Ok(enrolment)
}

/// Whether the certificate ends soon enough to be renewed now.
#[must_use]
pub const fn is_renewal_due(identity: &Identity, now_ms: u64) -> bool {
    identity.expires_ms.saturating_sub(now_ms) < RENEW_BEFORE_MS
}

/// Gets another certificate for the same key. Answers when that one ends.
///
/// # Errors
/// Why there is none; the old one stays.
pub async fn renew(identity: &Identity) -> Result<u64, EnrolError> {
    let hub = Hub::new(identity)?;
    let text = std::str::from_utf8(&identity.key).unwrap_or_default();
    let csr = request_for_certificate(&KeyPair::from_pem(text)?)?;
    let answer: EnrolAnswer = hub.post("/v1/renew", &RenewRequest { csr }).await?;
    write_certificate(identity.directory(), (&answer.certificate, answer.expires_ms))?;
    Ok(answer.expires_ms)
}

/// The key of an enrolment that was begun here, or a new one that is kept before it is used.
fn draft_key(directory: &Path) -> Result<KeyPair, EnrolError> {
    let path = directory.join(DRAFT_KEY);
    let kept =
        files::read(&path).map_err(|cause| file_error("read", path.clone(), cause))?.map(Zeroizing::new);
    let kept = kept.and_then(|bytes| KeyPair::from_pem(std::str::from_utf8(&bytes).ok()?).ok());
    if let Some(key) = kept {
        return Ok(key);
    }
    let key = KeyPair::generate()?;
    let text = Zeroizing::new(key.serialize_pem());
    files::replace(&path, text.as_bytes()).map_err(|cause| file_error("write", path, cause))?;
    Ok(key)
}

fn file_error(action: &'static str, path: PathBuf, cause: std::io::Error) -> IdentityError {
    IdentityError::File { action, path, cause }
}

/// PKCS #10, PEM. It has no name: the hub says who the member is.
fn request_for_certificate(key: &KeyPair) -> Result<String, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.serialize_request(key)?.pem()
}

/// A certificate in PEM, from DER in base64.
fn pem_of(base64: &str) -> Result<String, EnrolError> {
    let der = STANDARD.decode(base64).map_err(|_| EnrolError::Authority)?;
    let text = STANDARD.encode(der);
    let lines: Vec<&[u8]> = text.as_bytes().chunks(64).collect();
    let lines: Vec<&str> = lines.into_iter().filter_map(|line| std::str::from_utf8(line).ok()).collect();
    Ok(format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n")))
}
