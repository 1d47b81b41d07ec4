//! Pages that want to hurt whoever reads them, fetched as an agent would, each read by the real program in its sandbox:
//! every one is answered in bounded time and size, and what is shown of it holds nothing that acts on a terminal.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Served, command, home, memory, served};

/// One attempt: its name, the headers that come with it, and the body.
type Attempt = (&'static str, &'static str, Vec<u8>);

/// How many are fetched at the same time.
const AT_ONCE: usize = 4;
/// What one answer may take; pages have 20 seconds, a call 30.
const PATIENCE: Duration = Duration::from_secs(90);
/// The longest answer, in bytes: the body, and what its escapes add.
const LONGEST: usize = 40 << 20;

const HTML: &str = "content-type: text/html";

fn text(name: &'static str, body: String) -> Attempt {
    (name, HTML, body.into_bytes())
}

fn page(body: &str) -> String {
    format!("<!doctype html><html><head><title>T</title></head><body>{body}</body></html>")
}

fn structure() -> Vec<Attempt> {
    let row = "<tr><td>x</td></tr>";
    vec![
        text("nested divs", page(&"<div>".repeat(100_000))),
        text("nested divs below the bound", page(&"<div>".repeat(49_000))),
        text("nested just below the depth", page(&format!("{}words", "<div>".repeat(390)))),
        text("nested lists", page(&"<ul><li>".repeat(20_000))),
        text("nested quotes", page(&"<blockquote>".repeat(390))),
        text("nested tables", page(&"<table><tr><td>".repeat(16_000))),
        text("formatting that is never closed", page(&"<b><i><a href=x>".repeat(16_000))),
        text("misnested formatting", page(&"<b><p></b></p>".repeat(20_000))),
        text("a million attributes", page(&format!("<p {}>words</p>", "a=1 ".repeat(1_000_000)))),
        text("distinct attributes", {
            let all: String = (0..200_000).map(|number| format!("a{number}=1 ")).collect();
            page(&format!("<p {all}>words</p>"))
        }),
        text("a huge attribute", page(&format!("<p title='{}'>words</p>", "x".repeat(8 << 20)))),
        text("a table of many rows", page(&format!("<table>{}</table>", row.repeat(20_000)))),
        text("one wide cell among many rows", {
            let wide = format!("<tr><td>{}</td></tr>", "x".repeat(1 << 20));
            page(&format!("<table>{wide}{}</table>", row.repeat(10_000)))
        }),
        text(
            "a table of many columns",
            page(&format!("<table><tr>{}</tr></table>", "<td>x</td>".repeat(40_000))),
        ),
        text("huge spans", page("<table><tr><td colspan=100000000 rowspan=100000000>x</td></tr></table>")),
        text("frames and selects", page(&"<select><option><svg><math><mtext>".repeat(9_000))),
        text("templates in templates", page(&"<template>".repeat(40_000))),
        text("end tags alone", page(&"</p></br></b></table>".repeat(50_000))),
        text("nothing but brackets", "<".repeat(2 << 20)),
        text("tags that never end", "<a ".repeat(500_000)),
        text("an empty body", page("")),
    ]
}

