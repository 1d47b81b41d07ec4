//! `bailiwick wrap --explain`: what the server and each tool may do, and how this host would hold it.

use std::fmt::Write as _;

use bailiwick_launch::{Recorder, Status, Stdio};
use bailiwick_policy::authority::Authority;

use super::WrappedServer;
use crate::answer::{Answer, Exit};
use crate::commands::run::server_launch;
use crate::render::{escape, style};

pub(super) fn answer(server: &WrappedServer) -> Answer {
    // Nothing is started, so there is nothing to record.
    let recorder = Recorder::unrecorded(&server.name);
    let launch = match server_launch(&server.run, &server.asked, Stdio::Inherit, recorder) {
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

fn text(server: &WrappedServer, status: &Status) -> String {
    let mut text = format!("server {}\n", style::good(&escape::line(&server.name)));
    let Some(checked) = &server.asked.checked else { return text };
    text += &lines(checked.authority());
    for path in server.code.code.iter().chain(&server.code.data) {
        let _ = writeln!(text, "  reads its own project: {}", escape::line(&path.to_string_lossy()));
    }
    for tool in checked.tools() {
        let _ = write!(text, "tool {}\n{}", escape::line(tool.name()), lines(tool.authority()));
    }
    text += "held by the sandbox, for the server as a whole\n";
    for (aspect, held) in status.coverage.iter() {
        let _ = writeln!(text, "  {}: {}", aspect.as_str(), held.level.as_str());
    }
    text + "held by the gate, for each tool: which tools there are, paths and hosts in their arguments, and rules on them\n"
}

fn lines(authority: &Authority) -> String {
    match authority.capabilities() {
        None => "  more than a list of capabilities can say\n".to_owned(),
        Some(lines) if lines.is_empty() => "  nothing\n".to_owned(),
        Some(lines) => lines.iter().map(|line| format!("  {}\n", escape::line(&line.to_string()))).collect(),
    }
}
