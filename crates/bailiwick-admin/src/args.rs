//! The command line of all commands: those that this program runs, and those of `bailiwick` itself, for `--help`, what is wrong with a
//! line, and completions.

pub(crate) mod compile;
pub(crate) mod console;
pub(crate) mod export;
pub(crate) mod fleet;
pub(crate) mod guard;
pub(crate) mod import;
pub(crate) mod log;
pub(crate) mod login;
pub(crate) mod pins;
pub(crate) mod ps;
pub(crate) mod purge;
pub(crate) mod scan;
pub(crate) mod store;

use std::ffi::OsString;
use std::path::PathBuf;

use bailiwick_command::args::without_secret;
use bailiwick_command::facts::Setting;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use bailiwick_command::args::{AnswerFormat, hook, learn, run, secret, serve, wrap};

const EXIT_CODES: &str = "Exit codes: 0 ok · 1 findings, denied or widened · 2 usage · 3 unreadable or invalid \
                          input · 4 compilation · 5 fault";

/// Capability governance for the tools of AI agents: say what each may touch, check it, review what changes.
#[derive(Debug, Parser)]
#[command(name = "bailiwick", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Line {
    /// When to use colours.
    #[arg(long = "color", global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) colour: clap::ColorChoice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Line {
    /// Reads the words of a line, the program's name first.
    ///
    /// # Errors
    /// What is wrong with it, or what it asks to be shown.
    pub(crate) fn read(words: Vec<OsString>) -> Result<(Command, clap::ColorChoice), clap::Error> {
        let line = Self::try_parse_from(words).map_err(without_secret)?;
        Ok((line.command, line.colour))
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check manifests: every finding with its line and what to write instead
    Check(Check),
    /// Compare two manifests or snapshots by what they allow
    Diff(Diff),
    /// Write the canonical, hashed snapshot of a manifest
    Snapshot(Snapshot),
    /// Write a commented starter manifest
    Init(Init),
    /// Ask whether a manifest allows something, and which line decides
    Allows(Allows),
    /// Show a session of confined tools: what was allowed, denied and recorded
    Demo(run::Demo),
    /// Run a command held to what it was granted
    Run(run::Run),
    /// Put before the command of an MCP server: it runs held to a manifest, and every call is judged and recorded
    Wrap(wrap::Wrap),
    /// Watch a program or an MCP server in safety, and write the least manifest that lets it work
    Learn(learn::Learn),
    /// Try whether a manifest suffices: the same calls, free and held to it
    Replay(learn::Replay),
    /// Compare a manifest with what a program uses: what is not declared, and what is not used
    Audit(learn::Audit),
    /// Draft a manifest from what others say of a server already: a client, a package, another sandbox's profile
    Import(import::Import),
    /// List the secrets whose sources are known, or try the sources
    Secret(secret::Secret),
    /// Log in at a server that runs elsewhere, in a browser
    Login(login::Login),
    /// Forget the login at a server that runs elsewhere
    Logout(login::Logout),
    /// List, fetch or remove the packages that `wrap` starts servers from
    Store(store::Store),
    /// List the wrapped servers that run now
    Ps(ps::Ps),
    /// Show what tools do, and decide, in a browser
    Console(console::Console),
    /// Show the servers that run and the last denials, as they change
    Top(console::Top),
    /// Show what a wrapped server wrote to stderr
    Logs(ps::Logs),
    /// Serve a confined shell and other tools to any agent, over the Model Context Protocol
    Serve(serve::Serve),
    /// Look once at the log of the fleet that this machine is in
    #[command(hide = true)]
    RefreshFleet,
    /// Try what this host can hold, and say how to get what is missing
    Doctor(run::Doctor),
    /// Compile a manifest for a sandbox, and say how well that sandbox holds it
    Compile(compile::Compile),
    /// Show how well each sandbox would hold a manifest
    Coverage(compile::Coverage),
    /// Read, verify and explain the journal of what tools did and were denied
    Log(log::Log),
    /// Export the journal: JSON lines, or logs, metrics and traces for a collector
    Export(export::Export),
    /// Join a fleet: the machine, or a person who answers and administers
    Enroll(fleet::Enroll),
    /// See and decide for all machines of a fleet: members, calls that wait, revocations, budgets, rules
    Fleet(fleet::Fleet),
    /// Read from the source what each tool does, and compare it with what it declares
    Scan(scan::Scan),
    /// Check, try and explain a project's guardrails
    Guard(guard::Guard),
    /// Judge one event of an agent's hooks, in that agent's own format on stdin and stdout
    Hook(hook::Hook),
    /// Let the scripts that a directory's guardrails name run, as they are now
    Trust(guard::Trust),
    /// Consent to one call that waits for a person
    Approve(guard::Answer),
    /// Refuse one call that waits for a person
    Deny(guard::Answer),
    /// List the calls that wait for a person
    Pending(guard::Pending),
    /// Show and accept changes of what wrapped servers say of themselves
    Pins(pins::Pins),
    /// Put hook entries into agents' settings, or `wrap` before their MCP servers; or take them out
    Install(guard::Install),
    /// Remove what Bailiwick keeps, and its entries in the settings of others
    Purge(purge::Purge),
    /// Print the JSON Schema of manifests, for editors
    #[command(after_help = "Example:\n  bailiwick schema > bailiwick.schema.json")]
    Schema,
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  bailiwick completions bash > ~/.local/share/bash-completion/completions/bailiwick"
    )]
    Completions {
        /// For which shell.
        shell: Shell,
    },
    /// Print the table of codes as Markdown
    #[command(hide = true)]
    Codes,
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people, with the lines themselves.
    Text,
    /// For programs.
    Json,
    /// For code scanning.
    Sarif,
}

