//! The copy: what is taken, what is refused, what stays after a restart.

use std::sync::Arc;
use std::thread;

use bailiwick_fleet::Hash;
use bailiwick_fleet::entry::{EntryBody, HeadBatch, MemberKey, Role, Target};
use bailiwick_fleet::note::NoteSigner;
use bailiwick_replica::{Replica, refresh};
use bailiwick_testkit::fleet::{LogServer, TestLog, now_ms, revocation, signer};

use crate::world::{Machine, client};

/// An entry that says nothing to a machine.
pub(crate) fn heads(number: u64) -> EntryBody {
    EntryBody::Heads(HeadBatch { sha256: Hash::sha256(&number.to_be_bytes()), count: number, bytes: 1 })
}

fn log_of(size: u64) -> TestLog {
    TestLog::with((0..size).map(heads))
}

#[test]
fn it_grows_with_the_log_by_few_files() {
    let mut log = log_of(700);
    let server = LogServer::start(log.files());
    let machine = Machine::new(&[&server.url]);
    assert!(machine.look().is_new);
    assert_eq!(machine.size(), Some(700));
    drop(server.asked());
    assert!(!machine.look().is_new);
    assert_eq!(server.asked(), ["checkpoint 304"], "what is known is not sent again");
    log.push(revocation("r1", Target::Everything));
    server.publish(log.files());
    assert!(machine.look().is_new);
    assert_eq!(server.asked(), ["checkpoint 200", "tile/entries/002.p/189 200"]);
    let copy = machine.copy().unwrap();
    assert_eq!((copy.head().checkpoint.root, copy.state().revocations().len()), (log.root(), 1));
    (0..1000).for_each(|number| log.push(heads(number)));
    server.publish(log.files());
    assert!(machine.look().is_new, "many entries are read from the top of the tree");
    assert_eq!(machine.size(), Some(1701));
    assert_eq!(machine.copy().unwrap().state().revocations().len(), 1);
}

#[test]
fn what_other_machines_need_is_not_kept() {
    let key = |member: &str| {
        let (member, key, labels) = (member.to_owned(), Hash::sha256(b"k"), ["ci".to_owned()].into());
        EntryBody::MemberKey(MemberKey { member, role: Role::Machine, key, labels, removed: false })
    };
    let server = LogServer::start(TestLog::with([heads(1), key("m1"), key("m2")]).files());
    let machine = Machine::new(&[&server.url]);
    machine.look();
    let copy = machine.copy().unwrap();
    assert_eq!(copy.state().labels("m1"), ["ci".to_owned()].into());
    assert!(copy.state().labels("m2").is_empty() && copy.state().heads().is_empty());
}

#[test]
fn a_fork_and_a_rollback_are_findings_and_the_old_copy_stays() {
    let log = log_of(300);
    let honest = LogServer::start(log.files());
    let machine = Machine::new(&[&honest.url]);
    machine.look();
    let held = log.root();
    // Another entry in the middle, as large, larger by little and by much.
    for more in [0, 1, 900] {
        let mut fork = TestLog::with((0..299).map(heads));
        (0..=more).for_each(|number| fork.push(heads(9000 * (more + 1) + number)));
        honest.replace(fork.files());
        let refreshed = machine.look();
        assert!(!refreshed.is_new && machine.copy().unwrap().head().checkpoint.root == held, "{more}");
        let [finding] = &refreshed.findings[..] else { panic!("{more}: {refreshed:?}") };
        assert_eq!(finding.code, "fleet-log-forked");
        assert!(finding.message.contains(&held.to_string()), "{}", finding.message);
        assert!(machine.look().findings.is_empty(), "it is said once");
    }
    // A smaller tree that was signed later, from another web server, after a restart of everything.
    let rolled_back = LogServer::start(log_of(299).files_at(now_ms() + 1000, &[]));
    let machine = Machine { enrolment: Machine::new(&[&rolled_back.url]).enrolment, ..machine };
    let refreshed = machine.look();
    assert_eq!((refreshed.is_new, machine.size()), (false, Some(300)));
    let [finding] = &refreshed.findings[..] else { panic!("{refreshed:?}") };
    assert_eq!(finding.code, "fleet-log-rolled-back");
    for root in [held, log_of(299).root()] {
        assert!(finding.message.contains(&root.to_string()), "{}", finding.message);
    }
    assert_eq!(machine.findings().len(), 4);
}

