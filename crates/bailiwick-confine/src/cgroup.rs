//! Control groups: where this process may make them, and one that is made, filled and removed.
//!
//! Version 2 is used where a parent group lets its children have the controller, version 1 where that is what the
//! host has mounted; both may be there at once. A group's name says whose it is (pid namespace, pid, start time), so
//! that what a killed parent left behind is removed by the next one and a living one's is not.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

#[cfg(test)]
mod tests;

/// What a group can limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Controller {
    /// Memory with swap.
    Memory,
    /// Processes and threads.
    Pids,
    /// Processor time.
    Cpu,
}

impl Controller {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
        }
    }
}

/// The two interfaces of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// One tree for all controllers.
    V2,
    /// A tree per controller.
    V1,
}

/// Directories in which this process might make groups.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    unified: Vec<PathBuf>,
    legacy: Vec<(String, PathBuf)>,
    owner: Owner,
}

/// Who makes groups, as their names say.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    namespace: u64,
    pid: u32,
    started: u64,
}

impl Places {
    /// Looks at this process' own groups and at what is mounted. Nothing found is no error: there are no places.
    pub(crate) fn find() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self::from_texts(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"), Owner::this_process())
    }

    /// No place at all.
    pub(crate) fn nowhere() -> Self {
        // Who owns groups is not asked where none can be made.
        Self::from_texts("", "", Owner { namespace: 0, pid: 0, started: 0 })
    }

    fn from_texts(groups: &str, mounts: &str, owner: Owner) -> Self {
        let (mut unified, mut legacy) = (Vec::new(), Vec::new());
        for line in mounts.lines() {
            let Some(mount) = Mounted::read(line) else { continue };
            let Some(own) = mount.own_directory(groups) else { continue };
            if mount.unified {
                // A group that has processes cannot hand controllers on, but its parent does.
                unified.extend(own.parent().filter(|_| own != mount.point).map(Path::to_path_buf));
                unified.insert(0, own);
            } else {
                legacy.extend(mount.controllers.iter().map(|name| ((*name).to_owned(), own.clone())));
            }
        }
        Self { unified, legacy, owner }
    }

    /// Where a controller might be used, best first.
    pub(crate) fn offering(&self, controller: Controller) -> Vec<(Version, &Path)> {
        let offers = |directory: &&PathBuf| {
            let enabled = fs::read_to_string(directory.join("cgroup.subtree_control")).unwrap_or_default();
            enabled.split_whitespace().any(|name| name == controller.as_str())
        };
        let unified = self.unified.iter().filter(offers).map(|directory| (Version::V2, directory.as_path()));
        let legacy = self.legacy.iter().filter(|(name, _)| name == controller.as_str());
        unified.chain(legacy.map(|(_, directory)| (Version::V1, directory.as_path()))).collect()
    }

    /// Makes a group in one of the places, after removing what dead owners left there.
    pub(crate) fn make(&self, version: Version, place: &Path) -> io::Result<Group> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        self.sweep(place);
        let name = self.owner.group_name(COUNTER.fetch_add(1, Ordering::Relaxed));
        let directory = place.join(name);
        fs::create_dir(&directory)?;
        Ok(Group { directory, version })
    }

    /// Removes groups of owners of this pid namespace that are gone. One that still has processes stays.
    fn sweep(&self, place: &Path) {
        let Ok(entries) = fs::read_dir(place) else { return };
        for entry in entries.flatten() {
            let owner = entry.file_name().to_str().and_then(Owner::from_group_name);
            if owner.is_some_and(|owner| owner.namespace == self.owner.namespace && !owner.is_alive()) {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

/// One line of `mountinfo` that is about control groups.
struct Mounted<'a> {
    root: &'a str,
    point: PathBuf,
    unified: bool,
    controllers: Vec<&'a str>,
}

impl<'a> Mounted<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, point) = (before.next()?, PathBuf::from(before.next()?));
        let mut after = after.split(' ');
        let unified = match after.next()? {
            "cgroup2" => true,
            "cgroup" => false,
            _ => return None,
        };
        let controllers = after.nth(1)?.split(',').collect();
        Some(Self { root, point, unified, controllers })
    }

    /// Where this process' own group is below the mount.
    fn own_directory(&self, groups: &str) -> Option<PathBuf> {
        let path = groups.lines().find_map(|line| {
            let (_, line) = line.split_once(':')?;
            let (names, path) = line.split_once(':')?;
            let same = names.split(',').any(|name| self.controllers.contains(&name) && !name.is_empty());
            (if self.unified { names.is_empty() } else { same }).then_some(path)
        })?;
        let below = Path::new(path).strip_prefix(self.root).unwrap_or(Path::new(""));
        let below = below.strip_prefix("/").unwrap_or(below);
        Some(if below.as_os_str().is_empty() { self.point.clone() } else { self.point.join(below) })
    }
}

