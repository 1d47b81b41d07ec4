//! A small host to escape into: files, sockets, processes and secrets around a sandbox.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use super::rows::Row;

const PLAIN_USER: u32 = 65534;
const SECRET: &str = "hush";

/// Who starts the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Root,
    Plain,
    Caller,
}

/// The host around a sandbox. Removed with everything in it when dropped.
pub(super) struct World {
    dir: tempfile::TempDir,
    user: User,
    victim: Child,
    variables: Vec<(&'static str, String)>,
    _services: Services,
}

/// What listens on the host.
struct Services {
    _listeners: Vec<TcpListener>,
    _sockets: Vec<UnixListener>,
    _datagram: UnixDatagram,
}

impl World {
    pub(super) fn new(user: User) -> Self {
        Self::below("/var/tmp", user)
    }

    /// A host whose files lie below that directory.
    pub(super) fn below(base: &str, user: User) -> Self {
        let dir = tempfile::Builder::new().prefix("bailiwick-escape").tempdir_in(base).expect("a directory");
        let at = |name: &str| dir.path().join(name);
        for name in [
            "r",
            "w/.git/hooks",
            "w/.git/info",
            "w/.git/objects/info",
            "w/.git/modules/sub/objects",
            "w/.git/modules/sub/refs",
            "w/.git/modules/sub/hooks",
            "w/.git/modules/new/objects",
            "w/full",
            "w/.vscode",
            "w/sub",
            "w/sub2",
            "w/bare/objects",
            "out",
            "code",
            "home/.ssh",
            "home/.local/state/bailiwick/journal",
            "home/.config/bailiwick",
        ] {
            std::fs::create_dir_all(at(name)).expect("a directory");
        }
        let files = [
            ("r/file", "granted"),
            ("r/file2", "two"),
            ("r/file3", "three"),
            ("r/file4", "four"),
            ("r/file.txt", "text"),
            ("w/mine", "mine"),
            ("w/mine2", "mine"),
            ("w/.git/modules/sub/HEAD", "ref: refs/heads/main"),
            ("w/.git/modules/sub/config", "[core]"),
            ("w/.git/modules/new/HEAD", "ref: refs/heads/main"),
            ("w/full/config", "[core]"),
            ("w/bare/HEAD", "ref: refs/heads/main"),
            ("w/.git/hooks/post-commit", "#!/bin/true"),
            ("w/.git/config", "[core]"),
            ("w/.vscode/tasks.json", "{}"),
            ("out/secret", "secret"),
            ("code/readable", "text"),
            ("home/.ssh/id_ed25519", "key"),
            ("home/.local/state/bailiwick/journal/key", "key"),
        ];
        for (name, text) in files {
            std::fs::write(at(name), text).expect("a file");
        }
        symlink(at("out/secret"), at("w/way-out")).expect("a link");
        std::fs::copy(probe(), at("probe")).expect("the probe is copied");
        std::fs::copy(probe(), at("code/probe")).expect("the probe is copied");
        std::fs::copy(sandbox(), at("bailiwick")).expect("the command is copied");
        let (services, ports) = Services::start(dir.path());
        open_to_all(dir.path(), user);
        let victim = victim(user);
        let mut world = Self { user, victim, variables: Vec::new(), _services: services, dir };
        world.variables = world.describe(ports);
        world.outside(&[
            &format!("makeshm {}", world.value("shm")),
            &format!("addkey {}", world.value("key")),
        ]);
        world
    }

    fn describe(&self, [tcp, tcp6, udp]: [u16; 3]) -> Vec<(&'static str, String)> {
        let at = |name: &str| self.dir.path().join(name).display().to_string();
        let unique = std::process::id();
        let hosttmp = format!("/tmp/bailiwick-escape-{unique}");
        std::fs::write(&hosttmp, "here").expect("a file in /tmp");
        vec![
            ("r", at("r")),
            ("w", at("w")),
            ("out", at("out")),
            ("code", at("code")),
            ("home", at("home")),
            ("probe", at("probe")),
            ("state", at("home/.local/state/bailiwick")),
            ("hosttmp", hosttmp),
            ("runfile", first_file("/run").unwrap_or_else(|| "/run/utmp".to_owned())),
            ("pid", self.victim.id().to_string()),
            ("shm", format!("{:x}", 0x6261_0000 + unique % 0xffff)),
            ("key", format!("bailiwick-{unique}")),
            ("abstract", abstract_name(self.dir.path())),
            ("tcp", tcp.to_string()),
            ("tcp6", tcp6.to_string()),
            ("udp", udp.to_string()),
            ("ldso", loader()),
            ("helper", helper()),
        ]
    }

