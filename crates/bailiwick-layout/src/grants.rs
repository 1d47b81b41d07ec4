//! The plan's file grants: each tree, file or match of a glob at its place, and the rules that narrow it.
//!
//! A source is opened once without following links; what was looked at is what is mounted, or nothing is.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use bailiwick_policy::capability::FsActions;
use bailiwick_policy::path::{AbsPath, PathPattern};
use bailiwick_policy::plan::{FileGrant, MASKED, Plan};
use bailiwick_policy::run_later::{Opened, Role, opened_by, role};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::entries::Identity;
use crate::fault::{Fault, Step};
use crate::ground::HostGround;
use crate::layout::{Host, HostKind, Layout, Node};
use crate::refusal::Refusal;
use crate::rights::{self, Access, Rule};
use crate::submounts::Mounts;
use crate::weakened;

/// The most paths that one glob may match.
pub const MOST_MATCHES: usize = 4096;

/// What the grants came to besides mounts.
#[derive(Default)]
pub struct Granted {
    /// Rules for what may be done where.
    pub rules: Vec<Rule>,
    /// What a person should know.
    pub notes: Vec<String>,
    /// Whether something may be written that may not be read.
    pub write_only: bool,
    /// Where a mount alone allows more than a grant does.
    pub narrowed: Vec<PathBuf>,
    /// Rules for what is seen through a layer: only the merged tree has these inodes.
    pub layered_rules: Vec<(PathBuf, Access)>,
}

/// Puts every grant of a plan into the layout.
pub fn put(layout: &mut Layout, plan: &Plan, home: Option<&Path>, layered: bool) -> Result<Granted, Refusal> {
    if plan.files().is_empty() {
        return Ok(Granted::default());
    }
    let mounts = Mounts::read().map_err(|fault| {
        let errno = Errno::from_io_error(&fault).unwrap_or(Errno::IO);
        Fault::new(Step::Mount, errno).at("/proc/thread-self/mountinfo")
    })?;
    let write_only = plan.files().iter().any(|grant| !grant.actions.contains(FsActions::READ));
    let mut granted = Granted { write_only, ..Granted::default() };
    let closed = &Closed { plan, home };
    for grant in plan.files() {
        for one in paths(grant, &mut granted)? {
            let executable = if grant.writable() { plan.from_writable() } else { plan.exec().any.is_some() };
            let mapped = executable || grant.maps_code();
            granted.put(
                layout,
                grant,
                &one,
                &Around { executable, mapped, mounts: &mounts, closed, layered },
            )?;
        }
    }
    Ok(granted)
}

/// What no grant by a pattern opens for writing: names that run code later, unless they were granted by name.
struct Closed<'a> {
    plan: &'a Plan,
    home: Option<&'a Path>,
}

impl Closed<'_> {
    /// Whether a file that a pattern matches stays read-only.
    fn holds(&self, place: &Place) -> bool {
        use std::os::unix::ffi::OsStrExt as _;
        let ground = HostGround { home: self.home };
        let protects = |path: &Path| role(path.as_os_str().as_bytes(), &ground) == Role::Protected;
        // A tree around it is no name of it.
        let is_named = self.plan.named().iter().map(to_path).any(|name| {
            let lies_in = place.path.starts_with(&name) || place.source.starts_with(&name);
            let is_it = place.path == name || place.source == name;
            match opened_by(name.as_os_str().as_bytes(), &ground) {
                Opened::Nothing => false,
                Opened::Itself => is_it,
                Opened::Everything => lies_in,
            }
        });
        !is_named && !weakened::NAMES && protects(&place.source)
    }
}

/// What counts for every path of a grant.
struct Around<'a> {
    /// Whether its programs may be started.
    executable: bool,
    /// Whether it may be mapped as code.
    mapped: bool,
    mounts: &'a Mounts,
    closed: &'a Closed<'a>,
    /// Whether writes go to a layer.
    layered: bool,
}

/// A path of a grant: where it appears and where it lies.
struct Place {
    path: PathBuf,
    source: PathBuf,
}

impl Place {
    /// Where the path leads, if that is elsewhere.
    fn link_note(&self) -> Option<String> {
        let (path, source) = (self.path.display(), self.source.display());
        let is_link = self.path.symlink_metadata().is_ok_and(|about| about.is_symlink());
        let how = if is_link { "is a link" } else { "leads through a link" };
        (self.path != self.source).then(|| format!("`{path}` {how}: `{source}` is what is granted"))
    }
}

