//! What a sandbox costs beside a bare process and beside bwrap, by `/bin/true` in turns: `cost [ROUNDS] [CAPABILITY]…`.
//!
//! The median, and the quickest tenth: on a machine with other work the median is mostly that work.
#![expect(clippy::print_stdout, clippy::unwrap_used, clippy::indexing_slicing, reason = "an example")]

use std::time::{Duration, Instant};

use bailiwick_confine::{Command, Options, Prepared, System};
use bailiwick_policy::capability::CapabilitySet;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::Plan;

const BWRAP: [&str; 20] = [
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
];

const NAMES: [&str; 5] = ["bare", "sandbox", "of it preparing", "system looked at", "bwrap, plain"];

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let rounds: usize = words.first().and_then(|word| word.parse().ok()).unwrap_or(300);
    words.retain(|word| word.parse::<usize>().is_err());
    let set = CapabilitySet::new(words.iter().map(String::as_str)).unwrap();
    let plan = Plan::for_authority("cost", set.authority(), &HostFacts::unknown()).unwrap();
    let system = System::look(&plan);
    let mut times: [Vec<Duration>; 5] = Default::default();
    for _ in 0..rounds {
        let start = Instant::now();
        std::process::Command::new("/bin/true").status().unwrap();
        times[0].push(start.elapsed());
        let start = Instant::now();
        let prepared = Prepared::new(&plan, Command::new("/bin/true"), Options::default()).unwrap();
        times[2].push(start.elapsed());
        prepared.spawn().unwrap().wait().unwrap();
        times[1].push(start.elapsed());
        let start = Instant::now();
        let command = Command::new("/bin/true");
        Prepared::on(&system, &plan, command, Options::default()).unwrap().spawn().unwrap().wait().unwrap();
        times[3].push(start.elapsed());
        let start = Instant::now();
        std::process::Command::new("bwrap").args(BWRAP).arg("/usr/bin/true").status().unwrap();
        times[4].push(start.elapsed());
    }
    times.iter_mut().for_each(|all| all.sort());
    for (title, part) in [("median", 2), ("quickest tenth", 10)] {
        let typical = times.each_ref().map(|all| all[all.len() / part]);
        for (name, one) in NAMES.iter().zip(typical) {
            let beside = one.as_secs_f64() / typical[0].as_secs_f64();
            println!("{title:>14}  {name:>16} {:8.0} us  x {beside:5.2} bare", one.as_secs_f64() * 1e6);
        }
    }
}
