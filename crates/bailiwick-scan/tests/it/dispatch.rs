//! Handlers of the protocol's own requests (`tools/list`, `tools/call`) pick tools and are none themselves.

use bailiwick_scan::Report;

use super::scan_text;

/// Names that handlers of the protocol have.
const HANDLERS: [&str; 4] = ["call_tool", "list_tools", "handle", "run_any"];

/// The names of the tools, and what the server does beside them.
fn seen(report: &Report) -> (Vec<String>, Vec<String>) {
    let tools = report.tools().iter().map(|tool| tool.name().to_owned()).collect();
    let server = report.server();
    let uses = server.uses().iter().filter_map(|one| one.capability());
    let unknowns = server.unknowns().iter().map(|one| format!("unknown {}", one.reason().as_str()));
    (tools, uses.chain(unknowns).collect())
}

/// A Python server whose handlers have these names, with this body of the one for calls.
fn python(call: &str, body: &str) -> Report {
    let text = format!(
        "from mcp.server import Server\n\napp = Server('s')\n\n\ndef read_hosts(arguments):\n    return open('/etc/hosts').read()\n\n\n\
         TABLE = {{'hosts': read_hosts}}\n\n\n@app.list_tools()\nasync def list_tools():\n    return []\n\n\n\
         @app.call_tool()\nasync def {call}(name, arguments):\n    {body}\n"
    );
    scan_text("server.py", text)
}

/// A JavaScript or TypeScript server with this handler of calls.
fn ecma(file: &str, schema: &str, handler: &str) -> Report {
    let text = format!(
        "import fs from 'node:fs';\nimport {{ imported }} from 'elsewhere';\n\
         const table = {{ hosts: () => fs.readFileSync('/etc/hosts') }};\n\
         server.setRequestHandler(ListToolsRequestSchema, async () => ({{ tools: [] }}));\n\
         server.setRequestHandler({schema}, {handler});\n"
    );
    scan_text(file, text)
}

#[test]
fn a_handler_without_branches_is_no_tool() {
    for call in HANDLERS {
        for body in ["return TABLE[name](arguments)", "return read_hosts(arguments)"] {
            let (tools, server) = seen(&python(call, body));
            assert_eq!(tools, [""; 0], "{call}: {body}");
            assert!(server.contains(&"fs:read:/etc/hosts".to_owned()), "{call}: {body}: {server:?}");
        }
    }
    for file in ["server.js", "server.ts"] {
        for schema in ["CallToolRequestSchema", "'tools/call'"] {
            for handler in [
                "async (request) => table[request.params.name](request)",
                "async () => fs.readFileSync('/etc/hosts')",
                "function call_tool(request) { return fs.readFileSync('/etc/hosts'); }",
            ] {
                let (tools, server) = seen(&ecma(file, schema, handler));
                assert_eq!(tools, [""; 0], "{file} {schema} {handler}");
                assert!(server.contains(&"fs:read:/etc/hosts".to_owned()), "{handler}: {server:?}");
            }
        }
    }
}

#[test]
fn a_handler_that_cannot_be_followed_is_unknown_of_the_server() {
    let (tools, server) = seen(&ecma("server.ts", "CallToolRequestSchema", "imported"));
    assert_eq!(tools, [""; 0]);
    assert!(server.iter().any(|line| line.starts_with("unknown")), "{server:?}");
}

#[test]
fn a_handler_with_branches_has_a_tool_for_each() {
    let body =
        "if name == 'one':\n        return read_hosts(arguments)\n    elif name == 'two':\n        return 2";
    assert_eq!(seen(&python("call_tool", body)).0, ["one", "two"]);
    let handler = "async (request) => { switch (request.params.name) { case 'one': return 1; case 'two': return fs.readFileSync('/etc/hosts'); } }";
    assert_eq!(seen(&ecma("server.ts", "CallToolRequestSchema", handler)).0, ["one", "two"]);
}