impl Granted {
    fn put(
        &mut self,
        layout: &mut Layout,
        grant: &FileGrant,
        place: &Place,
        around: &Around<'_>,
    ) -> Result<(), Refusal> {
        let masked = !(weakened::MASKED && place.path.starts_with("/sys"));
        if masked
            && MASKED.iter().any(|masked| place.path.starts_with(masked) || place.source.starts_with(masked))
        {
            self.notes.push(format!("`{}` is not shown: the sandbox has its own", place.path.display()));
            return Ok(());
        }
        if let Some(kind) = around.mounts.odd_around(&place.source).filter(|_| !weakened::SUBMOUNTS) {
            let path = place.path.display();
            self.notes.push(format!("`{path}` is not shown: it is {kind}, not an ordinary file system"));
            return Ok(());
        }
        let Some(opened) = self.open(grant, place)? else { return Ok(()) };
        self.notes.extend(place.link_note());
        let stat = rustix::fs::fstat(&opened).map_err(|errno| unreachable(place, errno))?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => HostKind::Directory,
            FileType::CharacterDevice | FileType::BlockDevice => {
                self.notes.push(format!("`{}` is a device and is not shown", place.path.display()));
                return Ok(());
            }
            FileType::RegularFile
            | FileType::Symlink
            | FileType::Fifo
            | FileType::Socket
            | FileType::Unknown => HostKind::File,
        };
        let stays_closed =
            grant.writable() && kind == HostKind::File && !grant.is_tree() && around.closed.holds(place);
        let (actions, executable, mapped) = if stays_closed {
            self.notes.push(format!("`{}` runs code later and stays read-only", place.path.display()));
            (FsActions::READ, false, false)
        } else {
            (grant.actions, around.executable, around.mapped)
        };
        self.note_code(grant, place);
        if stays_closed && !grant.actions.contains(FsActions::READ) {
            return Ok(());
        }
        let writable = grant.writable() && !stays_closed;
        let has_layer =
            kind == HostKind::Directory || FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if writable && around.layered && !has_layer {
            return Err(Refusal::NoLayer { path: place.path.display().to_string() });
        }
        let host = Host {
            source: place.source.clone(),
            kind,
            writable,
            executable: mapped,
            identity: Some(Identity::from_stat(&stat)),
            layered: writable && around.layered,
        };
        let layered = host.layered;
        layout.mount(&place.path, host);
        for (at, kind) in around.mounts.odd_below(&place.source).filter(|_| !weakened::SUBMOUNTS) {
            let path = place.path.join(at.strip_prefix(&place.source).unwrap_or(at));
            self.notes.push(format!("`{}` is not shown: it is {kind}", path.display()));
            layout.put_over(&path, Node::Hidden { directory: at.is_dir() });
        }
        if layered {
            let run = if executable { rights::EXECUTE } else { 0 };
            self.layered_rules.push((place.path.clone(), access(actions, kind) | run));
        } else {
            self.rule(opened, actions, kind, executable);
        }
        if !is_mountable(grant.actions) {
            self.narrowed.push(place.path.clone());
        }
        Ok(())
    }

    /// Says what a grant as code opens, or does not.
    fn note_code(&mut self, grant: &FileGrant, place: &Place) {
        let path = place.path.display();
        if grant.maps_code() {
            self.notes
                .push(format!("`{path}` is granted as code: the loader can run a program that lies there"));
        }
        if grant.actions.contains(FsActions::CODE) && grant.writable() {
            self.notes.push(format!("`{path}` may be changed, so it is not mapped as code"));
        }
    }

    fn rule(&mut self, fd: OwnedFd, actions: FsActions, kind: HostKind, executable: bool) {
        let access = access(actions, kind) | if executable { rights::EXECUTE } else { 0 };
        self.rules.push(Rule { fd, access });
    }

    /// Opens the source without following links; `None` if there is nothing to read there.
    fn open(&mut self, grant: &FileGrant, place: &Place) -> Result<Option<OwnedFd>, Refusal> {
        match open(&place.source) {
            Ok(opened) => Ok(Some(opened)),
            Err(Errno::NOENT) if grant.writable() => {
                Err(Refusal::MissingPath { path: place.path.display().to_string() })
            }
            Err(Errno::NOENT) => {
                self.notes.push(format!("`{}` does not exist and is left out", place.path.display()));
                Ok(None)
            }
            Err(errno) => Err(unreachable(place, errno)),
        }
    }
}

fn unreachable(place: &Place, errno: Errno) -> Refusal {
    unopened(&place.source, errno)
}

/// A path that was granted and cannot be opened.
pub fn unopened(path: &Path, errno: Errno) -> Refusal {
    let reason = std::io::Error::from(errno).to_string();
    Refusal::Unreachable { path: path.display().to_string(), reason }
}

