//! The front for sandboxes that are not in a namespace of ours: an HTTP proxy on the same decision.
//!
//! `CONNECT` opens a tunnel in which the first words are checked as everywhere; a request with an absolute URL is
//! passed on to its host, one to a connection. The client has to be told of the proxy, and nothing but the sandbox
//! keeps it from going around it.

use std::sync::Arc;

use bailiwick_policy::net::Host;
use tokio::time::timeout;

use crate::code::Code;
use crate::decide::{Refusal, Target};
use crate::event::{EgressOutcome, Event};
use crate::http::{self, MAX_HEAD};
use crate::relay::accept_all;
use crate::session::{End, Opening, Session, forbidden};
use crate::stream::{Source, Stream};

const OPEN: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
/// Fields between the client and us, of no concern to the server.
const OURS: [&str; 5] = ["connection", "proxy-connection", "proxy-authorization", "keep-alive", "te"];

/// Serves the proxy.
pub(crate) async fn serve(session: Arc<Session>, source: Source) {
    let one = |client: Stream| {
        let session = Arc::clone(&session);
        async move {
            let Some(_place) = session.admit() else { return };
            match timeout(session.limits.hello, asked(&client)).await {
                Ok(Ok((target, opening))) => session.relay_client(client, target, opening).await,
                Ok(Err(End::Refused(refusal))) => refuse(&session, &client, refusal).await,
                Ok(Err(End::Gone)) | Err(_) => {}
            }
        }
    };
    accept_all(source, one).await;
}

async fn refuse(session: &Session, client: &Stream, refusal: Refusal) {
    session.tell(Event::new("*", None, EgressOutcome::Refused(refusal.clone())));
    let nobody = Target::new(Host::Name("*".into()), 0);
    drop(client.write_all(&forbidden(&nobody, &refusal)).await);
}

/// Reads what the client asks of the proxy.
async fn asked(client: &Stream) -> Result<(Target, Opening), End> {
    let mut said = Vec::new();
    let mut piece = vec![0; 4096];
    loop {
        let length = client.read(&mut piece).await?;
        if length == 0 {
            return Err(End::Gone);
        }
        said.extend_from_slice(piece.get(..length).unwrap_or_default());
        if let Some((length, ask)) = http::read(&said, Ask::from_request)? {
            let rest = said.get(length..).unwrap_or_default();
            return Ok(match ask {
                Ask::Tunnel(target) => (target, Opening { greeting: OPEN, said: rest.to_vec() }),
                Ask::Forward(target, head) => {
                    (target, Opening { greeting: &[], said: [&head, rest].concat() })
                }
            });
        }
        if said.len() >= MAX_HEAD {
            return Err(Code::HttpUnreadable.into());
        }
    }
}

enum Ask {
    Tunnel(Target),
    Forward(Target, Vec<u8>),
}

impl Ask {
    fn from_request(request: &httparse::Request<'_, '_>) -> Result<Self, Code> {
        let (Some(method), Some(target)) = (request.method, request.path) else {
            return Err(Code::HttpUnreadable);
        };
        if method == "CONNECT" {
            let (host, port) = http::authority(target)?;
            return Ok(Self::Tunnel(Target::new(host, port.ok_or(Code::HttpUnreadable)?)));
        }
        let (method, target) = http::line(request)?;
        let (authority, path) = http::absolute(target).ok_or(Code::HttpUnreadable)?;
        let (host, port) = http::authority(authority)?;
        Ok(Self::Forward(Target::new(host, port.unwrap_or(80)), head(request, method, path)))
    }
}

/// The head for the server. It is told to close, since the client's next request may be for another host.
fn head(request: &httparse::Request<'_, '_>, method: &str, path: &str) -> Vec<u8> {
    let minor = request.version.unwrap_or(1);
    let mut head = format!("{method} {path} HTTP/1.{minor}\r\n").into_bytes();
    for field in request.headers.iter() {
        if OURS.iter().any(|ours| field.name.eq_ignore_ascii_case(ours)) {
            continue;
        }
        head.extend_from_slice(field.name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(field.value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"Connection: close\r\n\r\n");
    head
}
