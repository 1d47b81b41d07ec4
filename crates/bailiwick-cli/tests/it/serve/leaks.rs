//! What has leaked from other servers of this kind, tried through the protocol: as root and as a plain user.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Served, home, text};
use crate::escape::{User, as_user};
use crate::run::{eventually, processes};

const SECRET: &str = "hush-of-the-server";

/// Programs that an agent may well have been granted.
const GRANTED: [&str; 11] =
    ["cat", "chmod", "env", "find", "git", "kill", "ls", "python3", "setsid", "sh", "sleep"];

/// A server of a user with a secret in its environment, and a directory that it may write in.
struct Place {
    served: Served,
    work: PathBuf,
    outside: PathBuf,
}

impl Place {
    fn new(user: User) -> Self {
        let home = home();
        let at = |name: &str| home.path().join(name);
        let (work, outside) = (at("work"), at("outside"));
        for directory in [&work, &outside, &at(".ssh"), &at("tmp")] {
            std::fs::create_dir_all(directory).unwrap();
        }
        std::fs::write(at(".ssh/id_ed25519"), "private key").unwrap();
        std::fs::write(outside.join("file"), "untouched").unwrap();
        bailiwick_testkit::copy_program(
            std::path::Path::new(env!("CARGO_BIN_EXE_bailiwick")),
            &at("bailiwick"),
        );
        open_to_all(home.path(), user);
        let mut command = as_user(user, at("bailiwick"));
        command.arg("serve").args(["--cap", &format!("fs:read,write:{}", work.display())]);
        for program in GRANTED {
            command.args(["--cap", &format!("exec:spawn:{program}")]);
        }
        command.env_clear().env("HOME", home.path()).env("SECRET", SECRET).current_dir(&work);
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HTTPS_PROXY", "http://127.0.0.1:9");
        command.env("LD_PRELOAD", "").stderr(std::process::Stdio::null());
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        Self { served: Served::spawned(command, home), work, outside }
    }

    /// Everything that came of a script in a granted shell: its output and its complaints.
    fn sh(&mut self, script: &str) -> String {
        self.call(json!({ "program": "sh", "args": ["-c", script] }))
    }

    fn call(&mut self, arguments: Value) -> String {
        let answer = self.served.shell(7, arguments);
        assert!(answer["result"].is_object(), "{answer}");
        format!("{} {}", text(&answer), answer["result"]["structuredContent"])
    }

    fn server(&self) -> u32 {
        self.served.child.id()
    }
}

