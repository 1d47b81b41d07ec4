//! Unix sockets that are not granted, tried past the supervisor that answers every connect: by other names, by other
//! kinds of sockets, by other calls, by races against its check, and by wearing it out. As root and as a plain user.
//!
//! Every service says who it is, so that an attempt is judged by whom it reached, not by what a call returned. Outside,
//! where nothing mediates, the same attempts reach what is not granted.

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

use super::world::compiled;
use super::{User, as_user};
use bailiwick_testkit::skip;

/// Attempts that must reach the granted service: the mediator works, also after it was worn out.
const REACH_GRANTED: [&str; 7] = [
    "control_granted",
    "control_second",
    "nul_inside",
    "flood",
    "killed_callers",
    "interrupted",
    "descriptors_kept",
];

/// Attempts that reach nothing outside either: what they abuse is not there, or the kernel itself refuses.
const FUTILE: [&str; 21] = [
    "control_granted",
    "control_second",
    "through_file",
    "trailing_slash",
    "first_root",
    "nul_inside",
    "nul_first",
    "abstract_granted",
    "bind_abstract",
    "bind_any",
    "packet_pair_sendto",
    "stream_sendto",
    "pair_reconnect",
    "connected_already",
    "duplicate",
    "no_socket",
    "by_x32",
    "unmapped",
    "killed_callers",
    "many_waiting",
    "descriptors_kept",
];

/// Attempts that reach nothing outside, or not always: an address is checked against the socket's family and its
/// length, and whether the right descriptor is hit in time is chance.
const ILL_FORMED: [&str; 8] = [
    "longer",
    "odd_lengths",
    "internet_socket",
    "internet_address",
    "no_family",
    "by_i386",
    "race_close",
    "race_descriptor",
];

/// The services around a sandbox. Their threads end with the test.
struct Services {
    dir: tempfile::TempDir,
    user: User,
    datagrams: Arc<AtomicUsize>,
    _full: OwnedFd,
}

impl Services {
    fn new(user: User) -> Self {
        let dir =
            tempfile::Builder::new().prefix("bailiwick-unix").tempdir_in("/var/tmp").expect("a directory");
        let at = |name: &str| dir.path().join(name);
        for name in ["r", "w/d", "u"] {
            std::fs::create_dir_all(at(name)).expect("a directory");
        }
        for (name, letter) in [
            ("r/socket", b'G'),
            ("w/socket", b'G'),
            ("w/d/socket", b'G'),
            ("r/other", b'U'),
            ("u/socket", b'U'),
        ] {
            answer(UnixListener::bind(at(name)).expect("a socket").into(), letter);
        }
        let name = SocketAddr::from_abstract_name(dir.path().as_os_str().as_encoded_bytes()).expect("a name");
        answer(UnixListener::bind_addr(&name).expect("a socket").into(), b'U');
        answer(listener(&at("r/packet"), SocketType::SEQPACKET, 64), b'U');
        let full = listener(&at("r/full"), SocketType::STREAM, 0);
        let datagrams = Arc::new(AtomicUsize::new(0));
        let (socket, count) =
            (UnixDatagram::bind(at("r/datagram")).expect("a socket"), Arc::clone(&datagrams));
        std::thread::spawn(move || {
            while socket.recv(&mut [0; 8]).is_ok() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        for (from, to) in [
            (compiled("mediator", include_str!("mediator.c")), "mediator"),
            (super::world::sandbox(), "bailiwick"),
        ] {
            std::fs::copy(from, at(to)).expect("a program is copied");
        }
        open_to_all(dir.path(), user);
        Self { dir, user, datagrams, _full: full }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Every attempt with the letters that it saw.
    fn attempts(&self, mut command: Command) -> Vec<(String, String)> {
        let output = command.arg(self.dir.path()).env_clear().current_dir("/").output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        let pairs = text.lines().filter_map(|line| line.split_once('\t'));
        pairs.map(|(name, saw)| (name.to_owned(), saw.to_owned())).collect()
    }

    fn inside(&self) -> Vec<(String, String)> {
        let mut command = as_user(self.user, self.at("bailiwick"));
        command.args(["run", "--no-journal", "--cap", &format!("fs:read:{}", self.at("r").display())]);
        command.args(["--cap", &format!("fs:read,write:{}", self.at("w").display())]);
        for name in ["r/socket", "w/socket", "w/d/socket", "r/full"] {
            command.args(["--cap", &format!("ipc:connect:unix:{}", self.at(name).display())]);
        }
        command.arg("--").arg(self.at("mediator"));
        self.attempts(command)
    }
}

fn listener(path: &Path, kind: SocketType, backlog: i32) -> OwnedFd {
    let socket = rustix::net::socket(AddressFamily::UNIX, kind, None).expect("a socket");
    rustix::net::bind(&socket, &SocketAddrUnix::new(path).expect("short")).expect("a name");
    rustix::net::listen(&socket, backlog).expect("it listens");
    socket
}

/// Tells everyone who connects who this is.
fn answer(listener: OwnedFd, letter: u8) {
    std::thread::spawn(move || {
        while let Ok(peer) = rustix::net::accept(&listener) {
            let _ = std::fs::File::from(peer).write_all(&[letter]);
        }
    });
}

fn open_to_all(path: &Path, user: User) {
    if user == User::Plain {
        std::os::unix::fs::lchown(path, Some(65534), Some(65534)).expect("root may");
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("the owner may");
    if path.is_dir() {
        path.read_dir()
            .expect("readable")
            .for_each(|entry| open_to_all(&entry.expect("an entry").path(), user));
    }
}

fn nothing_else_is_reached(user: User) {
    let services = Services::new(user);
    let attempts = services.inside();
    let others = attempts.iter().filter(|(name, _)| !REACH_GRANTED.contains(&name.as_str())).count();
    assert!(others >= 40, "{others} attempts");
    let letters = |saw: &str| saw.split(' ').next().unwrap_or_default().to_owned();
    let leaks: Vec<_> = attempts.iter().filter(|(_, saw)| letters(saw).contains('U')).collect();
    assert!(leaks.is_empty(), "as {user:?}: {leaks:?}");
    assert_eq!(services.datagrams.load(Ordering::SeqCst), 0, "a datagram arrived");
    for name in REACH_GRANTED {
        let saw = attempts.iter().find(|(own, _)| own == name).map(|(_, saw)| letters(saw));
        assert_eq!(saw.as_deref(), Some("G"), "{name} as {user:?}: {attempts:?}");
    }
}

#[test]
fn only_granted_sockets_are_reached_as_root() {
    if !rustix::process::getuid().is_root() {
        return skip("not root");
    }
    nothing_else_is_reached(User::Root);
}

#[test]
fn only_granted_sockets_are_reached_as_a_plain_user() {
    nothing_else_is_reached(if rustix::process::getuid().is_root() { User::Plain } else { User::Caller });
}

#[test]
fn the_attempts_at_sockets_work_outside() {
    let user = if rustix::process::getuid().is_root() { User::Plain } else { User::Caller };
    let services = Services::new(user);
    let attempts = services.attempts(as_user(user, services.at("mediator")));
    let futile = |name: &str| FUTILE.contains(&name) || ILL_FORMED.contains(&name);
    let broken: Vec<_> = attempts
        .iter()
        .filter(|(name, saw)| !futile(name) && !saw.split(' ').next().unwrap_or_default().contains('U'))
        .collect();
    assert!(broken.is_empty(), "without a sandbox: {broken:?}");
    assert!(services.datagrams.load(Ordering::SeqCst) >= 4, "datagrams arrive outside");
}
