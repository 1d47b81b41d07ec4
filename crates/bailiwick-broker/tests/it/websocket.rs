//! WebSockets, against a server and a client that send frames byte by byte.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use bailiwick_testkit::servers::serve_tls;
use bailiwick_testkit::tls;
use rustls::{ClientConnection, StreamOwned};

use crate::world::{Heard, Setup, VALUE, World, certificate, read_message};

/// A frame: its kind, whether it is the last of its message, and a mask as clients have.
fn frame(kind: u8, is_last: bool, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
    let mut frame = vec![if is_last { 0x80 | kind } else { kind }];
    let marked = if mask.is_some() { 0x80 } else { 0 };
    match u8::try_from(payload.len()) {
        Ok(short) if short < 126 => frame.push(marked | short),
        _ => {
            frame.push(marked | 126);
            frame.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        }
    }
    frame.extend(mask.unwrap_or_default().iter().filter(|_| mask.is_some()));
    let mask = mask.unwrap_or_default();
    frame.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
    frame
}

/// The next frame: its kind and what it carries. Nothing at the end.
fn next_frame(from: &mut impl Read) -> Option<(u8, String)> {
    let mut head = [0; 2];
    from.read_exact(&mut head).ok()?;
    let mut length = usize::from(head[1] & 0x7f);
    if length == 126 {
        let mut long = [0; 2];
        from.read_exact(&mut long).ok()?;
        length = usize::from(u16::from_be_bytes(long));
    }
    let mut mask = [0; 4];
    if head[1] & 0x80 != 0 {
        from.read_exact(&mut mask).ok()?;
    }
    let mut payload = vec![0; length];
    from.read_exact(&mut payload).ok()?;
    let plain: Vec<u8> = payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]).collect();
    Some((head[0] & 0x0f, String::from_utf8_lossy(&plain).into_owned()))
}

/// A server that repeats each message, in frames of seven bytes, and what it heard.
pub(crate) fn serve(extensions: &'static str) -> (SocketAddr, Heard) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (address, heard) = (listener.local_addr().unwrap(), Heard::default());
    let keep = Arc::clone(&heard);
    serve_tls(listener, tls::server(certificate("api.test", true)), move |tls| {
        let Some(request) = read_message(tls) else { return };
        keep.lock().unwrap().push(request);
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: x\r\n{extensions}\r\n"
        );
        tls.write_all(answer.as_bytes()).unwrap();
        while let Some((kind, text)) = next_frame(tls) {
            keep.lock().unwrap().push(text.clone());
            if kind == 8 {
                return;
            }
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(7).collect();
            for (at, piece) in pieces.iter().enumerate() {
                let kind = if at == 0 { 1 } else { 0 };
                drop(tls.write_all(&frame(kind, at + 1 == pieces.len(), piece, None)));
            }
            drop(tls.flush());
        }
    });
    (address, heard)
}

const ALLOWED: &str =
    "[secrets.TOKEN]\nwebsocket = 'allow'\n[[secrets.TOKEN.rules]]\npaths = ['/socket/**']\n";

fn world(manifest: &'static str, extensions: &'static str) -> World {
    World::with_server(Setup { manifest, ..Setup::default() }, serve(extensions))
}

/// The client, once the server has agreed.
fn opened(world: &World, path: &str) -> Result<StreamOwned<ClientConnection, TcpStream>, String> {
    let mut tls = world.to_api();
    tls.sock.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let ask = format!(
        "GET {path} HTTP/1.1\r\nHost: api.test:{}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
        world.port
    );
    tls.write_all(ask.as_bytes()).unwrap();
    let answer = read_message(&mut tls).unwrap_or_default();
    if answer.starts_with("HTTP/1.1 101") { Ok(tls) } else { Err(answer) }
}

fn say(tls: &mut impl Write, kind: u8, is_last: bool, text: &str) {
    drop(tls.write_all(&frame(kind, is_last, text.as_bytes(), Some([1, 2, 3, 4]))));
    drop(tls.flush());
}

