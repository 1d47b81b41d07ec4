//! `bailiwick log verify`: whether the journal is what was written, and what that does not show.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::render::{escape, json, style};
use bailiwick_command::terminal;
use bailiwick_journal::{
    Expected, JournalFault, Problem, Report, SessionReport, local_fingerprint, verify, verify_watched,
};
use serde_json::{Value, json};

use super::anchored::{self, AnchoredHeads};
use super::{Scope, refusal, unreadable};
use crate::args::log::{Head, Verify};

/// The most sessions that are listed for people.
const SHOWN: usize = 20;

/// How long it runs before it shows progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long one note of progress stays.
const REDRAWN: Duration = Duration::from_millis(200);

/// What verification cannot show, whatever it finds.
const NOT_SHOWN: [&str; 3] = [
    "who can read the key can write and sign another history",
    "older copies of everything, put back together, are genuine: only a last line kept elsewhere tells",
    "that what was recorded is true, or the clock was right",
];

pub(super) fn run(scope: &Scope, args: Verify) -> anyhow::Result<Answer> {
    let mut heads: Vec<_> = args.heads.iter().map(|Head(session, point)| (session.clone(), *point)).collect();
    let anchored = match args.fleet.then(|| anchored::heads(&args)).transpose() {
        Ok(anchored) => anchored,
        Err(why) => return Ok(refusal(Exit::Invalid, &format!("{why:#}; nothing was verified"))),
    };
    let mut key = args.key;
    if let Some(anchored) = &anchored {
        heads.extend(anchored.heads.iter().cloned());
        key = key.or(anchored.key);
    }
    let given = key.is_some();
    let expected = Expected { key, heads, session: scope.filter.session.clone() };
    let report = match watched(scope, &expected) {
        Ok(report) => report,
        Err(fault) => return Ok(unreadable(&fault)),
    };
    if report.sessions.is_empty() && report.is_intact() {
        let what = expected.session.map_or_else(|| "a session".to_owned(), |one| format!("session `{one}`"));
        let why = format!("`{}` does not have {what}: nothing was verified", scope.dir.display());
        return Ok(refusal(Exit::Invalid, &why));
    }
    let exit = if report.is_intact() { Exit::Fine } else { Exit::Found };
    Ok(Answer::result(
        exit,
        match scope.format {
            AnswerFormat::Text => {
                anchored.as_ref().map(AnchoredHeads::line).unwrap_or_default() + &text(scope, &report, given)
            }
            AnswerFormat::Json => {
                let mut document = document(&report, given);
                if let (Some(anchored), Some(fields)) = (&anchored, document.as_object_mut()) {
                    fields.insert("fleet".to_owned(), anchored.document());
                }
                json::document(&document)
            }
        },
    ))
}

/// Verifies, and says on a terminal how far it is when that takes long.
fn watched(scope: &Scope, expected: &Expected) -> Result<Report, JournalFault> {
    let Some(progress) = terminal::Progress::begin() else { return verify(&scope.dir, expected) };
    let (lines, sessions) = (AtomicU64::new(0), AtomicUsize::new(0));
    std::thread::scope(|threads| {
        let work = threads.spawn(|| {
            verify_watched(&scope.dir, expected, |walked, done| {
                lines.store(walked, Ordering::Relaxed);
                sessions.store(done, Ordering::Relaxed);
            })
        });
        let (started, mut shown) = (Instant::now(), PATIENCE);
        while !work.is_finished() {
            std::thread::sleep(Duration::from_millis(10));
            if started.elapsed() > shown {
                shown = started.elapsed() + REDRAWN;
                let (lines, done) = (lines.load(Ordering::Relaxed), sessions.load(Ordering::Relaxed));
                let done = style::count(done, "session", "sessions");
                progress.set(format!("verifying: {done}, {lines} lines, {} s", started.elapsed().as_secs()));
            }
        }
        progress.end();
        work.join().unwrap_or(Err(JournalFault::Stopped))
    })
}

