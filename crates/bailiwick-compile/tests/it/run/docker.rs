//! One container under a Docker daemon of our own, where one can start.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bailiwick_compile::Target;

use super::sandbox::{artifact, has, is_root};
use super::world::World;
use bailiwick_testkit::skip;

/// A daemon with directories and a socket of its own; stopped when dropped.
struct Daemon {
    process: Child,
    directory: tempfile::TempDir,
}

impl Daemon {
    /// Starts one without any network; `None` if it does not come up.
    fn start() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        let process = Command::new("dockerd")
            .args(["--bridge=none", "--iptables=false", "--ip6tables=false", "--storage-driver=vfs"])
            .args(["--data-root", &at("data"), "--exec-root", &at("exec"), "--pidfile", &at("pid")])
            .args(["-H", &format!("unix://{}", at("socket"))])
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(at("log")).unwrap())
            .spawn()
            .ok()?;
        let mut daemon = Self { process, directory };
        let until = Instant::now() + Duration::from_secs(30);
        while !daemon.docker(&["version"]).output().unwrap().status.success() {
            if Instant::now() > until || daemon.process.try_wait().unwrap().is_some() {
                let log = std::fs::read_to_string(daemon.directory.path().join("log")).unwrap_or_default();
                skip(&format!("dockerd does not start here: {}", log.lines().last().unwrap_or_default()));
                return None;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(daemon)
    }

    fn docker(&self, words: &[&str]) -> Command {
        let mut command = Command::new("docker");
        command
            .arg("-H")
            .arg(format!("unix://{}", self.directory.path().join("socket").display()))
            .args(words);
        command
    }

    /// An image with the probe and nothing else.
    fn import(&self, world: &World) -> &'static str {
        let archive = self.directory.path().join("image.tar");
        let tar =
            Command::new("tar").arg("-cf").arg(&archive).args(["-C", &world.path("bin"), "probe"]).status();
        assert!(tar.unwrap().success());
        let output = self.docker(&["import"]).arg(&archive).arg("probe:test").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        "probe:test"
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // the daemon takes its containerd down with it when it is asked to end
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let until = Instant::now() + Duration::from_secs(15);
        while self.process.try_wait().is_ok_and(|status| status.is_none()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        unmount_below(self.directory.path());
    }
}

/// What a daemon that was cut short leaves mounted.
fn unmount_below(directory: &Path) {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let paths = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(PathBuf::from);
    for path in paths.filter(|path| path.starts_with(directory)) {
        let _ = Command::new("umount").arg("-l").arg(path).status();
    }
}

#[test]
fn a_container_sees_what_is_granted() {
    if !has("docker") || !has("dockerd") {
        return;
    }
    if !is_root() {
        return skip("a Docker daemon needs root");
    }
    let Some(daemon) = Daemon::start() else { return };
    let world = World::new();
    let image = daemon.import(&world);
    let plan = world.plan(&["fs:read:@/ro", "fs:read,write:@/rw"]);
    let asked = [
        ("read", world.path("ro/file"), true),
        ("write", world.path("ro/file"), false),
        ("write", world.path("rw/file"), true),
        ("write", world.path("rw/.git/config"), false),
        ("read", world.path("secret/file"), false),
        ("read", world.path("ro/own/journal"), false),
        ("write", "/".to_owned(), false),
        ("write", "/tmp".to_owned(), true),
        ("read", "/etc/shadow".to_owned(), false),
        ("tcp", world.port().to_string(), false),
        ("abstract", world.abstract_name.clone(), false),
        ("signal", std::process::id().to_string(), false),
        ("capabilities", "-".to_owned(), false),
        ("remount", "/".to_owned(), false),
        ("namespace", "-".to_owned(), false),
        ("write", "/proc/sys/kernel/core_pattern".to_owned(), false),
    ];
    let made = artifact(Target::Docker, &plan);
    let argv = made.argv().iter().skip(1).map(|word| if word == "IMAGE" { image } else { word });
    let argv: Vec<&str> = argv.chain(["/probe"]).collect();
    let mut command = daemon.docker(&argv);
    command.args(asked.iter().flat_map(|(kind, argument, _)| [*kind, argument])).env("HOST_SECRET", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (environment, seen): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("env "));
    let expected: Vec<String> = asked
        .iter()
        .map(|(kind, argument, can)| format!("{kind} {argument} {}", if *can { "yes" } else { "no" }))
        .collect();
    assert_eq!(seen, expected);
    let mut names: Vec<&str> = environment.iter().map(|line| line.trim_start_matches("env ")).collect();
    names.sort_unstable();
    assert_eq!(names, ["HOME", "HOSTNAME", "LANG", "PATH"]);
}
