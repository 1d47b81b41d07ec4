//! A name that runs code later, granted by name inside a writable tree: open to every tool, and nothing beside it.

use serde_json::{Value, json};

use super::{Served, command_of, home, text};

#[test]
fn a_name_that_is_granted_is_open_to_every_tool() {
    let home = home();
    let work = home.path().join("work");
    for name in [".git/objects", ".git/refs", ".git/hooks"] {
        std::fs::create_dir_all(work.join(name)).unwrap();
    }
    std::fs::write(work.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let hooks = work.join(".git/hooks");
    let tree = format!("fs:read,write:{}", work.display());
    let named = format!("fs:write:{}", hooks.display());
    let command = command_of(
        env!("CARGO_BIN_EXE_bailiwick").as_ref(),
        &home,
        &["--cap", &tree, "--cap", &named, "--cap", "exec:spawn:sh"],
    );
    let mut served = Served::spawned(command, home);
    let mut call = |tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer =
            served.ask(&json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params }));
        if answer["result"].is_object() { text(&answer) } else { answer.to_string() }
    };
    let said = call("fs_write", json!({ "path": hooks.join("by-tool"), "content": "x" }));
    assert!(hooks.join("by-tool").exists(), "{said}");
    let line = |path: &str| format!("echo x > {}/{path}", work.display());
    let said = call("shell", json!({ "program": "sh", "args": ["-c", line(".git/hooks/by-shell")] }));
    assert!(hooks.join("by-shell").exists(), "{said}");
    let said = call("fs_write", json!({ "path": work.join(".git/config"), "content": "x" }));
    assert!(said.contains("granted by name") && !work.join(".git/config").exists(), "{said}");
    let said = call("shell", json!({ "program": "sh", "args": ["-c", line(".mcp.json")] }));
    assert!(!work.join(".mcp.json").exists(), "{said}");
}
