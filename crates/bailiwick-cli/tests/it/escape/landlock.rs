//! The same attempts where Landlock and the filter stand alone: what differs from our own sandbox is listed in
//! `landlock.txt`, with the words in which the coverage says so.
//!
//! There is no root, no namespace and no mount of its own. What Landlock cannot express is refused as a whole.

use std::path::Path;

use bailiwick_confine::fallback::coverage_here;
use bailiwick_policy::authority::Authority;
use bailiwick_policy::capability::Capability;
use bailiwick_policy::enforcement::{Aspect, Level, Precision};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::Plan;

use super::rows::{Expected, Row, expected, rows};
use super::world::{User, World};
use super::{SCENES, wrong};
use bailiwick_testkit::skip;

/// Attempts that have nothing to try: there is no `/tmp` of its own to write to.
const WITHOUT_TMP: [&str; 2] = ["exec-written-tmp", "exec-written-shm"];

struct Difference {
    id: &'static str,
    /// What happens instead; `None` if the whole scene is refused.
    instead: Option<Expected>,
    /// Words of the coverage, or of the refusal; `own: …` what is reached is not the host's to lose.
    because: &'static str,
}

fn differences() -> Vec<Difference> {
    let lines = include_str!("landlock.txt").lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(difference).collect()
}

fn difference(line: &'static str) -> Difference {
    let cells: Vec<&'static str> = line.split(" | ").map(str::trim).collect();
    let [id, instead, because] = cells[..] else { panic!("three cells: {line}") };
    Difference { id, instead: (instead != "refused").then(|| expected(instead)), because }
}

/// What an attempt is about.
fn aspect(row: &Row) -> Option<Aspect> {
    match row.heading {
        "Files" => Some(Aspect::Files),
        "Processes" if row.id == "host-shared-memory" => Some(Aspect::Ipc),
        "Mounts and namespaces" | "Processes" => Some(Aspect::Processes),
        "Programs" => Some(Aspect::Exec),
        "Sockets and the network" if row.id.starts_with("unix") => Some(Aspect::Ipc),
        "Sockets and the network" => Some(Aspect::Network),
        "The environment" => Some(Aspect::Environment),
        _ => None,
    }
}

/// What is claimed in spite of a difference.
fn unsaid(caps: &[String], row: &Row, known: &Difference) -> Option<String> {
    if known.because.starts_with("own: ") {
        return None;
    }
    let caps: Vec<Capability> = caps.iter().map(|cap| cap.parse().expect("a capability")).collect();
    let authority = Authority::from_capabilities(&caps).expect("an authority");
    let plan = Plan::for_authority("probe", &authority, &HostFacts::unknown()).expect("a plan");
    let coverage = coverage_here(&plan).expect("Landlock");
    let Some(aspect) = aspect(row) else {
        return (!known.because.starts_with("no aspect: ")).then(|| format!("{}: of no aspect", row.id));
    };
    let held = coverage.held(aspect);
    if !held.why.contains(known.because) {
        return Some(format!("{}: nowhere does it say `{}`, but `{}`", row.id, known.because, held.why));
    }
    let exact = held.level == Level::Kernel && held.precision == Precision::Exact;
    exact.then(|| format!("{}: {aspect:?} is claimed to be exact", row.id))
}

fn differences_of(user: User, seen: &mut Vec<&'static str>) -> Vec<String> {
    let known = differences();
    let known = |id: &str| known.iter().find(|known| known.id == id);
    let mut wrongs = Vec::new();
    for (scene, grants) in SCENES {
        let world = World::new(user);
        let caps: Vec<String> = grants.iter().map(|grant| world.fill(grant)).collect();
        if let Some(known) = known(scene) {
            let (code, text) = world.refusal("landlock", &caps);
            seen.push(known.id);
            if code != Some(125) || !text.contains(known.because) {
                wrongs.push(format!("{scene} as {user:?}: not refused, {code:?} {text}"));
            }
            continue;
        }
        let rows: Vec<Row> =
            rows().into_iter().filter(|row| row.scene == scene && !WITHOUT_TMP.contains(&row.id)).collect();
        for (row, answer) in rows.iter().zip(&world.try_inside("landlock", &caps, &rows)) {
            let Some(text) = wrong(&world, row, &row.expected, answer) else { continue };
            match known(row.id) {
                None => wrongs.push(format!("as {user:?}: {text}")),
                Some(known) => {
                    seen.push(known.id);
                    let instead = known.instead.as_ref().expect("a row has an answer");
                    wrongs.extend(wrong(&world, row, instead, answer));
                    wrongs.extend(unsaid(&caps, row, known));
                }
            }
        }
        if !Path::new(&world.fill("{out}/secret")).exists() {
            wrongs.push(format!("{scene} as {user:?}: a file outside is gone"));
        }
    }
    wrongs
}

#[test]
fn landlock_alone_holds_what_it_claims() {
    let root = rustix::process::getuid().is_root();
    let users = if root { &[User::Root, User::Plain][..] } else { &[User::Caller] };
    let mut seen = Vec::new();
    let wrongs: Vec<String> = users.iter().flat_map(|user| differences_of(*user, &mut seen)).collect();
    assert!(wrongs.is_empty(), "{}:\n{}", wrongs.len(), wrongs.join("\n"));
    let unseen: Vec<&str> =
        differences().iter().map(|known| known.id).filter(|id| !seen.contains(id)).collect();
    assert!(unseen.is_empty() || !root, "listed, but it is like our own sandbox there: {unseen:?}");
}

#[test]
fn a_file_system_of_the_kernel_below_a_grant_is_refused() {
    if !rustix::process::getuid().is_root() {
        return skip("not root: nothing can be mounted");
    }
    let dir =
        tempfile::Builder::new().prefix("bailiwick-mounts").tempdir_in("/var/tmp").expect("a directory");
    std::fs::create_dir_all(dir.path().join("w/p")).expect("a directory");
    let run = |kind: &str| {
        let (bailiwick, at) = (super::world::sandbox(), dir.path().display());
        // Opened for writing, and nothing is written.
        let inside =
            format!("(: >>{at}/w/p/sys/kernel/core_pattern) 2>/dev/null && echo open || echo closed");
        let line = format!(
            "mount -t {kind} none {at}/w/p && exec {} run --no-journal --backend landlock --cap fs:read,write:{at}/w -- /bin/sh -c '{inside}'",
            bailiwick.display()
        );
        let mut command = std::process::Command::new("unshare");
        command.args(["-m", "sh", "-c", &line]).env("HOME", "/nonexistent").current_dir("/");
        command.stdin(std::process::Stdio::null()).output().expect("it starts")
    };
    for kind in ["proc", "sysfs", "devpts", "mqueue"] {
        let ran = run(kind);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.stdout.is_empty(), "{kind}: {}", String::from_utf8_lossy(&ran.stdout));
        assert!(
            ran.status.code() == Some(125) && said.contains(&format!("is a mount of {kind}")),
            "{kind}: {said}"
        );
    }
    let ran = run("tmpfs");
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout),
        "closed\n",
        "(control) {}",
        String::from_utf8_lossy(&ran.stderr)
    );
}
