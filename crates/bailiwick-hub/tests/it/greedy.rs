//! Members with a certificate of their own who want more than their share: connections, requests, rows, places in the log. Others are
//! answered all the while.

use bailiwick_fleet::Hash;
use bailiwick_fleet::entry::{
    Bundle, EntryBody, Grant, JournalHead, Lift, MemberKey, Package, Pin, Revocation, Role, Rule, RuleFormat,
    Scope, Target,
};
use bailiwick_fleet::protocol::HeadReport;
use bailiwick_hub::database::Database;
use bailiwick_hub::hub::Hub;
use bailiwick_hub::members::Member;
use bailiwick_hub::reports;
use serde_json::json;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::world::{Caller, Fleet, RunningHub, new_id, run};
use bailiwick_testkit::postgres::Postgres;

/// Of one member, as in the hub; there are 2,048 in all.
const CONNECTIONS: usize = 80;

async fn is_answered(machine: &Caller) -> bool {
    machine.post("/v1/heads", &json!({"heads": []})).await.is_ok_and(|(status, _)| status == 204)
}

/// What raw bytes are answered with, up to the end of the connection.
async fn raw(caller: &Caller, request: &str) -> String {
    let mut stream = caller.open().await.unwrap();
    let mut heard = Vec::new();
    // A hub may close before it has read all.
    if stream.write_all(request.as_bytes()).await.is_ok() {
        let _may_be_cut = stream.read_to_end(&mut heard).await;
    }
    String::from_utf8_lossy(&heard).into_owned()
}

#[test]
fn one_member_takes_no_more_than_its_connections() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let hub = fleet.hub(&postgres.create("connections"), "log").await;
        let greedy = fleet.member(&hub, Role::Machine).await.at(hub.address);
        let other = fleet.member(&hub, Role::Machine).await.at(hub.address);
        let asked = format!(
            "GET /v1/approvals/{}?wait=30 HTTP/1.1\r\nhost: localhost\r\n\r\n",
            waiting(&greedy).await
        );
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut stream = greedy.open().await.unwrap();
            stream.write_all(asked.as_bytes()).await.unwrap();
            held.push(stream);
        }
        let refused = crate::world::until("the places are taken", async || {
            let (status, body) = greedy.get("/v1/approvals/x").await.ok()?;
            (status == 429).then_some(body)
        });
        assert_eq!(refused.await["code"], "too-many-connections");
        assert!(is_answered(&other).await, "another member has places of its own");
        drop(held);
        crate::world::until("the places are free again", async || is_answered(&greedy).await.then_some(()))
            .await;
    });
}

/// The id of a call that waits.
async fn waiting(machine: &Caller) -> String {
    let (id, digest) = (new_id(), "0".repeat(64));
    let call = json!({"id": id, "server": "s", "tool": "t", "arguments": {}, "arguments_sha256": digest, "pins": digest,
        "policy": digest, "reason": "r", "ttl_s": 600});
    assert_eq!(machine.post("/v1/approvals", &call).await.unwrap().0, 200);
    id
}

#[test]
fn a_machine_that_asks_without_end_is_told_to_wait() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let hub = fleet.hub(&postgres.create("requests"), "log").await;
        let (greedy, other) = (
            fleet.member(&hub, Role::Machine).await.at(hub.address),
            fleet.member(&hub, Role::Machine).await.at(hub.address),
        );
        let mut stream = greedy.open().await.unwrap();
        let request =
            "POST /v1/heads HTTP/1.1\r\nhost: localhost\r\ncontent-length: 12\r\n\r\n{\"heads\":[]}";
        let (mut heard, mut buffer) = (String::new(), [0; 4096]);
        for _ in 0..3_000 {
            stream.write_all(request.as_bytes()).await.unwrap();
            let count = stream.read(&mut buffer).await.unwrap();
            heard = String::from_utf8_lossy(&buffer[..count]).into_owned();
            if heard.contains(" 429 ") {
                break;
            }
        }
        assert!(heard.contains(" 429 ") && heard.contains("retry-after"), "{heard}");
        assert!(is_answered(&other).await);
    });
}

