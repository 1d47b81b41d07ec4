//! `bailiwick wrap --explain`: what the server and each tool may do, and how this host would hold it.

use std::fmt::Write as _;

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::render::{escape, style};
use bailiwick_launch::{Recorder, Status, Stdio};
use bailiwick_policy::authority::Authority;
use bailiwick_policy::enforcement::{Aspect, Level};

use super::WrappedServer;
use crate::commands::run::{PlannedRun, server_launch};

/// How a server that runs elsewhere is held.
pub(super) fn answer_elsewhere(server: &WrappedServer) -> Answer {
    let mut text = granted(server);
    text += "held by no sandbox: the server runs elsewhere\n";
    for aspect in Aspect::ALL {
        let _ = writeln!(text, "  {}: {}", aspect.as_str(), Level::Unsupported.as_str());
    }
    Answer::result(Exit::Fine, text + GATE)
}

pub(super) fn answer(server: &WrappedServer) -> Answer {
    // Nothing is started, so there is nothing to record.
    let recorder = Recorder::unrecorded(&server.name);
    let secrets = server.secrets.as_ref();
    let launch = match server_launch(&server.run, &server.asked, Stdio::Inherit, recorder, secrets) {
        Ok(launch) => launch,
        Err(refusal) => return refusal,
    };
    match launch.with_code(server.code.code.clone(), server.code.data.clone()).telling_sockets().prepare() {
        Ok(ready) => Answer::result(Exit::Fine, text(server, ready.status())),
        Err(refusal) => {
            Answer::refusal(Exit::Program(refusal.exit_code()), super::complaint(&refusal.to_string()))
        }
    }
}

/// What the gate holds, wherever the server runs.
const GATE: &str = "held by the gate, for each tool: which tools there are, paths and hosts in their arguments, and rules on them\n";

/// What the server and each tool may touch.
fn granted(server: &WrappedServer) -> String {
    let mut text = format!("server {}\n", style::good(&escape::line(&server.name)));
    for note in &server.notes {
        let _ = writeln!(text, "  {}: {}", style::warning("note"), escape::line(note));
    }
    let checked = &server.checked;
    text += &lines(checked.authority());
    for path in server.code.code.iter().chain(&server.code.data) {
        let _ = writeln!(text, "  reads its own project: {}", escape::line(&path.to_string_lossy()));
    }
    for tool in checked.tools() {
        let _ = write!(text, "tool {}\n{}", escape::line(tool.name()), lines(tool.authority()));
    }
    text
}

fn text(server: &WrappedServer, status: &Status) -> String {
    let mut text = granted(server);
    if server.groups.is_empty() {
        text += "held by the sandbox, for the server as a whole\n";
    } else {
        text += &processes(server);
        text += "held by the sandbox, for each process\n";
    }
    for (aspect, held) in status.coverage.iter() {
        let _ = writeln!(text, "  {}: {}", aspect.as_str(), held.level.as_str());
    }
    text + GATE
}

/// Who runs where.
fn processes(server: &WrappedServer) -> String {
    let of = |asked: &PlannedRun| asked.checked.as_ref().map(|checked| checked.authority().clone());
    let apart = |name: &str| server.groups.iter().any(|group| group.tools.iter().any(|tool| tool == name));
    let own: Vec<&str> =
        server.checked.tools().iter().map(|tool| tool.name()).filter(|name| !apart(name)).collect();
    let own = if own.is_empty() { String::new() } else { format!(", {}", own.join(", ")) };
    let mut text =
        format!("process 1, from the start: the session, lists, notifications{}\n", escape::line(&own));
    text += &of(&server.asked).map(|authority| lines(&authority)).unwrap_or_default();
    for (number, group) in (2..).zip(&server.groups) {
        let shares = if group.is_shared { " (they share what they keep in it)" } else { "" };
        let tools = escape::line(&group.tools.join(", "));
        let _ = writeln!(text, "process {number}, with the first call: {tools}{shares}");
        // Tools that run together without sharing were granted the same.
        let first = group.tools.first().filter(|_| !group.is_shared);
        let authority = first.and_then(|tool| server.checked.tool(tool)).map(|tool| tool.authority().clone());
        text += &authority.or_else(|| of(&group.asked)).map(|all| lines(&all)).unwrap_or_default();
    }
    text
}

fn lines(authority: &Authority) -> String {
    match authority.capabilities() {
        None => "  more than a list of capabilities can say\n".to_owned(),
        Some(lines) if lines.is_empty() => "  nothing\n".to_owned(),
        Some(lines) => lines.iter().map(|line| format!("  {}\n", escape::line(&line.to_string()))).collect(),
    }
}
