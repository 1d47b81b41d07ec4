//! The tools of tested agents and their arguments, for findings about rules that some of them do not fit.

use std::sync::LazyLock;

use bailiwick_shell::aliases;

const TABLE: &str = include_str!("tools.txt");

/// One tool of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentTool {
    pub(crate) agent: &'static str,
    pub(crate) name: &'static str,
    arguments: Vec<&'static str>,
}

static TOOLS: LazyLock<Vec<AgentTool>> = LazyLock::new(|| {
    let mut agent = "";
    let mut tools = Vec::new();
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(title) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            agent = title;
            continue;
        }
        let mut words = line.split_whitespace();
        tools.extend(words.next().map(|name| AgentTool { agent, name, arguments: words.collect() }));
    }
    tools
});

/// Every tool that is known.
pub(crate) fn tools() -> &'static [AgentTool] {
    &TOOLS
}

impl AgentTool {
    /// Whether a rule on this argument looks at something of the tool.
    pub(crate) fn has_argument(&self, name: &str) -> bool {
        self.arguments.contains(&name)
            || aliases::names_like(name).any(|alias| self.arguments.contains(&alias))
            || self.name == "apply_patch" && aliases::is_path(name)
    }
}

/// `Edit` of Claude Code, `replace` of Gemini CLI.
pub(crate) fn listed<'t>(tools: impl IntoIterator<Item = &'t AgentTool>) -> String {
    let mut parts: Vec<(&str, Vec<String>)> = Vec::new();
    for tool in tools {
        let name = format!("`{}`", tool.name);
        match parts.last_mut() {
            Some((agent, names)) if *agent == tool.agent => names.push(name),
            _ => parts.push((tool.agent, vec![name])),
        }
    }
    let part = |(agent, names): &(&str, Vec<String>)| format!("{} of {agent}", names.join(" and "));
    parts.iter().map(part).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Names;
    use crate::rules_file::AGENT_SERVER;

    #[test]
    fn every_tool_has_a_capability_and_arguments() {
        assert!(tools().len() > 30);
        for tool in tools() {
            assert!(Names::default().capability(AGENT_SERVER, tool.name).is_some(), "{tool:?}");
            assert!(!tool.agent.is_empty() && !tool.arguments.is_empty(), "{tool:?}");
        }
    }

    #[test]
    fn the_sample_rule_looks_at_every_tool_that_reads_or_writes() {
        for tool in tools() {
            let capability = Names::default().capability(AGENT_SERVER, tool.name).map(str::to_owned);
            if capability.is_some_and(|name| name.starts_with("filesystem")) {
                assert!(tool.has_argument("paths"), "{tool:?}");
            }
        }
    }
}
