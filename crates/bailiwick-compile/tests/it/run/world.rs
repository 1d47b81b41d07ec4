//! A small world to be confined in: directories, a secret, sockets of the host, and the probe.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use bailiwick_policy::capability::CapabilitySet;
use bailiwick_policy::facts::{HostFacts, PathKind};
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::{BASE, Plan};
use bailiwick_policy::run_later::fixed_names;

/// A directory with things to be read, written and reached, gone when dropped.
pub(super) struct World {
    directory: tempfile::TempDir,
    pub(super) tcp: TcpListener,
    pub(super) abstract_name: String,
    _sockets: (UnixListener, UnixListener, UnixListener),
}

impl World {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["ro/inner", "rw/.git/hooks", "secret", "bin", "sockets", "ro/own"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["ro/file", "ro/inner/file", "rw/file", "rw/.git/config", "rw/.git/hooks/pre-commit"] {
            std::fs::write(at(name), "text").unwrap();
        }
        for name in ["rw/.mcp.json", "secret/file", "ro/own/journal"] {
            std::fs::write(at(name), "text").unwrap();
        }
        std::fs::copy(probe(), at("bin/probe")).unwrap();
        let abstract_name = format!("bailiwick-{}", at("").display());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let sockets = (
            UnixListener::bind_addr(&address).unwrap(),
            UnixListener::bind(at("sockets/host")).unwrap(),
            UnixListener::bind(at("ro/host")).unwrap(),
        );
        open_to_everyone(directory.path());
        Self { tcp: TcpListener::bind("127.0.0.1:0").unwrap(), abstract_name, _sockets: sockets, directory }
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    pub(super) fn port(&self) -> u16 {
        self.tcp.local_addr().unwrap().port()
    }

    /// A directory for the files of an artifact.
    pub(super) fn bundle(&self) -> PathBuf {
        let directory = tempfile::Builder::new().prefix("bundle").tempdir_in(self.directory.path()).unwrap();
        directory.keep()
    }

    /// The plan of these lines, `@` being this world; its `ro/own` directory is the product's.
    pub(super) fn plan(&self, lines: &[&str]) -> Plan {
        self.plan_with(lines, &self.path("ro/own"))
    }

    /// The same with another directory as the product's.
    pub(super) fn plan_with(&self, lines: &[&str], own: &str) -> Plan {
        let root = self.path("");
        let lines: Vec<String> = lines.iter().map(|line| line.replace("@/", &root)).collect();
        let set = CapabilitySet::new(lines.iter().map(String::as_str)).unwrap();
        Plan::for_authority("test", set.authority(), &self.facts(own)).unwrap()
    }

    /// The same where the host was asked for these names too.
    pub(super) fn plan_asking(&self, lines: &[&str], names: &[&str]) -> Plan {
        let root = self.path("");
        let lines: Vec<String> = lines.iter().map(|line| line.replace("@/", &root)).collect();
        let set = CapabilitySet::new(lines.iter().map(String::as_str)).unwrap();
        let paths = names.iter().map(|name| self.path(name));
        let facts = paths.fold(self.facts(&self.path("ro/own")), located);
        Plan::for_authority("test", set.authority(), &facts).unwrap()
    }

    fn facts(&self, own: &str) -> HostFacts {
        let mut facts = HostFacts::unknown().with_protected(AbsPath::new(own).unwrap());
        let base = BASE.iter().map(|entry| entry.path.to_owned());
        let late = ["rw", "rw/.git"].into_iter().flat_map(|directory| {
            let path = self.path(directory);
            fixed_names([&path, &path]).map(|name| format!("{path}/{name}")).collect::<Vec<_>>()
        });
        let on_the_way = [
            ".git",
            ".vscode",
            ".git/info",
            ".git/objects",
            ".git/objects/info",
            ".config",
            ".local",
            ".aws",
        ];
        let directories = on_the_way.map(|name| self.path(&format!("rw/{name}")));
        for path in base.chain(late).chain(directories).chain([own.to_owned()]) {
            facts = located(facts, path);
        }
        facts
    }
}

/// The same facts, with what is at a path.
fn located(facts: HostFacts, path: String) -> HostFacts {
    let place = match std::fs::metadata(&path) {
        Ok(about) if about.is_dir() => PathKind::Directory,
        Ok(_) => PathKind::File,
        Err(_) => PathKind::Missing,
    };
    let path = AbsPath::new(&path).unwrap();
    facts.with_place(path.clone(), path, place)
}

/// The probe, compiled once, without libraries so that it runs in an empty image too.
fn probe() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (path, building) =
            (directory.join("probe"), directory.join(format!("probe-{}", std::process::id())));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/run/probe.c");
        let built =
            Command::new("cc").args(["-O1", "-static", "-o"]).arg(&building).arg(source).status().unwrap();
        assert!(built.success(), "the probe does not compile");
        std::fs::rename(building, &path).unwrap();
        path
    })
}

/// Lets every user read and write below `directory`: only a sandbox is to keep them from it.
pub(super) fn open_to_everyone(directory: &Path) {
    let mode = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(directory, mode.clone()).unwrap();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            open_to_everyone(&path);
        } else {
            std::fs::set_permissions(&path, mode.clone()).unwrap();
        }
    }
}
