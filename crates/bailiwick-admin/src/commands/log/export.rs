//! `bailiwick log export`: the selected events as one JSON document, written as it is read.
//!
//! What could not be read stands in the document too, and makes the exit code 3.

use std::cell::RefCell;
use std::io::{BufWriter, IntoInnerError, Write as _};
use std::path::Path;
use std::rc::Rc;

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Chunk, Exit, Flow, Out};
use bailiwick_command::output::{Draft, Existing};
use bailiwick_command::render::{escape, style};
use bailiwick_journal::{Found, JournalFault, records};
use serde_json::json;

use super::{Scope, complaint, unreadable};
use crate::render::event;

pub(super) fn run(scope: &Scope, out: Option<&Path>) -> anyhow::Result<Answer> {
    let found = match records(&scope.dir, scope.filter.clone()) {
        Ok(found) => found,
        Err(fault) => return Ok(unreadable(&fault)),
    };
    let chunks = document(found);
    let Some(path) = out else {
        let flow = Flow::new(true, chunks.map(Ok));
        return Ok(Answer { exit: Exit::Fine, out: Out::Flow(flow), complaint: String::new() });
    };
    let complaint = write(path, chunks).with_context(|| format!("cannot write `{}`", path.display()))?;
    let exit = if complaint.is_empty() { Exit::Fine } else { Exit::Invalid };
    let shown = escape::line(&path.to_string_lossy());
    Ok(Answer { complaint, ..Answer::result(exit, format!("{}: wrote {shown}\n", style::good("ok"))) })
}

fn write(path: &Path, chunks: impl Iterator<Item = Chunk>) -> std::io::Result<String> {
    let mut file = BufWriter::new(Draft::begin(path, Existing::Replace, &[])?);
    let mut complaints = String::new();
    for chunk in chunks {
        match chunk {
            Chunk::Out(text) => file.write_all(text.as_bytes())?,
            Chunk::Complaint(text) => complaints += &text,
        }
    }
    file.into_inner().map_err(IntoInnerError::into_error)?.finish()?;
    Ok(complaints)
}

fn document(found: impl Iterator<Item = Result<Found, JournalFault>>) -> impl Iterator<Item = Chunk> {
    let lost = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&lost);
    let mut before = "";
    let events = found.map(move |found| {
        let why = match found {
            Ok(Ok(record)) => {
                let text = format!("{before}\n{}", event::json_line(&record));
                before = ",";
                return Chunk::Out(text);
            }
            Ok(Err(unreadable)) => unreadable.to_string(),
            Err(fault) => format!("{}: {fault}", fault.code()),
        };
        noted.borrow_mut().push(why.clone());
        Chunk::Complaint(complaint(&why))
    });
    let head = Chunk::Out("{\"format\":\"bailiwick.journal/1\",\"events\":[".to_owned());
    let foot = move || Chunk::Out(format!("\n],\"unreadable\":{}}}\n", json!(*lost.borrow())));
    std::iter::once(head).chain(events).chain(std::iter::once_with(foot))
}