#[test]
fn heads_of_one_machine_keep_those_of_others_out_of_nothing() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let url = postgres.create("greedy_heads");
        let hub = fleet.hub(&url, "log").await;
        let (greedy, modest) =
            (fleet.member(&hub, Role::Machine).await, fleet.member(&hub, Role::Machine).await);
        drop(hub);
        // One that anchors nothing by itself.
        let bare =
            Hub::new(Database::new(&url, 2, None).unwrap(), Arc::clone(&fleet.keys), fleet.path("bare"));
        let member = |id: &str| Member { id: id.to_owned(), role: Role::Machine, subject: String::new() };
        let report = |machine: &str, first: usize, count: usize| HeadReport {
            heads: (first..first + count).map(|number| head(machine, &format!("s{number}"), 1)).collect(),
        };
        for first in (0..1024).step_by(256) {
            reports::heads(&bare, &member(&greedy.member), &report(&greedy.member, first, 256))
                .await
                .unwrap();
        }
        let refused = reports::heads(&bare, &member(&greedy.member), &report(&greedy.member, 1024, 1)).await;
        assert_eq!(refused.unwrap_err().code(), "too-many-heads");
        reports::heads(&bare, &member(&modest.member), &report(&modest.member, 0, 1)).await.unwrap();
        // What waits already, as if many such machines had filled a batch before.
        let other = &greedy.member;
        postgres.sql("greedy_heads", &format!(
            "INSERT INTO journal_head (machine, session, seq, hash, head, reported_at) \
             SELECT '{other}', 'x' || n, 1, '', replace(h.head, '\"s0\"', '\"x' || n || '\"'), now() - INTERVAL '1 hour' \
             FROM generate_series(1, 21000) n, journal_head h WHERE h.machine = '{other}' AND h.session = 's0'"
        ));
        reports::anchor(&bare).await.unwrap().unwrap();
        let anchored = format!("SELECT is_anchored FROM journal_head WHERE machine = '{}'", modest.member);
        assert_eq!(postgres.sql("greedy_heads", &anchored), "t", "its turn came in the first batch");
        let waits = "SELECT COUNT(*) FROM journal_head WHERE NOT is_anchored";
        assert_eq!(postgres.sql("greedy_heads", waits), "2025");
        reports::anchor(&bare).await.unwrap().unwrap();
        assert_eq!(postgres.sql("greedy_heads", waits), "0");

        // Sessions are remembered in a number that has an end; those that are quiet are forgotten.
        postgres.sql(
            "greedy_heads",
            &format!(
                "INSERT INTO journal_head (machine, session, seq, hash, head, is_anchored) \
             SELECT '{other}', 'y' || n, 1, '', '', true FROM generate_series(1, 80000) n"
            ),
        );
        let refused = reports::heads(&bare, &member(other), &report(other, 5_000, 1)).await;
        assert_eq!(refused.unwrap_err().code(), "too-many-heads");
        postgres.sql("greedy_heads", "UPDATE journal_head SET reported_at = now() - INTERVAL '8 days'");
        bailiwick_hub::approvals::sweep(&bare).await.unwrap();
        reports::heads(&bare, &member(other), &report(other, 5_000, 1)).await.unwrap();

        for seq in 2..42 {
            let back = HeadReport { heads: vec![head(other, "s5000", 0), head(other, "s5000", seq)] };
            assert_eq!(
                reports::heads(&bare, &member(other), &back).await.unwrap_err().code(),
                "journal-went-back"
            );
        }
        let recorded = "SELECT COUNT(*) FROM audit WHERE action = 'journal-went-back'";
        assert_eq!(postgres.sql("greedy_heads", recorded), "32");
    });
}

fn head(machine: &str, session: &str, seq: u64) -> JournalHead {
    let (machine, session) = (machine.to_owned(), session.to_owned());
    JournalHead { machine, session, seq, hash: Hash::sha256(b"h"), key: Hash::sha256(b"k"), time_ms: 1 }
}

