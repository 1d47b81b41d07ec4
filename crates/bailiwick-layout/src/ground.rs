//! What lies around a path of the host, for the rules of names that run code later.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use bailiwick_policy::run_later::{Ground, is_repository, is_users_home};

/// What is around a path of the host.
#[derive(Default)]
pub struct HostGround<'a> {
    /// The user's home, if there is one.
    pub home: Option<&'a Path>,
}

impl Ground for HostGround<'_> {
    fn is_home(&self, directory: &[u8]) -> bool {
        is_users_home(directory, self.home.map(|home| home.as_os_str().as_bytes()))
    }

    fn holds_git(&self, directory: &[u8]) -> bool {
        exists(directory, ".git")
    }

    fn is_git_directory(&self, directory: &[u8]) -> bool {
        is_repository(|name| exists(directory, name))
    }
}

fn exists(directory: &[u8], name: &str) -> bool {
    Path::new(std::ffi::OsStr::from_bytes(directory)).join(name).symlink_metadata().is_ok()
}
