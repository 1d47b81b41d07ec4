//! An enrolment of the host: its rules hold for all users, its key is root's. `/etc` is another one for these processes alone.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bailiwick_testkit::skip;
use serde_json::json;

use super::{Fleet, Home, shell_server, stderr, until};
use crate::wrap::{Wrapped, call, text};

const PLAIN: u32 = 65534;

const MANIFEST: &str = "name = 'guarded'\nversion = '1'\n[[tools]]\nname = 'free'\ncapabilities = []\n\
    [[tools]]\nname = 'asks'\ncapabilities = []\nconstraints = { confirm = true }\n\
    [[tools]]\nname = 'spends'\ncapabilities = []\nconstraints = { fleet_budget = { name = 'calls' } }\n";

/// Puts a directory over `/etc/bailiwick/fleet`, and becomes a user.
const ENTER: &str = r#"set -e; place=$1; user=$2; shift 2
mount -t overlay overlay -o "lowerdir=$place/etc:/etc" /etc
mount --bind "$place/fleet" /etc/bailiwick/fleet
exec setpriv --reuid="$user" --regid="$user" --clear-groups -- "$@""#;

/// A host of its own, as far as `/etc/bailiwick/fleet` goes.
struct Host {
    place: tempfile::TempDir,
    program: PathBuf,
}

/// A user of it.
struct User<'a> {
    host: &'a Host,
    home: Home,
    id: u32,
}

impl Host {
    /// Makes one, or says why that cannot be.
    fn new() -> Option<Self> {
        let place = tempfile::Builder::new().prefix("bailiwick-host").tempdir_in("/var/tmp").unwrap();
        if std::fs::metadata(place.path()).unwrap().uid() != 0 {
            skip("only root can put a directory over /etc/bailiwick");
            return None;
        }
        std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::create_dir_all(place.path().join("etc/bailiwick/fleet")).unwrap();
        std::fs::create_dir(place.path().join("fleet")).unwrap();
        let program = place.path().join("bailiwick");
        std::fs::copy(env!("CARGO_BIN_EXE_bailiwick"), &program).unwrap();
        let admin = place.path().join("bailiwick-admin");
        std::fs::copy(env!("CARGO_BIN_EXE_bailiwick-admin"), admin).unwrap();
        let host = Self { place, program };
        let tried = host.enter(0, Path::new("true")).output().unwrap();
        if !tried.status.success() {
            skip(&format!("no overlay over /etc: {}", stderr(&tried)));
            return None;
        }
        Some(host)
    }

    fn enter(&self, user: u32, program: &Path) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "/bin/sh", "-c", ENTER, "sh"]);
        command.arg(self.place.path()).arg(user.to_string()).arg(program);
        command
    }

    fn fleet(&self) -> PathBuf {
        self.place.path().join("fleet")
    }

    fn user(&self, id: u32) -> User<'_> {
        let home = Home::new();
        chown(home.path(""), Some(id), Some(id)).unwrap();
        User { host: self, home, id }
    }
}

impl User<'_> {
    fn bailiwick(&self, args: &[&str]) -> Command {
        let mut command = self.host.enter(self.id, &self.host.program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.args(args).env_clear().env("HOME", self.home.path("")).env("PATH", path);
        command.current_dir(self.home.path("")).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = self.bailiwick(args).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output))
    }

    fn wrap(&self) -> Wrapped {
        let file = self.home.manifest(MANIFEST);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let mut command = self.bailiwick(&["wrap", "--manifest"]);
        command.arg(file).args(["--", "/bin/sh", "-c", &shell_server("")]);
        Wrapped::spawned(command)
    }

    /// Why nothing starts, once this user's copy of the log says so.
    fn refusal(&self) -> String {
        until("nothing starts", || {
            let mut wrapped = self.wrap();
            let hello = wrapped.initialize();
            let why = hello["result"]["instructions"].as_str()?.to_owned();
            assert_eq!(wrapped.end().0, Some(125), "{why}");
            Some(why)
        })
    }
}

