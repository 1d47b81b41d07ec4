//! What was seen of a program, told by the sandbox's first process, and compared with what the host has.
//!
//! Nothing is decided by it: what it says is for a person who wonders why a program failed.

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use bailiwick_layout::programs::{Programs, interpreters_of, locate};
use bailiwick_policy::plan::PROGRAM_DIRECTORIES;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::command::Watch;
use crate::moment::Moment;

/// How many packets are kept.
const MOST: usize = 4096;
/// The longest packet.
const LONGEST: usize = 4106;

/// What a packet is about: its first byte behind the moment. The second is the error, if the call will fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Seen {
    Program = 1,
    ShellText,
    Script,
    Port,
    Address,
    Protected,
    Reading,
    Listing,
    Looking,
    Writing,
    Making,
    Socket,
    Namespace,
}

impl Seen {
    const ALL: [Self; 13] = [
        Self::Program,
        Self::ShellText,
        Self::Script,
        Self::Port,
        Self::Address,
        Self::Protected,
        Self::Reading,
        Self::Listing,
        Self::Looking,
        Self::Writing,
        Self::Making,
        Self::Socket,
        Self::Namespace,
    ];
}

/// What was seen of a program. Paths are those of the host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Observation {
    /// It could not start this program, which the host has.
    ProgramRefused(PathBuf),
    /// It started a shell with this text.
    ShellText(String),
    /// It started a shell with this file.
    ShellScript(PathBuf),
    /// It listens on this port.
    Listening(u16),
    /// It connected to this address, or tried to.
    Connecting(SocketAddr),
    /// It could not make or change this, a name that runs code later.
    NameRefused(PathBuf),
    /// It could not read this file, which the host has.
    ReadRefused(PathBuf),
    /// It could not list this directory, which the host has.
    ListRefused(PathBuf),
    /// It asked for this, which the host has and the sandbox does not show.
    LookRefused(PathBuf),
    /// It could not change this file, which the host has.
    WriteRefused(PathBuf),
    /// It could not make this, which the host does not have, in a directory that the host has and the caller may write.
    MakeRefused(PathBuf),
    /// It could not connect to the Unix socket of this name; none if it could not even make one.
    SocketRefused(Option<PathBuf>),
    /// It could not make a Unix socket, and not as the C library does for itself.
    SocketUnmade,
    /// This program could not make namespaces for a sandbox of its own.
    NamespaceRefused(PathBuf),
}

/// What was seen of a program, and what it might have started.
#[derive(Debug, Default)]
pub struct Observations {
    all: Vec<Observation>,
    startable: Arc<Startable>,
}

impl Observations {
    /// Everything, each once.
    pub fn iter(&self) -> impl Iterator<Item = &Observation> {
        self.all.iter()
    }

    /// The program that a bare name leads to on this host, if it is there and could not be started.
    #[must_use]
    pub fn refused_name(&self, name: &str) -> Option<PathBuf> {
        let found = locate(OsStr::new(name), Path::new("/")).ok().filter(|_| !name.contains('/'))?;
        (!self.startable.has(&found.canonicalize().ok()?)).then_some(found)
    }
}

/// What may be started.
#[derive(Debug, Default)]
pub(crate) struct Startable {
    pub(crate) programs: Programs,
    /// Everything.
    pub(crate) any: bool,
    /// What lies in a writable tree.
    pub(crate) from_writable: bool,
}

impl Startable {
    fn has(&self, file: &Path) -> bool {
        let Programs { files, directories, .. } = &self.programs;
        self.any || files.contains(file) || directories.iter().any(|directory| file.starts_with(directory))
    }

    /// The program of the host that could not be started: the path itself, or an interpreter that it names.
    fn refused(&self, path: &Path, fails: bool) -> Option<PathBuf> {
        let file = program_file(path)?;
        let is_systems = PROGRAM_DIRECTORIES.iter().any(|directory| path.starts_with(directory));
        let is_startable = self.has(&file) || (self.from_writable && !is_systems);
        if fails || !is_startable {
            return Some(path.to_owned());
        }
        let interpreters = interpreters_of(&file).into_iter();
        let mut found = interpreters.filter_map(|named| locate(&named, Path::new("/")).ok());
        found.find(|found| found.canonicalize().is_ok_and(|file| !self.has(&file)))
    }
}

