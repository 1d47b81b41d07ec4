//! squid and Envoy with a compiled configuration, asked over the wire: who gets through and who does not.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bailiwick_compile::{Egress, egress};

use super::{program, validator};
use crate::golden;
use bailiwick_testkit::skip;

/// A gateway that ends with the test.
struct Gateway {
    child: Child,
    port: u16,
    _directory: tempfile::TempDir,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The names that the gateway's hosts file has; whoever asks DNS for another finds nobody.
const HOSTS: &str = "\
127.0.0.1 inside.test rebound.test opened.test a.wild.test wild.test
1.1.1.1 outside.test
";

fn squid(config: &str, directory: &Path, port: u16) -> Command {
    let path = directory.display();
    let config = config.replacen("http_port 127.0.0.1:3128", &format!("http_port 127.0.0.1:{port}"), 1);
    let config = format!(
        "{config}hosts_file {path}/hosts\npid_filename none\ncache_log /dev/null\naccess_log none\n\
         coredump_dir {path}\nconnect_timeout 1 second\nforward_max_tries 1\ndns_nameservers 127.0.0.1\n\
         dns_timeout 1 second\nnetdb_filename none\n"
    );
    std::fs::write(directory.join("squid.conf"), config).unwrap();
    let mut command = Command::new(program("squid").unwrap());
    command.args(["-N", "-f"]).arg(directory.join("squid.conf"));
    command
}

/// Envoy has no setting for a hosts file: it gets a mount namespace with another one.
fn envoy(config: &str, directory: &Path, port: u16) -> Command {
    let config = config.replacen("port_value: 3128", &format!("port_value: {port}"), 1);
    std::fs::write(directory.join("envoy.yaml"), config).unwrap();
    let script = "mount --bind \"$1/hosts\" /etc/hosts && exec \"$2\" -c \"$1/envoy.yaml\" --concurrency 1 \
        --use-dynamic-base-id --log-level error";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command.arg(directory).arg(validator("envoy").unwrap());
    command
}

fn start(command: impl FnOnce(&Path, u16) -> Command) -> Gateway {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    std::fs::write(directory.path().join("hosts"), HOSTS).unwrap();
    // squid leaves root by itself, and has to read its own directory then
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), mode).unwrap();
    let child = command(directory.path(), port).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let gateway = Gateway { child, port, _directory: directory };
    let until = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < until, "the gateway does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    gateway
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Gateway {
    /// The status of a request.
    fn asked(&self, request: &str) -> u16 {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let authority = request.split(' ').nth(1).unwrap().trim_start_matches("http://");
        let authority = authority.split('/').next().unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap_or_else(|| panic!("{request}: {line:?}")).parse().unwrap()
    }
}

/// A server that answers every request on loopback.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            drop(BufReader::new(&stream).read_line(&mut line));
            drop(stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"));
        }
    });
    port
}

#[test]
fn squid_lets_through_what_is_granted_and_nothing_else() {
    if program("squid").is_none() {
        return skip("squid is not installed");
    }
    asked_of(Egress::Squid, squid);
}

#[test]
fn envoy_lets_through_what_is_granted_and_nothing_else() {
    if validator("envoy").is_none() {
        return skip("envoy is not installed; scripts/test does it");
    }
    let can = Command::new("unshare").args(["--user", "--map-root-user", "--mount", "true"]).status();
    if !can.is_ok_and(|status| status.success()) {
        return skip("no user namespace can be made here");
    }
    asked_of(Egress::Envoy, envoy);
}

/// Denied by a rule, or by no rule that allows.
const DENIED: &[u16] = &[400, 403, 404];

fn asked_of(format: Egress, command: fn(&str, &Path, u16) -> Command) {
    let port = server();
    let text = format!(
        "name = 's'\nversion = '1'\nserver_capabilities = [\n\
         'net:connect:opened.test:{port}?blockPrivate=false', 'net:connect:rebound.test:{port}',\n\
         'net:connect:*.wild.test:{port}?blockPrivate=false', 'net:connect:127.0.0.1:{port}',\n\
         'net:connect:outside.test:443', 'net:http:GET@http://inside.test:{port}/a/**?blockPrivate=false']\n"
    );
    let plan = golden::plan(&text).unwrap_or_else(|findings| panic!("{findings:?}"));
    let config = egress(format, &plan).unwrap().text;
    let gateway = start(|directory, port| command(&config, directory, port));
    let expected: [(String, &[u16]); 18] = [
        (format!("GET http://opened.test:{port}/"), &[204]),
        (format!("CONNECT opened.test:{port}"), &[200]),
        (format!("GET http://127.0.0.1:{port}/"), &[204]),
        (format!("GET http://a.wild.test:{port}/"), &[204]),
        (format!("GET http://inside.test:{port}/a/b?q=1"), &[204]),
        // allowed, and nobody answers there
        ("CONNECT outside.test:443".to_owned(), &[200, 502, 503, 504]),
        // the name itself is not below it
        (format!("GET http://wild.test:{port}/"), DENIED),
        // an allowed name that resolves to loopback
        (format!("GET http://rebound.test:{port}/"), DENIED),
        (format!("CONNECT rebound.test:{port}"), DENIED),
        // another port, another way to write an address, another host
        ("CONNECT opened.test:22".to_owned(), DENIED),
        ("GET http://outside.test:80/".to_owned(), DENIED),
        (format!("GET http://[::1]:{port}/"), DENIED),
        (format!("GET http://127.0.0.2:{port}/"), DENIED),
        (format!("GET http://other.test:{port}/"), DENIED),
        // other methods, other paths, and paths that climb
        (format!("POST http://inside.test:{port}/a/b"), DENIED),
        (format!("GET http://inside.test:{port}/b"), DENIED),
        (format!("GET http://inside.test:{port}/a/../b"), DENIED),
        (format!("GET http://inside.test:{port}/a/%2e%2e/b"), DENIED),
    ];
    for (request, statuses) in &expected {
        let status = gateway.asked(request);
        assert!(statuses.contains(&status), "{request}: {status}, not {statuses:?}");
    }
}
