//! TLS in front of a service that is reached from other machines: a certificate and its key, from files of the operator.
//!
//! Fails closed when: a file cannot be read, holds no certificate or no key, the two do not belong together, or others than
//! its owner may read the key.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    /// A file cannot be used.
    #[error("cannot use `{}`: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The certificate and the key do not go together, or TLS does not take them.
    #[error("certificate and key cannot be used together: {0}")]
    Pair(#[from] rustls::Error),
}

/// What TLS is ended with, and the name under which the service is reached.
#[derive(Clone)]
pub struct ServerTls {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) name: String,
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTls").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ServerTls {
    /// Reads a chain of certificates and its key.
    ///
    /// # Errors
    /// If they cannot be used.
    pub fn from_files(name: &str, certificate: &Path, key: &Path) -> Result<Self, TlsFault> {
        let fault = |path: &Path, why: String| TlsFault::File { path: path.to_owned(), why };
        let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect)
            .map_err(|why| fault(certificate, why.to_string()))?;
        if chain.is_empty() {
            return Err(fault(certificate, "it holds no certificate".to_owned()));
        }
        only_of_owner(key).map_err(|why| fault(key, why.to_string()))?;
        let own = PrivateKeyDer::from_pem_file(key).map_err(|why| fault(key, why.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, own)?;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), name: name.to_ascii_lowercase() })
    }
}

/// Why a file is none that its owner alone may read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrivateFileFault {
    #[error(transparent)]
    Unseen(#[from] std::io::Error),
    #[error("it is no file")]
    NoFile,
    #[error("others may read it: `chmod 600 {}`", .0.display())]
    OpenToOthers(PathBuf),
    #[error("it belongs to another user")]
    OfAnother,
}

/// Whether a file is one that its owner alone may read.
///
/// # Errors
/// Why it is not.
pub(crate) fn only_of_owner(path: &Path) -> Result<(), PrivateFileFault> {
    let found = std::fs::metadata(path)?;
    if !found.is_file() {
        return Err(PrivateFileFault::NoFile);
    }
    if found.permissions().mode() & 0o077 != 0 {
        return Err(PrivateFileFault::OpenToOthers(path.to_owned()));
    }
    let own = std::fs::metadata("/proc/self").map_or(found.uid(), |own| own.uid());
    if found.uid() != own && found.uid() != 0 {
        return Err(PrivateFileFault::OfAnother);
    }
    Ok(())
}
