//! Enrolment and roles: what a token makes, and what is refused without a certificate, with another's, and after a revocation.

use bailiwick_fleet::entry::{EntryBody, Revocation, Role, Target};
use bailiwick_hub::members::TokenWish;
use bailiwick_hub::service;
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, SanType};
use serde_json::json;

use crate::world::{Caller, Fleet, Identity, RunningHub, new_id, run};
use bailiwick_testkit::postgres::Postgres;

async fn token(hub: &RunningHub, role: Role, ttl_s: u64) -> String {
    let wish = TokenWish { role, labels: Default::default(), ttl_s };
    service::token_text(&hub.hub, "operator", &wish).await.unwrap()
}

fn revoke(machine: &str) -> EntryBody {
    let target = Target::Machine { machine: machine.to_owned() };
    EntryBody::Revocation(Revocation { id: new_id(), target, reason: "lost".to_owned() })
}

#[test]
fn a_token_makes_one_member_and_a_lost_answer_can_be_asked_for_again() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let hub = fleet.hub(&postgres.create("tokens"), "log").await;
        let text = token(&hub, Role::Machine, 600).await;
        let key = KeyPair::generate().unwrap();
        let first = fleet.enrol_with(hub.address, &text, "m", &key).await.unwrap();
        let again = fleet.enrol_with(hub.address, &text, "m", &key).await.unwrap();
        assert_eq!(first.member, again.member);
        let stolen = fleet.enrol(hub.address, &text, "thief").await;
        assert_eq!(stolen.err().unwrap().0, 403);
        let brief = token(&hub, Role::Machine, 1).await;
        tokio::time::sleep(std::time::Duration::from_millis(1300)).await;
        assert_eq!(fleet.enrol(hub.address, &brief, "late").await.err().unwrap().0, 403);
        let stored = postgres.sql("tokens", "SELECT encode(hash, 'hex') FROM enrol_token");
        let secret = bailiwick_fleet::protocol::EnrolToken::parse(&text).unwrap().secret;
        assert!(!stored.contains(&secret.to_string()), "the secret is not stored");
    });
}

#[test]
fn a_role_is_needed_and_only_a_members_own_certificate_shows_it() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let hub = fleet.hub(&postgres.create("roles"), "log").await;
        let machine = fleet.member(&hub, Role::Machine).await;
        let approver = fleet.member(&hub, Role::Approver).await;
        let admin = fleet.member(&hub, Role::Admin).await;
        let stranger = fleet.stranger(hub.address);
        for path in ["/v1/approvals", "/v1/members", "/v1/budgets", "/v1/audit", "/v1/nothing"] {
            assert_eq!(stranger.get(path).await.unwrap().0, 401, "{path} without a certificate");
        }
        assert_eq!(machine.at(hub.address).get("/v1/members").await.unwrap().0, 403);
        assert_eq!(approver.at(hub.address).get("/v1/members").await.unwrap().0, 200, "the control");
        let wish = json!({"role": "admin", "ttl_s": 60});
        assert_eq!(approver.at(hub.address).post("/v1/tokens", &wish).await.unwrap().0, 403);
        assert_eq!(admin.at(hub.address).post("/v1/tokens", &wish).await.unwrap().0, 200, "the control");
        let answer = json!({"allow": true, "arguments_sha256": "0".repeat(64)});
        let path = format!("/v1/approvals/{}/answer", new_id());
        assert_eq!(
            machine.at(hub.address).post(&path, &answer).await.unwrap().0,
            404,
            "a machine has no such route"
        );
        assert_eq!(approver.at(hub.address).post(&path, &answer).await.unwrap().0, 404, "no such approval");

        // Another authority that says it is this machine; and this machine's name with another key.
        let forged = forge(&fleet, &machine, None);
        assert!(forged.at(hub.address).get("/v1/members").await.is_err(), "the handshake ends");
        let other_key = forge(&fleet, &approver, Some(&fleet));
        assert_eq!(other_key.at(hub.address).get("/v1/members").await.unwrap().0, 403);
        let host = approver
            .at(hub.address)
            .send("GET", "/v1/members", &[("host", "evil.example")], Vec::new())
            .await
            .unwrap();
        assert_eq!(host.0, 421);
    });
}

/// A certificate with the SPIFFE id of a member, of another authority or of the fleet's own, and another key.
fn forge(fleet: &Fleet, member: &Identity, signer: Option<&Fleet>) -> Identity {
    let key = KeyPair::generate().unwrap();
    let role = if signer.is_some() { "approver" } else { "machine" };
    let subject = fleet.keys.authority.subject(role, &member.member);
    let certificate = match signer {
        Some(fleet) => {
            let csr = CertificateParams::default().serialize_request(&key).unwrap().pem().unwrap();
            let requested = bailiwick_hub::certificates::RequestedKey::read(&csr).unwrap();
            fleet.keys.authority.member(&subject, &requested).unwrap().0
        }
        None => {
            let mut params = CertificateParams::default();
            params.subject_alt_names = vec![SanType::URI(subject.as_str().try_into().unwrap())];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            params.self_signed(&key).unwrap().pem()
        }
    };
    Identity { certificate, key: key.serialize_pem(), ..member.clone() }
}

#[test]
fn a_revoked_machine_is_cut_off_in_the_transaction_of_the_entry() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let url = postgres.create("revoked");
        let (hub, other) = (fleet.hub(&url, "log-1").await, fleet.hub(&url, "log-2").await);
        let (machine, admin) =
            (fleet.member(&hub, Role::Machine).await, fleet.member(&hub, Role::Admin).await);
        let report = json!({"heads": []});
        assert_eq!(machine.at(other.address).post("/v1/heads", &report).await.unwrap().0, 204, "the control");
        let (status, said) = admin.at(hub.address).append(&new_id(), &revoke(&machine.member)).await.unwrap();
        assert_eq!(status, 200, "{said}");
        for address in [hub.address, other.address] {
            let (status, body) = machine.at(address).post("/v1/heads", &report).await.unwrap();
            assert_eq!((status, body["code"].as_str()), (403, Some("revoked")));
        }
        let (_, entries) = crate::log::read_log(&fleet, &other, 3).await;
        let last = bailiwick_fleet::entry::Entry::parse(entries.last().unwrap()).unwrap();
        assert!(matches!(last.body, EntryBody::Revocation(_)));
    });
}

#[test]
fn the_hub_answers_503_and_serves_the_log_while_the_database_is_down() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let hub = fleet.hub(&postgres.create("down"), "log").await;
        let admin = fleet.member(&hub, Role::Admin).await;
        crate::log::read_log(&fleet, &hub, 1).await;
        postgres.stop_at_once();
        let caller: Caller = admin.at(hub.address);
        let (status, body) = caller.get("/v1/budgets").await.unwrap();
        assert_eq!((status, body["code"].as_str()), (503, Some("database-down")));
        let stranger = fleet.stranger(hub.address);
        assert_eq!(stranger.send("GET", "/checkpoint", &[], Vec::new()).await.unwrap().0, 200);
        assert_eq!(stranger.send("GET", "/tile/entries/000.p/1", &[], Vec::new()).await.unwrap().0, 200);
        postgres.start_again();
        let (status, _) = caller.get("/v1/budgets").await.unwrap();
        assert_eq!(status, 200, "it goes on by itself");
    });
}
