//! Gemini CLI.
//!
//! A hook cannot ask; what a command exited with stands in its text, and only if it is not 0. Every exit code but 0 and
//! 1 is taken for a no, after a call too, so a fault there is 1. Anything but JSON is taken for a fault.

use std::path::Path;

use serde_json::{Value, json};

use super::super::Phase::{After, Before, Stop};
use super::super::answers::{Answers, context_or_block};
use super::super::outcome::by_report;
use super::super::settings::{HookEntries, HookFile};
use super::super::{Agent, PhaseReader, Reader, TrustFile};
use super::{LIKE_CLAUDE, READER};

pub(super) const AGENT: Agent = Agent {
    name: "gemini",
    title: "Gemini CLI",
    settings: Some(HookFile::same(
        ".gemini/settings.json",
        ".gemini",
        HookEntries { second: 1000, ..HookEntries::with_matcher(".*") },
    )),
    left_to_do: Some("trust each directory in `gemini` (`/permissions`): in others it runs no hooks"),
    trust: Some(TRUST),
    fault_code: 1,
    shell: "run_shell_command",
    reader: Reader::Phases(PhaseReader {
        events: &[("BeforeTool", Before), ("AfterTool", After), ("AfterAgent", Stop)],
        outcome: by_report,
        ..READER
    }),
    answers: Answers {
        refuse: |_, refusal| json!({"decision": "deny", "reason": refusal.reason}),
        inject: |event, said| context_or_block(event, said, "deny"),
        nothing: "{}\n",
        allow: "{}\n",
    },
    ..LIKE_CLAUDE
};

const TRUST: TrustFile = TrustFile {
    path: ".gemini/trustedFolders.json",
    state: |text, _, dir| {
        let directories: Value = serde_json::from_str(text).unwrap_or_default();
        let is_trusted = |dir: &Path| {
            let kind = directories.get(dir.to_string_lossy().as_ref()).and_then(Value::as_str);
            kind.is_some_and(|kind| kind != "DO_NOT_TRUST")
        };
        let trusted = dir.ancestors().any(is_trusted);
        format!("Gemini CLI {} this directory", if trusted { "trusts" } else { "has no word on trusting" })
    },
};
