//! What a program can do with descriptors 0 to 2: talk to their other end, and nothing else.

use std::io::{Read as _, Seek as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

use bailiwick_confine::{Command, Exit, Options, Prepared, Stdio};

use crate::support::{directory, plan, script};

/// Runs a Python script with this as stdin and stdout; what it says on stderr. `None` without Python.
fn with(stdin: OwnedFd, stdout: OwnedFd, text: &str) -> Option<String> {
    if !std::path::Path::new("/usr/bin/python3").exists() {
        return None;
    }
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = Command::new("/usr/bin/python3");
    command.args = vec!["-I".into(), "-c".into(), text.into()];
    command.stdio = Stdio::Descriptors { stdin, stdout, stderr: writer.into() };
    let prepared = Prepared::new(&plan(&[]), command, Options::default()).unwrap();
    let mut confined = prepared.spawn().unwrap();
    let relays = confined.take_relays();
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    confined.wait().unwrap();
    relays.finish();
    Some(said)
}

/// Tries what a socket handed in could do; says what succeeded.
const TRY_SOCKETS: &str = "
import socket, os, sys, stat
for n in (0, 1):
    for act in ('disconnect', 'connect', 'bind', 'listen', 'accept', 'sendto', 'sendto-unix', 'peer'):
        try:
            s = socket.socket(fileno=os.dup(n))
            s.settimeout(0.3)
            if act == 'disconnect':
                import ctypes
                if ctypes.CDLL(None, use_errno=True).connect(n, bytes(16), 16) != 0: continue
            elif act == 'connect': s.connect(('127.0.0.1', PORT))
            elif act == 'bind': s.bind(('127.0.0.1', 0))
            elif act == 'listen': s.listen()
            elif act == 'accept': s.accept()
            elif act == 'sendto': s.sendto(b'x', ('127.0.0.1', PORT))
            elif act == 'sendto-unix': s.sendto(b'x', 'UNIX')
            elif act == 'peer': s.getpeername()[0][0]
            print(n, act, file=sys.stderr)
        except Exception: pass
";

#[test]
fn no_socket_that_reaches_further_than_its_peer_is_handed_in() {
    let (_own, w) = directory();
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port();
    let unix = w.join("socket");
    let datagrams = UnixDatagram::bind(&unix).unwrap();
    let text = TRY_SOCKETS.replace("PORT", &port.to_string()).replace("UNIX", unix.to_str().unwrap());
    let tcp = || -> OwnedFd { TcpStream::connect(("127.0.0.1", port)).unwrap().into() };
    let udp = || -> OwnedFd { UdpSocket::bind("127.0.0.1:0").unwrap().into() };
    let listening = || -> OwnedFd { TcpListener::bind("127.0.0.1:0").unwrap().into() };
    let pair_of_datagrams = || -> OwnedFd { UnixDatagram::pair().unwrap().0.into() };
    let named = || -> OwnedFd {
        let path = w.join("server");
        let _ = std::fs::remove_file(&path);
        let server = UnixListener::bind(&path).unwrap();
        let stream = UnixStream::connect(&path).unwrap();
        std::mem::forget(server);
        stream.into()
    };
    let kinds: [(&str, &dyn Fn() -> OwnedFd); 5] = [
        ("tcp", &tcp),
        ("udp", &udp),
        ("listening", &listening),
        ("datagrams", &pair_of_datagrams),
        ("named", &named),
    ];
    for (kind, make) in kinds {
        let Some(said) = with(make(), make(), &text) else { return };
        assert_eq!(said, "", "{kind}");
    }
    datagrams.set_nonblocking(true).unwrap();
    assert!(datagrams.recv(&mut [0; 8]).is_err(), "a datagram came out");
}

#[test]
fn a_socket_is_still_read_and_written() {
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(service.local_addr().unwrap()).unwrap();
    let (mut host, _) = service.accept().unwrap();
    host.write_all(b"hello\n").unwrap();
    host.shutdown(std::net::Shutdown::Write).unwrap();
    let text = "import sys; sys.stdout.write(sys.stdin.read().upper()); print('done', file=sys.stderr)";
    let Some(said) = with(client.try_clone().unwrap().into(), client.into(), text) else { return };
    assert_eq!(said, "done\n");
    let mut heard = [0; 6];
    host.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"HELLO\n");
}

