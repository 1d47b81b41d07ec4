//! What `fleet.toml` may say.

use super::*;
use crate::note::NoteSigner;

fn hub() -> NoteKey {
    NoteSigner::new("fleet.example", &[7; 32]).unwrap().verifier()
}

fn witness(seed: u8) -> NoteKey {
    NoteSigner::witness(&format!("witness-{seed}"), &[seed; 32]).unwrap().verifier()
}

#[test]
fn it_is_read_as_it_was_written() {
    let mut all = Enrolment::machine("0a1b", "https://hub.example", "https://log.example/a", hub());
    assert_eq!(Enrolment::parse(&all.to_text()).unwrap(), all);
    all.hub.push("https://other.example:8443".to_owned());
    all.log = vec!["http://127.0.0.1:80".to_owned(), "https://cdn.example".to_owned()];
    (all.role, all.authoritative, all.quorum) = (Role::Admin, true, 2);
    all.witnesses = vec![witness(1), witness(2), witness(3)];
    (all.refresh_ms, all.max_stale_s) = (250, 60);
    assert_eq!(Enrolment::parse(&all.to_text()).unwrap(), all);
    assert_eq!((all.trust().origin.as_str(), all.trust().quorum), ("fleet.example", 2));
}

#[test]
fn what_is_not_said_has_its_default() {
    let text = format!("name = 'm1'\nlog = ['https://log.example/']\nlog_key = '{}'\n", hub());
    let read = Enrolment::parse(&text).unwrap();
    let expected =
        Enrolment { hub: Vec::new(), ..Enrolment::machine("m1", "", "https://log.example", hub()) };
    assert_eq!(read, expected);
}

#[test]
fn what_is_wrong_is_refused_as_a_whole() {
    let good = Enrolment::machine("m1", "https://hub.example", "https://log.example", hub()).to_text();
    let with = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replace(from, to)
    };
    for wrong in [
        String::new(),
        good.clone() + "authoritive = true\n",
        with("name = \"m1\"", "name = \"\""),
        with("name = \"m1\"", "name = \"m 1\""),
        with("[\"https://log.example\"]", "[]"),
        with("https://log.example", "file:///log"),
        with("https://log.example", "https://user@log.example"),
        with("https://log.example", "https://"),
        with("https://hub.example", "https://hub.example/?x"),
        with("log_key = \"fleet.example+", "log_key = \"other.example+"),
        with(&hub().to_string(), &witness(1).to_string()),
        with("quorum = 0", "quorum = 1"),
        with("quorum = 0", "quorum = -1"),
        with("authoritative = false", "authoritative = 'no'"),
        with("role = \"machine\"", "role = \"hub\""),
        with("refresh = \"5000ms\"", "refresh = 5"),
        with("witnesses = []", &format!("witnesses = ['{}']", hub())),
    ] {
        assert!(Enrolment::parse(&wrong).is_err(), "{wrong}");
    }
}
