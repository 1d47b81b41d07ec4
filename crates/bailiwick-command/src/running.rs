//! Which wrapped servers and served sessions run now: one small private file for each, gone when it ends.
//!
//! A file is named after the process that wraps the server and the moment at which that process started, so what a
//! process that was killed left behind is recognised, and is never taken for a later process of the same number.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::facts;

/// What is known of a wrapped server that runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunningServer {
    /// What it is called.
    pub name: String,
    /// What its pins are known by.
    pub identity: String,
    /// The command that it was started with.
    pub command: Vec<String>,
    /// The process that wraps it.
    pub pid: u32,
    /// Its own first process.
    pub server_pid: u32,
    /// When it was started, in microseconds since 1970.
    pub since: u64,
    /// What it may touch, as capabilities; `None` if they cannot say it.
    pub authority: Option<Vec<String>>,
    /// The session of the journal that records it.
    pub session: Option<String>,
    /// The era of the protocol that its client speaks, once that is known.
    pub era: Option<String>,
    /// The file that its manifest is in, if that is one file.
    #[serde(default)]
    pub manifest: Option<PathBuf>,
    /// The directory that it was started in.
    #[serde(default)]
    pub project: Option<String>,
    /// How many calls were made.
    pub calls: u64,
    /// How many of them were refused.
    pub denials: u64,
    /// The SHA-256 of its manifest, on a machine that is enrolled in a fleet.
    #[serde(default)]
    pub manifest_hash: Option<String>,
    /// How each axis is held, on a machine that is enrolled in a fleet.
    #[serde(default)]
    pub enforcement: BTreeMap<String, String>,
    /// Whether it is a session of `serve`: its calls are counted in the journal alone.
    #[serde(default)]
    pub is_served: bool,
}

/// The file of one server, removed when this is dropped.
#[derive(Debug)]
pub struct RunningFile(PathBuf);

impl RunningFile {
    /// The file of a server that this process wraps.
    pub fn begin(server: &RunningServer) -> anyhow::Result<Self> {
        let dir = directory()?;
        bailiwick_journal::private::make_directory(&dir)?;
        let start = start_of(server.pid).context("the start of this process is not known")?;
        let file = Self(dir.join(format!("{}-{start}.json", server.pid)));
        file.write(server)?;
        Ok(file)
    }

    /// Replaces what is said of the server.
    pub fn write(&self, server: &RunningServer) -> anyhow::Result<()> {
        let draft = self.0.with_extension("new");
        let mut options = bailiwick_journal::private::options();
        let mut file = options.write(true).create(true).truncate(true).open(&draft)?;
        file.write_all(&serde_json::to_vec(server)?)?;
        Ok(fs::rename(&draft, &self.0)?)
    }
}

impl Drop for RunningFile {
    fn drop(&mut self) {
        // What cannot be removed is recognised later.
        drop(fs::remove_file(self.0.with_extension("new")));
        drop(fs::remove_file(&self.0));
    }
}

/// Every wrapped server that runs, by name. What was left behind is removed.
pub fn all() -> anyhow::Result<Vec<RunningServer>> {
    let dir = directory()?;
    let mut found = Vec::new();
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        Err(fault) => return Err(fault).with_context(|| format!("cannot read `{}`", dir.display())),
    };
    for entry in entries {
        let path = entry?.path();
        if !is_alive(&path) {
            // Another `ps` may have been faster.
            drop(fs::remove_file(&path));
        } else if path.extension().is_some_and(|extension| extension == "json") {
            // It may have ended since.
            let read = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            found.extend::<Option<RunningServer>>(read);
        }
    }
    found.sort_by(|one, other| (&one.name, one.pid).cmp(&(&other.name, other.pid)));
    Ok(found)
}

/// Whether the process that a file is named after still runs.
fn is_alive(file: &Path) -> bool {
    let name = file.file_stem().and_then(|name| name.to_str());
    let parts = name.and_then(|name| name.split_once('-'));
    parts.is_some_and(|(pid, start)| pid.parse().ok().and_then(start_of).as_deref() == Some(start))
}

/// When a process started: the boot, and the ticks since.
fn start_of(pid: u32) -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let boot: String = boot.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
    let ticks = stat_field(pid, 19)?;
    Some(format!("{boot}-{ticks}"))
}

/// The memory of a process and all that it started, in bytes: its own, and that of the others.
pub fn memory(pid: u32) -> (u64, u64) {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> =
        pids.filter_map(|pid| Some((pid, stat_field(pid, 1)?.parse().ok()?))).collect();
    let mut below = vec![pid];
    let mut seen = 0;
    while let Some(&above) = below.get(seen) {
        seen += 1;
        let children = parents.iter().filter(|(pid, parent)| *parent == above && !below.contains(pid));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        below.extend(children);
    }
    let others = below.iter().skip(1).map(|pid| resident(*pid)).sum();
    (resident(pid), others)
}

fn resident(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// A field of `/proc/PID/stat` behind the name, which may hold anything.
fn stat_field(pid: u32, field: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(field).map(str::to_owned)
}

fn directory() -> anyhow::Result<PathBuf> {
    let state = facts::state_dir().context("neither XDG_STATE_HOME nor HOME says where the state is")?;
    Ok(state.join("running"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_its_start() {
        let pid = std::process::id();
        let start = start_of(pid).unwrap();
        assert!(is_alive(Path::new(&format!("/x/{pid}-{start}.json"))));
        assert!(!is_alive(Path::new(&format!("/x/{pid}-{start}1.json"))), "a later process of this number");
        assert!(!is_alive(Path::new("/x/4194305-1.json")) && !is_alive(Path::new("/x/notes.json")));
        let (own, _) = memory(pid);
        assert!(own > 100_000, "{own}");
    }
}
