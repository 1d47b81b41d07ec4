//! Brokered secrets, end to end: real clients in the sandbox have a placeholder, the server gets the value, and no process
//! inside ever holds it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::servers::{self, Authority, Files, Seen};
use super::traces::{Traces, outside_and_inside};
use super::world::{Stage, in_world, test_name, users};
use super::{GOOD, WORLD};
use crate::escape::User;
use bailiwick_testkit::skip;

/// The value: no stretch of eight characters of it is likely anywhere else.
pub(super) const VALUE: &str = "ghp_qXv83LmZt0PwRk5NbYc7HdJs2GfUa9TeQi4W";
pub(super) const GRANT: &str = "env:inject:TOKEN?broker=good.test";

pub(super) struct World {
    pub(super) authority: Authority,
    pub(super) good: Seen,
}

impl World {
    pub(super) fn new() -> Self {
        let authority = Authority::new();
        let files: Files = Files::new([("/x".to_owned(), b"the answer".to_vec())].into());
        let good = servers::https(&format!("{GOOD}:443"), &authority, &["good.test"], &files);
        Self { authority, good }
    }

    /// `run` where the broker trusts the test's authority, and the value is in a variable of the caller.
    pub(super) fn run(&self, stage: &Stage, caps: &[&str], options: &[&str]) -> Command {
        let own = stage.path("own.pem");
        std::fs::write(&own, &self.authority.pem).unwrap();
        let caps: Vec<&str> = caps.iter().copied().chain([GRANT]).collect();
        let mut command =
            stage.run(&caps, &[&WORLD[..], &["--secret", "TOKEN=env:THE_VALUE"], options].concat());
        command.env("SSL_CERT_FILE", own).env("THE_VALUE", VALUE).env("COPY", format!("x{VALUE}x"));
        command
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The client gets its answer, the server got the value, and the client had only a placeholder.
pub(super) fn uses(client: &[&str], caps: &[&str]) {
    if !Path::new(client[0]).exists() {
        return skip(&format!("no `{}`", client[0]));
    }
    let world = World::new();
    for user in users() {
        let stage = Stage::new(*user);
        let before = world.good.count();
        let output = world.run(&stage, caps, &["--"]).args(client).output().unwrap();
        assert_eq!(text(&output.stdout), "the answer", "{user:?} {output:?}");
        assert!(text(&output.stderr).contains("with TOKEN"), "{output:?}");
        let heard = world.good.all()[before..].join("\n");
        assert!(
            heard.to_lowercase().contains(&format!("authorization: bearer {VALUE}").to_lowercase()),
            "{heard}"
        );
    }
}

#[test]
fn curl_uses_a_secret_that_it_does_not_have() {
    if in_world(test_name!()) {
        let ask =
            "printf %s \"$(/usr/bin/curl -sS -H \"Authorization: Bearer $TOKEN\" https://good.test/x)\"";
        uses(&["/usr/bin/bash", "-c", ask], &["exec:spawn:/usr/bin/curl"]);
    }
}

#[test]
fn node_fetch_uses_a_secret_that_it_does_not_have() {
    if in_world(test_name!()) {
        let ask = "fetch('https://good.test/x', {headers: {authorization: 'Bearer ' + process.env.TOKEN}})\
                   .then(r => r.text()).then(t => process.stdout.write(t))";
        uses(&["/usr/bin/node", "-e", ask], &[]);
    }
}

#[test]
fn python_urllib_uses_a_secret_that_it_does_not_have() {
    if in_world(test_name!()) {
        let ask = "import os, sys, urllib.request as r; q = r.Request('https://good.test/x', \
                   headers={'Authorization': 'Bearer ' + os.environ['TOKEN']}); \
                   sys.stdout.write(r.urlopen(q).read().decode())";
        uses(&["/usr/bin/python3", "-c", ask], &[]);
    }
}

#[test]
fn python_requests_uses_a_secret_that_it_does_not_have() {
    if !in_world(test_name!()) {
        return;
    }
    let Some(packages) = super::clients::packages() else {
        return skip("no `requests` in the cache that scripts/test fills");
    };
    let ask = "import os, sys; sys.path.insert(0, sys.argv[1]); import requests; \
               sys.stdout.write(requests.get('https://good.test/x', headers={'Authorization': 'Bearer ' + os.environ['TOKEN']}).text)";
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let own = directory.path().join("packages");
    super::clients::copy(&packages, &own);
    let (own, shown) = (own.display().to_string(), format!("fs:read:{}/**", own.display()));
    uses(&["/usr/bin/python3", "-c", ask, &own], &[&shown]);
}

/// git's own server behind TLS and Basic.
fn git_server(authority: &Authority, root: PathBuf) {
    let config = std::sync::Arc::new(authority.server(&["good.test"]));
    servers::serve(&format!("{GOOD}:443"), move |stream| {
        let connection = rustls::ServerConnection::new(std::sync::Arc::clone(&config)).unwrap();
        let mut tls = rustls::StreamOwned::new(connection, stream);
        while let Some((head, body)) = request(&mut tls) {
            let response = answer(&root, &head, &body);
            if tls.write_all(&response).and_then(|()| tls.flush()).is_err() {
                return;
            }
        }
    });
}

/// The next request: head and body.
pub(super) fn request(from: &mut impl std::io::Read) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    let mut one = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if from.read(&mut one).ok()? == 0 {
            return None;
        }
        head.push(one[0]);
    }
    let head = text(&head);
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let mut body = Vec::new();
    if let Some(length) = field("content-length:") {
        body.resize(length.parse().ok()?, 0);
        from.read_exact(&mut body).ok()?;
    } else if field("transfer-encoding:").is_some() {
        let mut reader = BufReader::with_capacity(1, from);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let size = usize::from_str_radix(line.trim(), 16).ok()?;
            let mut piece = vec![0; size + 2];
            reader.read_exact(&mut piece).ok()?;
            body.extend_from_slice(&piece[..size]);
            if size == 0 {
                break;
            }
        }
    }
    Some((head, body))
}

