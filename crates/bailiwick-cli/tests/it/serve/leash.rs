//! The files that say what a session may do, and its journal, lie where it may write: no tool changes them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Served, home, text};
use crate::escape::{User, as_user};

/// Guardrails without a rule.
const RULES: &str = "# no rule yet\n";

struct Place {
    served: Served,
    work: PathBuf,
}

/// A server whose grant, guardrails and journal lie in the directory that it grants.
fn place(user: User) -> Place {
    let home = home();
    let work = home.path().join("work");
    std::fs::create_dir_all(work.join("project/.agents")).unwrap();
    std::fs::create_dir_all(work.join("conf")).unwrap();
    let programs =
        ["sh", "cat", "chmod", "mkdir", "mv", "rm"].map(|name| format!("exec:spawn:{name}\n")).concat();
    let grant = format!("fs:read,write:{}\n{programs}", work.display());
    std::fs::write(work.join("conf/session.caps"), &grant).unwrap();
    std::fs::write(work.join("conf/beside"), "plain").unwrap();
    std::fs::write(work.join("project/.agents/guardrails.toml"), RULES).unwrap();
    let program = std::env::var_os("BAILIWICK_ESCAPE_PROGRAM").map(PathBuf::from);
    let program = program.unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_bailiwick")));
    bailiwick_testkit::copy_program(&program, &home.path().join("bailiwick"));
    if user == User::Plain {
        let given = std::process::Command::new("chown").args(["-R", "65534:65534"]).arg(home.path()).status();
        assert!(given.unwrap().success());
    }
    let mut command = as_user(user, home.path().join("bailiwick"));
    command.args(["serve", "--grant", "conf/session.caps", "--journal", "j"]);
    command.args(["--guardrails", "project/.agents/guardrails.toml"]);
    command.env_clear().env("HOME", home.path().join("own")).current_dir(&work);
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").stderr(std::process::Stdio::piped());
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    Place { served: Served::spawned(command, home), work }
}

impl Place {
    fn call(&mut self, tool: &str, arguments: &Value) -> String {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer =
            self.served.ask(&json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params }));
        if answer["result"].is_object() { text(&answer) } else { answer.to_string() }
    }

    fn sh(&mut self, script: &str) -> String {
        self.call("shell", &json!({ "program": "sh", "args": ["-c", script] }))
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Ways to change a file. `F` is its name, `D` its directory.
const CHANGES: [&str; 6] = [
    "echo forged >F",
    "echo forged >>F",
    "rm -f F",
    "mv F F.away",
    "mv D D.away; mkdir D; echo forged >F",
    "echo forged >new; mv -f new F",
];

#[test]
fn no_tool_changes_what_governs_the_session() {
    let root = rustix::process::getuid().is_root();
    for user in if root { &[User::Root, User::Plain][..] } else { &[User::Caller] } {
        let mut place = place(*user);
        for name in ["conf/session.caps", "project/.agents/guardrails.toml"] {
            let (file, before) = (place.work.join(name), read(&place.work.join(name)));
            let directory = file.parent().unwrap().display().to_string();
            assert!(!before.is_empty());
            for change in CHANGES {
                let script = change.replace('F', &file.display().to_string()).replace('D', &directory);
                let said = place.sh(&script);
                assert_eq!(read(&file), before, "{script} as {user:?}: {said}");
            }
            for (tool, arguments) in [
                ("fs_write", json!({ "path": &file, "content": "forged" })),
                ("fs_edit", json!({ "path": &file, "old_text": &before, "new_text": "forged" })),
                (
                    "fs_edit",
                    json!({ "path": &file, "edits": [{ "old_text": &before, "new_text": "forged" }] }),
                ),
            ] {
                let said = place.call(tool, &arguments);
                assert_eq!(read(&file), before, "{tool} as {user:?}: {said}");
            }
        }
        let shown = place.sh("cat conf/session.caps");
        assert!(shown.contains("fs:read,write"), "(control) it can be read as {user:?}: {shown}");
        // Not named: the guardrails read arguments, the sandbox holds the file.
        let said = place.sh("for f in project/.a*/g*; do echo forged >$f; done; mv project aside");
        assert_eq!(read(&place.work.join("project/.agents/guardrails.toml")), RULES, "as {user:?}: {said}");
        let key = read(&place.work.join("j/key"));
        let shown = place.sh("cat j/key; cat j/*; echo forged >j/new; rm -rf j; mv j k; cat k/key");
        assert!(!key.is_empty() && !shown.contains(key.trim()), "as {user:?}: {shown}");
        assert_eq!(read(&place.work.join("j/key")), key, "as {user:?}");
        let shown = place.call("fs_read", &json!({ "path": place.work.join("j/key") }));
        assert!(!shown.contains(key.trim()), "as {user:?}: {shown}");
        let beside = place.work.join("conf/beside");
        place.call("fs_write", &json!({ "path": &beside, "content": "changed" }));
        assert_eq!(read(&beside), "changed", "(control) what lies beside can be written, as {user:?}");
        let said = place.sh(&format!("echo again >{}", beside.display()));
        assert_eq!(read(&beside), "again\n", "(control) also by a program, as {user:?}: {said}");
    }
}