#[test]
fn calls_of_one_machine_have_an_end_and_leases_that_are_over_are_forgotten() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let hub = fleet.hub(&postgres.create("rows"), "log").await;
        let (greedy, other) =
            (fleet.member(&hub, Role::Machine).await, fleet.member(&hub, Role::Machine).await);
        let (id, machine) = (waiting(&greedy.at(hub.address)).await, &greedy.member);
        postgres.sql("rows", &format!(
            "INSERT INTO approval (id, machine, request_hash, arguments_sha256, state, expires_at) \
             SELECT 'x' || n, '{machine}', '', '', 'denied', now() FROM generate_series(1, 1024) n; \
             INSERT INTO budget (id, unit, total, taken, slice, lease_ms) VALUES ('b', 'calls', 9, 3, 1, 10000); \
             INSERT INTO lease (id, budget, machine, wanted, amount, expires_at, returned_at) VALUES \
             ('l1', 'b', 'm', 1, 1, now(), now() - INTERVAL '2 days'), ('l2', 'b', 'm', 1, 1, now() - INTERVAL '31 days', NULL), \
             ('l3', 'b', 'm', 1, 1, now() - INTERVAL '1 day', NULL), ('l4', 'b', 'm', 1, 1, now(), now())"
        ));
        let digest = "0".repeat(64);
        let call = json!({"id": new_id(), "server": "s", "tool": "t", "arguments": {}, "arguments_sha256": digest, "pins": digest,
            "policy": digest, "reason": "r", "ttl_s": 600});
        let (status, said) = greedy.at(hub.address).post("/v1/approvals", &call).await.unwrap();
        assert_eq!((status, said["code"].as_str()), (429, Some("too-many-waiting")));
        assert_eq!(greedy.at(hub.address).get(&format!("/v1/approvals/{id}")).await.unwrap().0, 200);
        waiting(&other.at(hub.address)).await;
        bailiwick_hub::approvals::sweep(&hub.hub).await.unwrap();
        assert_eq!(postgres.sql("rows", "SELECT string_agg(id, ' ' ORDER BY id) FROM lease"), "l3 l4");
        assert_eq!(postgres.sql("rows", "SELECT taken FROM budget"), "3", "what was taken stays taken");
    });
}

/// Every kind of entry that an admin may append.
fn entries(machine: &str) -> Vec<EntryBody> {
    let package =
        Package { registry: "npm".to_owned(), name: "@a/b".to_owned(), version: Some("1.2".to_owned()) };
    let rule = Rule { format: RuleFormat::Manifest, name: "s".to_owned(), text: "name = 's'".to_owned() };
    let scope = || Scope::Labels(["l".to_owned()].into());
    let (name, id) = (|| "n".to_owned(), new_id);
    let mut all = vec![
        EntryBody::Bundle(Bundle { name: name(), scope: scope(), rules: vec![rule] }),
        EntryBody::Grant(Grant {
            id: name(),
            scope: scope(),
            server: name(),
            grant: String::new(),
            expires_ms: Some(1),
            max_stale_s: None,
        }),
        EntryBody::Pin(Pin { server: name(), package: Some(package.clone()), surface: Hash::sha256(b"s") }),
        EntryBody::Lift(Lift { revocation: id(), reason: name() }),
    ];
    for removed in [false, true] {
        let key = MemberKey {
            member: "hub-2".to_owned(),
            role: Role::Hub,
            key: Hash::sha256(b"k"),
            labels: Default::default(),
            removed,
        };
        all.push(EntryBody::MemberKey(key));
    }
    let targets = [
        Target::Grant { grant: name() },
        Target::Token { sha256: Hash::sha256(b"t") },
        Target::Machine { machine: machine.to_owned() },
        Target::Package(package),
        Target::Pin { surface: Hash::sha256(b"s") },
        Target::Server { server: name() },
        Target::Everything,
    ];
    all.extend(targets.map(|target| EntryBody::Revocation(Revocation { id: id(), target, reason: name() })));
    all
}

