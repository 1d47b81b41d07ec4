//! Approvals and budgets: answered once, taken once, by those who may; what may be spent stays within the budget.

use bailiwick_fleet::Hash;
use bailiwick_fleet::entry::Role;
use bailiwick_fleet::protocol::{ApprovalRequest, BudgetUnit, LeaseRequest};
use serde_json::{Value, json};

use crate::world::{Caller, Fleet, new_id, run};
use bailiwick_testkit::postgres::Postgres;

fn call(ttl_s: u64) -> ApprovalRequest {
    ApprovalRequest {
        id: new_id(),
        server: "files".to_owned(),
        tool: "write_file".to_owned(),
        arguments: json!({"path": "notes.txt", "token": "[redacted]"}),
        arguments_sha256: Hash::sha256(new_id().as_bytes()),
        pins: Hash::sha256(b"pins"),
        policy: Hash::sha256(b"policy"),
        reason: "a guardrail asks".to_owned(),
        ttl_s,
    }
}

async fn post(caller: &Caller, path: String, body: Value) -> (u16, String) {
    let (status, body) = caller.post(&path, &body).await.unwrap();
    let word = body["status"].as_str().or(body["code"].as_str()).unwrap_or_default().to_owned();
    (status, word)
}

fn said(status: u16, word: &str) -> (u16, String) {
    (status, word.to_owned())
}

#[test]
fn an_approval_is_answered_once_and_taken_once() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let url = postgres.create("approvals");
        let (hub, second) = (fleet.hub(&url, "log-1").await, fleet.hub(&url, "log-2").await);
        let machine = fleet.member(&hub, Role::Machine).await.at(hub.address);
        let other = fleet.member(&hub, Role::Machine).await.at(hub.address);
        let approver = fleet.member(&hub, Role::Approver).await.at(hub.address);
        let asked = call(60);
        let (path, digest) = (format!("/v1/approvals/{}", asked.id), asked.arguments_sha256);
        for _ in 0..2 {
            assert_eq!(
                machine.post("/v1/approvals", &asked).await.unwrap().1["status"],
                "waiting",
                "again is the same"
            );
        }
        let changed = ApprovalRequest { tool: "delete_file".to_owned(), ..asked.clone() };
        assert_eq!(
            post(&machine, "/v1/approvals".to_owned(), serde_json::to_value(&changed).unwrap()).await,
            said(409, "id-taken")
        );
        assert_eq!(other.get(&path).await.unwrap().0, 404, "another machine's");
        let taking = json!({"arguments_sha256": digest, "nonce": new_id()});
        assert_eq!(
            post(&machine, format!("{path}/take"), taking.clone()).await,
            said(409, "approval-waiting")
        );

        // The long poll ends with the answer, which is given at the other hub.
        let (polled, waiting) = (machine.clone(), format!("{path}?wait=20"));
        let polling = tokio::spawn(async move { polled.get(&waiting).await.unwrap().1 });
        let pending = approver.get("/v1/approvals").await.unwrap().1;
        assert_eq!(pending[0]["request"]["arguments"]["path"], "notes.txt");
        let elsewhere = approver.through(second.address);
        let unseen = json!({"allow": true, "arguments_sha256": Hash::sha256(b"others")});
        assert_eq!(post(&elsewhere, format!("{path}/answer"), unseen).await, said(409, "other-arguments"));
        let allow = json!({"allow": true, "arguments_sha256": digest});
        assert_eq!(post(&elsewhere, format!("{path}/answer"), allow.clone()).await, said(200, "allowed"));
        assert_eq!(
            post(&approver, format!("{path}/answer"), allow).await,
            said(200, "allowed"),
            "again is the same"
        );
        let deny = json!({"allow": false, "arguments_sha256": digest});
        assert_eq!(post(&approver, format!("{path}/answer"), deny).await, said(409, "answered"));
        assert_eq!(polling.await.unwrap()["status"], "allowed");

        let wrong = json!({"arguments_sha256": Hash::sha256(b"others"), "nonce": new_id()});
        assert_eq!(post(&machine, format!("{path}/take"), wrong).await, said(409, "approval-void"));
        assert_eq!(post(&other, format!("{path}/take"), taking.clone()).await, said(404, "not-found"));
        assert_eq!(post(&machine, format!("{path}/take"), taking.clone()).await, said(200, "allowed"));
        assert_eq!(
            post(&machine, format!("{path}/take"), taking).await,
            said(200, "allowed"),
            "a lost answer"
        );
        let replayed = json!({"arguments_sha256": digest, "nonce": new_id()});
        assert_eq!(post(&machine, format!("{path}/take"), replayed).await, said(409, "approval-used"));
        assert_eq!(machine.get(&path).await.unwrap().1["status"], "used");
    });
}

