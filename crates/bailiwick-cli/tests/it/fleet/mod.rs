//! A fleet of real processes: `bailiwick-hub` with PostgreSQL, and `bailiwick` as machines, approvers and admins.

mod anchored;
mod approvals;
mod host;
mod hostile;
mod inventory;
mod leases;
mod revoked;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use bailiwick_testkit::postgres::Postgres;
use bailiwick_testkit::skip;
use serde_json::Value;

use crate::wrap::Wrapped;

/// A hub, its database, and the admin of its fleet.
struct Fleet {
    // The hub goes before its database.
    hub: Option<Child>,
    port: u16,
    program: PathBuf,
    directory: tempfile::TempDir,
    database: String,
    admin: Home,
    _postgres: Postgres,
}

/// The home of a machine or a person: enrolment, journal and state of their own.
struct Home(tempfile::TempDir);

impl Fleet {
    /// Starts one, or says why it cannot run here.
    fn start() -> Option<Self> {
        let program = Path::new(env!("CARGO_BIN_EXE_bailiwick")).with_file_name("bailiwick-hub");
        if !program.is_file() {
            skip("bailiwick-hub is not built: `cargo build -p bailiwick-hub`");
            return None;
        }
        let postgres = Postgres::start()?;
        let database = postgres.create("fleet");
        let directory = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let admin = Home::new();
        let mut fleet = Self { hub: None, port, program, directory, database, admin, _postgres: postgres };
        let url = format!("https://localhost:{port}");
        let keys = fleet.path("keys");
        fleet.hub_says(&["init", "--keys", &keys, "--name", "fleet.example", "--url", &url]);
        fleet.start_hub();
        let token =
            fleet.hub_says(&["token", "--keys", &keys, "--database", &fleet.database, "--role", "admin"]);
        fleet.admin.enrols(&token, &[]);
        Some(fleet)
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// What a command of the hub prints.
    fn hub_says(&self, args: &[&str]) -> String {
        let output = Command::new(&self.program).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn start_hub(&mut self) {
        let listen = format!("127.0.0.1:{}", self.port);
        let hub = Command::new(&self.program)
            .args(["--keys", &self.path("keys"), "--database", &self.database, "--listen", &listen])
            .args(["--log-files", &self.path("log"), "--sign-every", "100", "--anchor-every", "1"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        self.hub = Some(hub);
        until("the hub listens", || std::net::TcpStream::connect(("127.0.0.1", self.port)).ok());
    }

    /// Kills the hub as a crash would.
    fn kill_hub(&mut self) {
        let mut hub = self.hub.take().expect("a hub runs");
        hub.kill().unwrap();
        hub.wait().unwrap();
    }

    /// A token of this role, made by the admin.
    fn token(&self, role: &str) -> String {
        self.admin.prints(&["fleet", "token", "--role", role])
    }

    /// A new member.
    fn member(&self, role: &str) -> Home {
        let home = Home::new();
        home.enrols(&self.token(role), &[]);
        home
    }

    /// The only call that waits, once there is one.
    fn waiting(&self, by: &Home) -> Value {
        until("a call waits", || {
            let listed = by.json(&["fleet", "approve", "--format", "json"]);
            listed["waiting"].get(0).cloned()
        })
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if let Some(hub) = &mut self.hub {
            drop(hub.kill());
            drop(hub.wait());
        }
    }
}

impl Home {
    /// Outside `/tmp`, of which a sandbox has its own.
    fn new() -> Self {
        Self(tempfile::Builder::new().prefix("bailiwick-fleet").tempdir_in("/var/tmp").expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn bailiwick(&self, args: &[&str]) -> Command {
        let mut command = Command::new(bailiwick_testkit::reachable_program(env!("CARGO_BIN_EXE_bailiwick")));
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.args(args).env_clear().env("HOME", self.0.path()).env("PATH", path);
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.bailiwick(args).output().expect("the command starts")
    }

    /// What a command prints that succeeds.
    fn prints(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.prints(args)).unwrap()
    }

    /// Runs a command that refuses, with this exit code, and returns why.
    fn refused(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", stderr(&output));
        stderr(&output)
    }

    fn enrols(&self, token: &str, more: &[&str]) {
        let file = self.path("token");
        std::fs::write(&file, token).unwrap();
        let output = self.bailiwick(&["enroll", "--token-file"]).arg(&file).args(more).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        std::fs::remove_file(file).unwrap();
    }

    /// Its id at the hub.
    fn id(&self) -> String {
        let status = self.run(&["fleet", "status", "--format", "json"]);
        let status: Value = serde_json::from_slice(&status.stdout).unwrap();
        status["members"][0]["member"].as_str().expect("it is enrolled").to_owned()
    }

    fn enrolment(&self) -> PathBuf {
        self.path(".config/bailiwick/fleet")
    }

    /// A server of the shell under this manifest: every call says `ran`.
    fn wrap(&self, manifest: &str) -> Wrapped {
        self.wrap_script(manifest, "")
    }

    /// The same, which does these cases of the shell first.
    fn wrap_script(&self, manifest: &str, first: &str) -> Wrapped {
        let mut command = self.bailiwick(&["wrap", "--manifest"]);
        command.arg(self.manifest(manifest)).args(["--", "/bin/sh", "-c", &shell_server(first)]);
        Wrapped::spawned(command)
    }

    /// A file with this manifest.
    fn manifest(&self, text: &str) -> PathBuf {
        let file = self.path("server.toml");
        std::fs::write(&file, text).unwrap();
        file
    }
}

/// A server of the shell: every call says `ran`, but for those of these cases.
fn shell_server(first: &str) -> String {
    let script = r#"while IFS= read -r line; do case "$line" in
            FIRST
            *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n';;
            *'"id":"bailiwick-'*tools/list*) own=${line#*'"id":"'}; own=${own%%'"'*}
                printf '{"jsonrpc":"2.0","id":"%s","error":{"code":-32601,"message":"no list"}}\n' "$own";;
            *'"id":'*tools/call*) id=${line#*'"id":'}; id=${id%%,*}
                printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"ran"}]}}\n' "$id";;
        esac; done"#;
    script.replace("FIRST", first)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits until something is so.
fn until<T>(what: &str, mut is_so: impl FnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(value) = is_so() {
            return value;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("not within 30 seconds: {what}");
}
