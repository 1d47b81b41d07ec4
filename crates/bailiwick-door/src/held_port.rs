//! Ports on which Bailiwick itself listens, as the supervisors of the same user's sandboxes see them: for each a file that
//! is named after it and locked as long as it is listened on. A supervisor refuses every sandbox the way to such a port,
//! whatever is granted.
//!
//! A file that is left over is locked by none and means nothing.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// A port that is kept from sandboxes as long as this lives.
#[derive(Debug)]
pub(crate) struct HeldPort(#[expect(dead_code, reason = "its lock is what counts")] File);

impl HeldPort {
    pub(crate) fn hold(directory: &Path, port: u16) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(directory.join(port.to_string()))?;
        // Shared: two addresses may have the same port.
        file.lock_shared()?;
        Ok(Self(file))
    }
}
