//! The same questions put to Bailiwick and to other libraries, in one run, as ratios.
//!
//! Each side answers "may this session do that?" from a grant that is already parsed: Bailiwick by
//! `Authority::allows`, Cedar by `is_authorized` on an equivalent policy, agent-bridle by minting a context at
//! its gate and asking it. Then a tool that does nothing is called through each registry: Bailiwick's calls are
//! recorded in a journal on disk, agent-bridle's are not recorded at all.

use std::hint::black_box;
use std::time::{Duration, Instant};

mod bridle;
mod cedar;
mod own;

/// A question and the time each library takes for it.
struct Row {
    question: &'static str,
    own: Duration,
    peers: Vec<(&'static str, Duration)>,
}

fn main() {
    let rows = [
        Row {
            question: "may `git` be started?",
            own: measure(own::spawn("git")),
            peers: vec![("cedar-policy", measure(cedar::ask("spawn", "git"))), ("agent-bridle", measure(bridle::spawn("git")))],
        },
        Row {
            question: "may `rm` be started? (no)",
            own: measure(own::spawn("rm")),
            peers: vec![("cedar-policy", measure(cedar::ask("spawn", "rm"))), ("agent-bridle", measure(bridle::spawn("rm")))],
        },
        Row {
            question: "may api.github.com:443 be reached?",
            own: measure(own::reach("api.github.com")),
            peers: vec![
                ("cedar-policy", measure(cedar::ask("connect", "api.github.com"))),
                ("agent-bridle", measure(bridle::reach("api.github.com"))),
            ],
        },
        Row {
            question: "may /workspace/src/main.rs be written?",
            own: measure(own::write("/workspace/src/main.rs")),
            peers: vec![("cedar-policy", measure(cedar::ask("write", "/workspace/src/main.rs")))],
        },
    ];
    let rows = rows.into_iter().chain([Row {
        question: "a call of a tool that does nothing",
        own: measure(own::dispatch()),
        peers: vec![("agent-bridle", measure(bridle::dispatch()))],
    }]);
    println!("{:<42} {:>12}   peers, as multiples", "question", "bailiwick");
    for row in rows {
        let ratios: Vec<String> = row
            .peers
            .iter()
            .map(|(name, time)| format!("{name} {:.1}× ({time:?})", time.as_secs_f64() / row.own.as_secs_f64()))
            .collect();
        println!("{:<42} {:>12}   {}", row.question, format!("{:?}", row.own), ratios.join(", "));
    }
}

/// The median over batches of the time one call takes.
fn measure(mut call: impl FnMut() -> bool) -> Duration {
    let mut batch = 1_u32;
    while time(&mut call, batch) < Duration::from_millis(2) {
        batch *= 2;
    }
    let mut samples: Vec<Duration> = (0..101).map(|_| time(&mut call, batch) / batch).collect();
    samples.sort_unstable();
    samples[samples.len() / 2]
}

fn time(call: &mut impl FnMut() -> bool, times: u32) -> Duration {
    let start = Instant::now();
    for _ in 0..times {
        black_box(call());
    }
    start.elapsed()
}
