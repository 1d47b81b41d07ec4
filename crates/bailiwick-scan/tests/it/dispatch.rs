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

/// The codes of what is wrong with it, without a manifest.
fn codes(report: &Report) -> Vec<String> {
    let facts = bailiwick_policy::facts::HostFacts::unknown();
    let judgement = bailiwick_scan::compare(report, None, &facts);
    let codes = judgement.items().iter().map(|item| item.finding.code().to_string());
    codes.filter(|code| code != "scan-unknown" && code != "scan-dynamic").collect()
}

/// The same files, where the server lists these tools while it runs.
fn listing(name: &str, text: &str, tools: &[&str]) -> Report {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(name), text).unwrap();
    let listed = Some(tools.iter().map(|name| (*name).to_owned()).collect());
    let options = bailiwick_scan::Options { listed, ..super::options() };
    bailiwick_scan::scan(&[dir.path().to_owned()], &options, &|_| {}).unwrap()
}

#[test]
fn a_handler_that_is_wrapped_has_its_branches() {
    let handler = "withLog(async (request) => { const { name } = request.params; if (name === 'one') { return 1; } \
                   switch (name) { case 'two': return fs.readFileSync('/etc/hosts'); } })";
    for wrapped in [handler.to_owned(), format!("outer({handler}, 3)")] {
        assert_eq!(
            seen(&ecma("server.ts", "CallToolRequestSchema", &wrapped)).0,
            ["one", "two"],
            "{wrapped}"
        );
    }
}

#[test]
fn an_object_with_a_name_a_schema_and_a_handler_is_a_tool() {
    for tool in [
        "{ name: 'hosts', description: 'd', inputSchema: {}, handler: () => fs.readFileSync('/etc/hosts') }",
        "{ schema: { name: 'hosts', description: 'd' }, async handle() { return fs.readFileSync('/etc/hosts'); } }",
        "define({ definition: { name: 'hosts', inputSchema: {} }, execute: read })",
    ] {
        let text = format!(
            "import fs from 'node:fs';\nfunction read() {{ return fs.readFileSync('/etc/hosts'); }}\nconst all = [{tool}];\n\
             for (const tool of all) server.registerTool(tool.name, tool, tool.handler);\n"
        );
        let report = scan_text("server.js", &text);
        assert_eq!(seen(&report).0, ["hosts"], "{tool}");
        let uses = report.tools()[0].deeds().uses().iter().filter_map(|one| one.capability());
        assert_eq!(uses.collect::<Vec<_>>(), ["fs:read:/etc/hosts"], "{tool}");
    }
    for other in [
        "{ name: 'x', handler: () => 1 }",
        "{ description: 'd', inputSchema: {}, handler: () => 1 }",
        "{ name: 'x', inputSchema: {}, handler: 3 }",
    ] {
        assert_eq!(seen(&scan_text("server.js", format!("const one = {other};"))).0, [""; 0], "{other}");
    }
}

