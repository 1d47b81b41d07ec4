//! What may not happen in any history, whatever failed: the judge, and the histories it has to find guilty.

use std::collections::{BTreeMap, BTreeSet};

use bailiwick_fleet::Hash;
use bailiwick_fleet::entry::{Entry, EntryBody, Role};
use bailiwick_fleet::merkle::{Frontier, leaf_hash};

/// Something that a member saw or did. Times are milliseconds since 1970 of a clock that all share.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// A budget has this much in all.
    Budget { budget: String, total: u64 },
    /// A machine was given a lease for a request that it sent at this time.
    Leased { machine: String, asked_ms: u64 },
    /// A machine spent from a lease.
    Spent { budget: String, amount: u64, at_ms: u64, lease_ends_ms: u64 },
    /// An answer was accepted.
    Answered { approval: String, role: Role, allow: bool },
    /// A machine was told that it may run one call.
    Taken { machine: String, approval: String, nonce: String, asked_ms: u64 },
    /// The hub confirmed that a machine is revoked.
    Revoked { machine: String, at_ms: u64 },
    /// A machine used a grant of the log.
    Honoured { machine: String, at_ms: u64, skew_ms: u64 },
    /// A machine accepted a checkpoint.
    Accepted { machine: String, size: u64, root: Hash },
    /// The hub confirmed that an entry is in the log.
    Appended { name: String, index: u64 },
}

/// All of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    pub(crate) max_stale_ms: u64,
    pub(crate) events: Vec<Event>,
    /// The log at the end.
    pub(crate) log: Vec<Vec<u8>>,
}

/// What is wrong with a history, each with a word for the rule it breaks.
pub(crate) fn findings(history: &History) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    spending(history, &mut found);
    approvals(history, &mut found);
    revocations(history, &mut found);
    checkpoints(history, &mut found);
    entries(history, &mut found);
    found
}

