//! What is known of each agent.
//!
//! Claude Code: a failed tool has an event of its own, so one that ends otherwise succeeded. `onFailure: "block"` makes
//! a hook that cannot start, or takes too long, a no; older versions ignore it. `ConfigChange` lets us keep the settings
//! that are loaded when a file on disk loses our hooks.
//!
//! Codex CLI: a hook cannot ask. What a command exited with is not sent, so its end is unknown; a tool of a server that
//! failed has no event at all, so one that has an event succeeded. Input to a running program (`write_stdin`) has no
//! event either: `bailiwick-guardrails` refuses programs that wait for commands there, where this agent asks.
//!
//! Gemini CLI: a hook cannot ask; what a command exited with stands in its text, and only if it is not 0. Every exit
//! code but 0 and 1 is taken for a no, after a call too, so a fault there is 1.
//!
//! Copilot CLI has its hooks in a file of their own. Qwen Code has Claude Code's hooks and Gemini CLI's results.
//! OpenCode has no hooks: its plugin (`opencode_plugin.js`) sends events in our own format. Cursor is known by its
//! documentation: it cannot be run without its editor.

use serde_json::Value;

use super::Phase::{After, Before, Failed, SettingsChanged, Stop};
use super::answers::{CLAUDE, COPILOT, CURSOR, GEMINI, OWN};
use super::fields::text;
use super::outcome::{by_fields, by_report, by_server, by_shell_line};
use super::settings::{HookEntries, HookFile, HookForm};
use super::trust::{CODEX_TRUST, GEMINI_TRUST};
use super::{Agent, EventKeys, Reader, cursor, generic};

/// The agents whose settings we know.
pub static AGENTS: [Agent; 7] = [
    Agent {
        name: "claude-code",
        title: "Claude Code",
        settings: Some(HookFile::same(
            ".claude/settings.json",
            ".claude",
            HookEntries { closed: &[("PreToolUse", "onFailure", "block")], ..HookEntries::with_matcher("*") },
        )),
        reader: Reader::Phases {
            events: &[
                ("PreToolUse", Before),
                ("PostToolUse", After),
                ("PostToolUseFailure", Failed),
                ("Stop", Stop),
                ("SubagentStop", Stop),
                ("ConfigChange", SettingsChanged),
            ],
            can_ask: asks_its_person,
            result: "tool_response",
            outcome: by_fields,
        },
        ..LIKE_CLAUDE
    },
    Agent {
        name: "codex",
        title: "Codex CLI",
        settings: Some(HookFile::same(".codex/hooks.json", ".codex", HookEntries::with_matcher("*"))),
        left_to_do: Some(
            "start `codex` and trust the new hooks there (`/hooks`): until then it runs none, and does not say so",
        ),
        trust: Some(CODEX_TRUST),
        sees_input: false,
        reader: Reader::Phases {
            events: &[("PreToolUse", Before), ("PostToolUse", After), ("Stop", Stop), ("SubagentStop", Stop)],
            can_ask: never,
            result: "tool_response",
            outcome: by_server,
        },
        ..LIKE_CLAUDE
    },
    Agent {
        name: "cursor",
        title: "Cursor",
        settings: Some(HookFile::same(
            ".cursor/hooks.json",
            ".cursor",
            HookEntries {
                empty: "{\n  \"version\": 1\n}\n",
                matcher: None,
                closed: &[("preToolUse", "failClosed", "true")],
                ..HookEntries::with_matcher("*")
            },
        )),
        shell: "Shell",
        keys: EventKeys { session: "conversation_id", ..CLAUDE_KEYS },
        reader: Reader::Own { events: &cursor::EVENTS, kind: cursor::kind },
        answers: CURSOR,
        ..LIKE_CLAUDE
    },
    Agent {
        name: "gemini",
        title: "Gemini CLI",
        settings: Some(HookFile::same(
            ".gemini/settings.json",
            ".gemini",
            HookEntries { second: 1000, ..HookEntries::with_matcher(".*") },
        )),
        left_to_do: Some("trust each folder in `gemini` (`/permissions`): in others it runs no hooks"),
        trust: Some(GEMINI_TRUST),
        fault_code: 1,
        shell: "run_shell_command",
        reader: Reader::Phases {
            events: &[("BeforeTool", Before), ("AfterTool", After), ("AfterAgent", Stop)],
            can_ask: never,
            result: "tool_response",
            outcome: by_report,
        },
        answers: GEMINI,
        ..LIKE_CLAUDE
    },
    Agent {
        name: "opencode",
        title: "OpenCode, through a plugin",
        settings: Some(HookFile {
            user: ".config/opencode/plugin/bailiwick.js",
            project: ".opencode/plugin/bailiwick.js",
            folders: [".config/opencode", ".opencode"],
            form: HookForm::Whole(include_str!("opencode_plugin.js")),
        }),
        shell: "bash",
        ..GENERIC
    },
    Agent {
        name: "copilot",
        title: "Copilot CLI",
        settings: Some(HookFile {
            user: ".copilot/hooks/bailiwick.json",
            project: ".github/hooks/bailiwick.json",
            folders: [".copilot", ".github/hooks"],
            form: HookForm::Whole(include_str!("copilot_hooks.json")),
        }),
        reader: Reader::Phases {
            events: WITH_FAILURES,
            can_ask: never,
            result: "tool_result",
            outcome: by_shell_line,
        },
        answers: COPILOT,
        ..LIKE_CLAUDE
    },
    Agent {
        name: "qwen",
        title: "Qwen Code",
        settings: Some(HookFile::same(
            ".qwen/settings.json",
            ".qwen",
            HookEntries { second: 1000, ..HookEntries::with_matcher("*") },
        )),
        reader: Reader::Phases {
            events: WITH_FAILURES,
            can_ask: never,
            result: "tool_response",
            outcome: by_report,
        },
        ..LIKE_CLAUDE
    },
];

