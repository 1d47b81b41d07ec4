//! Generated exchanges in every way to send a secret, with servers that repeat it in every form: no process inside has a
//! trace of a value in its memory, and there is none on its disk, in the journal or in what is logged.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};

use bailiwick_testkit::skip;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::Value;

use super::secrets::{VALUE, World, request, text};
use super::servers::{self, Authority, Seen};
use super::traces::{Traces, outside_and_inside};
use super::world::{Stage, in_world, test_name};
use super::{GOOD, WORLD};
use crate::escape::User;

const AWS: &str = "q9Zr/3xKQdv7Vb2Mh5WnTy8LpRs4HfJc6GaUe+1N";
const REFRESH: &str = "rt-Hn52Qd86Xc19Wv73Ks40Bz67";
const ACCESS: &str = "at-Zx81Kq04Vb77Lp29Tm63Rw58";
const VALUES: [&str; 4] = [VALUE, AWS, REFRESH, ACCESS];

/// How many exchanges each way has: in the ordinary run, and where everything is required.
const ORDINARY: usize = 72;
const LONG: usize = 10_000;
/// The ways of `exchanges.js`.
const WAYS: [&str; 9] = ["header", "field", "basic", "query", "form", "json", "websocket", "aws", "oauth"];
const FORMS: usize = 18;

const MANIFEST: &str = "
name = 't'
version = '1'
server_capabilities = [
  'env:inject:TOKEN?broker=good.test', 'env:inject:AWS_SECRET_ACCESS_KEY?broker=aws.test',
  'env:inject:REPORTS_TOKEN?broker=reports.test', 'exec:spawn:/usr/bin/node',
]
[secrets.TOKEN]
headers = ['X-Own']
query = ['key']
form = ['client_secret']
json = ['apiKey']
websocket = 'allow'
[secrets.AWS_SECRET_ACCESS_KEY]
sign = 'aws-sigv4'
";

const SETTINGS: &str = "
[secrets.REPORTS_TOKEN]
source = 'file:REFRESH'
[secrets.REPORTS_TOKEN.oauth]
token_url = 'https://login.test/token'
grant = 'refresh-token'
client_id = 'c'
";

fn each(text: &str, form: fn(u8) -> String) -> String {
    text.bytes().map(form).collect()
}

/// What a server says of what it heard, in one of the forms.
fn repeated(heard: &str, number: usize) -> String {
    let before = "x".repeat(number / FORMS % 7);
    match number % FORMS {
        0 => format!("{before}{heard}"),
        1 => each(heard, |byte| format!("{byte:02x}")),
        2 => each(heard, |byte| format!("{byte:02X}")),
        3 => each(heard, |byte| format!("%{byte:02X}")),
        4 => each(heard, |byte| format!("%{byte:02x}")),
        5 => each(heard, |byte| format!("\\u{byte:04x}")),
        6 => serde_json::to_string(heard).unwrap().replace('/', "\\/"),
        7..=9 => STANDARD.encode(format!("{}{heard}{before}", "y".repeat(number % FORMS - 7))),
        10..=12 => URL_SAFE.encode(format!("{}{heard}{before}", "y".repeat(number % FORMS - 10))),
        13 => STANDARD.encode(heard).replace('+', "%2B").replace('/', "%2f").replace('=', "%3D"),
        14 => STANDARD.encode(heard).replace('/', "\\/").replace('+', "\\u002b"),
        // Mixed: each byte in another spelling.
        15 => heard
            .bytes()
            .enumerate()
            .map(|(at, byte)| match at % 3 {
                0 => char::from(byte).to_string(),
                1 => format!("%{byte:02x}"),
                _ => format!("\\u{byte:04X}"),
            })
            .collect(),
        16 => format!("{heard}{heard}"),
        _ => String::new(),
    }
}

/// The number in a path such as `/17?a=b`.
fn number_of(head: &str) -> usize {
    let path = head.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
    path.split('?').next().unwrap_or_default().parse().unwrap_or(0)
}

