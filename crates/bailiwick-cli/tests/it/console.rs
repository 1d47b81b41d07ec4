//! `bailiwick console` and `top`: who may come in, and the page in a real browser.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use bailiwick_testkit::skip;

mod strangers;
mod top;

/// A console over a home of its own.
struct Served {
    home: tempfile::TempDir,
    child: Child,
    port: u16,
    code: String,
}

fn bailiwick(home: &tempfile::TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(bailiwick_testkit::reachable_program(env!("CARGO_BIN_EXE_bailiwick")));
    command.args(args).env_clear().env("HOME", home.path()).current_dir(home.path());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

impl Served {
    fn new(options: &[&str]) -> Self {
        let home = tempfile::Builder::new().prefix("bailiwick-console").tempdir_in("/var/tmp").unwrap();
        let mut command = bailiwick(&home, &["console"]);
        let mut child = command.args(options).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let line =
            said.find_map(|line| line.ok().filter(|line| line.contains("#code="))).expect("an address");
        let (_, rest) = line.split_once("http://127.0.0.1:").expect("an address");
        let (port, code) = rest.split_once("/#code=").expect("a code");
        Self { port: port.parse().unwrap(), code: code.to_owned(), home, child }
    }

    /// The status and the body of an answer.
    fn ask(&self, method: &str, path: &str, head: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let port = self.port;
        let length = body.len();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Length: {length}\r\n{head}\r\n{body}"
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_console_lets_in_who_has_the_code_and_ends_in_order() {
    let mut served = Served::new(&[]);
    assert_eq!(served.ask("GET", "/", "", "").0, 200);
    assert_eq!(served.ask("GET", "/api/state", "", "").0, 401);
    let (status, answer) = served.ask("POST", "/enter", "", &served.code);
    let token =
        serde_json::from_str::<serde_json::Value>(&answer).unwrap()["token"].as_str().unwrap().to_owned();
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let (read, state) = served.ask("GET", "/api/state", &bearer, "");
    assert_eq!((status, read), (200, 200));
    assert!(state.contains("\"watches_only\":false") && !state.contains(&token), "{state}");
    assert_eq!(served.ask("POST", "/enter", "", &served.code).0, 403, "the code is good once");
    let id = rustix::process::Pid::from_child(&served.child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert!(served.child.wait().unwrap().success());
}

#[test]
fn the_code_is_in_no_argument_and_its_file_is_the_users_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let tools = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    let noted = home.path().join("noted");
    let opener = tools.path().join("xdg-open");
    let script = format!(
        "#!/bin/sh\nstat -c %a \"$1\" > {0}.mode; cat \"$1\" > {0}.text; echo \"$*\" > {0}\n",
        noted.display()
    );
    std::fs::write(&opener, script).unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = bailiwick(&home, &["console", "--open"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", tools.path().display()));
    let mut child = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = said.find_map(|line| line.ok().filter(|line| line.contains("#code="))).expect("an address");
    let code = line.split("#code=").nth(1).unwrap().to_owned();
    while !noted.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    let file = PathBuf::from(read(noted.clone()).trim());
    assert_eq!(read(noted.with_extension("mode")).trim(), "600");
    assert!(read(noted.with_extension("text")).contains(&code) && !read(noted).contains(&code));
    let arguments = read(PathBuf::from(format!("/proc/{}/cmdline", child.id())));
    assert!(!arguments.contains(&code));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!file.exists(), "it goes with the console");
}

#[test]
fn only_the_loopback_interface_is_served() {
    let home = tempfile::tempdir().unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let output = bailiwick(&home, &["console", "--listen", address]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{address}");
    }
}

/// A file with this mode.
fn kept(home: &tempfile::TempDir, name: &str, text: &str, mode: u32) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let path = home.path().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path.display().to_string()
}

#[test]
fn other_machines_reach_it_in_tls_and_with_an_operators_token_alone() {
    let home = tempfile::Builder::new().prefix("bailiwick-console").tempdir_in("/var/tmp").unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate =
        rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let (pem, token) = (certificate.pem(), "0123456789abcdef0123456789abcdef");
    let pem = kept(&home, "c.pem", &pem, 0o644);
    let good = [kept(&home, "k.pem", &key.serialize_pem(), 0o600), kept(&home, "token", token, 0o600)];
    let open = [kept(&home, "open.pem", &key.serialize_pem(), 0o644), kept(&home, "open", token, 0o604)];
    let short = kept(&home, "short", "guess", 0o600);
    let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let other = kept(&home, "other.pem", &other, 0o600);
    let options = |key: &str, token: Option<&str>| {
        let mut words = vec![
            "console",
            "--listen",
            "0.0.0.0:0",
            "--name",
            "localhost",
            "--tls-certificate",
            &pem,
            "--tls-key",
        ];
        words.push(key);
        words.extend(token.into_iter().flat_map(|token| ["--token-file", token]));
        words.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    for (what, words) in [
        ("no token file", options(&good[0], None)),
        ("others may read the key", options(&open[0], Some(&good[1]))),
        ("others may read the token", options(&good[0], Some(&open[1]))),
        ("a short token", options(&good[0], Some(&short))),
        ("the key of another certificate", options(&other, Some(&good[1]))),
        ("no certificate", options(&good[0], Some(&good[1]))[..3].to_vec()),
    ] {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = bailiwick(&home, &words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{what}: {output:?}");
    }
    let words = options(&good[0], Some(&good[1]));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut child = bailiwick(&home, &words).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = said.find_map(|line| line.ok().filter(|line| line.contains("#code="))).expect("an address");
    let (_, rest) = line.split_once("https://localhost:").expect("an address");
    let port = rest.split_once('/').unwrap().0.to_owned();
    let curl = |scheme: &str, token: &str, more: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args([
            "-sS",
            "-m",
            "10",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "--noproxy",
            "*",
            "--cacert",
            &pem,
        ]);
        curl.args(["-H", &format!("Authorization: Bearer {token}")]).args(more);
        let output = curl.arg(format!("{scheme}://localhost:{port}/api/state")).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(curl("https", token, &[]), "200");
    assert_eq!(curl("https", "0123456789abcdef0123456789abcdee", &[]), "401");
    let (own, foreign) =
        (format!("Origin: https://localhost:{port}"), format!("Origin: http://localhost:{port}"));
    assert_eq!(curl("https", token, &["-H", &own]), "200");
    assert_eq!(curl("https", token, &["-H", &foreign]), "403", "the same name without TLS is another origin");
    assert_eq!(curl("https", token, &["-H", "Host: 127.0.0.1"]), "403");
    assert_eq!(curl("http", token, &[]), "000", "nothing is said in the clear");
    drop(child.kill());
    drop(child.wait());
}

/// Whether there is a browser and what drives it; says so if not.
fn is_drivable() -> bool {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let modules = cache.map(|cache| cache.join("bailiwick/console/node_modules")).unwrap_or_default();
    let browser = ["/usr/bin/chromium", "/usr/bin/chromium-headless-shell"]
        .iter()
        .any(|path| PathBuf::from(path).exists());
    let is_there = browser && modules.join("playwright-core").is_dir() && modules.join("axe-core").is_dir();
    if !is_there {
        skip("chromium, playwright-core or axe-core is not installed; `scripts/test` installs them");
    }
    is_there
}

/// A script of the repository, with the command that it drives.
fn script(program: &str, name: &str) -> Command {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let mut command = Command::new(program);
    let own = bailiwick_testkit::reachable_program(env!("CARGO_BIN_EXE_bailiwick"));
    command.arg(path).env("BAILIWICK", own);
    command
}

/// The whole page, driven by `tests/console/drive.mjs`, which says what holds.
#[test]
fn the_page_does_in_a_real_browser_what_it_says() {
    if !is_drivable() {
        return;
    }
    let mut command = script("node", "tests/console/drive.mjs");
    if std::env::var_os("BAILIWICK_REQUIRE").is_some_and(|value| value == "all") {
        command.arg("--full");
    }
    let output = command.output().expect("node starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_pictures_of_the_documents_can_be_made() {
    if !is_drivable() {
        return;
    }
    let made = tempfile::tempdir().unwrap();
    let output = script("bash", "scripts/screenshots").arg("--docs").arg(made.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let documents = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/console");
    for name in ["now.png", "waiting.png", "grant.png"] {
        let [fresh, kept] = [made.path(), documents.as_path()].map(|directory| {
            let bytes = std::fs::read(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 20_000, "{name} is no picture of a page");
            bytes[16..24].to_vec()
        });
        assert_eq!(fresh, kept, "{name}: width and height");
    }
}
