//! `bailiwick replay`: the same calls free and held to a manifest.

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::learn::Replay;
use bailiwick_command::output::Existing;
use bailiwick_command::render::{escape, style};
use bailiwick_command::{output, pinned_files, terminal, verified};
use bailiwick_launch::Exit as Ended;
use bailiwick_learn::{INCOMPLETE, with_root_line};
use bailiwick_store::with_host_values;

use super::MOST_SHOWN;
use super::known::Known;
use super::plan::{Setup, plan_of};
use super::recorded::given_calls;
use super::session::{Held, comparable, generated, recorder, run_held, run_program, run_server};
use super::subject::{Naming, Subject};

/// Runs it.
pub(crate) fn replay(args: &Replay) -> anyhow::Result<Answer> {
    let known = Known::read(&args.manifest)?;
    if known.text.lines().any(|line| line.starts_with(INCOMPLETE)) {
        let why = "it was learned from less than everything; learn it again";
        return Ok(found(&format!("`{}` is not tried: {why}", args.manifest.display())));
    }
    let watched = &args.watched;
    if let Err(why) = pinned_files::ensure_unchanged(&known.manifest) {
        return Ok(found(&format!("{why:#}")));
    }
    let given = given_calls(watched)?;
    let naming = Naming { name: None, is_server: !known.manifest.tools().is_empty(), is_unrecorded: true };
    let setup = Setup::new(watched, Subject::from_args(watched, &naming)?)?;
    let subject = &setup.subject;
    let held = with_host_values(known.manifest.clone(), &subject.arguments, &[], &subject.host)?;
    let held = plan_of(held, &subject.host, &[])?;
    let (mut calls, record) = (Vec::new(), recorder(&subject.name, true)?);
    let free = if subject.is_server {
        let plan = setup.plan(given.is_some())?;
        run_server(subject, &plan, setup.evidence(), record, watched.timeout.0, |tools| {
            calls = given.unwrap_or_else(|| generated(tools, &[]));
            calls.clone()
        })?
    } else {
        run_program(subject, &setup.plan(true)?, setup.evidence(), record, watched.timeout.0)?
    };
    let Held { answers, exit, said } = run_held(subject, &held, &calls, watched.timeout.0)?;
    if !subject.is_server {
        let answer = compared_ends(free.exit, exit);
        if answer.exit == Exit::Fine {
            verify(args, &known, subject, 1)?;
        }
        return Ok(answer);
    }
    let mut text = String::new();
    let mut different = usize::from(answers.len() != free.answers.len());
    if different > 0 {
        text += &format!("the server does not start under the manifest: {}\n", escape::line(&said));
    }
    for (call, (free, held)) in calls.iter().zip(free.answers.iter().zip(&answers)) {
        let (free, held) = (comparable(free), comparable(held));
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
    if different == 0 {
        verify(args, &known, subject, calls.len())?;
    }
    Ok(if different == 0 {
        Answer::result(Exit::Fine, format!("{}: {count} the same under the manifest\n", style::good("ok")))
    } else {
        found(&format!("{text}{different} of {} answers differ under the manifest", calls.len().max(1)))
    })
}

/// Writes into the manifest that it was tried, signed with the local key.
fn verify(args: &Replay, known: &Known, subject: &Subject, calls: usize) -> anyhow::Result<()> {
    let version = subject.version.as_deref().unwrap_or_default();
    let written = verified::signed(&known.manifest, version, calls).and_then(|verified| {
        let text = with_root_line(&known.text, "verified", &verified::inline(&verified));
        let text = text.context("only a manifest in TOML can say it")?;
        super::ensure_manifest(&text)?;
        Ok(output::write(&args.manifest, &text, Existing::Replace)?)
    });
    written.or_else(|why| {
        terminal::remark(&format!(
            "{}: that it was tried is not recorded in the manifest: {}\n",
            style::warning("note"),
            escape::line(&format!("{why:#}"))
        ));
        Ok(())
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
