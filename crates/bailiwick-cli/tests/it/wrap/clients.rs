//! Clients that others have written, with a server behind the prefix alone: its tools are listed, a granted call is answered,
//! and a denial arrives with its reason.

use std::path::{Path, PathBuf};
use std::process::Command;

use bailiwick_testkit::skip;
use serde_json::Value;

use super::{World, npm_server};

const SERVER: &str = "@modelcontextprotocol/server-filesystem";
const MISSING: &str = "the servers and clients are not in the cache that scripts/test fills";

/// Where `scripts/test` installs things for tests.
fn cached(path: &str) -> Option<PathBuf> {
    let cache = PathBuf::from(std::env::var_os("HOME")?).join(".cache/bailiwick");
    Some(cache.join(path)).filter(|path| path.exists())
}

/// A directory that is granted, a file in it, and one beside it.
struct Notes {
    world: World,
    server: PathBuf,
}

impl Notes {
    fn new() -> Option<Self> {
        let modules = npm_server(SERVER)?.ancestors().find(|dir| dir.ends_with("node_modules"))?.to_owned();
        let world = World::new();
        std::fs::create_dir(world.path("notes")).expect("a directory");
        world.write("notes/a.txt", "remember the milk\n");
        world.write("secret.txt", "open sesame\n");
        Some(Self { world, server: modules.join(".bin/mcp-server-filesystem") })
    }

    /// The wrapped server as words of a command line.
    fn wrapped(&self) -> Vec<PathBuf> {
        let program = bailiwick_testkit::reachable_program(env!("CARGO_BIN_EXE_bailiwick"));
        [program.as_ref(), Path::new("wrap"), Path::new("--"), &self.server, &self.world.path("notes")]
            .map(Path::to_owned)
            .to_vec()
    }

    /// A client's program with what it has around it.
    fn client(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.world.0.path()).env("PATH", "/usr/bin:/bin");
        command.current_dir(self.world.0.path());
        command
    }

    fn paths(&self) -> [PathBuf; 2] {
        [self.world.path("notes/a.txt"), self.world.path("secret.txt")]
    }
}

fn said(mut command: Command) -> Value {
    let output = command.output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{errors}", String::from_utf8_lossy(&output.stdout)))
}

fn is_granted(answer: &Value) {
    assert!(
        answer["content"][0]["text"].as_str().is_some_and(|text| text.contains("remember the milk")),
        "{answer}"
    );
    assert_ne!(answer["isError"], true, "{answer}");
}

fn is_denied(answer: &Value) {
    assert_eq!(answer["isError"], true, "{answer}");
    let text = answer["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("outside declared filesystem policy"), "{answer}");
    assert_eq!(answer["_meta"]["dev.bailiwick/decision"]["code"], "argument-outside-policy", "{answer}");
}

fn is_held(said: &Value) {
    let tools = said["tools"].as_array().expect("tools");
    assert!(tools.len() > 10 && tools.contains(&"read_text_file".into()), "{said}");
    is_granted(&said["granted"]);
    is_denied(&said["denied"]);
}

fn with_python_client(mode: &str) {
    let Some((notes, python)) = Notes::new().zip(cached("validators/bin/python")) else {
        return skip(MISSING);
    };
    let mut client = notes.client(&python);
    client.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/wrap/clients/client.py")).arg(mode);
    client.args(notes.paths()).args(notes.wrapped());
    is_held(&said(client));
}

#[test]
fn the_python_client_of_the_legacy_era() {
    with_python_client("legacy");
}

#[test]
fn the_python_client_that_finds_out_the_era() {
    with_python_client("auto");
}

#[test]
fn the_typescript_client() {
    let sdk = cached("servers/node/node_modules/@modelcontextprotocol/sdk");
    let Some((notes, sdk)) = Notes::new().zip(sdk) else { return skip(MISSING) };
    let mut client = notes.client(Path::new("/usr/bin/node"));
    client.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/wrap/clients/client.mjs")).arg(sdk);
    client.args(notes.paths()).args(notes.wrapped());
    is_held(&said(client));
}

#[test]
fn the_inspectors_command_line() {
    let program = cached("servers/clients/node_modules/.bin/mcp-inspector");
    let Some((notes, inspector)) = Notes::new().zip(program) else { return skip(MISSING) };
    // It takes `--` for its own, twice.
    let words: Vec<PathBuf> = notes.wrapped();
    let (ours, server) = words.split_at(2);
    let ask = |method: &[&str]| {
        let mut client = notes.client(Path::new("/usr/bin/node"));
        client.arg(&inspector).arg("--cli").args(method).args(ours).args(["--", "--"]).args(server);
        said(client)
    };
    let listed = ask(&["--method", "tools/list"]);
    let tools = listed["tools"].as_array().expect("tools");
    assert!(tools.len() > 10 && tools.iter().any(|tool| tool["name"] == "read_text_file"), "{listed}");
    let [inside, outside] = notes.paths().map(|path| format!("path={}", path.display()));
    let call =
        |path: &str| ask(&["--tool-name", "read_text_file", "--tool-arg", path, "--method", "tools/call"]);
    is_granted(&call(&inside));
    is_denied(&call(&outside));
}
