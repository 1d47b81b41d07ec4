//! How agents name tools: their own by a word, those of servers by joining two names in their own way.
//!
//! `mcp__server__tool` (Claude Code, Codex, Qwen Code), `mcp_server_tool` (Gemini CLI), `server-tool` (Copilot CLI),
//! `server_tool` (OpenCode), `server:tool` (here). Where one sign joins, the server cannot be told from the tool by
//! the text alone: such a name is compared as a whole. Some agents write `-` as `_`, so both count as one sign.

use crate::rules_file::AGENT_SERVER;

/// The server and the tool in an agent's name for it; the agent itself is the server of what cannot be taken apart.
pub(crate) fn split(name: &str) -> (&str, &str) {
    if let Some((server, tool)) = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        return (server, tool);
    }
    match name.split_once(':') {
        Some(("MCP", tool)) => ("mcp", tool),
        Some((server, tool)) if !server.is_empty() && !tool.is_empty() => (server, tool),
        Some(_) | None => (AGENT_SERVER, name),
    }
}

/// Whether two names are one, whichever sign joins their words.
pub(crate) fn same_name(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().map(folded).eq(other.bytes().map(folded))
}

/// The tool's part of a joined name, if it begins with the name of this server.
pub(crate) fn tool_of<'n>(joined: &'n str, server: &str) -> Option<&'n str> {
    let bare = joined.strip_prefix("mcp_").unwrap_or(joined);
    [joined, bare].into_iter().find_map(|name| {
        let (start, rest) = name.split_at_checked(server.len())?;
        let tool = rest.strip_prefix(['_', '-']).map(|tool| tool.trim_start_matches('_'))?;
        (same_name(start, server) && !tool.is_empty()).then_some(tool)
    })
}

const fn folded(byte: u8) -> u8 {
    if byte == b'-' { b'_' } else { byte }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_as_agents_write_them() {
        assert_eq!(split("mcp__github__create_issue"), ("github", "create_issue"));
        assert_eq!(split("github:create_issue"), ("github", "create_issue"));
        assert_eq!(split("MCP:query"), ("mcp", "query"));
        assert_eq!(split("Bash"), ("agent", "Bash"));
    }

    #[test]
    fn joined_names_are_compared_with_a_server() {
        for name in [
            "my-notes-delete_note",
            "my_notes_delete_note",
            "mcp_my-notes_delete_note",
            "mcp_my_notes_delete_note",
        ] {
            assert_eq!(tool_of(name, "my-notes"), Some("delete_note"), "{name}");
        }
        assert_eq!(tool_of("notes_delete", "note"), None);
        assert_eq!(tool_of("notes", "notes"), None);
        assert!(same_name("a-b_c", "a_b-c"));
        assert!(!same_name("a-b", "ab"));
    }
}
