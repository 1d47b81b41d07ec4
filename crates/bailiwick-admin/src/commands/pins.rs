//! `bailiwick pins`: what wrapped servers said of themselves when they were first used, and a person's answer to changes.

use std::fmt::Write as _;

use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::pin_store::{PinFile, PinnedServer};
use bailiwick_command::render::{escape, style};
use bailiwick_command::terminal;
use bailiwick_manifest::diff::Diff;
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_pins::Drift;

use crate::args::pins::{Pins, PinsCommand};

pub(super) fn run(args: &Pins) -> anyhow::Result<Answer> {
    match &args.command {
        PinsCommand::List => list(),
        PinsCommand::Diff { server } => with_server(server, |_, pinned| Ok(diff(&pinned))),
        PinsCommand::Approve { server, tool, yes } => {
            with_server(server, |file, pinned| approve(&file, &pinned, tool.as_deref(), *yes))
        }
        PinsCommand::Reset { server, yes } => with_server(server, |file, pinned| {
            let question = format!("Forget what was pinned of `{}`?", escape::line(&pinned.name));
            if !*yes && terminal::confirm(&question)? != Some(true) {
                return Ok(refused(
                    Exit::Found,
                    "nothing was forgotten: confirm at a terminal, or say --yes",
                ));
            }
            file.remove()?;
            Ok(Answer::result(
                Exit::Fine,
                format!("{}: forgot {}\n", style::good("ok"), escape::line(&pinned.name)),
            ))
        }),
    }
}

fn list() -> anyhow::Result<Answer> {
    let mut text = String::new();
    for (_, server) in PinFile::all()? {
        let waiting = server.changes().len() + server.waiting_grants().count();
        let (name, identity) = (escape::line(&server.name), escape::line(&server.identity));
        let _ = writeln!(
            text,
            "{name}  {}, {waiting} changed  {identity}",
            style::count(server.tool_count(), "tool", "tools")
        );
        for (tool, findings) in server.findings() {
            let findings = escape::line(&findings.join("; "));
            let _ =
                writeln!(text, "  {}: tool {}: {findings}", style::warning("finding"), escape::line(tool));
        }
    }
    let text = if text.is_empty() { "no server was pinned\n".to_owned() } else { text };
    Ok(Answer::result(Exit::Fine, text))
}

/// The one server of this name. Several that share it are told apart by nothing but their identity.
fn with_server(
    name: &str,
    act: impl FnOnce(PinFile, PinnedServer) -> anyhow::Result<Answer>,
) -> anyhow::Result<Answer> {
    let mut named: Vec<_> = PinFile::all()?
        .into_iter()
        .filter(|(_, server)| server.name == name || server.identity == name)
        .collect();
    match (named.pop(), named.is_empty()) {
        (Some((file, server)), true) => act(file, server),
        (Some(_), false) => Ok(refused(
            Exit::Usage,
            "several servers have this name; say what follows it in `bailiwick pins list`",
        )),
        (None, _) => {
            Ok(refused(Exit::Found, &format!("nothing was pinned of `{name}`; see `bailiwick pins list`")))
        }
    }
}

fn diff(server: &PinnedServer) -> Answer {
    let text = shown(server);
    if text.is_empty() {
        return Answer::result(Exit::Fine, "nothing has changed\n".to_owned());
    }
    Answer::result(Exit::Found, text)
}

fn shown(server: &PinnedServer) -> String {
    let mut text = String::new();
    for (project, old, new) in server.waiting_grants() {
        let _ =
            writeln!(text, "{}: what it may touch in {}", style::error("widening"), escape::line(project));
        for line in wider(old, new) {
            let _ = writeln!(text, "  {}", escape::line(&line));
        }
    }
    for change in server.changes() {
        let word = match change.drift {
            Drift::Harmless => style::good(change.drift.as_str()),
            Drift::Widening => style::error(change.drift.as_str()),
        };
        let _ = writeln!(text, "{word}: {}", escape::line(&change.subject.to_string()));
        for reason in &change.reasons {
            let _ = writeln!(text, "  {}", escape::line(reason));
        }
    }
    text
}

/// What one snapshot allows and the other does not.
pub(super) fn wider(old: &str, new: &str) -> Vec<String> {
    let read = |text: &str| Snapshot::parse(text).map_err(|findings| findings.to_string());
    let diff =
        read(old).and_then(|old| Diff::between(&old, &read(new)?).map_err(|findings| findings.to_string()));
    match diff {
        Err(why) => vec![why],
        Ok(diff) => {
            let wider = diff.differences().iter().filter(|difference| difference.widens());
            wider
                .map(|difference| {
                    let tool = difference.tool().map(|tool| format!("{tool}: ")).unwrap_or_default();
                    let example =
                        difference.example().map(|example| format!(" (`{example}`)")).unwrap_or_default();
                    format!("{tool}{}{example}", difference.message())
                })
                .collect()
        }
    }
}

fn approve(file: &PinFile, server: &PinnedServer, tool: Option<&str>, yes: bool) -> anyhow::Result<Answer> {
    let question = format!("{}Accept it?", shown(server));
    if !yes && terminal::confirm(&question)? != Some(true) {
        return Ok(refused(Exit::Found, "not accepted: confirm at a terminal, or say --yes"));
    }
    // What is accepted is what was shown.
    let accepted = file.change(|| server.clone(), |now| now.waits_like(server) && now.accept(tool))?;
    if !accepted {
        return Ok(refused(Exit::Found, "there is nothing to accept, or it changed meanwhile"));
    }
    Ok(Answer::result(
        Exit::Fine,
        format!("{}: accepted {}\n", style::good("ok"), escape::line(&server.name)),
    ))
}