/// Any other agent, in the format of `docs/hooks.md`.
pub const GENERIC: Agent = Agent {
    name: "generic",
    title: "Any other, in the format of docs/hooks.md",
    keys: EventKeys { name: "event", session: "session", subagent: "agent", tool: "tool", params: "params" },
    reader: Reader::Own { events: &["before", "after", "stop"], kind: generic::kind },
    answers: OWN,
    ..LIKE_CLAUDE
};

/// The agent of a name, `generic` among them.
#[must_use]
pub fn agent(name: &str) -> Option<&'static Agent> {
    static ANY: Agent = GENERIC;
    AGENTS.iter().chain([&ANY]).find(|agent| agent.name == name)
}

/// What most agents have in common.
const LIKE_CLAUDE: Agent = Agent {
    name: "",
    title: "",
    settings: None,
    left_to_do: None,
    trust: None,
    sees_input: true,
    fault_code: 5,
    shell: "Bash",
    keys: CLAUDE_KEYS,
    reader: Reader::Phases {
        events: WITH_FAILURES,
        can_ask: never,
        result: "tool_response",
        outcome: by_fields,
    },
    answers: CLAUDE,
};

const CLAUDE_KEYS: EventKeys = EventKeys {
    name: "hook_event_name",
    session: "session_id",
    subagent: "agent_id",
    tool: "tool_name",
    params: "tool_input",
};

const WITH_FAILURES: &[(&str, super::Phase)] = &[
    ("PreToolUse", Before),
    ("PostToolUse", After),
    ("PostToolUseFailure", Failed),
    ("Stop", Stop),
    ("SubagentStop", Stop),
];

/// Whether a person is asked in this session.
fn asks_its_person(event: &Value) -> bool {
    !matches!(text(event, "permission_mode").as_deref(), Some("bypassPermissions" | "dontAsk"))
}

const fn never(_: &Value) -> bool {
    false
}
