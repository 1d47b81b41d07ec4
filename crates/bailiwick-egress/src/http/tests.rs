//! Heads and bodies that are read in one way only, and those that are not read at all.

use super::*;

fn bad(text: &str) -> Code {
    let parsed = parse(text.as_bytes());
    let Parsed::Bad(code) = parsed else { panic!("{text:?}: {parsed:?}") };
    code
}

fn good(text: &str) -> Head {
    let parsed = parse(text.as_bytes());
    let Parsed::Head(head) = parsed else { panic!("{text:?}: {parsed:?}") };
    head
}

#[test]
fn plain_requests_are_read() {
    let head = good("GET /x?y HTTP/1.1\r\nHost: A.test:80\r\n\r\nrest");
    assert_eq!((&*head.request.method, &*head.request.path, head.request.port), ("GET", "/x?y", Some(80)));
    assert_eq!(
        (head.request.host.to_string(), head.length, head.body),
        ("a.test".to_owned(), 38, Body::Length(0))
    );
    assert_eq!(good("POST / HTTP/1.1\r\nhost:a.test\r\nContent-Length: 12\r\n\r\n").body, Body::Length(12));
    assert_eq!(
        good("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: Chunked\r\n\r\n").body,
        Body::Chunked
    );
    assert_eq!(&*good("GET http://a.test/y HTTP/1.1\r\nHost: a.test\r\n\r\n").request.path, "/y");
    assert_eq!(&*good("GET HTTP://A.test:80 HTTP/1.1\r\nHost: a.test\r\n\r\n").request.path, "/");
    assert_eq!(&*good("OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n").request.path, "*");
    assert_eq!(good("GET / HTTP/1.0\r\nHost: [::1]:8080\r\n\r\n").request.port, Some(8080));
    assert_eq!(parse(b"GET / HTTP/1.1\r\nHost: a.t"), Parsed::More);
    assert_eq!(parse(b""), Parsed::More);
}

#[test]
fn what_servers_read_in_two_ways_is_refused() {
    for fields in [
        "",
        "Host: a.test\r\nHost: a.test\r\n",
        "Host: a.test\r\nhost: b.test\r\n",
        "Host: a.test\r\nContent-Length: 1\r\nContent-Length: 1\r\n",
        "Host: a.test\r\nContent-Length: 1, 1\r\n",
        "Host: a.test\r\nContent-Length: +1\r\n",
        "Host: a.test\r\nContent-Length: -1\r\n",
        "Host: a.test\r\nContent-Length: 0x1\r\n",
        "Host: a.test\r\nContent-Length: 99999999999999999999\r\n",
        "Host: a.test\r\nContent-Length: \r\n",
        "Host: a.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n",
        "Host: a.test\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Host: a.test\r\nTransfer-Encoding: gzip, chunked\r\n",
        "Host: a.test\r\nTransfer-Encoding: identity\r\n",
        "Host: a.test\r\nTransfer-Encoding : chunked\r\n",
        "Host: a.test\r\nX: a\r\n b\r\n",
        "Host: a.test\r\nX: a\nY: b\r\n",
        "Host: a.test\r\nX: a\rY: b\r\n",
        "Host: a.test, b.test\r\n",
        "Host: u@a.test\r\n",
        "Host: a.test:\r\n",
        "Host: a.test:080\r\n",
        "Host: a.test:99999\r\n",
        "Host: a.test/x\r\n",
        "Host: ::1\r\n",
        "Host: \r\n",
        "Host: 0x7f.1\r\n",
    ] {
        assert_eq!(bad(&format!("POST / HTTP/1.1\r\n{fields}\r\n")), Code::HttpUnreadable, "{fields:?}");
    }
    for line in [
        "GET /a#b HTTP/1.1",
        "GET a.test HTTP/1.1",
        "GET * HTTP/1.1",
        "GET https://a.test/ HTTP/1.1",
        "GET http://a.test?q HTTP/1.1",
        "GET ftp://a.test/ HTTP/1.1",
        "GET / HTTP/1.2",
        "GET / HTTP/3.0",
    ] {
        assert_eq!(bad(&format!("{line}\r\nHost: a.test\r\n\r\n")), Code::HttpUnreadable, "{line}");
    }
    let chunked_1_0 = "POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(bad(chunked_1_0), Code::HttpUnreadable);
    assert_eq!(bad(&format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(MAX_HEAD))), Code::HttpUnreadable);
    assert_eq!(bad(&format!("GET / HTTP/1.1\r\n{}", "X: y\r\n".repeat(101))), Code::HttpUnreadable);
}

#[test]
fn other_hosts_tunnels_and_other_protocols_are_told_apart() {
    assert_eq!(bad("GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"), Code::HttpHostOther);
    assert_eq!(bad("GET http://a.test:81/ HTTP/1.1\r\nHost: a.test\r\n\r\n"), Code::HttpHostOther);
    assert_eq!(bad("GET http://u@a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"), Code::HttpUnreadable);
    for tunnel in [
        "CONNECT b.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "connect b.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive, upgrade\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        assert_eq!(bad(tunnel), Code::HttpTunnel, "{tunnel}");
    }
    for other in
        ["SSH-2.0-x\r\n", "\r\nGET / HTTP/1.1\r\n", "\0\0\0\x08\x04\x52\x16/", "EHLO me\r\n", "{\"a\":1}"]
    {
        assert_eq!(bad(other), Code::ProtocolNotGranted, "{other:?}");
    }
}

/// Feeds a body in pieces of `size` and gives how many bytes belong to it.
fn body_length(kind: Body, bytes: &[u8], size: usize) -> Result<Option<usize>, Code> {
    let mut framing = Framing::new(kind);
    let (mut said, mut total) = (Vec::new(), 0);
    for piece in bytes.chunks(size) {
        said.extend_from_slice(piece);
        let taken = framing.advance(&said)?;
        said.drain(..taken);
        total += taken;
    }
    Ok(framing.is_done().then_some(total))
}

#[test]
fn a_body_ends_where_it_says() {
    let chunked = b"5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\nGET / HTTP/1.1\r\n";
    for size in [1, 2, 3, 7, 1000] {
        assert_eq!(body_length(Body::Chunked, chunked, size), Ok(Some(chunked.len() - 16)), "{size}");
        assert_eq!(body_length(Body::Length(5), b"helloGET /", size), Ok(Some(5)));
        assert_eq!(body_length(Body::Length(50), b"hello", size), Ok(None));
        assert_eq!(body_length(Body::Length(0), b"GET /", size), Ok(Some(0)));
        assert_eq!(body_length(Body::Chunked, b"5\r\nhel", size), Ok(None));
        for wrong in [
            &b"5;x=y\r\nhello\r\n0\r\n\r\n"[..],
            b"5 \r\nhello\r\n",
            b"0x5\r\nhello\r\n",
            b"5\nhello\r\n",
            b"-5\r\n",
            b"\r\nhello",
            b"5\r\nhelloX\r\n",
            b"0\r\nTrailer: x\r\n\r\n",
            b"fffffffffffffffff\r\n",
            b"00000000000000000000000000005\r\n",
            b"5\r\nhello\n\n",
            b"g\r\n",
        ] {
            assert!(body_length(Body::Chunked, wrong, size).is_err(), "{:?}", String::from_utf8_lossy(wrong));
        }
    }
}