    fn value(&self, name: &str) -> &str {
        &self.variables.iter().find(|(own, _)| *own == name).expect("a known variable").1
    }

    /// Replaces `{name}` by its value here.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.variables {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }

    /// Tries the rows inside a sandbox with these grants.
    pub(super) fn try_inside(&self, backend: &str, caps: &[String], rows: &[Row]) -> Vec<String> {
        self.answers(self.sandboxed(backend, caps), rows.iter().map(|row| row.attempt))
    }

    /// Tries the rows in what a line starts, as many at a time as fit.
    pub(super) fn try_with(&self, line: &[String], rows: &[Row], at_once: usize) -> Vec<String> {
        let chunks = rows.chunks(at_once).flat_map(|rows| {
            let (program, args) = line.split_first().expect("a program");
            let mut command = as_user(self.user, program);
            command.args(args).arg(self.value("probe"));
            self.answers(command, rows.iter().map(|row| row.attempt))
        });
        chunks.collect()
    }

    /// Writes a file beside all others, open to the user.
    pub(super) fn write(&self, name: &str, text: &str) -> String {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        open_to_all(&path, self.user);
        path.display().to_string()
    }

    /// What the command says where it starts nothing.
    pub(super) fn refusal(&self, backend: &str, caps: &[String]) -> (Option<i32>, String) {
        let output =
            self.sandboxed(backend, caps).env("HOME", self.value("home")).output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn sandboxed(&self, backend: &str, caps: &[String]) -> Command {
        // A descriptor is left open on purpose: it must not arrive.
        let mut command = as_user(self.user, "/bin/sh");
        command.args(["-c", "exec 9<\"$0\"; exec \"$@\""]).arg(self.dir.path().join("out/secret"));
        command.arg(self.dir.path().join("bailiwick")).args(["run", "--no-journal", "--backend", backend]);
        for cap in caps {
            command.args(["--cap", cap]);
        }
        command.arg("--").arg(self.value("probe"));
        command
    }

    /// Tries the rows without a sandbox.
    pub(super) fn try_outside(&self, rows: &[Row]) -> Vec<String> {
        self.outside(&rows.iter().map(|row| row.attempt).collect::<Vec<_>>())
    }

    fn outside(&self, attempts: &[&str]) -> Vec<String> {
        let command = as_user(self.user, self.value("probe"));
        self.answers(command, attempts.iter().copied())
    }

    fn answers<'a>(&self, mut command: Command, attempts: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut count = 0;
        for attempt in attempts {
            if count > 0 {
                command.arg("--");
            }
            command.args(attempt.split(' ').map(|word| self.fill(word)));
            count += 1;
        }
        command.env_clear().env("HOME", self.value("home")).env("BAILIWICK_ESCAPE_SECRET", SECRET);
        command.env("TERM", "dumb").env("LANG", "C.UTF-8").env("PATH", "/usr/bin:/bin");
        let output = command.current_dir(self.value("out")).stdin(Stdio::null()).output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let answers: Vec<String> = text
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .map(|(_, answer)| answer.to_owned())
            .collect();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(answers.len(), count, "{:?}\n{text}\n{complaint}", output.status);
        answers
    }