fn tricks() -> Vec<Attempt> {
    vec![
        text("a comment that never ends", format!("{}<!-- {}", page("<p>words</p>"), "-".repeat(2 << 20))),
        text("comments by the thousand", page(&"<!----><!-- x --!>".repeat(100_000))),
        text("a script that never ends", format!("<p>words</p><script>{}", "</scrip ".repeat(200_000))),
        text("scripts in comments in scripts", page(&"<script><!--<script></script>".repeat(5_000))),
        text("a style with tags in it", page("<style><p>not words</p></style><p>words</p>")),
        text("a title that never ends", format!("<title>{}", "x".repeat(2 << 20))),
        text("a textarea that never ends", format!("<textarea>{}", "<p>".repeat(10_000))),
        text("plaintext", format!("<plaintext>{}", "<p>".repeat(60_000))),
        text("entities", page(&"&lt;&#x1b;[31m&#0;&#xD800;&#x110000;&CounterClockwiseContourIntegral;".repeat(20_000))),
        text("an entity without end", page(&format!("&#{};", "9".repeat(1 << 20)))),
        text("entities declared as in XML", {
            let lines: String = (1..10).map(|n| format!("<!ENTITY e{n} \"{}\">", format!("&e{};", n - 1).repeat(10))).collect();
            format!("<!DOCTYPE html [<!ENTITY e0 \"lol\">{lines}]><p>&e9;</p>")
        }),
        text("links that run", page(&"<p><a href='javascript:alert(1)'>j</a> <a href=' JaVa\tScript:x'>t</a> <a href='data:text/html,x'>d</a> <a href='vbscript:x'>v</a></p>".repeat(20))),
        text("images that carry", page(&format!("<p>words</p><img src='data:image/png;base64,{}'>", "A".repeat(4 << 20)))),
        text("a base elsewhere", format!("<base href='javascript:x//'><base href='//\\\\evil.test/'>{}", page("<p>words <a href='x'>x</a></p>"))),
        text("a base that is no address", format!("<base href='http://[::1'>{}", page("<p><a href='x'>words</a></p>"))),
        text("a refresh", format!("<meta http-equiv=refresh content='0;url=http://127.0.0.1:1/'>{}", page("<p>words</p>"))),
        text("terminal escapes", page("<p>a\x1b]0;owned\x07b\x1b[2Jc\u{9b}31md\u{8}\u{8}e\u{7f}</p>")),
        text("escapes in the title", format!("<title>\x1b[31mred\u{202e}</title>{}", "<p>words</p>")),
        text("letters that turn around", page("<p>a\u{202e}dne\u{202c} \u{2066}b\u{2069} c\u{200f}\u{61c}d \u{e0041}\u{e0042}</p>")),
        text("markdown in the text", page("<p># no heading</p><p>```</p><p>[a](javascript:x) ![b](http://x.test/) &lt;script&gt;</p>")),
        text("markdown in attributes", page("<p><a href='http://x.test/)[y](javascript:z)' title='\"](x)'>words</a></p>")),
        text("one huge text", page(&"x".repeat(12 << 20))),
        text("one huge line of words", page(&format!("<p>{}</p>", "word ".repeat(2 << 20)))),
        text("blank lines", page(&"\n \t".repeat(2 << 20))),
        text("breaks", page(&"<br>".repeat(49_000))),
    ]
}

fn encodings() -> Vec<Attempt> {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let body = page("<p>wörds \x1b[31m</p>");
    let mut all: Vec<Attempt> = vec![
        ("NUL in plenty", HTML, [body.as_bytes(), &[0; 1 << 20]].concat()),
        ("no UTF-8 at all", HTML, vec![0xff; 4 << 20]),
        ("half a letter", HTML, [body.as_bytes(), b"\xe2\x82"].concat()),
        ("UTF-16 with a lone half", "content-type: text/html; charset=utf-16le", {
            [utf16(&body), vec![0x00, 0xd8, 0x41, 0x00, 0x00, 0xdc, 0x7f]].concat()
        }),
        ("UTF-16 with a mark, called UTF-8", HTML, [vec![0xff, 0xfe], utf16(&body)].concat()),
        ("UTF-8 called UTF-16", "content-type: text/html; charset=utf-16be", body.clone().into_bytes()),
        (
            "UTF-7 that would be a script",
            "content-type: text/html; charset=utf-7",
            b"+ADw-script+AD4-x+ADw-/script+AD4-".to_vec(),
        ),
        (
            "two names of encodings",
            "content-type: text/html; charset=big5; charset=utf-8",
            body.clone().into_bytes(),
        ),
        (
            "an encoding that is none",
            "content-type: text/html; charset=\"\x7fnone\"",
            body.clone().into_bytes(),
        ),
        (
            "one in its own words",
            HTML,
            format!("<meta charset=iso-2022-jp>\x1b$B{}", "%a".repeat(10_000)).into_bytes(),
        ),
        ("no kind at all", "x: y", body.clone().into_bytes()),
        ("text with escapes", "content-type: text/plain", b"a\x1b[31mb\x07\xc2\x9b".to_vec()),
        ("JSON of great depth", "content-type: application/json", b"[".repeat(1 << 20)),
    ];
    for label in [
        "shift_jis",
        "euc-jp",
        "iso-2022-jp",
        "gb18030",
        "big5",
        "euc-kr",
        "windows-1252",
        "x-user-defined",
        "replacement",
    ] {
        let header: &'static str = format!("content-type: text/html; charset={label}").leak();
        let bytes: Vec<u8> = (0..=255).cycle().take(200_000).filter(|byte| *byte != b'<').collect();
        all.push((header, header, [b"<p>words ".as_slice(), &bytes].concat()));
    }
    all
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut child = Command::new("gzip")
        .arg("-9")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gzip is there");
    let (mut input, bytes) = (child.stdin.take().unwrap(), bytes.to_vec());
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output.stdout
}