/// The answer to a request: what was heard, with the secrets that this server knows, in pieces of some length.
fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let number = number_of(head);
    let known = if head.contains("aws.test") { AWS } else { REFRESH };
    let heard = format!("{head}{}{known}", text(body));
    if number % FORMS == FORMS - 1 {
        // In the head of the answer.
        let one = head.lines().find(|line| line.contains(VALUE) || line.contains(ACCESS)).unwrap_or(known);
        let one = one.replace('\r', "");
        return format!(
            "HTTP/1.1 200 {known}\r\nSet-Cookie: a={one}{known}\r\nLocation: https://evil.test/?{one}\r\n\
             X-Hex: {}\r\nContent-Length: 0\r\n\r\n",
            each(known, |byte| format!("{byte:02x}"))
        )
        .into_bytes();
    }
    let mut response = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    // Short pieces where that is quick enough: borders fall everywhere.
    let said = repeated(&heard, number).into_bytes();
    for piece in said.chunks(number % 61 + 3) {
        response.extend(format!("{:x}\r\n", piece.len()).into_bytes());
        response.extend_from_slice(piece);
        response.extend_from_slice(b"\r\n");
    }
    response.extend_from_slice(b"0\r\n\r\n");
    response
}

/// The rest of a frame: what it carries, and its kind. Whatever a client sends is short.
fn frame(from: &mut impl std::io::Read) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 2];
    from.read_exact(&mut head).ok()?;
    let mut length = usize::from(head[1] & 0x7f);
    if length == 126 {
        let mut long = [0; 2];
        from.read_exact(&mut long).ok()?;
        length = usize::from(u16::from_be_bytes(long));
    }
    let mut mask = [0; 4];
    from.read_exact(&mut mask).ok()?;
    let mut payload = vec![0; length];
    from.read_exact(&mut payload).ok()?;
    payload.iter_mut().enumerate().for_each(|(at, byte)| *byte ^= mask[at % 4]);
    Some((head[0], payload))
}

/// A WebSocket that repeats each message, in frames of some length.
fn websocket(stream: &mut (impl std::io::Read + std::io::Write), number: usize) -> Option<()> {
    let agreed = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n";
    stream.write_all(agreed.as_bytes()).ok()?;
    let mut message = Vec::new();
    while let Some((kind, payload)) = frame(stream) {
        if kind & 0x0f == 8 {
            return None;
        }
        message.extend(payload);
        if kind & 0x80 == 0 {
            continue;
        }
        let said = repeated(&text(&message), number % (FORMS - 1)).into_bytes();
        let pieces: Vec<&[u8]> = said.chunks(number % 61 + 3).collect();
        for (at, piece) in pieces.iter().enumerate() {
            let last = if at + 1 == pieces.len() { 0x80 } else { 0 };
            let kind = if at == 0 { 1 } else { 0 };
            stream.write_all(&[last | kind, u8::try_from(piece.len()).unwrap()]).ok()?;
            stream.write_all(piece).ok()?;
        }
        stream.flush().ok()?;
        message.clear();
    }
    None
}

/// Stands for every host; the OAuth service among them gives a token.
fn serve(authority: &Authority) -> Seen {
    let names = ["good.test", "aws.test", "reports.test", "login.test"];
    let config = std::sync::Arc::new(authority.server(&names));
    let seen = Seen::default();
    let keep = seen.clone();
    servers::serve(&format!("{GOOD}:443"), move |stream| {
        drop(stream.set_nodelay(true));
        let connection = rustls::ServerConnection::new(std::sync::Arc::clone(&config)).unwrap();
        let mut tls = rustls::StreamOwned::new(connection, stream);
        while let Some((head, body)) = request(&mut tls) {
            let has = VALUES.iter().any(|value| head.contains(value) || text(&body).contains(value));
            if has || head.contains("authorization: ") || head.contains("upgrade: websocket") {
                keep.add("");
            }
            if head.contains("upgrade: websocket") {
                let _ended = websocket(&mut tls, number_of(&head));
                return;
            }
            let response = if head.starts_with("POST /token ") {
                let token = format!(
                    "{{\"access_token\":\"{ACCESS}\",\"token_type\":\"Bearer\",\"expires_in\":36000}}"
                );
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{token}", token.len()).into_bytes()
            } else {
                answer(&head, &body)
            };
            if tls.write_all(&response).and_then(|()| tls.flush()).is_err() {
                return;
            }
        }
    });
    seen
}