#[test]
fn an_approval_expires_by_the_databases_clock_and_its_arguments_are_blanked() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let hub = fleet.hub(&postgres.create("expiry"), "log").await;
        let machine = fleet.member(&hub, Role::Machine).await.at(hub.address);
        let approver = fleet.member(&hub, Role::Approver).await.at(hub.address);
        let asked = call(600);
        let path = format!("/v1/approvals/{}", asked.id);
        machine.post("/v1/approvals", &asked).await.unwrap();
        let allow = json!({"allow": true, "arguments_sha256": asked.arguments_sha256});
        assert_eq!(post(&approver, format!("{path}/answer"), allow).await.0, 200);
        postgres.sql("expiry", "UPDATE approval SET expires_at = now() - INTERVAL '2 hours', answered_at = now() - INTERVAL '2 hours'");
        let taking = json!({"arguments_sha256": asked.arguments_sha256, "nonce": new_id()});
        assert_eq!(post(&machine, format!("{path}/take"), taking).await, said(410, "approval-expired"));
        assert_eq!(machine.get(&path).await.unwrap().1["status"], "expired");
        bailiwick_hub::approvals::sweep(&hub.hub).await.unwrap();
        assert_eq!(postgres.sql("expiry", "SELECT request IS NULL FROM approval"), "t");
    });
}

#[test]
fn leases_stay_within_the_budget_whatever_returns() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let url = postgres.create("budgets");
        let (hub, second) = (fleet.hub(&url, "log-1").await, fleet.hub(&url, "log-2").await);
        let admin = fleet.member(&hub, Role::Admin).await.at(hub.address);
        let machine = fleet.member(&hub, Role::Machine).await.at(hub.address);
        let other = fleet.member(&hub, Role::Machine).await.at(hub.address);
        let wish = |total: u64| json!({"id": "calls", "unit": "calls", "total": total, "slice": 10, "lease_ms": 60_000});
        assert_eq!(machine.post("/v1/budgets", &wish(1)).await.unwrap().0, 403);
        assert_eq!(admin.post("/v1/budgets", &wish(25)).await.unwrap().0, 204);
        let asked = |amount| LeaseRequest {
            id: new_id(),
            budget: "calls".to_owned(),
            unit: BudgetUnit::Calls,
            amount,
        };
        let first = asked(99);
        let lease = machine.post("/v1/leases", &first).await.unwrap().1;
        assert_eq!(lease["amount"], 10, "no more than a slice");
        assert_eq!(
            machine.through(second.address).post("/v1/leases", &first).await.unwrap().1["amount"],
            10,
            "again is the same"
        );
        assert_eq!(other.post("/v1/leases", &first).await.unwrap().0, 409, "another machine's id");
        assert_eq!(other.post("/v1/leases", &asked(10)).await.unwrap().1["amount"], 10);
        assert_eq!(other.post("/v1/leases", &asked(10)).await.unwrap().1["amount"], 5, "what is left");
        assert_eq!(
            post(&other, "/v1/leases".to_owned(), serde_json::to_value(asked(1)).unwrap()).await,
            said(409, "budget-exhausted")
        );
        let path = format!("/v1/leases/{}", first.id);
        assert_eq!(
            other.post(&format!("{path}/return"), &json!({"spent": 0})).await.unwrap().0,
            404,
            "not its lease"
        );
        assert_eq!(machine.post(&format!("{path}/spend"), &json!({"spent": 4})).await.unwrap().0, 200);
        for wrong in [3, 11] {
            assert_eq!(
                machine.post(&format!("{path}/return"), &json!({"spent": wrong})).await.unwrap().0,
                409,
                "{wrong}"
            );
        }
        for _ in 0..2 {
            assert_eq!(
                machine.post(&format!("{path}/return"), &json!({"spent": 6})).await.unwrap().0,
                200,
                "again is the same"
            );
        }
        assert_eq!(machine.post(&format!("{path}/return"), &json!({"spent": 0})).await.unwrap().0, 409);
        let row = admin.get("/v1/budgets").await.unwrap().1;
        assert_eq!((&row[0]["taken"], &row[0]["leased"]), (&json!(21), &json!(15)));
        assert_eq!(admin.post("/v1/budgets", &wish(20)).await.unwrap().0, 409, "less than was taken");
        // What never returns stays taken when its lease is over.
        postgres.sql("budgets", "UPDATE lease SET expires_at = now() - INTERVAL '1 hour'");
        let row = admin.get("/v1/budgets").await.unwrap().1;
        assert_eq!((&row[0]["taken"], &row[0]["leased"]), (&json!(21), &json!(0)));
        assert_eq!(machine.post("/v1/leases", &asked(10)).await.unwrap().1["amount"], 4);
    });
}

