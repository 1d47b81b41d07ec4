//! The hub's keys: the log's signing key, the authority that signs members' certificates, and the authority's certificate for TLS.
//!
//! `bailiwick-hub init` draws them into a directory that is its owner's alone; all hubs of a fleet have copies of it. The
//! directory is the fleet: a copy of it can sign checkpoints and enrol members. The log's key is replaced in two steps, because machines have to
//! have read of the next one before it signs.
//!
//! Fails closed when: a file is readable by others, or a key does not fit its certificate.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use bailiwick_fleet::note::{NoteError, NoteKey, NoteSigner};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize as _, Zeroizing};

use crate::certificates::{Authority, CertificateFault};
use crate::id::hex;

const LOG_KEY: &str = "log.key";
const LOG_PUBLIC: &str = "log.pub";
/// Drawn, and not in use yet.
const LOG_NEXT: &str = "log.next.key";
/// Public keys that signed before, a line each.
const LOG_FORMER: &str = "log.former";
const AUTHORITY: &str = "authority.pem";
const AUTHORITY_KEY: &str = "authority.key";
const SERVER: &str = "server.pem";
const SERVER_KEY: &str = "server.key";
const SETTINGS: &str = "fleet.json";

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    /// A file or directory cannot be read or made.
    #[error("cannot {action} `{path}`: {cause}")]
    File {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Others can read it.
    #[error("`{0}` can be read by others; run `chmod 600 {0}`")]
    Open(PathBuf),
    /// It is not what it should be.
    #[error("`{0}` is not what `bailiwick-hub init` wrote: {1}")]
    Form(PathBuf, String),
    /// A name cannot be used.
    #[error(transparent)]
    Name(#[from] NoteError),
    /// A certificate cannot be made or read.
    #[error(transparent)]
    Certificate(#[from] CertificateFault),
    /// The system gives no random bytes.
    #[error("no random bytes: {0}")]
    Random(getrandom::Error),
}

/// What is fixed for a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetSettings {
    /// The fleet's name: the log's origin and the trust domain of SPIFFE ids.
    pub name: String,
    /// The URL that members reach the hub at.
    pub hub: String,
    /// The URL of the log's files.
    pub log: String,
    /// Keys of witnesses, `NAME+ID+KEY`.
    pub witnesses: Vec<String>,
    /// How many witnesses sign each checkpoint.
    pub quorum: usize,
}

/// All of them.
pub struct Keys {
    /// What is fixed for the fleet.
    pub settings: FleetSettings,
    /// Signs checkpoints.
    pub log: NoteSigner,
    /// Signs certificates of members.
    pub authority: Authority,
    former: Vec<NoteKey>,
    directory: PathBuf,
}

impl Keys {
    /// Draws new keys into a new directory. `host` is the name in the hub's own TLS certificate.
    ///
    /// # Errors
    /// If the directory is there, or something cannot be made.
    pub fn create(directory: &Path, settings: FleetSettings, host: &str) -> Result<Self, KeyFault> {
        let made = fs::DirBuilder::new().mode(0o700).create(directory);
        made.map_err(|cause| KeyFault::File { action: "make", path: directory.to_owned(), cause })?;
        let mut seed = Zeroizing::new([0_u8; 32]);
        getrandom::fill(seed.as_mut()).map_err(KeyFault::Random)?;
        let log = NoteSigner::new(&settings.name, &seed)?;
        let authority = Authority::create(&settings.name)?;
        let (server, server_key) = authority.server(host)?;
        let text = serde_json::to_string_pretty(&settings).unwrap_or_default();
        let mut secret = hex(seed.as_ref());
        write_new(directory, LOG_KEY, secret.as_bytes())?;
        secret.zeroize();
        write_new(directory, LOG_PUBLIC, format!("{}\n", log.verifier()).as_bytes())?;
        write_new(directory, AUTHORITY, authority.pem().as_bytes())?;
        write_new(directory, AUTHORITY_KEY, authority.key_pem().as_bytes())?;
        write_new(directory, SERVER, server.as_bytes())?;
        write_new(directory, SERVER_KEY, server_key.as_bytes())?;
        write_new(directory, SETTINGS, text.as_bytes())?;
        Ok(Self { settings, log, authority, former: Vec::new(), directory: directory.to_owned() })
    }

    /// Reads the keys of a directory.
    ///
    /// # Errors
    /// If a file is missing, open to others or not what it should be.
    pub fn open(directory: &Path) -> Result<Self, KeyFault> {
        let form = |name: &str, why: &str| KeyFault::Form(directory.join(name), why.to_owned());
        let settings: FleetSettings = serde_json::from_slice(&read_own(directory, SETTINGS)?)
            .map_err(|why| form(SETTINGS, &why.to_string()))?;
        let log = signer(directory, LOG_KEY, &settings.name)?;
        let authority =
            Authority::open(&read_own(directory, AUTHORITY)?, &read_own(directory, AUTHORITY_KEY)?)?;
        let former = former_text(directory)?;
        let former = former.lines().map(NoteKey::parse).collect::<Result<_, _>>();
        let former = former.map_err(|why| form(LOG_FORMER, &why.to_string()))?;
        Ok(Self { settings, log, authority, former, directory: directory.to_owned() })
    }

    /// Draws the key that is to sign after this one, or reads the one that was drawn.
    ///
    /// # Errors
    /// If it cannot be drawn or read.
    pub fn draw_next(&self) -> Result<NoteKey, KeyFault> {
        if !self.directory.join(LOG_NEXT).exists() {
            let mut seed = Zeroizing::new([0_u8; 32]);
            getrandom::fill(seed.as_mut()).map_err(KeyFault::Random)?;
            let secret = Zeroizing::new(hex(seed.as_ref()));
            write_new(&self.directory, LOG_NEXT, secret.as_bytes())?;
        }
        Ok(signer(&self.directory, LOG_NEXT, &self.settings.name)?.verifier())
    }

    /// The next key takes the place of this one, whose private half is gone then.
    ///
    /// # Errors
    /// If none was drawn, or a file cannot be replaced.
    pub fn take_next(&self) -> Result<NoteKey, KeyFault> {
        let next = signer(&self.directory, LOG_NEXT, &self.settings.name)?.verifier();
        let own = self.log_public();
        // Also where this was begun before: a key is known as a former one before it is gone.
        let mut former = former_text(&self.directory)?;
        if !self.former.contains(&own) {
            former.push_str(&format!("{own}\n"));
        }
        replace(&self.directory, LOG_FORMER, former.as_bytes())?;
        replace(&self.directory, LOG_PUBLIC, format!("{next}\n").as_bytes())?;
        let (from, to) = (self.directory.join(LOG_NEXT), self.directory.join(LOG_KEY));
        fs::rename(from, &to).map_err(|cause| KeyFault::File { action: "replace", path: to, cause })?;
        Ok(next)
    }

    /// Makes the hub's own certificate anew, for the host of its URL.
    ///
    /// # Errors
    /// If it cannot be made or written.
    pub fn renew_server(&self, host: &str) -> Result<(), KeyFault> {
        let (server, server_key) = self.authority.server(host)?;
        replace(&self.directory, SERVER_KEY, server_key.as_bytes())?;
        replace(&self.directory, SERVER, server.as_bytes())
    }

    /// Where the certificate and key for TLS are that `init` made.
    #[must_use]
    pub fn server_files(&self) -> (PathBuf, PathBuf) {
        (self.directory.join(SERVER), self.directory.join(SERVER_KEY))
    }

    /// The key that verifies checkpoints.
    #[must_use]
    pub fn log_public(&self) -> NoteKey {
        self.log.verifier()
    }

    /// That key and those that signed before it: what is published may be older than the key.
    #[must_use]
    pub fn log_keys(&self) -> Vec<NoteKey> {
        std::iter::once(self.log_public()).chain(self.former.iter().cloned()).collect()
    }
}

/// What signs the log, from a file with 64 hexadecimal digits.
fn signer(directory: &Path, name: &str, origin: &str) -> Result<NoteSigner, KeyFault> {
    let secret = read_own(directory, name)?;
    let seed = std::str::from_utf8(&secret).ok().and_then(|text| text.trim().parse().ok());
    let wrong = || KeyFault::Form(directory.join(name), "not 64 hexadecimal digits".to_owned());
    let seed: bailiwick_fleet::Hash = seed.ok_or_else(wrong)?;
    Ok(NoteSigner::new(origin, seed.as_bytes())?)
}

fn former_text(directory: &Path) -> Result<String, KeyFault> {
    let path = directory.join(LOG_FORMER);
    match fs::read_to_string(&path) {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|cause| KeyFault::File { action: "read", path, cause }),
    }
}

