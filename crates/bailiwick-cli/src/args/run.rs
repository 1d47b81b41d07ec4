//! Arguments of `run`, `doctor` and `demo`.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use bailiwick_egress::Resolver;
use bailiwick_guard::FixedHosts;
use bailiwick_policy::enforcement::Requirement;
use clap::{Args, ValueEnum};

use super::AnswerFormat;
use crate::facts::Setting;

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick run -- /bin/true
  bailiwick run --cap fs:read,write:$PWD/** -- git status
  bailiwick run --cap fs:read,write:$PWD/** --cap net:connect:registry.npmjs.org:443 --net-log -- npm install
  bailiwick run --manifest server.toml --timeout 30s --report status.json -- node server.js

The command itself is granted by being named; anything it starts needs --cap exec:spawn:NAME. Nothing of
the caller's environment is visible but PATH, HOME, LANG and TERM, with values of the sandbox's own.
Exit codes: the command's own; 125 refused or not confined · 126 not executable · 127 not found")]
pub(crate) struct Run {
    /// What the command may touch, such as `fs:read:/data`; may be repeated.
    #[arg(long = "cap", value_name = "CAPABILITY")]
    pub(crate) caps: Vec<String>,
    /// A manifest or snapshot that says what it may touch; `--cap` adds to it.
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// Only what this tool of the manifest may touch.
    #[arg(long, value_name = "NAME", requires = "manifest")]
    pub(crate) tool: Option<String>,
    /// Give a path variable of the manifest its value; may be repeated.
    #[arg(long = "set", value_name = "NAME=PATH")]
    pub(crate) settings: Vec<Setting>,
    /// Which sandbox holds it.
    #[arg(long, value_enum, default_value = "native")]
    pub(crate) backend: Backend,
    /// Refuse to run unless an axis is held at least so, such as `net=kernel` or `fs=kernel:exact`; may be repeated.
    #[arg(long = "require", value_name = "AXIS=LEVEL")]
    pub(crate) requirements: Vec<Requirement>,
    /// Write what was really enforced there, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// End the command and all it started after this time, such as `30s`.
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Time>,
    /// End the command and all it started when the process that started this one ends.
    #[arg(long)]
    pub(crate) die_with_parent: bool,
    /// Memory for the command and all it starts, such as `512M`.
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Size>,
    /// Processes and threads.
    #[arg(long, value_name = "COUNT")]
    pub(crate) pids: Option<u64>,
    /// Processors, such as `1.5`.
    #[arg(long, value_name = "COUNT")]
    pub(crate) cpu: Option<Thousandths>,
    /// The largest file that may be written.
    #[arg(long, value_name = "SIZE")]
    pub(crate) file_size: Option<Size>,
    /// Say on stderr whom the command reaches and whom it may not.
    #[arg(long)]
    pub(crate) net_log: bool,
    #[command(flatten)]
    pub(crate) names: NameOptions,
    /// Record the run in the journal there, or in the usual one.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    pub(crate) journal: Option<Option<PathBuf>>,
    /// Run without any sandbox. Recorded in the journal.
    #[arg(long, conflicts_with_all = ["backend", "requirements"])]
    pub(crate) unconfined_i_accept_the_risk: bool,
    /// The command and its arguments.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// How names of the network are found.
#[derive(Debug, Args)]
pub(crate) struct NameOptions {
    /// Ask this name server instead of the system's resolver.
    #[arg(long, value_name = "ADDRESS")]
    dns: Option<NameServer>,
    /// Take this address for a name and ask nobody; may be repeated.
    #[arg(long = "hosts", value_name = "NAME=IP")]
    hosts: Vec<HostEntry>,
}

impl NameOptions {
    /// Who is asked for addresses.
    pub(crate) fn resolver(&self) -> Resolver {
        self.dns.map_or_else(Resolver::default, |server| Resolver::Server(server.0))
    }

    /// The addresses that names have whatever a name server says.
    pub(crate) fn hosts(&self) -> FixedHosts {
        let mut hosts = FixedHosts::new();
        for entry in &self.hosts {
            hosts.entry(entry.name.as_str().into()).or_default().push(entry.address);
        }
        hosts
    }
}

/// Which sandbox holds a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
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
  bailiwick doctor --format json

Exit codes: 0 the default floor is reached · 1 it is not · 2 usage")]
pub(crate) struct Doctor {
    /// How to print what was found.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: AnswerFormat,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  bailiwick demo

Everything happens in a folder of its own under the temporary folder, which is removed afterwards.")]
pub(crate) struct Demo {
    /// Keep the folder, to look at the journal.
    #[arg(long)]
    pub(crate) keep: bool,
}

/// A duration: `30s`, `500ms`, `5m`, `1h`; a plain number is seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time(pub(crate) Duration);

/// A size: `64K`, `512M`, `2G`; a plain number is bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size(pub(crate) u64);

/// A number with at most three decimals, in thousandths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Thousandths(pub(crate) u64);

/// One `--hosts NAME=IP`.
#[derive(Debug, Clone)]
pub(crate) struct HostEntry {
    pub(crate) name: String,
    pub(crate) address: IpAddr,
}

/// An address, with a port or with 53.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameServer(pub(crate) SocketAddr);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
        let value = with_unit(text, &units, 1_000).filter(|value| *value > 0);
        value
            .map(|value| Self(Duration::from_millis(value)))
            .ok_or("write a time such as `30s` or `500ms`".to_owned())
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value = with_unit(text, &[("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)], 1);
        value.filter(|value| *value > 0).map(Self).ok_or("write a size such as `512M` or `2G`".to_owned())
    }
}

impl FromStr for Thousandths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = format!("{whole}{part:0<3}");
        let value = digits.parse::<u64>().ok().filter(|value| *value > 0 && part.len() <= 3);
        let clean = digits.bytes().all(|byte| byte.is_ascii_digit());
        value.filter(|_| clean).map(Self).ok_or("write a number such as `1` or `0.5`".to_owned())
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

fn with_unit(text: &str, units: &[(&str, u64)], plain: u64) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let factor = if unit.is_empty() { Some(plain) } else { factor };
    number.parse::<u64>().ok()?.checked_mul(factor?)
}
