//! What comes back: pages as markdown, and hostile bodies up to their bounds.

use std::io::Write;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use serde_json::{Value, json};

use super::world::{Server, from_loopback, reply};

const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";
const TEXT: &str = "Content-Type: text/plain\r\n";

fn serving(headers: &'static str, body: impl Into<Vec<u8>>) -> Server {
    let body = body.into();
    Server::start("127.0.0.1:0", move |_, out| reply(out, headers, &body))
}

fn page(headers: &'static str, body: impl Into<Vec<u8>>, more: Value) -> Value {
    from_loopback(&serving(headers, body), "/page", more).unwrap()
}

fn failure(server: &Server, more: Value) -> String {
    from_loopback(server, "/", more).unwrap_err().to_string()
}

/// 64 MiB of zeros.
const BROTLI_BOMB: &str = "cbffff3ff82700e2b14020f7fe8fffff7ff04f00c4611180eefd1fffffffe09f0088c30200ddfb3ffeffffc13f0110870500baf77ffcffff837f02200e0b0074effff8ffff07ff04401c1600e8defff1ffff0ffe0980382c00d0bdffcbffff3ffc1300715800a07bff07";
const BROTLI_HELLO: &str = "1b1000e0a5d2d872104324891c62ab7cf400";

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn the_main_content_comes_as_markdown() {
    let words =
        "The quick brown fox jumps over the lazy dog, again and again, until it is tired. ".repeat(12);
    let html = format!(
        "<html><head><title>A fox</title><script>evil()</script></head><body><nav><a href=/x>Menu</a></nav>\
         <article><h1>Foxes</h1><p>{words}</p><p>{words} See <a href='/more'>more</a>.</p></article>\
         <footer>Imprint</footer></body></html>"
    );
    let article = page(HTML, html.clone(), json!({}));
    let markdown = article["markdown"].as_str().unwrap();
    assert_eq!((&article["title"], &article["kind"]), (&json!("A fox"), &json!("article")));
    assert_eq!(article["reader"], "in-process", "it says that the parser is in this process");
    assert!(
        markdown.contains("quick brown fox") && markdown.contains("[more](http://127.0.0.1:"),
        "{markdown}"
    );
    assert!(!markdown.contains("evil()") && !markdown.contains("Menu"), "{markdown}");
    assert_eq!(
        (&article["untrusted"], &article["status"], &article["truncated"]),
        (&json!(true), &json!(200), &json!(false))
    );
    let raw = page(HTML, html.clone(), json!({ "raw": true }));
    assert_eq!((&raw["markdown"], &raw["kind"]), (&json!(html), &json!("source")));
    assert_eq!(raw["reader"], "none");
    let small = page(HTML, "<title>t</title><h2>Only this</h2><a href=x>y</a>", json!({}));
    assert!(small["markdown"].as_str().unwrap().contains("Only this"), "{small}");
}

#[test]
fn lists_code_and_tables_keep_their_shape() {
    let html = "<title>t</title><h2>Shape</h2><ul><li>one</li><li>two</li></ul><pre><code>if a &lt; b {\n    c\n}</code></pre>\
                <table><tr><th>k</th><th>v</th></tr><tr><td>1</td><td>2</td></tr></table><p>caf&eacute; <b>bold</b></p>";
    let shown = page(HTML, html, json!({}));
    let markdown = shown["markdown"].as_str().unwrap();
    for part in [
        "## Shape",
        "- one\n- two",
        "```\nif a < b {\n    c\n}\n```",
        "| k | v |",
        "| 1 | 2 |",
        "café **bold**",
    ] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
}

