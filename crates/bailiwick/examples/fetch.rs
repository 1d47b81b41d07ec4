//! `web_fetch` under an allowlist of one host. A page of that host is read; another host is refused before anything is
//! sent.
//!
//! The host is a server of this program on loopback, so that the example runs without a network.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use bailiwick::{Caveats, CountBound, Outcome, PendingCall, Scope, registry};
use serde_json::json;

/// Answers every connection with one page.
fn serve_page() -> std::io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let body = "<!doctype html><title>Notes</title><h1>Notes</h1><p>Water the plants.</p>";
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n";
            drop(stream.read(&mut [0; 4096]));
            drop(write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()));
        }
    });
    Ok(port)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = serve_page()?;
    let registry = registry();
    let granted = Caveats {
        // A private address must be named: `all` would not include it.
        net: Scope::only([format!("127.0.0.1:{port}")]),
        max_calls: CountBound::AtMost(5),
        ..Caveats::top()
    };
    let page = json!({ "url": format!("http://127.0.0.1:{port}/") });
    let out = registry.dispatch("web_fetch", page, &granted).await?;
    println!("{}", out["markdown"]);
    assert!(out["markdown"].as_str().is_some_and(|text| text.contains("Water the plants.")), "{out}");

    let grant = registry.mint_grant(&granted)?;
    let elsewhere = PendingCall::new("web_fetch", json!({ "url": "https://not-allowed.test/" }), &grant);
    match registry.run(elsewhere).await? {
        Outcome::Ran(output) => return Err(format!("it was fetched: {output}").into()),
        Outcome::Refused(denial) => {
            println!("{denial}");
            assert_eq!(denial.code().as_str(), "net-not-granted");
        }
    }
    Ok(())
}
