//! The same attempts under other backends: what differs from our own sandbox is listed, with the words in which the
//! artifact's coverage or notes say so.
//!
//! Where an artifact claims that the kernel holds an aspect exactly, no attempt of that aspect may work that our own
//! sandbox refuses, unless a note says so or the list calls it `own` (it reaches nothing of the host) or `gap`.
//! firejail is no backend of `run`: it is started by the line that the compiler writes, a few attempts at a time, as it
//! takes 128 arguments.

use std::path::Path;
use std::sync::LazyLock;

use bailiwick_compile::Target;
use bailiwick_policy::artifact::{Artifact, Provenance};
use bailiwick_policy::authority::Authority;
use bailiwick_policy::capability::Capability;
use bailiwick_policy::enforcement::{Aspect, Floor, Level, Precision};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::Plan;

use super::rows::{Expected, Row, expected, rows};
use super::world::{User, World};
use super::{SCENES, wrong};
use bailiwick_testkit::skip;

/// One way in which a backend is not like our own sandbox.
struct Difference {
    backend: &'static str,
    id: &'static str,
    /// What happens instead; `None` if the whole scene is refused.
    instead: Option<Expected>,
    /// Words of the artifact's coverage or notes, or of the refusal.
    because: &'static str,
}

#[test]
fn bubblewrap_holds_what_it_claims() {
    held_as_claimed(Target::Bwrap, "bwrap");
}

#[test]
fn a_container_holds_what_it_claims() {
    held_as_claimed(Target::Oci, "runc");
}

#[test]
fn firejail_holds_what_it_claims() {
    if !rustix::process::getuid().is_root() {
        return skip("firejail shows no directory that a plain user could make a world in");
    }
    held_as_claimed(Target::Firejail, "firejail");
}

fn held_as_claimed(target: Target, program: &str) {
    if !is_installed(program) {
        return skip(&format!("no {program} here"));
    }
    let root = rustix::process::getuid().is_root();
    // firejail lets no user start it that its own list leaves out.
    let users = match (root, target) {
        (true, Target::Firejail) => &[User::Root][..],
        (true, _) => &[User::Root, User::Plain],
        (false, _) => &[User::Caller],
    };
    let mut seen = Vec::new();
    let wrongs: Vec<String> =
        users.iter().flat_map(|user| differences_of(target, *user, &mut seen)).collect();
    let unseen = differences().into_iter().filter(|known| known.backend == target.as_str());
    let unseen: Vec<&str> = unseen.map(|known| known.id).filter(|id| !seen.contains(id)).collect();
    assert!(wrongs.is_empty(), "{} under {target:?}:\n{}", wrongs.len(), wrongs.join("\n"));
    assert!(unseen.is_empty(), "listed, but {target:?} is like our own sandbox there: {unseen:?}");
}

fn is_installed(program: &str) -> bool {
    ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].iter().any(|dir| Path::new(dir).join(program).exists())
}

/// What is wrong with a backend; what differs as listed is added to `seen`.
fn differences_of(target: Target, user: User, seen: &mut Vec<&'static str>) -> Vec<String> {
    let mut wrongs = Vec::new();
    for (scene, grants) in SCENES {
        let world = World::below(if target == Target::Firejail { "/srv" } else { "/var/tmp" }, user);
        let mut caps: Vec<String> = grants.iter().map(|grant| world.fill(grant)).collect();
        // Other backends show a program only where it is granted.
        caps.push(world.fill("fs:read:{probe}"));
        if let Some(known) = known(target, scene) {
            let (code, text) = refusal(&world, target, &caps);
            if code == Some(125) && text.contains(known.because) {
                seen.push(known.id);
            } else {
                wrongs.push(format!("{scene} as {user:?}: not refused, {code:?} {text}"));
            }
            continue;
        }
        let artifact = artifact(target, &caps).expect("an artifact");
        let rows: Vec<Row> =
            rows().into_iter().filter(|row| row.scene == scene && !STOPS.contains(&row.id)).collect();
        let answers = if target == Target::Firejail {
            under_firejail(&world, &artifact, &rows)
        } else {
            world.try_inside(target.as_str(), &caps, &rows)
        };
        for (row, answer) in rows.iter().zip(&answers) {
            let Some(text) = wrong(&world, row, &row.expected, answer) else { continue };
            match known(target, row.id) {
                None => wrongs.push(format!("as {user:?}: {text}")),
                Some(known) => {
                    seen.push(known.id);
                    let instead = known.instead.as_ref().expect("a row has an answer");
                    wrongs.extend(wrong(&world, row, instead, answer));
                    wrongs.extend(unsaid(&artifact, row, &known));
                }
            }
        }
    }
    wrongs
}