/// Makes the user own everything below, readable for every user: the server alone has to refuse.
fn open_to_all(path: &Path, user: User) {
    if user == User::Plain {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    if path.is_dir() {
        for entry in path.read_dir().unwrap() {
            open_to_all(&entry.unwrap().path(), user);
        }
    }
}

/// Tries one leak as every user that there is here.
fn by_everyone(attempt: impl Fn(&mut Place)) {
    let root = rustix::process::getuid().is_root();
    for user in if root { vec![User::Root, User::Plain] } else { vec![User::Caller] } {
        attempt(&mut Place::new(user));
    }
}

#[test]
fn the_attempts_have_something_to_find() {
    by_everyone(|place| {
        assert!(place.sh("cat /proc/self/environ | cat").contains("exit_code"));
        let environ = std::fs::read(format!("/proc/{}/environ", place.server()));
        if let Ok(environ) = environ {
            assert!(String::from_utf8_lossy(&environ).contains(SECRET), "the server has no secret");
        }
        let said = place.sh("echo mine > new && cat new");
        assert!(said.contains("mine"), "{said}");
    });
}

#[test]
fn secrets_of_the_server_are_not_in_proc() {
    by_everyone(|place| {
        let pid = place.server();
        let said = place.sh(&format!(
            "cat /proc/{pid}/environ; cat /proc/*/environ; cat /proc/1/environ; env; ls /proc/{pid}"
        ));
        assert!(!said.contains(SECRET), "{said}");
    });
}

#[test]
fn the_server_cannot_be_killed() {
    by_everyone(|place| {
        let pid = place.server();
        let said =
            place.sh(&format!("kill -9 {pid} || echo refused; kill -9 -1; kill -9 1; kill -9 $PPID; true"));
        assert!(said.contains("refused"), "{said}");
        place.served.ping();
    });
}

#[test]
fn loader_variables_and_paths_of_a_call_change_nothing() {
    by_everyone(|place| {
        let fake = place.work.join("git");
        std::fs::write(&fake, "#!/bin/sh\necho fake git ran\n").unwrap();
        std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
        let own = place.work.display().to_string();
        let env = json!({ "LD_PRELOAD": format!("{own}/evil.so"), "LD_AUDIT": "x", "PATH": own });
        let said = place.call(json!({ "program": "git", "args": ["--version"], "env": env }));
        assert!(said.contains("git version") && !said.contains("fake git ran"), "{said}");
        assert!(!said.contains("cannot be preloaded"), "{said}");
        let shown = place.call(json!({ "program": "env", "env": env }));
        assert!(!shown.contains("LD_PRELOAD="), "{shown}");
        let by_path = place.call(json!({ "program": fake }));
        assert!(by_path.contains("denied") && !by_path.contains("fake git ran"), "{by_path}");
        let by_script = place.call(json!({ "cmd": "./git --version" }));
        assert!(!by_script.contains("fake git ran"), "{by_script}");
        let from_within = place.sh("./git; PATH=. git");
        assert!(!from_within.contains("fake git ran"), "{from_within}");
    });
}

#[test]
fn programs_start_no_others() {
    by_everyone(|place| {
        for arguments in [
            json!({ "program": "find", "args": [".", "-maxdepth", "0", "-exec", "/usr/bin/id", ";"] }),
            json!({ "program": "env", "args": ["id"] }),
            json!({ "program": "sh", "args": ["-c", "/lib64/ld-linux-x86-64.so.2 /usr/bin/id"] }),
            json!({ "program": "python3", "args": ["-c", "import os; os.execv('/usr/bin/id', ['id'])"] }),
        ] {
            let said = place.call(arguments.clone());
            assert!(!said.contains("uid="), "{arguments}: {said}");
        }
        let refused = place.call(json!({ "program": "id" }));
        assert!(refused.contains("denied: exec of \"id\""), "{refused}");
    });
}

#[test]
fn keys_are_not_there_and_nothing_outside_is_changed() {
    by_everyone(|place| {
        let key = place.served.home.path().join(".ssh/id_ed25519").display().to_string();
        let said = place.sh(&format!("cat {key}; ls -la ~/.ssh; ls /etc/ssl/private; cat /etc/shadow"));
        assert!(!said.contains("private key") && !said.contains("root:"), "{said}");
        let file = place.outside.join("file");
        let before = file.metadata().unwrap().mode();
        let script = format!("chmod 777 {0}; echo changed > {0}; sh -c 'exit 0'", file.display());
        place.sh(&script);
        place.call(json!({ "program": "chmod", "args": ["777", file] }));
        assert_eq!(file.metadata().unwrap().mode(), before);
        assert_eq!(std::fs::read_to_string(file).unwrap(), "untouched");
        for (tool, arguments) in [
            ("fs_read", json!({ "path": key })),
            ("fs_list", json!({ "path": place.outside })),
            ("fs_write", json!({ "path": place.outside.join("new"), "content": "x" })),
        ] {
            let call = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call",
                "params": { "name": tool, "arguments": arguments } });
            let answer = place.served.ask(&call);
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            assert!(text(&answer).starts_with("denied: "), "{answer}");
        }
        assert!(!place.outside.join("new").exists());
    });
}

