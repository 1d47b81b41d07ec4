//! What no shipped manifest grants, tried in the sandbox that `wrap` makes for each of them.
//!
//! A probe takes the place of the server: it lies in a package of the same identity, is started with the arguments that the
//! manifest reads its variables from, and tries every act. The same probe, bare, succeeds with all of them.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use bailiwick_manifest::{Manifest, VariableSource};
use bailiwick_testkit::skip;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{World, Wrapped};
use crate::run::{eventually, processes};

const NODE: &str = "/usr/bin/node";
const PYTHON: &str = "/usr/bin/python3";

/// What a server may do, so that the probe is seen to run.
const ALLOWED: [&str; 2] = ["read own code", "read a granted file"];

/// Those whose programs start a shell themselves, so that it is there: git for hooks, browsers by a script.
const WITH_A_SHELL: [&str; 2] = ["git", "playwright"];

/// A place for one probe, and what answers on this host.
struct Stage {
    world: World,
    port: u16,
}

/// How a probe is started: its words, and the variables that its manifest reads.
struct Started {
    words: Vec<String>,
    variables: Vec<(String, String)>,
    code: PathBuf,
}

impl Stage {
    fn new() -> Self {
        let world = World::new();
        for dir in ["granted", ".ssh"] {
            std::fs::create_dir(world.path(dir)).unwrap();
        }
        for file in ["granted/a.txt", ".ssh/id_ed25519"] {
            world.write(file, "text\n");
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        answer(move || listener.accept().map(|(stream, _)| stream));
        for socket in ["out.sock", "granted/in.sock"] {
            let listener = UnixListener::bind(world.path(socket)).unwrap();
            answer(move || listener.accept().map(|(stream, _)| stream));
        }
        Self { world, port }
    }

    /// The probe as a package of this identity, started as its manifest expects it.
    fn probe(&self, manifest: &Manifest) -> Started {
        let identity = manifest.package().and_then(|package| package.identity.as_deref()).unwrap();
        let (registry, name) = identity.split_once(':').unwrap();
        let (code, mut words) = match registry {
            "npm" => self.npm(name),
            _ => self.pypi(name),
        };
        let mut variables = Vec::new();
        for variable in manifest.variables().values() {
            let place = if variable.is_parent() { "granted/a.txt" } else { "granted" };
            let place = self.text(place);
            match variable.source() {
                VariableSource::Argument { .. } => words.push(place),
                VariableSource::Flag(names) => words.extend([names[0].clone(), place]),
                VariableSource::Env(name) => variables.push((name.clone(), place)),
            }
        }
        Started { words, variables, code }
    }

    fn npm(&self, name: &str) -> (PathBuf, Vec<String>) {
        let package = self.world.path("node_modules").join(name);
        std::fs::create_dir_all(&package).unwrap();
        let said = json!({ "name": name, "version": "9.9.9" });
        std::fs::write(package.join("package.json"), said.to_string()).unwrap();
        let code = package.join("probe.js");
        self.fill(&code, &format!("#!{NODE}\n{}", include_str!("probes/probe.js")));
        std::fs::set_permissions(&code, std::fs::Permissions::from_mode(0o755)).unwrap();
        (code.clone(), vec![code.display().to_string()])
    }

    fn pypi(&self, name: &str) -> (PathBuf, Vec<String>) {
        let venv = self.world.path("venv");
        let made = Command::new(PYTHON).args(["-m", "venv", "--without-pip"]).arg(&venv).status();
        assert!(made.unwrap().success());
        let lib = std::fs::read_dir(venv.join("lib")).unwrap().next().unwrap().unwrap().path();
        let info = lib.join(format!("site-packages/{}-9.9.9.dist-info", name.replace('-', "_")));
        std::fs::create_dir_all(&info).unwrap();
        std::fs::write(info.join("entry_points.txt"), format!("[console_scripts]\n{name} = probe:main\n"))
            .unwrap();
        let code = venv.join("bin").join(name);
        let text = format!("#!{}\n{}", venv.join("bin/python").display(), include_str!("probes/probe.py"));
        self.fill(&code, &text);
        std::fs::set_permissions(&code, std::fs::Permissions::from_mode(0o755)).unwrap();
        (code.clone(), vec![code.display().to_string()])
    }

    fn fill(&self, code: &Path, text: &str) {
        let facts = json!({
            "granted": self.text("granted/a.txt"), "key": self.text(".ssh/id_ed25519"), "outside": self.text("outside.txt"),
            "planted": code.with_extension("planted").to_str(), "port": self.port, "word": self.word(),
            "socket": self.text("out.sock"), "granted_socket": self.text("granted/in.sock"),
        });
        std::fs::write(code, text.replace("FACTS", &facts.to_string())).unwrap();
    }

    fn text(&self, name: &str) -> String {
        self.world.path(name).display().to_string()
    }

    /// Part of the command line of everything that the probe starts.
    fn word(&self) -> String {
        self.text("")
    }

    /// What came of every act.
    fn told(&self, mut command: Command, started: &Started) -> (BTreeMap<String, String>, String) {
        command.envs(started.variables.iter().cloned()).env("UNDECLARED_TOKEN", "hush");
        let mut running = Wrapped::spawned(command);
        let told = running.next();
        let (_, complaint) = running.end();
        let came = told["params"]["data"].as_object().unwrap_or_else(|| panic!("{told} {complaint}"));
        let came = came.iter().map(|(act, how)| (act.clone(), how.as_str().unwrap_or_default().to_owned()));
        (came.collect(), complaint)
    }

    /// Whether something that the probe started is still there.
    fn is_left(&self) -> bool {
        !processes(&self.word()).is_empty()
    }
}

/// Says hello to everyone who connects.
fn answer<S: std::io::Write>(accept: impl Fn() -> std::io::Result<S> + Send + 'static) {
    std::thread::spawn(move || {
        while let Ok(mut stream) = accept() {
            // Who has gone needs no answer.
            drop(stream.write_all(b"hello"));
        }
    });
}

/// Ends what a probe left behind that nothing confined.
fn end_left(word: &str) {
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let id = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        if let Some(id) = id.filter(|_| String::from_utf8_lossy(&line).contains(word)) {
            let _ = kill_process(id, Signal::KILL);
        }
    }
}

