//! `bailiwick top`: the servers that run and the last denials, drawn anew while one looks.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bailiwick_guardrails::approvals;
use bailiwick_journal::format::{Decision, Record, RecordKind};
use bailiwick_journal::{Filter, last_records, sessions};

use super::ps::megabytes;
use super::trust::state;
use crate::answer::{Answer, Chunk, Exit, Flow, Out};
use crate::args::console::Top;
use crate::pin_store::PinFile;
use crate::render::{escape, style};
use crate::running::{self, RunningServer};
use crate::{facts, moment, terminal};

/// How often the table is drawn.
const EVERY: Duration = Duration::from_secs(1);
/// How soon an interrupt is noticed.
const PAUSE: Duration = Duration::from_millis(50);
/// How many of the newest sessions are looked at for denials.
const SESSIONS: usize = 16;
/// The most characters of a text.
const SHOWN: usize = 72;
/// From the upper left corner, what was there is cleared.
const ANEW: &str = "\u{1b}[H\u{1b}[2J\u{1b}[3J";

pub(super) fn run(args: &Top) -> anyhow::Result<Answer> {
    if args.once || !terminal::is_terminal() {
        return Ok(Answer::result(Exit::Fine, table(args.denials)?));
    }
    let tables = Tables { denials: args.denials, last: None, stopped: terminal::interrupted()? };
    Ok(Answer { exit: Exit::Fine, out: Out::Flow(Flow::new(false, tables)), complaint: String::new() })
}

/// One table after the other, until an interrupt.
struct Tables {
    denials: usize,
    last: Option<Instant>,
    stopped: Arc<AtomicBool>,
}

impl Iterator for Tables {
    type Item = anyhow::Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.last.is_some_and(|last| last.elapsed() < EVERY) {
            if self.stopped.load(Ordering::Relaxed) {
                return None;
            }
            std::thread::sleep(PAUSE);
        }
        self.last = Some(Instant::now());
        Some(table(self.denials).map(|text| Chunk::Out(format!("{ANEW}{text}"))))
    }
}

fn table(denials: usize) -> anyhow::Result<String> {
    let servers = running::all()?;
    let waiting = approvals::pending(&state()?, facts::now_us())?.len();
    let mut text = format!(
        "{}  {}, {} for a person\n\n",
        style::strong("bailiwick top"),
        style::count(servers.len(), "server", "servers"),
        style::count(waiting, "call waits", "calls wait"),
    );
    let _ = writeln!(
        text,
        "{}",
        style::faint(&format!(
            "{:<22} {:>8} {:>7} {:>7} {:>9}  {}",
            "SERVER", "PID", "CALLS", "DENIED", "MEMORY", "PINS"
        ))
    );
    for server in &servers {
        let _ = writeln!(text, "{}", row(server));
    }
    if servers.is_empty() {
        text += "no wrapped server runs; `bailiwick install --servers` puts your clients' servers behind Bailiwick\n";
    }
    let _ = writeln!(text, "\n{}", style::faint("LAST DENIALS"));
    let last = last_denials(denials)?;
    if last.is_empty() {
        text += "nothing was denied\n";
    }
    let now = facts::now_us();
    for record in last.iter().rev() {
        let _ = writeln!(text, "{}", denial(record, now));
    }
    Ok(text)
}

fn row(server: &RunningServer) -> String {
    let (own, others) = running::memory(server.pid);
    let pinned = PinFile::for_identity(&server.identity).and_then(|file| file.read());
    let pins = match pinned {
        Err(_) => style::error("unreadable"),
        Ok(None) => "none yet".to_owned(),
        Ok(Some(pinned)) => match pinned.changes().len() + pinned.waiting_grants().count() {
            0 => style::good("as pinned"),
            changed => style::warning(&format!("{changed} changed")),
        },
    };
    let denied = format!("{:>7}", server.denials);
    let denied = if server.denials == 0 { denied } else { style::error(&denied) };
    let name = format!("{:<22}", short(&server.name, 22));
    let memory = format!("{} MB", megabytes(own + others));
    format!("{} {:>8} {:>7} {denied} {memory:>9}  {pins}", style::strong(&name), server.pid, server.calls)
}

fn denial(record: &Record, now: u64) -> String {
    let event = record.event();
    let tool = event.and_then(|event| event.tool()).unwrap_or("-");
    let reason = event.and_then(|event| event.reason()).unwrap_or_default();
    let reason = reason.split(" (granted: ").next().unwrap_or_default();
    let when = moment::ago(record.time(), now);
    format!("{when:>9}  {:<18} {}", short(tool, 18), short(reason, SHOWN))
}

/// The newest denials of the newest sessions, oldest first.
fn last_denials(count: usize) -> anyhow::Result<Vec<Record>> {
    let dir = facts::journal_dir().context("neither XDG_STATE_HOME nor HOME says where the journal is")?;
    let mut listed = sessions(&dir)?;
    listed.sort_by_key(|one| std::cmp::Reverse(one.last));
    let filter = Filter { decision: Some(Decision::Deny), ..Filter::default() };
    let denied =
        |record: &Record| record.event().is_some_and(|event| event.kind() != RecordKind::ToolFinished);
    let mut all: Vec<Record> = Vec::new();
    for one in listed.iter().take(SESSIONS) {
        // An end repeats its denial.
        let (found, _): (Vec<Record>, _) =
            last_records(&dir, &one.session, &filter, count.saturating_mul(2))?;
        all.extend(found.into_iter().filter(denied));
    }
    all.sort_by_key(Record::time);
    let more = all.len().saturating_sub(count);
    all.drain(..more);
    Ok(all)
}

fn short(text: &str, most: usize) -> String {
    let text = escape::line(text);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).collect::<String>() + "…"
}
