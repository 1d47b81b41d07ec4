//! What every sandbox has: libraries, the data that ordinary programs read, devices, `/proc` and a private `/tmp`.
//!
//! Libraries can be mapped as code only from the directories that the loader searches; directories among them that hold
//! programs are covered, and everything else of the system is without code.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use bailiwick_policy::plan::{BASE, BaseKind, MASKED, Plan, STUBS};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use crate::account::{self, Account};
use crate::layout::{Host, HostKind, Layout, Node, is_clean, lies_in};
use crate::weakened;

/// Files up to this size are copied: that costs less than a mount.
const COPIED: u64 = 16 << 10;

/// What kind of thing every program may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Programs {
    /// Only those granted are there.
    Granted,
    /// All are.
    All,
}

/// What every sandbox has of the host, as it was when it was looked at: libraries, data and the loader's own files.
///
/// Looking is a good part of what preparing a sandbox takes. A caller that starts several at once, or one after
/// the other, looks once and passes it to `Prepared::on` of `bailiwick-confine`. What is installed later is then missing
/// or, where it is a directory of programs among libraries, not closed: look again from time to time.
#[derive(Debug, Clone)]
pub struct System {
    layout: Layout,
    programs: Programs,
    account: Account,
}

impl System {
    /// Looks at the host, for sandboxes of plans like this one.
    #[must_use]
    pub fn look(plan: &Plan) -> Self {
        Self::look_for(Programs::for_plan(plan))
    }

    /// The same before there is a plan: for those that grant programs by name, as nearly all do.
    #[must_use]
    pub fn look_ahead() -> Self {
        Self::look_for(if weakened::PROGRAMS { Programs::All } else { Programs::Granted })
    }

    fn look_for(programs: Programs) -> Self {
        let mut layout = Layout::default();
        put(&mut layout, programs);
        Self { layout, programs, account: Account::of_caller() }
    }

    /// The root of a sandbox of this plan, with nothing else in it yet, and the caller. A plan that wants other
    /// programs has the host looked at for itself.
    pub fn into_parts(self, plan: &Plan) -> (Layout, Account) {
        let fit = if self.programs == Programs::for_plan(plan) { self } else { Self::look(plan) };
        (fit.layout, fit.account)
    }
}

impl Programs {
    fn for_plan(plan: &Plan) -> Self {
        if plan.exec().any.is_some() || weakened::PROGRAMS { Self::All } else { Self::Granted }
    }
}

/// Puts in what every sandbox has of the host.
fn put(layout: &mut Layout, programs: Programs) {
    let configured = configuration(layout);
    for entry in BASE.iter().filter(|entry| !CONFIGURATION.contains(&entry.path)) {
        let path = Path::new(entry.path);
        let Ok(found) = std::fs::symlink_metadata(path) else { continue };
        if found.is_symlink() {
            link(layout, path);
            continue;
        }
        let kind = if found.is_dir() { HostKind::Directory } else { HostKind::File };
        match entry.kind {
            BaseKind::Programs if programs == Programs::Granted => {
                layout.put(path, Node::Directory { mode: 0o755 });
            }
            BaseKind::Data if kind == HostKind::File && found.len() <= COPIED => copy(layout, path, &found),
            BaseKind::Libraries | BaseKind::Data if is_small(&found) && copy_small(layout, path) => {}
            BaseKind::Libraries | BaseKind::Data | BaseKind::Programs => {
                let executable = programs == Programs::All && entry.kind != BaseKind::Data;
                layout.mount(path, Host { executable, ..Host::system(path, kind) });
            }
        }
    }
    if programs == Programs::Granted {
        libraries(layout, configured);
    }
}

/// What tells the loader, beside its cache, where to search: a file, and a directory of more of them.
const CONFIGURATION: [&str; 2] = ["/etc/ld.so.conf", "/etc/ld.so.conf.d"];

