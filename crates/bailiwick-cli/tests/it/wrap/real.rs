//! A server that people use, bare and wrapped: the same answers to what is granted, and no other.

use std::process::Command;

use serde_json::{Value, json};

use super::{World, Wrapped, call, npm_server, text};

#[test]
fn the_filesystem_server_answers_as_bare_and_no_further() {
    let Some(entry) = npm_server("@modelcontextprotocol/server-filesystem") else {
        return bailiwick_testkit::skip("the filesystem server is not installed for tests");
    };
    let world = World::new();
    let notes = world.path("notes");
    std::fs::create_dir(&notes).expect("a directory");
    std::fs::write(notes.join("a.txt"), "hello\n").expect("a file");
    let outside = world.write("outside.txt", "hush\n");
    let modules = entry.ancestors().find(|dir| dir.ends_with("node_modules")).expect("modules").to_owned();
    let manifest = format!(
        "name = 'files'\nversion = '1'\nserver_capabilities = ['fs:read:{}/**']\n\
         [[tools]]\nname = 'read_text_file'\ncapabilities = ['fs:read:{notes}', 'fs:read:{notes}/**']\n\
         [[tools]]\nname = 'write_file'\ncapabilities = ['fs:read,write:{notes}/**']\n",
        modules.display(),
        notes = notes.display(),
    );
    let server = ["node", entry.to_str().expect("text"), notes.to_str().expect("text")];
    let path = |path: &std::path::Path| json!({ "path": path.to_str() });
    let calls = [
        call(1, "read_text_file", &path(&notes.join("a.txt"))),
        call(2, "write_file", &json!({ "path": notes.join("b.txt").to_str(), "content": "new\n" })),
        call(3, "read_text_file", &path(&notes.join("b.txt"))),
        call(4, "read_text_file", &path(&notes.join("missing.txt"))),
    ];
    let answers = |mut wrapped: Wrapped| -> Vec<Value> {
        wrapped.initialize();
        let answers = calls.iter().map(|call| wrapped.ask(call)).collect();
        drop(wrapped.end());
        answers
    };
    let mut bare = Command::new("node");
    bare.args(&server[1..]);
    let expected = answers(Wrapped::spawned(bare));
    std::fs::remove_file(notes.join("b.txt")).expect("it wrote");
    assert_eq!(answers(world.wrap(&manifest, &[], &server)), expected);

    let mut wrapped = world.wrap(&manifest, &[], &server);
    wrapped.initialize();
    let list = wrapped.ask(&json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list" }));
    assert_eq!(list["result"]["tools"].as_array().map(Vec::len), Some(2));
    let denied = wrapped.ask(&call(10, "read_text_file", &path(&outside)));
    assert!(text(&denied).contains("outside declared filesystem policy"), "{denied}");
    assert!(wrapped.ask(&call(11, "move_file", &json!({})))["error"].is_object());
    drop(wrapped.end());
    let journal = world.recorded();
    assert!(journal.contains("argument-outside-policy") && journal.contains("tool-not-found"), "{journal}");
}
