//! Web servers that lie, hang, send too much or send elsewhere: the copy stays as it was.

use bailiwick_fleet::entry::Target;
use bailiwick_replica::{LogCopy, Replica, ReplicaError};
use bailiwick_testkit::fleet::{LogFiles, LogServer, Manners, TestLog, now_ms, revocation};

use crate::copied::heads;
use crate::world::{Machine, client};

fn root_of(copy: &LogCopy) -> String {
    copy.head().checkpoint.text().lines().nth(2).unwrap().to_owned()
}

/// A log of 300 entries, and one that goes on from it by this many.
fn logs(more: u64) -> (LogFiles, LogFiles) {
    let mut log = TestLog::with((0..300).map(heads));
    let files = log.files_at(now_ms() - 2000, &[]);
    (0..more).for_each(|number| log.push(heads(1000 + number)));
    (files, log.files())
}

#[test]
fn a_file_that_does_not_belong_to_the_tree_is_refused_wherever_it_is() {
    for more in [1, 700] {
        let (before, after) = logs(more);
        let used: Vec<&String> = after.keys().filter(|path| *path != "checkpoint").collect();
        for path in used {
            for change in [
                (|bytes: &mut Vec<u8>| *bytes.last_mut().unwrap() ^= 1) as fn(&mut Vec<u8>),
                |bytes| bytes[3] ^= 1,
                |bytes| bytes.truncate(bytes.len() - 1),
                |bytes| bytes.push(0),
                Vec::clear,
            ] {
                let server = LogServer::start(before.clone());
                let machine = Machine::new(&[&server.url]);
                machine.look();
                server.publish(after.clone());
                server.tamper(path, change);
                drop(server.asked());
                let refreshed = machine.look();
                let is_asked = server.asked().contains(&format!("{path} 200"));
                // What is not needed is not asked for, or is an entry that is held: it harms nothing.
                let is_held = refreshed.is_new && path.contains("/entries/001");
                assert!(refreshed.is_new != is_asked || is_held, "{path}: {refreshed:?}");
                let (size, expected) = if refreshed.is_new { (300 + more, &after) } else { (300, &before) };
                let copy = machine.copy().unwrap();
                let signed = String::from_utf8_lossy(&expected["checkpoint"]).into_owned();
                let root = signed.lines().nth(2).unwrap();
                assert_eq!((copy.head().checkpoint.size, root_of(&copy)), (size, root.to_owned()), "{path}");
                assert!(refreshed.findings.is_empty(), "no fork: {refreshed:?}");
                server.publish(after.clone());
                assert!(machine.look().is_new || !is_asked || refreshed.is_new);
            }
        }
    }
}

#[test]
fn an_entry_that_was_exchanged_for_another_is_not_taken() {
    let (mut log, mut forged) = (TestLog::with([heads(1)]), TestLog::with([heads(1)]));
    let server = LogServer::start(log.files_at(now_ms() - 2000, &[]));
    let machine = Machine::new(&[&server.url]);
    machine.look();
    log.push(revocation("r1", Target::Everything));
    forged.push(heads(2));
    let (path, forged) = ("tile/entries/000.p/2", forged.files());
    server.publish(log.files());
    server.tamper(path, |bytes| *bytes = forged[path].clone());
    let refreshed = machine.look();
    assert_eq!(
        (refreshed.is_new, machine.size(), refreshed.faults.len()),
        (false, Some(1), 1),
        "{refreshed:?}"
    );
    // The control: as it was signed, it is taken.
    server.publish(log.files());
    assert!(machine.look().is_new);
    assert_eq!(machine.copy().unwrap().state().revocations().len(), 1);
}

#[test]
fn an_honest_web_server_behind_a_lying_one_is_enough() {
    let (before, after) = logs(5);
    let (lying, honest) = (LogServer::start(before.clone()), LogServer::start(before));
    let machine = Machine::new(&[&lying.url, &honest.url]);
    machine.look();
    honest.publish(after.clone());
    lying.publish(after);
    lying.tamper("checkpoint", |bytes| bytes[20] ^= 1);
    // What is held is fresh, so the other is asked when the first has nothing for a while.
    let refreshed = machine.look();
    assert!(refreshed.is_new || refreshed.faults.len() == 1, "{refreshed:?}");
    let alone = Machine { enrolment: Machine::new(&[&honest.url]).enrolment, ..machine };
    assert!(alone.look().is_new || alone.size() == Some(305));
}

#[test]
fn an_entry_that_is_not_understood_is_not_passed_over() {
    let mut log = TestLog::with([heads(1)]);
    let server = LogServer::start(log.files_at(now_ms() - 2000, &[]));
    let machine = Machine::new(&[&server.url]);
    machine.look();
    log.push_bytes(br#"{"body":{"kind":"new"},"by":"admin","time_ms":1,"version":2}"#);
    log.push(revocation("r1", Target::Everything));
    server.publish(log.files());
    let refreshed = machine.look();
    assert_eq!((refreshed.is_new, machine.size()), (false, Some(1)));
    assert!(refreshed.faults[0].contains("upgrade"), "{refreshed:?}");
}

#[test]
fn what_hangs_or_never_ends_or_leads_elsewhere_brings_nothing() {
    let (before, after) = logs(5);
    let elsewhere = LogServer::start(after.clone());
    let server = LogServer::start(before);
    let machine = Machine::new(&[&server.url]);
    machine.look();
    server.publish(after);
    for (manners, why) in [
        (Manners::Redirects(elsewhere.url.clone()), "redirects"),
        (Manners::Endless, "more than"),
        (Manners::Fails(500), "answers 500"),
        (Manners::Fails(304), "answers 304"),
        (Manners::Hangs, "said nothing"),
    ] {
        // Without a tag, so that `not modified` means nothing.
        std::fs::write(machine.file("looked"), "{}").unwrap();
        server.behave(manners.clone());
        let refreshed = machine.look();
        assert_eq!((refreshed.is_new, machine.size()), (false, Some(300)), "{manners:?}");
        assert!(refreshed.faults[0].contains(why), "{manners:?}: {refreshed:?}");
    }
    assert_eq!(elsewhere.asked(), Vec::<String>::new());
    server.behave(Manners::Files);
    assert!(machine.look().is_new);
}

#[test]
fn without_a_first_copy_nothing_is_known() {
    let server = LogServer::start(TestLog::with([heads(1)]).files());
    for manners in [Manners::Fails(404), Manners::Hangs] {
        server.behave(manners);
        let machine = Machine::new(&[&server.url]);
        let opened = Replica::open(machine.store(), client());
        assert!(matches!(opened.err(), Some(ReplicaError::NoCopy(_))));
    }
    server.behave(Manners::Files);
    let machine = Machine::new(&[&server.url]);
    assert_eq!(Replica::open(machine.store(), client()).unwrap().copy().head().checkpoint.size, 1);
}