type Found = Vec<(&'static str, String)>;

fn spending(history: &History, found: &mut Found) {
    let (mut totals, mut spent) = (BTreeMap::new(), BTreeMap::<&str, u64>::new());
    for event in &history.events {
        if let Event::Budget { budget, total } = event {
            totals.insert(budget.as_str(), *total);
        }
        if let Event::Spent { budget, amount, at_ms, lease_ends_ms } = event {
            *spent.entry(budget).or_default() += amount;
            if at_ms > lease_ends_ms {
                found.push(("spent-late", format!("{amount} of {budget} after the lease")));
            }
        }
    }
    for (budget, spent) in spent {
        let total = totals.get(budget).copied().unwrap_or_default();
        if spent > total {
            found.push(("overspent", format!("{spent} of {total} of {budget}")));
        }
    }
}

fn approvals(history: &History, found: &mut Found) {
    let (mut answers, mut nonces) =
        (BTreeMap::<&str, BTreeSet<bool>>::new(), BTreeMap::<&str, BTreeSet<&str>>::new());
    for event in &history.events {
        if let Event::Answered { approval, role, allow } = event {
            answers.entry(approval).or_default().insert(*allow);
            if *role == Role::Machine {
                found.push(("machine-approved", approval.clone()));
            }
        }
        if let Event::Taken { approval, nonce, .. } = event {
            nonces.entry(approval).or_default().insert(nonce);
        }
    }
    for (approval, answers) in &answers {
        if answers.len() > 1 {
            found.push(("answered-twice", (*approval).to_owned()));
        }
    }
    for (approval, nonces) in nonces {
        if nonces.len() > 1 {
            found.push(("used-twice", approval.to_owned()));
        }
        if answers.get(approval).is_some_and(|answers| answers.contains(&false)) {
            found.push(("used-denied", approval.to_owned()));
        }
    }
}

fn revocations(history: &History, found: &mut Found) {
    let revoked: BTreeMap<&str, u64> = history
        .events
        .iter()
        .filter_map(|event| {
            if let Event::Revoked { machine, at_ms } = event {
                Some((machine.as_str(), *at_ms))
            } else {
                None
            }
        })
        .collect();
    let after = |machine: &str, at: u64| revoked.get(machine).is_some_and(|revoked| at > *revoked);
    for event in &history.events {
        match event {
            Event::Leased { machine, asked_ms } | Event::Taken { machine, asked_ms, .. }
                if after(machine, *asked_ms) =>
            {
                found.push(("hub-honoured-revoked", machine.clone()));
            }
            Event::Honoured { machine, at_ms, skew_ms }
                if after(machine, at_ms.saturating_sub(history.max_stale_ms + skew_ms)) =>
            {
                found.push(("honoured-revoked", machine.clone()));
            }
            _ => {}
        }
    }
}

fn checkpoints(history: &History, found: &mut Found) {
    let mut tree = Frontier::default();
    let mut roots = vec![tree.root()];
    for entry in &history.log {
        tree.push(leaf_hash(entry));
        roots.push(tree.root());
    }
    let mut held = BTreeMap::<&str, u64>::new();
    for event in &history.events {
        if let Event::Accepted { machine, size, root } = event {
            if roots.get(*size as usize) != Some(root) {
                found.push(("forked", format!("{machine} has another root for size {size}")));
            }
            let last = held.insert(machine, *size).unwrap_or_default();
            if *size < last {
                found.push(("rolled-back", format!("{machine} from {last} to {size}")));
            }
        }
    }
}

fn entries(history: &History, found: &mut Found) {
    let mut places = BTreeMap::<String, Vec<u64>>::new();
    for (index, bytes) in (0..).zip(&history.log) {
        if let Ok(Entry { body: EntryBody::Bundle(bundle), .. }) = Entry::parse(bytes) {
            places.entry(bundle.name).or_default().push(index);
        }
    }
    for (name, places) in &places {
        if places.len() > 1 {
            found.push(("appended-twice", name.clone()));
        }
    }
    for event in &history.events {
        if let Event::Appended { name, index } = event
            && !places.get(name).is_some_and(|places| places.contains(index))
        {
            found.push(("entry-lost", name.clone()));
        }
    }
}

/// A history in which everything happens once and nothing is wrong.
fn innocent() -> History {
    use bailiwick_fleet::entry::{Bundle, Scope};
    let body = |name: &str| {
        EntryBody::Bundle(Bundle { name: name.to_owned(), scope: Scope::Every, rules: Vec::new() })
    };
    let log: Vec<Vec<u8>> =
        ["a", "b"].map(|name| Entry::new(1, "admin", body(name)).to_bytes().unwrap()).into();
    let mut tree = Frontier::default();
    tree.push(leaf_hash(&log[0]));
    let first = tree.root();
    tree.push(leaf_hash(&log[1]));
    let machine = || "m".to_owned();
    let events = vec![
        Event::Budget { budget: "b".to_owned(), total: 10 },
        Event::Leased { machine: machine(), asked_ms: 100 },
        Event::Spent { budget: "b".to_owned(), amount: 10, at_ms: 110, lease_ends_ms: 200 },
        Event::Answered { approval: "x".to_owned(), role: Role::Approver, allow: true },
        Event::Taken { machine: machine(), approval: "x".to_owned(), nonce: "1".to_owned(), asked_ms: 120 },
        Event::Appended { name: "a".to_owned(), index: 0 },
        Event::Appended { name: "b".to_owned(), index: 1 },
        Event::Accepted { machine: machine(), size: 1, root: first },
        Event::Accepted { machine: machine(), size: 2, root: tree.root() },
        Event::Revoked { machine: machine(), at_ms: 1_000 },
        Event::Honoured { machine: machine(), at_ms: 1_300, skew_ms: 0 },
    ];
    History { max_stale_ms: 400, events, log }
}

#[test]
fn an_innocent_history_is_not_accused() {
    assert_eq!(findings(&innocent()), []);
}

fn spent(amount: u64, at_ms: u64) -> Event {
    Event::Spent { budget: "b".to_owned(), amount, at_ms, lease_ends_ms: 1 }
}

fn answered(approval: &str, role: Role, allow: bool) -> Event {
    Event::Answered { approval: approval.to_owned(), role, allow }
}

fn taken(approval: &str, nonce: &str) -> Event {
    Event::Taken {
        machine: "n".to_owned(),
        approval: approval.to_owned(),
        nonce: nonce.to_owned(),
        asked_ms: 1,
    }
}

fn accepted(machine: &str, size: u64, root: Hash) -> Event {
    Event::Accepted { machine: machine.to_owned(), size, root }
}

#[test]
fn each_planted_bug_is_found_and_named() {
    let mut first = Frontier::default();
    first.push(leaf_hash(&innocent().log[0]));
    let machine = "m".to_owned();
    let planted: [(&str, Vec<Event>); 11] = [
        ("overspent", vec![spent(1, 0)]),
        ("spent-late", vec![spent(0, 2)]),
        ("used-twice", vec![taken("x", "2")]),
        ("answered-twice", vec![answered("y", Role::Admin, false), answered("y", Role::Approver, true)]),
        ("used-denied", vec![answered("z", Role::Admin, false), taken("z", "1")]),
        ("machine-approved", vec![answered("w", Role::Machine, true)]),
        ("hub-honoured-revoked", vec![Event::Leased { machine: machine.clone(), asked_ms: 1_001 }]),
        ("honoured-revoked", vec![Event::Honoured { machine, at_ms: 1_401, skew_ms: 0 }]),
        ("forked", vec![accepted("n", 2, Hash::sha256(b"another"))]),
        ("rolled-back", vec![accepted("m", 1, first.root())]),
        ("entry-lost", vec![Event::Appended { name: "c".to_owned(), index: 2 }]),
    ];
    for (name, events) in planted {
        let mut history = innocent();
        history.events.extend(events);
        let found: Vec<&str> = findings(&history).into_iter().map(|(rule, _)| rule).collect();
        assert_eq!(found, [name]);
    }
    let mut history = innocent();
    history.log.push(history.log[1].clone());
    assert_eq!(findings(&history), [("appended-twice", "b".to_owned())]);
}
