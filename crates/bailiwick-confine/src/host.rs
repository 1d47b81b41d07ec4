//! What this host can hold: every answer comes from trying it, none from a version number or a file's presence.
//!
//! An ability that is missing says why and what a person can do about it. Probes leave nothing behind.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bailiwick_policy::enforcement::{Held, Level};
use bailiwick_policy::limits::Limits;
use bailiwick_policy::plan::PROGRAM_DIRECTORIES;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::net::{AddressFamily, SocketType, socket};
use serde_json::{Value, json};

use crate::cgroup::Places;
use crate::landlock;
use crate::limits::{Applied, Situation};
use crate::seccomp::{Asking, Needs, program};
use crate::sys::before_exec::before_exec;
use crate::sys::probe::{NAMESPACES, in_child, unshare};
use crate::sys::{notify, seccomp};

pub use bailiwick_layout::places::{Unseen, located, located_to_mount, with_locked, with_own};

/// What was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ability {
    /// What it is.
    pub name: &'static str,
    /// How it works here, or why it does not.
    pub result: Result<String, Lack>,
}

/// Why something does not work here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// What was seen.
    pub why: String,
    /// What a person can do about it.
    pub fix: String,
}

/// What this host can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abilities {
    all: Vec<Ability>,
}

impl Abilities {
    /// Tries everything: some tens of milliseconds.
    #[must_use]
    pub fn probe() -> Self {
        let mut all = vec![
            Ability { name: "namespaces", result: namespaces() },
            Ability { name: "mounts", result: mounts() },
            Ability { name: "proc", result: proc() },
            Ability { name: "landlock", result: landlock() },
            Ability { name: "seccomp", result: filter() },
            Ability { name: "notify", result: notify() },
        ];
        all.extend(limits());
        all.push(Ability { name: "nft", result: nft() });
        Self { all }
    }

    /// The same with what was tried elsewhere.
    #[must_use]
    pub fn with(mut self, more: impl IntoIterator<Item = Ability>) -> Self {
        self.all.extend(more);
        self
    }

    /// Everything that was tried, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = &Ability> {
        self.all.iter()
    }

    /// Whether something works.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.all.iter().any(|ability| ability.name == name && ability.result.is_ok())
    }

    /// For machines: an object by name.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let entry = |ability: &Ability| {
            let value = match &ability.result {
                Ok(how) => json!({ "works": true, "how": how }),
                Err(Lack { why, fix }) => json!({ "works": false, "why": why, "fix": fix }),
            };
            (ability.name.to_owned(), value)
        };
        Value::Object(self.all.iter().map(entry).collect())
    }
}

impl Lack {
    /// What was seen, and what a person can do about it.
    pub fn new(why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { why: why.into(), fix: fix.into() }
    }
}

fn all_namespaces() -> libc::c_int {
    NAMESPACES.iter().fold(0, |all, (_, flag)| all | flag)
}

fn namespaces() -> Result<String, Lack> {
    let Err(errno) = in_child(all_namespaces(), || Ok(())) else {
        let names: Vec<&str> = NAMESPACES.iter().map(|(name, _)| *name).collect();
        return Ok(names.join(", "));
    };
    // A user namespace is what allows the others, so it is asked for with each.
    let refused =
        |(_, flag): &&(&str, libc::c_int)| in_child(*flag | libc::CLONE_NEWUSER, || Ok(())).is_err();
    let refused: Vec<&str> = NAMESPACES.iter().filter(refused).map(|(name, _)| *name).collect();
    let which = if refused.is_empty() { "all at once".to_owned() } else { refused.join(", ") };
    Err(Lack::new(format!("{which}: {errno}"), namespace_fix(errno.raw_os_error())))
}

/// What usually stands in the way, by what the kernel said and what its switches say.
#[must_use]
pub fn namespace_fix(errno: i32) -> String {
    let errno = Errno::from_raw_os_error(errno);
    let is = |switch: &str, value: &str| {
        std::fs::read_to_string(format!("/proc/sys/{switch}")).is_ok_and(|text| text.trim() == value)
    };
    let set = |switch: &str, value: &str| format!("as root: `sysctl -w {switch}={value}`");
    if is("kernel/unprivileged_userns_clone", "0") {
        set("kernel.unprivileged_userns_clone", "1")
    } else if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        set("kernel.apparmor_restrict_unprivileged_userns", "0")
    } else if errno == Errno::NOSPC || is("user/max_user_namespaces", "0") {
        set("user.max_user_namespaces", "10000")
    } else {
        "in a container, start it with a seccomp profile that allows namespaces \
         (docker: `--security-opt seccomp=unconfined`)"
            .to_owned()
    }
}

/// Makes every mount private to this namespace.
fn leave_propagation() -> Result<(), Errno> {
    mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
}

fn mounts() -> Result<String, Lack> {
    let tried = in_child(all_namespaces(), || {
        leave_propagation()?;
        mount(c"none", c"/dev", c"tmpfs", MountFlags::NOSUID, None)
    });
    let fix = |errno: Errno| {
        Lack::new(format!("mount in a user namespace: {errno}"), namespace_fix(errno.raw_os_error()))
    };
    tried.map(|()| "a root of its own".to_owned()).map_err(fix)
}