#[test]
fn other_content_comes_as_it_is() {
    let json = page("Content-Type: application/json\r\n", "{\"a\": 1}", json!({}));
    assert_eq!((&json["markdown"], &json["kind"]), (&json!("{\"a\": 1}"), &json!("text")));
    let latin = page("Content-Type: text/plain; charset=ISO-8859-1\r\n", b"caf\xe9".to_vec(), json!({}));
    assert_eq!(latin["markdown"], "café");
    let meta = page(
        "Content-Type: text/html\r\n",
        b"<meta charset='windows-1252'><p>caf\xe9</p>".to_vec(),
        json!({}),
    );
    assert!(meta["markdown"].as_str().unwrap().contains("café"), "{meta}");
    let image = page("Content-Type: image/png\r\n", vec![1, 2, 3], json!({}));
    assert_eq!(
        (&image["markdown"], &image["kind"], image.get("base64")),
        (&json!(""), &json!("binary"), None)
    );
    let raw = page("Content-Type: image/png\r\n", vec![1, 2, 3], json!({ "raw": true }));
    assert_eq!((&raw["base64"], &raw["bytes"]), (&json!("AQID"), &json!(3)));
    let missing = Server::start("127.0.0.1:0", |_, out| {
        write!(out, "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\ngone")
    });
    let gone = from_loopback(&missing, "/", json!({})).unwrap();
    assert_eq!((&gone["status"], &gone["markdown"]), (&json!(404), &json!("gone")));
}

#[test]
fn head_brings_no_body() {
    let server = Server::start("127.0.0.1:0", |_, out| {
        write!(
            out,
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 999\r\nContent-Encoding: gzip\r\n\r\n"
        )
    });
    let head = from_loopback(&server, "/", json!({ "method": "HEAD" })).unwrap();
    assert_eq!((&head["status"], &head["kind"], &head["bytes"]), (&json!(200), &json!("none"), &json!(0)));
    assert!(server.heads()[0].starts_with("HEAD / HTTP/1.1"));
}

#[test]
fn compressed_bodies_are_unpacked() {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(b"hello from zlib").unwrap();
    let mut bare = DeflateEncoder::new(Vec::new(), Compression::fast());
    bare.write_all(b"hello from deflate").unwrap();
    for (coding, body, text) in [
        (
            "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n",
            gzip(b"hello from gzip"),
            "hello from gzip",
        ),
        (
            "Content-Type: text/plain\r\nContent-Encoding: deflate\r\n",
            zlib.finish().unwrap(),
            "hello from zlib",
        ),
        (
            "Content-Type: text/plain\r\nContent-Encoding: deflate\r\n",
            bare.finish().unwrap(),
            "hello from deflate",
        ),
        ("Content-Type: text/plain\r\nContent-Encoding: br\r\n", unhex(BROTLI_HELLO), "hello from brotli"),
    ] {
        let got = page(coding, body, json!({}));
        assert_eq!((&got["markdown"], &got["truncated"]), (&json!(text), &json!(false)));
    }
    let mut cut = gzip(&b"hello from gzip".repeat(100));
    cut.truncate(cut.len() - 12);
    assert_eq!(
        page("Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", cut, json!({}))["truncated"],
        true
    );
    for bad in ["Content-Encoding: zstd\r\n", "Content-Encoding: gzip, gzip\r\n"] {
        let text = failure(&serving(bad, gzip(b"x")), json!({}));
        assert!(text.contains("is not known"), "{text}");
    }
    assert!(
        failure(&serving("Content-Encoding: gzip\r\n", "plain text"), json!({}))
            .contains("cannot be unpacked")
    );
}

#[test]
fn bombs_are_not_unpacked() {
    let zeros = vec![0; 256 * 1024 * 1024];
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
    zlib.write_all(&zeros).unwrap();
    for (coding, body) in [
        ("Content-Encoding: gzip\r\n", gzip(&zeros)),
        ("Content-Encoding: deflate\r\n", zlib.finish().unwrap()),
        ("Content-Encoding: br\r\n", unhex(BROTLI_BOMB)),
    ] {
        let server = serving(coding, body);
        for max in [2 * 1024 * 1024, 16 * 1024 * 1024] {
            let text = failure(&server, json!({ "max_bytes": max }));
            assert!(text.contains("unpacks to more than 200 times its size"), "{text}");
        }
        let few = from_loopback(&server, "/", json!({ "max_bytes": 1000 })).unwrap();
        assert_eq!((&few["bytes"], &few["truncated"]), (&json!(1000), &json!(true)));
    }
}

