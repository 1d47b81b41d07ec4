//! Whether what was read is an MCP server, so that finding no tool in it is worth saying.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::model::{Unit, Value};

/// The largest `package.json` that is looked at.
const MAX_PACKAGE: u64 = 1024 * 1024;
/// Modules that servers are made with: the beginning of their name, and what else is in it.
const SERVER_MODULES: [(&str, &str); 8] = [
    ("@modelcontextprotocol/", "server"),
    ("fastmcp", ""),
    ("mcp-framework", ""),
    ("xmcp", ""),
    ("mcp.server", ""),
    ("mcp_server", ""),
    ("rmcp", "erver"),
    ("io.modelcontextprotocol", "server"),
];

/// The first file that says so, by its number; for a package that says so of itself, its first file.
pub(crate) fn file_that_speaks(units: &[Unit], files: &[PathBuf], roots: &[PathBuf]) -> Option<usize> {
    units.iter().position(imports_server).or_else(|| {
        roots.iter().any(|root| is_server_package(root)).then_some(0).filter(|_| !files.is_empty())
    })
}

fn imports_server(unit: &Unit) -> bool {
    let imported = unit.imports.iter().any(|import| {
        is_server_module(&format!("{}.{}", import.module, import.name.as_deref().unwrap_or_default()))
    });
    let required = unit.scopes.iter().flat_map(|scope| &scope.calls).any(|call| {
        call.callee == Value::name("require")
            && call.args.first().and_then(|arg| arg.value.as_text()).is_some_and(is_server_module)
    });
    imported || required
}

fn is_server_module(module: &str) -> bool {
    SERVER_MODULES.iter().any(|(start, rest)| {
        module.strip_prefix(start).is_some_and(|behind| {
            let ends = start.ends_with('/') || !behind.starts_with(|c: char| c.is_alphanumeric());
            ends && behind.contains(rest)
        })
    })
}

/// Whether a directory holds a package for node that calls itself a server and starts one.
fn is_server_package(root: &Path) -> bool {
    let mut text = String::new();
    let read = std::fs::File::open(root.join("package.json"))
        .and_then(|file| file.take(MAX_PACKAGE).read_to_string(&mut text));
    let Some(package) = read.ok().and_then(|_| serde_json::from_str::<Json>(&text).ok()) else {
        return false;
    };
    let name = package.get("name").and_then(Json::as_str).unwrap_or_default();
    let is_named = name.split(|c: char| !c.is_alphanumeric()).any(|word| word == "mcp");
    package.get("mcpName").is_some() || (is_named && package.get("bin").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_are_made_with_is_known_and_what_clients_use_is_not() {
        for module in [
            "@modelcontextprotocol/sdk/server/mcp.js.McpServer",
            "fastmcp.FastMCP",
            "mcp.server.fastmcp.FastMCP",
            "mcp.server.Server",
            "rmcp.ServerHandler",
            "io.modelcontextprotocol.kotlin.sdk.server.Server",
        ] {
            assert!(is_server_module(module), "{module}");
        }
        for module in
            ["@modelcontextprotocol/sdk/client/index.js.Client", "mcp.client.stdio", "fastmcpx", "rmcp.model"]
        {
            assert!(!is_server_module(module), "{module}");
        }
    }
}
