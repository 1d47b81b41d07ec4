//! Programs that people use, none of which is told of a proxy: each reaches the granted name and nothing else.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::servers::{self, Authority, Files, Seen};
use super::world::{Stage, in_world, test_name, users};
use super::{EVIL, GOOD, WORLD};
use bailiwick_testkit::skip;

/// `{url}` and `{ca}` are filled in.
struct Client {
    words: &'static [&'static str],
    /// Variables that say whom to trust.
    variable: Option<&'static str>,
}

const CURL: Client = Client { words: &["/usr/bin/curl", "-sS", "--cacert", "{ca}", "{url}"], variable: None };

const WGET: Client = Client {
    words: &["/usr/bin/wget", "-q", "-O", "-", "--tries=1", "--ca-certificate={ca}", "{url}"],
    variable: None,
};

const PYTHON: Client = Client {
    words: &[
        "/usr/bin/python3",
        "-c",
        "import sys, urllib.request as r; sys.stdout.write(r.urlopen(sys.argv[1]).read().decode())",
        "{url}",
    ],
    variable: Some("SSL_CERT_FILE"),
};

const REQUESTS: Client = Client {
    words: &[
        "/usr/bin/python3",
        "-c",
        "import sys; sys.path.insert(0, sys.argv[2]); import requests; sys.stdout.write(requests.get(sys.argv[1]).text)",
        "{url}",
        "{packages}",
    ],
    variable: Some("REQUESTS_CA_BUNDLE"),
};

const NODE: Client = Client {
    words: &[
        "/usr/bin/node",
        "-e",
        "fetch(process.argv[1]).then(r => r.text()).then(t => process.stdout.write(t))",
        "{url}",
    ],
    variable: Some("NODE_EXTRA_CA_CERTS"),
};

#[test]
fn curl_reaches_what_is_granted() {
    if in_world(test_name!()) && there(&CURL) {
        World::new().holds(&CURL);
    }
}

#[test]
fn wget_reaches_what_is_granted() {
    if in_world(test_name!()) && there(&WGET) {
        World::new().holds(&WGET);
    }
}

#[test]
fn python_urllib_reaches_what_is_granted() {
    if in_world(test_name!()) && there(&PYTHON) {
        World::new().holds(&PYTHON);
    }
}

#[test]
fn python_requests_reaches_what_is_granted() {
    if in_world(test_name!()) && there(&PYTHON) {
        match packages() {
            Some(_) => World::new().holds(&REQUESTS),
            None => skip("no `requests` in the cache that scripts/test fills"),
        }
    }
}

#[test]
fn node_fetch_reaches_what_is_granted() {
    if in_world(test_name!()) && there(&NODE) {
        World::new().holds(&NODE);
    }
}

#[test]
fn git_clones_what_is_granted() {
    if !in_world(test_name!()) || !there(&Client { words: &["/usr/bin/git"], variable: None }) {
        return;
    }
    let source = tempfile::tempdir().unwrap();
    let repository = "git init -q -b main work && cd work && echo text > file && git add file && \
                      git -c user.name=t -c user.email=t@t.test commit -q -m one && cd .. && \
                      git clone -q --bare work repo.git && git -C repo.git update-server-info";
    let made = Command::new("sh").args(["-c", repository]).current_dir(source.path()).status().unwrap();
    assert!(made.success());
    let world = World::serving(&servers::files(source.path()));
    for user in users() {
        let stage = Stage::new(*user);
        let directory = stage.directory("clones");
        let clone = |host: &str, to: &str| {
            let writable = format!("fs:read,write:{}/**", directory.display());
            let url = format!("https://{host}/repo.git");
            let words = ["/usr/bin/git", "clone", "-q", &url, &format!("{}/{to}", directory.display())];
            world.output(&stage, &[&writable, "net:connect:good.test:443"], &words, Some("GIT_SSL_CAINFO"))
        };
        let cloned = clone("good.test", "good");
        assert!(cloned.status.success(), "{}", said(&cloned));
        assert_eq!(std::fs::read_to_string(directory.join("good/file")).unwrap(), "text\n");
        let refused = clone("evil.test", "evil");
        assert!(!refused.status.success());
        assert!(said(&refused).contains("refused evil.test: not granted"), "{}", said(&refused));
        assert_eq!(world.evil.count(), 0);
    }
}

/// Libraries look names up in their own ways: the C libraries' and node's own.
#[test]
fn every_resolver_finds_what_is_granted_and_nothing_else() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new();
    let dir = tempfile::tempdir().unwrap();
    for compiler in ["cc", "musl-gcc"] {
        let Some(built) = resolver(compiler, dir.path()) else {
            skip(&format!("no {compiler} here"));
            continue;
        };
        for user in users() {
            let stage = Stage::new(*user);
            let lookup = stage.path("lookup");
            std::fs::copy(&built, &lookup).unwrap();
            world.finds_only_what_is_granted(&stage, &[lookup.to_str().unwrap()]);
        }
    }
    if there(&NODE) {
        let script = "require('dns').resolve4(process.argv[1], (e, a) => console.log(e ? e.code : a[0]))";
        world.finds_only_what_is_granted(&Stage::new(users()[0]), &["/usr/bin/node", "-e", script]);
    }
}

