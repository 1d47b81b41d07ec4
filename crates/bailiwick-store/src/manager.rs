//! One run of a package manager: in a sandbox, with one directory to write in and the registry to reach.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bailiwick_launch::{Command, Exit, HostPlanner, Launch, Options, Pipes, Watch};
use bailiwick_policy::capability::CapabilitySet;

use crate::host::StoreHost;

/// How long a package manager may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// The most of what it prints that is kept.
const MOST: u64 = 8 * 1024 * 1024;

/// Why a package manager gave no package.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// A path cannot be written in a capability.
    #[error("`{0}` has characters that no grant can name")]
    Path(String),
    /// It was not started.
    #[error("cannot start `{program}`: {why}")]
    NotStarted {
        /// Which.
        program: String,
        /// Why.
        why: String,
    },
    /// It failed.
    #[error("`{program}` {how}: {said}")]
    Failed {
        /// Which.
        program: String,
        /// How it ended.
        how: String,
        /// The last lines that it wrote, and the hosts that it was refused.
        said: String,
    },
    /// What it printed is not understood.
    #[error("`{program}` answered what is not understood: {why}")]
    Answer {
        /// Which.
        program: &'static str,
        /// Why.
        why: String,
    },
}

/// What one run may touch.
#[derive(Debug, Default)]
pub(crate) struct Grants(Vec<String>);

impl Grants {
    pub(crate) fn read(&mut self, path: &Path) -> Result<(), ManagerError> {
        if path.exists() {
            self.0.push(format!("fs:read:{}", named(path)?));
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, path: &Path) -> Result<(), ManagerError> {
        self.0.push(format!("fs:read,write:{}", named(path)?));
        Ok(())
    }

    /// A host that the user's own settings name. It may have a private address: a company's registry often has.
    pub(crate) fn reach(&mut self, address: &str) {
        if let Some((scheme, host, port)) = host_of(address) {
            let raw = if scheme == "http" { "&protocol=raw" } else { "" };
            let line = format!("net:connect:{host}:{port}?blockPrivate=false{raw}");
            if !self.0.contains(&line) {
                self.0.push(line);
            }
        }
    }

    /// Scripts of packages may start what they like, in the same sandbox.
    pub(crate) fn run_scripts(&mut self) {
        self.0.push("exec:spawn:*?fromWritable=true".to_owned());
    }
}

/// A path as a capability writes it.
fn named(path: &Path) -> Result<&str, ManagerError> {
    let plain = path.to_str().filter(|text| !text.contains(['*', '?', '[', ']', '{', '}', '\\', '$', '"']));
    plain.ok_or_else(|| ManagerError::Path(path.display().to_string()))
}

/// Scheme, host and port of an address.
fn host_of(address: &str) -> Option<(&str, &str, u16)> {
    let (scheme, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let usual = if scheme == "http" { 80 } else { 443 };
    match authority.rsplit_once(':') {
        Some((host, port)) => Some((scheme, host, port.parse().ok()?)),
        None => Some((scheme, authority, usual)),
    }
}

/// A run that is to happen.
pub(crate) struct ManagerRun<'a> {
    pub(crate) host: &'a StoreHost,
    pub(crate) program: &'a str,
    pub(crate) args: Vec<OsString>,
    pub(crate) grants: &'a Grants,
    pub(crate) cwd: &'a Path,
}

impl ManagerRun<'_> {
    /// Runs it; what it printed.
    pub(crate) fn output(self) -> Result<String, ManagerError> {
        let program = self.program.to_owned();
        let unstarted = |why: String| ManagerError::NotStarted { program: program.clone(), why };
        let granted = CapabilitySet::new(self.grants.0.iter().map(String::as_str));
        let granted = granted.map_err(|findings| unstarted(findings.to_string()))?;
        let plan = HostPlanner::new(self.host.facts.clone()).authority_plan("resolve", granted.authority());
        let plan = plan.map_err(|why| unstarted(why.to_string()))?;
        let (stdio, pipes) = Pipes::open().map_err(|fault| unstarted(fault.to_string()))?;
        let command = Command {
            program: self.program.into(),
            args: self.args,
            cwd: Some(self.cwd.to_owned()),
            env: BTreeMap::new(),
            stdio,
        };
        let options = Options {
            home: self.host.home.clone(),
            watch: Watch::Nothing,
            search: self.host.search.clone(),
            ..Options::default()
        };
        let recorder = (self.host.recorder)().map_err(unstarted)?;
        let launch =
            Launch::new(&plan, command, recorder).with_options(options).with_names(self.host.names.clone());
        let ready = launch.prepare().map_err(|refusal| unstarted(refusal.to_string()))?;
        let mut launched = ready.start().map_err(|error| unstarted(error.to_string()))?;
        drop(pipes.stdin);
        let (printed, errors) = (collect(pipes.stdout), collect(pipes.stderr));
        let ended = launched.wait_until(Instant::now() + PATIENCE);
        launched.kill();
        let refused: Vec<String> =
            launched.refusals().iter().map(|event| format!("{} is not granted", event.host())).collect();
        let how = match &ended {
            Ok(Some(exit)) => exit.to_string(),
            Ok(None) => "took too long".to_owned(),
            Err(fault) => fault.to_string(),
        };
        launched.finish(&how).map_err(|error| unstarted(error.to_string()))?;
        let (printed, errors) = (joined(printed), joined(errors));
        if matches!(ended, Ok(Some(Exit::Code(0)))) {
            return Ok(printed);
        }
        let said: Vec<&str> = errors.lines().chain(refused.iter().map(String::as_str)).collect();
        let said = said.get(said.len().saturating_sub(12)..).unwrap_or_default().join("\n");
        Err(ManagerError::Failed { program, how, said })
    }
}

fn collect(from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let (mut from, mut kept) = (from, Vec::new());
        // What is past the limit is read and dropped, so that the program does not wait.
        drop(from.by_ref().take(MOST).read_to_end(&mut kept));
        drop(std::io::copy(&mut from, &mut std::io::sink()));
        kept
    })
}

fn joined(reader: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
}

/// A fetched package, still in its temporary directory.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) version: String,
    /// What the registry says that the archive's hash is.
    pub(crate) integrity: String,
    /// The directory that is kept.
    pub(crate) tree: PathBuf,
    /// Its programs, and where each lies in that directory.
    pub(crate) programs: BTreeMap<String, PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_registries() {
        assert_eq!(host_of("https://registry.test/"), Some(("https", "registry.test", 443)));
        assert_eq!(
            host_of("https://user:word@registry.test:8443/a?b"),
            Some(("https", "registry.test", 8443))
        );
        assert_eq!(host_of("http://proxy.test:3128"), Some(("http", "proxy.test", 3128)));
        assert_eq!(host_of("registry.test"), None);
    }
}
