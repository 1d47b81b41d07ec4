//! The command lines of `bailiwick compile` and `bailiwick coverage`.

use std::path::PathBuf;

use bailiwick_command::facts::Setting;
use bailiwick_compile::{Egress, Target};
use bailiwick_policy::enforcement::Requirement;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum};

/// How an artifact is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArtifactFormat {
    /// The whole artifact, for programs.
    Json,
    /// The command line, quoted for a shell.
    Argv,
    /// The options of bwrap or docker alone, as a JSON array for `execFile`.
    Flags,
    /// The target's own files, or its command line where it has none.
    Native,
}

/// How a coverage is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CoverageFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For a comment on a pull request.
    Markdown,
}

/// Arguments of `compile`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick compile server.toml --target bwrap --format argv
  bailiwick compile server.toml --target kubernetes --require net=mediated --format native
  bailiwick compile server.toml --target docker --egress squid --out sandbox/
  bailiwick compile server.toml --explain

Nothing is run, resolved or contacted, and the same manifest gives the same bytes everywhere: path variables
come from --set alone, and what lies at a path is not looked up, unless --here says so.

Unless --require says otherwise, files must be held by the kernel, and the network by the kernel if there is
none, else at least through a gateway. Axes: fs net exec env ipc process clock limits. Levels: kernel mediated
advisory unsupported; `:exact` demands that no more than what is declared can be done.
Exit codes: 0 ok · 2 usage · 3 the manifest is unreadable or no TOML or JSON · 4 it has findings, or the target
cannot hold it · 5 fault")]
pub(crate) struct Compile {
    /// A manifest or a snapshot; `-` is stdin.
    pub(crate) manifest: PathBuf,
    /// The sandbox to compile for.
    #[arg(long, value_parser = targets(), required_unless_present_any = ["egress", "explain"])]
    pub(crate) target: Option<Target>,
    /// Compile for one tool instead of the server as a whole.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Add the network allowlist as configuration of a gateway; without --target, print that alone.
    #[arg(long, value_parser = egresses())]
    pub(crate) egress: Option<Egress>,
    /// How to print it.
    #[arg(long, value_enum, default_value = "json")]
    pub(crate) format: ArtifactFormat,
    /// What must be held at least, such as fs=kernel:exact; may be repeated.
    #[arg(long = "require", value_name = "AXIS=LEVEL[:exact]")]
    pub(crate) requirements: Vec<Requirement>,
    #[command(flatten)]
    pub(crate) container: ContainerChoices,
    /// Indent the JSON.
    #[arg(long)]
    pub(crate) pretty: bool,
    /// Write the files into this directory instead.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite files that exist.
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    /// Print every rule of the plan with the lines it comes from instead.
    #[arg(long, conflicts_with_all = ["target", "egress", "out", "pretty"])]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) host: Host,
}

/// What is chosen about a container.
#[derive(Debug, Args)]
pub(crate) struct ContainerChoices {
    /// Docker: whether the container's root file system is read-only.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub(crate) read_only_rootfs: bool,
}

/// What is asked of this host.
#[derive(Debug, Args)]
pub(crate) struct Host {
    /// Give a path variable its value; may be repeated.
    #[arg(long = "set", value_name = "NAME=PATH")]
    pub(crate) settings: Vec<Setting>,
    /// Compile for this host: follow links, leave out what is missing, take variables from the environment.
    #[arg(long)]
    pub(crate) here: bool,
}

/// Arguments of `coverage`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick coverage server.toml
  bailiwick coverage --format markdown server.toml > coverage.md

Exit codes: 0 ok · 2 usage · 3 the manifest is unreadable or invalid")]
pub(crate) struct Coverage {
    /// A manifest or a snapshot; `-` is stdin.
    pub(crate) manifest: PathBuf,
    /// Show one tool instead of the server as a whole.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// How to print it.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: CoverageFormat,
    #[command(flatten)]
    pub(crate) host: Host,
}

fn targets() -> impl TypedValueParser<Value = Target> {
    let named = |name: String| Target::ALL.into_iter().find(|one| one.as_str() == name);
    let parser = PossibleValuesParser::new(Target::ALL.map(Target::as_str));
    parser.try_map(move |name| named(name).ok_or("there is no such target"))
}

fn egresses() -> impl TypedValueParser<Value = Egress> {
    let named = |name: String| Egress::ALL.into_iter().find(|one| one.as_str() == name);
    let parser = PossibleValuesParser::new(Egress::ALL.map(Egress::as_str));
    parser.try_map(move |name| named(name).ok_or("there is no such format"))
}
