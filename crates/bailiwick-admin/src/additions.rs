//! The lines of a manifest that its base does not have: what a reviewer looks for after a widening was found.
//!
//! Containment decides whether something widened; this only points at text and decides nothing.

use std::collections::BTreeSet;

use bailiwick_manifest::diff::Difference;
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_manifest::{Declared, Manifest};
use bailiwick_policy::capability::Capability;
use bailiwick_policy::finding::Code;

/// The most lines that are shown for one difference.
const SHOWN: usize = 8;

/// New lines of the tool, or of the server, that the difference is about.
pub(crate) fn added(base: &Snapshot, new: &Snapshot, difference: &Difference) -> Vec<String> {
    let shown = difference.example().is_some() || is_new_tool(difference) || is_hidden(difference);
    if !difference.widens() || !shown {
        return Vec::new();
    }
    let old = lines(base.manifest(), difference.tool());
    let fresh = lines(new.manifest(), difference.tool());
    let mut added: Vec<String> =
        fresh.difference(&old).filter(|line| speaks_of(line, difference.code())).cloned().collect();
    if added.len() > SHOWN {
        let more = added.len() - SHOWN;
        added.truncate(SHOWN);
        added.push(format!("and {more} more"));
    }
    added
}

fn is_new_tool(difference: &Difference) -> bool {
    matches!(difference.code(), Code::ToolAdded | Code::ToolAddedHighRisk)
}

fn is_hidden(difference: &Difference) -> bool {
    difference.code() == Code::CapabilityBeyondPolicy
}

fn lines(manifest: &Manifest, tool: Option<&str>) -> BTreeSet<String> {
    let grants = |line: &&Declared<Capability>| !matches!(line.value, Capability::Assert { .. });
    let texts = |line: &Declared<Capability>| line.value.to_string();
    match tool {
        None => manifest.server_capabilities().iter().filter(grants).map(texts).collect(),
        Some(name) => {
            let tools = manifest.tools().iter().filter(|tool| tool.name() == name);
            tools.flat_map(|tool| tool.lines()).filter(grants).map(texts).collect()
        }
    }
}

/// Whether a line is of the kind that a code is about; codes about the whole are about every kind.
fn speaks_of(line: &str, code: Code) -> bool {
    let kinds = [
        (Code::ToolFilesystemReadWidened, "fs:"),
        (Code::ToolFilesystemWriteWidened, "fs:"),
        (Code::ToolExecWidened, "exec:"),
        (Code::ToolNetworkWidened, "net:"),
        (Code::ToolEnvironmentWidened, "env:"),
        (Code::ToolIpcWidened, "ipc:"),
        (Code::ToolClockWidened, "clock:"),
    ];
    kinds.iter().find(|(known, _)| *known == code).is_none_or(|(_, kind)| line.starts_with(kind))
}
