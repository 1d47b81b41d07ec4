//! Claude Code.
//!
//! A failed tool has an event of its own, so one that ends otherwise succeeded. `onFailure: "block"` makes a hook that
//! cannot start, or takes too long, a no; older versions ignore it. `ConfigChange` lets us keep the settings that are
//! loaded when a file on disk loses our hooks.

use super::super::Phase::{After, Before, Failed, SettingsChanged, Stop};
use super::super::fields::text;
use super::super::settings::{HookEntries, HookFile};
use super::super::{Agent, PhaseReader, Reader};
use super::{LIKE_CLAUDE, READER};

pub(super) const AGENT: Agent = Agent {
    name: "claude-code",
    title: "Claude Code",
    settings: Some(HookFile::same(
        ".claude/settings.json",
        ".claude",
        HookEntries { closed: &[("PreToolUse", "onFailure", "block")], ..HookEntries::with_matcher("*") },
    )),
    reader: Reader::Phases(PhaseReader {
        events: &[
            ("PreToolUse", Before),
            ("PostToolUse", After),
            ("PostToolUseFailure", Failed),
            ("Stop", Stop),
            ("SubagentStop", Stop),
            ("ConfigChange", SettingsChanged),
        ],
        // Whether a person is asked in this session.
        can_ask: |event| {
            !matches!(text(event, "permission_mode").as_deref(), Some("bypassPermissions" | "dontAsk"))
        },
        ..READER
    }),
    ..LIKE_CLAUDE
};
