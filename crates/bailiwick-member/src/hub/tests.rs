//! Hubs that answer as a script says, on the loopback interface.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use super::*;

/// A hub that gives these answers, one to each request, and tells what it was asked.
pub(crate) fn scripted(answers: Vec<(u16, Value)>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let (tell, asked) = channel();
    std::thread::spawn(move || {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            drop(tell.send(request(&mut stream)));
            let body = body.to_string();
            let head =
                format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).unwrap();
        }
    });
    (format!("http://{address}"), asked)
}

fn request(stream: &mut std::net::TcpStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    let length = loop {
        stream.read_exact(&mut byte).unwrap();
        text.push(byte[0]);
        if text.ends_with(b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&text).to_lowercase();
            break head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
                .unwrap_or(0);
        }
    };
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    String::from_utf8([text, body].concat()).unwrap()
}

/// An address where nothing listens.
fn gone() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// A hub that hangs up on all requests.
fn broken() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            request(&mut stream.unwrap());
        }
    });
    format!("http://{address}")
}

pub(crate) fn hub_at(urls: &[String]) -> Hub {
    // No server of these shows a certificate; the host's roots may be none.
    let authority = rcgen::generate_simple_self_signed(["x".to_owned()]).unwrap().cert.pem();
    Hub::at(urls, &OwnTls { authorities: Some(authority.as_bytes()), identity: None }).unwrap()
}

pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn the_next_hub_is_asked_where_one_does_not_answer() {
    let refusal = json!({ "code": "database-down", "message": "x" });
    let (down, asked) = scripted(vec![(503, refusal)]);
    let (up, answered) = scripted(vec![(200, json!(1)), (200, json!(2))]);
    let hub = hub_at(&[gone(), broken(), down, up]);
    let first: u64 = run(hub.post_once("/v1/entries", "an-id", &json!({}))).unwrap();
    assert_eq!(first, 1);
    for request in [asked.recv().unwrap(), answered.recv().unwrap()] {
        assert!(request.contains("idempotency-key: an-id\r\n"), "both get the same id: {request}");
    }
    let second: u64 = run(hub.get("/v1/budgets")).unwrap();
    assert_eq!(second, 2, "the one that answered is asked first");
}

#[test]
fn what_has_no_id_is_sent_to_one_hub_alone() {
    let (up, _) = scripted(vec![(200, json!(1))]);
    let sent = run(hub_at(&[broken(), up.clone()]).post_unrepeated::<u64>("/v1/tokens", &json!({})));
    assert!(matches!(sent, Err(HubError::Unreachable(_))), "{sent:?}");
    assert_eq!(run(hub_at(&[gone(), up]).post_unrepeated::<u64>("/v1/tokens", &json!({}))).unwrap(), 1);
}

#[test]
fn a_refusal_is_final_and_shown_plainly() {
    let (up, _) = scripted(vec![(403, json!({ "code": "role", "message": "x\u{1b}[2Jy" }))]);
    let error = run(hub_at(&[up, gone()]).get::<Value>("/v1/members")).unwrap_err();
    assert_eq!((error.code(), error.is_final()), (Some("role"), true));
    assert!(!error.to_string().contains('\u{1b}'), "{error:?}");
    let unreachable = run(hub_at(&[gone()]).get::<Value>("/v1/members")).unwrap_err();
    assert!(!unreachable.is_final() && unreachable.to_string().contains("no hub of the fleet answers"));
}

#[test]
fn what_is_no_answer_of_a_hub_is_none() {
    let (up, _) = scripted(vec![(200, json!("text")), (404, json!("x"))]);
    let hub = hub_at(&[up]);
    assert!(matches!(run(hub.get::<u64>("/v1/x")), Err(HubError::Unusable(..))));
    assert!(matches!(run(hub.get::<u64>("/v1/x")), Err(HubError::Unusable(..))));
    let urls = ["http://hub.example".to_owned()];
    assert!(matches!(Hub::at(&urls, &OwnTls::default()), Err(HubSetupError::Url(_))), "not encrypted");
}
