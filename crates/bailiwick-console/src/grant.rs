//! From a denial to a grant: the smallest lines that would have allowed it, shown as a change of the manifest, written after
//! a person's word, and taken back.
//!
//! What is asked for comes from the journal, where it was recorded when it was refused; the page names the event, not the line.
//! Fails closed when: the event was no denial, its grant cannot be read, the file is not what the preview showed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bailiwick_journal::format::{Decision, Event, Record, RecordKind, SessionId};
use bailiwick_journal::{Filter, records};
use bailiwick_manifest::Manifest;
use bailiwick_manifest::diff::{Diff, Difference, Verdict};
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_policy::capability::Capability;
use bailiwick_policy::digest::Digest;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Console;
use crate::host::{ConsoleHost, ManifestPlace};
use crate::manifest_edit::with_capability;
use crate::reply::Reply;

/// The changes that can be taken back, by what they are called.
#[derive(Debug, Default)]
pub(crate) struct Undone(Mutex<HashMap<String, Change>>);

#[derive(Debug, Clone)]
struct Change {
    place: ManifestPlace,
    tool: String,
    lines: Vec<Capability>,
    /// What was in the file; nothing if there was none.
    before: Option<String>,
    after: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PreviewAsked {
    session: String,
    seq: u64,
    /// The tool that it is granted to, where the event names none.
    #[serde(default)]
    tool: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplyAsked {
    session: String,
    seq: u64,
    #[serde(default)]
    tool: Option<String>,
    /// The digest of the file as the preview would leave it.
    after: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UndoAsked {
    change: String,
}

/// What would be granted.
struct Proposal {
    tool: String,
    lines: Vec<Capability>,
    place: ManifestPlace,
    before: String,
    after: String,
}

/// Shows what granting it would change.
pub(crate) fn preview<H: ConsoleHost>(console: &Console<H>, asked: &PreviewAsked) -> Reply {
    let event = match denial(console, &asked.session, asked.seq) {
        Ok(event) => event,
        Err(why) => return Reply::conflict(&why),
    };
    let lines = lines_of(&event);
    let written: Vec<String> = lines.iter().map(ToString::to_string).collect();
    match propose(console, &asked.session, &event, asked.tool.as_deref()) {
        Ok(proposal) => shown(&proposal).unwrap_or_else(|why| Reply::conflict(&why)),
        // What cannot be done here can be done by hand.
        Err(why) => Reply::json(&json!({ "lines": written, "tool": event.tool(), "by_hand": why })),
    }
}

/// Writes what the preview showed.
pub(crate) fn apply<H: ConsoleHost>(console: &Console<H>, asked: &ApplyAsked) -> Reply {
    let proposal = denial(console, &asked.session, asked.seq)
        .and_then(|event| propose(console, &asked.session, &event, asked.tool.as_deref()));
    let proposal = match proposal {
        Ok(proposal) => proposal,
        Err(why) => return Reply::conflict(&why),
    };
    if digest(&proposal.after) != asked.after {
        return Reply::conflict("the manifest changed since it was shown: look at it again");
    }
    let Proposal { tool, lines, place, before, after } = proposal;
    let before = (!place.is_new()).then_some(before);
    if let Err(fault) = console.host.replace_file(&place.file, &after) {
        return Reply::fault(&fault.to_string());
    }
    let noted = console.host.note_grant(&place, &tool, &lines).err().map(|fault| fault.to_string());
    let written: Vec<String> = lines.iter().map(ToString::to_string).collect();
    record(console, "granted", Decision::Allow, &place, &tool, &written.join("\n"));
    let change = digest(&format!("{}{after}{}", place.file.display(), console.host.now_us()));
    let change: String = change.chars().take(16).collect();
    let answer =
        json!({ "change": change, "file": place.file.to_string_lossy(), "lines": written, "note": noted });
    let kept = Change { place, tool, lines, before, after };
    console.undone.0.lock().unwrap_or_else(PoisonError::into_inner).insert(change, kept);
    Reply::json(&answer)
}

/// Takes a change back, if nothing else changed the file since.
pub(crate) fn undo<H: ConsoleHost>(console: &Console<H>, asked: &UndoAsked) -> Reply {
    let mut changes = console.undone.0.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Change { place, tool, lines, before, after }) = changes.get(&asked.change).cloned() else {
        return Reply::conflict("this was taken back already, or another console did it");
    };
    if std::fs::read_to_string(&place.file).ok().as_deref() != Some(&after) {
        return Reply::conflict("the manifest was changed since: take the line out by hand");
    }
    let undone = match &before {
        Some(before) => console.host.replace_file(&place.file, before),
        None => console.host.remove_file(&place.file),
    };
    if let Err(fault) = undone {
        return Reply::fault(&fault.to_string());
    }
    changes.remove(&asked.change);
    drop(changes);
    let noted = console.host.forget_grant(&place, &tool, &lines).err().map(|fault| fault.to_string());
    record(console, "grant-undone", Decision::Deny, &place, &tool, "");
    Reply::json(&json!({ "undone": asked.change, "file": place.file.to_string_lossy(), "note": noted }))
}

fn record<H: ConsoleHost>(
    console: &Console<H>,
    code: &'static str,
    decision: Decision,
    place: &ManifestPlace,
    tool: &str,
    lines: &str,
) {
    let event = Event::new(RecordKind::ApprovalDecided)
        .with_tool(tool.to_owned())
        .with_decision(decision)
        .with_code(code)
        .with_reason(format!("in `{}`", place.file.display()));
    let event = if lines.is_empty() { event } else { event.with_capability(lines.to_owned()) };
    console.host.record(event);
}

fn digest(text: &str) -> String {
    Digest::sha256(text.as_bytes()).to_string()
}

/// The denial that an event of the journal records.
fn denial<H>(console: &Console<H>, session: &str, seq: u64) -> Result<Event, String> {
    let session: SessionId = session.parse().map_err(|_| "this is no session".to_owned())?;
    let filter = Filter { session: Some(session), decision: Some(Decision::Deny), ..Filter::default() };
    let found = records(&console.options.journal, filter).map_err(|fault| fault.to_string())?;
    let mut found = found.filter_map(|one| one.ok()?.ok()).filter(|record: &Record| record.seq == seq);
    let event = found.next().and_then(|record| record.event().cloned());
    event.ok_or_else(|| "this event is no denial, or is not in the journal".to_owned())
}

/// The smallest grant, all of it or nothing: a part would not allow it.
fn lines_of(event: &Event) -> Vec<Capability> {
    let recorded = event.capability().unwrap_or_default();
    recorded.lines().map(str::parse).collect::<Result<_, _>>().unwrap_or_default()
}

fn propose<H: ConsoleHost>(
    console: &Console<H>,
    session: &str,
    event: &Event,
    chosen: Option<&str>,
) -> Result<Proposal, String> {
    let lines = lines_of(event);
    if lines.is_empty() {
        return Err(
            "no grant that would allow it was recorded: `bailiwick log why` says what would".to_owned()
        );
    }
    let place = console
        .host
        .manifest_of(session)
        .ok_or("this console has not seen the server run and does not know its manifest: grant its next denial, or add the lines by hand")?;
    let before = place.text().map_err(|error| format!("cannot read `{}`: {error}", place.file.display()))?;
    let tool = match event.tool().or(chosen) {
        Some(tool) => tool.to_owned(),
        None => the_only_tool(&before)?,
    };
    let after = with_capability(&before, &tool, &lines).map_err(|fault| fault.to_string())?;
    Ok(Proposal { tool, lines, place, before, after })
}

fn the_only_tool(text: &str) -> Result<String, String> {
    let manifest = Manifest::parse(text).map_err(|findings| findings.to_string())?;
    match manifest.tools() {
        [only] => Ok(only.name().to_owned()),
        _ => Err("it is not known which tool this was for: add the line to the one that needs it".to_owned()),
    }
}

fn shown(proposal: &Proposal) -> Result<Reply, String> {
    let snapshot = |text: &str| Snapshot::parse(text).map_err(|findings| findings.to_string());
    let (before, after) = (snapshot(&proposal.before)?, snapshot(&proposal.after)?);
    let diff = Diff::between(&before, &after).map_err(|findings| findings.to_string())?;
    let patch = similar::TextDiff::from_lines(&proposal.before, &proposal.after);
    let file = proposal.place.file.to_string_lossy();
    let changes: Vec<Value> = patch
        .unified_diff()
        .context_radius(3)
        .iter_hunks()
        .flat_map(|hunk| {
            hunk.iter_changes()
                .map(|change| json!([change.tag().to_string(), change.value().trim_end_matches('\n')]))
                .collect::<Vec<_>>()
        })
        .collect();
    Ok(Reply::json(&json!({
        "file": file,
        "is_new": proposal.place.is_new(),
        "tool": proposal.tool,
        "lines": proposal.lines.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "after": digest(&proposal.after),
        "patch": changes,
        "widens": diff.widens(),
        "questions": diff.verdicts().iter().map(verdict).collect::<Vec<_>>(),
        "differences": diff.differences().iter().map(difference).collect::<Vec<_>>(),
    })))
}

fn verdict(verdict: &Verdict) -> Value {
    json!({ "question": verdict.question.text(), "evidence": verdict.evidence })
}

/// What the page shows of a difference.
fn difference(difference: &Difference) -> Value {
    json!({
        "widens": difference.widens(),
        "severity": difference.severity().as_str(),
        "message": difference.message(),
        "example": difference.example(),
    })
}