/// What no sandbox makes possible: the owner of a file decides too.
fn is_possible(act: &str) -> bool {
    act != "read /etc/shadow" || rustix::process::getuid().is_root()
}

/// The probe without anything around it: every act succeeds, and something survives it.
fn bare(manifest: &Manifest, wrong: &mut Vec<String>) {
    let stage = Stage::new();
    let started = stage.probe(manifest);
    let mut command = Command::new(&started.words[0]);
    command.args(&started.words[1..]).env("HOME", stage.text(""));
    let (came, _) = stage.told(command, &started);
    for (act, how) in came.iter().filter(|(act, how)| *how != "done" && is_possible(act)) {
        wrong.push(format!("{}: `{act}` does not work bare: {how}", manifest.name()));
    }
    if !stage.is_left() {
        wrong.push(format!("{}: nothing survives bare", manifest.name()));
    }
    end_left(&stage.word());
}

/// The same behind the prefix.
fn wrapped(manifest: &Manifest, wrong: &mut Vec<String>) {
    let stage = Stage::new();
    let started = stage.probe(manifest);
    let mut command = stage.world.bailiwick(&["wrap", "--"]);
    command.args(&started.words);
    let (came, complaint) = stage.told(command, &started);
    let grants_a_place = !manifest.variables().is_empty();
    for (act, how) in &came {
        let expected = match act.as_str() {
            // It may start something, and write to a home of its own: what is left on the host is looked at below.
            "survive" | "write outside" => true,
            "spawn a shell" if WITH_A_SHELL.contains(&manifest.name()) => true,
            "read a granted file" if !grants_a_place => how != "done",
            act if ALLOWED.contains(&act) => how == "done",
            _ => how != "done",
        };
        if !expected {
            wrong.push(format!("{}: `{act}`: {how}\n{complaint}", manifest.name()));
        }
    }
    for planted in [stage.world.path("outside.txt"), started.code.with_extension("planted")] {
        if planted.exists() {
            wrong.push(format!("{}: {} is there", manifest.name(), planted.display()));
        }
    }
    if !eventually(|| !stage.is_left()) {
        wrong.push(format!("{}: left behind: {:?}", manifest.name(), processes(&stage.word())));
        end_left(&stage.word());
    }
}

#[test]
fn no_shipped_manifest_lets_its_server_do_what_it_must_not() {
    if ![NODE, PYTHON].into_iter().all(|program| Path::new(program).exists()) {
        return skip("node or python is not installed for all users");
    }
    let mut wrong = Vec::new();
    let mut languages = BTreeMap::<&str, ()>::new();
    for (_, text) in bailiwick_store::SHIPPED {
        let manifest = Manifest::parse(text).unwrap();
        let identity = manifest.package().and_then(|package| package.identity.as_deref()).unwrap().to_owned();
        let language = if identity.starts_with("npm:") { "npm" } else { "pypi" };
        // Bare there are no manifests: one of each language shows that the acts work.
        if languages.insert(language, ()).is_none() {
            bare(&manifest, &mut wrong);
        }
        wrapped(&manifest, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn shipped_manifests_hold_as_a_plain_user() {
    bailiwick_testkit::run_again_as_plain_user(
        "wrap::forbidden::no_shipped_manifest",
        &[env!("CARGO_BIN_EXE_bailiwick")],
    );
}
