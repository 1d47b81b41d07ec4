//! `bailiwick learn` and `replay`: a manifest from what a program does, and whether it suffices.
//!
//! The program runs in the sandbox, on a copy-on-write layer, and every access is told by the sandbox's first process.
//!
//! Fails closed when: the kernel has no layer or no notification, an access was lost (the manifest says that it is
//! incomplete, and `replay` refuses it), or what was learned is no manifest.

mod asked;
mod audit;
mod known;
mod names;
mod plan;
mod recorded;
mod replay;
mod session;
mod subject;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit, plain};
use bailiwick_command::args::learn::{Learn, Watched};
use bailiwick_command::output::Existing;
use bailiwick_command::render::{escape, json, style};
use bailiwick_command::written_trees::{carry_over, list, trees};
use bailiwick_command::{input, output, terminal};
use bailiwick_learn::{Draft, Evidence, ToolCall, calls_of, draft, merged, provenance, render};
use bailiwick_manifest::Manifest;

use self::asked::HostQuestions;
pub(crate) use self::audit::audit;
use self::known::Known;
use self::plan::Setup;
use self::recorded::given_calls;
pub(crate) use self::replay::replay;
use self::session::{Ran, generated, recorder, run_program, run_server};
use self::subject::{Naming, Subject};

/// The most answers that are shown as different.
const MOST_SHOWN: usize = 10;

