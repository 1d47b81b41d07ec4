//! Where a session's authority comes from, in which order, and what happens without any.

use std::process::Command;

use serde_json::json;

use super::{Served, command, home, text};

fn only(program: &str) -> String {
    format!(
        r#"{{"fs_read":{{"only":[]}},"fs_write":{{"only":[]}},"exec":{{"only":["{program}"]}},"net":{{"only":[]}},"max_calls":"unlimited","valid_for_generation":"all"}}"#
    )
}

/// Which of these programs the session may start.
fn may_start(command: Command, home: tempfile::TempDir) -> Vec<&'static str> {
    let mut served = Served::spawned(command, home);
    let programs = ["true", "echo", "cat", "ls", "id"];
    let allowed = programs.into_iter().zip(0..).filter(|(program, id)| {
        let answer = served.shell(*id, json!({ "program": program }));
        answer["result"]["isError"] == false
    });
    allowed.map(|(program, _)| program).collect()
}

#[test]
fn the_first_source_that_is_there_counts() {
    let with = |args: &[&str], own: bool, peer: bool, config: bool| {
        let home = home();
        let mut command = command(&home, args);
        if own {
            command.env("BAILIWICK_CAVEATS", only("echo"));
        }
        if peer {
            command.env("AGENT_BRIDLE_CAVEATS", only("cat"));
        }
        if config {
            let dir = home.path().join(".config/bailiwick");
            std::fs::create_dir_all(&dir).unwrap();
            let text = "[caveats]\nfs_read = { only = [] }\nfs_write = { only = [] }\nexec = { only = [\"ls\"] }\n\
                        net = { only = [] }\nmax_calls = \"unlimited\"\nvalid_for_generation = \"all\"\n";
            std::fs::write(dir.join("config.toml"), text).unwrap();
        }
        may_start(command, home)
    };
    assert_eq!(with(&["--cap", "exec:spawn:true"], true, true, true), ["true"]);
    assert_eq!(with(&[], true, true, true), ["echo"]);
    assert_eq!(with(&[], false, true, true), ["cat"]);
    assert_eq!(with(&[], false, false, true), ["ls"]);
    assert_eq!(with(&[], false, false, false), [""; 0]);
}

#[test]
fn grants_are_read_in_every_form_and_added_up() {
    let home = home();
    let file = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let caveats = file("caveats.json", &only("echo"));
    let list = file("list.txt", "# programs\nexec:spawn:cat\n\nfs:read:/usr/share\n");
    let manifest =
        file("manifest.toml", "name = \"m\"\nversion = \"1\"\nserver_capabilities = [\"exec:spawn:ls\"]\n");
    let args = ["--grant", &caveats, "--grant", &list, "--grant", &manifest, "--cap", "exec:spawn:id"];
    let command = command(&home, &args);
    assert_eq!(may_start(command, home), ["echo", "cat", "ls", "id"]);
}

/// A manifest in the form of a grant: `shell` may start `true`, and is held to these constraints.
fn with_constraints(name: &str, constraints: &str) -> String {
    format!(
        "name = '{name}'\nversion = '1'\n[[tools]]\nname = 'shell'\ncapabilities = ['exec:spawn:true']\n\
         {constraints}\n[[tools]]\nname = 'fs_list'\ncapabilities = ['fs:read:/usr/share']\n"
    )
}

