//! Who comes in, and who does not.

use serde_json::json;

use crate::{Room, get, post, raw};

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_open_and_strict_and_nothing_else_is() {
    let room = Room::new().await;
    for path in ["/", "/app.js", "/style.css", "/icon.svg"] {
        let heard = get(&room.at, path).await;
        assert_eq!(heard.status, 200, "{path}");
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' \
             data:; require-trusted-types-for 'script'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(heard.head.contains(header), "{path} has no `{header}`:\n{}", heard.head);
        }
        assert!(
            !heard.head.contains("access-control-") && !heard.head.contains("set-cookie"),
            "{}",
            heard.head
        );
        assert!(!heard.body.contains(&room.code));
    }
    for path in [
        "/api/state",
        "/api/events",
        "/api/sessions",
        "/api/export",
        "/other",
        "/..%2fkey",
        "/app.js/../../key",
        "//",
    ] {
        assert_eq!(get(&room.at, path).await.status, 401, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_lets_one_page_in_once() {
    let room = Room::new().await;
    assert_eq!(post(&room.at, "/enter", "guess").await.status, 403);
    let code = room.code.clone();
    let room = room.entered().await;
    assert_eq!(get(&room.at, "/api/state").await.status, 200);
    assert_eq!(post(&room.at, "/enter", &code).await.status, 403, "it was used");
    let huge = "x".repeat(5000);
    assert_eq!(post(&room.at, "/enter", &huge).await.status, 413);
    assert_eq!(get(&room.at, "/enter").await.status, 405);
}

/// A request as a page of the console sends it, but for one line of its head.
fn other(room: &Room, host: &str, more: &str) -> String {
    format!(
        "POST /api/answer HTTP/1.1\r\nHost: {host}\r\n{more}Authorization: Bearer {}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}",
        room.at.token
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_others_stay_outside_even_with_the_token() {
    let room = Room::new().await.entered().await;
    let here = format!("127.0.0.1:{}", room.at.port);
    let right = format!("Origin: http://{here}\r\n");
    assert_eq!(
        raw(&room.at, other(&room, &here, &right).as_bytes()).await.status,
        400,
        "the control: it is let in"
    );
    let other_port = format!("Origin: http://127.0.0.1:{}\r\n", room.at.port.wrapping_add(1));
    for origin in [
        &*other_port,
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        &format!("Origin: http://localhost:{}\r\n", room.at.port),
        &format!("Origin: https://{here}\r\n"),
        &format!("Origin: http://{here}\r\nOrigin: http://evil.example\r\n"),
        "",
    ] {
        assert_eq!(raw(&room.at, other(&room, &here, origin).as_bytes()).await.status, 403, "{origin}");
    }
    // A name that was bound to 127.0.0.1 after the page was loaded, and other names of this interface.
    for host in [
        "rebound.example",
        &format!("rebound.example:{}", room.at.port),
        &format!("localhost:{}", room.at.port),
        "",
    ] {
        assert_eq!(raw(&room.at, other(&room, host, &right).as_bytes()).await.status, 403, "{host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_and_a_huge_body_are_refused() {
    let mut room = Room::new().await.entered().await;
    let right = std::mem::replace(&mut room.at.token, "0".repeat(64));
    for path in ["/api/state", "/api/export"] {
        assert_eq!(get(&room.at, path).await.status, 401, "{path}");
    }
    assert_eq!(post(&room.at, "/api/stream", "{\"cursor\":{}}").await.status, 401);
    room.at.token = right;
    let announced = format!(
        "POST /api/answer HTTP/1.1\r\nHost: 127.0.0.1:{0}\r\nOrigin: http://127.0.0.1:{0}\r\nAuthorization: Bearer {1}\r\n\
         Content-Length: 99999999\r\n\r\n",
        room.at.port, room.at.token
    );
    assert_eq!(raw(&room.at, announced.as_bytes()).await.status, 413);
    for wrong in ["", "[]", "{\"cursor\":7}", "{\"cursor\":{\"../x\":[0,0,0]}}"] {
        assert_eq!(post(&room.at, "/api/stream", wrong).await.status, 400, "{wrong}");
    }
    assert_eq!(get(&room.at, "/api/export?session=../key").await.status, 400);
    assert_eq!(get(&room.at, "/api/../key").await.status, 404, "a path is a name in a table");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_not_changed_is_not_sent_again() {
    let room = Room::new().await.entered().await;
    let heard = get(&room.at, "/api/state").await;
    assert_eq!(heard.json()["pins"]["fault"], "the pins are damaged", "what cannot be read is said");
    let tag = heard.head.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a tag").to_owned();
    let again = format!(
        "GET /api/state HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nIf-None-Match: {tag}\r\nConnection: close\r\n\r\n",
        room.at.port, room.at.token
    );
    assert_eq!(raw(&room.at, again.as_bytes()).await.status, 304);
    room.wait_for("t", "{}", false);
    assert_eq!(raw(&room.at, again.as_bytes()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_for_what_was_shown_and_given_once() {
    let room = Room::new().await.entered().await;
    let (id, digest) = room.wait_for("server/tool", "{\"a\":1}", true);
    let (other, other_digest) = room.wait_for("hook", "{}", false);
    let said = |id: &str, digest: &str, answer: &str| {
        json!({ "id": id, "digest": digest, "answer": answer, "note": " fine " }).to_string()
    };
    let wrong = post(&room.at, "/api/answer", &said(&id, &other_digest, "once")).await;
    assert_eq!((wrong.status, &*wrong.error()), (409, "this was answered elsewhere, or is over"));
    let hook = post(&room.at, "/api/answer", &said(&other, &other_digest, "session")).await;
    assert_eq!(hook.status, 409, "it belongs to no session");
    assert_eq!(post(&room.at, "/api/answer", &said(&id, &digest, "whenever")).await.status, 400);
    let yes = post(&room.at, "/api/answer", &said(&id, &digest, "session")).await;
    assert_eq!(yes.json()["answered"], "approved-for-session");
    let again = post(&room.at, "/api/answer", &said(&id, &digest, "deny")).await;
    assert_eq!(again.status, 409, "answered elsewhere");
    assert_eq!(post(&room.at, "/api/answer", &said(&other, &other_digest, "deny")).await.status, 200);
    let done = room.done.lock().unwrap();
    let codes: Vec<_> = done.recorded.iter().map(|event| event.code().unwrap().to_owned()).collect();
    assert_eq!(codes, ["approved-for-session", "denied"]);
    assert!(done.recorded[0].reason().unwrap().ends_with(": fine"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_is_shown_written_and_taken_back_once() {
    let room = Room::new().await.entered().await;
    let (id, digest) = room.wait_for("server/tool", "{\"a\":1}", true);
    let state = get(&room.at, "/api/state").await.json();
    assert_eq!(state["waiting"]["all"][0]["rule"][0], "always allow server/tool");
    let body = json!({ "id": id, "digest": digest, "answer": "always" }).to_string();
    assert_eq!(post(&room.at, "/api/answer", &body).await.json()["answered"], "approved-always");
    let state = get(&room.at, "/api/state").await.json();
    assert_eq!((&state["waiting"]["all"], &state["waiting"]["rules"][0]["id"]), (&json!([]), &json!(id)));
    let body = json!({ "id": id }).to_string();
    assert_eq!(post(&room.at, "/api/take-back", &body).await.json()["taken_back"], json!(id));
    assert_eq!(post(&room.at, "/api/take-back", &body).await.status, 409, "there is none any more");
    let done = room.done.lock().unwrap();
    let codes: Vec<_> = done.recorded.iter().map(|event| event.code().unwrap().to_owned()).collect();
    assert_eq!(codes, ["approved-always", "rule-taken-back"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_that_watches_changes_nothing() {
    let room = Room::watching().await.entered().await;
    let (id, digest) = room.wait_for("t", "{}", false);
    let state = get(&room.at, "/api/state").await.json();
    assert_eq!((&state["watches_only"], &state["waiting"]["all"][0]["id"]), (&json!(true), &json!(id)));
    let body = json!({ "id": id, "digest": digest, "answer": "once" }).to_string();
    for path in ["/api/answer", "/api/take-back", "/api/pins/accept", "/api/grant/apply", "/api/grant/undo"] {
        assert_eq!(post(&room.at, path, &body).await.status, 403, "{path}");
    }
    assert!(room.done.lock().unwrap().recorded.is_empty());
}