#[test]
fn sockets_of_the_host_are_not_reached() {
    by_everyone(|place| {
        let listening = place.work.join("socket");
        let _listener = UnixListener::bind(&listening).unwrap();
        std::fs::set_permissions(&listening, std::fs::Permissions::from_mode(0o777)).unwrap();
        let reach = format!(
            "import socket; s = socket.socket(socket.AF_UNIX); s.connect('{}'); print('reached')",
            listening.display()
        );
        let said = place.call(json!({ "program": "python3", "args": ["-c", reach] }));
        assert!(!said.contains("reached"), "{said}");
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let reach =
            format!("import socket; socket.create_connection(('127.0.0.1', {port}), 3); print('reached')");
        let said = place.call(json!({ "program": "python3", "args": ["-c", reach] }));
        assert!(!said.contains("reached"), "{said}");
    });
}

#[test]
fn no_process_survives_a_call() {
    by_everyone(|place| {
        let mark = format!("5{}.7", std::process::id());
        place.sh(&format!("setsid sleep {mark} > /dev/null 2>&1 & (setsid sleep {mark} &) ; true"));
        assert!(eventually(|| processes(&mark).is_empty()), "{:?}", processes(&mark));
        place.served.ping();
    });
}

#[test]
fn proxies_of_the_server_are_not_handed_on() {
    by_everyone(|place| {
        let said = place.call(json!({ "program": "env" }));
        assert!(!said.contains("PROXY") && !said.contains(SECRET), "{said}");
    });
}

/// A grant of everything is not a grant of the server itself: the tools for files run in its own process.
#[test]
fn tools_for_files_do_not_reach_the_server_with_everything_granted() {
    let home = home();
    let own = home.path().join(".config/bailiwick");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::create_dir_all(home.path().join("repo/.git/hooks")).unwrap();
    std::fs::write(own.join("config.toml"), "").unwrap();
    let mut command = super::command(&home, &["--cap", "fs:read,write:/**"]);
    command.env("SECRET", SECRET).stderr(std::process::Stdio::null());
    let mut served = Served::spawned(command, home);
    let home = served.home.path().display().to_string();
    let denied = [
        ("fs_read", json!({ "path": "/proc/self/environ" })),
        ("fs_read", json!({ "path": format!("/proc/{}/environ", served.child.id()) })),
        ("fs_search", json!({ "path": "/proc/self", "pattern": "SECRET" })),
        ("fs_list", json!({ "path": "/proc/self/fd" })),
        ("fs_read", json!({ "path": format!("{home}/.local/state/bailiwick/journal/key") })),
        ("fs_write", json!({ "path": "/proc/self/comm", "content": "x" })),
        ("fs_write", json!({ "path": format!("{home}/.config/bailiwick/config.toml"), "content": "x" })),
        (
            "fs_edit",
            json!({ "path": format!("{home}/.config/bailiwick/config.toml"), "edits": [{ "old": "a", "new": "b" }] }),
        ),
        ("fs_write", json!({ "path": format!("{home}/repo/.git/hooks/pre-commit"), "content": "x" })),
        ("fs_write", json!({ "path": format!("{home}/repo/.mcp.json"), "content": "x" })),
    ];
    for (tool, arguments) in denied {
        let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments } });
        let answer = served.ask(&call);
        assert_eq!(answer["result"]["isError"], true, "{tool} {arguments}: {answer}");
        assert!(text(&answer).starts_with("denied: "), "{tool} {arguments}: {answer}");
        assert!(!answer.to_string().contains(SECRET), "{answer}");
    }
    let listed = served.ask(&json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call",
        "params": { "name": "fs_list", "arguments": { "path": "/", "depth": 2 } } }));
    let shown = listed["result"]["structuredContent"].to_string();
    assert!(shown.contains("usr") && !shown.contains(r#""path":"proc"#), "{shown}");
    let said = served.shell(5, json!({ "cmd": format!("true < {home}/.config/bailiwick/config.toml") }));
    assert!(text(&said).starts_with("denied: "), "{said}");
}
