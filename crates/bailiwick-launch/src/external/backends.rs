//! Other backends: there, and really confining.
//!
//! Each is made to run a program that says which pid namespace it is in. Ours, or no answer, means that the backend
//! is not usable here: firejail inside a pid namespace runs its command unconfined and reports success.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bailiwick_confine::host::{Ability, Lack, system_program};
use serde_json::json;

/// A program that can hold a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// bubblewrap.
    Bwrap,
    /// An OCI runtime.
    Runc,
    /// An OCI runtime.
    Crun,
    /// firejail.
    Firejail,
}

impl Backend {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Bwrap, Self::Runc, Self::Crun, Self::Firejail];

    /// The program's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bwrap => "bwrap",
            Self::Runc => "runc",
            Self::Crun => "crun",
            Self::Firejail => "firejail",
        }
    }

    /// Whether it is there and confines.
    ///
    /// # Errors
    /// What was seen, and what to do about it.
    pub fn probe(self) -> Result<String, Lack> {
        let name = self.as_str();
        let missing =
            || Lack::new(format!("no `{name}`"), format!("install the package `{}`", self.package()));
        let program = system_program(name).ok_or_else(missing)?;
        let own = fs::read_link("/proc/self/ns/pid")
            .map_err(|e| Lack::new(format!("`/proc`: {e}"), "mount `/proc`"))?;
        let seen = self.run(&program).map_err(|why| Lack::new(why, self.fix()))?;
        if seen.starts_with("pid:[") && Path::new(&seen) != own {
            return Ok(program.display().to_string());
        }
        Err(Lack::new(format!("`{name}` ran a program without confining it"), self.fix()))
    }

    /// All of them, tried.
    pub fn abilities() -> impl Iterator<Item = Ability> {
        Self::ALL.into_iter().map(|backend| Ability { name: backend.as_str(), result: backend.probe() })
    }

    const fn package(self) -> &'static str {
        match self {
            Self::Bwrap => "bubblewrap",
            Self::Runc | Self::Crun | Self::Firejail => self.as_str(),
        }
    }

    const fn fix(self) -> &'static str {
        match self {
            Self::Bwrap => "allow user namespaces, see `namespaces`",
            Self::Runc | Self::Crun => "its message says what it misses; it needs user namespaces or root",
            Self::Firejail => "start it outside any container or pid namespace, as a user it is enabled for",
        }
    }

    /// The pid namespace that a program confined by it is in.
    fn run(self, program: &Path) -> Result<String, String> {
        let readlink = system_program("readlink").ok_or("no `readlink` to try it with")?;
        let mut command = Command::new(program);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        match self {
            Self::Bwrap => {
                command.args(["--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]);
                command.args(["--ro-bind", "/", "/", "--proc", "/proc", "--"]).arg(readlink);
                command.arg("/proc/self/ns/pid");
                answer(&mut command)
            }
            Self::Firejail => {
                command.args(["--quiet", "--noprofile", "--caps.drop=all", "--"]).arg(readlink);
                command.arg("/proc/self/ns/pid");
                answer(&mut command)
            }
            Self::Runc | Self::Crun => {
                let bundle = Bundle::make(&readlink)?;
                command.args(["--root"]).arg(bundle.directory.join("state"));
                command.args(["run", "--bundle"]).arg(&bundle.directory).arg(bundle.name());
                answer(&mut command)
            }
        }
    }
}

/// What a command prints, within a few seconds.
fn answer(command: &mut Command) -> Result<String, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir("/");
    let mut child = command.spawn().map_err(|fault| fault.to_string())?;
    let ended = wait(&mut child, Duration::from_secs(5));
    if !ended {
        let _ = child.kill();
    }
    let output = child.wait_with_output().map_err(|fault| fault.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match (ended, output.status.success()) {
        (true, true) => Ok(text(&output.stdout)),
        (true, false) => Err(text(&output.stderr).lines().last().unwrap_or("it failed").to_owned()),
        (false, _) => Err("it did not end within five seconds".to_owned()),
    }
}

/// Whether a child ends in time.
fn wait(child: &mut Child, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Ok(Some(_)) => return true,
            Err(_) => return false,
        }
    }
    false
}

/// A directory with a minimal container, removed when dropped.
struct Bundle {
    directory: PathBuf,
}

impl Bundle {
    fn make(readlink: &Path) -> Result<Self, String> {
        let directory = private_directory(Path::new("/tmp")).map_err(|fault| fault.to_string())?;
        let bundle = Self { directory };
        let config = config(readlink).to_string();
        fs::create_dir(bundle.directory.join("rootfs")).map_err(|fault| fault.to_string())?;
        fs::write(bundle.directory.join("config.json"), config).map_err(|fault| fault.to_string())?;
        Ok(bundle)
    }

    /// The container's name: the directory's, which is not used twice.
    fn name(&self) -> &std::ffi::OsStr {
        self.directory.file_name().unwrap_or_default()
    }
}

impl Drop for Bundle {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A new directory that only this user can look into, with a name that nobody can guess.
pub(super) fn private_directory(within: &Path) -> std::io::Result<PathBuf> {
    let mut random = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let directory = within.join(format!("bailiwick-{name}"));
    fs::DirBuilder::new().mode(0o700).create(&directory)?;
    Ok(directory)
}

/// A container that shows the host's programs, read-only, in namespaces of its own.
fn config(readlink: &Path) -> serde_json::Value {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let bind = |path: &&str| Path::new(path).exists();
    let mut mounts: Vec<serde_json::Value> = ["/usr", "/bin", "/lib", "/lib64"]
        .iter()
        .filter(|path| bind(path))
        .map(|path| json!({"destination": path, "source": path, "type": "bind", "options": ["rbind", "ro"]}))
        .collect();
    mounts.push(json!({"destination": "/proc", "source": "proc", "type": "proc"}));
    let namespaces: Vec<_> =
        ["user", "pid", "mount", "ipc", "uts", "network"].iter().map(|kind| json!({"type": kind})).collect();
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0}, "cwd": "/", "noNewPrivileges": true,
            "args": [readlink.display().to_string(), "/proc/self/ns/pid"],
            "env": ["PATH=/usr/bin:/bin"],
        },
        "root": {"path": "rootfs"},
        "mounts": mounts,
        "linux": {
            "namespaces": namespaces,
            "uidMappings": [{"containerID": 0, "hostID": user, "size": 1}],
            "gidMappings": [{"containerID": 0, "hostID": group, "size": 1}],
        },
    })
}
