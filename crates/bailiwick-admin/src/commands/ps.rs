//! `bailiwick ps`: the wrapped servers and served sessions that run now.

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::pin_store::PinFile;
use bailiwick_command::render::{escape, json, style};
use bailiwick_command::running::RunningServer;
use bailiwick_command::{moment, running};
use serde_json::json;

use crate::args::ps::Ps;

pub(super) fn run(args: &Ps) -> anyhow::Result<Answer> {
    let servers = running::all()?;
    let text = match args.format {
        AnswerFormat::Json => {
            let all: Vec<_> = servers.iter().map(as_json).collect();
            return Ok(Answer::bytes(json::document(&json!({ "format": "bailiwick.ps/1", "servers": all }))));
        }
        AnswerFormat::Text if servers.is_empty() => "no wrapped server runs\n".to_owned(),
        AnswerFormat::Text => servers.iter().map(as_text).collect(),
    };
    Ok(Answer::result(Exit::Fine, text))
}

/// What is pinned of a server: how many tools, and how many changes wait. `None` if that cannot be read.
fn pins(server: &RunningServer) -> Option<(usize, usize)> {
    let pinned = PinFile::for_identity(&server.identity).and_then(|file| file.read()).ok()?;
    Some(pinned.map_or((0, 0), |pinned| (pinned.tool_count(), pinned.changes().len())))
}

pub(super) fn as_json(server: &RunningServer) -> serde_json::Value {
    let (own, others) = running::memory(server.pid);
    let pins = pins(server).map(|(tools, waiting)| json!({ "tools": tools, "waiting": waiting }));
    json!({
        "name": server.name,
        "pid": server.pid,
        "server_pid": server.server_pid,
        "command": server.command,
        "since": moment::utc(server.since),
        "era": server.era,
        "calls": server.calls,
        "denials": server.denials,
        "memory": { "server": others, "wrap": own },
        "pins": pins,
        "session": server.session,
        "authority": server.authority,
        "served": server.is_served,
    })
}

fn as_text(server: &RunningServer) -> String {
    let (own, others) = running::memory(server.pid);
    if server.is_served {
        return format!(
            "{}  pid {}  served  {} MB  since {}\n{}",
            style::strong(&escape::line(&server.name)),
            server.pid,
            megabytes(own + others),
            moment::utc(server.since),
            touches(server)
        );
    }
    let calls = usize::try_from(server.calls).unwrap_or(usize::MAX);
    let pins = match pins(server) {
        None => "pins cannot be read".to_owned(),
        Some((tools, waiting)) => {
            format!("{} pinned, {waiting} changed", style::count(tools, "tool", "tools"))
        }
    };
    format!(
        "{}  pid {}  {}  {}, {} denied  {} + {} MB  {pins}  since {}\n{}",
        style::strong(&escape::line(&server.name)),
        server.pid,
        server.era.as_deref().unwrap_or("no client yet"),
        style::count(calls, "call", "calls"),
        server.denials,
        megabytes(others),
        megabytes(own),
        moment::utc(server.since),
        touches(server),
    )
}

/// What it may touch, a line each.
fn touches(server: &RunningServer) -> String {
    match &server.authority {
        None => "  more than a list of capabilities can say\n".to_owned(),
        Some(lines) if lines.is_empty() => "  may touch nothing\n".to_owned(),
        Some(lines) => lines.iter().map(|line| format!("  {}\n", escape::line(line))).collect(),
    }
}

/// Megabytes with one digit behind the point.
pub(super) fn megabytes(bytes: u64) -> String {
    let tenths = bytes / 100_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}
