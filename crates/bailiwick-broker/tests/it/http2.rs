//! HTTP/2 on either side: the same values put in and taken out, and the same refusals, whatever the frames are like.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Arc;

use bailiwick_testkit::tls::Identity;
use bytes::Bytes;
use h2::client::SendRequest;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::world::{Heard, OTHER, Setup, VALUE, World};

/// A server that speaks HTTP/2 alone, and answers with the body of what `respond` makes of a request.
pub(crate) fn serve(identity: Identity, respond: fn(&str) -> Vec<u8>) -> (SocketAddr, Heard) {
    let mut config = bailiwick_testkit::tls::server(identity);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (address, heard) = (listener.local_addr().unwrap(), Heard::default());
    let keep = Arc::clone(&heard);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, keep) = (acceptor.clone(), Arc::clone(&keep));
                tokio::spawn(async move {
                    let Ok(tls) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request| answer(request, Arc::clone(&keep), respond));
                    let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    builder.max_header_list_size(64 * 1024);
                    drop(builder.serve_connection(TokioIo::new(tls), service).await);
                });
            }
        });
    });
    (address, heard)
}

async fn answer(
    request: Request<Incoming>,
    keep: Heard,
    respond: fn(&str) -> Vec<u8>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().unwrap();
    let mut text =
        format!("{} {path} HTTP/2\r\n:authority: {}\r\n", parts.method, parts.uri.authority().unwrap());
    for (name, value) in &parts.headers {
        text += &format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes()));
    }
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    text += &format!("\r\n{}", String::from_utf8_lossy(&body));
    let raw = respond(&text);
    keep.lock().unwrap().push(text);
    let end = raw.windows(4).position(|four| four == b"\r\n\r\n").map_or(0, |end| end + 4);
    Ok(Response::new(Full::new(Bytes::copy_from_slice(&raw[end..]))))
}

