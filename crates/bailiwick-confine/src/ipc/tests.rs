//! The supervisor with real programs under the real filter.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::seccomp::Asking;
use crate::sys::before_exec::before_exec;
use crate::sys::seccomp::{install, keep_at};

const AT: i32 = 100;
const PRELUDE: &str = "import socket, os, sys, errno, threading, time\nsys.stdin.readline(); os.close(100)\n\
    def go(s, a):\n try: s.connect(a); return 'ok'\n except OSError as e: return errno.errorcode[e.errno]\n\
    def unix(a, kind=socket.SOCK_STREAM):\n s = socket.socket(socket.AF_UNIX, kind); return go(s, a)\n";

/// Runs a Python script whose connects are answered by a supervisor that allows `names`.
fn run(names: &[&Path], script: &str) -> Option<String> {
    let python = "/usr/bin/python3";
    if !Path::new(python).exists() {
        bailiwick_testkit::skip("no python3");
        return None;
    }
    let filter = Asking { unix_mediated: true, ..Asking::default() }.program().unwrap();
    let mut command = Command::new(python);
    command.args(["-I", "-c", &format!("{PRELUDE}{script}")]).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    before_exec(&mut command, move || {
        rustix::thread::set_no_new_privs(true)?;
        keep_at(install(filter, true)?.ok_or(Errno::INVAL)?, AT)
    });
    let mut child = command.spawn().unwrap();
    let listener = descriptor_of(child.id(), AT.cast_unsigned()).unwrap();
    let (asks, passed_on) = control::pair().unwrap();
    let passing = listener.try_clone().unwrap();
    let passer = std::thread::spawn(move || pass_on(&passing, &passed_on));
    let names = names.iter().map(|name| name.to_path_buf()).collect();
    let mediator = Mediator::start(listener, asks, names, Arc::default()).unwrap();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let output = child.wait_with_output().unwrap();
    passer.join().unwrap();
    mediator.join();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// What the first process of a sandbox does with connects.
fn pass_on(listener: &OwnedFd, line: &OwnedFd) {
    loop {
        let mut ready = [PollFd::new(listener, PollFlags::IN)];
        poll(&mut ready, None).unwrap();
        if !ready[0].revents().contains(PollFlags::IN) {
            return;
        }
        let Ok(asked) = notify::receive(listener.as_fd()) else { continue };
        let thread = Pid::from_raw(asked.thread.cast_signed()).unwrap();
        let flags = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());
        let Ok(thread) = pidfd_open(thread, flags).or_else(|_| pidfd_open(thread, PidfdFlags::empty()))
        else {
            continue;
        };
        control::send_bytes(line.as_fd(), &asked.to_bytes(), thread.as_fd()).unwrap();
    }
}

/// A service that greets every client; counts them.
struct Greeter {
    directory: tempfile::TempDir,
    greeted: Arc<AtomicUsize>,
}

impl Greeter {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let greeted = Arc::new(AtomicUsize::new(0));
        for name in ["granted", "other"] {
            let listener = UnixListener::bind(directory.path().join(name)).unwrap();
            let greeted = Arc::clone(&greeted);
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    greeted.fetch_add(1, Ordering::SeqCst);
                    let _ = (&stream).write_all(b"hello");
                    let _ = (&stream).read(&mut [0; 8]);
                }
            });
        }
        std::os::unix::fs::symlink("other", directory.path().join("link")).unwrap();
        Self { directory, greeted }
    }

    fn name(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }
}

#[test]
fn a_granted_name_is_connected_and_the_descriptor_stays_what_it_was() {
    let greeter = Greeter::start();
    let granted = greeter.name("granted");
    let script = format!(
        "s = socket.socket(socket.AF_UNIX); n = s.fileno(); s.connect('{0}')\n\
         print(s.recv(5).decode(), s.fileno() == n, os.get_inheritable(n), os.get_blocking(n), go(s, '{0}'))\n\
         t = socket.socket(socket.AF_UNIX); os.set_inheritable(t.fileno(), True); t.setblocking(False)\n\
         print(go(t, '{0}'), os.get_inheritable(t.fileno()), os.get_blocking(t.fileno()))\n",
        granted.display()
    );
    let Some(out) = run(&[&granted], &script) else { return };
    assert_eq!(out, "hello True False True EISCONN\nok True False");
    assert_eq!(greeter.greeted.load(Ordering::SeqCst), 2);
}

#[test]
fn every_other_name_is_refused() {
    let greeter = Greeter::start();
    let (granted, other, link) = (greeter.name("granted"), greeter.name("other"), greeter.name("link"));
    let directory = greeter.name("");
    let script = format!(
        "os.chdir('{dir}')\n\
         print(unix('{dir}other'), unix('granted'), unix('{dir}./granted'), unix('{dir}/granted'), unix('{link}'),\n\
         unix('{dir}missing'), unix(b'\\0abstract'), unix('{dir}granted', socket.SOCK_SEQPACKET))\n",
        dir = directory.display(),
        link = link.display(),
    );
    let missing = greeter.name("missing");
    let Some(out) = run(&[&granted, &link, &missing], &script) else { return };
    // The link is granted by name but leads elsewhere; a stream service refuses a packet socket by itself.
    assert_eq!(out, "EACCES EACCES EACCES EACCES EACCES ENOENT EACCES EPROTOTYPE");
    assert_eq!(greeter.greeted.load(Ordering::SeqCst), 0);
    drop(other);
}