/// Replaces a file as a whole.
fn replace(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), KeyFault> {
    let (draft, path) = (format!("{name}.new"), directory.join(name));
    // One that was left behind.
    drop(fs::remove_file(directory.join(&draft)));
    write_new(directory, &draft, bytes)?;
    fs::rename(directory.join(&draft), &path).map_err(|cause| KeyFault::File {
        action: "replace",
        path,
        cause,
    })
}

fn write_new(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), KeyFault> {
    let path = directory.join(name);
    let write = || -> std::io::Result<()> {
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|cause| KeyFault::File { action: "write", path: path.clone(), cause })
}

/// Reads a file that only its owner, or a group that was given it (as Kubernetes does), can read.
fn read_own(directory: &Path, name: &str) -> Result<Zeroizing<Vec<u8>>, KeyFault> {
    let path = directory.join(name);
    let fault = |cause| KeyFault::File { action: "read", path: path.clone(), cause };
    let mode = fs::metadata(&path).map_err(fault)?.permissions().mode();
    if mode & 0o007 != 0 {
        return Err(KeyFault::Open(path));
    }
    fs::read(&path).map(Zeroizing::new).map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> FleetSettings {
        FleetSettings {
            name: "fleet.example".to_owned(),
            hub: "https://hub.example".to_owned(),
            log: "https://hub.example".to_owned(),
            witnesses: Vec::new(),
            quorum: 0,
        }
    }

    #[test]
    fn keys_are_read_back_and_never_overwritten() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("keys");
        let made = Keys::create(&directory, settings(), "localhost").unwrap();
        let read = Keys::open(&directory).unwrap();
        assert_eq!(made.log_public(), read.log_public());
        assert_eq!(made.authority.pem(), read.authority.pem());
        assert!(matches!(
            Keys::create(&directory, settings(), "localhost"),
            Err(KeyFault::File { action: "make", .. })
        ));
    }

    #[test]
    fn keys_that_others_can_read_are_refused() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("keys");
        Keys::create(&directory, settings(), "localhost").unwrap();
        for name in [LOG_KEY, AUTHORITY_KEY] {
            let path = directory.join(name);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            assert!(matches!(Keys::open(&directory), Err(KeyFault::Open(open)) if open == path));
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        assert!(Keys::open(&directory).is_ok());
    }
}