/// `curl` through the allowlist, with the list of authorities of the inside.
fn curl(world: &World, options: &[&str], path: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("ca.pem");
    std::fs::write(&list, &world.bundle).unwrap();
    let token = format!("Authorization: Bearer {}", world.token());
    let output = Command::new("curl")
        .args(["-sS", "-m", "20", "-w", "\n%{http_version} %{http_code}", "-H", &token])
        .arg("--cacert")
        .arg(&list)
        .args(["--proxy", &format!("http://{}", world.front)])
        .args(options)
        .arg(format!("https://api.test:{}{path}", world.port))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn either_side_may_speak_either_version() {
    crate::trusting!("http2::either_side_may_speak_either_version");
    for is_http2 in [true, false] {
        let world = World::new(Setup { is_http2, ..Setup::default() });
        for (option, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
            let said = curl(&world, &[option], "/a?b=c");
            assert!(said.ends_with(&format!("\n{version} 200")), "{is_http2} {option}: {said}");
            assert!(!said.contains(VALUE) && said.contains("****"), "{said}");
            let heard = world.heard.lock().unwrap().pop().unwrap();
            assert!(heard.starts_with("GET /a?b=c HTTP/"), "{heard}");
            assert!(heard.contains(&format!("authorization: Bearer {VALUE}")), "{heard}");
            let host = format!("api.test:{}", world.port);
            let named =
                if is_http2 { format!(":authority: {host}\r\n") } else { format!("host: {host}\r\n") };
            assert!(heard.contains(&named) && heard.contains("accept-encoding: identity"), "{heard}");
            assert!(!is_http2 || !heard.contains("\r\nhost:"), "said once: {heard}");
        }
        assert!(world.was_told("with TOKEN"));
    }
}

#[test]
fn many_requests_of_one_connection_go_on_at_once() {
    crate::trusting!("http2::many_requests_of_one_connection_go_on_at_once");
    for is_http2 in [true, false] {
        let world = World::new(Setup { is_http2, ..Setup::default() });
        let said = curl(&world, &["--http2", "-Z", "--parallel-max", "30"], "/[1-60]");
        assert_eq!(said.matches("2 200").count(), 60, "{said}");
        assert!(!said.contains(VALUE), "{said}");
        let heard = world.heard.lock().unwrap();
        assert_eq!(heard.iter().filter(|request| request.contains(VALUE)).count(), 60);
    }
}

/// A connection of HTTP/2 to `api.test`, frame by frame.
async fn raw(world: &World) -> SendRequest<Bytes> {
    let mut stream = tokio::net::TcpStream::connect(world.front).await.unwrap();
    let ask = format!("CONNECT api.test:{0} HTTP/1.1\r\nHost: api.test:{0}\r\n\r\n", world.port);
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut said = Vec::new();
    while !said.ends_with(b"\r\n\r\n") {
        said.push(stream.read_u8().await.unwrap());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(world.roots().clone())
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::try_from("api.test").unwrap();
    let tls = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    assert_eq!(tls.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (sender, connection) = h2::client::handshake(tls).await.unwrap();
    tokio::spawn(connection);
    sender
}

/// Status and body, or why there is none.
async fn ask(
    sender: &SendRequest<Bytes>,
    request: Request<()>,
    body: &str,
    trailers: Option<HeaderMap>,
) -> String {
    let Ok(mut sender) = sender.clone().ready().await else { return "gone".to_owned() };
    let (response, mut stream) = match sender.send_request(request, false) {
        Ok(both) => both,
        Err(fault) => return format!("client: {fault}"),
    };
    let is_last = trailers.is_none();
    drop(stream.send_data(Bytes::copy_from_slice(body.as_bytes()), is_last));
    if let Some(trailers) = trailers {
        drop(stream.send_trailers(trailers));
    }
    let response = match response.await {
        Ok(response) => response,
        Err(fault) => return format!("refused: {fault}"),
    };
    let mut text = format!("{} {:?}", response.status().as_u16(), response.headers());
    let mut body = response.into_body();
    while let Some(Ok(piece)) = body.data().await {
        text += &String::from_utf8_lossy(&piece);
    }
    text
}

fn request(world: &World, fields: &[(&str, &str)]) -> Request<()> {
    let request = Request::builder().method("GET").uri(format!("https://api.test:{}/", world.port));
    fields.iter().fold(request, |request, (name, value)| request.header(*name, *value)).body(()).unwrap()
}

fn in_runtime(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

#[test]
fn names_and_frames_that_do_not_agree_are_refused() {
    crate::trusting!("http2::names_and_frames_that_do_not_agree_are_refused");
    let world = World::new(Setup { is_http2: true, ..Setup::default() });
    let (port, bearer) = (world.port, format!("Bearer {}", world.token()));
    let token = ("authorization", bearer.as_str());
    in_runtime(async {
        let sender = raw(&world).await;
        let host = format!("other.test:{port}");
        let to = |method: &str, uri: &str| {
            Request::builder().method(method).uri(uri).header("authorization", &bearer).body(()).unwrap()
        };
        for (what, asked) in [
            ("Host names another", request(&world, &[token, ("host", &host)])),
            (":authority names another", to("GET", &format!("https://other.test:{port}/"))),
            ("another port", to("GET", "https://api.test:1/")),
            (":scheme is http", to("GET", &format!("http://api.test:{port}/"))),
            ("a tunnel", to("CONNECT", "api.test:443")),
            ("a smuggled length", request(&world, &[token, ("content_length", "4")])),
            ("two lengths", request(&world, &[token, ("content-length", "1"), ("content-length", "2")])),
            ("a length that is wrong", request(&world, &[token, ("content-length", "9")])),
            ("HTTP/1 framing", request(&world, &[token, ("transfer-encoding", "chunked")])),
            (
                "HTTP/1 upgrade",
                request(&world, &[token, ("upgrade", "websocket"), ("connection", "upgrade")]),
            ),
        ] {
            let said = ask(&raw(&world).await, asked, "", None).await;
            assert!(!said.starts_with("200"), "{what}: {said}");
        }
        assert!(world.heard.lock().unwrap().is_empty(), "{:?}", world.heard.lock().unwrap());
        let said = ask(&sender, request(&world, &[token]), "", None).await;
        assert!(said.starts_with("200") && said.contains("****") && !said.contains(VALUE), "{said}");
    });
    world.heard.lock().unwrap().clear();
    world.assert_nothing_leaked();
}

#[test]
fn a_placeholder_is_found_in_whatever_frames_it_comes() {
    crate::trusting!("http2::a_placeholder_is_found_in_whatever_frames_it_comes");
    let world = World::new(Setup { is_http2: true, ..Setup::default() });
    let (token, other) = (world.token().to_owned(), world.other().to_owned());
    let bearer = format!("Bearer {token}");
    in_runtime(async {
        let sender = raw(&world).await;
        // Frames end in the middle of it: the head is longer than one frame may be.
        for length in [16_300, 16_320, 16_340, 16_360] {
            let long = "x".repeat(length);
            let fields = [("x-long", long.as_str()), ("x-other", token.as_str())];
            let said = ask(&sender, request(&world, &fields), "", None).await;
            assert!(said.starts_with("403") && said.contains("secret-misdirected"), "{length}: {said}");
            let fields = [("x-long", long.as_str()), ("authorization", bearer.as_str())];
            let said = ask(&sender, request(&world, &fields), "", None).await;
            assert!(said.starts_with("200") && !said.contains(VALUE), "{length}: {said}");
        }
        world.heard.lock().unwrap().clear();
        for fields in [
            [("cookie", token.as_str()), ("x-a", "b")],
            [("authorization", &format!("Bearer {other}")), ("x-a", "b")],
        ] {
            let said = ask(&sender, request(&world, &fields), "", None).await;
            assert!(!said.starts_with("200"), "{fields:?}: {said}");
        }
        let said = ask(&sender, request(&world, &[]), &format!("a body with {token}"), None).await;
        assert!(said.starts_with("403") && said.contains("secret-misdirected"), "{said}");
        // Trailers are no place for anything: they are not passed on.
        let mut trailers = HeaderMap::new();
        trailers.insert("authorization", bearer.parse().unwrap());
        let said = ask(&sender, request(&world, &[]), "a body", Some(trailers)).await;
        assert!(said.starts_with("200"), "{said}");
    });
    for secret in [VALUE, OTHER, &token, &other] {
        assert!(!world.heard.lock().unwrap().join("\n").contains(secret), "{secret}");
    }
}
