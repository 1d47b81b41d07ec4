//! Escapes: every property of the sandbox, tried from inside by a real program, as root and as a plain user.
//!
//! `escapes.txt` says what is tried and what must happen; `docs/escapes.md` is printed from it. Where an attempt
//! works outside the sandbox it is made there too, so that a probe which is broken proves nothing.

mod backends;
mod degraded;
mod fifo;
mod landlock;
mod mediator;
mod nested;
mod page;
mod races;
mod rows;
mod world;

use rows::{Expected, Outside, Row, rows};
use world::World;
pub(crate) use world::{User, as_user};

use bailiwick_testkit::skip;

/// What each scene grants, besides the probe itself. `{…}` are filled in by the world.
const SCENES: [(&str, &[&str]); 11] = [
    ("plain", &["fs:read:{r}", "fs:read,write:{w}"]),
    ("writeonly", &["fs:write:{w}"]),
    ("createonly", &["fs:create:{w}"]),
    ("deleteonly", &["fs:delete:{w}"]),
    ("glob", &["fs:read:{r}/*.txt"]),
    ("readall", &["fs:read:/**"]),
    ("spawn", &["exec:spawn:env"]),
    ("ipc", &["fs:read:{r}", "ipc:connect:unix:{r}/socket"]),
    ("env", &["env:read:BAILIWICK_ESCAPE_SECRET"]),
    ("home", &["fs:read:{home}/.ssh"]),
    ("code", &["fs:read:{code}?code=true"]),
];

#[test]
fn nothing_escapes_as_root() {
    if !rustix::process::getuid().is_root() {
        return skip("not root");
    }
    all_scenes(User::Root);
}

#[test]
fn nothing_escapes_as_a_plain_user() {
    all_scenes(if rustix::process::getuid().is_root() { User::Plain } else { User::Caller });
}

#[test]
fn the_attempts_work_outside() {
    let user = if rustix::process::getuid().is_root() { User::Root } else { User::Caller };
    outside(user);
    if user == User::Root {
        outside(User::Plain);
    }
}

#[test]
fn every_property_has_a_row_and_there_are_enough() {
    let rows = rows();
    let properties = rows.iter().filter(|row| !row.is_control()).count();
    assert!(properties >= 80, "{properties} properties");
    let mut ids: Vec<&str> = rows.iter().map(|row| row.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), rows.len(), "an id stands twice");
}

fn all_scenes(user: User) {
    let mut leaks = Vec::new();
    for (scene, grants) in SCENES {
        let mut world = World::new(user);
        let rows: Vec<Row> = rows().into_iter().filter(|row| row.scene == scene).collect();
        assert!(!rows.is_empty(), "no row is about `{scene}`");
        let caps: Vec<String> = grants.iter().map(|grant| world.fill(grant)).collect();
        let answers = world.try_inside("native", &caps, &rows);
        leaks.extend(
            rows.iter().zip(&answers).filter_map(|(row, answer)| wrong(&world, row, &row.expected, answer)),
        );
        leaks.extend(world.harm().into_iter().map(|harm| format!("{scene}: {harm}")));
    }
    assert!(leaks.is_empty(), "{} as {user:?}:\n{}", leaks.len(), leaks.join("\n"));
}

fn outside(user: User) {
    let works = |row: &Row| match row.outside {
        Outside::Works => true,
        Outside::WorksForRoot => user == User::Root,
        Outside::Untried => false,
    };
    let mut broken = Vec::new();
    for (scene, _) in SCENES {
        let world = World::new(user);
        let rows: Vec<Row> = rows().into_iter().filter(|row| row.scene == scene && works(row)).collect();
        for (row, answer) in rows.iter().zip(world.try_outside(&rows)) {
            if !answer.starts_with("ok") {
                broken.push(format!("{}: `{}` gave `{answer}`", row.id, world.fill(row.attempt)));
            }
        }
    }
    assert!(broken.is_empty(), "as {user:?}, without a sandbox:\n{}", broken.join("\n"));
}

/// What is wrong with an answer, if anything.
fn wrong(world: &World, row: &Row, expected: &Expected, answer: &str) -> Option<String> {
    let shown = answer.strip_prefix("ok").map(str::trim);
    let right = match expected {
        Expected::Refused => answer.starts_with("no "),
        Expected::Shows(text) => shown.is_some_and(|shown| shown.contains(&world.fill(text))),
        Expected::ShowsOnly(text) => shown.is_some_and(|shown| words(shown) == words(&world.fill(text))),
        Expected::Hides(text) => shown.is_some_and(|shown| !shown.contains(&world.fill(text))),
        Expected::ShowsNothing => {
            answer.starts_with("no ") || shown.is_some_and(|shown| words(shown).is_empty())
        }
    };
    (!right)
        .then(|| format!("{}: `{}` gave `{answer}`, expected {expected:?}", row.id, world.fill(row.attempt)))
}

fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    words.sort_unstable();
    words
}
