//! Servers that run while the log changes.

use std::collections::BTreeMap;

use bailiwick_fleet::Hash;
use bailiwick_fleet::entry::{
    Bundle, EntryBody, Grant, Lift, MemberKey, Package, Pin, Role, Rule, RuleFormat, Scope, Target,
    surface_digest,
};
use bailiwick_guard::{Call, Interceptor as _, Verdict};
use bailiwick_replica::{Leash, Replica, RulesError, ServerIdentity, ServerRules};
use bailiwick_testkit::fleet::{LogServer, Manners, TestLog, revocation};

use crate::copied::{eventually, heads};
use crate::world::{Machine, client};

const MANIFEST: &str = "name = 'files'\nversion = '1'\nserver_capabilities = ['fs:read:/srv/**']\n";

struct Running {
    log: TestLog,
    server: LogServer,
    machine: Machine,
    replica: Replica,
}

impl Running {
    fn new(bodies: impl IntoIterator<Item = EntryBody>, is_authoritative: bool) -> Self {
        let log = TestLog::with([heads(1)].into_iter().chain(bodies));
        let server = LogServer::start(log.files());
        let mut machine = Machine::new(&[&server.url]);
        machine.enrolment.authoritative = is_authoritative;
        let replica = Replica::open(machine.store(), client()).unwrap();
        Self { log, server, machine, replica }
    }

    fn identity() -> ServerIdentity {
        let mut identity = ServerIdentity::named(["files", "npm:@a/files"]);
        identity.set_version("1.2.3");
        identity
    }

    fn rules(&self) -> Result<ServerRules, RulesError> {
        ServerRules::now(&self.replica, Self::identity())
    }

    fn leash(&self) -> Leash {
        Leash::new(&self.replica, self.rules().unwrap(), |_| {}).unwrap()
    }

    fn push(&mut self, body: EntryBody) {
        self.log.push(body);
        self.server.publish(self.log.files());
    }
}

fn grant(max_stale_s: Option<u64>) -> EntryBody {
    EntryBody::Grant(Grant {
        id: "g1".to_owned(),
        scope: Scope::Every,
        server: "files".to_owned(),
        grant: MANIFEST.to_owned(),
        expires_ms: None,
        max_stale_s,
    })
}

fn bundle(format: RuleFormat, name: &str, text: &str) -> EntryBody {
    let rule = Rule { format, name: name.to_owned(), text: text.to_owned() };
    EntryBody::Bundle(Bundle { name: "base".to_owned(), scope: Scope::Every, rules: vec![rule] })
}

fn is_allowed(leash: &Leash) -> bool {
    let call = Call { tool: "t".into(), args: serde_json::Value::Null };
    matches!(leash.judge(&call), Ok(Verdict::Allow))
}

#[test]
fn each_revocation_that_means_a_server_ends_it() {
    let package = |version: Option<&str>| Package {
        registry: "npm".to_owned(),
        name: "@a/files".to_owned(),
        version: version.map(str::to_owned),
    };
    let removed = EntryBody::MemberKey(MemberKey {
        member: "m1".to_owned(),
        role: Role::Machine,
        key: Hash::sha256(b"k"),
        labels: Default::default(),
        removed: true,
    });
    for (body, word) in [
        (revocation("r1", Target::Everything), "everything"),
        (revocation("r1", Target::Machine { machine: "m1".to_owned() }), "machine"),
        (revocation("r1", Target::Server { server: "files".to_owned() }), "server"),
        (revocation("r1", Target::Package(package(Some("1.2.3")))), "@a/files@1.2.3"),
        (revocation("r1", Target::Package(package(None))), "@a/files"),
        (removed, "removed this machine"),
    ] {
        let mut running = Running::new([], false);
        let leash = running.leash();
        assert!(is_allowed(&leash));
        running.push(body);
        eventually(|| leash.ended().is_some());
        assert!(leash.over().is_cancelled() && !is_allowed(&leash));
        assert!(leash.ended().unwrap().contains(word), "{:?}", leash.ended());
        assert!(running.rules().is_err(), "nor does it start again");
    }
}

#[test]
fn what_is_revoked_elsewhere_ends_nothing_here() {
    let mut running = Running::new([], false);
    let leash = running.leash();
    let version = Package {
        registry: "npm".to_owned(),
        name: "@a/files".to_owned(),
        version: Some("1.2.4".to_owned()),
    };
    running.push(revocation("r1", Target::Package(version)));
    running.push(revocation("r2", Target::Machine { machine: "m2".to_owned() }));
    running.push(revocation("r3", Target::Server { server: "file".to_owned() }));
    let size = 4;
    eventually(|| running.replica.copy().head().checkpoint.size == size);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert!(leash.ended().is_none() && is_allowed(&leash));
}

#[test]
fn a_lift_lets_it_start_again_and_a_server_that_was_ended_stays_so() {
    let mut running = Running::new([], false);
    let leash = running.leash();
    running.push(revocation("r1", Target::Everything));
    eventually(|| leash.ended().is_some());
    running.push(EntryBody::Lift(Lift { revocation: "r1".to_owned(), reason: String::new() }));
    eventually(|| running.rules().is_ok());
    assert!(!is_allowed(&leash));
}

