//! A PostgreSQL of this test's own: its own data directory and port, as a plain user, ended with the test.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::skip;

const PLAIN_USER: &str = "65534";

/// A running server.
pub struct Postgres {
    directory: tempfile::TempDir,
    programs: PathBuf,
    port: u16,
}

impl Postgres {
    /// Starts one, or says why it cannot run here.
    ///
    /// # Panics
    /// If it cannot be started although it is installed.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            skip("PostgreSQL is not installed");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        own_by_plain_user(directory.path());
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Self { directory, programs, port };
        let data = server.data();
        let made = server.run(
            "initdb",
            &["--no-sync", "--auth=trust", "--username=hub", "--encoding=UTF8", "--locale=C", "-D", &data],
        );
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        server.start_again();
        Some(server)
    }

    /// Starts the server after it was stopped.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_again(&self) {
        let directory = self.directory.path().display();
        let options = format!(
            "-c listen_addresses=127.0.0.1 -c port={} -c unix_socket_directories={directory} -c fsync=off -c max_connections=300",
            self.port
        );
        let log = format!("{directory}/log");
        let started =
            self.run("pg_ctl", &["-D", &self.data(), "-w", "-t", "60", "-l", &log, "-o", &options, "start"]);
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        assert!(started.status.success(), "{said}");
    }

    /// Ends it as a crash would.
    pub fn stop_at_once(&self) {
        let _may_be_down = self.run("pg_ctl", &["-D", &self.data(), "-w", "-m", "immediate", "stop"]);
    }

    /// A new empty database, by its address.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn create(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(name)
    }

    /// The address of a database.
    pub fn url(&self, name: &str) -> String {
        format!("postgres://hub@127.0.0.1:{}/{name}", self.port)
    }

    /// Where it listens.
    pub fn address(&self) -> std::net::SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Runs statements, and returns what they print.
    ///
    /// # Panics
    /// If a statement fails.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        let port = self.port.to_string();
        let done = self.run(
            "psql",
            &[
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                "-U",
                "hub",
                "-d",
                database,
                "-v",
                "ON_ERROR_STOP=1",
                "-qAtc",
                statements,
            ],
        );
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    fn data(&self) -> String {
        self.directory.path().join("data").display().to_string()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let program = self.programs.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            let ids = [format!("--reuid={PLAIN_USER}"), format!("--regid={PLAIN_USER}")];
            command.args(ids).args(["--clear-groups", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        // `pg_ctl start` leaves a server behind that would keep these open.
        let (out, err) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        command.args(arguments).current_dir(self.directory.path());
        command.stdout(out.try_clone().unwrap()).stderr(err.try_clone().unwrap());
        let status = command.status().unwrap();
        Output { status, stdout: contents(out), stderr: contents(err) }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop_at_once();
    }
}

fn contents(mut file: std::fs::File) -> Vec<u8> {
    use std::io::{Read as _, Seek as _};
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

fn programs() -> Option<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let debian = debian.map(|version| version.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates: Vec<PathBuf> = debian.chain(std::env::split_paths(&path)).collect();
    candidates
        .into_iter()
        .find(|directory| ["initdb", "pg_ctl", "psql"].iter().all(|name| directory.join(name).exists()))
}

fn is_root() -> bool {
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0
}

fn own_by_plain_user(directory: &Path) {
    if is_root() {
        std::os::unix::fs::chown(directory, Some(65534), Some(65534)).unwrap();
    }
}