#[test]
fn every_kind_of_entry_is_appended_once_and_does_what_it_says() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let hub = fleet.hub(&postgres.create("kinds"), "log").await;
        let admin = fleet.member(&hub, Role::Admin).await.at(hub.address);
        let (gone, machine) = (
            fleet.member(&hub, Role::Machine).await,
            fleet.member(&hub, Role::Machine).await.at(hub.address),
        );
        let id = waiting(&machine).await;
        let mut last = None;
        for body in entries(&gone.member) {
            let key = new_id();
            let (status, said) = admin.append(&key, &body).await.unwrap();
            assert_eq!(status, 200, "{body:?}: {said}");
            assert_eq!(admin.append(&key, &body).await.unwrap(), (status, said), "again is the same");
            // Under the id of something else nothing is done, and that is said.
            if let Some(other) = last.replace(body) {
                let (status, said) = admin.append(&key, &other).await.unwrap();
                assert_eq!((status, said["code"].as_str()), (409, Some("id-taken")), "{other:?}");
            }
        }
        assert!(!is_answered(&gone.at(hub.address)).await && is_answered(&machine).await);
        let standing = machine.get(&format!("/v1/approvals/{id}")).await.unwrap().1;
        assert_eq!(
            (&standing["status"], &standing["remark"]),
            (&json!("denied"), &json!("everything was revoked"))
        );
        let heads = json!({"kind": "heads", "sha256": "0".repeat(64), "count": 1, "bytes": 1});
        let unknown = json!({"kind": "something-else", "name": "n"});
        for wrong in [heads, unknown, json!({"kind": "bundle", "name": "n"}), json!([]), json!(null)] {
            let headers = [("idempotency-key", &*new_id())];
            let (status, said) = admin.post_with("/v1/entries", &headers, &wrong).await.unwrap();
            assert_eq!(status, 400, "{wrong}: {said}");
        }
    });
}

#[test]
fn a_hostile_approver_answers_nothing_of_its_own_and_nothing_once_it_is_revoked() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let hub = fleet.hub(&postgres.create("approver"), "log").await;
        let (machine, admin) = (
            fleet.member(&hub, Role::Machine).await.at(hub.address),
            fleet.member(&hub, Role::Admin).await.at(hub.address),
        );
        let identity = fleet.member(&hub, Role::Approver).await;
        let approver = identity.at(hub.address);
        let digest = "0".repeat(64);
        let call = json!({"id": new_id(), "server": "s", "tool": "t", "arguments": {}, "arguments_sha256": digest, "pins": digest,
            "policy": digest, "reason": "r", "ttl_s": 600});
        let lease = json!({"id": new_id(), "budget": "b", "unit": "calls", "amount": 1});
        for (path, body) in
            [("/v1/approvals", &call), ("/v1/leases", &lease), ("/v1/heads", &json!({"heads": []}))]
        {
            assert_eq!(approver.post(path, body).await.unwrap().0, 403, "{path}: a person asks nothing");
        }
        let id = waiting(&machine).await;
        let path = format!("/v1/approvals/{id}");
        let nonce = json!({"arguments_sha256": digest, "nonce": new_id()});
        assert_eq!(approver.post(&format!("{path}/take"), &nonce).await.unwrap().0, 403);
        let answer = |remark: &str| json!({"allow": true, "arguments_sha256": digest, "remark": remark});
        for wrong in ["a\u{1b}[2J", &"x".repeat(1001)] {
            assert_eq!(approver.post(&format!("{path}/answer"), &answer(wrong)).await.unwrap().0, 400);
        }
        assert_eq!(approver.post(&format!("{path}/answer"), &answer("ok")).await.unwrap().0, 200);
        let target = Target::Machine { machine: identity.member.clone() };
        let revoked = EntryBody::Revocation(Revocation { id: new_id(), target, reason: "left".to_owned() });
        assert_eq!(admin.append(&new_id(), &revoked).await.unwrap().0, 200);
        let (status, said) = machine.post(&format!("{path}/take"), &nonce).await.unwrap();
        assert_eq!((status, said["code"].as_str()), (409, Some("approval-void")));
        let (status, said) = approver.post(&format!("{path}/answer"), &answer("ok")).await.unwrap();
        assert_eq!((status, said["code"].as_str()), (403, Some("revoked")));
    });
}