#[test]
fn a_grant_counts_on_an_authoritative_machine_alone() {
    assert_eq!(Running::new([grant(None)], false).rules().unwrap().grant(), None);
    let running = Running::new([grant(None)], true);
    assert_eq!(running.rules().unwrap().grant().map(|grant| grant.id.as_str()), Some("g1"));
}

#[test]
fn a_grant_ends_with_its_revocation_its_change_and_its_age() {
    let mut revoked = Running::new([grant(None)], true);
    let leash = revoked.leash();
    revoked.push(revocation("r1", Target::Grant { grant: "g1".to_owned() }));
    eventually(|| leash.ended().is_some());
    assert!(leash.ended().unwrap().contains("it was revoked: leaked"), "{:?}", leash.ended());
    let ended = revoked.rules().unwrap();
    assert!(ended.grant().is_none() && ended.notes()[0].contains("`g1` has ended"), "{:?}", ended.notes());

    let mut changed = Running::new([grant(None)], true);
    let leash = changed.leash();
    changed.push(grant(Some(5)));
    eventually(|| leash.ended().is_some());
    assert!(leash.ended().unwrap().contains("has changed"), "{:?}", leash.ended());

    // The web server is away: the copy grows older than the grant allows, and every call is refused from that moment.
    let away = Running::new([grant(Some(6))], true);
    let (used, unused) =
        (away.leash(), Leash::new(&away.replica, away.rules().unwrap().without_grant(), |_| {}).unwrap());
    away.server.behave(Manners::Fails(503));
    eventually(|| !is_allowed(&used));
    assert!(used.ended().unwrap().contains("old"), "{:?}", used.ended());
    assert!(is_allowed(&unused), "what the machine itself grants goes on");
    let notes = away.rules().unwrap().notes();
    assert!(notes[0].contains("allows 6 s") && notes[0].contains("fleet.toml"), "{notes:?}");
}

#[test]
fn denials_hold_however_old_the_copy_is() {
    let running = Running::new([revocation("r1", Target::Everything)], false);
    let log = TestLog::with([heads(1), revocation("r1", Target::Everything)]);
    let old = LogServer::start(log.files_at(1_000, &[]));
    let machine = Machine::new(&[&old.url]);
    let replica = Replica::open(machine.store(), client()).unwrap();
    assert_eq!(replica.copy().head().fresh_ms, 1_000);
    assert!(ServerRules::now(&replica, Running::identity()).is_err());
    assert!(running.rules().is_err());
}

#[test]
fn a_new_rule_ends_what_runs_without_it() {
    for body in [
        bundle(RuleFormat::Manifest, "files", MANIFEST),
        bundle(RuleFormat::Manifest, "npm:@a/files", MANIFEST),
        bundle(RuleFormat::Guardrails, "office", "[[guard]]\nmatch = 'shell'\nmessage = 'no'\n"),
    ] {
        let mut running = Running::new([], false);
        let leash = running.leash();
        running.push(body);
        eventually(|| leash.ended().is_some());
        assert!(leash.ended().unwrap().contains("have changed"), "{:?}", leash.ended());
        let rules = running.rules().unwrap();
        assert_eq!(rules.ceilings().unwrap().len() + rules.guardrails().count(), 1);
    }
    let broken = Running::new([bundle(RuleFormat::Manifest, "files", "name = 1")], false);
    assert!(matches!(broken.rules().unwrap().ceilings(), Err(RulesError::Broken(_, _))));
}

#[test]
fn what_a_server_says_of_itself_is_what_was_reviewed() {
    let tools =
        |text: &str| BTreeMap::from([("read".to_owned(), serde_json::json!({ "description": text }))]);
    let reviewed = surface_digest(Some("hello"), &tools("reads")).unwrap();
    let other = surface_digest(Some("hello"), &tools("reads, and sends")).unwrap();
    let pin = EntryBody::Pin(Pin { server: "files".to_owned(), package: None, surface: reviewed });
    let mut running = Running::new([pin], false);
    let leash = running.leash();
    leash.note_surface(reviewed);
    assert!(is_allowed(&leash));
    leash.note_surface(other);
    assert!(!is_allowed(&leash) && leash.ended().unwrap().contains("reviewed"), "{:?}", leash.ended());
    let leash = running.leash();
    leash.note_surface(reviewed);
    running.push(revocation("r1", Target::Pin { surface: reviewed }));
    eventually(|| leash.ended().is_some());
}

#[test]
fn no_call_waits_for_a_web_server_that_hangs() {
    let running = Running::new([], false);
    let leash = running.leash();
    running.server.behave(Manners::Hangs);
    std::thread::sleep(std::time::Duration::from_millis(700));
    let looked = std::fs::metadata(running.machine.file("looked")).unwrap().modified().unwrap();
    assert!((0..10_000).all(|_| is_allowed(&leash)));
    let again = std::fs::metadata(running.machine.file("looked")).unwrap().modified().unwrap();
    assert_eq!(looked, again, "the look that hangs has not ended");
}