#[test]
fn the_first_message_is_given_the_value_in_whatever_frames_it_comes() {
    crate::trusting!("websocket::the_first_message_is_given_the_value_in_whatever_frames_it_comes");
    for size in [1, 5, 1000] {
        let world = world(ALLOWED, "");
        let token = world.token().to_owned();
        let mut tls = opened(&world, "/socket/a").unwrap();
        let message = format!("{{\"auth\":\"{token}\"}}");
        let pieces: Vec<&[u8]> = message.as_bytes().chunks(size).collect();
        for (at, piece) in pieces.iter().enumerate() {
            let text = std::str::from_utf8(piece).unwrap();
            say(&mut tls, u8::from(at == 0), at + 1 == pieces.len(), text);
        }
        let (_, said) = next_frame(&mut tls).unwrap();
        assert_eq!(
            said,
            format!("{{\"auth\":\"{}\"}}", "*".repeat(VALUE.len())),
            "repeated in pieces of seven"
        );
        say(&mut tls, 1, true, "harmless");
        assert_eq!(next_frame(&mut tls).unwrap().1, "harmless");
        let heard = world.heard.lock().unwrap().clone();
        assert_eq!(heard[1..], [format!("{{\"auth\":\"{VALUE}\"}}"), "harmless".to_owned()]);
        assert!(!heard[0].to_ascii_lowercase().contains("extensions"), "no compression: {}", heard[0]);
        assert!(world.was_told("with TOKEN"));
    }
}

#[test]
fn no_later_message_and_no_other_part_has_a_placeholder() {
    crate::trusting!("websocket::no_later_message_and_no_other_part_has_a_placeholder");
    let world = world(ALLOWED, "");
    let (token, other) = (world.token().to_owned(), world.other().to_owned());
    let glued = format!("AUTH x{token}");
    for (kind, first, then) in [
        (1, "hello", token.as_str()),
        (2, "hello", &token),
        (1, &other, "x"),
        (1, &glued, "x"),
        (8, "hello", &token),
    ] {
        let mut tls = opened(&world, "/socket/a").unwrap();
        say(&mut tls, 1, true, first);
        if first == "hello" {
            assert_eq!(
                next_frame(&mut tls).unwrap().1,
                "hello",
                "the same without a placeholder is passed on"
            );
        }
        let then = if kind == 8 { format!("\u{3}\u{e8}{then}") } else { then.to_owned() };
        // Cut in the middle; a last word is never in two frames.
        let (one, two) = then.split_at(if kind == 8 { then.len() } else { then.len() / 2 });
        say(&mut tls, kind, two.is_empty(), one);
        if !two.is_empty() {
            say(&mut tls, 0, true, two);
        }
        while let Some((kind, text)) = next_frame(&mut tls) {
            assert!(kind == 8 && !text.contains(&token), "{kind} {text}");
        }
    }
    assert!(world.was_told("the placeholder of a secret was sent where its value is not used"));
    world.assert_nothing_leaked();
}

#[test]
fn a_websocket_is_opened_only_where_that_is_allowed() {
    crate::trusting!("websocket::a_websocket_is_opened_only_where_that_is_allowed");
    let closed = world("", "");
    let answer = opened(&closed, "/socket/a").err().unwrap();
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("net-http-tunnel"), "{answer}");
    assert!(closed.heard.lock().unwrap().is_empty());
    let by_rule = world(ALLOWED, "");
    let mut tls = opened(&by_rule, "/elsewhere").unwrap();
    say(&mut tls, 1, true, by_rule.token());
    while let Some((kind, _)) = next_frame(&mut tls) {
        assert_eq!(kind, 8, "its rules do not cover the path");
    }
    assert!(by_rule.was_told("the secret's rules do not cover this request"));
    by_rule.assert_nothing_leaked();
    let compressing = world(ALLOWED, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
    let answer = opened(&compressing, "/socket/a").err().unwrap();
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("secret-response"), "{answer}");
}
