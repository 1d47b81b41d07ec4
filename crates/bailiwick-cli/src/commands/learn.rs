//! `bailiwick learn` and `replay`: a manifest from what a program does, and whether it suffices.
//!
//! The program runs in the sandbox, on a copy-on-write layer, and every access is told by the sandbox's first process.
//!
//! Fails closed when: the kernel has no layer or no notification, an access was lost (the manifest says that it is
//! incomplete, and `replay` refuses it), or what was learned is no manifest.

mod calls;
mod known;
mod plan;
mod session;
mod subject;

use std::path::Path;

use anyhow::Context as _;
use bailiwick_launch::Exit as Ended;
use bailiwick_learn::{Draft, Evidence, INCOMPLETE, draft, render};
use bailiwick_policy::manifest::Manifest;
use bailiwick_store::with_host_values;

use self::calls::ToolCall;
use self::known::Known;
use self::plan::{Setup, plan_of};
use self::session::{Held, Ran, recorder, run_held, run_program, run_server, without_numbers};
use self::subject::Subject;
use super::run::{carry_over, list, trees};
use crate::answer::{Answer, Exit};
use crate::args::learn::{Audit, Learn, Replay};
use crate::output::Existing;
use crate::render::{escape, style};
use crate::{output, terminal};

/// The most answers that are shown as different.
const MOST_SHOWN: usize = 10;

pub(super) fn run(args: &Learn) -> anyhow::Result<Answer> {
    let calls = args.calls.as_deref().map(calls::read).transpose()?;
    let known = args.update.as_deref().map(Known::read).transpose()?;
    let setup = Setup::of(args, Subject::of(args)?)?;
    for note in &setup.notes {
        terminal::remark(&format!("{}: {}\n", style::warning("note"), escape::line(note)));
    }
    let Ran { mut evidence, accesses, layer, .. } = watch(args, &setup, calls.unwrap_or_default())?;
    evidence.shown.sort();
    evidence.shown.dedup();
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
    summarise(args, &evidence, &draft, accesses);
    written(args, layer)?;
    next(args, &setup, target, &evidence);
    let exit = if evidence.incomplete.is_some() { Exit::Found } else { Exit::Fine };
    Ok(Answer::result(exit, if target.is_some() { String::new() } else { text }))
}

/// Runs the program: once with the caller's calls, and for generated ones again, without hosts and variables of the caller's.
fn watch(args: &Learn, setup: &Setup, calls: Vec<ToolCall>) -> anyhow::Result<Ran> {
    let subject = &setup.subject;
    let record = || recorder(&subject.name, args.no_journal);
    let evidence = setup.evidence();
    if !subject.is_server {
        return run_program(subject, &setup.plan(true)?, evidence, record()?, args.timeout.0);
    }
    let generates = !args.no_generate;
    let mut ran = None;
    if !calls.is_empty() || !generates {
        let own = calls.clone();
        ran = Some(run_server(
            subject,
            &setup.plan(true)?,
            evidence.clone(),
            record()?,
            args.timeout.0,
            |_| own,
        )?);
    }
    let is_driven = |ran: &Ran| ran.evidence.tools.iter().all(|tool| tool.calls > 0);
    if !generates || ran.as_ref().is_some_and(is_driven) {
        return ran.context("no call was made");
    }
    let (before, accesses, layer) =
        ran.map_or((evidence, 0, None), |ran| (ran.evidence, ran.accesses, ran.layer));
    let plan = setup.plan(false)?;
    let again = run_server(subject, &plan, before, record()?, args.timeout.0, |tools| {
        calls::generated(tools, &calls)
    })?;
    // What generated calls wrote is nothing that a person wants.
    let layer = if calls.is_empty() { again.layer } else { layer };
    Ok(Ran { accesses: accesses + again.accesses, layer, ..again })
}

/// The text of a manifest with what is new in front of it, for a person to move into its lists.
fn merged(text: &str, evidence: &Evidence, draft: &Draft) -> String {
    let mut new = String::new();
    if let Some(why) = &evidence.incomplete {
        new += &format!("{INCOMPLETE} {}; learn it again before you use it.\n", escape::line(why));
    }
    let server: Vec<&str> = draft
        .lines
        .iter()
        .map(|line| line.capability.as_str())
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    new + &with_server_lines(text, &server)
}

