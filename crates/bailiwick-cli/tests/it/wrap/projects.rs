//! Servers in the user's own project: their code is found and is read-only, whatever else the manifest grants there, and what
//! is secret beside it stays closed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use bailiwick_testkit::skip;
use serde_json::{Value, json};

use super::{World, Wrapped, call, text};

/// Answers calls with what it imported, and with whether it could change its own code and read what is secret beside it.
const NODE_SERVER: &str = r#"
import { createInterface } from "node:readline";
import { readFileSync, appendFileSync } from "node:fs";
import { own } from "../lib/own.js";
import dependency from "dependency";
import { shared } from "@work/shared";
const attempt = (act) => { try { act(); return "yes"; } catch { return "no"; } };
const tried = (args) => [
  `code ${own} ${dependency} ${shared}`,
  `changes its code: ${attempt(() => appendFileSync(new URL("../lib/own.js", import.meta.url), "\n"))}`,
  `changes a module: ${attempt(() => appendFileSync(new URL("../node_modules/dependency/index.js", import.meta.url), "\n"))}`,
  `reads secrets: ${attempt(() => readFileSync(new URL("../.env", import.meta.url)))}`,
  `writes data: ${attempt(() => appendFileSync(args.file, "x"))}`,
].join("; ");
const answers = {
  initialize: (params) => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "own", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "look", inputSchema: { type: "object" } }] }),
  "tools/call": (params) => ({ content: [{ type: "text", text: tried(params.arguments) }] }),
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method](params) }));
});
"#;

/// The same in Python.
const PYTHON_SERVER: &str = r#"
import json, os, sys
from pkg.own import OWN

HERE = os.path.dirname(os.path.abspath(__file__))

def attempt(path, mode):
    try:
        open(path, mode).close()
        return "yes"
    except OSError:
        return "no"

def tried(arguments):
    return "; ".join([
        f"code {OWN}",
        f"changes its code: {attempt(HERE + '/own.py', 'a')}",
        f"reads secrets: {attempt(HERE + '/../.env', 'r')}",
        f"writes data: {attempt(arguments['file'], 'a')}",
    ])

def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = {
            "initialize": lambda: {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "own", "version": "1"}},
            "tools/list": lambda: {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
            "tools/call": lambda: {"content": [{"type": "text", "text": tried(message["params"]["arguments"])}]},
        }[message["method"]]()
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)

if __name__ == "__main__":
    main()
"#;

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    std::fs::write(path, text).expect("a file");
}

