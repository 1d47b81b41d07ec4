//! `bailiwick ps` and `bailiwick logs`: what runs now, what it did, what it wrote; and nothing of what was killed.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{PATIENCE, World, Wrapped, call, text};

const MANIFEST: &str = "name = 'shelf'\nversion = '1'\n\
                        [[tools]]\nname = 'look'\ncapabilities = ['fs:read:/srv/shelf/**']\n";

const SCRIPT: &str = r#"*notifications*) ;; *initialize*) printf '{"jsonrpc":"2.0","id":0,"result":{}}\n';; *) echo "said $((n=n+1))" >&2; printf '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"ran"}]}}\n';;"#;

impl World {
    /// The servers that `ps` shows.
    fn shown(&self) -> Vec<Value> {
        let done = self.run(&["ps", "--format", "json"]);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let all: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        all["servers"].as_array().expect("a list").clone()
    }

    /// Waits until `ps` shows one server as it should be.
    fn shows(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let shown = self.shown();
            match shown.as_slice() {
                [one] if is_so(one) => return one.clone(),
                _ => assert!(Instant::now() < end, "{shown:?}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn left(&self) -> usize {
        self.path(".local/state/bailiwick/running").read_dir().map_or(0, Iterator::count)
    }
}

fn calls(wrapped: &mut Wrapped) {
    wrapped.initialize();
    for _ in 0..3 {
        assert_eq!(text(&wrapped.ask(&call(1, "look", &json!({})))), "ran");
    }
    // Denied by the gate, and one message that can be read in two ways.
    wrapped.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "look", "arguments": { "path": "/etc/shadow" } } }));
    wrapped.ask(&json!({ "jsonrpc": "2.0", "id": 1, "Method": "tools/call" }));
}

#[test]
fn a_server_is_shown_while_it_runs_and_what_it_did() {
    let world = World::new();
    assert!(world.shown().is_empty());
    let mut wrapped = world.wrap_script(MANIFEST, &[], SCRIPT);
    calls(&mut wrapped);
    let shown = world.shows(|one| one["calls"] == 4 && one["denials"] == 2);
    assert_eq!((&shown["name"], &shown["era"]), (&json!("shelf"), &json!("legacy")), "{shown}");
    assert_eq!(shown["authority"], json!(["fs:read:/srv/shelf/**"]));
    assert_eq!(shown["pid"], json!(wrapped.child.id()));
    assert!(
        shown["memory"]["server"].as_u64() > Some(100_000)
            && shown["memory"]["wrap"].as_u64() > Some(100_000),
        "{shown}"
    );
    assert!(world.recorded().contains(shown["session"].as_str().expect("a session")));
    let said = String::from_utf8(world.run(&["ps"]).stdout).expect("text");
    assert!(
        said.contains("shelf  pid ")
            && said.contains("4 calls, 2 denied")
            && said.contains("\n  fs:read:/srv/shelf/**\n"),
        "{said}"
    );
    drop(wrapped.end());
    assert!(world.shown().is_empty() && world.left() == 0, "nothing is left of one that ended");
}

#[test]
fn nothing_is_shown_of_one_that_was_killed() {
    let world = World::new();
    let mut wrapped = world.wrap_script(MANIFEST, &[], SCRIPT);
    wrapped.initialize();
    world.shows(|one| one["era"] == "legacy");
    wrapped.child.kill().expect("it runs");
    wrapped.child.wait().expect("it ends");
    assert_eq!(world.left(), 1, "the control: it left its file behind");
    // A live process of another start has the number of one that is gone.
    let running = world.path(".local/state/bailiwick/running");
    let old = running.read_dir().expect("a directory").next().expect("a file").expect("a file").path();
    let text = std::fs::read_to_string(&old).expect("text");
    let taken = running.join(format!("{}-0123456789ab-1.json", std::process::id()));
    std::fs::write(taken, text).expect("a file");
    assert!(world.shown().is_empty());
    assert_eq!(world.left(), 0, "what it left is gone");
}

#[test]
fn a_log_is_shown_from_its_end_and_followed() {
    let world = World::new();
    assert_eq!(world.run(&["logs", "shelf"]).status.code(), Some(1));
    let mut wrapped = world.wrap_script(MANIFEST, &[], SCRIPT);
    calls(&mut wrapped);
    let log = |options: &[&str]| {
        let done = world.run(&[&["logs", "shelf"], options].concat());
        String::from_utf8(done.stdout).expect("text")
    };
    let end = Instant::now() + PATIENCE;
    while log(&[]) != "said 1\nsaid 2\nsaid 3\n" {
        assert!(Instant::now() < end, "{}", log(&[]));
    }
    assert_eq!(log(&["--lines", "2"]), "said 2\nsaid 3\n");
    assert_eq!(log(&["-n", "0"]), "");
    let mut following = world.bailiwick(&["logs", "shelf", "--follow", "--lines", "1"]);
    let mut following = following.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(following.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "said 3");
    wrapped.ask(&call(1, "look", &json!({})));
    assert_eq!(lines.next().expect("a line").expect("text"), "said 4");
    following.kill().expect("it runs");
    following.wait().expect("it ends");
    drop(wrapped.end());
    let unknown = world.run(&["logs", "../shelf"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("there are: shelf"));
}
