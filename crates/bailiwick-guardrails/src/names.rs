//! Which tool counts as which capability: what the file says, else what is known of agents and servers.

use bailiwick_shell::aliases;

use crate::rules_file::{AGENT_SERVER, Mapping};

use super::tool_name::{same_name, split, tool_of};

/// An agent's own tools, by capability.
const AGENT_TOOLS: &[(&str, &[&str])] = &[
    (
        "shell",
        &[
            "Bash",
            "Shell",
            "shell",
            "local_shell",
            "exec_command",
            "unified_exec",
            "run_shell_command",
            "run_terminal_cmd",
            "bash",
            "terminal",
            "execute_command",
            "shell_command",
            "container.exec",
            "Monitor",
            "monitor",
        ],
    ),
    (
        "filesystem-read",
        &[
            "Read",
            "Glob",
            "Grep",
            "LS",
            "NotebookRead",
            "view",
            "read_file",
            "read_many_files",
            "list_directory",
            "glob",
            "grep_search",
            "search_file_content",
            "list_dir",
            "codebase_search",
            "view_image",
            "read",
            "grep",
            "list",
            "ls",
            "lsp",
            "rg",
            "fs_read",
            "fs_list",
            "fs_search",
        ],
    ),
    (
        "filesystem-write",
        &[
            "Write",
            "Edit",
            "MultiEdit",
            "NotebookEdit",
            "StrReplace",
            "Delete",
            "TabWrite",
            "write_file",
            "replace",
            "edit_file",
            "delete_file",
            "apply_patch",
            "search_replace",
            "text_editor",
            "write",
            "edit",
            "multiedit",
            "patch",
            "create",
            "str_replace",
            "insert",
            "str_replace_editor",
            "notebook_edit",
            "fs_write",
            "fs_edit",
        ],
    ),
    (
        "web",
        &[
            "WebFetch",
            "WebSearch",
            "web_fetch",
            "google_web_search",
            "web_search",
            "fetch",
            "webfetch",
            "websearch",
            "codesearch",
        ],
    ),
    ("agent", &["Task", "Agent", "spawn_agent", "task", "agent", "invoke_agent"]),
    ("memory", &["save_memory"]),
];

/// Known servers: a tool by the start of its name (all if empty), and its capability; the first that fits counts.
const SERVERS: &[(&str, &[(&str, &str)])] = &[
    (
        "filesystem",
        &[
            ("write", "filesystem-write"),
            ("edit", "filesystem-write"),
            ("create", "filesystem-write"),
            ("move", "filesystem-write"),
            ("delete", "filesystem-write"),
            ("", "filesystem-read"),
        ],
    ),
    (
        "bailiwick",
        &[
            ("shell", "shell"),
            ("web", "web"),
            ("fs_write", "filesystem-write"),
            ("fs_edit", "filesystem-write"),
            ("fs_read", "filesystem-read"),
            ("fs_list", "filesystem-read"),
            ("fs_search", "filesystem-read"),
        ],
    ),
    ("shell", &[("", "shell")]),
    ("terminal", &[("", "shell")]),
    (
        "desktop-commander",
        &[
            ("start_process", "shell"),
            ("execute", "shell"),
            ("write", "filesystem-write"),
            ("edit", "filesystem-write"),
            ("read", "filesystem-read"),
        ],
    ),
    ("git", &[("", "git")]),
    ("github", &[("", "github")]),
    ("fetch", &[("", "web")]),
    ("brave-search", &[("", "web")]),
    ("memory", &[("", "memory")]),
    ("postgres", &[("", "database")]),
    ("sqlite", &[("", "database")]),
    ("puppeteer", &[("", "browser")]),
    ("playwright", &[("", "browser")]),
    ("time", &[("", "time")]),
];

/// Arguments that known tools of a capability have.
const ARGUMENTS: &[(&str, &[&str])] = &[
    (
        "shell",
        &[
            "command",
            "cmd",
            "script",
            "program",
            "args",
            "description",
            "timeout",
            "run_in_background",
            "cwd",
            "workdir",
            "working_directory",
            "stdin",
            "timeout_ms",
            "dir_path",
            "is_background",
        ],
    ),
    (
        "filesystem-read",
        &[
            "file_path",
            "path",
            "paths",
            "pattern",
            "query",
            "offset",
            "limit",
            "glob",
            "target_file",
            "absolute_path",
            "notebook_path",
            "dir_path",
            "include",
            "output_mode",
            "head",
            "tail",
            "lines",
        ],
    ),
    (
        "filesystem-write",
        &[
            "file_path",
            "path",
            "paths",
            "content",
            "old_string",
            "new_string",
            "edits",
            "replace_all",
            "notebook_path",
            "new_source",
            "source",
            "destination",
            "input",
            "patch",
            "target_file",
            "code_edit",
            "instruction",
            "contents",
        ],
    ),
    ("web", &["url", "prompt", "query", "allowed_domains", "blocked_domains", "max_length", "count"]),
];

/// The capabilities of tools.
#[derive(Debug, Clone, Default)]
pub struct Names {
    own: Vec<Mapping>,
}

impl Names {
    /// What a file's `[capabilities]` say, and behind it what is known.
    #[must_use]
    pub fn new(own: &[Mapping]) -> Self {
        Self { own: own.to_vec() }
    }

    /// What a tool counts as: exactly it, then all of its server, then what is known.
    #[must_use]
    pub fn capability(&self, server: &str, tool: &str) -> Option<&str> {
        let own = |wanted: Option<&str>| {
            let fits = |one: &&Mapping| {
                let tool = match (one.tool.as_deref(), wanted) {
                    (Some(one), Some(wanted)) => same_name(one, wanted),
                    (one, wanted) => one.is_none() && wanted.is_none(),
                };
                tool && same_name(&one.server, server)
            };
            self.own.iter().find(fits).map(|one| one.capability.as_str())
        };
        own(Some(tool)).or_else(|| own(None)).or_else(|| known(server, tool))
    }

