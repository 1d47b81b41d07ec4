//! The command line of `bailiwick log`.
//!
//! What selects events stands at `log` itself and counts for every subcommand; one that cannot be meant there is
//! refused, never ignored.

use std::path::PathBuf;
use std::str::FromStr;

use bailiwick_command::moment::{Span, When};
use bailiwick_journal::format::{Decision, Digest, Point, RecordKind, SessionId};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use super::AnswerFormat;

/// Arguments of `log`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick log                                  the last events of the newest session
  bailiwick log tail -f --decision deny          every denial, as it happens
  bailiwick log why 1767225600-0badcafe:17       why it was denied, and what would allow it
  bailiwick log stats --since 7d
  bailiwick log verify --key FINGERPRINT
  bailiwick log export --tool shell --out shell.json

Text, unless --format says otherwise; `export` always writes JSON.
Exit codes: 0 ok · 1 verification failed · 2 usage · 3 a journal or a line of it cannot be read · 5 fault")]
pub(crate) struct Log {
    #[command(flatten)]
    pub(crate) tail: Tail,
    #[command(flatten)]
    pub(crate) selection: Selection,
    #[command(subcommand)]
    pub(crate) command: Option<LogCommand>,
}

/// What to do with the journal.
#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Show the last events of the newest session, or of --session
    #[command(after_help = "Examples:\n  bailiwick log tail -n 50\n  bailiwick log tail -f --tool shell")]
    Tail(Tail),
    /// Show one event whole, with what caused it and what it caused
    #[command(after_help = "Example:\n  bailiwick log show 1767225600-0badcafe:17")]
    Show(Named),
    /// Count events by decision, kind, tool and code
    #[command(after_help = "Example:\n  bailiwick log stats --since 7d --decision deny")]
    Stats,
    /// Verify every line, seal and index entry
    #[command(after_help = "Examples:
  bailiwick log verify
  bailiwick log verify --key FINGERPRINT --head 1767225600-0badcafe:41:HASH
  bailiwick log verify --fleet
  bailiwick log verify --fleet --log-files /srv/log --machine ID --dir copy-of-its-journal

Exit codes: 0 intact · 1 problems, each with its file and line · 3 there is nothing that can be verified")]
    Verify(Verify),
    /// Write the selected events as one JSON document
    #[command(after_help = "Example:\n  bailiwick log export --since 2026-01-01T00:00:00Z --out events.json")]
    Export(Export),
    /// Explain a denial: what was asked, what was granted, and the smallest grant that would allow it
    #[command(after_help = "Example:\n  bailiwick log why 1767225600-0badcafe:17")]
    Why(Named),
    /// Remove what is older, leaving signed tombstones so that verification still holds
    #[command(after_help = "Example:\n  bailiwick log prune --older-than 30d --yes

Whole segments go, when their last line is older. A session that does not verify is kept.
Exit codes: 0 done · 1 a session was kept because it does not verify · 2 usage · 5 fault")]
    Prune(Prune),
}

/// Which events, where they are, and how they are shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct Selection {
    /// Only this session.
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) session: Option<SessionId>,
    /// Only events about this tool.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only events with this decision.
    #[arg(long, global = true, value_name = "DECISION", value_parser = decision())]
    pub(crate) decision: Option<Decision>,
    /// Only events of this kind.
    #[arg(long, global = true, value_name = "KIND", value_parser = kind())]
    pub(crate) kind: Option<RecordKind>,
    /// Only from this time on: RFC 3339, or `10m`, `2h`, `3d` ago.
    #[arg(long, global = true, value_name = "TIME")]
    pub(crate) since: Option<When>,
    /// Only before this time.
    #[arg(long, global = true, value_name = "TIME")]
    pub(crate) until: Option<When>,
    /// Where the journal is [default: $XDG_STATE_HOME/bailiwick/journal].
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// How to print [default: text].
    #[arg(long, global = true, value_enum)]
    pub(crate) format: Option<AnswerFormat>,
}

/// Arguments of `tail`.
#[derive(Debug, Args, Clone, Copy)]
pub(crate) struct Tail {
    /// How many events [default: 20].
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) lines: Option<usize>,
    /// Go on as events are added, of other sessions too unless --session names one.
    #[arg(short, long)]
    pub(crate) follow: bool,
}

/// One event.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// SESSION:SEQ, or SEQ of --session or of the newest session.
    pub(crate) event: EventName,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The fingerprint that the key must have, as kept elsewhere.
    #[arg(long, value_name = "FINGERPRINT")]
    pub(crate) key: Option<Digest>,
    /// A line that must be there, as kept elsewhere; may be repeated.
    #[arg(long = "head", value_name = "SESSION:SEQ:HASH")]
    pub(crate) heads: Vec<Head>,
    /// Hold the journal against the heads that the fleet's log has of this machine.
    #[arg(long)]
    pub(crate) fleet: bool,
    /// Read the fleet's log from this directory of published files, not from where the enrolment says.
    #[arg(long, value_name = "DIR", requires = "fleet")]
    pub(crate) log_files: Option<PathBuf>,
    /// The machine whose journal it is, if not this one.
    #[arg(long, value_name = "ID", requires = "fleet")]
    pub(crate) machine: Option<String>,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Write there instead of to stdout.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// Arguments of `prune`.
#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// How old, such as `30d` or `12h`.
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Span,
    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// An event by name.
#[derive(Debug, Clone)]
pub(crate) struct EventName {
    pub(crate) session: Option<SessionId>,
    pub(crate) seq: u64,
}

impl FromStr for EventName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (session, seq) = match text.rsplit_once(':') {
            Some((session, seq)) => (Some(session.parse().map_err(|bad| format!("{bad}"))?), seq),
            None => (None, text),
        };
        let seq = seq.parse().map_err(|_| "write SESSION:SEQ, or SEQ".to_owned())?;
        Ok(Self { session, seq })
    }
}

/// A line of a session that was kept elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Head(pub(crate) SessionId, pub(crate) Point);

impl FromStr for Head {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, ':');
        let mut next = || parts.next().ok_or("write SESSION:SEQ:HASH");
        let (session, seq, hash) = (next()?, next()?, next()?);
        let session = session.parse().map_err(|bad| format!("{bad}"))?;
        let seq = seq.parse().map_err(|_| format!("`{seq}` is not a number"))?;
        let hash = hash.parse().map_err(|bad| format!("{bad}"))?;
        Ok(Self(session, Point { seq, hash }))
    }
}

fn decision() -> impl TypedValueParser<Value = Decision> {
    let names = PossibleValuesParser::new(Decision::ALL.map(Decision::name));
    names.try_map(|name| Decision::from_name(&name).ok_or("no such decision"))
}

fn kind() -> impl TypedValueParser<Value = RecordKind> {
    let names = PossibleValuesParser::new(RecordKind::ALL.map(RecordKind::name));
    names.try_map(|name| RecordKind::from_name(&name).ok_or("no such kind"))
}
