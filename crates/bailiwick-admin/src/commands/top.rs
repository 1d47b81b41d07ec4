//! `bailiwick top`: the servers that run and the last denials, drawn anew while a person looks.

use std::fmt::Write as _;

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Drawn, Exit, Out};
use bailiwick_command::pin_store::PinFile;
use bailiwick_command::render::{escape, style};
use bailiwick_command::running::RunningServer;
use bailiwick_command::terminal::ScreenSize;
use bailiwick_command::user_state::state;
use bailiwick_command::{facts, moment, running, terminal};
use bailiwick_guardrails::approvals;
use bailiwick_journal::format::{Decision, Record, RecordKind};
use bailiwick_journal::{Filter, last_records, sessions};

use super::ps::megabytes;
use crate::args::console::Top;

/// How many of the newest sessions are looked at for denials.
const SESSIONS: usize = 16;
const HEAD: &str = "SERVER                      PID   CALLS  DENIED    MEMORY  PINS";
/// How many characters of a server's name are shown, and of a tool's.
const NAME: usize = 22;
const TOOL: usize = 18;
/// What stands left of what a server may touch, and of the reason of a denial.
const BEFORE_TOUCHES: usize = NAME + 51;
const BEFORE_REASON: usize = TOOL + 12;
/// From how many characters on there is room for what a server may touch.
const WIDE: usize = 120;
/// Lines that are always there: title, heads, what is between them, and the last one.
const FIXED_ROWS: usize = 7;
/// A table that is printed has as many rows as it needs.
const PRINTED: ScreenSize = ScreenSize { columns: 103, rows: usize::MAX };

pub(super) fn run(args: &Top) -> anyhow::Result<Answer> {
    let denials = args.denials;
    if args.once || !terminal::is_terminal() {
        return Ok(Answer::result(Exit::Fine, table(denials, PRINTED)?));
    }
    let draw = move |size| Ok(format!("{}\n{}", table(denials, size)?, style::faint("q quits")));
    Ok(Answer { exit: Exit::Fine, out: Out::Screen(Drawn(Box::new(draw))), complaint: String::new() })
}

fn table(denials: usize, size: ScreenSize) -> anyhow::Result<String> {
    let servers = running::all()?;
    let waiting = approvals::pending(&state()?, facts::now_us())?.len();
    let waits = format!("{} for a person", style::count(waiting, "call waits", "calls wait"));
    let mut text = format!(
        "{}  {}, {}\n\n",
        style::strong("bailiwick top"),
        style::count(servers.len(), "server", "servers"),
        if waiting == 0 { waits } else { style::warning(&waits) },
    );
    let touches = if size.columns < WIDE { "" } else { "          MAY TOUCH" };
    let _ = writeln!(text, "{}", style::faint(&format!("{HEAD}{touches}")));
    let room = size.rows.saturating_sub(FIXED_ROWS);
    // Denials get what servers leave, and a third at least.
    let for_servers = room.saturating_sub(denials.min(room / 3));
    let (shown, hidden) = servers.split_at(servers.len().min(for_servers));
    for server in shown {
        let _ = writeln!(text, "{}", row(server, size.columns));
    }
    if !hidden.is_empty() {
        let _ = writeln!(text, "and {} more: `bailiwick ps`", hidden.len());
    }
    if servers.is_empty() {
        let hint = "no wrapped server runs; `bailiwick install --servers` wraps those of your clients";
        let _ = writeln!(text, "{}", short(hint, size.columns));
    }
    let _ = writeln!(text, "\n{}", style::faint("LAST DENIALS"));
    let used = shown.len().max(1) + usize::from(!hidden.is_empty());
    let last = last_denials(denials.min(room.saturating_sub(used)))?;
    if last.is_empty() {
        text += "nothing was denied\n";
    }
    let now = facts::now_us();
    for record in last.iter().rev() {
        let _ = writeln!(text, "{}", denial(record, &servers, now, size.columns));
    }
    Ok(text)
}

fn row(server: &RunningServer, columns: usize) -> String {
    let (own, others) = running::memory(server.pid);
    let pinned = PinFile::for_identity(&server.identity).and_then(|file| file.read());
    let (pins, paint): (_, fn(&str) -> String) = match pinned {
        _ if server.is_served => ("served".to_owned(), str::to_owned),
        Err(_) => ("unreadable".to_owned(), style::error),
        Ok(None) => ("none yet".to_owned(), str::to_owned),
        Ok(Some(pinned)) => match pinned.changes().len() + pinned.waiting_grants().count() {
            0 => ("as pinned".to_owned(), style::good),
            changed => (format!("{changed} changed"), style::warning),
        },
    };
    let denied = format!("{:>7}", server.denials);
    let denied = if server.denials == 0 { denied } else { style::error(&denied) };
    let name = padded(&server.name, NAME);
    let memory = format!("{} MB", megabytes(own + others));
    let pins = paint(&pins) + &" ".repeat(12_usize.saturating_sub(pins.chars().count()));
    let row = format!(
        "{} {:>8} {:>7} {denied} {memory:>9}  {pins}",
        style::strong(&name),
        server.pid,
        server.calls
    );
    if columns < WIDE {
        return row.trim_end().to_owned();
    }
    let touches = match &server.authority {
        None => "more than a list can say".to_owned(),
        Some(lines) if lines.is_empty() => "nothing".to_owned(),
        Some(lines) => lines.join(" "),
    };
    format!("{row}  {}", short(&touches, columns.saturating_sub(BEFORE_TOUCHES)))
}

fn denial(record: &Record, servers: &[RunningServer], now: u64, columns: usize) -> String {
    let event = record.event();
    let of_session = || servers.iter().find(|one| one.session.as_deref() == Some(record.session.as_str()));
    let tool = event.and_then(|event| event.tool());
    let tool = tool.or_else(|| of_session().map(|server| &*server.name)).unwrap_or("-");
    let reason = event.and_then(|event| event.reason()).unwrap_or_default();
    let reason = reason.split(" (granted: ").next().unwrap_or_default();
    // The tool stands before it already.
    let reason = reason.split_once("' denied by policy: ").map_or(reason, |(_, rest)| rest);
    let when = moment::ago(record.time(), now);
    format!("{when:>9}  {} {}", padded(tool, TOOL), short(reason, columns.saturating_sub(BEFORE_REASON)))
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

/// As many columns as there are, and no more.
fn padded(text: &str, columns: usize) -> String {
    let text = short(text, columns);
    let rest = columns.saturating_sub(text.chars().map(columns_of).sum());
    text + &" ".repeat(rest)
}

fn short(text: &str, most: usize) -> String {
    let text = escape::line(text);
    if text.chars().map(columns_of).sum::<usize>() <= most {
        return text;
    }
    let mut used = 1;
    let kept = text.chars().take_while(|c| {
        used += columns_of(*c);
        used <= most
    });
    kept.collect::<String>() + "…"
}

/// How many columns a terminal takes for a character: two for those of East Asia and for pictures.
fn columns_of(c: char) -> usize {
    let is_wide = matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}')
        || matches!(c, '\u{fe30}'..='\u{ff60}' | '\u{1f300}'..='\u{3fffd}');
    1 + usize::from(is_wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_take_the_columns_that_they_are_given() {
        assert_eq!(padded("notes", 8), "notes   ");
        assert_eq!(padded("notes-server", 8), "notes-s…");
        assert_eq!(padded("日本語", 8), "日本語  ");
        assert_eq!(padded("日本語の名前", 8), "日本語… ");
        assert_eq!(padded("a\u{1b}[2Jb", 20), "a\\u{1b}[2Jb         ");
    }
}
