//! The clients: which files each reads, and where the servers stand in them.
//!
//! Formats as the clients' own commands write them, or as their documents say. A file that is not there is not made.

/// How a settings file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// JSON, with what editors let people add: comments, commas at the end.
    Json,
    /// TOML.
    Toml,
}

/// Where the servers stand in a settings file, and how their variables are called.
#[derive(Debug, Clone, Copy)]
pub struct ServersForm {
    /// How the file is written.
    pub syntax: Syntax,
    /// The tables whose entries are servers.
    pub tables: &'static [ServerTable],
    /// The field of an entry that has its variables.
    pub variables: &'static str,
}

/// The names on the way to a table of servers; `*` is any.
pub type ServerTable = &'static [&'static str];

/// Where a path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The user's home.
    Home,
    /// `$XDG_CONFIG_HOME`, or `.config` in the home.
    Config,
    /// The directory that a variable of the client's names, or this one in the home.
    Own {
        /// The variable.
        variable: &'static str,
        /// The directory in the home.
        directory: &'static str,
    },
}

/// One settings file.
#[derive(Debug, Clone, Copy)]
pub struct SettingsPlace {
    /// Where the path begins; a project's begins at the project.
    pub base: Base,
    /// The path below it.
    pub path: &'static str,
    /// What is in it.
    pub form: ServersForm,
}

/// One client.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    /// Its name on our command line.
    pub name: &'static str,
    /// The user's files.
    pub user: &'static [SettingsPlace],
    /// A project's files.
    pub project: &'static [SettingsPlace],
}

/// Every client whose settings we know.
pub const CLIENTS: [Client; 11] = [
    Client {
        name: "claude-code",
        user: &[SettingsPlace {
            base: Base::Own { variable: "CLAUDE_CONFIG_DIR", directory: "" },
            path: ".claude.json",
            form: json(&[&["mcpServers"], &["projects", "*", "mcpServers"]]),
        }],
        project: &[project(".mcp.json", MCP_SERVERS)],
    },
    Client {
        name: "claude-desktop",
        user: &[
            config("Claude/claude_desktop_config.json", MCP_SERVERS),
            home("Library/Application Support/Claude/claude_desktop_config.json", MCP_SERVERS),
        ],
        project: &[],
    },
    Client {
        name: "cursor",
        user: &[home(".cursor/mcp.json", MCP_SERVERS)],
        project: &[project(".cursor/mcp.json", MCP_SERVERS)],
    },
    Client {
        name: "vscode",
        user: &[
            config("Code/User/mcp.json", json(&[&["servers"]])),
            config("Code/User/settings.json", json(&[&["mcp", "servers"]])),
            config("Code - Insiders/User/mcp.json", json(&[&["servers"]])),
            home("Library/Application Support/Code/User/mcp.json", json(&[&["servers"]])),
        ],
        project: &[project(".vscode/mcp.json", json(&[&["servers"]]))],
    },
    Client {
        name: "codex",
        user: &[SettingsPlace {
            base: Base::Own { variable: "CODEX_HOME", directory: ".codex" },
            path: "config.toml",
            form: CODEX,
        }],
        project: &[project(".codex/config.toml", CODEX)],
    },
    Client {
        name: "gemini",
        user: &[home(".gemini/settings.json", MCP_SERVERS)],
        project: &[project(".gemini/settings.json", MCP_SERVERS)],
    },
    Client {
        name: "windsurf",
        user: &[home(".codeium/windsurf/mcp_config.json", MCP_SERVERS)],
        project: &[],
    },
    Client {
        name: "zed",
        user: &[config("zed/settings.json", json(&[&["context_servers"]]))],
        project: &[project(".zed/settings.json", json(&[&["context_servers"]]))],
    },
    Client {
        name: "opencode",
        user: &[
            config("opencode/opencode.json", OPENCODE),
            config("opencode/opencode.jsonc", OPENCODE),
            config("opencode/config.json", OPENCODE),
        ],
        project: &[project("opencode.json", OPENCODE), project("opencode.jsonc", OPENCODE)],
    },
    Client {
        name: "copilot",
        user: &[SettingsPlace {
            base: Base::Own { variable: "COPILOT_HOME", directory: ".copilot" },
            path: "mcp-config.json",
            form: MCP_SERVERS,
        }],
        project: &[project(".mcp.json", MCP_SERVERS), project(".github/mcp.json", MCP_SERVERS)],
    },
    Client {
        name: "qwen",
        user: &[home(".qwen/settings.json", MCP_SERVERS)],
        project: &[project(".qwen/settings.json", MCP_SERVERS)],
    },
];

/// What most clients took over from the first.
const MCP_SERVERS: ServersForm = json(&[&["mcpServers"]]);

const CODEX: ServersForm =
    ServersForm { syntax: Syntax::Toml, tables: &[&["mcp_servers"]], variables: "env" };

const OPENCODE: ServersForm =
    ServersForm { syntax: Syntax::Json, tables: &[&["mcp"]], variables: "environment" };

const fn json(tables: &'static [ServerTable]) -> ServersForm {
    ServersForm { syntax: Syntax::Json, tables, variables: "env" }
}

const fn home(path: &'static str, form: ServersForm) -> SettingsPlace {
    SettingsPlace { base: Base::Home, path, form }
}

const fn config(path: &'static str, form: ServersForm) -> SettingsPlace {
    SettingsPlace { base: Base::Config, path, form }
}

/// A project's file. Where it begins is the project, whatever the base says.
const fn project(path: &'static str, form: ServersForm) -> SettingsPlace {
    home(path, form)
}