#[test]
fn a_second_web_server_with_an_older_copy_changes_nothing() {
    let (before, later) = (log_of(10).files_at(now_ms() - 120_000, &[]), log_of(20).files());
    let (old, new) = (LogServer::start(before.clone()), LogServer::start(later));
    let machine = Machine::new(&[&old.url, &new.url]);
    assert!(machine.look().is_new, "the first is not fresh, so the second is asked too");
    assert_eq!(machine.size(), Some(20));
    // The new one is away, and the old one sends the same checkpoint again as if it were new.
    new.replace(before);
    let refreshed = machine.look();
    assert_eq!((refreshed.is_new, machine.size(), refreshed.findings.len()), (false, Some(20), 0));
    assert!(refreshed.faults.iter().all(|fault| fault.contains("older checkpoint")), "{refreshed:?}");
    let machine = Machine { enrolment: Machine::new(&[&old.url]).enrolment, ..machine };
    machine.look();
    assert_eq!(machine.size(), Some(20), "also after a restart");
}

#[test]
fn freshness_is_what_is_signed_and_not_when_it_was_fetched() {
    let signed = now_ms() - 3_600_000;
    let server = LogServer::start(log_of(3).files_at(signed, &[]));
    let machine = Machine::new(&[&server.url]);
    machine.look();
    assert_eq!(machine.copy().unwrap().head().fresh_ms, signed);
    server.publish(log_of(3).files_at(signed + 5000, &[]));
    assert!(machine.look().is_new);
    assert_eq!(machine.copy().unwrap().head().fresh_ms, signed + 5000);
    server.publish(log_of(3).files_at(now_ms() + 600_000, &[]));
    let refreshed = machine.look();
    let [finding] = &refreshed.findings[..] else { panic!("{refreshed:?}") };
    assert_eq!((refreshed.is_new, &*finding.code), (false, "fleet-checkpoint-future"));
    server.publish(log_of(3).files_at(now_ms() + 700_000, &[]));
    assert!(machine.look().findings.is_empty(), "it is said once");
    assert_eq!(machine.copy().unwrap().head().fresh_ms, signed + 5000, "no checkpoint is of the future");
}

#[test]
fn a_checkpoint_needs_the_hub_and_its_witnesses() {
    let witnesses: Vec<NoteSigner> =
        (1..=3).map(|seed| NoteSigner::witness(&format!("w{seed}"), &[seed; 32]).unwrap()).collect();
    let log = log_of(5);
    let server = LogServer::start(log.files_at(now_ms(), &[&witnesses[0]]));
    let mut machine = Machine::new(&[&server.url]);
    machine.enrolment.witnesses = witnesses.iter().map(NoteSigner::verifier).collect();
    machine.enrolment.quorum = 2;
    let refreshed = machine.look();
    assert!(
        machine.copy().is_none() && refreshed.faults[0].contains("1 of the 2 witnesses"),
        "{refreshed:?}"
    );
    server.publish(log.files_at(now_ms(), &[&witnesses[0], &witnesses[2]]));
    assert!(machine.look().is_new);
    let mut foreign = log_of(6);
    foreign.sign_with(8);
    server.publish(foreign.files_at(now_ms(), &[&witnesses[0], &witnesses[1]]));
    let refreshed = machine.look();
    assert_eq!(machine.size(), Some(5));
    assert!(refreshed.faults[0].contains("no trusted key"), "{refreshed:?}");
}