/// What is said where nothing is started.
fn refusal(world: &World, target: Target, caps: &[String]) -> (Option<i32>, String) {
    if target == Target::Firejail {
        return (Some(125), artifact(target, caps).expect_err("a refusal").to_string());
    }
    world.refusal(target.as_str(), caps)
}

fn under_firejail(world: &World, artifact: &Artifact, rows: &[Row]) -> Vec<String> {
    let [profile] = artifact.files() else { panic!("one file") };
    let path = world.write(&profile.name, &profile.text);
    let end = artifact.argv().iter().position(|word| word == "--").expect("where the command starts");
    let line = artifact.argv()[..=end].iter();
    let line: Vec<String> = line.map(|word| word.replace(&profile.name, &path)).collect();
    world.try_with(&line, rows, 20)
}

/// Attempts that stop the sandbox itself where nothing refuses them: pid 1 waits for its tracer for ever.
const STOPS: [&str; 1] = ["trace-init"];

/// What the artifact claims in spite of a difference, or does not say.
fn unsaid(artifact: &Artifact, row: &Row, known: &Difference) -> Option<String> {
    if ["own: ", "gap: "].iter().any(|word| known.because.starts_with(word)) {
        return None;
    }
    let Some(aspect) = aspect(row) else {
        return (!known.because.starts_with("no aspect: ")).then(|| format!("{}: of no aspect", row.id));
    };
    let held = artifact.coverage().held(aspect);
    let notes = artifact.notes().iter().any(|note| note.contains(known.because));
    if !notes && !held.why.contains(known.because) {
        return Some(format!("{}: nowhere does it say `{}`, but `{}`", row.id, known.because, held.why));
    }
    let opens =
        matches!(row.expected, Expected::Refused) && !matches!(known.instead, Some(Expected::Refused));
    let exact = held.level == Level::Kernel && held.precision == Precision::Exact;
    (opens && exact && !notes).then(|| format!("{}: {aspect:?} is claimed to be exact", row.id))
}

/// What an attempt is about; nothing that coverage speaks of for the kernel's own surface.
fn aspect(row: &Row) -> Option<Aspect> {
    match row.heading {
        "Files" => Some(Aspect::Files),
        "Mounts and namespaces" | "Processes" => Some(Aspect::Processes),
        "Programs" => Some(Aspect::Exec),
        "Sockets and the network" if row.id.starts_with("unix") => Some(Aspect::Ipc),
        "Sockets and the network" => Some(Aspect::Network),
        "The environment" => Some(Aspect::Environment),
        _ => None,
    }
}

fn artifact(target: Target, caps: &[String]) -> Result<Artifact, bailiwick_compile::Refusal> {
    let caps: Vec<Capability> = caps.iter().map(|cap| cap.parse().expect("a capability")).collect();
    let authority = Authority::from_capabilities(&caps).expect("an authority");
    let plan = Plan::for_authority("probe", &authority, &HostFacts::unknown()).expect("a plan");
    let provenance = Provenance { manifest: None, compiler: String::new() };
    bailiwick_compile::compile(target, &plan, &Floor::none(), provenance)
}

fn known(target: Target, id: &str) -> Option<Difference> {
    differences().into_iter().find(|known| known.backend == target.as_str() && known.id == id)
}

/// The lines of `backends.txt`.
fn differences() -> Vec<Difference> {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/escape/backends.txt");
        std::fs::read_to_string(path).expect("the differences")
    });
    TEXT.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(difference).collect()
}

fn difference(line: &'static str) -> Difference {
    let cells: Vec<&'static str> = line.split(" | ").map(str::trim).collect();
    let [backend, id, instead, because] = cells[..] else { panic!("four cells: {line}") };
    Difference { backend, id, instead: (instead != "refused").then(|| expected(instead)), because }
}