/// How differences are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For code scanning.
    Sarif,
    /// For a comment on a pull request.
    Markdown,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick check server.toml
  bailiwick check --set WORKSPACE=/srv/work manifests/*.toml
  bailiwick check --format sarif manifests/*.toml > findings.sarif

Path variables such as $WORKSPACE come from --set, else from the environment; $WORKSPACE is else the
current directory. Exit codes: 0 no findings · 1 findings · 2 usage · 3 a file cannot be read")]
pub(crate) struct Check {
    /// Manifests or snapshots, TOML or JSON; `-` is stdin.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How to print the findings.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
    /// Give a path variable its value; may be repeated.
    #[arg(long = "set", value_name = "NAME=PATH")]
    pub(crate) settings: Vec<Setting>,
    /// Print findings only.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick diff reviewed.json server.toml
  bailiwick diff --accept accept.toml reviewed.json server.toml
  bailiwick diff --format markdown reviewed.json server.toml > comment.md

Exit codes: 0 nothing needs review · 1 something does · 2 usage · 3 a file is unreadable or invalid")]
pub(crate) struct Diff {
    /// What was reviewed: a manifest or a snapshot; `-` is stdin.
    pub(crate) base: PathBuf,
    /// What is proposed: a manifest or a snapshot; `-` is stdin.
    pub(crate) new: PathBuf,
    /// Accepted risks, each with a reason and an end.
    #[arg(long, value_name = "FILE")]
    pub(crate) accept: Option<PathBuf>,
    /// Fail on any widening, accepted or not.
    #[arg(long)]
    pub(crate) tighten_only: bool,
    /// How to print the differences.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: DiffFormat,
}

/// Arguments of `snapshot`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick snapshot server.toml --out reviewed.json
  bailiwick snapshot server.toml --check reviewed.json

Exit codes: 0 ok · 1 --check: the snapshot is not that of the manifest · 2 usage · 3 unreadable or invalid")]
pub(crate) struct Snapshot {
    /// A manifest; `-` is stdin.
    pub(crate) file: PathBuf,
    /// Write there instead of to stdout.
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pub(crate) out: Option<PathBuf>,
    /// Compare with a stored snapshot instead of writing one.
    #[arg(long, value_name = "SNAPSHOT")]
    pub(crate) check: Option<PathBuf>,
}

/// Arguments of `init`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick init
  bailiwick init --template github --name my-github github.toml
  bailiwick init --list")]
pub(crate) struct Init {
    /// Where to write; `-` is stdout.
    #[arg(default_value = "bailiwick.toml")]
    pub(crate) file: PathBuf,
    /// The server's name.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// What to start from; see --list.
    #[arg(long, default_value = "starter")]
    pub(crate) template: String,
    /// Overwrite the file if it exists.
    #[arg(long)]
    pub(crate) force: bool,
    /// List the templates.
    #[arg(long, conflicts_with_all = ["name", "template", "force"])]
    pub(crate) list: bool,
}

/// Arguments of `allows`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick allows server.toml net:connect:api.github.com:443
  bailiwick allows server.toml fs:write:/workspace/notes.txt --tool save_note

Exit codes: 0 allowed · 1 denied · 2 usage · 3 the manifest is unreadable or invalid")]
pub(crate) struct Allows {
    /// A manifest or a snapshot; `-` is stdin.
    pub(crate) manifest: PathBuf,
    /// What is asked for, such as `fs:read:/etc/hosts`.
    pub(crate) capability: String,
    /// Ask for one tool instead of the server as a whole.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Give a path variable its value; may be repeated.
    #[arg(long = "set", value_name = "NAME=PATH")]
    pub(crate) settings: Vec<Setting>,
    /// How to print the answer.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: AnswerFormat,
}