/// A workspace with a project of node in it.
fn node_project(world: &World) -> PathBuf {
    let app = world.path("work/app");
    write(&app.join("package.json"), r#"{"type":"module"}"#);
    write(&app.join("dist/index.js"), NODE_SERVER);
    write(&app.join("lib/own.js"), "export const own = 'mine';\n");
    write(&app.join("node_modules/dependency/index.js"), "module.exports = 'theirs';\n");
    write(&app.join(".env"), "TOKEN=hush\n");
    write(&app.join("data/a.txt"), "");
    let shared = world.path("work/shared");
    write(&shared.join("package.json"), r#"{"name":"@work/shared","type":"module","main":"main.js"}"#);
    write(&shared.join("main.js"), "export const shared = 'ours';\n");
    let modules = world.path("work/node_modules/@work");
    std::fs::create_dir_all(&modules).expect("a directory");
    std::os::unix::fs::symlink("../../shared", modules.join("shared")).expect("a link");
    app
}

fn manifest(lines: &str) -> String {
    format!("name = 'own'\nversion = '1'\n[[tools]]\nname = 'look'\ncapabilities = [{lines}]\n")
}

/// What a server of the project says of itself, started there with these words.
fn looks(world: &World, project: &Path, manifest: Option<&str>, words: &[&str]) -> String {
    let mut command = match manifest {
        None => {
            let (program, rest) = words.split_first().expect("a program");
            let mut command = Command::new(program);
            command.args(rest);
            command
        }
        Some(manifest) => {
            let name = bailiwick_policy::digest::Digest::sha256(format!("{manifest}{words:?}").as_bytes());
            let file = world.write(&format!("{name}.toml"), manifest);
            let mut command = world.bailiwick(&["wrap", "--manifest"]);
            command.arg(file).arg("--").args(words);
            command
        }
    };
    command.current_dir(project);
    let mut wrapped = Wrapped::spawned(command);
    let opened = wrapped.initialize();
    assert_eq!(opened["result"]["serverInfo"]["name"], "own", "{words:?}: {opened}\n{}", wrapped.end().1);
    let file = project.join("data/a.txt");
    let said = text(&wrapped.ask(&call(1, "look", &json!({ "file": file }))));
    drop(wrapped.end());
    said
}

#[test]
fn a_server_of_node_in_the_users_project_finds_its_code_and_cannot_change_it() {
    if !Path::new("/usr/bin/node").is_file() {
        return skip("node is not in /usr/bin");
    }
    let world = World::new();
    let app = node_project(&world);
    let closed = "code mine theirs ours; changes its code: no; changes a module: no; reads secrets: no";
    assert_eq!(
        looks(&world, &app, Some(&manifest("")), &["node", "dist/index.js"]),
        format!("{closed}; writes data: no")
    );
    // All of the project is granted: what is code of the server stays as it is all the same.
    let all = manifest(&format!("'fs:read,write:{}/**'", app.display()));
    assert_eq!(
        looks(&world, &app, Some(&all), &["node", "dist/index.js"]),
        closed.replace("reads secrets: no", "reads secrets: yes; writes data: yes")
    );
    let bare = looks(&world, &app, None, &["/usr/bin/node", "dist/index.js"]);
    assert_eq!(bare, closed.replace(": no", ": yes") + "; writes data: yes", "it works bare");
}

#[test]
fn servers_of_python_in_the_users_project_find_their_code_and_cannot_change_it() {
    if !Path::new("/usr/bin/python3").is_file() {
        return skip("there is no /usr/bin/python3");
    }
    let world = World::new();
    let app = world.path("app");
    write(&app.join("pyproject.toml"), "[project]\nname = 'pkg'\nversion = '1'\n");
    write(&app.join("pkg/__init__.py"), "");
    write(&app.join("pkg/__main__.py"), PYTHON_SERVER);
    write(&app.join("pkg/own.py"), "OWN = 'mine'\n");
    write(&app.join("server.py"), "from pkg.__main__ import main\nmain()\n");
    write(&app.join(".env"), "TOKEN=hush\n");
    write(&app.join("data/a.txt"), "");
    let made = Command::new("/usr/bin/python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(app.join(".venv"))
        .output();
    if !made.as_ref().is_ok_and(|made| made.status.success()) {
        return skip("the system's Python makes no virtual environment");
    }
    // As pip installs a project where it lies.
    let lib =
        std::fs::read_dir(app.join(".venv/lib")).expect("a directory").flatten().next().expect("a version");
    let packages = lib.path().join("site-packages");
    write(&packages.join("pkg.pth"), &format!("{}\n", app.display()));
    let record = json!({ "url": format!("file://{}", app.display()), "dir_info": { "editable": true } });
    write(&packages.join("pkg-1.dist-info/direct_url.json"), &record.to_string());
    let program = app.join(".venv/bin/notes-server");
    write(
        &program,
        &format!("#!{}/.venv/bin/python\nfrom pkg.__main__ import main\nmain()\n", app.display()),
    );
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it is ours");

    let closed = "code mine; changes its code: no; reads secrets: no";
    let all = manifest(&format!("'fs:read,write:{}/**'", app.display()));
    for words in [
        &[".venv/bin/python", "-m", "pkg"][..],
        &[".venv/bin/notes-server"],
        &["/usr/bin/python3", "server.py"],
        &["/usr/bin/python3", "-m", "pkg"],
    ] {
        let said = looks(&world, &app, Some(&manifest("")), words);
        assert_eq!(said, format!("{closed}; writes data: no"), "{words:?}");
        let said = looks(&world, &app, Some(&all), words);
        assert_eq!(said, closed.replace("secrets: no", "secrets: yes; writes data: yes"), "{words:?}");
    }
    let bare = looks(&world, &app, None, &[".venv/bin/notes-server"]);
    assert_eq!(bare, closed.replace(": no", ": yes") + "; writes data: yes", "it works bare");
}

#[test]
fn uv_run_is_refused_with_the_line_to_write() {
    let world = World::new();
    let file = world.write("own.toml", &manifest(""));
    let mut command = world.bailiwick(&["wrap", "--manifest"]);
    command.arg(file).args(["--", "uv", "run", "--directory", "/srv/notes", "notes-server", "--db", "x"]);
    let mut wrapped = Wrapped::spawned(command);
    let answer: Value = wrapped.initialize();
    let why = answer["result"]["instructions"].as_str().expect("instructions").to_owned();
    assert!(why.contains("`/srv/notes/.venv/bin/notes-server --db x`"), "{why}");
    assert_eq!(wrapped.end().0, Some(125));
}

#[test]
fn code_is_held_as_a_plain_user() {
    bailiwick_testkit::run_again_as_plain_user(
        "wrap::projects::a_server_of_node",
        &[env!("CARGO_BIN_EXE_bailiwick")],
    );
}
