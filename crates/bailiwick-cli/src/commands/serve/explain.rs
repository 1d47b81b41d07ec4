//! `bailiwick serve --explain`: what a session may do, and how this host would hold each tool to it.
//!
//! A tool that starts programs is held by the sandbox: the plan is the one that a call would run with, and what holds it is
//! asked of this host. The others run in the server itself, which asks the gate first: that is stated as `advisory`,
//! because nothing but the server holds it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::args::serve::Serve;
use bailiwick_command::facts;
use bailiwick_command::render::{escape, json, style};
use bailiwick_guard::tools::shell_plan;
use bailiwick_guard::{BrokerProcess, Registry, Session};
use bailiwick_journal::{Journal, new_session};
use bailiwick_launch::{Command, Launch, Recorder, Status};
use bailiwick_policy::enforcement::{Aspect, Coverage};
use bailiwick_policy::lattice::CountBound;
use serde_json::{Value, json};

use super::{Granted, journal_dir, session, with_tools};

/// Tools that start programs, and so run in the sandbox.
const SANDBOXED: [&str; 1] = ["shell"];
/// The tool whose requests may be given secrets.
const REQUESTING: &str = "web_fetch";

const GATE: &str = "advisory: the server asks the gate before each file or host";
const BROKER: &str = "secrets mediated: another process puts them in, and the server never has them";

/// How a tool is held.
enum Held {
    /// By the sandbox, so.
    Sandbox(Box<Status>),
    /// This host cannot hold it: it would not run.
    Refused(String),
    /// By the server's own asking.
    Gate,
    /// The same, and by the process that holds its secrets.
    GateAndBroker,
}

pub(super) fn answer(
    args: &Serve,
    granted: &Granted,
    cwd: &Path,
    secrets: Option<Arc<BrokerProcess>>,
) -> anyhow::Result<Answer> {
    let scratch = tempfile::Builder::new().prefix("bailiwick-explain").tempdir()?;
    let journal = Journal::open(scratch.path(), new_session()?, bailiwick_journal::Options::default())?;
    let session = session(args, granted, cwd, secrets.clone())?;
    let registry = with_tools(args, Registry::builder(journal.clone(), session.clone())).build()?;
    let sandbox = sandbox(granted, &session, &own_dirs(&journal_dir(args)?), secrets.as_ref());
    let tools: Vec<(String, Held)> = registry
        .definitions()
        .map(|tool| {
            let sandboxed = SANDBOXED.contains(&tool.name);
            let is_given_secrets = secrets.is_some() && tool.name == REQUESTING;
            let held = match &sandbox {
                _ if is_given_secrets => Held::GateAndBroker,
                _ if !sandboxed => Held::Gate,
                Ok(status) => Held::Sandbox(Box::new(status.clone())),
                Err(why) => Held::Refused(why.to_string()),
            };
            (tool.name.to_owned(), held)
        })
        .collect();
    journal.close()?;
    let lines = granted.authority.capabilities();
    let lines = lines.map(|lines| lines.iter().map(ToString::to_string).collect::<Vec<_>>());
    let shown = match args.format {
        AnswerFormat::Text => text(granted, cwd, lines.as_deref(), &tools),
        AnswerFormat::Json => json::document(&document(args, granted, cwd, lines.as_deref(), &tools)),
    };
    Ok(Answer::result(Exit::Fine, shown))
}

/// What the sandbox would hold for a program of this session.
fn sandbox(
    granted: &Granted,
    session: &Session,
    own: &[PathBuf],
    secrets: Option<&Arc<BrokerProcess>>,
) -> anyhow::Result<Status> {
    let plan = shell_plan(&granted.authority, own.iter().map(PathBuf::as_path), session);
    let plan = plan.map_err(anyhow::Error::msg)?;
    let command = Command { cwd: Some(session.cwd().to_owned()), ..Command::new("true") };
    // Nothing is started, so there is nothing to record.
    let launch = Launch::new(&plan, command, Recorder::unrecorded("shell"));
    let brokering = secrets.map(|process| process.session(&plan)).transpose()?.flatten();
    let ready = brokering.into_iter().fold(launch, Launch::brokering).prepare();
    ready.map(|ready| ready.status().clone()).map_err(anyhow::Error::msg)
}

