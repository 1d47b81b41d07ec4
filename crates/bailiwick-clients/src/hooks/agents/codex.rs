//! Codex CLI.
//!
//! A hook cannot ask. What a command exited with is not sent, so its end is unknown; a tool of a server that failed has
//! no event at all, so one that has an event succeeded. Input to a running program (`write_stdin`) has no event either:
//! `bailiwick-guardrails` refuses programs that wait for commands there, where this agent asks.

use serde_json::Value;

use super::super::Phase::{After, Before, Stop};
use super::super::outcome::{result_text, says_failed};
use super::super::settings::{HookEntries, HookFile};
use super::super::{Agent, PhaseReader, Reader, TrustFile};
use super::{LIKE_CLAUDE, READER};

pub(super) const AGENT: Agent = Agent {
    name: "codex",
    title: "Codex CLI",
    settings: Some(HookFile::same(".codex/hooks.json", ".codex", HookEntries::with_matcher("*"))),
    left_to_do: Some(
        "start `codex` and trust the new hooks there (`/hooks`): until then it runs none, and does not say so",
    ),
    trust: Some(TRUST),
    sees_input: false,
    reader: Reader::Phases(PhaseReader {
        events: &[("PreToolUse", Before), ("PostToolUse", After), ("Stop", Stop), ("SubagentStop", Stop)],
        outcome: by_server,
        ..READER
    }),
    ..LIKE_CLAUDE
};

const TRUST: TrustFile = TrustFile {
    path: ".codex/config.toml",
    state: |config, settings, _| {
        let known = config.contains(&format!("[hooks.state.\"{}:pre_tool_use:", settings.display()));
        let text = if known {
            "a person has looked at these hooks in Codex; it checks the hash itself"
        } else {
            "Codex has no trust in these hooks: it runs none of them; open `/hooks` in it"
        };
        text.to_owned()
    },
};

/// Fields say whether a tool failed; of other tools than a server's it is not known otherwise.
fn by_server(tool: &str, response: &Value) -> (String, Option<bool>) {
    let of_server = tool.starts_with("mcp__") || tool.contains(':');
    let success = match (says_failed(response), of_server) {
        (true, _) => Some(false),
        (false, true) => Some(true),
        (false, false) => None,
    };
    (result_text(response), success)
}