impl Owner {
    fn this_process() -> Self {
        let pid = std::process::id();
        let namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino());
        Self { namespace, pid, started: started(pid).unwrap_or_default() }
    }

    fn group_name(&self, count: u64) -> String {
        format!("bailiwick-{}-{}-{}-{count}", self.namespace, self.pid, self.started)
    }

    fn from_group_name(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix("bailiwick-")?.split('-');
        let (namespace, pid) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let started = parts.next()?.parse().ok()?;
        let _count: u64 = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some(Self { namespace, pid, started })
    }

    fn is_alive(&self) -> bool {
        started(self.pid) == Some(self.started)
    }
}

/// When a process was started, in the kernel's ticks: with its pid, a name that is never reused.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name is in parentheses and may hold anything, parentheses too.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(19)?.parse().ok()
}

/// A group of this process. Dropping it kills what is left in it and removes it.
#[derive(Debug)]
pub(crate) struct Group {
    directory: PathBuf,
    version: Version,
}

impl Group {
    pub(crate) const fn version(&self) -> Version {
        self.version
    }

    #[cfg(test)]
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn is_in(&self, place: &Path) -> bool {
        self.directory.parent() == Some(place)
    }

    /// Sets one of the kernel's knobs.
    pub(crate) fn set(&self, knob: &str, value: &str) -> io::Result<()> {
        // Without `create`: a knob that is not there must not become a file.
        fs::OpenOptions::new().write(true).open(self.directory.join(knob)).and_then(|file| {
            use io::Write as _;
            (&file).write_all(value.as_bytes())
        })
    }

    /// Sets a knob that not every kernel has.
    pub(crate) fn set_if_there(&self, knob: &str, value: &str) -> io::Result<()> {
        match self.set(knob, value) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Moves a process in. What it starts later is in the group too; what it has started already is not.
    pub(crate) fn enter(&self, pid: u32) -> io::Result<()> {
        self.set("cgroup.procs", &pid.to_string())
    }

    /// Its list of processes, open for writing: a process that writes a zero to it is in.
    pub(crate) fn entrance(&self) -> Result<OwnedFd, Errno> {
        rustix::fs::open(self.directory.join("cgroup.procs"), OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
    }

    /// Kills every process in the group: at once where the kernel has a way, else one by one until none is left.
    pub(crate) fn kill(&self) {
        if self.version == Version::V2 && self.set("cgroup.kill", "1").is_ok() {
            return;
        }
        for _ in 0..16 {
            let members = fs::read_to_string(self.directory.join("cgroup.procs")).unwrap_or_default();
            if members.trim().is_empty() {
                return;
            }
            // A zero is a process that this pid namespace does not see.
            for pid in members.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        // A dying process leaves a moment after it is reaped. What stays is swept by the next owner.
        for pause in [0, 1, 2, 5, 10, 20] {
            std::thread::sleep(Duration::from_millis(pause));
            match fs::remove_dir(&self.directory) {
                Err(fault) if fault.kind() == io::ErrorKind::ResourceBusy => {}
                _ => return,
            }
        }
    }
}