/// Bailiwick's own directories, by their names and where these lead, as a registry has them.
fn own_dirs(journal: &Path) -> Vec<PathBuf> {
    let named = facts::kept_dirs().chain([journal.to_owned()]);
    named.flat_map(|dir| [dir.canonicalize().unwrap_or_else(|_| dir.clone()), dir]).collect()
}

/// What the sandbox leaves out or cannot cover, each once.
fn notes(status: &Status) -> BTreeSet<&str> {
    status.details.iter().map(String::as_str).collect()
}

fn text(granted: &Granted, cwd: &Path, lines: Option<&[String]>, tools: &[(String, Held)]) -> String {
    let mut text =
        format!("{} (granted by {})\n", style::strong("This session may"), escape::line(&granted.origin));
    match lines {
        Some([]) => text += "  nothing\n",
        Some(lines) => lines.iter().for_each(|line| text += &format!("  {}\n", escape::line(line))),
        None => text += "  more than a list of capabilities can say\n",
    }
    let _ = match granted.authority.calls() {
        CountBound::Unlimited => writeln!(text, "  calls: no bound"),
        CountBound::AtMost(calls) => writeln!(text, "  calls: at most {calls}"),
    };
    let _ = writeln!(text, "  directory: {}", escape::line(&cwd.to_string_lossy()));
    let _ = writeln!(text, "\n{}", style::strong("Tools, and who holds them to it on this host"));
    for (name, held) in tools {
        let how = match held {
            Held::Sandbox(status) => aspects(&status.coverage),
            Held::Refused(why) => format!("refused: {why}"),
            Held::Gate => GATE.to_owned(),
            Held::GateAndBroker => format!("{GATE}; {BROKER}"),
        };
        let _ = writeln!(text, "  {name:<10} {}", escape::line(&how));
        if let Held::Sandbox(status) = held {
            for note in notes(status) {
                let _ = writeln!(text, "  {:<10} {}: {}", "", style::faint("note"), escape::line(note));
            }
        }
    }
    if let Some(guidance) = granted.guidance() {
        let _ = writeln!(text, "\n{guidance}");
    }
    text
}

fn aspects(coverage: &Coverage) -> String {
    let one = |aspect: Aspect| format!("{aspect} {}", coverage.held(aspect).level);
    Aspect::ALL.map(one).join(" · ")
}

fn document(
    args: &Serve,
    granted: &Granted,
    cwd: &Path,
    lines: Option<&[String]>,
    tools: &[(String, Held)],
) -> Value {
    let calls = match granted.authority.calls() {
        CountBound::Unlimited => Value::Null,
        CountBound::AtMost(calls) => calls.into(),
    };
    let tool = |(name, held): &(String, Held)| match held {
        Held::Sandbox(status) => json!({
            "name": name,
            "held_by": "sandbox",
            "coverage": status.coverage.to_json(),
            "notes": notes(status),
            "refused": null,
        }),
        Held::Refused(why) => json!({ "name": name, "held_by": "sandbox", "coverage": null, "refused": why }),
        Held::Gate => json!({ "name": name, "held_by": "server", "level": "advisory", "refused": null }),
        Held::GateAndBroker => json!({
            "name": name, "held_by": "server", "level": "advisory", "secrets": "mediated", "refused": null,
        }),
    };
    json!({
        "format": "bailiwick.serve-explain/1",
        "name": args.name,
        "origin": granted.origin,
        "granted": lines,
        "nothing": granted.guidance().is_some(),
        "max_calls": calls,
        "folder": cwd.to_string_lossy(),
        "tools": tools.iter().map(tool).collect::<Vec<_>>(),
    })
}