    /// The server and the tool in a name that joins them with one sign, where the server is known here or in general
    /// and the name is not one of an agent's own tools.
    pub(crate) fn server_in<'n>(&'n self, name: &'n str) -> Option<(&'n str, &'n str)> {
        if split(name).0 != AGENT_SERVER || self.capability(AGENT_SERVER, name).is_some() {
            return None;
        }
        let own = self.own.iter().map(|one| one.server.as_str());
        let mut servers = own.chain(SERVERS.iter().map(|(server, _)| *server));
        servers.find_map(|server| tool_of(name, server).map(|tool| (server, tool)))
    }

    /// Whether anything is known to count as a capability.
    #[must_use]
    pub fn is_known(&self, capability: &str) -> bool {
        let of_agents = AGENT_TOOLS.iter().map(|(name, _)| *name);
        let of_servers = SERVERS.iter().flat_map(|(_, tools)| tools.iter().map(|(_, name)| *name));
        let own = self.own.iter().map(|one| one.capability.as_str());
        own.chain(of_agents).chain(of_servers).any(|name| name == capability)
    }

    /// Whether a server is known, here or in general.
    #[must_use]
    pub fn is_server(&self, server: &str) -> bool {
        let own = self.own.iter().any(|one| same_name(&one.server, server));
        own || server == AGENT_SERVER || SERVERS.iter().any(|(name, _)| same_name(name, server))
    }

    /// Every capability that something is known to count as.
    pub fn capabilities(&self) -> impl Iterator<Item = &str> {
        let of_agents = AGENT_TOOLS.iter().map(|(name, _)| *name);
        let of_servers = SERVERS.iter().flat_map(|(_, tools)| tools.iter().map(|(_, name)| *name));
        self.own.iter().map(|one| one.capability.as_str()).chain(of_agents).chain(of_servers)
    }

    /// Whether a capability's tools have such an argument; `None` if nothing is known of their arguments.
    #[must_use]
    pub fn knows_argument(&self, capability: &str, argument: &str) -> Option<bool> {
        if self.own.iter().any(|one| one.capability == capability) {
            return None;
        }
        let known = ARGUMENTS.iter().find(|(name, _)| *name == capability)?;
        Some(
            known.1.contains(&argument)
                || aliases::names_like(argument).any(|alias| known.1.contains(&alias)),
        )
    }

    /// Some tool that counts as a capability: its server and its name.
    pub(crate) fn example(&self, capability: &str) -> Option<(String, String)> {
        let own = self.own.iter().find(|one| one.capability == capability);
        let own =
            own.map(|one| (one.server.clone(), one.tool.clone().unwrap_or_else(|| "example".to_owned())));
        let of_agents = || {
            let (_, tools) = AGENT_TOOLS.iter().find(|(name, _)| *name == capability)?;
            let fits = |tool: &&&str| self.capability(AGENT_SERVER, tool) == Some(capability);
            tools.iter().find(fits).map(|tool| (AGENT_SERVER.to_owned(), (*tool).to_owned()))
        };
        let of_servers = || {
            let tools = SERVERS
                .iter()
                .flat_map(|(server, tools)| tools.iter().map(move |(tool, name)| (server, tool, name)));
            let mut tools = tools.filter(|(_, _, name)| **name == capability);
            tools.next().map(|(server, tool, _)| ((*server).to_owned(), format!("{tool}_example")))
        };
        own.or_else(of_agents).or_else(of_servers)
    }

    /// The capabilities that every agent's own tools have.
    pub fn of_agents() -> impl Iterator<Item = &'static str> {
        AGENT_TOOLS.iter().map(|(name, _)| *name)
    }
}

fn known(server: &str, tool: &str) -> Option<&'static str> {
    if server == AGENT_SERVER {
        let fits = |(_, tools): &&(&str, &[&str])| tools.contains(&tool);
        return AGENT_TOOLS.iter().find(fits).map(|(name, _)| *name);
    }
    let (_, tools) = SERVERS.iter().find(|(name, _)| same_name(name, server))?;
    tools.iter().find(|(start, _)| tool.starts_with(start)).map(|(_, capability)| *capability)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules_file::Guardrails;

    #[test]
    fn the_file_comes_before_what_is_known() {
        let text =
            "[capabilities]\n\"github:*\" = \"forge\"\n\"github:push\" = \"git\"\n\"agent:Bash\" = \"sh\"";
        let names = Names::new(&Guardrails::parse(text).unwrap().capabilities);
        assert_eq!(names.capability("github", "push"), Some("git"));
        assert_eq!(names.capability("github", "other"), Some("forge"));
        assert_eq!(names.capability("agent", "Bash"), Some("sh"));
        assert_eq!(names.capability("agent", "Edit"), Some("filesystem-write"));
        assert_eq!(names.capability("filesystem", "write_file"), Some("filesystem-write"));
        assert_eq!(names.capability("filesystem", "read_file"), Some("filesystem-read"));
        assert_eq!(names.capability("unheard", "of"), None);
        assert_eq!(names.capability("agent", "fs_read"), Some("filesystem-read"), "our own tools");
        assert_eq!(names.capability("bailiwick", "fs_edit"), Some("filesystem-write"));
        assert_eq!(names.capability("brave_search", "any"), Some("web"), "one sign for the other");
        assert_eq!(names.server_in("github-push"), Some(("github", "push")));
        assert_eq!(names.server_in("web_fetch"), None, "an agent's own");
    }
}