#[test]
fn the_rules_of_a_host_hold_for_all_its_users_and_its_key_is_roots() {
    let (Some(fleet), Some(host)) = (Fleet::start(), Host::new()) else { return };
    let (root, plain) = (host.user(0), host.user(PLAIN));
    // A directory that is there and empty is an enrolment that cannot be used.
    for user in [&root, &plain] {
        assert!(user.refusal().contains("/etc/bailiwick/fleet/fleet.toml"));
    }
    std::fs::write(root.home.path("token"), fleet.token("machine")).unwrap();
    let token = root.home.path("token").display().to_string();
    let (code, said) = plain.run(&["enroll", "--token-file", &token]);
    assert_ne!(code, Some(0), "a plain user enrols no host: {said}");
    let (code, said) = root.run(&["enroll", "--token-file", &token]);
    assert_eq!(code, Some(0), "{said}");
    let mode = |name: &str| std::fs::metadata(host.fleet().join(name)).unwrap().mode() & 0o777;
    assert_eq!(mode("member.key"), 0o600);
    for shown in ["fleet.toml", "hub.pem", "member.pem"] {
        assert_eq!(mode(shown), 0o644, "{shown}");
    }

    // Root asks the hub, and a plain user has the rules alone.
    fleet.admin.prints(&[
        "fleet", "budget", "calls", "--unit", "calls", "--total", "9", "--slice", "3", "--lease", "10m",
    ]);
    let mut wrapped = root.wrap();
    wrapped.initialize();
    assert_eq!(text(&wrapped.ask(&call(1, "free", &json!({})))), "ran");
    assert_eq!(text(&wrapped.ask(&call(2, "spends", &json!({})))), "ran");
    wrapped.send(&call(3, "asks", &json!({})));
    let waiting = fleet.waiting(&fleet.admin);
    fleet.admin.prints(&["fleet", "approve", waiting["request"]["id"].as_str().unwrap(), "--yes"]);
    assert_eq!(text(&wrapped.next()), "ran");
    drop(wrapped.end());
    let mut wrapped = plain.wrap();
    wrapped.initialize();
    assert_eq!(text(&wrapped.ask(&call(1, "free", &json!({})))), "ran");
    for (id, tool, code) in [(2, "spends", "fleet-budget-spent"), (3, "asks", "consent-missing")] {
        let refused = wrapped.ask(&call(id, tool, &json!({})));
        assert_eq!(refused["result"]["_meta"]["dev.bailiwick/decision"]["code"], code, "{refused}");
        assert!(text(&refused).contains("member.key` is another user's"), "{refused}");
    }
    let (code, said) = plain.run(&["fleet", "status"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("enrolled by another one") && said.contains("entries, root "), "{said}");
    assert_ne!(plain.run(&["fleet", "report"]).0, Some(0), "the key is root's");

    // What runs ends, and nothing starts, whatever settings a user has.
    fleet.admin.prints(&["fleet", "revoke", "server", "guarded", "--reason", "leaked", "--yes"]);
    assert!(crate::run::eventually(|| wrapped.child.try_wait().unwrap().is_some()));
    let elsewhere = plain.home.path(".config/bailiwick/fleet");
    std::fs::create_dir_all(&elsewhere).unwrap();
    for user in [&root, &plain] {
        let why = user.refusal();
        assert!(why.contains("the fleet revoked the server `guarded`") && why.contains("leaked"), "{why}");
    }
    let other = host.user(PLAIN);
    let removed =
        other.host.enter(PLAIN, Path::new("rm")).args(["-f", "/etc/bailiwick/fleet/fleet.toml"]).output();
    assert!(!removed.unwrap().status.success());

    // What a user may not look into holds nothing up less.
    std::fs::set_permissions(host.fleet(), std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(other.refusal().contains("/etc/bailiwick/fleet/fleet.toml"));
    // The control: on a host without it, the same starts.
    let mut wrapped = other.home.wrap(MANIFEST);
    wrapped.initialize();
    assert_eq!(text(&wrapped.ask(&call(1, "free", &json!({})))), "ran");
}