/// The codes of calls under a manifest that is granted; `""` for one that ran.
fn codes_under(manifest: &str, calls: &[(&str, serde_json::Value)]) -> Vec<String> {
    let home = home();
    let path = home.path().join("manifest.toml");
    std::fs::write(&path, manifest).unwrap();
    let command = command(&home, &["--grant", path.to_str().unwrap()]);
    let mut served = Served::spawned(command, home);
    let codes = calls.iter().zip(0..).map(|((tool, args), id)| {
        let params = json!({ "name": tool, "arguments": args });
        let answer =
            served.ask(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
        answer["result"]["_meta"]["dev.bailiwick/decision"]["code"].as_str().unwrap_or_default().to_owned()
    });
    codes.collect()
}

#[test]
fn a_granted_manifest_holds_its_tools_to_their_constraints() {
    let (shell, list) =
        (("shell", json!({ "program": "true" })), ("fs_list", json!({ "path": "/usr/share" })));
    let read = ("fs_read", json!({ "path": "/usr/share" }));
    for (constraints, calls, expected) in [
        ("constraints.max_invocations = 1", vec![&shell, &shell], vec!["", "tool-too-often"]),
        ("constraints.forbidden = true", vec![&shell], vec!["tool-forbidden"]),
        ("constraints.confirm = true", vec![&shell], vec!["consent-missing"]),
        ("constraints.fleet_budget = { name = 'b' }", vec![&shell], vec!["fleet-budget-spent"]),
        ("constraints.only_after = ['fs_list']", vec![&shell, &list, &shell], vec!["tool-too-early", "", ""]),
    ] {
        let calls: Vec<_> = calls.into_iter().cloned().collect();
        assert_eq!(codes_under(&with_constraints("m", constraints), &calls), expected, "{constraints}");
    }
    let outside = ("fs_list", json!({ "path": "/etc" }));
    assert_eq!(codes_under(&with_constraints("m", ""), &[outside]), ["argument-outside-policy"]);
    let undeclared = |name: &str| codes_under(&with_constraints(name, ""), std::slice::from_ref(&read));
    assert_ne!(
        undeclared("m"),
        ["tool-forbidden"],
        "a manifest of others does not judge what it does not declare"
    );
    assert_eq!(undeclared("bailiwick"), ["tool-forbidden"], "this server must declare its tools");
}

#[test]
fn a_broken_source_serves_nothing() {
    let bad = only("echo").replace("\"exec\"", "\"exce\"");
    for (variable, value) in
        [("BAILIWICK_CAVEATS", &*bad), ("BAILIWICK_CAVEATS", ""), ("AGENT_BRIDLE_CAVEATS", "{}")]
    {
        let home = home();
        let output = command(&home, &[]).env(variable, value).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{variable}={value}");
        assert_eq!(output.stdout, b"");
        assert!(String::from_utf8_lossy(&output.stderr).contains(variable));
    }
    let home = home();
    let (wrong, missing) = (home.path().join("x.json"), home.path().join("y.json"));
    std::fs::write(&wrong, bad).unwrap();
    for (args, code) in [
        (["--grant", wrong.to_str().unwrap()], 3),
        (["--grant", missing.to_str().unwrap()], 3),
        (["--cap", "exec:swan:x"], 2),
        (["--cwd", "/no/such"], 2),
        (["--guardrails", "/etc/hosts"], 2),
        (["--guardrails", "/etc/.agents/guardrails.toml"], 3),
    ] {
        let output = command(&home, &args).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?} {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout, b"");
    }
}

#[test]
fn without_a_source_everything_is_denied_and_it_says_how_to_grant() {
    let mut served = Served::start(&[]);
    let opened = served.ask(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} }));
    let instructions = opened["result"]["instructions"].as_str().unwrap();
    assert!(instructions.contains("Nothing is granted."), "{instructions}");
    assert!(instructions.contains("bailiwick serve --cap"), "{instructions}");
    let denied = served.shell(1, json!({ "program": "echo" }));
    assert_eq!(denied["result"]["isError"], true);
    assert!(text(&denied).contains("bailiwick serve --cap"), "{denied}");
    let (code, said) = served.end();
    assert_eq!(code, 0);
    assert!(said.contains("nothing is granted") && said.lines().count() == 1, "{said}");
}

