//! Other servers that people use, in a network of the test's own, bare and behind the prefix alone.
//!
//! What needs an account or a cluster is started, its tools are listed, and a call fails with the server's own words. What
//! reads pages reads one of a host that the test plays.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;

use bailiwick_testkit::{skip, test_name};

use super::client::Era;
use super::table::{NODE, PYTHON, Server};
use super::{World, client, differences, directory, prefixed};
use crate::network::in_world;
use crate::programs::services::{Service, postgres};

/// A public address that the test answers for, with one page.
const HOST: &str = "93.184.216.34:80";
const PAGE: &str =
    "<html><head><title>Notes</title></head><body><h1>Milk</h1><button>Buy it</button></body></html>";

/// A server, and the calls that cannot work here.
struct Other {
    server: Server,
    /// Calls that fail without an account or a network, and what they say then, bare and wrapped.
    failing: &'static [(&'static str, &'static str, &'static str)],
    /// Calls that need a person's approval.
    asking: &'static [(&'static str, &'static str)],
}

const CONTEXT7: Other = Other {
    server: Server {
        name: "context7",
        place: "others/node_modules/.bin/context7-mcp",
        eras: &[Era::Legacy, Era::Modern],
        ..NODE
    },
    failing: &[
        ("resolve-library-id", r#"{"query":"react","libraryName":"react"}"#, "fetch failed"),
        ("query-docs", r#"{"libraryId":"/a/b","query":"x"}"#, "fetch failed"),
    ],
    asking: &[],
};

const FIRECRAWL: Other = Other {
    server: Server { name: "firecrawl", place: "others/node_modules/.bin/firecrawl-mcp", ..NODE },
    failing: &[("firecrawl_scrape", r#"{"url":"https://example.com"}"#, "fetch failed")],
    asking: &[],
};

const KUBERNETES: Other = Other {
    server: Server {
        name: "kubernetes",
        place: "others/node_modules/.bin/mcp-server-kubernetes",
        calls: &[("ping", "{}"), ("kubectl_context", r#"{"operation":"list"}"#)],
        ..NODE
    },
    failing: &[("kubectl_get", r#"{"resourceType":"pods"}"#, "Failed to execute kubectl get")],
    asking: &[
        ("kubectl_delete", r#"{"resourceType":"pod","name":"a"}"#),
        ("kubectl_generic", r#"{"command":"get"}"#),
    ],
};

const NOTION: Other = Other {
    server: Server { name: "notion", place: "others/node_modules/.bin/notion-mcp-server", ..NODE },
    failing: &[("API-get-self", "{}", "-32603")],
    asking: &[("API-delete-a-block", r#"{"block_id":"a"}"#)],
};

const DUCKDUCKGO: Other = Other {
    server: Server {
        name: "duckduckgo",
        place: "duckduckgo/bin/duckduckgo-mcp-server",
        calls: &[
            ("fetch_content", r#"{"url":"http://93.184.216.34/page"}"#),
            ("expand_link", r#"{"token":"none"}"#),
        ],
        ..PYTHON
    },
    failing: &[("search", r#"{"query":"milk"}"#, "No results were found")],
    asking: &[],
};

const POSTGRES: Other = Other {
    server: Server {
        name: "postgres",
        place: "others/node_modules/.bin/mcp-server-postgres",
        args: &["postgresql://demo@127.0.0.1:5432/postgres"],
        calls: &[
            ("query", r#"{"sql":"SELECT 6 * 7 AS answer"}"#),
            ("query", r#"{"sql":"CREATE TABLE t (a integer)"}"#),
            ("query", r#"{"sql":"SELECT no_such_column"}"#),
        ],
        ..NODE
    },
    failing: &[],
    asking: &[],
};

/// With Debian's browser, which root has to start without its own sandbox.
const PLAYWRIGHT: Other = Other {
    server: Server {
        name: "playwright",
        place: "others/node_modules/.bin/playwright-mcp",
        args: &[
            "--headless",
            "--isolated",
            "--no-sandbox",
            "--executable-path",
            "/usr/bin/chromium",
            "--output-dir",
            "{w}/data",
        ],
        calls: &[
            ("browser_navigate", r#"{"url":"http://93.184.216.34/page"}"#),
            ("browser_snapshot", "{}"),
            ("browser_resize", r#"{"width":400,"height":300}"#),
            ("browser_click", r#"{"element":"the button","target":"e3"}"#),
            ("browser_hover", r#"{"element":"the button","target":"e3"}"#),
            ("browser_press_key", r#"{"key":"Tab"}"#),
            ("browser_network_requests", r#"{"static":true}"#),
            ("browser_tabs", r#"{"action":"list"}"#),
            ("browser_take_screenshot", "{}"),
            ("browser_navigate", r#"{"url":"file:///etc/passwd"}"#),
            ("browser_close", "{}"),
        ],
        has_numbers: true,
        ..NODE
    },
    failing: &[],
    asking: &[("browser_run_code_unsafe", r#"{"code":"async () => 1"}"#)],
};

/// Answers every request at the host with the same page.
fn serve_page() {
    let listener = TcpListener::bind(HOST).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                // Whatever was asked, but the permission for robots.
                let read = stream.read(&mut request).unwrap_or(0);
                let asked = String::from_utf8_lossy(&request[..read]).into_owned();
                let (status, page) =
                    if asked.starts_with("GET /page") { ("200 OK", PAGE) } else { ("404 Not Found", "") };
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                    page.len()
                );
                drop(stream.write_all(answer.as_bytes()));
            });
        }
    });
}

/// What the answers to single calls are, in the server's own era.
fn answers(
    world: &World,
    server: &Server,
    command: std::process::Command,
    calls: Vec<(&str, String)>,
) -> Vec<String> {
    let mut command = command;
    world.prepare();
    command.args(server.args.iter().map(|word| world.fill(word)));
    client::talk(command, Era::Legacy, calls).calls
}

/// What is wrong with a server behind its shipped manifest.
fn wrong(directory: &Path, other: &Other) -> Vec<String> {
    let server = &other.server;
    let mut wrong: Vec<String> =
        server.eras.iter().flat_map(|era| differences(directory, server, *era, &[])).collect();
    let (world, entry) = (World::new(), server.entry(directory));
    let failing = || other.failing.iter().map(|(tool, arguments, _)| (*tool, (*arguments).to_owned()));
    let bare = answers(&world, server, world.command(&entry), failing().collect());
    let asking = other.asking.iter().map(|(tool, arguments)| (*tool, (*arguments).to_owned()));
    let wrapped = answers(&world, server, prefixed(&world, &[], &entry), failing().chain(asking).collect());
    for ((tool, _, says), (bare, wrapped)) in other.failing.iter().zip(bare.iter().zip(&wrapped)) {
        if !bare.contains(says) || !wrapped.contains(says) {
            wrong.push(format!("{} {tool}\n  bare {bare}\n  wrapped {wrapped}", server.name));
        }
    }
    for ((tool, _), said) in other.asking.iter().zip(wrapped.iter().skip(other.failing.len())) {
        if !said.contains("bailiwick approve") {
            wrong.push(format!("{} {tool} is not asked about: {said}", server.name));
        }
    }
    wrong
}

/// Where the servers are, if this one is there too.
fn place_of(server: &Server) -> Option<std::path::PathBuf> {
    let found = directory().filter(|directory| server.entry(directory).exists());
    if found.is_none() {
        skip(&format!("{} is not in the cache that scripts/test fills", server.name));
    }
    found
}

fn check(test: &str, other: &Other) {
    let Some(directory) = place_of(&other.server) else { return };
    if !in_world(test) {
        return;
    }
    serve_page();
    let wrong = wrong(&directory, other);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn context7_answers_as_bare() {
    check(test_name!(), &CONTEXT7);
}

#[test]
fn firecrawl_answers_as_bare() {
    check(test_name!(), &FIRECRAWL);
}

#[test]
fn kubernetes_answers_as_bare_and_asks_before_it_deletes() {
    check(test_name!(), &KUBERNETES);
}

#[test]
fn notion_answers_as_bare_and_asks_before_it_deletes() {
    check(test_name!(), &NOTION);
}

#[test]
fn duckduckgo_answers_as_bare() {
    check(test_name!(), &DUCKDUCKGO);
}

#[test]
fn postgres_answers_as_bare() {
    if postgres().is_none() {
        return skip("PostgreSQL is not installed");
    }
    let Some(directory) = place_of(&POSTGRES.server) else { return };
    if !in_world(test_name!()) {
        return;
    }
    let _database = Service::database_at(5432);
    let wrong = wrong(&directory, &POSTGRES);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn playwright_reads_pages_as_bare_and_asks_before_it_runs_code() {
    if !Path::new("/usr/bin/chromium").exists() {
        return skip("chromium is not installed; scripts/test installs it");
    }
    check(test_name!(), &PLAYWRIGHT);
}