/// 401 without the right Basic, else what `git http-backend` says.
fn answer(root: &Path, head: &str, body: &[u8]) -> Vec<u8> {
    use base64::Engine as _;
    let right = base64::engine::general_purpose::STANDARD.encode(format!("me:{VALUE}"));
    let field =
        |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).unwrap_or_default();
    if field("authorization:") != format!("Basic {right}") {
        return b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 0\r\n\r\n".to_vec();
    }
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .envs([
            ("PATH_INFO", path),
            ("QUERY_STRING", query),
            ("REQUEST_METHOD", method),
            ("REMOTE_USER", "me"),
        ])
        .env("CONTENT_TYPE", field("content-type:"))
        .env("HTTP_CONTENT_ENCODING", field("content-encoding:"))
        .env("HTTP_GIT_PROTOCOL", field("git-protocol:"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdin.take().unwrap().write_all(body));
    let said = child.wait_with_output().unwrap().stdout;
    let end = said.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(0);
    let fields = text(&said[..end]);
    let status = fields.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let fields: String = fields
        .lines()
        .filter(|line| !line.starts_with("Status:"))
        .map(|line| format!("{line}\r\n"))
        .collect();
    let body = &said[(end + 4).min(said.len())..];
    let head = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[test]
fn git_clones_and_pushes_with_basic_after_a_401() {
    if !in_world(test_name!()) {
        return;
    }
    let source = tempfile::tempdir_in("/var/tmp").unwrap();
    let repository = "git init -q -b main work && cd work && echo text > file && git add file && \
                      git -c user.name=t -c user.email=t@t.test commit -q -m one && cd .. && \
                      git clone -q --bare work repo.git && git -C repo.git config http.receivepack true && chmod -R a+rwX .";
    assert!(
        Command::new("sh").args(["-c", repository]).current_dir(source.path()).status().unwrap().success()
    );
    let authority = Authority::new();
    git_server(&authority, source.path().to_owned());
    let world = World { authority, good: Seen::default() };
    for user in users() {
        let stage = Stage::new(*user);
        let directory = stage.directory("clones");
        let writable = format!("fs:read,write:{}/**", directory.display());
        let work = "cd \"$0\" && git clone -q https://me:$TOKEN@good.test/repo.git c && cat c/file && cd c && \
                    git -c user.name=t -c user.email=t@t.test commit -q --allow-empty -m two && git push -q origin HEAD:refs/heads/$1";
        let branch = format!("by-{user:?}");
        let mut run = world.run(&stage, &[&writable, "exec:spawn:git", "exec:spawn:cat"], &["--"]);
        let output = run.args(["/usr/bin/bash", "-c", work]).arg(&directory).arg(&branch).output().unwrap();
        assert!(output.status.success() && text(&output.stdout) == "text\n", "{user:?} {output:?}");
        let mut branches = Command::new("git");
        branches.arg("-C").arg(source.path().join("repo.git")).args(["-c", "safe.directory=*", "branch"]);
        let branches = branches.output().unwrap();
        assert!(text(&branches.stdout).contains(&branch), "{branches:?}");
        assert!(!holds(&directory, VALUE), "nothing of it on disk");
    }
}

/// Whether a file below a directory has a text in it.
fn holds(directory: &Path, what: &str) -> bool {
    servers::files(directory)
        .values()
        .any(|bytes| bytes.windows(what.len()).any(|window| window == what.as_bytes()))
}

#[test]
fn no_process_inside_ever_holds_the_value() {
    if !in_world(test_name!()) {
        return;
    }
    if !rustix::process::getuid().is_root() {
        return skip("only root can look into the memory of others");
    }
    let world = World::new();
    let (traces, stage) = (Traces::of(&[VALUE]), Stage::new(User::Root));
    let count = if std::env::var_os("BAILIWICK_REQUIRE").is_some() { 2000 } else { 100 };
    let work = format!(
        "const h = {{authorization: 'Bearer ' + process.env.TOKEN}};\
         (async () => {{ for (let i = 0; i < {count}; i++) await (await fetch('https://good.test/x', {{headers: h}})).text(); \
         console.log('done'); setInterval(() => 0, 1000); }})()"
    );
    let journal = stage.directory("journal");
    std::fs::set_permissions(&journal, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let kept = format!("--journal={}", journal.display());
    let mut run = world.run(&stage, &["exec:spawn:/usr/bin/node"], &[&kept, "--"]);
    let words = ["/usr/bin/bash", "-c", "/usr/bin/node -e \"$0\"; :", &work];
    let mut child = run.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let (outside, inside) = outside_and_inside(child.id());
    let found: Vec<(u32, usize)> = inside.iter().map(|pid| (*pid, traces.in_process(*pid))).collect();
    let supervisor = traces.in_process(child.id());
    let holders: Vec<usize> = outside.iter().map(|pid| traces.in_process(*pid)).collect();
    child.kill().unwrap();
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    child.wait().unwrap();
    assert_eq!(line, "done\n", "{log}");
    assert!(found.len() >= 3, "pid 1, the shell and node: {found:?}");
    assert!(found.iter().all(|(_, count)| *count == 0), "{found:?}");
    assert_eq!(supervisor, 0, "nor has the process that sandboxes are copies of");
    assert!(
        matches!(holders[..], [count] if count > 0),
        "the same look finds it where it is held: {holders:?}"
    );
    assert!(!holds(&journal, VALUE) && !log.contains(VALUE), "{log}");
    assert!(holds(&journal, "TOKEN put in"), "and its use is recorded");
    assert!(world.good.all().iter().filter(|request| request.contains(VALUE)).count() >= 1);
}

#[test]
fn a_wrapped_server_uses_a_secret_that_it_does_not_have() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new();
    let stage = Stage::new(users()[0]);
    let own = stage.path("own.pem");
    std::fs::write(&own, &world.authority.pem).unwrap();
    let manifest = stage.path("m.toml");
    let lines =
        format!("name = 's'\nversion = '1'\nserver_capabilities = ['{GRANT}', 'exec:spawn:/usr/bin/curl']\n");
    std::fs::write(&manifest, lines).unwrap();
    let ask =
        "/usr/bin/curl -sS -H \"Authorization: Bearer $TOKEN\" https://good.test/x >&2; cat > /dev/null";
    let mut command = crate::escape::as_user(users()[0], stage.path("bailiwick"));
    command.arg("wrap").arg("--manifest").arg(&manifest).args([
        "--no-journal",
        "--secret",
        "TOKEN=env:THE_VALUE",
    ]);
    command.args(["--hosts", "good.test=93.184.216.34", "--", "/usr/bin/bash", "-c", ask]);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", stage.path("")).env("SSL_CERT_FILE", own);
    command.env("THE_VALUE", VALUE).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let input = child.stdin.take();
    for _ in 0..600 {
        if world.good.count() > 0 && world.good.all()[0].contains("authorization") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    drop(input);
    let output: Output = child.wait_with_output().unwrap();
    assert!(world.good.all().join("\n").contains(VALUE), "{output:?}");
}

#[test]
fn without_a_usable_source_nothing_starts() {
    if !in_world(test_name!()) {
        return;
    }
    let stage = Stage::new(users()[0]);
    let file = stage.path("short");
    std::fs::write(&file, "short\n").unwrap();
    let short = format!("TOKEN=file:{}", file.display());
    let seen = format!("fs:read:{}", file.display());
    let cases: [(&[&str], &[&str], &str); 8] = [
        (&[GRANT], &[], "has no source of its value; name one with `--secret TOKEN="),
        (&[GRANT], &["--secret", "TOKEN=env:NOT_SET"], "`env:NOT_SET` was tried"),
        (&[GRANT], &["--secret", "TOKEN=cmd:false"], "`cmd:false` was tried"),
        (&[GRANT], &["--secret", &short], "fewer than 16 characters"),
        (&[GRANT, &seen], &["--secret", &short], "the program may read"),
        (&[GRANT, "env:read:THE_VALUE"], &["--secret", "TOKEN=env:THE_VALUE"], "the program may read"),
        (&[], &["--secret", "TOKEN=env:THE_VALUE"], "nothing brokers `TOKEN`"),
        (&[GRANT], &["--secret", "TOKEN=env:THE_VALUE", "--backend", "landlock"], "needs the native sandbox"),
    ];
    for (caps, options, why) in cases {
        let mut run = stage.run(caps, &[&WORLD[..], options, &["--"]].concat());
        let output = run.args(["/usr/bin/echo", "ran"]).env("THE_VALUE", VALUE).output().unwrap();
        let complaint = text(&output.stderr);
        assert!(output.status.code() != Some(0) && output.stdout.is_empty(), "{options:?} {output:?}");
        assert!(complaint.contains(why) && !complaint.contains(VALUE), "{options:?} {complaint}");
    }
}
