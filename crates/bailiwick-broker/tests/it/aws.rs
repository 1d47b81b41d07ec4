//! Requests that are signed for AWS, by AWS's own library for Python, against a server that checks signatures with it.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rcgen::KeyPair;

use crate::world::{Heard, Setup, VALUE, World, certificate};
use bailiwick_testkit::skip;

const SIGNS: &str = "[secrets.TOKEN]\nsign = 'aws-sigv4'\n";

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn script(name: &str) -> String {
    format!("{}/tests/it/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The Python that `scripts/test` installs packages for, or the system's.
fn python() -> Command {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let own = cache.map(|cache| cache.join("bailiwick/validators/bin/python")).filter(|own| own.exists());
    Command::new(own.unwrap_or_else(|| "python3".into()))
}

fn has_library() -> bool {
    let tried = python().args(["-c", "import boto3"]).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

/// The server, and what it said of each request.
fn server() -> (Server, SocketAddr, Heard) {
    let (chain, key) = certificate("api.test", true);
    let directory = tempfile::tempdir().unwrap();
    let (leaf, own) = (directory.path().join("leaf.pem"), directory.path().join("key.pem"));
    std::fs::write(&leaf, pem("CERTIFICATE", &chain[0])).unwrap();
    std::fs::write(&own, KeyPair::try_from(key.secret_der()).unwrap().serialize_pem()).unwrap();
    let mut child = python()
        .arg(script("aws_server.py"))
        .args([leaf, own])
        .arg(VALUE)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let port: u16 = lines.next().unwrap().unwrap().parse().unwrap();
    let heard: Heard = Arc::new(Mutex::default());
    let keep = Arc::clone(&heard);
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| keep.lock().unwrap().push(line)));
    (Server(child), ([127, 0, 0, 1], port).into(), heard)
}

fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: String =
        text.as_bytes().chunks(64).map(|line| format!("{}\n", String::from_utf8_lossy(line))).collect();
    format!("-----BEGIN {label}-----\n{lines}-----END {label}-----\n")
}

/// What the client says, with this secret access key.
fn client(world: &World, secret: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("ca.pem");
    std::fs::write(&list, &world.bundle).unwrap();
    let output = python()
        .arg(script("aws_client.py"))
        .arg(format!("https://api.test:{}", world.port))
        .arg(format!("http://{}", world.front))
        .envs([("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", secret)])
        .env("AWS_CA_BUNDLE", list)
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .output()
        .unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn what_is_signed_with_a_placeholder_is_signed_anew_with_the_value() {
    crate::trusting!("aws::what_is_signed_with_a_placeholder_is_signed_anew_with_the_value");
    if !has_library() {
        return skip("no `boto3`");
    }
    let (_server, address, heard) = server();
    let world = World::with_server(Setup { manifest: SIGNS, ..Setup::default() }, (address, heard));
    let said = client(&world, world.token());
    let heard = world.heard.lock().unwrap().clone();
    assert!(said.contains("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"), "{said} {heard:?}");
    assert!(heard.len() == 4 && heard.iter().all(|line| line.starts_with("good ")), "{said} {heard:?}");
    assert!(world.was_told("with TOKEN") && !said.contains(VALUE), "{said}");
    // The measure itself: a signature by anything else is refused by that server.
    world.heard.lock().unwrap().clear();
    let said = client(&world, "attackers-own-secret-key-0123456789abcdef");
    assert!(said.contains("403") || said.contains("Forbidden"), "{said}");
    assert!(world.heard.lock().unwrap().is_empty(), "not even sent");
    assert!(world.was_told("not signed in a way"));
}

#[test]
fn a_secret_that_signs_is_put_into_no_request() {
    crate::trusting!("aws::a_secret_that_signs_is_put_into_no_request");
    let world = World::new(Setup { manifest: SIGNS, ..Setup::default() });
    let token = world.token().to_owned();
    let scope = "Credential=AKID/20261118/eu/s3/aws4_request";
    let date = "X-Amz-Date: 20261118T000000Z".to_owned();
    for (fields, code) in [
        (vec![format!("Authorization: Bearer {token}")], "secret-misdirected"),
        (vec![format!("Authorization: Bearer {}", "x".repeat(40))], "secret-foreign"),
        (
            vec![
                format!(
                    "Authorization: AWS4-HMAC-SHA256 {scope}, SignedHeaders=host;x-amz-date, Signature={token}"
                ),
                date.clone(),
            ],
            "secret-signing",
        ),
        (
            vec![
                format!("Authorization: AWS4-HMAC-SHA256 {scope}, SignedHeaders=x-amz-date, Signature=00"),
                date.clone(),
            ],
            "secret-signing",
        ),
        (
            vec![
                format!(
                    "Authorization: AWS4-HMAC-SHA256 {scope}, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=00"
                ),
                date,
                "X-Amz-Content-SHA256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD".to_owned(),
            ],
            "secret-signing",
        ),
    ] {
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let answer = world.ask("GET /", &fields, "");
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains(code), "{fields:?}: {answer}");
    }
    assert!(world.heard.lock().unwrap().is_empty());
}