    /// What was changed on the host that should not have been.
    pub(super) fn harm(&mut self) -> Vec<String> {
        let mut harm = Vec::new();
        let at = |name: &str| self.dir.path().join(name);
        let same =
            [("r/file", "granted"), ("r/file2", "two"), ("r/file3", "three"), ("out/secret", "secret")];
        for (name, text) in same {
            if std::fs::read_to_string(at(name)).ok().as_deref() != Some(text) {
                harm.push(format!("`{name}` was changed"));
            }
        }
        for name in [".mcp.json", ".agents", ".bashrc", ".claude", ".gitmodules", ".envrc"] {
            if at("w").join(name).symlink_metadata().is_ok() {
                harm.push(format!("`{name}` was left behind in the writable directory"));
            }
        }
        if at("home/.bashrc").exists() {
            harm.push("a file was left behind in the home".to_owned());
        }
        let alive = at("w/alive");
        let size = |path: &Path| path.metadata().map_or(0, |metadata| metadata.len());
        let before = size(&alive);
        std::thread::sleep(std::time::Duration::from_millis(100));
        if size(&alive) != before {
            harm.push("a process outlived the sandbox".to_owned());
        }
        if !matches!(self.victim.try_wait(), Ok(None)) {
            harm.push("a process of the host was ended".to_owned());
        }
        harm
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        self.outside(&[&format!("dropshm {}", self.value("shm"))]);
        let _ = std::fs::remove_file(self.value("hosttmp"));
    }
}

impl Services {
    fn start(dir: &Path) -> (Self, [u16; 3]) {
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        let tcp6 = TcpListener::bind("[::1]:0").expect("a port");
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let ports =
            [tcp.local_addr(), tcp6.local_addr(), udp.local_addr()].map(|at| at.expect("bound").port());
        std::thread::spawn(move || {
            let mut bytes = [0; 16];
            while let Ok((size, from)) = udp.recv_from(&mut bytes) {
                let _ = udp.send_to(&bytes[..size], from);
            }
        });
        let name = SocketAddr::from_abstract_name(abstract_name(dir)).expect("a name");
        let sockets = vec![
            UnixListener::bind(dir.join("r/socket")).expect("a socket"),
            UnixListener::bind(dir.join("r/other")).expect("a socket"),
            UnixListener::bind_addr(&name).expect("a socket"),
        ];
        let datagram = UnixDatagram::bind(dir.join("r/datagram")).expect("a socket");
        (Self { _listeners: vec![tcp, tcp6], _sockets: sockets, _datagram: datagram }, ports)
    }
}

/// A process to be harmed: once it is a program of that user, not while it still changes into one.
fn victim(user: User) -> Child {
    let victim = as_user(user, "/bin/sleep").arg("600").spawn().expect("a process to be harmed");
    let name = format!("/proc/{}/comm", victim.id());
    while std::fs::read_to_string(&name).expect("it runs").trim() != "sleep" {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    victim
}

/// What makes the sandbox: the command, or a weakened one that the tests have to notice (`scripts/mutate-sandbox`).
pub(super) fn sandbox() -> PathBuf {
    std::env::var_os("BAILIWICK_ESCAPE_PROGRAM")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_bailiwick")), PathBuf::from)
}

fn abstract_name(dir: &Path) -> String {
    dir.file_name().expect("named").to_string_lossy().into_owned()
}

/// The program, started by that user.
pub(crate) fn as_user(user: User, program: impl AsRef<std::ffi::OsStr>) -> Command {
    if user != User::Plain {
        return Command::new(program);
    }
    let mut command = Command::new("/usr/bin/setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--"]).arg(program);
    command
}

/// Everything is open to everyone, so that only the sandbox stands in the way.
pub(super) fn open_to_all(path: &Path, user: User) {
    let metadata = path.symlink_metadata().expect("there");
    if user == User::Plain {
        std::os::unix::fs::lchown(path, Some(PLAIN_USER), Some(PLAIN_USER)).expect("root may");
    }
    if metadata.is_symlink() {
        return;
    }
    let program =
        ["probe", "races", "bailiwick"].iter().any(|name| path.ends_with(name)) || metadata.is_dir();
    let mode = if program { 0o777 } else { 0o666 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("the owner may");
    if metadata.is_dir() {
        for entry in path.read_dir().expect("readable") {
            open_to_all(&entry.expect("an entry").path(), user);
        }
    }
}

/// The probe, compiled once; where there is no compiler (`scripts/old-kernel`) it is brought along.
fn probe() -> PathBuf {
    std::env::var_os("BAILIWICK_ESCAPE_PROBE")
        .map_or_else(|| compiled("escape-probe", include_str!("probe.c")), PathBuf::from)
}

/// A C program, compiled once in each process.
pub(super) fn compiled(name: &'static str, source: &str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<&str, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().expect("no compiler panicked");
    built.entry(name).or_insert_with(|| compile(name, source)).clone()
}

fn compile(name: &str, source: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (out, building) = (directory.join(name), directory.join(format!("{name}-{}", std::process::id())));
    let mut cc = Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-x", "c", "-o"])
        .arg(&building)
        .arg("-")
        .stdin(Stdio::piped())
        .spawn()
        .expect("a C compiler");
    cc.stdin.take().expect("a pipe").write_all(source.as_bytes()).expect("it reads");
    assert!(cc.wait().expect("it ends").success(), "{name} compiles");
    std::fs::rename(building, &out).expect("the same directory");
    out
}

/// The dynamic loader of this machine.
fn loader() -> String {
    let known = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    known.into_iter().find(|path| Path::new(path).exists()).unwrap_or(known[0]).to_owned()
}

/// A program that lies among libraries.
fn helper() -> String {
    let known = ["/usr/lib/git-core/git", "/usr/lib/openssh/sftp-server", "/usr/lib/apt/methods/http"];
    known.into_iter().find(|path| Path::new(path).exists()).unwrap_or(known[0]).to_owned()
}

fn first_file(dir: &str) -> Option<String> {
    let entries = std::fs::read_dir(dir).ok()?.filter_map(Result::ok);
    let mut files = entries.filter(|entry| entry.metadata().is_ok_and(|about| about.is_file()));
    files.next().map(|entry| entry.path().display().to_string())
}
