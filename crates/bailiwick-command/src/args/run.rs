//! Arguments of `run`, `doctor` and `demo`.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

#[cfg(target_os = "linux")]
use bailiwick_launch::{FixedHosts, Resolver};
use bailiwick_manifest::units;
use bailiwick_policy::enforcement::Requirement;
use clap::{Args, ValueEnum};

use super::AnswerFormat;
use super::secret::SecretOptions;
use crate::facts::Setting;

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick run -- /bin/true
  bailiwick run --cap fs:read,write:$PWD/** -- git status
  bailiwick run --cap fs:read,write:$PWD/** --cap net:connect:registry.npmjs.org:443 --net-log -- npm install
  bailiwick run --tell -- git log                 which files is it refused?
  bailiwick run --manifest server.toml --timeout 30s --report status.json -- node server.js
  bailiwick run --manifest server.toml --cwd ~/project
  bailiwick run --dry-run --cap fs:read,write:$PWD -- make          what would it change?
  bailiwick run --cap fs:read:/opt/models?code=true -- python3 serve.py

The command itself is granted by being named, with the code that it brings (a virtual environment, the modules
beside an entry point); anything it starts needs --cap exec:spawn:NAME. It is found as your shell would find it;
names in manifests are found in the system's directories and `[programs] path` of config.toml. Nothing of the caller's
environment is visible but PATH, HOME, LANG, TERM and USER, with values of the sandbox's own.
Exit codes: the command's own; 125 refused or not confined · 126 not executable · 127 not found")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Run {
    /// What the command may touch, such as `fs:read:/data`; may be repeated.
    #[arg(long = "cap", value_name = "CAPABILITY")]
    pub caps: Vec<String>,
    /// A manifest or snapshot that says what it may touch; `--cap` adds to it.
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,
    /// Only what this tool of the manifest may touch.
    #[arg(long, value_name = "NAME", requires = "manifest")]
    pub tool: Option<String>,
    /// Give a path variable of the manifest its value; may be repeated.
    #[arg(long = "set", value_name = "NAME=PATH")]
    pub settings: Vec<Setting>,
    /// Which sandbox holds it.
    #[arg(long, value_enum, default_value = "native")]
    pub backend: Backend,
    /// Refuse to run unless an axis is held at least so, such as `net=kernel` or `fs=kernel:exact`; may be repeated.
    #[arg(long = "require", value_name = "AXIS=LEVEL")]
    pub requirements: Vec<Requirement>,
    /// Write what was really enforced there, as JSON.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// End the command and all it started after this time, such as `30s`.
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<Time>,
    /// End the command and all it started when the process that started this one ends.
    #[arg(long)]
    pub die_with_parent: bool,
    /// Memory for the command and all it starts, such as `512M`.
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// Processes and threads.
    #[arg(long, value_name = "COUNT")]
    pub pids: Option<u64>,
    /// Processors, such as `1.5`.
    #[arg(long, value_name = "COUNT")]
    pub cpu: Option<Thousandths>,
    /// The largest file that may be written.
    #[arg(long, value_name = "SIZE")]
    pub file_size: Option<Size>,
    /// Watch every file that the command looks for; if it fails, name each that it was refused and the host has, with
    /// the `--cap` for just that. Slower; `--backend native` only.
    #[arg(long)]
    pub tell: bool,
    /// Say on stderr whom the command reaches and whom it may not.
    #[arg(long)]
    pub net_log: bool,
    /// How names are resolved.
    #[command(flatten)]
    pub names: NameOptions,
    /// Where the values of secrets come from.
    #[command(flatten)]
    pub secrets: SecretOptions,
    /// Record the run in a session of its own, in the journal there or in the usual one, instead of the shared session
    /// of the day.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    pub journal: Option<Option<PathBuf>>,
    /// Record nothing.
    #[arg(long, conflicts_with = "journal")]
    pub no_journal: bool,
    /// Run without any sandbox. Recorded in the journal.
    #[arg(long, conflicts_with_all = ["backend", "requirements", "no_journal"])]
    pub unconfined_i_accept_the_risk: bool,
    /// Where the command starts, instead of the current directory.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Keep what the command writes to directories in a copy-on-write layer: nothing on the host changes. Afterwards the
    /// changes are listed on stderr: A added, M modified, D deleted.
    #[arg(long, conflicts_with = "unconfined_i_accept_the_risk")]
    pub dry_run: bool,
    /// After a dry run that succeeded, carry its changes over to the host.
    #[arg(long, requires = "dry_run")]
    pub commit: bool,
    /// The command and its arguments; without it the manifest's own is run.
    #[arg(required_unless_present = "manifest", last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl Run {
    /// The same command line for a server that a manifest holds and `wrap` speaks to.
    pub const fn for_server(
        manifest: Option<PathBuf>,
        settings: Vec<Setting>,
        names: NameOptions,
        secrets: SecretOptions,
        command: Vec<OsString>,
    ) -> Self {
        Self {
            caps: Vec::new(),
            manifest,
            tool: None,
            settings,
            backend: Backend::Native,
            requirements: Vec::new(),
            report: None,
            timeout: None,
            die_with_parent: false,
            memory: None,
            pids: None,
            cpu: None,
            file_size: None,
            tell: false,
            net_log: false,
            names,
            secrets,
            journal: None,
            no_journal: true,
            unconfined_i_accept_the_risk: false,
            cwd: None,
            dry_run: false,
            commit: false,
            command,
        }
    }
}

/// How names of the network are found.
#[derive(Debug, Clone, Default, Args)]
pub struct NameOptions {
    /// Ask this name server instead of the system's resolver.
    #[arg(long, value_name = "ADDRESS")]
    dns: Option<NameServer>,
    /// Use this address for a name instead of asking a name server; may be repeated.
    #[arg(long = "hosts", value_name = "NAME=IP")]
    hosts: Vec<HostEntry>,
}

#[cfg(target_os = "linux")]
impl NameOptions {
    /// Who is asked for addresses.
    pub fn resolver(&self) -> Resolver {
        self.dns.map_or_else(Resolver::default, |server| Resolver::Server(server.0))
    }

    /// The addresses that names have whatever a name server says.
    pub fn hosts(&self) -> FixedHosts {
        let mut hosts = FixedHosts::new();
        for entry in &self.hosts {
            hosts.entry(entry.name.as_str().into()).or_default().push(entry.address);
        }
        hosts
    }
}

/// Which sandbox holds a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// Namespaces, Landlock and seccomp, by Bailiwick itself.
    Native,
    /// bubblewrap.
    Bwrap,
    /// runc or crun.
    Oci,
    /// firejail.
    Firejail,
    /// Landlock and seccomp alone, where there are no user namespaces.
    Landlock,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick doctor
  bailiwick doctor --agents                       do the hooks of my agents answer?
  bailiwick doctor --format json

Exit codes: 0 the default floor is reached, or every hook answers · 1 not so · 2 usage")]
pub struct Doctor {
    /// Instead of the host, try the hooks in agents' settings: each command as it is written there.
    #[arg(long)]
    pub agents: bool,
    /// How to print what was found.
    #[arg(long, value_enum, default_value = "text")]
    pub format: AnswerFormat,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  bailiwick demo

First a tool that was granted a few things, then an MCP server behind `bailiwick wrap`: the filesystem server of the
protocol if it is here, else a small one of ours. Nothing is fetched. Everything happens in a directory of its own under the
temporary directory, which is removed afterwards.")]
pub struct Demo {
    /// Be the demonstration's own MCP server, which is after this file.
    #[arg(long, hide = true, value_name = "FILE")]
    pub as_server: Option<PathBuf>,
    /// Keep the directory, to look at the journal.
    #[arg(long)]
    pub keep: bool,
}

/// A duration: `30s`, `500ms`, `5m`, `1h`; a plain number is seconds.
#[derive(Debug, Clone, Copy)]
pub struct Time(pub Duration);

/// A size: `64K`, `512M`, `2G`; a plain number is bytes.
#[derive(Debug, Clone, Copy)]
pub struct Size(pub u64);

/// A number with at most three decimals, in thousandths.
#[derive(Debug, Clone, Copy)]
pub struct Thousandths(pub u64);

/// One `--hosts NAME=IP`.
#[derive(Debug, Clone)]
pub struct HostEntry {
    /// The name.
    pub name: String,
    /// Its address.
    pub address: IpAddr,
}

/// An address, with a port or with 53.
#[derive(Debug, Clone, Copy)]
pub struct NameServer(pub SocketAddr);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value = units::duration_ms(text).filter(|value| *value > 0);
        value
            .map(|value| Self(Duration::from_millis(value)))
            .ok_or("write a time such as `30s` or `500ms`".to_owned())
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        units::bytes(text)
            .filter(|value| *value > 0)
            .map(Self)
            .ok_or("write a size such as `512M` or `2G`".to_owned())
    }
}

impl FromStr for Thousandths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value = units::thousandths(text).filter(|value| *value > 0);
        value.map(Self).ok_or("write a number such as `1` or `0.5`".to_owned())
    }
}

impl FromStr for HostEntry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, address) = text.split_once('=').ok_or("write NAME=IP")?;
        let address = address.parse().map_err(|_| format!("`{address}` is not an IP address"))?;
        match bailiwick_policy::net::Host::new(name) {
            Ok(bailiwick_policy::net::Host::Name(name)) => Ok(Self { name: name.into_string(), address }),
            Ok(bailiwick_policy::net::Host::Ip(_)) => Err(format!("`{name}` is an address already")),
            Err(finding) => Err(finding.message().to_owned()),
        }
    }
}

impl FromStr for NameServer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address = text.parse::<SocketAddr>().ok();
        let address = address.or_else(|| text.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 53)));
        address.map(Self).ok_or(format!("`{text}` is not an address such as `9.9.9.9` or `127.0.0.1:5353`"))
    }
}