#[test]
fn the_calls_of_caveats_are_counted() {
    let home = home();
    let mut command = command(&home, &[]);
    command.env("BAILIWICK_CAVEATS", only("true").replace("\"unlimited\"", r#"{"at_most":2}"#));
    let mut served = Served::spawned(command, home);
    let codes: Vec<_> = (0..3)
        .map(|id| {
            let answer = served.shell(id, json!({ "program": "true" }));
            answer["result"]["_meta"]["dev.bailiwick/decision"]["code"].clone()
        })
        .collect();
    assert_eq!(codes, [json!(null), json!(null), json!("budget-spent")]);
}

#[test]
fn guardrails_hold_what_is_granted() {
    let home = home();
    let dir = home.path().join(".agents");
    std::fs::create_dir(&dir).unwrap();
    let rules = "[[guard]]\nmatch = \"*(program=^cat$)\"\nmessage = \"no cats\"\n";
    std::fs::write(dir.join("guardrails.toml"), rules).unwrap();
    let file = dir.join("guardrails.toml").to_str().unwrap().to_owned();
    let mut served = Served::spawned(
        command(&home, &["--guardrails", &file, "--cap", "exec:spawn:cat", "--cap", "exec:spawn:true"]),
        home,
    );
    let denied = served.shell(1, json!({ "program": "cat" }));
    assert_eq!(denied["result"]["_meta"]["dev.bailiwick/decision"]["code"], "guardrail-blocked", "{denied}");
    assert_eq!(served.shell(2, json!({ "program": "true" }))["result"]["isError"], false);
}

/// Caveats that allow one program, as a table of a configuration file.
fn table(program: &str) -> String {
    format!(
        "[other]\nkey = 1\n\n[caveats]\nfs_read = {{ only = [] }}\nfs_write = {{ only = [] }}\n\
         exec = {{ only = [\"{program}\"] }}\nnet = {{ only = [] }}\nmax_calls = \"unlimited\"\n\
         valid_for_generation = \"all\"\n"
    )
}

#[test]
fn the_configuration_of_agent_bridle_is_the_last_source() {
    let with = |own: Option<&str>, peer: &str| {
        let home = home();
        let write = |path: &str, text: &str| {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        own.into_iter().for_each(|text| write(".config/bailiwick/config.toml", text));
        write(".agent-bridle/config.toml", peer);
        let command = command(&home, &[]);
        may_start(command, home)
    };
    assert_eq!(with(None, &table("id")), ["id"]);
    assert_eq!(with(Some("[other]\nkey = 1\n"), &table("id")), ["id"]);
    assert_eq!(with(Some(&table("ls")), &table("id")), ["ls"]);
    assert_eq!(with(None, "[other]\nkey = 1\n"), [""; 0]);
}

#[test]
fn a_configuration_of_agent_bridle_that_cannot_be_used_serves_nothing() {
    use std::os::unix::fs::symlink;
    type Make = fn(&std::path::Path);
    let cases: [(&str, Make); 5] = [
        ("expected", |path| std::fs::write(path, "[caveats]\nexec = \"some\"\n").unwrap()),
        ("exce", |path| std::fs::write(path, table("id").replace("exec", "exce")).unwrap()),
        ("UTF-8", |path| std::fs::write(path, b"\xff").unwrap()),
        ("cannot read", |path| std::fs::create_dir(path).unwrap()),
        ("cannot read", |path| symlink("/no/such", path).unwrap()),
    ];
    for (why, make) in cases {
        let home = home();
        let path = home.path().join(".agent-bridle/config.toml");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        make(&path);
        let output = command(&home, &[]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), &b""[..]), "{why}: {said}");
        assert!(said.contains(why) && said.contains(".agent-bridle/config.toml"), "{why}: {said}");
    }
}

#[test]
fn a_session_does_not_reach_the_configurations_that_grant() {
    let home = home();
    let file = home.path().join(".agent-bridle/config.toml");
    let write = |path: &std::path::Path| json!({ "path": path, "content": table("id") });
    let call = |id: u64, arguments: serde_json::Value| {
        let params = json!({ "name": "fs_write", "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let cap = format!("fs:read,write:{}", home.path().display());
    let mut served = Served::spawned(
        command(&home, &["--cap", &cap, "--cap", "exec:spawn:mkdir", "--cap", "exec:spawn:cp"]),
        home,
    );
    let made = served.shell(1, json!({ "program": "mkdir", "args": ["-p", file.parent().unwrap()] }));
    assert!(
        !file.parent().unwrap().exists() || made["result"]["structuredContent"]["exit_code"] != 0,
        "{made}"
    );
    let wrote = served.ask(&call(2, write(&file)));
    assert_eq!(wrote["result"]["isError"], true, "{wrote}");
    assert!(!file.exists());
    let beside = served.home.path().join("beside.toml");
    assert_eq!(served.ask(&call(3, write(&beside)))["result"]["isError"], false);
}

#[test]
fn the_kind_of_a_grant_is_its_structure_and_not_a_word_in_it() {
    let home = home();
    let file = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let tool = |name: &str| {
        format!(
            "name = \"m\"\nversion = \"1\"\ndescription = \"caveats\"\n[[tools]]\nname = \"{name}\"\n\
             capabilities = [\"exec:spawn:ls\"]\n"
        )
    };
    let snapshot = json!({
        "name": "m", "version": "1", "server_capabilities": ["exec:spawn:cat"],
        "tools": [{ "name": "valid_for_generation", "capabilities": [] }],
    });
    let listed = "# fs_read max_calls caveats\nexec:spawn:id\nfs:read:/usr/share/fs_write\n";
    for (name, text, granted) in [
        ("a.toml", tool("fs_read"), ["ls"]),
        ("b.toml", tool("max_calls").replace("name = \"m\"", "name = \"caveats\""), ["ls"]),
        ("c.json", snapshot.to_string(), ["cat"]),
        ("d.txt", listed.to_owned(), ["id"]),
        ("e.toml", table("echo"), ["echo"]),
        ("f.json", only("true"), ["true"]),
    ] {
        let text = text.replace("description = \"caveats\"\n", "# caveats fs_write\n");
        let command = command(&home, &["--grant", &file(name, &text)]);
        let own = super::home();
        assert_eq!(may_start(command, own), granted, "{name}");
    }
    // What is two things at once is neither.
    let mixed = only("true").replacen('{', "{\"name\":\"m\",\"version\":\"1\",", 1);
    for (name, text) in [("g.json", mixed), ("h.txt", "exec:spawn:id\nname = \"m\"\n".to_owned())] {
        let output = command(&home, &["--grant", &file(name, &text)]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(3) && said.contains(name), "{name}: {said}");
    }
}