/// The supervisor's end of the line on which things are told.
#[derive(Debug)]
pub(crate) struct Watched {
    told: Told,
    startable: Arc<Startable>,
    hearer: Arc<Hearer>,
}

type Hear = dyn Fn(&Observation, Moment) + Send + Sync;

/// The callback for observations, as they are made.
#[derive(Default)]
pub(crate) struct Hearer(OnceLock<Box<Hear>>);

impl Hearer {
    pub(crate) fn hear(&self, seen: &Observation, when: Moment) {
        if let Some(hear) = self.0.get() {
            hear(seen, when);
        }
    }
}

impl std::fmt::Debug for Hearer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hearer")
    }
}

#[derive(Debug)]
enum Told {
    /// Few things, which stay in the line until the end.
    Line(OwnedFd),
    /// Many things.
    Thread(JoinHandle<Vec<Vec<u8>>>),
    /// Nothing any more.
    Taken,
}

impl Watched {
    pub(crate) fn new(line: OwnedFd, watch: Watch, startable: Startable) -> Self {
        let mut watched =
            Self { told: Told::Line(line), startable: Arc::new(startable), hearer: Arc::default() };
        if watch == Watch::Files {
            watched.listen();
        }
        watched
    }

    /// Tells `hear` of everything as it is seen, each once and with its moment, from a thread of its own.
    pub(crate) fn tell_live(&mut self, hear: impl Fn(&Observation, Moment) + Send + Sync + 'static) {
        // Who was named first hears it.
        drop(self.hearer.0.set(Box::new(hear)));
        self.listen();
    }

    /// Whether everything was heard that will ever be told.
    pub(crate) fn is_heard(&self) -> bool {
        match &self.told {
            Told::Thread(thread) => thread.is_finished(),
            Told::Line(_) | Told::Taken => true,
        }
    }

    /// Who hears of what is not told on the line.
    pub(crate) fn hearer(&self) -> Arc<Hearer> {
        Arc::clone(&self.hearer)
    }

    /// Takes what is told out of the line as it comes.
    fn listen(&mut self) {
        let line = match std::mem::replace(&mut self.told, Told::Taken) {
            Told::Line(line) => line,
            already @ (Told::Thread(_) | Told::Taken) => {
                self.told = already;
                return;
            }
        };
        let (startable, hearer) = (Arc::clone(&self.startable), Arc::clone(&self.hearer));
        self.told = Told::Thread(std::thread::spawn(move || {
            receive(&line, RecvFlags::empty(), |packet| {
                if let Some((seen, when)) = startable.seen(packet) {
                    hearer.hear(&seen, when);
                }
            })
        }));
    }

    /// Everything that was told, each once. To be asked when the sandbox has ended.
    pub(crate) fn observations(&mut self) -> Observations {
        let packets = match std::mem::replace(&mut self.told, Told::Taken) {
            Told::Line(line) => receive(&line, RecvFlags::DONTWAIT, |_| {}),
            Told::Thread(thread) => thread.join().unwrap_or_default(),
            Told::Taken => Vec::new(),
        };
        let mut all = Vec::new();
        for packet in packets {
            let seen = self.startable.seen(&packet).map(|(seen, _)| seen);
            all.extend(seen.filter(|seen| !all.contains(seen)));
        }
        Observations { all, startable: Arc::clone(&self.startable) }
    }
}

impl Startable {
    /// What a packet tells, and when that was.
    fn seen(&self, packet: &[u8]) -> Option<(Observation, Moment)> {
        let (moment, packet) = packet.split_first_chunk()?;
        let [kind, errno, bytes @ ..] = packet else { return None };
        let kind = Seen::ALL.into_iter().find(|seen| *seen as u8 == *kind)?;
        Some((self.judge(kind, *errno, bytes)?, Moment::from_bytes(*moment)))
    }

