//! Client hellos, whole and in pieces, and what is none.

use super::*;

/// A client hello for `name` as rustls writes it.
fn client_hello(name: &str) -> Vec<u8> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = name.to_owned().try_into().unwrap();
    let mut client = rustls::ClientConnection::new(config.into(), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

/// The same with one more extension.
fn with_extension(mut hello: Vec<u8>, kind: u16, data: &[u8]) -> Vec<u8> {
    let mut extension = kind.to_be_bytes().to_vec();
    extension.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
    extension.extend(data);
    // record header, handshake header, version, random, then three vectors before the extensions
    let mut at = 5 + 4 + 2 + 32;
    at += 1 + usize::from(hello[at]);
    at += 2 + usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
    at += 1 + usize::from(hello[at]);
    for place in [3, 7, at] {
        let old = u16::from_be_bytes([hello[place], hello[place + 1]]);
        let new = old + u16::try_from(extension.len()).unwrap();
        hello[place..place + 2].copy_from_slice(&new.to_be_bytes());
    }
    hello.splice(at + 2..at + 2, extension);
    hello
}

fn heard(bytes: &[u8], size: usize) -> Option<Hello> {
    let mut listening = Listening::default();
    let found = bytes.chunks(size).find_map(|piece| listening.read_piece(piece));
    assert!(bytes.starts_with(&listening.into_bytes()), "what was heard is what is passed on");
    found
}

fn tls(name: Option<&str>, hidden: bool) -> Option<Hello> {
    Some(Hello::Tls { name: name.map(Box::from), hidden })
}

#[test]
fn the_name_is_found_however_the_hello_is_cut() {
    let hello = client_hello("a.test");
    for size in [1, 2, 5, 100, 10_000] {
        assert_eq!(heard(&hello, size), tls(Some("a.test"), false), "{size}");
    }
    assert_eq!(heard(&hello[..hello.len() - 1], 7), None, "it is not complete");
    assert_eq!(heard(&client_hello("192.0.2.1"), 99), tls(None, false));
}

#[test]
fn the_name_is_found_across_records() {
    let hello = client_hello("a.test");
    for size in [1, 3, 64] {
        let records: Vec<u8> = hello[5..]
            .chunks(size)
            .flat_map(|part| {
                [&[22, 3, 1], &u16::try_from(part.len()).unwrap().to_be_bytes()[..], part].concat()
            })
            .collect();
        assert_eq!(heard(&records, 1), tls(Some("a.test"), false), "{size}");
    }
}

#[test]
fn hiding_and_pretending_to_hide_look_the_same_and_are_seen() {
    for kind in HIDING {
        let hello = with_extension(client_hello("a.test"), kind, &[0, 0, 1, 0, 1, 7, 0, 2, 8, 8, 0, 2, 9, 9]);
        assert_eq!(heard(&hello, 3), tls(Some("a.test"), true), "{kind:x}");
    }
    let grease = with_extension(client_hello("a.test"), 0x3a3a, &[0]);
    assert_eq!(heard(&grease, 1000), tls(Some("a.test"), false), "other noise is no hiding");
}

#[test]
fn what_cannot_be_read_is_no_hello() {
    let hello = client_hello("a.test");
    let mut two_names = hello.clone();
    let at = two_names.windows(6).position(|window| window == b"a.test").unwrap();
    two_names[at] = 0;
    let second_name = with_extension(hello.clone(), 0, b"\0\x09\0\0\x06b.test");
    let mut server = hello.clone();
    server[5] = 2;
    let unreadable = Some(Hello::Unreadable(Code::TlsUnreadable));
    for wrong in
        [&two_names, &second_name, &server, &vec![22; 200], &[22, 3, 1, 0, 0, 22, 3, 1, 0, 0].repeat(50)]
    {
        assert_eq!(heard(wrong, 50), unreadable, "{wrong:x?}");
    }
    assert_eq!(heard(b"\x80\x2e\x01\x03\x01", 5), Some(Hello::Other), "SSL 2");
    let endless = vec![22, 3, 1, 0x3f, 0xff, 1, 0, 0xff, 0xff];
    assert_eq!(heard(&endless, 9), None);
    let mut long = endless;
    long.resize(MAX_HELLO, 0);
    assert!(matches!(heard(&long, 1000), Some(Hello::Unreadable(_))));
}

#[test]
fn requests_are_heard_too() {
    let request = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    for size in [1, 1000] {
        let Some(Hello::Http(request)) = heard(request, size) else { panic!() };
        assert_eq!(request.host, Host::Name("a.test".into()));
    }
    assert_eq!(heard(b"CONNECT b.test:443 HTTP/1.1\r\n\r\n", 9), Some(Hello::Unreadable(Code::HttpTunnel)));
    assert_eq!(heard(b"SSH-2.0-OpenSSH\r\n", 1), Some(Hello::Other));
}
