//! Arguments of `enroll` and `fleet`.

use std::path::PathBuf;

use bailiwick_policy::digest::Digest;
use clap::{Args, Subcommand, ValueEnum};

use super::AnswerFormat;
use super::run::Time;

/// Arguments of `enroll`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick enroll --token-file token
  bailiwick fleet token --role machine | ssh box bailiwick enroll --token-file -
  bailiwick enroll --hub https://hub-1.example:8443 --hub https://hub-2.example:8443 --token-file token
  bailiwick enroll --renew
  bailiwick enroll --leave

The token says whether this machine joins, or a person: an approver or an admin. The key is drawn here and never sent. A machine's
enrolment is in `fleet` beside your settings, or in /etc/bailiwick/fleet if that directory is there; a person's is in `fleet/person`.
Exit codes: 0 enrolled · 1 refused, or enrolled already · 2 usage · 3 the token cannot be read · 5 fault")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Enroll {
    /// The file with the enrolment token; `-` is stdin.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["renew", "leave"])]
    pub(crate) token_file: Option<PathBuf>,
    /// A hub, instead of the one that the token names; may be repeated: where one does not answer, the next is asked.
    #[arg(long = "hub", value_name = "URL", requires = "token_file")]
    pub(crate) hubs: Vec<String>,
    /// What people call this machine; its host name if absent.
    #[arg(long, requires = "token_file")]
    pub(crate) name: Option<String>,
    /// Let manifests of the fleet's log grant what this machine's own manifests do not.
    #[arg(long, requires = "token_file")]
    pub(crate) authoritative: bool,
    /// Enrol anew, in place of the enrolment that is there.
    #[arg(long, requires = "token_file")]
    pub(crate) replace: bool,
    /// Get another certificate now. One that ends in 30 days is renewed without being asked.
    #[arg(long, conflicts_with_all = ["token_file", "leave"])]
    pub(crate) renew: bool,
    /// Leave the fleet: return leases, and forget the key.
    #[arg(long, conflicts_with = "token_file")]
    pub(crate) leave: bool,
    /// With `--renew` or `--leave`: the enrolment of the machine, or of the person.
    #[arg(long = "as", value_enum, default_value = "machine", value_name = "WHO")]
    pub(crate) who: Who,
}

/// Whose enrolment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Who {
    /// The machine's.
    Machine,
    /// The person's: an approver's or an admin's.
    Person,
}

/// Arguments of `fleet`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick fleet status
  bailiwick fleet approve                          the calls that wait, on all machines
  bailiwick fleet approve 5b0c…                    let one of them run, once
  bailiwick fleet revoke server notes --reason 'CVE-2026-1'
  bailiwick fleet publish bundle base --manifest notes=notes.toml --guardrails shell=guardrails.toml

`status`, `report` and `lease` are this machine's; the others need the enrolment of a person: an approver answers and reads, an
admin does everything. Exit codes: 0 ok · 1 refused, or something differs · 2 usage · 3 unreadable or invalid input ·
5 fault, such as no hub that answers")]
pub(crate) struct Fleet {
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

/// What to do in a fleet.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Show who this machine and this person are in the fleet, whether a hub answers, and what leases are held
    #[command(after_help = "Examples:\n  bailiwick fleet status\n  bailiwick fleet status --format json")]
    Status(Shown),
    /// List members and what they run
    #[command(
        after_help = "Examples:\n  bailiwick fleet ls\n  bailiwick fleet ls --label build --format json"
    )]
    Ls(Members),
    /// Show in what machines differ: package, surface, manifest, enforcement
    #[command(after_help = "Example:\n  bailiwick fleet diff --label build

Exit codes: 0 all are the same · 1 some differ · 2 usage · 5 fault")]
    Diff(Members),
    /// List the calls that wait for a person of the fleet, or answer one
    #[command(after_help = "Examples:
  bailiwick fleet approve
  bailiwick fleet approve ID
  bailiwick fleet approve ID --deny --remark 'not on a Friday'")]
    Approve(Approve),
    /// End something on every machine: a server, a package, a grant, a machine, everything
    #[command(after_help = "Examples:
  bailiwick fleet revoke package npm:left-pad@1.0.0 --reason 'malware'
  bailiwick fleet revoke machine ID --reason 'stolen'
  bailiwick fleet revoke everything --reason 'incident 7'
  bailiwick fleet lift ID --reason 'a fixed version is out'")]
    Revoke(Revoke),
    /// End the revocation of a package, a pin, a server or everything
    #[command(after_help = "Example:\n  bailiwick fleet lift ID --reason 'a fixed version is out'")]
    Lift(Lift),
    /// List budgets, or set one
    #[command(after_help = "Examples:
  bailiwick fleet budget
  bailiwick fleet budget search --unit calls --total 10000 --slice 50 --lease 10m

