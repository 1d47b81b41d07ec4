//! Ids that are the same whenever the same line is exported: digests of the session and of the number of a line.

use bailiwick_journal::format::SessionId;
use sha2::{Digest as _, Sha256};

/// The id of the trace that starts at this line.
pub(crate) fn trace_id(session: &SessionId, root: u64) -> Vec<u8> {
    digest("trace", session, root, 16)
}

/// The id of the span that this line begins, or is.
pub(crate) fn span_id(session: &SessionId, seq: u64) -> Vec<u8> {
    digest("span", session, seq, 8)
}

/// The id of the span of the check that this line states.
pub(crate) fn gate_id(session: &SessionId, seq: u64) -> Vec<u8> {
    digest("gate", session, seq, 8)
}

/// The name of a line: `SESSION:SEQ`, as `bailiwick log show` takes it.
pub(crate) fn event_id(session: &SessionId, seq: u64) -> String {
    format!("{session}:{seq}")
}

fn digest(what: &str, session: &SessionId, seq: u64, length: usize) -> Vec<u8> {
    let text = format!("bailiwick-{what}\n{session}\n{seq}");
    let mut id = Sha256::digest(text.as_bytes()).to_vec();
    id.truncate(length);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_session_number_and_kind_alone() {
        let (one, other): (SessionId, SessionId) = ("a".parse().unwrap(), "b".parse().unwrap());
        assert_eq!(trace_id(&one, 1), trace_id(&one, 1));
        assert_eq!((trace_id(&one, 1).len(), span_id(&one, 1).len()), (16, 8));
        assert_ne!(trace_id(&one, 1), trace_id(&other, 1));
        assert_ne!(span_id(&one, 1), span_id(&one, 2));
        assert_ne!(span_id(&one, 1), gate_id(&one, 1));
    }
}