#[test]
fn a_server_without_tools_is_a_finding_and_other_code_without_them_is_not() {
    let server = "import { Server } from '@modelcontextprotocol/sdk/server/index.js';\nnew Server({});\n";
    assert_eq!(codes(&scan_text("server.ts", server)), ["scan-no-tools"]);
    assert_eq!(codes(&scan_text("server.py", "from mcp.server import Server\n")), ["scan-no-tools"]);
    assert_eq!(codes(&scan_text("server.ts", "export const x = 1;")), [""; 0]);
    let with_tool = format!("{server}server.tool('a', async () => 1);");
    assert_eq!(codes(&scan_text("server.ts", with_tool)), [""; 0]);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("index.js"), "require('elsewhere/lib').start();").unwrap();
    let package = |text: &str| std::fs::write(dir.path().join("package.json"), text).unwrap();
    package(r#"{"name": "@alice/notes-mcp", "bin": {"notes": "index.js"}}"#);
    assert_eq!(codes(&super::scan(dir.path())), ["scan-no-tools"], "a package that calls itself one");
    package(r#"{"name": "notes", "bin": {"notes": "index.js"}}"#);
    assert_eq!(codes(&super::scan(dir.path())), [""; 0]);
}

#[test]
fn tools_that_are_listed_belong_to_the_handler_that_picks_them() {
    let text = "import fs from 'node:fs';\nimport { Server } from '@modelcontextprotocol/sdk/server/index.js';\n\
                server.setRequestHandler(CallToolRequestSchema, async (request) => fs.readFileSync('/etc/hosts'));\n";
    let report = listing("server.ts", text, &["one", "two"]);
    assert_eq!(seen(&report).0, ["one", "two"]);
    for tool in report.tools() {
        assert_eq!(tool.deeds().uses()[0].capability().unwrap(), "fs:read:/etc/hosts");
    }
    let nothing = "import { Server } from '@modelcontextprotocol/sdk/server/index.js';\nrun();\n";
    let report = listing("server.ts", nothing, &["one"]);
    assert_eq!(
        (codes(&report), report.unfound()),
        (vec!["scan-tool-unfound".to_owned()], &["one".to_owned()][..])
    );
    let report = listing("server.ts", "server.tool('a', f); server.tool('b', f);", &["a"]);
    assert_eq!(
        (codes(&report), report.unlisted()),
        (vec!["scan-tool-unlisted".to_owned()], &["b".to_owned()][..])
    );
}

#[test]
fn an_environment_that_is_handed_on_is_all_of_it() {
    let uses = |report: &Report| -> Vec<String> {
        report.server().uses().iter().filter_map(|one| one.capability()).collect()
    };
    for text in [
        "JSON.stringify(process.env);",
        "const all = { ...process.env };",
        "spawn('x', { env: process.env });",
        "for (const name in process.env) print(name);",
        "const { A, ...rest } = process.env;",
        "send((process.env as any));",
    ] {
        assert!(uses(&scan_text("server.ts", text)).contains(&"env:read:*".to_owned()), "{text}");
    }
    for text in [
        "process.env.A;",
        "process.env['A'];",
        "const { A } = process.env;",
        "const env = process.env; env.A;",
        "if ('A' in process.env) go();",
        "process.env.A = 'x';",
        "config.env;",
    ] {
        assert!(!uses(&scan_text("server.ts", text)).contains(&"env:read:*".to_owned()), "{text}");
    }
    for text in ["dict(os.environ)", "json.dumps({**os.environ})", "run(env=os.environ)", "os.environ.copy()"]
    {
        let found = uses(&scan_text("server.py", format!("import os, json\n{text}\n")));
        assert!(found.contains(&"env:read:*".to_owned()), "{text}: {found:?}");
    }
    let found = uses(&scan_text("server.py", "import os\nos.environ['A']\nos.environ.get('B')\n"));
    assert!(!found.contains(&"env:read:*".to_owned()), "{found:?}");
}

#[test]
fn a_kotlin_policy_is_read_in_each_of_its_forms() {
    let declared = |body: &str| -> Option<Vec<String>> {
        let text = format!("val one = tool(\"one\") {{ {body}\n executor {{ 1 }} }}");
        let report = scan_text("tools.kt", text);
        report.tools()[0].declared().map(<[String]>::to_vec)
    };
    let lines = |all: &[&str]| Some(all.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
    let files = "filesystem { read(\"/data/**\") }";
    assert_eq!(declared(&format!("policy {{ {files} }}")), lines(&["fs:read:/data/**"]));
    assert_eq!(declared(&format!("grants {{ {files} }}")), lines(&["fs:read:/data/**"]));
    assert_eq!(declared(&format!("policy {{ grants {{ {files} }} }}")), lines(&["fs:read:/data/**"]));
    assert_eq!(declared("policy { process { allow(\"git\") } }"), lines(&["exec:spawn:git"]));
    assert_eq!(declared("policy { process { allow() } }"), lines(&["exec:spawn:*"]));
    assert_eq!(declared("policy { process { deny() } }"), lines(&[]));
    assert_eq!(declared("description(\"d\")"), None);
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