#[test]
fn the_log_says_which_keys_of_the_hub_follow() {
    let key = |seed: u8, removed| {
        let (member, key) =
            (signer(seed).verifier().name().to_owned(), Hash::from_bytes(*signer(seed).verifier().public()));
        EntryBody::MemberKey(MemberKey { member, role: Role::Hub, key, labels: Default::default(), removed })
    };
    let mut log = TestLog::with([key(8, false)]);
    let server = LogServer::start(log.files());
    let machine = Machine::new(&[&server.url]);
    machine.look();
    log.push(key(7, true));
    log.sign_with(8);
    server.publish(log.files());
    assert!(machine.look().is_new && machine.size() == Some(2), "the new key signs");
    log.push(heads(1));
    log.sign_with(7);
    server.publish(log.files());
    assert!(!machine.look().is_new, "the old key was removed");
    assert_eq!(machine.size(), Some(2));
}

#[test]
fn a_damaged_copy_is_not_used_and_not_forgotten() {
    let mut log = log_of(599);
    log.push(revocation("r1", Target::Everything));
    let server = LogServer::start(log.files());
    let machine = Machine::new(&[&server.url]);
    machine.look();
    let whole = std::fs::read(machine.file("copy")).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    assert!(text.contains("everything"));
    // As if nothing were revoked.
    let tampered = text.replace("\"everything\"", "\"server\",\"server\":\"x\"").into_bytes();
    // With its sum, but of another tree.
    let json = text.split('\n').next().unwrap().replacen("\"size\":600", "\"size\":601", 1);
    let regrown = format!("{json}\n{}\n", Hash::sha256(json.as_bytes())).into_bytes();
    assert!(regrown.len() > 600 && regrown != whole && tampered != whole);
    for damaged in [&whole[..whole.len() / 2], &whole[..whole.len() - 1], &[], &tampered[..], &regrown[..]] {
        std::fs::write(machine.file("copy"), damaged).unwrap();
        assert!(machine.store().load().is_err());
        // It is fetched again, and not from a log that is shorter than the one that was seen.
        server.replace(log_of(599).files_at(now_ms() + 2000, &[]));
        assert_eq!(
            machine.look().findings.len(),
            usize::from(damaged.len() == whole.len() / 2),
            "a rollback"
        );
        assert!(machine.store().load().is_err());
        server.replace(log.files_at(now_ms() + 3000, &[]));
        assert!(machine.look().is_new);
        assert_eq!(machine.size(), Some(600));
    }
}

#[test]
fn two_processes_refresh_at_once_and_one_looks() {
    let log = log_of(40);
    let server = LogServer::start(log.files());
    let machine = Arc::new(Machine::new(&[&server.url]));
    machine.look();
    let mut larger = log_of(40);
    larger.push(heads(77));
    server.publish(larger.files());
    drop(server.asked());
    let looks: Vec<_> = (0..8)
        .map(|_| {
            let machine = Arc::clone(&machine);
            thread::spawn(move || refresh(&machine.store(), &client()).unwrap().is_some())
        })
        .collect();
    let looked =
        looks.into_iter().filter(|_| true).map(|look| look.join().unwrap()).filter(|looked| *looked).count();
    assert!(looked >= 1);
    let asked = server.asked();
    let fetched = asked.iter().filter(|path| path.starts_with("tile/entries")).count();
    assert_eq!((fetched, machine.size()), (1, Some(41)), "{asked:?}");
}

#[test]
fn a_process_reads_what_another_left_and_never_an_older_copy() {
    let mut log = log_of(3);
    let server = LogServer::start(log.files());
    let machine = Machine::new(&[&server.url]);
    machine.look();
    let old = std::fs::read(machine.file("copy")).unwrap();
    let mut slow = machine.enrolment.clone();
    slow.refresh_ms = 3_600_000;
    let quiet = Machine { enrolment: slow, state: machine.state };
    let replica = Replica::open(quiet.store(), client()).unwrap();
    replica.watch(|_| {}, |_| {}).unwrap();
    log.push(heads(4));
    server.publish(log.files());
    quiet.look();
    let is_seen = |size| replica.copy().head().checkpoint.size == size;
    eventually(|| is_seen(4));
    std::fs::write(quiet.file("copy"), old).unwrap();
    thread::sleep(std::time::Duration::from_millis(1200));
    assert!(is_seen(4));
}

pub(crate) fn eventually(is_so: impl Fn() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it did not come about in 30 s");
}
