//! How good learned manifests are, measured: learned from all parts of the calls but one and tried with that one, in turn, for each
//! server; beside a draft made of what strace saw, and beside `sandlock learn` where that is installed.
//!
//! What every sandbox of the server shows (the system, its code and its runtime) counts for none of the three.
//!
//! Under-privilege is a held-out call that answers otherwise than bare. Over-privilege are atoms that were granted and that a trace of
//! *all* calls, made by strace and so by none of ours, does not need, over those that it needs. An atom is a directory with a
//! level (read or changed), a host, a program or a variable; a directory that is granted with everything below is one atom, and
//! how many files that opens is a column of its own.

mod atoms;
mod peers;

use std::collections::BTreeSet;
use std::path::Path;

use bailiwick_testkit::skip;

use self::atoms::{Atom, Trace};
use super::World;
use super::client::Era;
use super::learned::{Call, learn_from};
use super::table::{Server, learnable};

/// How many parts the calls are cut into.
const PARTS: usize = 3;
/// The most over-privilege of ours, in percent.
const MOST_OVER: usize = 5;

/// What was counted for one way of drafting.
#[derive(Default, Clone)]
struct Count {
    tried: usize,
    differ: usize,
    used: usize,
    unused: usize,
    files: usize,
    /// Why there is nothing to count.
    fault: Option<String>,
}

impl Count {
    fn add(&mut self, granted: &BTreeSet<Atom>, trace: &Trace) {
        let used = granted.iter().filter(|atom| trace.needs(atom)).count();
        self.used += used;
        self.unused += granted.len() - used;
        self.files = self.files.max(atoms::files_in_reach(granted));
    }

    fn over(&self) -> usize {
        (self.unused * 100).div_ceil(self.used.max(1))
    }

    fn shown(&self) -> String {
        match &self.fault {
            Some(why) => format!("{why:<38}"),
            None => format!(
                "{:>3} of {:<3} {:>6} % {:>7} {:>9}",
                self.differ,
                self.tried,
                self.over(),
                self.used + self.unused,
                self.files
            ),
        }
    }
}

/// The calls of a part, and all others.
fn split(server: &Server, part: usize) -> (Vec<Call>, Vec<Call>) {
    let is_held = |at: usize| at % PARTS == part;
    let of = |wanted: bool| {
        let all = server.calls.iter().enumerate().filter(|(at, _)| is_held(*at) == wanted);
        all.map(|(_, call)| *call).collect()
    };
    (of(true), of(false))
}

/// How many of the held-out calls answer otherwise than bare.
fn differing(bare: &[String], other: &[String], server: &Server) -> usize {
    let missing = bare.len().saturating_sub(other.len());
    missing + bare.iter().zip(other).filter(|(bare, other)| !server.is_same(bare, other)).count()
}

/// Ours, a draft of strace, and sandlock's, for one server.
fn measured(server: &Server, directory: &Path) -> [Count; 3] {
    let (world, entry) = (World::new(), server.entry(directory));
    let world = &world;
    // Its packages, and the runtime where that is not the system's: every sandbox shows these.
    let runtime = server.interpreter(directory).canonicalize().unwrap();
    let mut code = vec![directory.to_owned()];
    code.extend(runtime.ancestors().nth(2).map(Path::to_owned));
    let mut counts: [Count; 3] = Default::default();
    let trace = peers::traced(world, server, &entry, server.calls);
    let [ours, strace, sandlock] = &mut counts;
    for part in 0..PARTS {
        let (held, train) = split(server, part);
        if held.is_empty() || train.is_empty() {
            continue;
        }
        let answers = |command: std::process::Command| {
            world.prepare();
            world.answers_to(&held, server, Era::Legacy, command, false).calls
        };
        let mut bare = world.command(&entry);
        bare.args(server.args.iter().map(|word| world.fill(word)));
        let bare = answers(bare);

        world.prepare();
        let manifest = world.path("learned.toml");
        learn_from(&train, world, server, &entry, &manifest);
        let text = std::fs::read_to_string(&manifest).unwrap();
        ours.add(&atoms::of_manifest(&text, world, server), &trace);
        ours.tried += held.len();
        ours.differ += differing(&bare, &answers(peers::wrapped(world, server, &entry, &manifest)), server);

        let seen = peers::traced(world, server, &entry, &train);
        let drafted = world.path("strace.toml");
        let lines = seen.draft(&code);
        std::fs::write(&drafted, peers::manifest_of(server, &lines)).unwrap();
        let text = std::fs::read_to_string(&drafted).unwrap();
        strace.add(&atoms::of_manifest(&text, world, server), &trace);
        strace.tried += held.len();
        strace.differ += differing(&bare, &answers(peers::wrapped(world, server, &entry, &drafted)), server);

        match peers::sandlock_profile(world, server, &entry, &train) {
            Ok(profile) => {
                sandlock.add(&peers::atoms_of_profile(&profile, &code), &trace);
                sandlock.tried += held.len();
                let confined = peers::sandlocked(world, server, &entry, &profile);
                sandlock.differ += differing(&bare, &answers(confined), server);
            }
            Err(why) => sandlock.fault = Some(why),
        }
    }
    counts
}

#[test]
fn what_is_learned_is_enough_and_hardly_more() {
    if std::env::var_os("BAILIWICK_KFOLD").is_none() {
        return println!("skipped: it takes minutes; `scripts/bench learn` runs it");
    }
    let Some(directory) = super::installed() else {
        return skip("the servers are not in the cache that scripts/test fills");
    };
    if !Path::new("/usr/bin/strace").exists() {
        return skip("no strace here, whose trace is what over-privilege is counted against");
    }
    let columns = "differ         over   atoms     files";
    println!("{:<20} {:<38} | {:<38} | sandlock learn", "server", "bailiwick learn", "strace script");
    println!("{:<20} {columns:<38} | {columns:<38} | {columns}", "");
    let mut wrong = Vec::new();
    for server in learnable() {
        let counts = measured(&server, &directory);
        println!("{:<20} {}", server.name, counts.each_ref().map(Count::shown).join(" | "));
        let [ours, ..] = counts;
        if ours.differ > 0 || ours.over() > MOST_OVER {
            wrong.push(server.name);
        }
    }
    assert!(wrong.is_empty(), "too little, or over {MOST_OVER} % too much: {wrong:?}");
}
