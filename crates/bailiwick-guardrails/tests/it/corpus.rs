//! The starter's rules against a corpus of dangerous and innocent commands, each of its own mechanism.
//!
//! A hash of the line halves the corpus. The open half prints every miss, for work on rules and engine; the held half
//! prints counts only, so that nothing is fitted to its lines.

use std::collections::BTreeSet;

use bailiwick_guardrails::{Rails, STARTER, ToolCall, Verdict, compile_text, fresh, test_examples};
use bailiwick_shell::classes::Setting;
use serde_json::json;

const DANGEROUS: &str = include_str!("corpus/dangerous.txt");
const INNOCENT: &str = include_str!("corpus/innocent.txt");

/// One labelled command.
struct Labelled {
    mechanism: &'static str,
    command: String,
    held: bool,
}

fn labelled(corpus: &'static str) -> Vec<Labelled> {
    let lines = corpus.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let read = |line: &'static str| {
        let (mechanism, command) = line.split_once(": ").unwrap_or_else(|| panic!("no mechanism: {line}"));
        Labelled { mechanism, command: command.replace('⏎', "\n"), held: fnv(line) >> 63 == 1 }
    };
    lines.map(read).collect()
}

/// FNV-1a, 64 bits: the same everywhere and always.
fn fnv(line: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    line.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

fn starter() -> Rails {
    compile_text(STARTER).unwrap_or_else(|findings| panic!("{findings:#?}")).1
}

fn passes(rails: &Rails, command: &str) -> bool {
    let params = json!({ "command": command });
    let call = ToolCall::new("Bash", &params, rails.names());
    call.stands(Setting::new("/home/dev/app", "/home/dev/app", "/home/dev"));
    rails.judge(&call, &fresh(rails)).verdict == Verdict::Allow
}

/// How many of a half are judged wrongly, and how many there are. Misses of the open half are printed.
fn misses(corpus: &'static str, held: bool, wrong: impl Fn(&str) -> bool) -> (usize, usize) {
    let half: Vec<Labelled> = labelled(corpus).into_iter().filter(|one| one.held == held).collect();
    let missed: Vec<&Labelled> = half.iter().filter(|one| wrong(&one.command)).collect();
    for one in missed.iter().filter(|_| !held) {
        println!("miss: {}: {}", one.mechanism, one.command.replace('\n', "⏎"));
    }
    (missed.len(), half.len())
}

#[test]
fn the_corpus_is_large_and_every_mechanism_stands_once() {
    for (corpus, least) in [(DANGEROUS, 600), (INNOCENT, 400)] {
        let lines = labelled(corpus);
        assert!(lines.len() >= least, "{}", lines.len());
        let mechanisms: BTreeSet<&str> = lines.iter().map(|one| one.mechanism).collect();
        let commands: BTreeSet<&str> = lines.iter().map(|one| one.command.as_str()).collect();
        assert_eq!((mechanisms.len(), commands.len()), (lines.len(), lines.len()));
        let held = lines.iter().filter(|one| one.held).count();
        assert!((lines.len() * 2 / 5..=lines.len() * 3 / 5).contains(&held), "{held} of {}", lines.len());
    }
}

#[test]
fn the_starter_stops_what_is_dangerous_and_leaves_alone_what_is_innocent() {
    let rails = starter();
    for (half, held) in [("open", false), ("held", true)] {
        let (passed, dangerous) = misses(DANGEROUS, held, |command| passes(&rails, command));
        let (stopped, innocent) = misses(INNOCENT, held, |command| !passes(&rails, command));
        let counts = format!(
            "{half}: {passed} of {dangerous} dangerous pass, {stopped} of {innocent} innocent are stopped"
        );
        println!("{counts}");
        assert!(passed * 100 <= dangerous * 3, "{counts}");
        assert!(stopped * 100 <= innocent * 2, "{counts}");
    }
}

/// What reading costs is counted in commands that are walked, and bounded for texts of 100 KB.
#[test]
fn long_texts_are_walked_once() {
    let lines = |line: &str| line.repeat(100_000 / line.len());
    for text in [
        lines("echo a; "),
        format!("cat > f <<'E'\n{}\nE", lines("some text $(here)\n")),
        format!("echo {}", lines("word ")),
        format!("for i in 1 2 3 4 5 6 7 8; do {} done", "f; ".repeat(500)),
        format!("f() {{ g; g; }}; g() {{ h; h; }}; h() {{ {} }}; f", "k; ".repeat(400)),
        lines("cd a && rm -rf b; "),
        lines("x=$(echo $x | rev); "),
    ] {
        let reading = bailiwick_shell::read(&text);
        assert!(
            reading.steps <= 2_050 && reading.commands.len() <= 512,
            "{}: {}",
            text.get(..20).unwrap(),
            reading.steps
        );
    }
}

#[test]
fn the_starter_passes_its_own_examples() {
    let (tried, wrong) = test_examples(&starter());
    assert!(tried > 60, "{tried}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