/// A program that prints the first address of a name by `getaddrinfo`.
fn resolver(compiler: &str, dir: &Path) -> Option<PathBuf> {
    let source = dir.join("lookup.c");
    let text = "#include <netdb.h>\n#include <stdio.h>\n#include <arpa/inet.h>\n\
                int main(int n, char **a) { struct addrinfo *r, h = { .ai_family = AF_INET }; char t[64];\n\
                int e = getaddrinfo(a[n - 1], 0, &h, &r); if (e) { puts(\"ENOTFOUND\"); return 0; }\n\
                puts(inet_ntop(AF_INET, &((struct sockaddr_in *)r->ai_addr)->sin_addr, t, 64)); return 0; }\n";
    std::fs::write(&source, text).unwrap();
    let out = dir.join(compiler);
    let mut build = Command::new(compiler);
    build.arg("-o").arg(&out).arg(&source);
    if compiler != "cc" {
        // Its loader is not among the system's libraries.
        build.arg("-static");
    }
    build.status().ok()?.success().then_some(out)
}

struct World {
    authority: Authority,
    good: Seen,
    evil: Seen,
}

impl World {
    fn new() -> Self {
        Self::serving(&Files::default())
    }

    fn serving(files: &Files) -> Self {
        let authority = Authority::new();
        let good = servers::https(&format!("{GOOD}:443"), &authority, &["good.test", "other.test"], files);
        let evil = servers::https(&format!("{EVIL}:443"), &authority, &["evil.test"], files);
        Self { authority, good, evil }
    }

    /// Runs a program with the certificate of those to trust.
    fn output(&self, stage: &Stage, caps: &[&str], words: &[&str], variable: Option<&str>) -> Output {
        let ca = stage.path("ca.pem");
        std::fs::write(&ca, &self.authority.pem).unwrap();
        let readable = format!("fs:read:{}", ca.display());
        let visible = variable.map(|name| format!("env:read:{name}"));
        let mut caps = caps.to_vec();
        caps.push(&readable);
        caps.extend(visible.as_deref());
        let mut options = WORLD.to_vec();
        // Another name of the granted host's address.
        options.extend(["--hosts", "other.test=93.184.216.34"]);
        let mut command = stage.run(&caps, &options);
        if let Some(name) = variable {
            command.env(name, &ca);
        }
        let filled = words.iter().map(|word| word.replace("{ca}", ca.to_str().unwrap()));
        command.arg("--").args(filled).output().unwrap()
    }

    fn holds(&self, client: &Client) {
        for user in users() {
            let stage = Stage::new(*user);
            let packages = stage.path("packages");
            let readable = format!("fs:read:{}/**", packages.display());
            let mut caps = vec!["net:connect:good.test:443"];
            if client.words.contains(&"{packages}") {
                copy(&self::packages().unwrap(), &packages);
                caps.push(&readable);
            }
            let asked = |caps: &[&str], url: &str| {
                let packages = packages.to_str().unwrap();
                let fill = |word: &&str| word.replace("{url}", url).replace("{packages}", packages);
                let words: Vec<String> = client.words.iter().map(fill).collect();
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                self.output(&stage, caps, &words, client.variable)
            };
            let (good, evil) = (self.good.count(), self.evil.count());
            let fine = asked(&caps, "https://good.test/");
            assert!(fine.status.success(), "{user:?} {}", said(&fine));
            assert_eq!(String::from_utf8_lossy(&fine.stdout), "hello");
            assert!(said(&fine).contains("allowed good.test:443\n"), "{}", said(&fine));
            assert_eq!(self.good.count(), good + 1);
            for (url, why) in [
                ("https://evil.test/", "refused evil.test: not granted"),
                ("https://other.test/", "refused other.test: not granted"),
                ("https://93.184.216.66/", "refused 93.184.216.66:443: not granted"),
                ("https://good.test:8443/", "refused good.test:8443: granted on other ports only"),
            ] {
                let refused = asked(&caps, url);
                assert!(!refused.status.success(), "{url} {}", said(&refused));
                assert!(said(&refused).contains(why), "{url} {}", said(&refused));
            }
            assert_eq!((self.good.count(), self.evil.count()), (good + 1, evil));
            caps.push("net:connect:evil.test:443");
            let granted = asked(&caps, "https://evil.test/");
            assert!(granted.status.success(), "(control) {}", said(&granted));
        }
    }

    fn finds_only_what_is_granted(&self, stage: &Stage, program: &[&str]) {
        let found = |name| {
            let words: Vec<&str> = program.iter().copied().chain([name]).collect();
            let output = self.output(stage, &["net:connect:good.test:443"], &words, None);
            (String::from_utf8_lossy(&output.stdout).into_owned(), said(&output))
        };
        let (good, told) = found("good.test");
        assert!(good.starts_with("44.128."), "{program:?}: {good}{told}");
        let (evil, told) = found("evil.test");
        assert_eq!(evil, "ENOTFOUND\n", "{program:?}: {told}");
    }
}

fn there(client: &Client) -> bool {
    let here = Path::new(client.words[0]).exists();
    if !here {
        skip(&format!("no {} here", client.words[0]));
    }
    here
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Packages that `scripts/test` keeps in its cache, with `requests` among them.
pub(super) fn packages() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let lib = cache.join("bailiwick/validators/lib");
    let places = lib.read_dir().ok()?.filter_map(|entry| Some(entry.ok()?.path().join("site-packages")));
    places.into_iter().find(|place| place.join("requests").is_dir())
}

pub(super) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for name in ["requests", "urllib3", "idna", "certifi", "charset_normalizer"] {
        let copied = Command::new("cp").arg("-r").arg(from.join(name)).arg(to).status().unwrap();
        assert!(copied.success(), "{name}");
    }
}
