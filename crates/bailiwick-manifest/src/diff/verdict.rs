//! The questions a reviewer asks first, answered over the manifest as a whole.

use std::sync::LazyLock;

use bailiwick_policy::authority::{Authority, Axis, Request};
use bailiwick_policy::finding::Findings;
use bailiwick_policy::lattice::Containment;
use bailiwick_policy::net::NetScope;
use bailiwick_policy::path::{AbsPath, PathScope};

use crate::manifest::{Manifest, symbolic};

/// One question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// Can a secret reach a place it could not reach before?
    CredentialReach,
    /// Is there a new host, port or method?
    NewHost,
    /// Can the metadata service or a private address be reached that could not be before?
    PrivateReach,
    /// Can code be started that could not be before?
    NewExecution,
    /// Can a file be written, that was not writable before, which runs later?
    RunsLater,
}

impl Question {
    /// Every question, in the order they are asked.
    pub const ALL: [Self; 5] =
        [Self::CredentialReach, Self::NewHost, Self::PrivateReach, Self::NewExecution, Self::RunsLater];

    /// A stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CredentialReach => "credential-reach",
            Self::NewHost => "new-host",
            Self::PrivateReach => "private-reach",
            Self::NewExecution => "new-execution",
            Self::RunsLater => "runs-later",
        }
    }

    /// The question in words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::CredentialReach => "can a secret reach somewhere new?",
            Self::NewHost => "is there a new host, port or method?",
            Self::PrivateReach => "is there a new way to private addresses or the metadata service?",
            Self::NewExecution => "can new programs be started?",
            Self::RunsLater => "did a file that runs later become writable?",
        }
    }
}

/// A question and its answer: evidence if yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What was asked.
    pub question: Question,
    /// What makes the answer yes; `None` is no.
    pub evidence: Option<String>,
}

/// Whether a path is of a file that runs later: closed in a writable tree, unless a line names it.
pub(crate) fn is_run_later(path: &AbsPath) -> bool {
    RUN_LATER.covers(path)
}

/// Hundreds of patterns: sorted once.
static RUN_LATER: LazyLock<PathScope> =
    LazyLock::new(|| PathScope::union(bailiwick_policy::run_later::protected_patterns()));

/// Answers every question.
pub(super) fn verdicts(base: &Manifest, new: &Manifest) -> Result<Vec<Verdict>, Findings> {
    let (old, fresh) = (base.server_authority(&symbolic)?, new.server_authority(&symbolic)?);
    let answer = |question| match question {
        Question::CredentialReach => credential_reach(new, &old, &fresh),
        Question::NewHost => exceeds(Axis::Net, &old, &fresh),
        Question::PrivateReach => private_reach(&old, &fresh),
        Question::NewExecution => exceeds(Axis::Exec, &old, &fresh),
        Question::RunsLater => runs_later(&old, &fresh),
    };
    Ok(Question::ALL.into_iter().map(|question| Verdict { question, evidence: answer(question) }).collect())
}

fn exceeds(axis: Axis, old: &Authority, new: &Authority) -> Option<String> {
    match new.within_on(axis, old) {
        Containment::Contained => None,
        Containment::Exceeds(excess) => Some(excess.to_string()),
        Containment::Undecided => Some("not decided within the budget".to_owned()),
    }
}

/// A secret and a way out, of which at least one is new.
fn credential_reach(new: &Manifest, old: &Authority, fresh: &Authority) -> Option<String> {
    let given = |name: &&str| fresh.allows(&Request::InjectEnv((*name).into()));
    let secrets: Vec<&str> = new.lines().filter_map(|line| line.value.injected()).filter(given).collect();
    let brokered = |(name, host): (&str, &bailiwick_policy::capability::BrokerHost)| {
        let request = Request::BrokerEnv { name: name.into(), host: host.clone() };
        (!old.allows(&request)).then(|| request.to_string())
    };
    if let Some(place) = fresh.brokered().pairs().find_map(brokered) {
        return Some(format!("the server may now {place}"));
    }
    let secret = secrets.first()?;
    if let Some(place) = exceeds(Axis::Net, old, fresh) {
        return Some(format!("{secret} is injected, and the server may now {place}"));
    }
    let added = secrets.iter().find(|name| !old.allows(&Request::InjectEnv((**name).into())))?;
    (*fresh.net() != NetScope::None)
        .then(|| format!("{added} is newly injected, and the network can be reached"))
}

fn private_reach(old: &Authority, new: &Authority) -> Option<String> {
    let NetScope::Only(clauses) = new.net() else {
        return (*new.net() == NetScope::Any && *old.net() != NetScope::Any)
            .then(|| "reach any address".to_owned());
    };
    let open = clauses.sets().flat_map(|set| set.rules().iter().filter(|rule| rule.opens_private()).cloned());
    match NetScope::union(open.collect::<Vec<_>>()).within(old.net()) {
        Containment::Contained => None,
        Containment::Exceeds(request) => Some(format!("reach {request}")),
        Containment::Undecided => Some("not decided within the budget".to_owned()),
    }
}

fn runs_later(old: &Authority, new: &Authority) -> Option<String> {
    for pattern in bailiwick_policy::run_later::patterns() {
        let reached = new.write().meet(&PathScope::union([pattern]));
        match reached.within(old.write()) {
            Containment::Contained => {}
            Containment::Exceeds(path) => return Some(format!("write {path}")),
            Containment::Undecided => return Some(format!("write something like {pattern}")),
        }
    }
    None
}