/// The directories that the host's configuration names; inside, one file names them all.
fn configuration(layout: &mut Layout) -> Vec<PathBuf> {
    let [file, _] = CONFIGURATION.map(Path::new);
    let directories = configured(file, 4);
    if !directories.is_empty() {
        let mut text = Vec::new();
        for directory in &directories {
            text.extend(directory.as_os_str().as_bytes());
            text.push(b'\n');
        }
        layout.put(file, Node::Text(text));
    }
    directories
}

/// A link of the host, and what it leads to if that would not be there otherwise.
fn link(layout: &mut Layout, path: &Path) {
    let (Ok(target), Ok(file)) = (std::fs::read_link(path), std::fs::canonicalize(path)) else { return };
    let shown = BASE.iter().any(|entry| lies_in(&file, Path::new(entry.path)));
    if shown {
        layout.put(path, Node::Link(target));
    } else if let Ok(found) = std::fs::metadata(&file) {
        let kind = if found.is_dir() { HostKind::Directory } else { HostKind::File };
        layout.mount(path, Host::system(&file, kind));
    }
}

/// Whether a directory can only hold a few things, and no other directory.
fn is_small(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    found.is_dir() && found.nlink() <= 2 && found.len() <= 4096
}

/// Makes a directory of a few links and short texts anew; false if it holds anything else.
fn copy_small(layout: &mut Layout, directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    let mut nodes = Vec::new();
    for entry in entries {
        let Ok(entry) = entry else { return false };
        if entry.file_name() == "README" {
            continue; // for people, and often all there is
        }
        let Some(node) = small(&entry).filter(|_| nodes.len() < 4) else { return false };
        nodes.push((entry.path(), node));
    }
    if nodes.is_empty() {
        return true;
    }
    layout.put(directory, Node::Directory { mode: 0o755 });
    for (path, node) in nodes {
        layout.put(&path, node);
    }
    true
}

/// A link, or a text that is no library.
fn small(entry: &std::fs::DirEntry) -> Option<Node> {
    let found = entry.metadata().ok()?;
    if found.is_symlink() {
        return std::fs::read_link(entry.path()).ok().map(Node::Link);
    }
    let text = || read(&entry.path(), &found).filter(|bytes| std::str::from_utf8(bytes).is_ok());
    let short = found.is_file() && found.len() <= COPIED / 4;
    short.then(text).flatten().map(Node::Text)
}

fn copy(layout: &mut Layout, path: &Path, found: &std::fs::Metadata) {
    if let Some(bytes) = read(path, found) {
        layout.put(path, Node::Text(bytes));
    }
}

/// A short file whole, in one read: its size is known. `None` if it has just become longer.
fn read(path: &Path, found: &std::fs::Metadata) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(found.len()).ok()?.checked_add(1)?];
    let count = std::fs::File::open(path).ok()?.read(&mut bytes).ok()?;
    let is_whole = count < bytes.len();
    bytes.truncate(count);
    is_whole.then_some(bytes)
}

/// Opens the directories that the loader searches, and closes what is known to hold programs in them.
fn libraries(layout: &mut Layout, configured: Vec<PathBuf>) {
    let directories = searched(layout, configured);
    for directory in &directories {
        if !layout.tree_around(directory).is_some_and(|(_, tree)| tree.executable) {
            layout
                .mount(directory, Host { executable: true, ..Host::system(directory, HostKind::Directory) });
        }
        for helper in helpers_in(directory) {
            if !directories.contains(&helper) {
                layout.mount(&helper, Host::system(&helper, HostKind::Directory));
            }
        }
    }
}

/// The directories of programs that a library directory has. Most are not there: a short directory is read, and in a long one
/// each is looked for. All of them, which no sandbox starts with, if it cannot be opened.
fn helpers_in(directory: &Path) -> Vec<PathBuf> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::empty());
    let entries = opened.as_ref().ok().and_then(|opened| short_listing(opened.as_fd()));
    let is_directory = |name: &&str| {
        let Ok(opened) = &opened else { return true };
        let may_be =
            entries.as_ref().is_none_or(|entries| entries.iter().any(|entry| entry == name.as_bytes()));
        may_be
            && rustix::fs::statat(opened, *name, AtFlags::empty())
                .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
    };
    helpers(is_wide(directory)).filter(is_directory).map(|name| directory.join(name)).collect()
}