fn codings() -> Vec<Attempt> {
    const GZIP: &str = "content-type: text/html\r\ncontent-encoding: gzip";
    let (good, bomb) = (gzip(page("<p>words</p>").as_bytes()), gzip(&vec![b'a'; 64 << 20]));
    let mut broken = good.clone();
    let middle = broken.len() / 2;
    broken[middle] ^= 0xff;
    vec![
        ("a bomb", GZIP, bomb.clone()),
        ("a bomb in a bomb", GZIP, gzip(&bomb)),
        ("a bomb of tags", GZIP, gzip("<div>".repeat(4 << 20).as_bytes())),
        ("a broken middle", GZIP, broken),
        ("a missing end", GZIP, good[..good.len() - 9].to_vec()),
        ("many members", GZIP, good.repeat(10_000)),
        ("something behind the end", GZIP, [good.as_slice(), b"garbage"].concat()),
        ("gzip called deflate", "content-type: text/html\r\ncontent-encoding: deflate", good.clone()),
        ("garbage called br", "content-type: text/html\r\ncontent-encoding: br", vec![0x5b; 1 << 20]),
        ("stacked codings", "content-type: text/html\r\ncontent-encoding: gzip, gzip", gzip(&good)),
        ("a coding that is none", "content-type: text/html\r\ncontent-encoding: zstd", good),
    ]
}

/// Whether a letter does something other than being shown.
fn acts(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' | '\u{feff}')
}

fn check(name: &str, answer: &Value, size: usize) -> Result<(), String> {
    let result = &answer["result"];
    if !result["content"].is_array() {
        return Err(format!("{name}: no result: {answer}"));
    }
    if size > LONGEST {
        return Err(format!("{name}: {size} bytes"));
    }
    let page = &result["structuredContent"];
    let parts = [&page["markdown"], &page["title"], &page["content_type"], &result["content"][0]["text"]];
    for part in parts.into_iter().filter_map(Value::as_str) {
        if let Some(c) = part.chars().find(|c| acts(*c)) {
            return Err(format!("{name}: U+{:04X} is shown", u32::from(c)));
        }
    }
    let kind = page["kind"].as_str().unwrap_or_default();
    let links = page["markdown"].as_str().unwrap_or_default().to_ascii_lowercase().replace("\\", "");
    let runs = ["](javascript:", "](data:", "](vbscript:"].into_iter().find(|scheme| links.contains(scheme));
    match runs.filter(|_| ["article", "page"].contains(&kind) && !name.starts_with("markdown in")) {
        Some(scheme) => Err(format!("{name}: a link `{scheme}` is shown")),
        None => Ok(()),
    }
}

#[test]
fn every_hostile_page_is_answered_and_none_does_harm() {
    let attempts: Vec<Attempt> = [structure(), tricks(), encodings(), codings()].concat();
    assert!(attempts.len() >= 40, "{}", attempts.len());
    let bodies = attempts.clone();
    let at = served(move |path| {
        let number: usize = path.trim_start_matches('/').parse().unwrap_or(0);
        bodies.get(number).map(|(_, head, body)| ((*head).to_owned(), body.clone())).unwrap_or_default()
    });
    let home = home();
    let command = command(&home, &["--cap", &format!("net:connect:{at}")]);
    let mut served = Served::spawned(command, home);
    let (mut failed, mut kinds) = (Vec::new(), std::collections::BTreeMap::<String, usize>::new());
    let numbered: Vec<(usize, &Attempt)> = attempts.iter().enumerate().collect();
    for some in numbered.chunks(AT_ONCE) {
        for (number, _) in some {
            let arguments = json!({ "url": format!("http://{at}/{number}"), "max_bytes": 16 << 20 });
            let params = json!({ "name": "web_fetch", "arguments": arguments });
            served.send(
                json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params })
                    .to_string(),
            );
        }
        let since = Instant::now();
        for _ in some {
            let line = served.lines.recv_timeout(PATIENCE.saturating_sub(since.elapsed())).expect("in time");
            let answer: Value = serde_json::from_str(&line).unwrap();
            let name = attempts[usize::try_from(answer["id"].as_u64().unwrap()).unwrap()].0;
            let kind = answer["result"]["structuredContent"]["kind"].as_str().unwrap_or("refused");
            *kinds.entry(kind.to_owned()).or_default() += 1;
            failed.extend(check(name, &answer, line.len()).err());
        }
    }
    served.ping();
    println!("{kinds:?}");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(kinds.len() >= 4 && kinds["article"] >= 10, "the pages were not read: {kinds:?}");
    let peak = memory(served.child.id(), "VmHWM");
    assert!(peak < 1 << 20, "{peak} KiB at its peak");
}
