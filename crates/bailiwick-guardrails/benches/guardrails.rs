//! What judging one call costs: 200 rules, a session of 5,000 calls. `scripts/bench hook` times whole processes.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use bailiwick_guardrails::Verdict;
use bailiwick_guardrails::{History, Rails, STARTER, ToolCall, compile_text, fresh};
use divan::{Bencher, black_box};
use serde_json::{Value, json};

const RULES: usize = 200;
const CALLS: usize = 5_000;

fn main() {
    divan::main();
}

/// Rules on the shell, each with a condition on the past.
fn rails() -> Rails {
    let rule = |number: usize| {
        format!(
            "[[guard]]\nmatch = 'shell(command=^tool{number}\\s+(?:--force|-f)\\b)'\nwhen = ['+filesystem-read(file_path=dir{}/)']\nmessage = 'no'\n",
            number % 20
        )
    };
    compile_text(&(0..RULES).map(rule).collect::<String>()).unwrap().1
}

/// A session of reads and commands, every third call failed.
fn past(rails: &Rails, calls: usize) -> History {
    let mut history = fresh(rails);
    for number in 0..calls {
        let (tool, params) = if number % 2 == 0 {
            ("Read", json!({ "file_path": format!("/p/dir{}/a.rs", number % 30) }))
        } else {
            ("Bash", json!({ "command": format!("git commit -am 'x {number}' | tee out") }))
        };
        let call = rails.admit(&ToolCall::new(tool, &params, rails.names()), &mut history).unwrap();
        history.end(call, number % 3 != 0);
    }
    history
}

fn command(text: &str) -> Value {
    json!({ "command": text })
}

/// One call, its shell text read anew each time; `fires` is the one that a rule refuses.
#[divan::bench(args = ["passes", "fires"], sample_count = 2_000)]
fn judge(bencher: Bencher<'_, '_>, kind: &str) {
    let rails = rails();
    let history = past(&rails, CALLS);
    let text = if kind == "fires" {
        "cd src && sudo tool8 --force x"
    } else {
        "cd src && sudo git -C a commit -am x | tee out"
    };
    let params = command(text);
    bencher.bench_local(|| {
        let verdict =
            rails.judge(&ToolCall::new("Bash", black_box(&params), rails.names()), &history).verdict;
        assert_eq!(matches!(verdict, Verdict::Deny(_)), kind == "fires");
    });
}

/// The same call after sessions of several lengths.
#[divan::bench(args = [0, 500, 5_000, 50_000], sample_count = 2_000)]
fn judge_after(bencher: Bencher<'_, '_>, calls: usize) {
    let rails = rails();
    let history = past(&rails, calls);
    let params = command("cd src && sudo git -C a commit -am x | tee out");
    bencher.bench_local(|| rails.judge(&ToolCall::new("Bash", black_box(&params), rails.names()), &history));
}

/// The rules to start from, on a text that none of them refuses.
#[divan::bench(sample_count = 2_000)]
fn judge_by_starter(bencher: Bencher<'_, '_>) {
    let rails = compile_text(STARTER).unwrap().1;
    let history = past(&rails, CALLS);
    let params = command("cargo test --workspace 2>&1 | tail -n 20");
    bencher.bench_local(|| rails.judge(&ToolCall::new("Bash", black_box(&params), rails.names()), &history));
}
