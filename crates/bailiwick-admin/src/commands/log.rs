//! `bailiwick log`: reading, verifying and explaining the journal.
//!
//! Reading judges nothing: whether the lines are genuine is the question of `verify`. A line that is not a record is
//! named on stderr and makes the exit code 3; it is never left out in silence.

#[cfg(target_os = "linux")]
mod anchored;
#[cfg(not(target_os = "linux"))]
#[path = "log/anchored/elsewhere.rs"]
mod anchored;
mod export;
mod find;
mod prune;
mod show;
mod stats;
mod tail;
mod verify;
mod why;

use std::path::PathBuf;

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::render::{escape, style};
use bailiwick_command::{facts, terminal};
use bailiwick_journal::format::SessionId;
use bailiwick_journal::{Filter, JournalFault, sessions};

use crate::args::log::{Log, LogCommand, Selection, Tail};
use crate::render::event::Clock;

/// Where the journal is, what is wanted of it, and how it is shown.
struct Scope {
    dir: PathBuf,
    filter: Filter,
    format: AnswerFormat,
    clock: Clock,
    now: u64,
}

pub(super) fn run(log: Log) -> anyhow::Result<Answer> {
    let Log { selection, tail, command } = log;
    if let Some(refusal) = misplaced(&selection, tail, command.as_ref()) {
        return Ok(refusal);
    }
    let scope = match Scope::from_selection(selection) {
        Ok(scope) => scope,
        Err(refusal) => return Ok(refusal),
    };
    let command = command.unwrap_or(LogCommand::Tail(tail));
    let follows = matches!(&command, LogCommand::Tail(own) if own.follow || tail.follow);
    if !follows && !scope.dir.is_dir() {
        let why = format!("there is no journal in `{}`", scope.dir.display());
        return Ok(refusal(Exit::Invalid, &why));
    }
    match command {
        LogCommand::Tail(own) => {
            let (lines, follow) = (own.lines.or(tail.lines), own.follow || tail.follow);
            tail::run(scope, lines.unwrap_or(20), follow)
        }
        LogCommand::Show(args) => Ok(show::run(&scope, &args.event)),
        LogCommand::Stats => Ok(stats::run(&scope)),
        LogCommand::Verify(args) => verify::run(&scope, args),
        LogCommand::Export(args) => export::run(&scope, args.out.as_deref()),
        LogCommand::Why(args) => Ok(why::run(&scope, &args.event)),
        LogCommand::Prune(args) => prune::run(&scope, &args),
    }
}

impl Scope {
    fn from_selection(selection: Selection) -> Result<Self, Answer> {
        let now = facts::now_us();
        let Some(dir) = selection.dir.or_else(facts::journal_dir) else {
            let why = "neither XDG_STATE_HOME nor HOME says where the journal is: use --dir";
            return Err(refusal(Exit::Usage, why));
        };
        let filter = Filter {
            session: selection.session,
            tool: selection.tool,
            decision: selection.decision,
            kind: selection.kind,
            since: selection.since.map(|when| when.at(now)),
            until: selection.until.map(|when| when.at(now)),
            with_seals: false,
        };
        let clock = if terminal::is_terminal() { Clock::Since(now) } else { Clock::Utc };
        Ok(Self { dir, filter, format: selection.format.unwrap_or(AnswerFormat::Text), clock, now })
    }

    /// The session that is meant when none is named: that with the newest line.
    fn newest(&self) -> Result<Option<SessionId>, JournalFault> {
        let listed = sessions(&self.dir)?.into_iter().filter(|one| one.segments > 0);
        Ok(listed.max_by(|a, b| (a.last, &a.session).cmp(&(b.last, &b.session))).map(|one| one.session))
    }
}

/// Options that do not belong to the command they are given to: to ignore one could show or remove too much.
fn misplaced(selection: &Selection, tail: Tail, command: Option<&LogCommand>) -> Option<Answer> {
    let events = [
        ("--tool", selection.tool.is_some()),
        ("--decision", selection.decision.is_some()),
        ("--kind", selection.kind.is_some()),
        ("--since", selection.since.is_some()),
        ("--until", selection.until.is_some()),
    ];
    let session = ("--session", selection.session.is_some());
    let text = ("--format text", selection.format == Some(AnswerFormat::Text));
    let of_tail = ("-n and -f", tail.follow || tail.lines.is_some());
    let (name, refused) = match command {
        None | Some(LogCommand::Tail(_)) => return None,
        Some(LogCommand::Stats) => ("stats", vec![of_tail]),
        Some(LogCommand::Export(_)) => ("export", vec![of_tail, text]),
        Some(LogCommand::Show(_)) => ("show", [&events[..], &[of_tail]].concat()),
        Some(LogCommand::Why(_)) => ("why", [&events[..], &[of_tail]].concat()),
        Some(LogCommand::Verify(_)) => ("verify", [&events[..], &[of_tail]].concat()),
        Some(LogCommand::Prune(_)) => ("prune", [&events[..], &[of_tail, session]].concat()),
    };
    let (option, _) = refused.into_iter().find(|(_, given)| *given)?;
    Some(refusal(Exit::Usage, &format!("`{option}` does not go with `{name}`")))
}

fn refusal(exit: Exit, why: &str) -> Answer {
    Answer::refusal(exit, complaint(why))
}

/// A journal that cannot be read.
fn unreadable(fault: &JournalFault) -> Answer {
    refusal(Exit::Invalid, &format!("{}: {fault}", fault.code()))
}

fn complaint(why: &str) -> String {
    format!("{}: {}\n", style::error("error"), escape::line(why))
}