fn text(scope: &Scope, report: &Report, given: bool) -> String {
    let mut text = String::new();
    for problem in report.problems() {
        text += &format!("{}\n", located(problem));
    }
    text += &verdict(report);
    for session in report.sessions.iter().rev().take(SHOWN) {
        text += &format!("  {}\n", one_session(session));
    }
    if report.sessions.len() > SHOWN {
        text += &format!("  and {} more\n", report.sessions.len() - SHOWN);
    }
    text += &key_line(scope, report, given);
    if report.is_intact() {
        text += &keep(report);
    }
    text += "not shown by this:\n";
    NOT_SHOWN.iter().fold(text, |text, what| text + &format!("  {what}\n"))
}

/// `file:line: code: why`.
fn located(problem: &Problem) -> String {
    let file = escape::line(&problem.file.to_string_lossy());
    let place = if problem.line == 0 { file } else { format!("{file}:{}", problem.line) };
    format!("{place}: {}: {}", style::error(problem.tamper.code()), escape::line(&problem.detail))
}

fn verdict(report: &Report) -> String {
    let problems = report.problems().count();
    let sessions = style::count(report.sessions.len(), "session", "sessions");
    let lines: u64 = report.sessions.iter().map(|session| session.lines).sum();
    if problems == 0 {
        let ok = style::good("intact");
        return format!("{ok}: {sessions}, {lines} lines: every chain, seal and index entry holds\n");
    }
    let problems = style::count(problems, "problem", "problems");
    format!("{}: {problems}, the first of each session; {sessions} looked at\n", style::error("not intact"))
}

fn one_session(session: &SessionReport) -> String {
    let state = if session.problems.is_empty() { style::good("ok") } else { style::error("bad") };
    let last = session.last.map(|point| format!(", last {} {}", point.seq, point.hash)).unwrap_or_default();
    let live = if session.is_live { ", being written now" } else { "" };
    let removed = session.removed.map(|upto| format!(", removed up to {}", upto.seq)).unwrap_or_default();
    format!("{state}  {}: {} lines{removed}{last}{live}", session.session, session.lines)
}

fn key_line(scope: &Scope, report: &Report, given: bool) -> String {
    let Some(key) = report.key else { return "key: none was seen\n".to_owned() };
    let origin = match local_fingerprint(&scope.dir) {
        _ if given => "as given".to_owned(),
        Ok(Some(_)) => "the one beside the journal; who could write there could replace it".to_owned(),
        Ok(None) => "that of the first seal: there is no key beside the journal".to_owned(),
        Err(fault) => format!("that of the first seal: {}", escape::line(&fault.to_string())),
    };
    format!("key: {key}\n  {origin}\n")
}

/// What to keep elsewhere, as the command that uses it.
fn keep(report: &Report) -> String {
    let Some(key) = report.key else { return String::new() };
    let newest = report.sessions.iter().rev().filter_map(|one| Some((&one.session, one.last?))).next();
    let head = newest.map(|(session, point)| format!(" --head {session}:{}:{}", point.seq, point.hash));
    let command = format!("bailiwick log verify --key {key}{}", head.unwrap_or_default());
    format!(
        "keep the key's fingerprint and the last lines elsewhere, and verify against them:\n  {command}\n"
    )
}

fn document(report: &Report, given: bool) -> Value {
    let problem = |problem: &Problem| {
        json!({
            "file": problem.file.to_string_lossy(),
            "line": (problem.line > 0).then_some(problem.line),
            "seq": problem.seq,
            "code": problem.tamper.code(),
            "meaning": problem.tamper.meaning(),
            "why": problem.detail,
        })
    };
    let session = |session: &SessionReport| {
        let point = |point: bailiwick_journal::format::Point| json!({ "seq": point.seq, "hash": point.hash.to_string() });
        json!({
            "session": session.session.as_str(),
            "intact": session.problems.is_empty(),
            "segments": session.segments,
            "lines": session.lines,
            "last": session.last.map(point),
            "removed_up_to": session.removed.map(point),
            "live": session.is_live,
        })
    };
    json!({
        "format": "bailiwick.verify/1",
        "intact": report.is_intact(),
        "key": report.key.map(|key| key.to_string()),
        "key_given": given,
        "sessions": report.sessions.iter().map(session).collect::<Vec<_>>(),
        "problems": report.problems().map(problem).collect::<Vec<_>>(),
        "not_shown": NOT_SHOWN,
    })
}