#[test]
fn a_spiffe_id_is_admitted_once_for_one_role() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let hub = fleet.hub(&postgres.create("spiffe"), "log").await;
        let admin = fleet.member(&hub, Role::Admin).await.at(hub.address);
        let asked =
            |role: &str| json!({"subject": "spiffe://other.example/ns/a", "role": role, "labels": ["l"]});
        let first = admin.post("/v1/members", &asked("machine")).await.unwrap();
        assert_eq!(first.0, 200, "{}", first.1);
        assert_eq!(admin.post("/v1/members", &asked("machine")).await.unwrap(), first, "again is the same");
        let (status, said) = admin.post("/v1/members", &asked("admin")).await.unwrap();
        assert_eq!((status, said["code"].as_str()), (409, Some("subject-taken")));
        assert_eq!(postgres.sql("spiffe", "SELECT COUNT(*) FROM member WHERE name = 'spiffe'"), "1");
    });
}

/// Routes of every kind: of strangers, machines and persons.
const ROUTES: [&str; 9] = [
    "/v1/enrol",
    "/v1/renew",
    "/v1/approvals",
    "/v1/leases",
    "/v1/heads",
    "/v1/inventory",
    "/v1/entries",
    "/v1/tokens",
    "/nothing",
];

#[test]
fn bodies_that_are_huge_or_never_end_and_heads_with_two_meanings_are_refused_on_every_route() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let hub: RunningHub = fleet.hub(&postgres.create("bodies"), "log").await;
        let machine = fleet.member(&hub, Role::Machine).await.at(hub.address);
        let mut stalled = tokio::task::JoinSet::new();
        for route in ROUTES {
            let huge = machine.send("POST", route, &[], vec![b' '; 300 << 10]).await;
            assert!(huge.as_ref().map_or(true, |(status, _)| *status == 413), "{route}: {huge:?}");
            for beginning in [
                format!("POST {route} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{{"),
                format!(
                    "POST {route} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{{"
                ),
                format!("POST {route} HTTP/1.1\r\nhost: localhost\r\nx: "),
            ] {
                let (caller, stranger) = (machine.clone(), fleet.stranger(hub.address));
                let again = beginning.clone();
                stalled.spawn(async move { raw(&caller, &beginning).await });
                stalled.spawn(async move { raw(&stranger, &again).await });
            }
            for (doubled, whole) in [
                ("host: localhost\r\nhost: evil.example", ""),
                ("host: localhost\r\ncontent-length: 3\r\ncontent-length: 4", "abcd"),
                ("host: localhost\r\nidempotency-key: a\r\n b", ""),
                ("host: evil.example\r\nx-forwarded-host: localhost", ""),
                ("host: localhost\r\nx: a\0b", ""),
            ] {
                let said = raw(
                    &machine,
                    &format!("POST {route} HTTP/1.1\r\n{doubled}\r\nconnection: close\r\n\r\n{whole}"),
                )
                .await;
                let is_refused = said.is_empty() || said.starts_with("HTTP/1.1 4");
                assert!(is_refused, "{route} {doubled:?}: {said}");
            }
        }
        // Nothing waits for them: others are answered, and each is ended.
        let mut ended = 0;
        while let Some(said) = stalled.join_next().await {
            let said = said.unwrap();
            assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
            ended += 1;
            assert!(is_answered(&machine).await);
        }
        assert_eq!(ended, ROUTES.len() * 6);
        assert_eq!(postgres.sql("bodies", "SELECT COUNT(*) FROM member"), "1");
    });
}
