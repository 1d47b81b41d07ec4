//! Finding one event by its name.

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_journal::format::{Record, SessionId};
use bailiwick_journal::{Filter, JournalFault, records};

use super::{Scope, refusal, unreadable};
use crate::args::log::EventName;

/// An event among those it belongs to.
pub(super) struct Family {
    pub(super) event: Record,
    /// The event that caused it.
    pub(super) parent: Option<Record>,
    /// The events it caused.
    pub(super) children: Vec<Record>,
}

/// The event that is named, or an answer that says why there is none.
pub(super) fn family(scope: &Scope, name: &EventName) -> Result<Family, Answer> {
    let session = session(scope, name)?;
    let found = look(scope, &session, name.seq).map_err(|fault| unreadable(&fault))?;
    found.ok_or_else(|| refusal(Exit::Usage, &format!("session `{session}` has no event {}", name.seq)))
}

fn session(scope: &Scope, name: &EventName) -> Result<SessionId, Answer> {
    let named = [name.session.as_ref(), scope.filter.session.as_ref()];
    if let [Some(one), Some(other)] = named
        && one != other
    {
        return Err(refusal(Exit::Usage, &format!("the event is of session `{one}`, not of `{other}`")));
    }
    if let Some(session) = named.into_iter().flatten().next() {
        return Ok(session.clone());
    }
    let newest = scope.newest().map_err(|fault| unreadable(&fault))?;
    newest.ok_or_else(|| refusal(Exit::Invalid, "the journal has no session"))
}

fn look(scope: &Scope, session: &SessionId, seq: u64) -> Result<Option<Family>, JournalFault> {
    let Some(event) = all(scope, session)?.find(|record| record.seq == seq) else { return Ok(None) };
    let (mut parent, mut children) = (None, Vec::new());
    let above = event.event().and_then(bailiwick_journal::format::Event::parent);
    for record in all(scope, session)? {
        if record.event().and_then(bailiwick_journal::format::Event::parent) == Some(seq) {
            children.push(record);
        } else if Some(record.seq) == above {
            parent = Some(record);
        }
    }
    Ok(Some(Family { event, parent, children }))
}

/// Every record of a session that can be read; `verify` tells of the others.
fn all(scope: &Scope, session: &SessionId) -> Result<impl Iterator<Item = Record>, JournalFault> {
    let filter = Filter { session: Some(session.clone()), with_seals: true, ..Filter::default() };
    Ok(records(&scope.dir, filter)?.filter_map(|found| found.ok()?.ok()))
}
