//! The page of the fleet: who gets it, requests of foreign pages, and the page in a real browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use bailiwick_fleet::entry::Role;
use bailiwick_testkit::skip;
use serde_json::{Value, json};

use crate::world::{Caller, Fleet, Identity, RunningHub, new_id, run};
use bailiwick_testkit::postgres::Postgres;

const HOSTILE: &str = "<img src=x onerror=\"window.canary=1\">\u{202e}gnp";

/// A machine that has reported all it can, with two calls that wait; their ids.
async fn busy_machine(fleet: &Fleet, hub: &RunningHub) -> (Identity, [String; 2]) {
    let machine = fleet.member(hub, Role::Machine).await;
    let caller = machine.at(hub.address);
    let digest = "0".repeat(64);
    let inventory = json!({"time_ms": 1, "version": "0.1.0", "log_size": 1, "log_root": digest,
        "servers": [{"server": "notes-server", "enforcement": {"files": "kernel"}, "running": true}]});
    assert_eq!(caller.post("/v1/inventory", &inventory).await.unwrap().0, 204);
    let head = json!({"machine": machine.member, "session": "one-session", "seq": 7, "hash": digest, "key": digest, "time_ms": 1});
    assert_eq!(caller.post("/v1/heads", &json!({"heads": [head]})).await.unwrap().0, 204);
    let ids = [new_id(), new_id()];
    for id in &ids {
        let call = json!({"id": id, "server": "notes-server", "tool": "write_note", "arguments": {"text": HOSTILE}, "arguments_sha256": digest,
            "pins": digest, "policy": digest, "reason": HOSTILE, "ttl_s": 600});
        let (status, said) = caller.post("/v1/approvals", &call).await.unwrap();
        assert_eq!(status, 200, "{said}");
    }
    (machine, ids)
}

async fn status_of(caller: &Caller, path: &str) -> u16 {
    caller.send("GET", path, &[], Vec::new()).await.unwrap().0
}

#[test]
fn the_page_is_for_people_of_the_fleet_alone() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let hub = fleet.hub(&postgres.create("page"), "log").await;
        let (machine, _) = busy_machine(&fleet, &hub).await;
        let approver = fleet.member(&hub, Role::Approver).await.at(hub.address);
        let callers = [(fleet.stranger(hub.address), 401), (machine.at(hub.address), 403), (approver, 200)];
        for (caller, expected) in callers {
            for path in [
                "/",
                "/fleet.js",
                "/dom.js",
                "/style.css",
                "/icon.svg",
                "/v1/me",
                "/v1/entries",
                "/v1/members",
            ] {
                assert_eq!(status_of(&caller, path).await, expected, "{path}");
            }
            let heads = status_of(&caller, "/v1/heads").await;
            assert_eq!(heads == 200, expected == 200, "{heads}");
        }
    });
}

#[test]
fn a_page_of_another_origin_cannot_use_the_certificate() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let hub = fleet.hub(&postgres.create("origin"), "log").await;
        let (_, ids) = busy_machine(&fleet, &hub).await;
        let approver = fleet.member(&hub, Role::Approver).await.at(hub.address);
        let answer = json!({"allow": true, "arguments_sha256": "0".repeat(64)});
        let post = async |id: &str, headers: &[(&str, &str)]| {
            let path = format!("/v1/approvals/{id}/answer");
            approver.post_with(&path, headers, &answer).await.unwrap()
        };
        for headers in [
            [("origin", "https://evil.example"), ("content-type", "text/plain")],
            [("origin", "null"), ("content-type", "application/json")],
            [("sec-fetch-site", "cross-site"), ("content-type", "text/plain")],
        ] {
            let (status, said) = post(&ids[0], &headers).await;
            assert_eq!((status, &said["code"]), (403, &Value::from("foreign-origin")), "{headers:?}");
        }
        // The same without a foreign origin, and with the own one: the check can pass.
        assert_eq!(post(&ids[0], &[]).await.0, 200);
        assert_eq!(post(&ids[1], &[("origin", "https://localhost")]).await.0, 200);
    });
}

fn has_browser() -> bool {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let driver = cache.map(|cache| cache.join("bailiwick/console/node_modules/playwright-core"));
    Path::new("/usr/bin/chromium").exists() && driver.is_some_and(|driver| driver.is_dir())
}

#[test]
fn the_page_shows_and_decides_in_a_real_browser() {
    let Some(postgres) = Postgres::start() else { return };
    if !has_browser() {
        return skip("chromium or playwright-core is not installed; scripts/test does it");
    }
    run(async {
        let fleet = Fleet::new();
        let hub = fleet.hub(&postgres.create("browser"), "log").await;
        let (machine, ids) = busy_machine(&fleet, &hub).await;
        let admin = fleet.member(&hub, Role::Admin).await;
        let (certificate, key) = (fleet.path("admin.pem"), fleet.path("admin.key"));
        std::fs::write(&certificate, &admin.certificate).unwrap();
        std::fs::write(&key, &admin.key).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/console/fleet.mjs");
        let origin = format!("https://localhost:{}", hub.address.port());
        let mut browser = Command::new("node");
        browser.arg(script).arg(origin).arg(certificate).arg(key);
        let output = tokio::task::spawn_blocking(move || browser.output().unwrap()).await.unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let mut answers = Vec::new();
        for id in &ids {
            let (_, standing) = machine.at(hub.address).get(&format!("/v1/approvals/{id}")).await.unwrap();
            answers.push(standing["status"].as_str().unwrap().to_owned());
        }
        answers.sort_unstable();
        assert_eq!(answers, ["allowed", "denied"]);
        let remark = postgres.sql("browser", "SELECT remark FROM approval WHERE remark IS NOT NULL");
        assert_eq!(remark, "seen by me");
    });
}
