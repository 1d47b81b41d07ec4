//! The local key: made once, mode 0600, and refused when another user could have read or written it.
//!
//! Residual: a process that can read the key can sign. It shows changes by those who cannot, and only if its
//! fingerprint is kept where they cannot reach it.
use super::fault::{During, JournalFault};
use super::layout::{self, Layout};
use crate::format::{Digest, Signature};
use crate::private;
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::OnceLock;

const PREFIX: &str = "bailiwick-ed25519-v1 ";

/// The key that signs seals.
pub(super) struct Sealer {
    seed: Digest,
    /// Worked out when it is first needed: that takes longer than all else that opening a journal does.
    key: OnceLock<SigningKey>,
}

impl Sealer {
    /// The key of the directory, made when there is none.
    pub(super) fn load_or_create(layout: &Layout) -> Result<Self, JournalFault> {
        if !layout::is_there(&layout.key())? {
            create(layout)?;
        }
        load(&layout.key())
    }

    pub(super) fn public(&self) -> Digest {
        Digest::from_bytes(self.key().verifying_key().to_bytes())
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> Signature {
        Signature::from_bytes(self.key().sign(bytes).to_bytes())
    }

    fn key(&self) -> &SigningKey {
        self.key.get_or_init(|| SigningKey::from_bytes(self.seed.as_bytes()))
    }
}

/// The fingerprint of a public key: the SHA-256 of its 32 bytes.
pub fn fingerprint(public: &Digest) -> Digest {
    Digest::sha256(public.as_bytes())
}

/// The fingerprint of the key in the journal directory `dir`; none when there is no key.
pub fn local_fingerprint(dir: &Path) -> Result<Option<Digest>, JournalFault> {
    Ok(local_public(&Layout::for_reading(dir))?.map(|public| fingerprint(&public)))
}

/// A signature with the key in the journal directory `dir`, which is made if there is none, and the public key. What is signed
/// must begin with what it is for: the same key signs seals.
pub fn sign_locally(dir: &Path, bytes: &[u8]) -> Result<(Digest, Signature), JournalFault> {
    let sealer = Sealer::load_or_create(&Layout::for_writing(dir)?)?;
    Ok((sealer.public(), sealer.sign(bytes)))
}

/// The public key in the journal directory `dir`, made if there is none.
pub fn local_key(dir: &Path) -> Result<Digest, JournalFault> {
    Ok(Sealer::load_or_create(&Layout::for_writing(dir)?)?.public())
}

pub(super) fn local_public(layout: &Layout) -> Result<Option<Digest>, JournalFault> {
    if !layout::is_there(&layout.key())? {
        return Ok(None);
    }
    load(&layout.key()).map(|sealer| Some(sealer.public()))
}

/// Whether `signature` was made over `bytes` with the key `public`.
pub fn holds(public: &Digest, signature: &Signature, bytes: &[u8]) -> bool {
    let signature = ed25519_dalek::Signature::from_bytes(signature.as_bytes());
    VerifyingKey::from_bytes(public.as_bytes()).is_ok_and(|key| key.verify_strict(bytes, &signature).is_ok())
}

fn load(path: &Path) -> Result<Sealer, JournalFault> {
    let file = layout::open_existing(path)?;
    let refuse = |why| JournalFault::Key { path: path.to_path_buf(), why };
    if let Some(why) = private::secret_fault(&file.metadata().during("look at", path)?) {
        return Err(refuse(why));
    }
    let mut text = String::new();
    file.take(256).read_to_string(&mut text).during("read", path)?;
    let hex = text.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix('\n'));
    let seed: Digest = hex.and_then(|hex| hex.parse().ok()).ok_or_else(|| refuse("is not a key"))?;
    Ok(Sealer { seed, key: OnceLock::new() })
}

/// Writes a key beside its place and links it there: it is whole or not there, and never replaces another.
fn create(layout: &Layout) -> Result<(), JournalFault> {
    let mut seed = [0; 32];
    let mut name = [0; 8];
    let path = layout.key();
    let random = |bytes: &mut [u8]| {
        getrandom::fill(bytes)
            .map_err(|error| JournalFault::io("make", &path, &io::Error::other(error.to_string())))
    };
    random(&mut seed)?;
    random(&mut name)?;
    let draft = layout.dir().join(format!("key.{:016x}.new", u64::from_be_bytes(name)));
    let text = format!("{PREFIX}{}\n", Digest::from_bytes(seed));
    let made = write_new(&draft, text.as_bytes()).and_then(|()| match fs::hard_link(&draft, &path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    });
    let removed = fs::remove_file(&draft);
    made.during("create", &path)?;
    removed.during("remove", &draft)?;
    layout.sync()
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = private::options().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt};

    fn layout(dir: &tempfile::TempDir) -> Layout {
        Layout::for_writing(&dir.path().join("journal")).unwrap()
    }

    #[test]
    fn a_key_is_made_once_and_signs() {
        let dir = tempfile::tempdir().unwrap();
        let layout = layout(&dir);
        let first = Sealer::load_or_create(&layout).unwrap();
        let again = Sealer::load_or_create(&layout).unwrap();
        assert_eq!(first.public(), again.public());
        assert_eq!(fs::metadata(layout.key()).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(layout.dir()).unwrap().count(), 1);
        let signature = first.sign(b"x");
        assert!(holds(&first.public(), &signature, b"x"));
        assert!(!holds(&first.public(), &signature, b"y"));
        assert!(!holds(&Digest::sha256(b""), &signature, b"x"));
    }

    #[test]
    fn a_key_that_others_may_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let layout = layout(&dir);
        Sealer::load_or_create(&layout).unwrap();
        for mode in [0o640, 0o604, 0o666, 0o700] {
            fs::set_permissions(layout.key(), fs::Permissions::from_mode(mode)).unwrap();
            let fault = Sealer::load_or_create(&layout).err().unwrap();
            assert_eq!(fault.code(), "journal-key", "{mode:o}");
        }
    }

    #[test]
    fn a_key_that_is_a_link_or_not_a_key_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let layout = layout(&dir);
        Sealer::load_or_create(&layout).unwrap();
        fs::rename(layout.key(), dir.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), layout.key()).unwrap();
        assert_eq!(Sealer::load_or_create(&layout).err().unwrap().code(), "journal-io");
        fs::remove_file(layout.key()).unwrap();
        write_new(&layout.key(), b"").unwrap();
        assert_eq!(Sealer::load_or_create(&layout).err().unwrap().code(), "journal-key");
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o770)).unwrap();
        assert_eq!(Layout::for_writing(&path).unwrap_err().code(), "journal-directory");
    }
}