/// The names in a directory; nothing if they are many or cannot be read.
fn short_listing(directory: BorrowedFd<'_>) -> Option<Vec<Vec<u8>>> {
    let size = rustix::fs::fstat(directory).ok()?.st_size;
    if size > 4096 {
        return None;
    }
    let mut room = [std::mem::MaybeUninit::uninit(); 4096];
    let mut entries = rustix::fs::RawDir::new(directory, &mut room);
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        names.push(entry.ok()?.file_name().to_bytes().to_vec());
        if names.len() > 128 {
            return None;
        }
    }
    Some(names)
}

/// Directories among libraries that hold programs: those of every library directory, and those of a wide one besides.
fn helpers(wide: bool) -> impl Iterator<Item = &'static str> {
    let lines = include_str!("helpers.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(move |line| match line.strip_prefix("wide ") {
        Some(name) => wide.then_some(name),
        None => Some(line),
    })
}

fn is_wide(directory: &Path) -> bool {
    WIDE.iter().any(|wide| directory == Path::new(wide))
}

/// Directories that hold more than libraries: opened only if the C library itself lies there.
const WIDE: [&str; 4] = ["/usr/lib", "/lib", "/usr/local/lib", "/usr/lib64"];

/// The C library, under the names that it has.
const C_LIBRARIES: [&str; 3] = ["libc.so.6", "ld-musl-x86_64.so.1", "ld-musl-aarch64.so.1"];

/// The directories that the loader searches, the system's links resolved.
fn searched(layout: &Layout, configured: Vec<PathBuf>) -> BTreeSet<PathBuf> {
    let mut directories: BTreeSet<PathBuf> = BTreeSet::new();
    let usual = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"].into_iter().map(PathBuf::from);
    let multiarch = ["gnu", "musl"].map(|c| format!("/usr/lib/{}-linux-{c}", std::env::consts::ARCH));
    let named = usual.chain(multiarch.map(PathBuf::from)).chain(configured);
    directories.extend(named.map(|directory| layout.follow(&directory)));
    let libraries = || BASE.iter().filter(|entry| entry.kind == BaseKind::Libraries);
    directories.retain(|directory| {
        let of_system = libraries().any(|entry| lies_in(directory, Path::new(entry.path)));
        let opened = || !is_wide(directory) || C_LIBRARIES.iter().any(|name| is_itself_in(directory, name));
        of_system && opened() && directory.is_dir()
    });
    directories
}

/// Whether a file itself is in a directory, and not a link to one elsewhere: a second C library leaves such a link.
fn is_itself_in(directory: &Path, name: &str) -> bool {
    existing(&directory.join(name)).is_some_and(|file| file.parent() == Some(directory))
}

/// Where a path leads, all links followed. Most that are asked for are not there, which is one look.
fn existing(path: &Path) -> Option<PathBuf> {
    std::fs::symlink_metadata(path).ok()?;
    std::fs::canonicalize(path).ok()
}

/// The directories that a loader configuration names; includes are followed, their `*` in the last part only.
fn configured(file: &Path, depth: usize) -> Vec<PathBuf> {
    let Some(depth) = depth.checked_sub(1) else { return Vec::new() };
    let text = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut directories = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(pattern) = line.strip_prefix("include ") {
            let pattern = file.parent().unwrap_or(file).join(pattern.trim()); // most are relative
            for included in matching(&pattern) {
                directories.extend(configured(&included, depth));
            }
        } else if line.starts_with('/') {
            directories.push(PathBuf::from(line));
        }
    }
    directories
}