#[test]
fn a_pair_of_sockets_is_handed_in_and_stays_a_pair() {
    let (mut host, inside) = UnixStream::pair().unwrap();
    host.write_all(b"hello\n").unwrap();
    host.shutdown(std::net::Shutdown::Write).unwrap();
    let text = "import sys, os, stat; sys.stdout.write(sys.stdin.read().upper()); sys.stdout.flush()
print(stat.S_ISSOCK(os.fstat(0).st_mode), file=sys.stderr)
import socket
for a in ('/tmp/x', b'\\0abstract'):
    try: socket.socket(fileno=os.dup(0)).connect(a); print('connected', file=sys.stderr)
    except OSError: pass";
    let Some(said) = with(inside.try_clone().unwrap().into(), inside.into(), text) else { return };
    assert_eq!(said, "True\n");
    let mut heard = [0; 6];
    host.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"HELLO\n");
}

#[test]
fn modes_owners_and_times_of_what_is_given_stay_as_they_are() {
    let (_own, w) = directory();
    let file = w.join("file");
    std::fs::write(&file, "content\n").unwrap();
    let before = std::fs::metadata(&file).unwrap();
    let text = "import os, sys
for n in (0, 1):
    for act in (lambda: os.fchmod(n, 0o777), lambda: os.utime(n, (1, 1)), lambda: os.ftruncate(n, 0),
                lambda: os.setxattr(n, 'user.x', b'y'), lambda: os.lseek(n, 0, 0),
                lambda: open(f'/proc/self/fd/{n}', 'r+')):
        try: act()
        except OSError: pass
print(sys.stdin.read().strip(), file=sys.stderr); print('out')";
    let input = std::fs::File::open(&file).unwrap();
    let mut output =
        std::fs::File::options().read(true).append(true).create(true).open(w.join("out")).unwrap();
    let Some(said) = with(input.into(), output.try_clone().unwrap().into(), text) else { return };
    assert_eq!(said, "content\n");
    let after = std::fs::metadata(&file).unwrap();
    assert_eq!(before.permissions(), after.permissions());
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    let mut printed = String::new();
    output.rewind().unwrap();
    output.read_to_string(&mut printed).unwrap();
    assert_eq!(printed, "out\n");
}

/// As root this changed the host's own nodes.
#[test]
fn device_nodes_stay_as_they_are() {
    use std::os::unix::fs::MetadataExt as _;
    let about = |name: &str| {
        let found = std::fs::metadata(format!("/dev/{name}")).unwrap();
        (found.mode(), found.uid(), found.gid(), found.mtime())
    };
    let names = ["null", "zero", "full", "random", "urandom"];
    let before = names.map(about);
    let null =
        || -> OwnedFd { std::fs::File::options().read(true).write(true).open("/dev/null").unwrap().into() };
    let text = "import os, sys
for n in ('null', 'zero', 'full', 'random', 'urandom'):
    for act in (lambda: os.chmod(f'/dev/{n}', 0o600), lambda: os.utime(f'/dev/{n}', (1, 1)),
                lambda: os.fchmod(0, 0o600), lambda: os.utime(0, (1, 1)), lambda: os.fchmod(1, 0o600)):
        try: act(); print(n, 'changed', file=sys.stderr)
        except OSError: pass
open('/dev/null', 'w').write('x'); print(len(open('/dev/zero', 'rb').read(3)), file=sys.stderr)";
    let Some(said) = with(null(), null(), text) else { return };
    assert_eq!(said, "3\n");
    assert_eq!(before, names.map(about));
}

#[test]
fn a_directory_is_refused() {
    let (_own, w) = directory();
    let directory = || -> OwnedFd { std::fs::File::open(&w).unwrap().into() };
    let mut command = script("true", &w);
    command.stdio = Stdio::Descriptors { stdin: directory(), stdout: directory(), stderr: directory() };
    assert!(Prepared::new(&plan(&[]), command, Options::default()).is_err());
    let mut command = script("exit 4", &w);
    command.stdio = Stdio::Inherit;
    let prepared = Prepared::new(&plan(&[]), command, Options::default()).unwrap();
    assert_eq!(prepared.spawn().unwrap().wait().unwrap(), Exit::Code(4));
}
