//! What happened in a session, counted: per target, when it was last seen and when it last succeeded.
//!
//! A question about the past costs the same after ten calls and after ten thousand. Calls that have not ended are
//! kept one by one, because a call that fails stops counting; a bounded number of them, the oldest then counts as
//! admitted for good.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bailiwick_shell::classes::Consequences;
use serde::{Deserialize, Serialize};

use super::rails::Expected;

/// How many calls without an end are kept.
const MAX_OPEN: usize = 256;
/// How many files that calls made are kept.
const MAX_MADE: usize = 128;

/// The past of one session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// How many calls there were.
    calls: u64,
    /// Per counted target: the last call that was admitted and has not failed.
    seen: Vec<Option<u64>>,
    /// Per counted target: the last call that succeeded.
    succeeded: Vec<Option<u64>>,
    /// Per tool, by `server:tool`: what came of its calls.
    tools: BTreeMap<String, Runs>,
    open: VecDeque<Open>,
    /// The same per agent, for validators: a subagent's calls are not its parent's.
    agents: BTreeMap<String, Counts>,
    /// Keys of calls that were refused, the newest last: what is said about them later counts for nothing.
    refused: VecDeque<String>,
    /// Files that calls wrote or downloaded, the newest last: later calls may run them.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    made: VecDeque<MadeFile>,
    /// Where each validator's window starts.
    pub(crate) cursors: BTreeMap<String, Cursor>,
    /// How often validators sent the assistant back in this turn.
    pub(crate) reentries: u32,
    /// Servers and capabilities that were met.
    pub(crate) loaded: BTreeSet<String>,
    /// The assistant's last words, where an agent tells them apart from the end of its turn.
    pub(crate) last_text: String,
}

/// Where a validator's window starts: a call, and its place in the session's file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    pub(crate) call: u64,
    pub(crate) offset: u64,
}

/// When each counted target was last seen and last succeeded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counts {
    seen: Vec<Option<u64>>,
    succeeded: Vec<Option<u64>>,
}

/// A file that a call made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MadeFile {
    pub(crate) path: String,
    pub(crate) downloaded: bool,
}

/// How a call ended, as far as its agent says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It did what it should.
    Succeeded,
    /// It failed.
    Failed,
    /// The agent does not say.
    Unknown,
}

impl From<bool> for Ending {
    fn from(success: bool) -> Self {
        if success { Self::Succeeded } else { Self::Failed }
    }
}

impl From<Option<bool>> for Ending {
    fn from(success: Option<bool>) -> Self {
        success.map_or(Self::Unknown, Self::from)
    }
}

impl Ending {
    /// Whether it succeeded, where that is known.
    #[must_use]
    pub const fn success(self) -> Option<bool> {
        match self {
            Self::Succeeded => Some(true),
            Self::Failed => Some(false),
            Self::Unknown => None,
        }
    }
}

/// The calls of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Runs {
    admitted: u64,
    succeeded: bool,
}

/// A call that was admitted and has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Open {
    call: u64,
    key: String,
    tool: String,
    matched: Vec<usize>,
    agent: String,
}

impl History {
    /// A session in which nothing has happened, for this many counted targets.
    pub(crate) fn new(counted: usize) -> Self {
        Self { seen: vec![None; counted], succeeded: vec![None; counted], ..Self::default() }
    }

    /// How many calls were admitted.
    #[must_use]
    pub const fn calls(&self) -> u64 {
        self.calls
    }

    /// How often a tool was admitted.
    pub(crate) fn runs(&self, server: &str, tool: &str) -> u64 {
        self.tools.get(&format!("{server}:{tool}")).map_or(0, |runs| runs.admitted)
    }

    /// Whether a tool has succeeded.
    pub(crate) fn has_succeeded(&self, server: &str, tool: &str) -> bool {
        self.tools.get(&format!("{server}:{tool}")).is_some_and(|runs| runs.succeeded)
    }

    /// Admits a call of a tool, `server:tool`; later calls see it.
    pub(crate) fn admit(&mut self, key: &str, tool: String, matched: Vec<usize>) -> u64 {
        self.admit_of("", key, tool, matched)
    }

