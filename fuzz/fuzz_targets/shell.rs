//! Shell texts and guardrails: never a panic, bounded, and a quoted text is read as the one word it is.
#![no_main]

use bailiwick_guardrails::{ToolCall, compile_text, fresh};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|input: &str| {
    // A file of rules, a zero byte, and the text they are tried on; without one, it is all both.
    let (rules, text) = input.split_once('\0').unwrap_or((input, input));
    let reading = bailiwick_shell::read(text);
    assert!(reading.commands.len() <= 256);
    assert_eq!(reading, bailiwick_shell::read(text));
    for command in &reading.commands {
        assert!(!command.words.is_empty() || !command.writes.is_empty());
        assert!(command.words.first().is_none_or(|program| !program.ends_with("/rm")));
    }
    let said = bailiwick_shell::read(&bailiwick_shell::quoted(["printf", text]));
    if said.opaque.is_none() && !text.is_empty() {
        assert_eq!(said.commands.len(), 1);
        assert_eq!(said.commands[0].words, ["printf", text]);
    }
    if let Ok((_, rails)) = compile_text(rules) {
        let params = json!({ "command": text });
        let call = ToolCall::new("Bash", &params, rails.names());
        let mut history = fresh(&rails);
        let first = rails.judge(&call, &history);
        assert_eq!(first, rails.judge(&call, &history));
        drop(rails.admit(&call, &mut history));
    }
});
