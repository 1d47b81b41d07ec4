//! Who reads the pages that `web_fetch` brings: a program beside the command, which may touch nothing.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{Served, home, page};

/// What `web_fetch` says of a page, served from a directory in which the reader is this script, or none; and what was
/// said on stderr.
fn fetched(reader: Option<&str>) -> (Value, String) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let command = directory.path().join("bailiwick");
    for built in [env!("CARGO_BIN_EXE_bailiwick"), env!("CARGO_BIN_EXE_bailiwick-serve")].map(Path::new) {
        let own = command.with_file_name(built.file_name().unwrap());
        std::fs::hard_link(built, &own).or_else(|_| std::fs::copy(built, &own).map(drop)).unwrap();
    }
    if let Some(script) = reader {
        let program = directory.path().join("bailiwick-page");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    fetched_by(&command)
}

fn fetched_by(program: &Path) -> (Value, String) {
    let (home, at) = (home(), page());
    let command = super::command_of(program, &home, &["--cap", &format!("net:connect:{at}")]);
    let mut served = Served::spawned(command, home);
    let params = json!({ "name": "web_fetch", "arguments": { "url": format!("http://{at}/") } });
    let answer = served.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
    (answer["result"].clone(), served.end().1)
}

#[test]
fn a_page_is_read_by_the_program_beside() {
    let (answer, said) = fetched_by(Path::new(env!("CARGO_BIN_EXE_bailiwick")));
    let page = &answer["structuredContent"];
    assert_eq!((&page["kind"], &page["title"]), (&json!("article"), &json!("A page")), "{answer}");
    assert!(page["markdown"].as_str().unwrap().contains("Words of a page."), "{answer}");
    assert_eq!(page["reader"], "confined", "{answer}");
    assert!(!said.contains("bailiwick-page"), "{said}");
}

#[test]
fn the_reader_of_pages_sees_nothing_of_the_host_and_hears_the_page() {
    let secret = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(secret.path(), "secret\n").unwrap();
    let script = format!(
        "#!/bin/sh\nread page\ncase $page in *Words*) ;; *) exit 1 ;; esac\nread said < {} || said=nothing\n\
         printf '{{\"kind\":\"text\",\"title\":\"%s\",\"markdown\":\"%s\"}}' \"$1\" \"$said\"\n",
        secret.path().display()
    );
    let (answer, _) = fetched(Some(&script));
    let page = &answer["structuredContent"];
    assert_eq!((&page["kind"], &page["markdown"]), (&json!("text"), &json!("nothing")), "{answer}");
    assert!(page["title"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{answer}");
}

#[test]
fn without_a_reader_a_page_comes_as_its_source_and_a_broken_one_is_said() {
    let (answer, said) = fetched(None);
    let page = &answer["structuredContent"];
    assert_eq!((&page["kind"], &page["reader"]), (&json!("source"), &json!("none")), "{answer}");
    assert!(page["markdown"].as_str().unwrap().contains("<p>Words of a page.</p>"), "{answer}");
    assert!(said.contains("`bailiwick-page` is not beside this program"), "{said}");
    for broken in ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho no page\n", "#!/nonexistent\n"] {
        let (answer, _) = fetched(Some(broken));
        assert_eq!(answer["isError"], true, "{broken}: {answer}");
        assert!(answer["content"][0]["text"].as_str().unwrap().contains("cannot be read"), "{answer}");
    }
}

/// Doubles a text until it has a gigabyte, which takes more than two, and then says so.
#[test]
fn the_reader_of_pages_cannot_fill_the_memory() {
    let script = |times: u32| {
        format!(
            "#!/bin/sh\nx=0123456789abcdef\ni=0\nwhile [ $i -lt {times} ]; do x=$x$x; i=$((i+1)); done\n\
             printf '{{\"kind\":\"text\",\"title\":\"%s\",\"markdown\":\"made\"}}' ${{#x}}\n"
        )
    };
    let (little, _) = fetched(Some(&script(10)));
    assert_eq!(little["structuredContent"]["title"], "16384", "{little}");
    let (much, _) = fetched(Some(&script(26)));
    assert_eq!(much["isError"], true, "{much}");
}

#[test]
fn the_reader_says_how_it_is_used_and_what_it_cannot_read() {
    let said = |args: &[&str], page: &[u8]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bailiwick-page"));
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(page); // one that only says how it is used does not listen
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let (code, help) = said(&["--help"], b"");
    assert!(code == Some(0) && help.starts_with("usage: bailiwick-page URL"), "{help}");
    for wrong in [&[][..], &["--unknown"], &["http://a.test/", "more"]] {
        assert_eq!(said(wrong, b""), (Some(2), help.clone()), "{wrong:?}");
    }
    assert_eq!(said(&["http://a.test/"], b"\xff").0, Some(3));
    let (code, page) = said(&["http://a.test/"], b"<title>T</title><p>Words.</p>");
    assert_eq!((code, &*page), (Some(0), r#"{"kind":"article","title":"T","markdown":"Words."}"#));
}

/// A text that only the tables of an HTML parser have, and one that only the conformance fixture says.
#[test]
fn the_command_itself_has_neither_an_html_parser_nor_the_fixture() {
    let has = |program: &str, text: &str| {
        std::fs::read(program).unwrap().windows(text.len()).any(|bytes| bytes == text.as_bytes())
    };
    for (companion, text) in [
        (env!("CARGO_BIN_EXE_bailiwick-page"), "CounterClockwiseContourIntegral"),
        (env!("CARGO_BIN_EXE_bailiwick-fixture"), "This is a simple text response for testing."),
    ] {
        assert!(has(companion, text), "`{text}` proves nothing");
        assert!(!has(env!("CARGO_BIN_EXE_bailiwick"), text), "{text}");
    }
}

#[test]
fn names_are_those_that_the_command_line_gives() {
    let (home, at) = (home(), page());
    let cap = format!("net:connect:page.test:{}?blockPrivate=false", at.port());
    let args = ["--cap", &cap, "--cap", "exec:spawn:bash", "--hosts", "page.test=127.0.0.1"];
    // A name server that never answers: the name is not asked for.
    let args = [&args[..], &["--dns", "127.0.0.1:9"]].concat();
    let mut served = Served::spawned(super::command(&home, &args), home);
    let url = format!("http://page.test:{}/", at.port());
    let params = json!({ "name": "web_fetch", "arguments": { "url": url } });
    let answer = served.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
    assert_eq!(answer["result"]["structuredContent"]["title"], "A page", "{answer}");
    let script = format!(
        "exec 3<>/dev/tcp/page.test/{0} && printf 'GET / HTTP/1.1\\r\\nHost: page.test:{0}\\r\\n\\r\\n' >&3 && read -r line <&3 && echo \"$line\"",
        at.port()
    );
    let answer = served.shell(2, json!({ "program": "bash", "args": ["-c", script] }));
    let said = answer["result"]["structuredContent"]["stdout"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(said.starts_with("HTTP/1.1 200 OK"), "{answer}");
}
