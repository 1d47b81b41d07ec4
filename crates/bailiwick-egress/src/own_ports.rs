//! Ports of this machine on which Bailiwick itself listens for the same user: no sandbox reaches them, whatever is granted.
//!
//! Each is a file that is named after the port and locked as long as it is listened on, in a directory that the program names
//! once. It is looked at when a connection is made, so a listener that is started later counts too.
//!
//! Residual: listeners of other users, and of a user with another state directory.

use std::fs::{File, TryLockError};
use std::net::{IpAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::OnceLock;

static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();

/// Refuses every sandbox of this process the way to the ports that are held in this directory. The first one counts.
pub fn refuse_ports_in(directory: PathBuf) {
    let _first = DIRECTORY.set(directory);
}

/// Whether Bailiwick listens there.
pub(crate) fn is_own(address: IpAddr, port: u16) -> bool {
    let Some(directory) = DIRECTORY.get() else { return false };
    let Ok(file) = File::open(directory.join(port.to_string())) else { return false };
    matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && is_of_this_machine(address)
}

/// Whether an address is one of ours: no socket can be given another one.
fn is_of_this_machine(address: IpAddr) -> bool {
    address.is_loopback() || address.is_unspecified() || UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_port_is_ours_as_long_as_its_file_is_locked() {
        let directory = tempfile::tempdir().unwrap();
        refuse_ports_in(directory.path().to_owned());
        let (local, other) = (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from([192, 0, 2, 1]));
        assert!(!is_own(local, 7410), "there is no file");
        let file = File::create(directory.path().join("7410")).unwrap();
        assert!(!is_own(local, 7410), "it was left over");
        file.lock_shared().unwrap();
        assert!(is_own(local, 7410) && is_own(IpAddr::from(Ipv4Addr::UNSPECIFIED), 7410));
        assert!(!is_own(local, 7411) && !is_own(other, 7410), "another port, and another machine");
        drop(file);
        assert!(!is_own(local, 7410));
    }
}