/// What a path with a `*` in its last part matches; without one, itself.
pub fn matching(pattern: &Path) -> Vec<PathBuf> {
    let (Some(directory), Some(name)) =
        (pattern.parent(), pattern.file_name().and_then(|name| name.to_str()))
    else {
        return Vec::new();
    };
    let Some((start, end)) = name.split_once('*') else { return vec![pattern.to_owned()] };
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let names = entries.flatten().filter(|entry| {
        entry.file_name().to_str().is_some_and(|name| name.starts_with(start) && name.ends_with(end))
    });
    let mut paths: Vec<_> = names.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The programs that load other programs; they must be startable for anything to be.
pub fn loaders() -> impl Iterator<Item = PathBuf> {
    const LOADERS: [&str; 5] = [
        "/lib64/ld-linux-x86-64.so.2",
        "/lib/ld-linux-aarch64.so.1",
        "/lib/ld-musl-x86_64.so.1",
        "/lib/ld-musl-aarch64.so.1",
        "/lib64/ld-linux-riscv64-lp64d.so.1",
    ];
    LOADERS.iter().filter_map(|path| existing(Path::new(path)))
}

/// Files of `/proc` that say too much of the host.
const HIDDEN: [&str; 14] = [
    "keys",
    "key-users",
    "timer_list",
    "kallsyms",
    "sysrq-trigger",
    "kcore",
    "sched_debug",
    "kpagecount",
    "kpageflags",
    "kpagecgroup",
    "vmallocinfo",
    "slabinfo",
    "kmsg",
    "cmdline",
];

/// Tells one start of the machine from another, and machines apart.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

const DEVICE_LINKS: [(&str, &str); 6] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
    ("/var/tmp", "/tmp"),
];

/// What the sandbox's own places depend on.
pub struct Own<'a> {
    /// Whether the program has a terminal.
    pub terminal: bool,
    /// Whether what it writes may be started.
    pub executable: bool,
    /// Grants for less than everything: nothing around them may be the program's own to do anything in.
    pub narrowed: &'a [PathBuf],
    /// The caller's home.
    pub home: Option<&'a Path>,
    /// The caller.
    pub account: &'a Account,
}

/// The directories that a program may do anything in.
#[derive(Debug)]
pub struct Private {
    /// For what is temporary: `/tmp`, unless that has a use of its own.
    pub temporary: PathBuf,
    /// The home: where the caller's own is, or in the temporary directory.
    pub home: PathBuf,
    /// Whether the home is a directory of its own, neither granted nor part of the temporary one.
    home_is_separate: bool,
}

impl Private {
    /// Each of them, none within another.
    pub fn places(&self) -> impl Iterator<Item = &Path> {
        let home = self.home_is_separate.then_some(self.home.as_path());
        std::iter::once(self.temporary.as_path()).chain(home)
    }
}

/// Puts in what every sandbox has of its own. Returns the directories that it may do anything in.
pub fn own(layout: &mut Layout, of: &Own<'_>) -> Private {
    for name in DEVICES {
        device(layout, name);
    }
    if of.terminal {
        device(layout, "tty");
    }
    for (path, target) in DEVICE_LINKS {
        layout.put(Path::new(path), Node::Link(PathBuf::from(target)));
    }
    layout.put(Path::new("/dev/pts"), Node::Terminals);
    layout.replace(Path::new("/proc"), Node::Processes);
    for name in HIDDEN {
        let path = Path::new("/proc").join(name);
        if is_readable(&path) && !weakened::HIDDEN {
            layout.put(&path, Node::Hidden { directory: false });
        }
    }
    if !weakened::HIDDEN {
        layout.put(Path::new(BOOT_ID), Node::Text(b"00000000-0000-0000-0000-000000000000\n".to_vec()));
    }
    let private = private(layout, of);
    for (path, text) in STUBS {
        let hosts = weakened::STUBS.then(|| std::fs::read(path).ok()).flatten();
        let text = match path {
            "/etc/passwd" => of.account.passwd(&private.home),
            "/etc/group" => of.account.groups(),
            "/etc/hosts" => account::with_own_name(text),
            _ => text.to_owned(),
        };
        layout.replace(Path::new(path), Node::Text(hosts.unwrap_or_else(|| text.into_bytes())));
    }
    private
}

