//! The starter's rules against spellings: every dangerous one is stopped or asked about, no innocent one is.
//!
//! The corpus is data, one command per line; `\n` in a line is a newline.

use bailiwick_guard::Verdict;
use bailiwick_guardrails::{Rails, STARTER, ToolCall, compile_text, fresh, test_examples};
use serde_json::json;

const DANGEROUS: &str = include_str!("corpus/dangerous.txt");
const INNOCENT: &str = include_str!("corpus/innocent.txt");

fn starter() -> Rails {
    compile_text(STARTER).unwrap_or_else(|findings| panic!("{findings:#?}")).1
}

fn passes(rails: &Rails, command: &str) -> bool {
    let params = json!({ "command": command });
    let call = ToolCall::new("Bash", &params, rails.names());
    rails.judge(&call, &fresh(rails)).verdict == Verdict::Allow
}

fn commands(corpus: &str) -> Vec<String> {
    corpus.lines().map(|line| line.replace("\\n", "\n")).collect()
}

#[test]
fn every_dangerous_spelling_is_stopped_or_asked_about() {
    let (rails, commands) = (starter(), commands(DANGEROUS));
    assert!(commands.len() >= 120, "{}", commands.len());
    let passed: Vec<_> = commands.iter().filter(|command| passes(&rails, command)).collect();
    assert!(passed.is_empty(), "{passed:#?}");
}

#[test]
fn no_innocent_command_is() {
    let (rails, commands) = (starter(), commands(INNOCENT));
    assert!(commands.len() >= 80, "{}", commands.len());
    let stopped: Vec<_> = commands.iter().filter(|command| !passes(&rails, command)).collect();
    assert!(stopped.is_empty(), "{stopped:#?}");
}

#[test]
fn the_corpus_has_no_line_twice() {
    for corpus in [DANGEROUS, INNOCENT] {
        let unique: std::collections::BTreeSet<_> = corpus.lines().collect();
        assert_eq!(unique.len(), corpus.lines().count());
    }
}

#[test]
fn the_starter_passes_its_own_examples() {
    let (tried, wrong) = test_examples(&starter());
    assert!(tried > 60, "{tried}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
