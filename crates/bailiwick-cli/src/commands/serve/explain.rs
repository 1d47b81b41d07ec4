//! `bailiwick serve --explain`: what a session may do, and how this host would hold each tool to it.
//!
//! A tool that starts programs is held by the sandbox, and what that holds is asked of this host. The others run in the
//! server itself, which asks the gate first: that is stated as `advisory`, because nothing but the server holds it.

use std::fmt::Write as _;
use std::path::Path;

use bailiwick_confine::host::located;
use bailiwick_confine::{Command, Options, Prepared};
use bailiwick_guard::Registry;
use bailiwick_journal::{self, Journal, new_session};
use bailiwick_policy::enforcement::{Aspect, Coverage};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::lattice::CountBound;
use bailiwick_policy::plan::{FileGrant, Plan};
use serde_json::{Value, json};

use super::{Granted, session, with_tools};
use crate::answer::{Answer, Exit};
use crate::args::AnswerFormat;
use crate::args::serve::Serve;
use crate::render::{escape, json, style};

/// Tools that start programs, and so run in the sandbox.
const SANDBOXED: [&str; 1] = ["shell"];

/// How a tool is held.
enum Held {
    /// By the sandbox, so.
    Sandbox(Box<Coverage>),
    /// This host cannot hold it: it would not run.
    Refused(String),
    /// By the server's own asking.
    Gate,
}

pub(super) fn answer(args: &Serve, granted: &Granted, cwd: &Path) -> anyhow::Result<Answer> {
    let scratch = tempfile::Builder::new().prefix("bailiwick-explain").tempdir()?;
    let journal = Journal::open(scratch.path(), new_session()?, bailiwick_journal::Options::default())?;
    let registry = with_tools(Registry::builder(journal.clone(), session(cwd))).build()?;
    let sandbox = sandbox(granted);
    let tools: Vec<(String, Held)> = registry
        .definitions()
        .map(|tool| {
            let sandboxed = SANDBOXED.contains(&tool.name);
            let held = match &sandbox {
                _ if !sandboxed => Held::Gate,
                Ok(coverage) => Held::Sandbox(Box::new(coverage.clone())),
                Err(why) => Held::Refused(why.clone()),
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
fn sandbox(granted: &Granted) -> Result<Coverage, String> {
    let plan = |facts: &HostFacts| {
        Plan::of("shell", &granted.authority, facts).map_err(|finding| finding.message().to_owned())
    };
    let first = plan(&HostFacts::unknown())?;
    let known = located(HostFacts::unknown(), first.files().iter().map(FileGrant::path));
    let plan = plan(&known.map_err(|unseen| format!("{unseen}: {}", unseen.source))?)?;
    let prepared = Prepared::new(&plan, Command::new("true"), Options::default());
    prepared.map(|prepared| prepared.predicted().clone()).map_err(|refusal| refusal.to_string())
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
    let _ = writeln!(text, "  folder: {}", escape::line(&cwd.to_string_lossy()));
    let _ = writeln!(text, "\n{}", style::strong("Tools, and who holds them to it on this host"));
    for (name, held) in tools {
        let how = match held {
            Held::Sandbox(coverage) => aspects(coverage),
            Held::Refused(why) => format!("refused: {why}"),
            Held::Gate => "advisory: the server asks the gate before each file or host".to_owned(),
        };
        let _ = writeln!(text, "  {name:<10} {}", escape::line(&how));
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
        Held::Sandbox(coverage) => {
            json!({ "name": name, "held_by": "sandbox", "coverage": coverage.to_json(), "refused": null })
        }
        Held::Refused(why) => json!({ "name": name, "held_by": "sandbox", "coverage": null, "refused": why }),
        Held::Gate => json!({ "name": name, "held_by": "server", "level": "advisory", "refused": null }),
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