#[test]
fn heads_are_anchored_in_one_entry_and_a_journal_that_goes_back_is_seen() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let hub = fleet.hub(&postgres.create("heads"), "log").await;
        let mut sent = Vec::new();
        for number in 0..3_u8 {
            let identity = fleet.member(&hub, Role::Machine).await;
            let head = |seq: u64, text: &[u8]| json!({"heads": [{"machine": identity.member, "session": "s-1", "seq": seq, "hash": Hash::sha256(text), "key": Hash::sha256(b"k"), "time_ms": 1}]});
            let caller = identity.at(hub.address);
            assert_eq!(caller.post("/v1/heads", &head(5, &[number])).await.unwrap().0, 204);
            assert_eq!(
                caller.post("/v1/heads", &head(5, &[number])).await.unwrap().0,
                204,
                "again is the same"
            );
            sent.push((identity.clone(), head(4, b"x"), head(5, b"another")));
        }
        for (identity, back, beside) in &sent {
            let caller = identity.at(hub.address);
            for wrong in [back, beside] {
                assert_eq!(
                    post(&caller, "/v1/heads".to_owned(), wrong.clone()).await,
                    said(409, "journal-went-back")
                );
            }
            let (other, _, _) = sent.iter().find(|(other, ..)| other.member != identity.member).unwrap();
            assert_eq!(
                other.at(hub.address).post("/v1/heads", back).await.unwrap().0,
                400,
                "another machine's head"
            );
        }
        let audit = postgres.sql("heads", "SELECT COUNT(*) FROM audit WHERE action = 'journal-went-back'");
        assert_eq!(audit, "6");
        let batch = crate::world::until("heads are anchored", async || {
            let anchored = postgres.sql("heads", "SELECT COUNT(*) FROM journal_head WHERE NOT is_anchored");
            (anchored == "0").then_some(())
        });
        batch.await;
        let batches: u64 = postgres.sql("heads", "SELECT COUNT(*) FROM head_batch").parse().unwrap();
        let (_, entries) = crate::log::read_log(&fleet, &hub, 3 + batches).await;
        let mut anchored = 0;
        for entry in &entries {
            let entry = bailiwick_fleet::entry::Entry::parse(entry).unwrap();
            if let bailiwick_fleet::entry::EntryBody::Heads(batch) = entry.body {
                let path = format!("/heads/{}", batch.sha256);
                let (status, bytes) =
                    fleet.stranger(hub.address).send("GET", &path, &[], Vec::new()).await.unwrap();
                assert_eq!(status, 200);
                anchored += bailiwick_fleet::entry::decode_heads(&batch, &bytes).unwrap().len();
            }
        }
        assert_eq!(anchored, 3);
    });
}
