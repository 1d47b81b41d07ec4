//! Pipes of which one half is closed, in every combination of the four halves: nothing hangs, and who still listens is answered.
//!
//! Each combination once; seven times each with `BAILIWICK_REQUIRE=all`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

use serde_json::Value;

use super::World;
use super::killed::{requests, rounds, silent_server, sleeps};
use crate::run::{eventually, processes};

/// What one side closes while three requests wait.
#[derive(Debug, Clone, Copy)]
struct Closed {
    speaks: bool,
    reads: bool,
}

/// What both sides close.
#[derive(Debug, Clone, Copy)]
struct Halves {
    client: Closed,
    server: Closed,
}

impl Halves {
    fn all() -> impl Iterator<Item = Self> {
        let has = |bits: u8, bit: u8| bits & bit != 0;
        (1..16_u8).map(move |bits| Self {
            client: Closed { speaks: has(bits, 1), reads: has(bits, 2) },
            server: Closed { speaks: has(bits, 8), reads: has(bits, 4) },
        })
    }

    fn act(self) -> &'static str {
        match (self.server.reads, self.server.speaks) {
            (false, false) => "sleep WORD & wait",
            (true, false) => "exec 0<&-; sleep WORD",
            (false, true) => "exec 1>&-; sleep WORD",
            (true, true) => "exec 0<&- 1>&-; sleep WORD",
        }
    }
}

/// The ids of all answers, sorted, when the output has ended.
fn answered(output: ChildStdout) -> JoinHandle<Vec<u64>> {
    std::thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        let answers: Vec<Value> = lines.map(|line| serde_json::from_str(&line).expect("JSON")).collect();
        assert!(answers.iter().all(|answer| answer["error"]["message"].is_string()), "{answers:?}");
        let mut ids: Vec<u64> = answers.iter().filter_map(|answer| answer["id"].as_u64()).collect();
        ids.sort_unstable();
        ids
    })
}

fn close(mut command: Command, halves: Halves, word: &str) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut relay = command.spawn().expect("it starts");
    let mut input = relay.stdin.take();
    for request in requests() {
        let line = format!("{request}\n");
        input.as_mut().expect("a pipe").write_all(line.as_bytes()).expect("it reads");
    }
    assert!(eventually(|| sleeps(word)), "{halves:?}");
    let output = relay.stdout.take().expect("a pipe");
    let answers = if halves.client.reads {
        drop(output);
        None
    } else {
        Some(answered(output))
    };
    if halves.client.speaks {
        drop(input.take());
    }
    let ended = eventually(|| relay.try_wait().expect("a child").is_some());
    if !ended {
        drop(relay.kill());
    }
    assert!(ended, "{halves:?}: it goes on");
    if let Some(answers) = answers {
        assert_eq!(answers.join().expect("answers"), [1, 2, 3], "{halves:?}");
    }
    assert!(eventually(|| processes(word).is_empty()), "{halves:?}: {:?}", processes(word));
}

#[test]
fn half_closed_pipes_in_every_combination_hang_no_process() {
    let world = World::new();
    let each = if rounds() > 3 { 7 } else { 1 };
    for round in 0..each {
        let prepared = Halves::all().enumerate().map(|(number, halves)| {
            let word = format!("74{round}{number}{}", std::process::id());
            (silent_server(&world, halves.act(), &word), halves, word)
        });
        // All are prepared before the first one reads the manifest.
        let prepared: Vec<_> = prepared.collect();
        std::thread::scope(|scope| {
            for (command, halves, word) in prepared {
                scope.spawn(move || close(command, halves, &word));
            }
        });
    }
    let verified = world.run(&["log", "verify"]);
    assert!(verified.status.success(), "{verified:?}");
    assert_eq!(world.run(&["ps"]).stdout, b"no wrapped server runs\n");
}
