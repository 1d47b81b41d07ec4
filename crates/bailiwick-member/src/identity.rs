//! The directory of an enrolment: `fleet.toml`, and beside it the certificate, its key, and the hub's authority.
//!
//! The key is its owner's alone. The other files are no secrets: in a directory that all users may look into, all may read them, because
//! what the fleet says holds for all.
//!
//! Fails closed when: the key can be read by others, or a file is missing that an enrolment has.

use std::fs;
use std::path::{Path, PathBuf};

use bailiwick_fleet::enrolment::{
    AUTHORITY_FILE, CERTIFICATE_FILE, ENROLMENT_FILE, Enrolment, KEY_FILE, MAX_ENROLMENT,
};
use bailiwick_journal::private;
use zeroize::Zeroizing;

use crate::files;

/// When the certificate ends, in milliseconds since 1970.
const EXPIRY_FILE: &str = "member.expires";

/// Who this is at the hubs of a fleet.
pub struct Identity {
    /// What `fleet.toml` says.
    pub enrolment: Enrolment,
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Zeroizing<Vec<u8>>,
    pub(crate) authority: Option<Vec<u8>>,
    /// When the certificate ends, in milliseconds since 1970.
    pub expires_ms: u64,
    directory: PathBuf,
}

/// Why an enrolment cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be read or written.
    #[error("cannot {action} `{path}`: {cause}")]
    File {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Others can read the key.
    #[error(
        "`{0}` can be read by others, who could act as this member: enrol again, and revoke the old member"
    )]
    Open(PathBuf),
    /// The key is another user's.
    #[error("`{0}` is another user's: the fleet's rules hold here, and only that user can ask a hub")]
    AnotherUsers(PathBuf),
    /// It is not what `bailiwick enroll` writes.
    #[error("`{0}`: {1}; enrol again with `bailiwick enroll --replace`")]
    Form(PathBuf, String),
}

impl Identity {
    /// The identity in a directory; nothing if nothing is enrolled there.
    ///
    /// # Errors
    /// If it is there and cannot be used.
    pub fn load(directory: &Path) -> Result<Option<Self>, IdentityError> {
        let path = directory.join(ENROLMENT_FILE);
        let Some(text) = read(&path)? else { return Ok(None) };
        let form = |why: String| IdentityError::Form(path.clone(), why);
        if text.len() as u64 > MAX_ENROLMENT {
            return Err(form("it is too large".to_owned()));
        }
        let text = String::from_utf8(text).map_err(|_| form("it is not UTF-8".to_owned()))?;
        let enrolment = Enrolment::parse(&text).map_err(|findings| form(findings.to_string()))?;
        if enrolment.hub.is_empty() {
            return Err(form("`hub` is empty".to_owned()));
        }
        let expires = needed(directory, EXPIRY_FILE)?;
        let expires_ms = std::str::from_utf8(&expires).ok().and_then(|text| text.trim().parse().ok());
        let wrong_expiry = || IdentityError::Form(directory.join(EXPIRY_FILE), "it is not a time".to_owned());
        Ok(Some(Self {
            enrolment,
            certificate: needed(directory, CERTIFICATE_FILE)?,
            key: private_key(&directory.join(KEY_FILE))?,
            authority: read(&directory.join(AUTHORITY_FILE))?,
            expires_ms: expires_ms.ok_or_else(wrong_expiry)?,
            directory: directory.to_owned(),
        }))
    }

    /// Where it is.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes an identity: `fleet.toml` last, so that a directory with one is complete.
    pub(crate) fn write(
        directory: &Path,
        enrolment: &Enrolment,
        certificate: (&str, u64),
        key: &str,
        authority: Option<&str>,
    ) -> Result<(), IdentityError> {
        let path = directory.join(KEY_FILE);
        files::replace(&path, key.as_bytes()).map_err(|cause| write_fault(path, cause))?;
        write_certificate(directory, certificate)?;
        match authority {
            Some(authority) => write(directory, AUTHORITY_FILE, authority.as_bytes())?,
            None => remove_file(&directory.join(AUTHORITY_FILE))?,
        }
        write(directory, ENROLMENT_FILE, enrolment.to_text().as_bytes())
    }

    /// Removes an identity; whether there was one.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn remove(directory: &Path) -> Result<bool, IdentityError> {
        let was_there = directory.join(ENROLMENT_FILE).exists();
        // The enrolment first: what is left is no identity.
        for name in [ENROLMENT_FILE, KEY_FILE, CERTIFICATE_FILE, EXPIRY_FILE, AUTHORITY_FILE] {
            remove_file(&directory.join(name))?;
        }
        Ok(was_there)
    }
}

/// Replaces the certificate of an identity whose key stays.
pub(crate) fn write_certificate(
    directory: &Path,
    (certificate, expires_ms): (&str, u64),
) -> Result<(), IdentityError> {
    write(directory, CERTIFICATE_FILE, certificate.as_bytes())?;
    write(directory, EXPIRY_FILE, format!("{expires_ms}\n").as_bytes())
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), IdentityError> {
    let path = directory.join(name);
    files::replace_shown(&path, bytes).map_err(|cause| write_fault(path, cause))
}

const fn write_fault(path: PathBuf, cause: std::io::Error) -> IdentityError {
    IdentityError::File { action: "write", path, cause }
}

fn remove_file(path: &Path) -> Result<(), IdentityError> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
            Err(IdentityError::File { action: "remove", path: path.to_owned(), cause })
        }
        _ => Ok(()),
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, IdentityError> {
    files::read(path).map_err(|cause| IdentityError::File { action: "read", path: path.to_owned(), cause })
}

fn needed(directory: &Path, name: &str) -> Result<Vec<u8>, IdentityError> {
    let path = directory.join(name);
    read(&path)?.ok_or_else(|| IdentityError::Form(path, "it is not there".to_owned()))
}

fn private_key(path: &Path) -> Result<Zeroizing<Vec<u8>>, IdentityError> {
    let fault = |cause| IdentityError::File { action: "read", path: path.to_owned(), cause };
    let opened = private::options().read(true).open(path);
    let mut file = opened.map_err(|cause| {
        let is_foreign = cause.kind() == std::io::ErrorKind::PermissionDenied;
        if is_foreign { IdentityError::AnotherUsers(path.to_owned()) } else { fault(cause) }
    })?;
    if private::secret_fault(&file.metadata().map_err(fault)?).is_some() {
        return Err(IdentityError::Open(path.to_owned()));
    }
    let mut bytes = Zeroizing::new(Vec::new());
    std::io::Read::read_to_end(&mut file, &mut bytes).map_err(fault)?;
    Ok(bytes)
}