    /// The same for a call of a subagent; the session's own agent has no name.
    pub(crate) fn admit_of(&mut self, agent: &str, key: &str, tool: String, matched: Vec<usize>) -> u64 {
        let call = self.calls;
        self.calls += 1;
        self.tools.entry(tool.clone()).or_default().admitted += 1;
        self.refused.retain(|refused| refused != key);
        self.open.push_back(Open { call, key: key.to_owned(), tool, matched, agent: agent.to_owned() });
        if self.open.len() > MAX_OPEN
            && let Some(oldest) = self.open.pop_front()
        {
            raise(&mut self.seen, &oldest.matched, oldest.call);
            raise(&mut self.counts(&oldest.agent).seen, &oldest.matched, oldest.call);
        }
        call
    }

    /// Remembers the files that a call makes; one that was downloaded stays so.
    pub(crate) fn note_made(&mut self, made: &Consequences) {
        let new = made.written.union(&made.downloaded);
        for path in new {
            let known =
                self.made.iter().position(|one| one.path == *path).and_then(|at| self.made.remove(at));
            let downloaded = made.downloaded.contains(path) || known.is_some_and(|one| one.downloaded);
            self.made.push_back(MadeFile { path: path.clone(), downloaded });
        }
        let excess = self.made.len().saturating_sub(MAX_MADE);
        self.made.drain(..excess);
    }

    /// The files that calls made, the oldest first.
    pub(crate) const fn made(&self) -> &VecDeque<MadeFile> {
        &self.made
    }

    /// Remembers that a call was refused.
    pub(crate) fn refuse(&mut self, key: &str) {
        self.refused.push_back(key.to_owned());
        if self.refused.len() > MAX_OPEN {
            self.refused.pop_front();
        }
    }

    /// Whether a call was refused, and not admitted since.
    pub(crate) fn is_refused(&self, key: &str) -> bool {
        self.refused.iter().any(|refused| refused == key)
    }

    fn counts(&mut self, agent: &str) -> &mut Counts {
        let none = vec![None; self.seen.len()];
        self.agents.entry(agent.to_owned()).or_insert_with(|| Counts { seen: none.clone(), succeeded: none })
    }

    /// The newest call that has not ended and has this key.
    pub(crate) fn find_open(&self, key: &str) -> Option<u64> {
        self.open.iter().rev().find(|open| open.key == key).map(|open| open.call)
    }

    /// Ends a call. One that failed keeps its number and counts for nothing; one of which that is not known counts as
    /// admitted.
    pub fn end(&mut self, call: u64, ending: impl Into<Ending>) {
        let ending = ending.into();
        let Some(at) = self.open.iter().position(|open| open.call == call) else { return };
        let Some(ended) = self.open.remove(at) else { return };
        if ending == Ending::Failed {
            return;
        }
        raise(&mut self.seen, &ended.matched, call);
        raise(&mut self.counts(&ended.agent).seen, &ended.matched, call);
        if ending == Ending::Succeeded {
            raise(&mut self.succeeded, &ended.matched, call);
            raise(&mut self.counts(&ended.agent).succeeded, &ended.matched, call);
            self.tools.entry(ended.tool).or_default().succeeded = true;
        }
    }

    /// Whether a condition holds for the calls from `since` on.
    pub(crate) fn holds(&self, expected: Expected, since: u64) -> bool {
        self.is_met(expected, since, (&self.seen, &self.succeeded), None)
    }

    /// Whether it holds for the calls of one agent.
    pub(crate) fn holds_for(&self, agent: &str, expected: Expected, since: u64) -> bool {
        let none = Counts::default();
        let counts = self.agents.get(agent).unwrap_or(&none);
        self.is_met(expected, since, (&counts.seen, &counts.succeeded), Some(agent))
    }

