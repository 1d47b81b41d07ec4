//! What is known of each agent: one file an agent, and here what several share.

mod claude_code;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod generic;
mod opencode;
mod qwen;

use super::Phase::{After, Before, Failed, Stop};
use super::answers::CLAUDE;
use super::outcome::by_fields;
use super::{Agent, EventKeys, Phase, PhaseReader, Reader};

pub use self::generic::GENERIC;

/// The agents whose settings we know.
pub static AGENTS: [Agent; 7] = [
    claude_code::AGENT,
    codex::AGENT,
    cursor::AGENT,
    gemini::AGENT,
    opencode::AGENT,
    copilot::AGENT,
    qwen::AGENT,
];

/// The agent of a name, `generic` among them.
#[must_use]
pub fn agent(name: &str) -> Option<&'static Agent> {
    static ANY: Agent = GENERIC;
    AGENTS.iter().chain([&ANY]).find(|agent| agent.name == name)
}

/// What most agents have in common: they took over Claude Code's format.
const LIKE_CLAUDE: Agent = Agent {
    name: "",
    title: "",
    settings: None,
    left_to_do: None,
    trust: None,
    sees_input: true,
    fault_code: 5,
    shell: "Bash",
    keys: KEYS,
    reader: Reader::Phases(READER),
    answers: CLAUDE,
};

const KEYS: EventKeys = EventKeys {
    name: "hook_event_name",
    session: "session_id",
    subagent: "agent_id",
    tool: "tool_name",
    params: "tool_input",
};

/// Every phase has its event, no hook can ask, and fields say whether a tool failed.
const READER: PhaseReader =
    PhaseReader { events: PHASES, can_ask: |_| false, result: "tool_response", outcome: by_fields };

const PHASES: &[(&str, Phase)] = &[
    ("PreToolUse", Before),
    ("PostToolUse", After),
    ("PostToolUseFailure", Failed),
    ("Stop", Stop),
    ("SubagentStop", Stop),
];