/// Opens a path for looking only, following no link.
pub fn open(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), resolve)
}

/// Whether a mount, read-only or writable, gives just these.
fn is_mountable(actions: FsActions) -> bool {
    let actions = actions.without_code();
    actions == FsActions::READ || actions.contains(FsActions::READ.union(FsActions::WRITE))
}

/// The rights that actions come to.
fn access(actions: FsActions, kind: HostKind) -> Access {
    let rights = [
        (FsActions::READ, rights::READ),
        (FsActions::CREATE, rights::CREATE),
        (FsActions::DELETE, rights::DELETE),
        (FsActions::WRITE, rights::WRITE),
    ];
    let granted = rights.iter().filter(|(action, _)| actions.contains(*action));
    let access = granted.fold(0, |all, (_, access)| all | access);
    if kind == HostKind::Directory { access } else { access & rights::FILE_RIGHTS }
}

/// Where a grant's paths are: its tree, or what its glob matches now.
fn paths(grant: &FileGrant, granted: &mut Granted) -> Result<Vec<Place>, Refusal> {
    let (path, source) = (to_path(&grant.path()), to_path(&grant.source));
    let tree = Place { path, source };
    if !grant.is_tree() {
        return expand(grant, &tree, granted);
    }
    if tree.path == Path::new("/") {
        return Ok(top(granted));
    }
    Ok(vec![tree])
}

/// A path of a plan as one of this host.
pub fn to_path(path: &AbsPath) -> PathBuf {
    PathBuf::from(path.to_string())
}

/// Everything: each entry of the host's root, so that the sandbox's own places stay its own.
fn top(granted: &mut Granted) -> Vec<Place> {
    granted.notes.push("`/` is granted entry by entry; the root itself stays the sandbox's own".to_owned());
    let entries = std::fs::read_dir("/").into_iter().flatten().flatten();
    let real = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    real.map(|entry| Place { path: entry.path(), source: entry.path() }).collect()
}

/// What a glob matches now. Nothing wider than the pattern is ever shown.
fn expand(grant: &FileGrant, base: &Place, granted: &mut Granted) -> Result<Vec<Place>, Refusal> {
    let pattern = &grant.pattern.value;
    granted.notes.push(format!("`{pattern}` is what it matched at the start; later files are not visible"));
    let mut walk = Walk { pattern, matches: Vec::new() };
    let (mut directories, mut looked) = (vec![base.path.clone()], 0_usize);
    while let Some(directory) = directories.pop() {
        looked += 1;
        let real = base.source.join(directory.strip_prefix(&base.path).unwrap_or(&directory));
        directories.extend(walk.enter(&directory, &real));
        if walk.matches.len() > MOST_MATCHES || looked > MOST_MATCHES * 4 {
            return Err(Refusal::TooManyMatches {
                pattern: pattern.to_string(),
                most: MOST_MATCHES,
                actions: grant.actions.to_string(),
                directory: base.path.display().to_string(),
            });
        }
    }
    Ok(walk.matches)
}

struct Walk<'a> {
    pattern: &'a PathPattern,
    matches: Vec<Place>,
}

impl Walk<'_> {
    /// Takes what matches in one directory; returns the directories to look into further.
    fn enter(&mut self, directory: &Path, real: &Path) -> Vec<PathBuf> {
        let mut deeper = Vec::new();
        for entry in std::fs::read_dir(real).into_iter().flatten().flatten() {
            let path = directory.join(entry.file_name());
            let Some(clean) = path.to_str().and_then(|path| AbsPath::new(path).ok()) else { continue };
            let Ok(kind) = entry.file_type() else { continue };
            if (self.pattern.covers(&clean) || weakened::GLOBS) && !kind.is_symlink() {
                self.take(path.clone(), entry.path(), kind.is_dir());
            }
            if kind.is_dir() && self.reaches(&clean) {
                deeper.push(path);
            }
        }
        deeper
    }

    /// A file that matches is taken; a directory only if everything below it matches too.
    fn take(&mut self, path: PathBuf, source: PathBuf, directory: bool) {
        if !directory || self.pattern.ends_deep() {
            self.matches.push(Place { path, source });
        }
    }

    /// Whether anything below a directory can match: the pattern is deep, or longer than the path.
    fn reaches(&self, directory: &AbsPath) -> bool {
        let parts = self.pattern.parts();
        let deep = parts.iter().any(|part| matches!(part, bailiwick_policy::path::Part::Deep));
        deep || directory.components().count() < parts.len()
    }
}