    fn is_met(
        &self,
        expected: Expected,
        since: u64,
        (seen, succeeded): (&[Option<u64>], &[Option<u64>]),
        agent: Option<&str>,
    ) -> bool {
        let within = |last: Option<&Option<u64>>| last.copied().flatten().is_some_and(|call| call >= since);
        let open = |open: &Open| {
            open.call >= since
                && open.matched.contains(&expected.counted)
                && agent.is_none_or(|agent| agent == open.agent)
        };
        let found = match expected.succeeded {
            true => within(succeeded.get(expected.counted)),
            false => within(seen.get(expected.counted)) || self.open.iter().any(open),
        };
        found == expected.present
    }

    /// Whether a capability or server is there, as far as the session has shown.
    #[must_use]
    pub fn is_loaded(&self, name: &str) -> bool {
        self.loaded.contains(name)
    }

    /// Adds a capability or server that is there.
    pub fn load(&mut self, name: &str) {
        if !self.loaded.contains(name) {
            self.loaded.insert(name.to_owned());
        }
    }
}

fn raise(last: &mut [Option<u64>], matched: &[usize], call: u64) {
    for index in matched {
        if let Some(slot) = last.get_mut(*index) {
            *slot = (*slot).max(Some(call));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn expected(counted: usize, succeeded: bool) -> Expected {
        Expected { counted, present: true, succeeded }
    }

    #[test]
    fn an_unknown_end_is_neither_success_nor_failure() {
        let mut history = History::new(1);
        let first = history.admit("a", "s:t".to_owned(), vec![0]);
        history.end(first, Ending::Unknown);
        assert!(history.holds(expected(0, false), 0), "it ran");
        assert!(!history.holds(expected(0, true), 0), "nothing says that it succeeded");
        assert!(!history.has_succeeded("s", "t"));
    }

    #[test]
    fn agents_are_counted_apart() {
        let mut history = History::new(1);
        let call = history.admit_of("sub", "a", "s:t".to_owned(), vec![0]);
        assert!(history.holds_for("sub", expected(0, false), 0), "not ended yet");
        history.end(call, true);
        assert!(history.holds_for("sub", expected(0, true), 0));
        assert!(!history.holds_for("", expected(0, false), 0), "another agent's");
        assert!(history.holds(expected(0, true), 0), "the session's");
    }

    #[test]
    fn a_failed_call_counts_for_nothing() {
        let mut history = History::new(1);
        let first = history.admit("a", "s:t".to_owned(), vec![0]);
        assert!(history.holds(expected(0, false), 0), "admitted");
        assert!(!history.holds(expected(0, true), 0), "not yet succeeded");
        history.end(first, false);
        assert!(!history.holds(expected(0, false), 0));
        let second = history.admit("a", "s:t".to_owned(), vec![0]);
        history.end(second, true);
        assert!(history.holds(expected(0, true), 1));
        assert!(!history.holds(expected(0, true), 2), "behind the window");
        assert_eq!(history.calls(), 2, "a failed call keeps its number");
    }

    /// What a call became, as the model sees it.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum State {
        Admitted,
        Succeeded,
        Failed,
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The counters say what a scan of the whole log would.
        #[test]
        fn counting_is_scanning(steps in prop::collection::vec((0..3_usize, prop::option::of((0..40_usize, any::<bool>()))), 0..40), since in 0..40_u64) {
            let mut history = History::new(3);
            let mut log: Vec<(usize, State)> = Vec::new();
            for (target, ended) in steps {
                history.admit("k", format!("s:{target}"), vec![target]);
                log.push((target, State::Admitted));
                if let Some((call, success)) = ended {
                    if let Some(entry) = log.get_mut(call).filter(|entry| entry.1 == State::Admitted) {
                        entry.1 = if success { State::Succeeded } else { State::Failed };
                    }
                    history.end(u64::try_from(call).unwrap(), success);
                }
            }
            for target in 0..3 {
                let window = || log.iter().skip(usize::try_from(since).unwrap()).filter(|(of, _)| *of == target);
                prop_assert_eq!(history.holds(expected(target, false), since), window().any(|(_, state)| *state != State::Failed));
                prop_assert_eq!(history.holds(expected(target, true), since), window().any(|(_, state)| *state == State::Succeeded));
            }
        }
    }
}
