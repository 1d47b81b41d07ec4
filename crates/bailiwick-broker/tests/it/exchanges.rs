//! Generated exchanges with a server that repeats what it was sent, in every listed form and around other text: nothing
//! of a value comes back.

use std::collections::HashSet;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use crate::world::{Setup, VALUE, World, read_message};

/// How many forms a value comes back in.
const FORMS: usize = 14;
/// How many exchanges each of them has in the ordinary run, and in the long one.
const ORDINARY: usize = 30;
const LONG: usize = 10_000;

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("\\u{byte:04x}")).collect()
}

/// The server: repeats the value of `authorization` in the form that the path asks for, behind as many bytes, in pieces.
fn repeat(request: &str) -> Vec<u8> {
    let value =
        request.lines().find_map(|line| line.strip_prefix("authorization: Bearer ")).unwrap_or_default();
    let path = request.split(' ').nth(1).unwrap_or_default();
    let number: usize = path.trim_start_matches('/').parse().unwrap_or(0);
    let before = "x".repeat(number / FORMS % 7);
    let form = match number % FORMS {
        0 => value.to_owned(),
        1 => hex(value),
        2 => hex(value).to_uppercase(),
        3 => percent(value),
        4 => percent(value).to_lowercase(),
        5 => escaped(value),
        6 => STANDARD.encode(format!("{before}{value}{before}")),
        7 => URL_SAFE.encode(format!("{before}{value}")),
        8 => format!("{value}{value}"),
        9 => value.to_ascii_uppercase(),
        10 => value.to_ascii_lowercase(),
        11 => STANDARD.encode(STANDARD.encode(format!("{before}:{value}"))),
        12 => hex(&STANDARD.encode(format!("{before}:{value}"))),
        _ => STANDARD.encode(value).replace('/', "\\/").replace('=', "%3D"),
    };
    let body = format!("{before}{form}{before}");
    let size = number % 13 + 1;
    let mut response = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for piece in body.as_bytes().chunks(size) {
        response.extend(format!("{:x}\r\n", piece.len()).into_bytes());
        response.extend_from_slice(piece);
        response.extend_from_slice(b"\r\n");
    }
    response.extend_from_slice(b"0\r\n\r\n");
    response
}

/// Every stretch of eight characters of the value in every form.
fn windows() -> HashSet<Vec<u8>> {
    let mut forms = vec![
        VALUE.to_owned(),
        VALUE.to_ascii_uppercase(),
        VALUE.to_ascii_lowercase(),
        hex(VALUE),
        hex(VALUE).to_uppercase(),
        percent(VALUE),
        percent(VALUE).to_lowercase(),
    ];
    forms.push(escaped(VALUE));
    for offset in 0..3_usize {
        let padded = STANDARD.encode([&vec![0; offset], VALUE.as_bytes()].concat());
        let (first, end) = ((offset * 8).div_ceil(6), (offset + VALUE.len()) * 8 / 6);
        let inner = padded.get(first..end).unwrap().to_owned();
        forms.push(hex(&inner));
        for offset in 0..3_usize {
            let twice = STANDARD.encode([&vec![0; offset], inner.as_bytes()].concat());
            let (first, end) = ((offset * 8).div_ceil(6), (offset + inner.len()) * 8 / 6);
            forms.push(twice.get(first..end).unwrap().to_owned());
        }
        forms.push(inner);
    }
    forms.iter().flat_map(|form| form.as_bytes().windows(8).map(<[u8]>::to_vec)).collect()
}

/// What a response says, without the sizes of its pieces.
fn body_of(response: &str) -> Vec<u8> {
    let (_, mut rest) = response.split_once("\r\n\r\n").unwrap();
    let mut body = Vec::new();
    while let Some((size, behind)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body.extend_from_slice(&behind.as_bytes()[..size]);
        if size == 0 {
            break;
        }
        rest = behind.get(size + 2..).unwrap();
    }
    body
}

fn exchange(count: usize) {
    let world = World::new(Setup { respond: repeat, ..Setup::default() });
    let windows = windows();
    let is_leak = |bytes: &[u8]| bytes.windows(8).any(|window| windows.contains(window));
    // The measure itself: what the server says, unredacted, is a leak in every form.
    for number in 0..FORMS {
        let response = repeat(&format!("GET /{number} HTTP/1.1\r\nauthorization: Bearer {VALUE}\r\n\r\n"));
        assert!(is_leak(&body_of(&String::from_utf8(response).unwrap())), "form {number}");
    }
    let mut tls = world.to_api();
    for number in 0..count {
        let (port, token) = (world.port, world.token());
        write!(
            tls,
            "GET /{number} HTTP/1.1\r\nHost: api.test:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
        )
        .unwrap();
        let response = read_message(&mut tls).unwrap();
        let body = body_of(&response);
        assert!(!is_leak(&body) && body.contains(&b'*'), "{number}: {response}");
    }
    assert_eq!(world.heard.lock().unwrap().iter().filter(|request| request.contains(VALUE)).count(), count);
}

#[test]
fn nothing_of_a_value_comes_back() {
    crate::trusting!("exchanges::nothing_of_a_value_comes_back");
    // The full run requires everything.
    let is_full = std::env::var_os("BAILIWICK_REQUIRE").is_some_and(|required| required == "all");
    exchange(FORMS * if is_full { LONG } else { ORDINARY });
}