/// A manifest with more lines of the server's, and no other byte changed.
fn with_server_lines(text: &str, lines: &[&str]) -> String {
    if lines.is_empty() {
        return text.to_owned();
    }
    let quoted = |line: &&str| format!("  # new\n  {},\n", serde_json::Value::from(*line));
    let list: String = lines.iter().map(quoted).collect();
    let start = text.find("server_capabilities = [");
    match start.and_then(|start| Some((start, text.get(start..)?.find('[')? + start + 1))) {
        Some((_, at)) => {
            let (head, rest) = text.split_at_checked(at).unwrap_or((text, ""));
            format!("{head}\n{list}{}", rest.trim_start_matches('\n'))
        }
        None => {
            let table =
                text.lines().position(|line| line.trim_start().starts_with('[')).unwrap_or(usize::MAX);
            let all: Vec<&str> = text.lines().collect();
            let (head, rest) = all.split_at_checked(table).unwrap_or((&all, &[]));
            format!(
                "{}\n\nserver_capabilities = [\n{list}]\n\n{}\n",
                head.join("\n").trim_end(),
                rest.join("\n")
            )
        }
    }
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
        for line in &draft.lines {
            terminal::remark(&format!("+ {}\n", escape::line(&line.capability)));
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
    let words = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>();
    let command = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "));
    let file = path.to_string_lossy();
    let file = shlex::try_quote(&file).map_or_else(|_| file.to_string(), |quoted| quoted.to_string());
    if evidence.incomplete.is_some() {
        return;
    }
    let calls = args.calls.as_ref().map(|calls| format!(" --calls {}", calls.display())).unwrap_or_default();
    let tried = format!("next: bailiwick replay {file}{calls} -- {command}");
    let used = if setup.subject.is_server {
        format!("then: bailiwick wrap --manifest {file} -- {command}")
    } else {
        format!("then: bailiwick run --manifest {file}")
    };
    terminal::remark(&format!("{}\n{}\n", escape::line(&tried), escape::line(&used)));
}

/// `bailiwick audit`.
pub(super) fn audit(args: &Audit) -> anyhow::Result<Answer> {
    let known = Known::read(&args.manifest)?;
    let learn = args.as_learn(!known.manifest.tools().is_empty());
    let calls = args.calls.as_deref().map(calls::read).transpose()?;
    let setup = Setup::of(&learn, Subject::of(&learn)?)?;
    let Ran { evidence, .. } = watch(&learn, &setup, calls.unwrap_or_default())?;
    let mut draft = draft(&evidence);
    let unused = known.unused(&draft, &evidence, &setup.subject)?;
    known.take_out_of(&mut draft, &evidence, &setup.subject)?;
    let mut text = String::new();
    for line in &draft.lines {
        text += &format!("+ {}  used and not declared\n", escape::line(&line.capability));
    }
    for line in &unused {
        text += &format!("- {}  declared and not used\n", escape::line(line));
    }
    if let Some(why) = &evidence.incomplete {
        text +=
            &format!("{}: not everything was seen: {}\n", style::warning("incomplete"), escape::line(why));
    }
    if text.is_empty() {
        let text = format!("{}: everything that was used is declared, and used\n", style::good("ok"));
        return Ok(Answer::result(Exit::Fine, text));
    }
    Ok(Answer::result(Exit::Found, text))
}

/// `bailiwick replay`.
pub(super) fn replay(args: &Replay) -> anyhow::Result<Answer> {
    let known = Known::read(&args.manifest)?;
    if known.text.lines().any(|line| line.starts_with(INCOMPLETE)) {
        let why = "it was learned from less than everything; learn it again";
        return Ok(found(&format!("`{}` is not tried: {why}", args.manifest.display())));
    }
    let learn = args.as_learn(!known.manifest.tools().is_empty());
    let given = args.calls.as_deref().map(calls::read).transpose()?;
    let setup = Setup::of(&learn, Subject::of(&learn)?)?;
    let subject = &setup.subject;
    let held = with_host_values(known.manifest, &subject.arguments, &[], &subject.host)?;
    let held = plan_of(held, &subject.host, &[])?;
    let (mut calls, record) = (Vec::new(), recorder(&subject.name, true)?);
    let free = if subject.is_server {
        let plan = setup.plan(given.is_some())?;
        run_server(subject, &plan, setup.evidence(), record, args.timeout.0, |tools| {
            calls = given.unwrap_or_else(|| calls::generated(tools, &[]));
            calls.clone()
        })?
    } else {
        run_program(subject, &setup.plan(true)?, setup.evidence(), record, args.timeout.0)?
    };
    let Held { answers, exit, said } = run_held(subject, &held, &calls, args.timeout.0)?;
    if !subject.is_server {
        return Ok(compared_ends(free.exit, exit));
    }
    let mut text = String::new();
    let mut different = usize::from(answers.len() != free.answers.len());
    if different > 0 {
        text += &format!("the server does not start under the manifest: {}\n", escape::line(&said));
    }
    for (call, (free, held)) in calls.iter().zip(free.answers.iter().zip(&answers)) {
        let (free, held) = (without_numbers(free), without_numbers(held));
        if free != held {
            different += 1;
            if different <= MOST_SHOWN {
                let arguments = serde_json::Value::Object(call.arguments.clone());
                text += &format!("{} {}\n", escape::line(&call.tool), escape::line(&arguments.to_string()));
                text += &format!(
                    "  free: {}\n  held: {}\n",
                    escape::line(&cut(&free)),
                    escape::line(&cut(&held))
                );
            }
        }
    }
    let count = style::count(calls.len(), "call answers", "calls answer");
    Ok(if different == 0 {
        Answer::result(Exit::Fine, format!("{}: {count} the same under the manifest\n", style::good("ok")))
    } else {
        found(&format!("{text}{different} of {} answers differ under the manifest", calls.len().max(1)))
    })
}

fn compared_ends(free: Option<Ended>, held: Option<Ended>) -> Answer {
    let shown =
        |end: Option<Ended>| end.map_or_else(|| "its time was over".to_owned(), |end| end.to_string());
    if free == held && free.is_some() {
        let text = format!("{}: it ends the same under the manifest: {}\n", style::good("ok"), shown(held));
        return Answer::result(Exit::Fine, text);
    }
    found(&format!("free: {}; under the manifest: {}", shown(free), shown(held)))
}

fn cut(text: &str) -> String {
    text.chars().take(300).collect()
}

fn found(why: &str) -> Answer {
    let lines: String = why.lines().map(|line| format!("{}\n", escape::line(line))).collect();
    Answer::refusal(Exit::Found, format!("{}: {lines}", style::error("error")))
}