/// Whether this user can open it: what only root can needs no cover from others.
fn is_readable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path)
        .is_ok_and(|found| found.permissions().mode() & 0o007 != 0 || rustix::process::geteuid().is_root())
}

fn device(layout: &mut Layout, name: &str) {
    let path = Path::new("/dev").join(name);
    layout.replace(&path, Node::Host(Host::system(&path, HostKind::Device)));
}

/// The private directories, with the shared memory in the temporary one.
fn private(layout: &mut Layout, of: &Own<'_>) -> Private {
    let (tmp, elsewhere) = (Path::new("/tmp"), Path::new("/run/private"));
    let is_free = !of.narrowed.iter().any(|path| lies_in(path, tmp)) && layout.at(tmp).is_none();
    let temporary = if is_free { tmp } else { elsewhere };
    layout.put(temporary, Node::Private { mode: 0o1777, executable: of.executable });
    layout.put(tmp, Node::Directory { mode: 0o755 });
    layout.put(&temporary.join(".shm"), Node::Directory { mode: 0o1777 });
    layout.put(Path::new("/dev/shm"), Node::Link(temporary.join(".shm")));
    home(layout, of, temporary)
}

/// The home at the caller's own path: empty, or as far as it was granted. It is in the temporary directory where that path
/// has another use.
fn home(layout: &mut Layout, of: &Own<'_>, temporary: &Path) -> Private {
    let temporary = temporary.to_owned();
    let is_narrowed = |home: &Path| of.narrowed.iter().any(|path| lies_in(path, home));
    let callers = of.home.filter(|home| is_clean(home) && !has_use_of_its_own(home) && !is_narrowed(home));
    let home = callers.map_or_else(|| temporary.join("home"), Path::to_owned);
    if layout.tree_around(&home).is_some() {
        return Private { temporary, home, home_is_separate: false };
    }
    let home_is_separate = !lies_in(&layout.follow(&home), &temporary);
    let node = if home_is_separate {
        Node::Private { mode: 0o700, executable: of.executable }
    } else {
        Node::Directory { mode: 0o700 }
    };
    layout.put(&home, node);
    Private { temporary, home, home_is_separate }
}

/// Whether a path is part of the system, holds a part of it, or is the sandbox's own.
fn has_use_of_its_own(home: &Path) -> bool {
    let stubs = STUBS.iter().map(|(path, _)| *path);
    let all = BASE.iter().map(|entry| entry.path).chain(stubs).chain(MASKED).map(Path::new);
    let holds_links =
        ["/var/tmp", "/tmp"].iter().any(|path| lies_in(Path::new(path), home) && home != Path::new("/tmp"));
    holds_links || all.into_iter().any(|path| lies_in(path, home) || lies_in(home, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loader_configuration_is_read_with_what_it_includes() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        std::fs::create_dir(directory.path().join("more.d")).unwrap();
        let absolute = directory.path().join("alone.conf");
        let text = format!("include more.d/*.conf\n# a note\n  /opt/lib \ninclude {}\n", absolute.display());
        write("ld.so.conf", &text);
        std::fs::write(directory.path().join("more.d/b.conf"), b"# f\xfcr b\n/b\nhwcap 0 nosegneg\n")
            .unwrap();
        write("more.d/a.conf", "/a\ninclude ../ld.so.conf\n");
        write("more.d/c.txt", "/c\n");
        write("alone.conf", "/alone\n");
        let found = configured(&directory.path().join("ld.so.conf"), 2);
        assert_eq!(found, ["/a", "/b", "/opt/lib", "/alone"].map(Path::new));
    }
}