fn proc() -> Result<String, Lack> {
    let tried = in_child(all_namespaces(), || {
        leave_propagation()?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount(c"proc", c"/proc", c"proc", flags, None)
    });
    let lack = |errno| {
        Lack::new(
            format!("a new proc: {errno}; parts of this `/proc` are masked, as in containers"),
            "start the container with an unmasked `/proc` (docker: `--security-opt systempaths=unconfined`)",
        )
    };
    tried.map(|()| "a proc of its own".to_owned()).map_err(lack)
}

fn landlock() -> Result<String, Lack> {
    let lack = |fault: landlock::Fault| {
        Lack::new(fault.to_string(), "boot Linux 6.12 or newer with `lsm=landlock,…` on its command line")
    };
    let level = landlock::Level::of_kernel().map_err(lack)?;
    let held = in_child(0, || {
        rustix::thread::set_no_new_privs(true)?;
        let ruleset = landlock::Ruleset::build(&[]).map_err(landlock::Fault::errno)?;
        ruleset.restrict_self()?;
        // Without any rule nothing can be opened.
        match rustix::fs::open(c"/", OFlags::RDONLY, Mode::empty()) {
            Err(Errno::ACCESS) => Ok(()),
            Ok(_) => Err(Errno::NOTSUP),
            Err(errno) => Err(errno),
        }
    });
    held.map_err(|errno| lack(landlock::Fault::Create(errno)))?;
    let gaps: Vec<&str> = level.missing().collect();
    Ok(if gaps.is_empty() { level.to_string() } else { format!("{level}; {}", gaps.join(", ")) })
}

fn filter() -> Result<String, Lack> {
    let held = in_child(0, || {
        rustix::thread::set_no_new_privs(true)?;
        seccomp::install(program(Needs::default()), false)?;
        match socket(AddressFamily::UNIX, SocketType::STREAM, None) {
            Err(Errno::PERM) => Ok(()),
            Ok(_) => Err(Errno::NOTSUP),
            Err(errno) => Err(errno),
        }
    });
    let lack = |errno| Lack::new(format!("filter: {errno}"), "a kernel built with CONFIG_SECCOMP_FILTER");
    held.map(|()| "filter in force".to_owned()).map_err(lack)
}

fn notify() -> Result<String, Lack> {
    let held = in_child(0, || {
        rustix::thread::set_no_new_privs(true)?;
        let asking = Asking { unix_mediated: true, guarded: true, ..Asking::default() };
        let filter = asking.program().ok_or(Errno::NOTSUP)?;
        let listener = seccomp::install(filter, true)?.ok_or(Errno::NOTSUP)?;
        notify::can_replace_descriptors(listener)
    });
    let lack = |errno| Lack::new(format!("user notification: {errno}"), "Linux 5.9 or newer");
    held.map(|()| "unix sockets by name".to_owned()).map_err(lack)
}

/// Which limits are held, by what.
fn limits() -> Vec<Ability> {
    let asked = Limits { memory: Some(1 << 30), pids: Some(100), cpu_milli: Some(1000), ..Limits::default() };
    let applied = Applied::prepare(&asked, &Places::find(), Situation::of_sandbox());
    let ability = |(name, held): &(&'static str, Held)| {
        let fix = "delegate the controllers to this user: `systemd-run --user --scope -p Delegate=yes …`";
        let works = held.level == Level::Kernel;
        let result = if works { Ok(held.why.clone()) } else { Err(Lack::new(held.why.clone(), fix)) };
        Ability { name: limit_name(name), result }
    };
    applied.each().iter().map(ability).collect()
}

fn limit_name(name: &str) -> &'static str {
    match name {
        "memory" => "limit-memory",
        "pids" => "limit-pids",
        "cpu" => "limit-cpu",
        _ => "limit-file-size",
    }
}

fn nft() -> Result<String, Lack> {
    let Some(nft) = system_program("nft") else {
        return Err(Lack::new("no `nft`", "install nftables; without it a rule for any port is refused"));
    };
    let mut command = Command::new(nft);
    command.args(["add", "table", "inet", "bailiwick"]).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let root = format!("0 {} 1", rustix::process::geteuid().as_raw());
    before_exec(&mut command, move || {
        unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET)?;
        // Exec keeps the capabilities of the namespace's root alone.
        let map = rustix::fs::open(c"/proc/self/uid_map", OFlags::WRONLY, Mode::empty())?;
        rustix::io::write(&map, root.as_bytes()).map(|_| ())
    });
    let lack =
        |why: String| Lack::new(why, "a kernel with nf_tables; without it a rule for any port is refused");
    match command.status() {
        Ok(status) if status.success() => Ok("redirects in a network namespace of its own".to_owned()),
        Ok(status) => Err(lack(format!("`nft` in a network namespace: {status}"))),
        Err(fault) => Err(lack(format!("`nft` in a network namespace: {fault}"))),
    }
}

/// A program of the system, by name.
#[must_use]
pub fn system_program(name: &str) -> Option<PathBuf> {
    let directories = PROGRAM_DIRECTORIES.iter().map(|directory| Path::new(directory).join(name));
    directories.into_iter().find(|path| path.is_file())
}