pub(crate) fn run(args: &Learn) -> anyhow::Result<Answer> {
    let calls = given_calls(&args.watched)?;
    let known = args.update.as_deref().map(Known::read).transpose()?;
    let naming =
        Naming { name: args.name.as_deref(), is_server: args.server, is_unrecorded: args.no_journal };
    let mut questions = HostQuestions::new(&args.watched)?;
    let mut setup =
        Setup::new(&args.watched, Subject::from_args(&args.watched, &naming)?)?.naming_variables();
    for note in &setup.notes {
        terminal::remark(&format!("{}: {}\n", style::warning("note"), escape::line(note)));
    }
    let drive = Drive {
        watched: &args.watched,
        runs: args.runs,
        generates: !args.no_generate,
        is_unrecorded: args.no_journal,
    };
    let calls = calls.unwrap_or_default();
    let Ran { mut evidence, accesses, layer, .. } = loop {
        let ran = watch(&drive, &setup, calls.clone())?;
        let allowed = questions.allowed(&ran.evidence)?;
        if allowed.is_empty() {
            break ran;
        }
        setup.reach(allowed);
        terminal::remark("it is started again, from the same files\n");
    };
    evidence.shown.sort();
    evidence.shown.dedup();
    evidence.pinned_files = setup.pinned_files(&evidence);
    let mut draft = draft(&evidence);
    let text = match &known {
        Some(known) => {
            known.take_out_of(&mut draft, &evidence, &setup.subject)?;
            merged(&known.text, &evidence, &draft)
        }
        None => render(&evidence, &draft),
    };
    ensure_manifest(&text)?;
    let target = args.out.as_deref().or(args.update.as_deref());
    if let Some(path) = target {
        output::write(path, &text, Existing::Replace)
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    if let Some(path) = &args.provenance {
        output::write(path, &json::document(&provenance(&evidence, &draft)), Existing::Replace)
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    summarise(args, &evidence, &draft, accesses);
    written(args, layer)?;
    next(args, &setup, target, &evidence);
    let exit = if evidence.incomplete.is_some() { Exit::Found } else { Exit::Fine };
    Ok(Answer::result(exit, if target.is_some() { String::new() } else { text }))
}

/// How a program is driven while it is watched.
struct Drive<'a> {
    watched: &'a Watched,
    /// How often the caller's calls are made, or the program is started.
    runs: u32,
    generates: bool,
    is_unrecorded: bool,
}

/// The calls of a file.
fn read_calls(path: &Path) -> anyhow::Result<Vec<ToolCall>> {
    let source = input::read(path).map_err(|useless| plain(useless.refusal()))?;
    calls_of(source.text()).with_context(|| format!("cannot use `--calls {}`", path.display()))
}

/// Runs the program: with the caller's calls, and for generated ones again, without hosts and variables of the caller's.
fn watch(drive: &Drive<'_>, setup: &Setup, calls: Vec<ToolCall>) -> anyhow::Result<Ran> {
    let subject = &setup.subject;
    let patience = drive.watched.timeout.0;
    let record = || recorder(&subject.name, drive.is_unrecorded);
    let evidence = setup.evidence();
    let mut ran: Option<Ran> = None;
    if !subject.is_server || !calls.is_empty() || !drive.generates {
        for _ in 0..drive.runs {
            let (before, accesses) =
                ran.take().map_or_else(|| (evidence.clone(), 0), |ran| (ran.evidence, ran.accesses));
            let plan = setup.plan(true)?;
            let next = if subject.is_server {
                run_server(subject, &plan, before, record()?, patience, |_| calls.clone())?
            } else {
                run_program(subject, &plan, before, record()?, patience)?
            };
            ran = Some(Ran { accesses: accesses + next.accesses, ..next });
        }
    }
    let is_driven = |ran: &Ran| ran.evidence.tools.iter().all(|tool| tool.calls > 0);
    if !subject.is_server || !drive.generates || ran.as_ref().is_some_and(is_driven) {
        return ran.context("no call was made");
    }
    let (before, accesses, layer) =
        ran.map_or((evidence, 0, None), |ran| (ran.evidence, ran.accesses, ran.layer));
    let plan = setup.plan(false)?;
    let again = run_server(subject, &plan, before, record()?, patience, |tools| generated(tools, &calls))?;
    // What generated calls wrote is nothing that a person wants.
    let layer = if calls.is_empty() { again.layer } else { layer };
    Ok(Ran { accesses: accesses + again.accesses, layer, ..again })
}

/// What was learned has to be a manifest.
fn ensure_manifest(text: &str) -> anyhow::Result<()> {
    Manifest::parse(text)
        .map(drop)
        .map_err(|findings| anyhow::anyhow!("what was learned is no manifest: {findings}"))
}

fn summarise(args: &Learn, evidence: &Evidence, draft: &Draft, accesses: usize) {
    let axis = |prefix: &str| draft.lines.iter().filter(|line| line.capability.starts_with(prefix)).count();
    let by_axis = [("fs:", "files"), ("exec:", "programs"), ("net:", "hosts"), ("env:", "variables")];
    let counts: Vec<String> = by_axis
        .iter()
        .filter(|(prefix, _)| axis(prefix) > 0)
        .map(|(prefix, what)| format!("{what} {}", axis(prefix)))
        .collect();
    let what = if args.update.is_some() { ("new line", "new lines") } else { ("line", "lines") };
    let by_axis = if counts.is_empty() { String::new() } else { format!(" ({})", counts.join(", ")) };
    let calls: usize = evidence.tools.iter().map(|tool| tool.calls).sum();
    terminal::remark(&format!(
        "{}: {}{by_axis}, {}, from {} and {}\n",
        style::good("learned"),
        style::count(draft.lines.len(), what.0, what.1),
        style::count(draft.questions.len(), "question", "questions"),
        style::count(calls, "call", "calls"),
        style::count(accesses, "access", "accesses"),
    ));
    if args.update.is_some() {
        // What several tools need is a line of each of them, and said once.
        for capability in draft.lines.iter().map(|line| &line.capability).collect::<BTreeSet<_>>() {
            terminal::remark(&format!("+ {}\n", escape::line(capability)));
        }
    }
    for question in draft.questions.iter().take(MOST_SHOWN) {
        let line = question.capability.as_deref().unwrap_or("");
        terminal::remark(&format!("? {} {}\n", escape::line(&question.why), escape::line(line)));
    }
    if let Some(why) = &evidence.incomplete {
        terminal::remark(&format!(
            "{}: not everything is known: {}\n",
            style::warning("incomplete"),
            escape::line(why)
        ));
    }
}

/// Lists what was written on the layer, and carries it over if that was asked for.
fn written(args: &Learn, layer: Option<bailiwick_launch::Layer>) -> anyhow::Result<()> {
    let Some(layer) = layer else { return Ok(()) };
    let trees = trees(layer)?;
    let count = list(&trees)?;
    if count > 0 && !args.commit {
        terminal::remark("nothing of this was written on the host; `--commit` carries it over\n");
    }
    if count > 0 && args.commit {
        let carried = carry_over(&trees, &[])?;
        terminal::remark(&format!("{} carried over\n", style::count(carried, "change was", "changes were")));
    }
    Ok(())
}

/// The lines to type next.
fn next(args: &Learn, setup: &Setup, target: Option<&Path>, evidence: &Evidence) {
    let Some(path) = target else { return };
    if evidence.incomplete.is_some() {
        return;
    }
    let watched = &args.watched;
    let command: Vec<String> =
        watched.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let file = path.to_string_lossy().into_owned();
    let mut tried = vec!["bailiwick".to_owned(), "replay".to_owned(), file.clone()];
    let mut option = |name: &str, value: String| tried.extend([format!("--{name}"), value]);
    watched.calls.iter().for_each(|calls| option("calls", calls.display().to_string()));
    watched.from_journal.iter().for_each(|session| option("from-journal", session.to_string()));
    watched.variables.iter().for_each(|name| option("env", name.clone()));
    setup.hosts().iter().for_each(|host| option("net", host.clone()));
    watched.reads.iter().for_each(|dir| option("read", dir.display().to_string()));
    let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let with_command = |mut words: Vec<String>| {
        words.push("--".to_owned());
        words.extend(command.iter().cloned());
        words
    };
    let used = if setup.subject.is_server {
        with_command(own(&["bailiwick", "wrap", "--manifest", &file]))
    } else {
        own(&["bailiwick", "run", "--manifest", &file])
    };
    let line = |words: &[String]| {
        let quoted = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "));
        escape::line(&quoted)
    };
    terminal::remark(&format!("next: {}\nthen: {}\n", line(&with_command(tried)), line(&used)));
}
