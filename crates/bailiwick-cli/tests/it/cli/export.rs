//! `bailiwick export` from outside: what goes to stdout, to a collector and nowhere.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;

use bailiwick_journal::{Journal, Options};
use bailiwick_testkit::journal::{event, session};

use super::{Ran, done, root};

/// A home with a journal of one event.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let journal = Journal::open(&home.path().join("journal"), session("demo"), Options::default()).unwrap();
    journal.append(event("curl \u{202e}x")).unwrap();
    journal.close().unwrap();
    home
}

fn export(home: &Path, args: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bailiwick"));
    command.arg("export").args(args).arg("--dir").arg(home.join("journal"));
    command.env_clear().env("HOME", home).env("OTLP_AUTH", "Bearer of-the-environment").current_dir(home);
    done(command.output().unwrap())
}

#[test]
fn json_lines_come_from_the_companion_and_a_cursor_goes_on() {
    let home = home();
    for _ in 0..2 {
        let ran = export(home.path(), &["--format", "json-lines"]);
        assert_eq!(ran.exit, 0, "{}", ran.err);
        let line: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((&line["id"], &line["reason"]), (&"demo:0".into(), &"curl \u{202e}x".into()));
        assert!(!ran.out.contains('\u{202e}'), "stdout has no cursor, and no text that turns others");
    }
    for expected in [1, 0] {
        let cursor = home.path().join("own").join("cursor.json");
        let ran = export(home.path(), &["--format", "json-lines", "--cursor", cursor.to_str().unwrap()]);
        assert_eq!((ran.exit, ran.out.lines().count()), (0, expected), "{}", ran.err);
    }
}

/// Answers 200 to the requests that come, and hands out their texts.
fn collector() -> (u16, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, (send, taken)) = (listener.local_addr().unwrap().port(), channel());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut bytes, mut buffer) = (stream.unwrap(), Vec::new(), [0; 4096]);
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                bytes.extend_from_slice(&buffer[..count]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| {
                    line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned)
                });
                let whole = head.len() + 4 + length.and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
                if bytes.len() < whole {
                    continue;
                }
                drop(send.send(format!("{head}\n{body}")));
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    .unwrap();
                break;
            }
        }
    });
    (port, taken)
}

#[test]
fn a_collector_of_the_settings_gets_the_header_of_its_source() {
    let home = home();
    let (port, taken) = collector();
    let config = home.path().join(".config/bailiwick");
    std::fs::create_dir_all(&config).unwrap();
    let text = format!(
        "[export.otlp]\nendpoint = 'http://127.0.0.1:{port}'\nheaders = {{ authorization = 'env:OTLP_AUTH' }}\n"
    );
    std::fs::write(config.join("config.toml"), text).unwrap();
    let ran = export(home.path(), &["--format", "otlp"]);
    assert_eq!(ran.exit, 0, "{}", ran.err);
    let requests: Vec<String> = taken.try_iter().collect();
    let paths: Vec<&str> = requests.iter().map(|request| request.split(' ').nth(1).unwrap()).collect();
    assert_eq!(paths, ["/v1/logs", "/v1/traces", "/v1/metrics"]);
    assert!(
        requests.iter().all(|request| request.contains("authorization: Bearer of-the-environment")),
        "{requests:?}"
    );
    // Headers go to the collector they were written for, and a second run has nothing to send.
    let (other, elsewhere) = collector();
    let journal = Journal::open(&home.path().join("journal"), session("more"), Options::default()).unwrap();
    journal.append(event("more")).unwrap();
    journal.close().unwrap();
    let ran = export(home.path(), &["--format", "otlp", "--endpoint", &format!("http://127.0.0.1:{other}")]);
    assert_eq!(ran.exit, 0, "{}", ran.err);
    assert!(elsewhere.try_iter().all(|request| !request.contains("authorization")));
    assert_eq!(taken.try_iter().count(), 0);
}

#[test]
fn what_would_be_read_on_the_way_or_cannot_be_sent_is_refused() {
    let home = home();
    let long = ["--format", "otlp", "--endpoint"];
    for (args, exit, why) in [
        (vec!["http://collector.example"], 2, "not encrypted"),
        (vec!["http://10.0.0.1:4318"], 2, "not encrypted"),
        (vec!["https://me:secret@collector.example"], 2, "user name"),
        (vec!["https://collector.example/?x"], 2, "no query"),
        (vec!["https://collector.example", "--header", "authorization=Bearer x"], 3, "names no source"),
        (vec!["https://collector.example", "--header", "authorization=env:ABSENT"], 3, "authorization"),
        (vec!["http://127.0.0.1:1", "--out", "x"], 2, "--out"),
        (vec!["http://127.0.0.1:1"], 5, "cannot connect"),
    ] {
        let ran = export(home.path(), &[&long[..], &args[..]].concat());
        assert_eq!(ran.exit, exit, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(why), "{args:?}: {}", ran.err);
        assert!(!ran.err.contains("Bearer"), "a value is never shown: {}", ran.err);
    }
    let ran = export(home.path(), &["--format", "otlp"]);
    assert!(ran.exit == 2 && ran.err.contains("[export.otlp]"), "{}", ran.err);
}

/// The Pod of `deploy/` has what is compiled for its manifest.
#[test]
fn the_server_of_the_deployment_has_the_compiled_security_context() {
    let text = std::fs::read_to_string(root().join("deploy/kubernetes/server.yaml")).unwrap();
    let manifest: String = text
        .lines()
        .skip_while(|line| !line.ends_with("notes.toml: |"))
        .skip(1)
        .take_while(|line| *line != "---")
        .map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line)))
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("notes.toml");
    std::fs::write(&file, manifest).unwrap();
    let file = file.to_str().unwrap();
    let compiled = super::run(&[
        "compile",
        file,
        "--target",
        "kubernetes",
        "--format",
        "native",
        "--require",
        "net=mediated",
    ]);
    let plain = |text: &str| {
        text.lines().map(|line| line.trim().trim_start_matches("- ").replace('\'', "")).collect::<Vec<_>>()
    };
    let own = plain(&text);
    let wanted = [
        "automountServiceAccountToken: false",
        "runAsNonRoot: true",
        "allowPrivilegeEscalation: false",
        "readOnlyRootFilesystem: true",
        "privileged: false",
        "type: RuntimeDefault",
        "ingress: []",
        "egress: []",
    ];
    let said = plain(&compiled.out);
    for line in wanted {
        assert!(
            said.iter().any(|own| own == line),
            "{line} is not compiled:\n{}{}",
            compiled.out,
            compiled.err
        );
        assert!(own.iter().any(|own| own == line), "{line} is not in the deployment");
    }
}
