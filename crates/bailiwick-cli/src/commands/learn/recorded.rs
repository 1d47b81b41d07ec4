//! Calls that were recorded with their arguments, to be made again.

use anyhow::Context as _;
use bailiwick_command::args::learn::Watched;
use bailiwick_command::render::style;
use bailiwick_command::{facts, terminal};
use bailiwick_journal::format::{RecordKind, SessionId};
use bailiwick_journal::{Filter, records};
use bailiwick_learn::ToolCall;
use serde_json::Value;

use super::read_calls;

/// What stands for a secret in recorded arguments: such a call cannot be made again.
const REDACTED: &str = "[redacted]";

/// The calls that the command line names, of a file or of the journal.
pub(super) fn given_calls(args: &Watched) -> anyhow::Result<Option<Vec<ToolCall>>> {
    match (&args.calls, &args.from_journal) {
        (Some(file), _) => read_calls(file).map(Some),
        (None, Some(session)) => of_session(session).map(Some),
        (None, None) => Ok(None),
    }
}

fn of_session(session: &SessionId) -> anyhow::Result<Vec<ToolCall>> {
    let dir = facts::journal_dir().context("neither XDG_STATE_HOME nor HOME says where the journal is")?;
    let filter =
        Filter { session: Some(session.clone()), kind: Some(RecordKind::ToolCalled), ..Filter::default() };
    let (mut calls, mut left_out) = (Vec::new(), 0);
    for record in records(&dir, filter)? {
        let Ok(record) = record? else { continue };
        let Some(event) = record.event() else { continue };
        let arguments = event.args().and_then(|text| serde_json::from_str::<Value>(text).ok());
        match (event.tool(), arguments) {
            (Some(tool), Some(Value::Object(arguments))) if is_whole(&arguments) => {
                calls.push(ToolCall { tool: tool.to_owned(), arguments });
            }
            _ => left_out += 1,
        }
    }
    if left_out > 0 {
        let left_out = style::count(left_out, "call has", "calls have");
        terminal::remark(&format!(
            "{}: {left_out} no whole arguments in the journal, so they are not made again\n",
            style::warning("note")
        ));
    }
    anyhow::ensure!(
        !calls.is_empty(),
        "session `{session}` has no call with its arguments; record one with `bailiwick wrap --record-arguments`"
    );
    Ok(calls)
}

/// Whether nothing of the arguments was taken out or cut.
fn is_whole(arguments: &serde_json::Map<String, Value>) -> bool {
    let is_cut = arguments.len() == 2 && arguments.get("cut") == Some(&Value::Bool(true));
    !is_cut && !Value::Object(arguments.clone()).to_string().contains(REDACTED)
}
