//! The reference servers of the protocol, from npm and PyPI, under their templates: every call answers as it does bare,
//! their code is read-only, and what a template does not grant is refused.

mod client;
mod kfold;
mod learned;
mod others;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bailiwick_testkit::skip;
use client::{Answers, Era};
use table::{Forbidden, Language, SERVERS, Server};

/// Where `scripts/test` installs the servers.
fn directory() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("bailiwick/servers"))
}

/// The same, if the reference servers are all there.
fn installed() -> Option<PathBuf> {
    directory().filter(|directory| SERVERS.iter().all(|server| server.entry(directory).exists()))
}

/// A small host for a server, at the same path each time.
struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self { dir: tempfile::Builder::new().prefix("bailiwick-servers").tempdir_in("/var/tmp").unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// The files that every run starts from.
    fn prepare(&self) {
        for directory in ["w", "home"] {
            let _ = std::fs::remove_dir_all(self.path(directory));
        }
        for directory in ["w/data", "w/sub", "home/.local/share/mcp-memory"] {
            std::fs::create_dir_all(self.path(directory)).unwrap();
        }
        for (name, text) in [("w/a.txt", "alpha\n"), ("w/sub/b.txt", "beta\n"), ("secret", "hush\n")] {
            std::fs::write(self.path(name), text).unwrap();
        }
        let git = |args: &[&str]| {
            let done = Command::new("git")
                .args(args)
                .current_dir(self.path("w"))
                .env("HOME", self.path("home"))
                .output();
            assert!(done.as_ref().is_ok_and(|done| done.status.success()), "{args:?}: {done:?}");
        };
        let _ = std::fs::remove_dir_all(self.path("other"));
        for args in ["init -q -b main", "config user.name Anna", "config user.email anna@example.com"] {
            git(&args.split(' ').collect::<Vec<_>>());
        }
        git(&["add", "a.txt"]);
        git(&["commit", "-q", "-m", "one"]);
        git(&["clone", "-q", ".", "../other"]);
        let identity = ["-c", "user.name=Anna", "-c", "user.email=anna@example.com"];
        let commit = ["-C", "../other", "commit", "-q", "--allow-empty", "-m", "elsewhere"];
        git(&[&identity[..], &commit[..]].concat());
        std::fs::write(self.path("w/a.txt"), "alpha\nmore\n").unwrap();
    }

    fn fill(&self, text: &str) -> String {
        text.replace("{w}", &self.path("w").display().to_string())
            .replace("{home}", &self.path("home").display().to_string())
            .replace("{out}", self.path("").display().to_string().trim_end_matches('/'))
    }

    /// The program with what every run has around it.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("LANG", "C.UTF-8");
        command.env("SECRET_TOKEN", "hush");
        command
            .current_dir(self.path("w"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The same program under a server's template.
    fn confined(&self, server: &Server, program: &Path) -> Command {
        let mut command = self.under_template(server);
        command.arg("--").arg(program);
        command
    }

    /// The command that a server's template names, found where the user's settings say.
    fn under_template(&self, server: &Server) -> Command {
        let template = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../bailiwick-admin/templates")
            .join(server.name)
            .with_extension("toml");
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_bailiwick")));
        command.args(["run", "--manifest"]).arg(template);
        command.arg("--set").arg(format!("WORKSPACE={}", self.path("w").display()));
        command
    }

    /// Has programs looked for by name beside this one.
    fn settle(&self, program: &Path) {
        let settings = self.path("home/.config/bailiwick");
        std::fs::create_dir_all(&settings).unwrap();
        let directory = program.parent().unwrap().display();
        std::fs::write(settings.join("config.toml"), format!("[programs]\npath = [\"{directory}\"]\n"))
            .unwrap();
    }

    /// What the server answers to the one call that its template does not grant.
    fn tries(&self, forbidden: &Forbidden, mut command: Command) -> String {
        command.args(forbidden.args.iter().map(|word| self.fill(word)));
        command.envs(forbidden.variables.iter().map(|(name, value)| (name, self.fill(value))));
        let (tool, arguments) = forbidden.call;
        client::talk(command, Era::Legacy, vec![(tool, self.fill(arguments))]).calls.concat()
    }

    fn answers(&self, server: &Server, era: Era, command: Command) -> Answers {
        self.answers_to(server.calls, server, era, command, false)
    }

    /// What it answers to these calls; where it `waits`, the server may end by itself.
    fn answers_to(
        &self,
        calls: &[(&str, &str)],
        server: &Server,
        era: Era,
        mut command: Command,
        waits: bool,
    ) -> Answers {
        command.envs(server.variables.iter().map(|(name, value)| (name, self.fill(value))));
        let calls = calls.iter().map(|(tool, arguments)| (*tool, self.fill(arguments)));
        client::talk_until(command, era, calls.collect(), waits)
    }
}

#[test]
fn every_reference_server_answers_as_it_does_bare() {
    let Some(directory) = installed() else {
        return skip("the servers are not in the cache that scripts/test fills");
    };
    let mut wrong = Vec::new();
    for server in &SERVERS {
        let (world, entry) = (World::new(), server.entry(&directory));
        world.prepare();
        let mut command = world.command(&entry);
        command.args(server.args.iter().map(|word| world.fill(word)));
        let bare = world.answers(server, Era::Legacy, command);
        world.prepare();
        world.settle(&entry);
        let confined = world.answers(server, Era::Legacy, world.under_template(server));
        assert!(!bare.tools.is_empty(), "{}: it answers bare: {}", server.name, bare.complaint);
        if bare.tools != confined.tools {
            wrong.push(format!("{}: tools {:?}\n{}", server.name, confined.tools, confined.complaint));
        }
        let is_called = |tool: &&String| server.calls.iter().any(|(name, _)| *name == **tool);
        let uncalled: Vec<_> = bare.tools.iter().filter(|tool| !is_called(tool)).collect();
        assert_eq!(uncalled, server.uncalled, "{}", server.name);
        for ((tool, arguments), (bare, confined)) in
            server.calls.iter().zip(bare.calls.iter().zip(&confined.calls))
        {
            if !server.is_same(bare, confined) {
                wrong.push(format!(
                    "{} {tool} {arguments}\n  bare {bare}\n  confined {confined}",
                    server.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same program with nothing but the prefix: its manifest is the one that is shipped for its package.
fn prefixed(world: &World, options: &[&str], program: &Path) -> Command {
    let mut command = world.command(Path::new(env!("CARGO_BIN_EXE_bailiwick")));
    command.arg("wrap").args(options).arg("--").arg(program);
    command
}

/// What is different behind the prefix, call by call, in one era.
fn differences(directory: &Path, server: &Server, era: Era, options: &[&str]) -> Vec<String> {
    let (world, entry) = (World::new(), server.entry(directory));
    let answers = |mut command: Command| {
        world.prepare();
        command.args(server.args.iter().map(|word| world.fill(word)));
        world.answers(server, era, command)
    };
    let bare = answers(world.command(&entry));
    let wrapped = answers(prefixed(&world, options, &entry));
    let mut wrong = Vec::new();
    if bare.is_open != server.eras.contains(&era) || bare.is_open == bare.tools.is_empty() {
        wrong.push(format!("{} speaks other eras bare: {:?}\n{}", server.name, bare.tools, bare.complaint));
    }
    if (bare.is_open, &bare.tools) != (wrapped.is_open, &wrapped.tools) {
        wrong.push(format!("{} {era:?}: tools {:?}\n{}", server.name, wrapped.tools, wrapped.complaint));
    }
    for ((tool, arguments), (bare, wrapped)) in server.calls.iter().zip(bare.calls.iter().zip(&wrapped.calls))
    {
        // What lies outside is refused by the gate, before the server can.
        let is_outside = arguments.contains("{out}");
        let is_right =
            if is_outside { wrapped.contains("outside declared") } else { server.is_same(bare, wrapped) };
        if !is_right {
            wrong.push(format!(
                "{} {era:?} {tool} {arguments}\n  bare {bare}\n  wrapped {wrapped}",
                server.name
            ));
        }
    }
    wrong
}

#[test]
fn every_reference_server_answers_as_bare_behind_the_prefix_alone() {
    let Some(directory) = installed() else {
        return skip("the servers are not in the cache that scripts/test fills");
    };
    let eras = [Era::Legacy, Era::Modern];
    let all = SERVERS.iter().flat_map(|server| eras.map(|era| (server, era)));
    // One that lacks an era is not asked in it: what it says without a session differs.
    let all = all.filter(|(server, era)| server.eras.contains(era));
    let wrong: Vec<String> =
        all.flat_map(|(server, era)| differences(&directory, server, era, &[])).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_server_behind_the_prefix_is_refused_what_its_arguments_do_not_grant() {
    let Some(directory) = installed() else {
        return skip("the servers are not in the cache that scripts/test fills");
    };
    let mut wrong = Vec::new();
    for server in &SERVERS {
        let Some(forbidden) = &server.forbidden else { continue };
        let (world, entry) = (World::new(), server.entry(&directory));
        world.prepare();
        let bare = world.tries(forbidden, world.command(&entry));
        world.prepare();
        let _ = std::fs::remove_file(world.path("app.db"));
        let wrapped = world.tries(forbidden, prefixed(&world, &[], &entry));
        if !bare.contains(forbidden.shows) {
            wrong.push(format!("{}: it does not work bare: {bare}", server.name));
        }
        if wrapped.contains(forbidden.shows) {
            wrong.push(format!("{}: it was not refused: {wrapped}", server.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_server_is_refused_what_its_template_does_not_grant() {
    let Some(directory) = installed() else {
        return skip("the servers are not in the cache that scripts/test fills");
    };
    let mut wrong = Vec::new();
    for server in &SERVERS {
        let Some(forbidden) = &server.forbidden else { continue };
        let (world, entry) = (World::new(), server.entry(&directory));
        world.prepare();
        let bare = world.tries(forbidden, world.command(&entry));
        world.prepare();
        let _ = std::fs::remove_file(world.path("app.db"));
        let confined = world.tries(forbidden, world.confined(server, &entry));
        if !bare.contains(forbidden.shows) {
            wrong.push(format!("{}: it does not work bare: {bare}", server.name));
        }
        if confined.contains(forbidden.shows) {
            wrong.push(format!("{}: it was not refused: {confined}", server.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_template_does_not_grant_is_refused_to_the_servers_own_interpreter() {
    let Some(directory) = installed() else {
        return skip("the servers are not in the cache that scripts/test fills");
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut wrong = Vec::new();
    for server in &SERVERS {
        let world = World::new();
        world.prepare();
        let interpreter = server.interpreter(&directory);
        let code = server.code(&directory);
        for (act, text) in server.language.acts(&world.path("secret"), &code, port) {
            let succeeds = |mut command: Command| {
                let output = command.args(server.language.run(&text)).stdin(Stdio::null()).output().unwrap();
                String::from_utf8_lossy(&output.stdout).contains("done")
            };
            if act != "write code" && !succeeds(world.command(&interpreter)) {
                wrong.push(format!("{}: {act} does not work bare", server.name));
            }
            if succeeds(world.confined(server, &interpreter)) {
                wrong.push(format!("{}: {act} was not refused", server.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_virtual_environment_that_is_read_only_has_its_compiled_modules() {
    let Some(directory) = installed() else {
        return skip("the servers are not in the cache that scripts/test fills");
    };
    let world = World::new();
    world.prepare();
    let python = directory.join("python/bin/python");
    let mut command = world.command(Path::new(env!("CARGO_BIN_EXE_bailiwick")));
    command
        .args(["run", "--"])
        .arg(python)
        .args(Language::Python.run("import pydantic_core, pydantic; print('done')"));
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.stdout, b"done\n", "{}", String::from_utf8_lossy(&output.stderr));
}