A manifest spends of it with `constraints = { fleet_budget = { name = \"search\" } }` at a tool.")]
    Budget(Budget),
    /// Show who changed what at the hub
    #[command(after_help = "Example:\n  bailiwick fleet audit -n 50 --format json")]
    Audit(Audit),
    /// Append rules, grants or reviewed surfaces to the fleet's log
    #[command(after_help = "Examples:
  bailiwick fleet publish bundle base --manifest notes=notes.toml
  bailiwick fleet publish bundle base --end
  bailiwick fleet publish grant more-notes --server notes --file grant.toml --label build --expires 7d
  bailiwick fleet publish pin notes --surface SHA256")]
    Publish(Publish),
    /// Make an enrolment token; it is printed once
    #[command(after_help = "Example:\n  bailiwick fleet token --role machine --label build > token")]
    Token(Token),
    /// Admit certificates of another authority by their SPIFFE id
    #[command(
        after_help = "Example:\n  bailiwick fleet admit spiffe://corp.example/box-7 --role machine --label build"
    )]
    Admit(Admit),
    /// Send this machine's inventory and journal heads now
    #[command(after_help = "Example:\n  bailiwick fleet report

While a server is wrapped this happens each minute without being asked.")]
    Report(Shown),
    /// Return this machine's leases
    #[command(after_help = "Example:\n  bailiwick fleet lease --return")]
    Lease(Lease),
}

/// How an answer is printed.
#[derive(Debug, Args)]
pub(crate) struct Shown {
    /// How to print.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: AnswerFormat,
}

/// Arguments of `fleet ls` and `fleet diff`.
#[derive(Debug, Args)]
pub(crate) struct Members {
    /// Only machines with this label.
    #[arg(long)]
    pub(crate) label: Option<String>,
    #[command(flatten)]
    pub(crate) shown: Shown,
}

/// Arguments of `fleet approve`.
#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// The call, as the list names it.
    pub(crate) id: Option<String>,
    /// Refuse it.
    #[arg(long, requires = "id")]
    pub(crate) deny: bool,
    /// A remark, which the machine's caller is told.
    #[arg(long, requires = "id", value_name = "TEXT")]
    pub(crate) remark: Option<String>,
    /// Do not ask.
    #[arg(long, requires = "id")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) shown: Shown,
}

/// What a revocation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RevokedKind {
    /// A grant of the log, by its id. For good.
    Grant,
    /// A token, by the SHA-256 of its bytes. For good.
    Token,
    /// A machine, by its id. For good.
    Machine,
    /// A package: REGISTRY:NAME or REGISTRY:NAME@VERSION.
    Package,
    /// What a server says of itself, by the SHA-256 of its surface.
    Pin,
    /// A server by its name.
    Server,
    /// Every server on every machine.
    Everything,
}

/// Arguments of `fleet revoke`.
#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// What kind of thing.
    #[arg(value_enum)]
    pub(crate) kind: RevokedKind,
    /// Which; nothing for `everything`.
    pub(crate) what: Option<String>,
    /// Why, for people.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Arguments of `fleet lift`.
#[derive(Debug, Args)]
pub(crate) struct Lift {
    /// The revocation, as `fleet revoke` printed it.
    pub(crate) revocation: String,
    /// Why, for people.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
}

/// What a budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unit {
    /// Calls.
    Calls,
    /// Seconds of running.
    Seconds,
    /// The smallest unit of a currency.
    Money,
}

/// Arguments of `fleet budget`.
#[derive(Debug, Args)]
pub(crate) struct Budget {
    /// The budget to set.
    #[arg(requires = "total")]
    pub(crate) name: Option<String>,
    /// What it counts.
    #[arg(long, value_enum, default_value = "calls", requires = "name")]
    pub(crate) unit: Unit,
    /// How much may be spent in all.
    #[arg(long, requires = "name", value_name = "COUNT")]
    pub(crate) total: Option<u64>,
    /// How much one lease has at most; a hundredth of the total if absent.
    #[arg(long, requires = "name", value_name = "COUNT")]
    pub(crate) slice: Option<u64>,
    /// How long a lease lasts: 10 seconds to 7 days.
    #[arg(long, default_value = "10m", requires = "name", value_name = "TIME")]
    pub(crate) lease: Time,
    #[command(flatten)]
    pub(crate) shown: Shown,
}