    fn judge(&self, seen: Seen, errno: u8, bytes: &[u8]) -> Option<Observation> {
        let path = || PathBuf::from(OsStr::from_bytes(bytes));
        // Only what is really there on the host was refused; with it a person can do something.
        let there = |make: fn(PathBuf) -> Observation| {
            let path = normal(&path());
            std::fs::symlink_metadata(&path).is_ok().then(|| make(path))
        };
        match seen {
            Seen::Program => self.judge_program(&normal(&path()), errno != 0),
            Seen::ShellText => Some(Observation::ShellText(String::from_utf8(bytes.to_vec()).ok()?)),
            Seen::Script => Some(Observation::ShellScript(normal(&path()))),
            Seen::Port => Some(Observation::Listening(u16::from_ne_bytes(bytes.try_into().ok()?))),
            Seen::Address => internet_address(bytes).map(Observation::Connecting),
            Seen::Protected => Some(Observation::NameRefused(path())),
            Seen::Reading => there(Observation::ReadRefused),
            Seen::Listing => there(Observation::ListRefused),
            Seen::Looking => there(Observation::LookRefused),
            Seen::Writing => there(Observation::WriteRefused),
            Seen::Making => judge_making(normal(&path())),
            Seen::Socket if bytes.is_empty() => Some(Observation::SocketRefused(None)),
            Seen::Socket => Some(Observation::SocketUnmade),
            Seen::Namespace => program_file(&path()).map(Observation::NamespaceRefused),
        }
    }

    fn judge_program(&self, path: &Path, fails: bool) -> Option<Observation> {
        if let Some(refused) = self.refused(path, fails) {
            return Some(Observation::ProgramRefused(refused));
        }
        let interpreter = interpreters_of(&program_file(path)?).into_iter().next_back()?;
        let is_shell = |name: &OsStr| ["sh", "bash", "dash"].map(OsStr::new).contains(&name);
        Path::new(&interpreter)
            .file_name()
            .is_some_and(is_shell)
            .then(|| Observation::ShellScript(path.to_owned()))
    }
}

/// What could not be made, where it could be made on the host.
fn judge_making(path: PathBuf) -> Option<Observation> {
    if let Ok(found) = path.symlink_metadata() {
        return (!found.is_dir()).then_some(Observation::WriteRefused(path));
    }
    let directory = path.parent().filter(|directory| directory.is_dir())?;
    rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).ok()?;
    Some(Observation::MakeRefused(path))
}

/// An address of the Internet: family, port, and the address behind the flow label of IPv6.
pub(crate) fn internet_address(bytes: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = bytes.split_first_chunk()?;
    let (port, rest) = rest.split_first_chunk()?;
    let ip = match libc::c_int::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => IpAddr::from(*rest.first_chunk::<4>()?),
        libc::AF_INET6 => IpAddr::from(*rest.get(4..)?.first_chunk::<16>()?),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_be_bytes(*port)))
}

/// The file that a path of the host leads to, if it is a program.
fn program_file(path: &Path) -> Option<PathBuf> {
    let file = path.canonicalize().ok()?;
    let found = std::fs::metadata(&file).ok()?;
    (found.is_file() && found.permissions().mode() & 0o111 != 0).then_some(file)
}

/// What is in the line, or comes until its other end is gone; `each` is called for it as it comes.
fn receive(line: &OwnedFd, flags: RecvFlags, each: impl Fn(&[u8])) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let mut room = [0; LONGEST];
    while packets.len() < MOST {
        match recv(line, &mut room[..], flags) {
            Ok((length @ 1.., _)) => {
                let packet = room.get(..length).unwrap_or_default();
                each(packet);
                packets.push(packet.to_vec());
            }
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => break,
        }
    }
    packets
}

/// The path that a packet names.
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    normal(Path::new(OsStr::from_bytes(bytes)))
}

/// A path without `.` and `..`, as far as that can be seen without following links.
fn normal(path: &Path) -> PathBuf {
    let mut done = PathBuf::from("/");
    for part in path.components() {
        match part {
            std::path::Component::Normal(name) => done.push(name),
            std::path::Component::ParentDir => {
                done.pop();
            }
            std::path::Component::Prefix(_)
            | std::path::Component::RootDir
            | std::path::Component::CurDir => {}
        }
    }
    done
}