/// A run whose client exchanges as often as this, and where it writes.
fn start(world: &World, stage: &Stage, count: usize, directory: &Path, journal: &Path) -> Child {
    std::fs::write(stage.path("own.pem"), &world.authority.pem).unwrap();
    std::fs::write(stage.path("m.toml"), MANIFEST).unwrap();
    std::fs::write(stage.path("refresh"), REFRESH).unwrap();
    std::fs::create_dir_all(stage.path(".config/bailiwick")).unwrap();
    let settings = SETTINGS.replace("REFRESH", &stage.path("refresh").display().to_string());
    std::fs::write(stage.path(".config/bailiwick/config.toml"), settings).unwrap();
    let kept = format!("--journal={}", journal.display());
    let manifest = stage.path("m.toml").display().to_string();
    let mut options = vec!["--manifest", &manifest, &kept, "--secret", "TOKEN=env:THE_VALUE"];
    options.extend(["--secret", "AWS_SECRET_ACCESS_KEY=env:THE_KEY"]);
    let hosts = ["aws.test", "reports.test", "login.test"].map(|name| format!("{name}={GOOD}"));
    hosts.iter().for_each(|host| options.extend(["--hosts", host]));
    let writable = format!("fs:read,write:{}/**", directory.display());
    let mut run = stage.run(&[&writable], &[&WORLD[1..], &options, &["--"]].concat());
    run.env("SSL_CERT_FILE", stage.path("own.pem")).env("THE_VALUE", VALUE).env("THE_KEY", AWS);
    run.args([
        "/usr/bin/bash",
        "-c",
        "/usr/bin/node -e \"$0\" \"$1\" \"$2\"; :",
        include_str!("exchanges.js"),
    ]);
    run.arg(count.to_string()).arg(directory);
    run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn no_exchange_leaves_a_trace_of_a_value_inside() {
    if !in_world(test_name!()) {
        return;
    }
    if !rustix::process::getuid().is_root() {
        return skip("only root can look into the memory of others");
    }
    let is_full = std::env::var_os("BAILIWICK_REQUIRE").is_some_and(|required| required == "all");
    let count = if is_full { LONG } else { ORDINARY };
    let authority = Authority::new();
    let good = serve(&authority);
    let (world, traces, stage) = (World { authority, good }, Traces::of(&VALUES), Stage::new(User::Root));
    let [directory, journal] = ["written", "journal"].map(|name| stage.directory(name));
    std::fs::set_permissions(&journal, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let mut child = start(&world, &stage, count, &directory, &journal);
    let (mut input, mut lines) =
        (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    let mut errors = child.stderr.take().unwrap();
    let log = std::thread::spawn(move || {
        let mut log = Vec::new();
        drop(errors.read_to_end(&mut log));
        log
    });
    for way in WAYS {
        let line = lines.next().and_then(Result::ok).unwrap_or_else(|| panic!("no answer to `{way}`"));
        let said: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(said["way"], way, "{line}");
        let done = if way == "websocket" { "101" } else { "200" };
        assert_eq!(said["statuses"][done], count, "every exchange went through: {line}");
        // The last form says nothing to a WebSocket; everywhere else something was covered.
        assert!(
            usize::try_from(said["covered"].as_u64().unwrap()).unwrap() >= count / FORMS * (FORMS - 2),
            "{line}"
        );
        let (outside, inside) = outside_and_inside(child.id());
        let found: Vec<(u32, usize)> = inside.iter().map(|pid| (*pid, traces.in_process(*pid))).collect();
        assert!(found.len() >= 3, "pid 1, the shell and node: {found:?}");
        assert!(found.iter().all(|(_, count)| *count == 0), "{way}: {found:?}");
        assert_eq!(traces.in_process(child.id()), 0, "{way}: nor has the supervisor");
        let holders: usize = outside.iter().map(|pid| traces.in_process(*pid)).sum();
        assert!(holders > 0, "the same look finds it where it is held");
        writeln!(input, "go on").unwrap();
    }
    drop(input);
    child.wait().unwrap();
    let log = log.join().unwrap();
    assert!(world.good.count() >= count * WAYS.len(), "{}: the server was given it", world.good.count());
    assert!(servers::files(&directory).len() == WAYS.len(), "what came was written");
    assert_eq!(traces.in_files(&directory), Vec::<String>::new());
    assert_eq!(traces.in_files(&journal), Vec::<String>::new());
    assert_eq!(traces.in_bytes(&log), 0, "{}", text(&log));
}

#[test]
fn a_trace_of_a_value_is_found_in_every_form() {
    for value in VALUES {
        let traces = Traces::of(&[value]);
        for number in 0..FORMS * 7 {
            // The mixture is a form of its own for each byte: it is looked for by what answers, not here.
            if !matches!(number % FORMS, 13..=15 | 17) {
                assert!(traces.in_bytes(repeated(value, number).as_bytes()) > 0, "{value} {number}");
            }
        }
        assert_eq!(traces.in_bytes(&b"0123456789abcdef".repeat(1000)), 0);
    }
}