/// Arguments of `fleet audit`.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// How many of the last changes.
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "100", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) lines: u64,
    #[command(flatten)]
    pub(crate) shown: Shown,
}

/// Arguments of `fleet publish`.
#[derive(Debug, Args)]
pub(crate) struct Publish {
    #[command(subcommand)]
    pub(crate) what: Published,
}

/// For which machines.
#[derive(Debug, Args)]
pub(crate) struct ScopeOptions {
    /// Only for this machine, by its id; may be repeated. All machines if neither this nor `--label` is given.
    #[arg(long = "machine", value_name = "ID", conflicts_with = "labels")]
    pub(crate) machines: Vec<String>,
    /// Only for machines with this label; may be repeated.
    #[arg(long = "label", value_name = "LABEL")]
    pub(crate) labels: Vec<String>,
}

/// What is appended to the log.
#[derive(Debug, Subcommand)]
pub(crate) enum Published {
    /// Manifests and guardrails: they replace the bundle of the same name
    Bundle {
        /// The bundle's name.
        name: String,
        /// A manifest that no server of this name may exceed; may be repeated.
        #[arg(long = "manifest", value_name = "SERVER=FILE")]
        manifests: Vec<String>,
        /// A guardrails file; may be repeated.
        #[arg(long = "guardrails", value_name = "NAME=FILE")]
        guardrails: Vec<String>,
        /// End the bundle of this name.
        #[arg(long, conflicts_with_all = ["manifests", "guardrails"])]
        end: bool,
        #[command(flatten)]
        scope: ScopeOptions,
    },
    /// A grant for one server, which ends when it expires, is revoked, or machines cannot see the log any more
    Grant {
        /// The grant's id; a later grant of the same id replaces it.
        id: String,
        /// The server.
        #[arg(long)]
        server: String,
        /// A manifest, or a list of capabilities.
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
        /// When it ends, from now on; never if absent.
        #[arg(long, value_name = "TIME")]
        expires: Option<Time>,
        /// How old a machine's copy of the log may be; 15 minutes if absent.
        #[arg(long, value_name = "TIME")]
        max_stale: Option<Time>,
        #[command(flatten)]
        scope: ScopeOptions,
    },
    /// What a server says of itself, as a person reviewed it
    Pin {
        /// The server.
        server: String,
        /// The SHA-256 of its surface, as `fleet ls` shows it.
        #[arg(long, value_name = "SHA256")]
        surface: Digest,
        /// Its package: REGISTRY:NAME or REGISTRY:NAME@VERSION.
        #[arg(long)]
        package: Option<String>,
    },
}

/// What a member may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MemberRole {
    /// Ask for approvals and leases, report.
    Machine,
    /// Answer calls that wait.
    Approver,
    /// Everything but what machines do.
    Admin,
}

/// Arguments of `fleet token`.
#[derive(Debug, Args)]
pub(crate) struct Token {
    /// What the member may do.
    #[arg(long, value_enum)]
    pub(crate) role: MemberRole,
    /// A label of a machine; may be repeated.
    #[arg(long = "label", value_name = "LABEL")]
    pub(crate) labels: Vec<String>,
    /// How long it is good for, at most a week.
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub(crate) ttl: Time,
}

/// Arguments of `fleet admit`.
#[derive(Debug, Args)]
pub(crate) struct Admit {
    /// The SPIFFE id in their certificates.
    #[arg(value_name = "SPIFFE-ID")]
    pub(crate) subject: String,
    /// What the member may do.
    #[arg(long, value_enum)]
    pub(crate) role: MemberRole,
    /// A label of a machine; may be repeated.
    #[arg(long = "label", value_name = "LABEL")]
    pub(crate) labels: Vec<String>,
}

/// Arguments of `fleet lease`.
#[derive(Debug, Args)]
pub(crate) struct Lease {
    /// Return them; wrapped servers that run ask for others when they need one.
    #[arg(long = "return", required = true)]
    pub(crate) give_back: bool,
}
