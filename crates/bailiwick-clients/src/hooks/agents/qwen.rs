//! Qwen Code: Claude Code's hooks and Gemini CLI's results.

use super::super::outcome::by_report;
use super::super::settings::{HookEntries, HookFile};
use super::super::{Agent, PhaseReader, Reader};
use super::{LIKE_CLAUDE, READER};

pub(super) const AGENT: Agent = Agent {
    name: "qwen",
    title: "Qwen Code",
    settings: Some(HookFile::same(
        ".qwen/settings.json",
        ".qwen",
        HookEntries { second: 1000, ..HookEntries::with_matcher("*") },
    )),
    reader: Reader::Phases(PhaseReader { outcome: by_report, ..READER }),
    ..LIKE_CLAUDE
};