#[test]
fn an_endless_body_is_cut_and_that_is_said() {
    let server = Server::start("127.0.0.1:0", |_, out| {
        write!(out, "HTTP/1.1 200 OK\r\n{TEXT}Transfer-Encoding: chunked\r\n\r\n")?;
        loop {
            write!(out, "1000\r\n{}\r\n", "x".repeat(0x1000))?;
        }
    });
    let page = from_loopback(&server, "/", json!({})).unwrap();
    assert_eq!((&page["bytes"], &page["truncated"]), (&json!(2 * 1024 * 1024), &json!(true)));
    let exact = serving(TEXT, "12345");
    let whole = from_loopback(&exact, "/", json!({ "max_bytes": 5 })).unwrap();
    assert_eq!((&whole["markdown"], &whole["truncated"]), (&json!("12345"), &json!(false)));
    let cut = from_loopback(&exact, "/", json!({ "max_bytes": 4 })).unwrap();
    assert_eq!((&cut["markdown"], &cut["truncated"]), (&json!("1234"), &json!(true)));
}

#[test]
fn slow_servers_are_left() {
    let drip = Server::start("127.0.0.1:0", |_, out| {
        write!(out, "HTTP/1.1 200 OK\r\n{TEXT}\r\n")?;
        loop {
            out.write_all(b"x")?;
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let mute = Server::start("127.0.0.1:0", |_, _| {
        std::thread::sleep(Duration::from_secs(60));
        Ok(())
    });
    for server in [drip, mute] {
        let started = Instant::now();
        let text = failure(&server, json!({ "timeout_ms": 500 }));
        assert!(text.contains("no answer within 500 ms"), "{text}");
        assert!(started.elapsed() < Duration::from_secs(30));
    }
    let stalled = Server::start("127.0.0.1:0", |_, out| {
        write!(out, "HTTP/1.1 200 OK\r\n{TEXT}\r\nx")?;
        out.flush()?;
        std::thread::sleep(Duration::from_secs(60));
        Ok(())
    });
    let text = failure(&stalled, json!({}));
    assert!(text.contains("the body stalled for 10 s"), "{text}");
}

#[test]
fn huge_headers_and_broken_answers_are_refused() {
    let long = Server::start("127.0.0.1:0", |_, out| {
        write!(out, "HTTP/1.1 200 OK\r\nX-Long: {}\r\n\r\nx", "y".repeat(100 * 1024))
    });
    let many = Server::start("127.0.0.1:0", |_, out| {
        write!(out, "HTTP/1.1 200 OK\r\n{}\r\nx", "A: b\r\n".repeat(5000))
    });
    let endless = Server::start("127.0.0.1:0", |_, out| {
        write!(out, "HTTP/1.1 200 OK\r\n")?;
        loop {
            out.write_all(b"A: b\r\n")?;
        }
    });
    let bare = Server::start("127.0.0.1:0", |_, out| write!(out, "hello, no HTTP here"));
    let short =
        Server::start("127.0.0.1:0", |_, out| write!(out, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nx"));
    for server in [long, many, endless, bare] {
        let text = failure(&server, json!({}));
        assert!(text.contains("gave no usable answer"), "{text}");
    }
    assert!(failure(&short, json!({})).contains("the body broke off"));
}

#[test]
fn hostile_pages_are_read_without_harm() {
    let deep = "<div>".repeat(20_000) + "needle";
    let got = page(HTML, deep, json!({}));
    assert!(got["markdown"].as_str().unwrap().contains("needle"), "{}", got["kind"]);
    assert_eq!(got["kind"], "text");
    let many = "<b>x".repeat(120_000);
    let got = page(HTML, many, json!({}));
    assert_eq!(got["kind"], "source");
    for odd in [
        "",
        "<",
        "<!--",
        "<![CDATA[",
        "</html></html>",
        "<script>",
        "\u{0}",
        "<table><table><table>",
        "<p>\u{feff}",
    ] {
        let got = page(HTML, odd, json!({}));
        assert_eq!(got["status"], 200, "{odd:?}");
    }
}