#[test]
fn a_swapped_descriptor_or_address_reaches_nothing_else() {
    let greeter = Greeter::start();
    let (granted, other) = (greeter.name("granted"), greeter.name("other"));
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    // One thread connects a descriptor to the other service; two keep swapping the descriptor between a socket of the
    // Internet and one of Unix, and the family in the address.
    let script = format!(
        "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\n\
         inet = socket.socket(); unix_ = socket.socket(socket.AF_UNIX); slot = os.dup(inet.fileno())\n\
         name = b'{}'; buf = ctypes.create_string_buffer(b'\\1\\0' + name + b'\\0', 110)\n\
         stop = False\n\
         def swap():\n  while not stop: os.dup2(unix_.fileno(), slot); os.dup2(inet.fileno(), slot)\n\
         def flip():\n  while not stop: buf[0] = b'\\2'; buf[0] = b'\\1'\n\
         ts = [threading.Thread(target=f) for f in (swap, flip)]; [t.start() for t in ts]\n\
         end = time.monotonic() + 1.5; n = 0\n\
         while time.monotonic() < end: c.connect(slot, buf, 3 + len(name)); n += 1\n\
         stop = True; [t.join() for t in ts]; print(n > 100)\n",
        other.display()
    );
    let Some(out) = run(&[&granted], &script) else { return };
    assert_eq!(out, "True");
    assert_eq!(greeter.greeted.load(Ordering::SeqCst), 0);
    drop(port);
}

#[test]
fn internet_sockets_connect_as_they_would_alone() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let greeting = std::thread::spawn(move || {
        for _ in 0..2 {
            server.accept().unwrap().0.write_all(b"hello").unwrap();
        }
    });
    let script = format!(
        "s = socket.socket(); s.connect(('127.0.0.1', {port})); print(s.recv(5).decode(), os.get_blocking(s.fileno()))\n\
         print(go(socket.socket(), ('127.0.0.1', {closed})))\n\
         n = socket.socket(); n.setblocking(False); print(go(n, ('127.0.0.1', {port})))\n\
         u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); print(go(u, ('127.0.0.1', 9)))\n\
         import asyncio\n\
         async def f():\n  r, w = await asyncio.open_connection('127.0.0.1', {closed})\n\
         try: asyncio.run(f())\n\
         except OSError as e: print(errno.errorcode[e.errno])\n"
    );
    let Some(out) = run(&[], &script) else { return };
    assert_eq!(out, "hello True\nECONNREFUSED\nEINPROGRESS\nok\nECONNREFUSED");
    greeting.join().unwrap();
}

#[test]
fn one_connect_that_waits_holds_up_no_other() {
    let greeter = Greeter::start();
    let granted = greeter.name("granted");
    // A listener whose backlog is full keeps a blocking connect waiting.
    let busy = greeter.name("busy");
    let silent = UnixListener::bind(&busy).unwrap();
    rustix::net::listen(&silent, 0).unwrap();
    let script = format!(
        "a = socket.socket(socket.AF_UNIX); print(go(a, '{busy}'))\n\
         n = socket.socket(socket.AF_UNIX); n.setblocking(False); print(go(n, '{busy}'))\n\
         b = socket.socket(socket.AF_UNIX)\n\
         t = threading.Thread(target=lambda: go(b, '{busy}'), daemon=True); t.start(); time.sleep(0.1)\n\
         print(t.is_alive(), unix('{granted}'), flush=True); os._exit(0)\n",
        busy = busy.display(),
        granted = granted.display(),
    );
    let Some(out) = run(&[&granted, &busy], &script) else { return };
    assert_eq!(out, "ok\nEAGAIN\nTrue ok");
}

#[test]
fn grants_become_names_and_what_the_host_lacks_is_said() {
    let facts = [(Endpoint::X11, PathBuf::from("/tmp/.X11-unix/X0"))];
    let all = Ipc { any: true, endpoints: Vec::new() };
    assert_eq!(names(&all, &facts).0, [Path::new("/tmp/.X11-unix/X0")]);
    assert_eq!(names(&Ipc::default(), &facts), (Vec::new(), Vec::new()));
    for (address, name) in [
        (&b"\x01\0/a\0trailing"[..], Some("/a")),
        (b"\x01\0/a", Some("/a")),
        (b"\x01\0a", None),
        (b"\x01\0\0/a", None),
        (b"\x01\0", None),
        (b"\x02\0/a", None),
        (b"\x01", None),
    ] {
        assert_eq!(name_in(address), name.map(Path::new), "{address:?}");
    }
}
