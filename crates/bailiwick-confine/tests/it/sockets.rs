//! Sockets of the program's own: in private directories they work, and they reach nothing of the host.

use std::path::{Path, PathBuf};

use bailiwick_confine::{Command, Options};
use std::os::unix::net::UnixListener;

use crate::support::{Said, run_with};

/// What the scripts share: a socket at a path that is bound, connected to and spoken by.
const OWN: &str = "
import os, socket, stat, sys, threading, time
home, tree = os.environ['HOME'], sys.argv[1]
def bound(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(1)
    return server
def own(path):
    server, client = bound(path), socket.socket(socket.AF_UNIX)
    client.connect(path)
    peer, _ = server.accept()
    peer.send(b'own')
    assert client.recv(3) == b'own'
    assert stat.S_ISSOCK(os.stat(path).st_mode)
def refused(act, *args):
    try:
        act(*args)
    except OSError:
        return
    sys.exit(f'not refused: {args}')
";

fn host_home() -> (tempfile::TempDir, PathBuf) {
    let own = tempfile::tempdir_in("/var/tmp").unwrap();
    let home = own.path().canonicalize().unwrap();
    std::fs::create_dir(home.join("tree")).unwrap();
    (own, home)
}

fn python(capabilities: &[&str], text: &str, home: &Path) -> Said {
    let mut command = Command::new("python3");
    command.args = vec!["-c".into(), format!("{OWN}{text}").into(), home.join("tree").into_os_string()];
    command.cwd = Some("/".into());
    run_with(capabilities, command, Options { home: Some(home.to_owned()), ..Options::default() })
}

const PRIVATE: &str = "ipc:connect:private";

#[test]
fn they_work_in_private_directories() {
    let (_own, home) = host_home();
    let tree = format!("fs:read,write:{}/tree", home.display());
    let text = "own(home + '/s'); own(os.environ.get('TMPDIR', '/tmp') + '/s')
os.chdir(home); own('relative'); os.symlink('s2', 'link'); server = bound('s2'); socket.socket(socket.AF_UNIX).connect('link')";
    python(&[PRIVATE], text, &home).ok();
    python(&[PRIVATE, &tree], text, &home).ok();
    python(&[&tree], text, &home).refused();
    let absent = "
def absent(path):
    try: socket.socket(socket.AF_UNIX).connect(path)
    except OSError as error: return type(error)
assert absent(home + '/none') is FileNotFoundError
os.chdir(home); assert absent('none') is FileNotFoundError
assert absent(tree + '/none') is PermissionError
";
    python(&[PRIVATE, &tree], absent, &home).ok();
    assert!(home.read_dir().unwrap().count() == 1, "nothing reaches the host");
}

#[test]
fn a_connect_waits_until_it_is_accepted() {
    let (_own, home) = host_home();
    let text = "
server, clients = bound(home + '/s'), []
def connect():
    client = socket.socket(socket.AF_UNIX)
    client.connect(home + '/s')
    clients.append(client)
threads = [threading.Thread(target=connect) for _ in range(8)]
for thread in threads: thread.start()
time.sleep(0.2)
waiting = len(clients)
for _ in range(8): server.accept()
for thread in threads: thread.join()
assert waiting < 8 == len(clients), (waiting, len(clients))
def full():
    client = socket.socket(socket.AF_UNIX)
    client.setblocking(False)
    client.connect(home + '/s')
    clients.append(client)
for _ in range(2): full()
refused(full)
";
    python(&[PRIVATE], text, &home).ok();
}

#[test]
fn they_neither_come_into_a_granted_tree_nor_are_found_there() {
    let (_own, home) = host_home();
    let tree = home.join("tree");
    let _service = UnixListener::bind(tree.join("service")).unwrap();
    let writable = format!("fs:read,write:{}", tree.display());
    let text = "
refused(bound, tree + '/bound')
os.chdir(tree); refused(bound, 'bound'); os.chdir('/')
refused(os.mknod, tree + '/node', 0o600 | stat.S_IFSOCK)
server = bound(home + '/s')
refused(os.link, home + '/s', tree + '/linked')
refused(os.rename, home + '/s', tree + '/renamed')
os.symlink(tree, home + '/way'); refused(bound, home + '/way/bound')
os.symlink(tree + '/service', home + '/lead')
for path in [tree + '/service', home + '/lead', home + '/way/service']:
    refused(socket.socket(socket.AF_UNIX).connect, path)
refused(socket.socket, socket.AF_UNIX, socket.SOCK_DGRAM)
";
    python(&[PRIVATE, &writable], text, &home).ok();
    let names: Vec<_> = tree.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["service"]);
    let control = format!(
        "{OWN}\nown(sys.argv[1] + '/bound'); own(home + '/s'); os.link(home + '/s', tree + '/linked')
socket.socket(socket.AF_UNIX).connect(tree + '/service')"
    );
    let output =
        std::process::Command::new("python3").args(["-c", &control]).arg(&tree).env("HOME", &home).output();
    let output = output.unwrap();
    assert!(output.status.success(), "(control) outside: {}", String::from_utf8_lossy(&output.stderr));
}

/// Two threads exchange the directory that a path goes through while a third makes and reaches sockets by it.
#[test]
fn a_directory_that_is_exchanged_meanwhile_leads_nowhere_else() {
    let (_own, home) = host_home();
    let tree = home.join("tree");
    let _service = UnixListener::bind(tree.join("s")).unwrap();
    let writable = format!("fs:read,write:{}", tree.display());
    let text = "
os.mkdir(home + '/a'); stop = False
keep = bound(home + '/a/s')
os.symlink(home + '/a', home + '/way'); os.symlink(tree, home + '/other')
def swap():
    while not stop:
        os.symlink(tree, home + '/n'); os.rename(home + '/n', home + '/way')
        os.symlink(home + '/a', home + '/n'); os.rename(home + '/n', home + '/way')
swapper = threading.Thread(target=swap); swapper.start()
reached = made = 0
keep.listen(4096)
for number in range(1500):
    client = socket.socket(socket.AF_UNIX)
    try:
        client.connect(home + '/way/s'); reached += 1
    except OSError: pass
    server = socket.socket(socket.AF_UNIX)
    try:
        server.bind(f'{home}/way/n{number}'); made += 1
    except OSError: pass
stop = True; swapper.join()
accepted = 0
keep.setblocking(False)
try:
    while keep.accept(): accepted += 1
except BlockingIOError: pass
assert accepted == reached, (accepted, reached)
assert len(os.listdir(home + '/a')) - 1 == made, made
print(reached, made)
";
    python(&[PRIVATE, &writable], text, &home).ok();
    assert_eq!(tree.read_dir().unwrap().count(), 1, "nothing was made in the tree");
}

#[test]
fn they_hide_no_granted_socket_of_the_host() {
    let (_own, home) = host_home();
    let name = tempfile::Builder::new().make_in("/tmp", |path| UnixListener::bind(path)).unwrap();
    let granted = format!("ipc:connect:unix:{}", name.path().display());
    let text = format!("socket.socket(socket.AF_UNIX).connect({:?}); own('/tmp/own')", name.path());
    python(&[&granted], text.split(';').next().unwrap(), &home).ok();
    python(&[PRIVATE, &granted], &text, &home).ok();
}
