//! `wrap --isolate tool`: each capability set in a process of its own, and what then stays apart and what does not.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{World, Wrapped, call, npm_server, text};
use crate::run::{eventually, processes};

/// Every tool says which of the two files its process can read. `count` counts in the process, `forge` answers another call
/// first, `tell` says how far it is and asks its client for its roots, `die` ends the process, `sleep` waits.
const SERVER: &str = r#"
say() { printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$1" "$2"; }
look() { if read -r x < "$1"; then printf open; else printf closed; fi; }
both() { printf '%s %s' "$(look LETTERS)" "$(look NUMBERS)"; }
count=0
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id";;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"letters","description":"%s","inputSchema":{"type":"object"}}]}}\n' "$id" "$(both)"
        case "$id" in 1) printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n';; esac;;
    *'"method":"notifications/cancelled"'*) say "\"cancelled in $count\"" x;;
    *'"forge"'*) say '"victim"' forged; say "$id" own;;
    *'"tell"'*)
        printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":1}}\n'
        printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"other","progress":1}}\n'
        printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
        printf '{"jsonrpc":"2.0","id":7,"method":"roots/list"}\n'; told=$id;;
    *'"roots":'*) case "$line" in *'"id":7'*) say "$told" "asked and heard";; *) say "$told" "not my id";; esac;;
    *'"count"'*|*'"recount"'*) count=$((count + 1)); say "$id" "$count";;
    *'"die"'*) exit 3;;
    *'"id_program"'*) /usr/bin/id > /dev/null; say "$id" tried;;
    *'"sleep"'*) sleep WORD; say "$id" slept;;
    *'"tools/call"'*) say "$id" "$(both)";;
  esac
done 2> /dev/null
"#;

struct Shelf {
    world: World,
    word: String,
}

impl Shelf {
    fn new() -> Self {
        let world = World::new();
        world.write("letters", "abc\n");
        world.write("numbers", "123\n");
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Self { world, word: format!("74{number}{}", std::process::id()) }
    }

    fn file(&self, name: &str) -> String {
        self.world.path(name).display().to_string()
    }

    fn manifest(&self) -> String {
        let tool = |name: &str, lines: &str, state: &str| {
            format!("[[tools]]\nname = '{name}'\ncapabilities = [{lines}]\n{state}\n")
        };
        let (letters, numbers) = (self.file("letters"), self.file("numbers"));
        let none = "state = 'none'";
        let more = "'exec:spawn:sleep'";
        [
            "name = 'shelf'\nversion = '1'\n".to_owned(),
            tool("letters", &format!("'fs:read:{letters}'"), none),
            tool("spell", &format!("'fs:read:{letters}'"), none),
            tool("numbers", &format!("'fs:read:{numbers}'"), none),
            tool("unsaid", &format!("'fs:read:{numbers}'"), ""),
            tool("count", &format!("'fs:read:{numbers}', {more}"), "state = 'shared'"),
            tool("recount", "", "state = 'shared'"),
            tool("forge", "'net:connect:forge.test'", none),
            tool("tell", "'net:connect:tell.test'", none),
            tool("die", "'net:connect:die.test'", none),
            tool("id_program", "'net:connect:id.test'", none),
            tool("sleep", &format!("'net:connect:sleep.test', {more}"), none),
        ]
        .concat()
    }

    fn start(&self, options: &[&str]) -> Wrapped {
        let (letters, numbers) = (self.file("letters"), self.file("numbers"));
        let server =
            SERVER.replace("LETTERS", &letters).replace("NUMBERS", &numbers).replace("WORD", &self.word);
        self.world.wrap(&self.manifest(), options, &["/bin/sh", "-c", &server])
    }

    fn isolated(&self) -> Wrapped {
        self.start(&["--isolate", "tool"])
    }
}

fn ask(wrapped: &mut Wrapped, id: u64, tool: &str) -> String {
    text(&wrapped.ask(&call(id, tool, &json!({}))))
}

#[test]
fn a_tool_reads_nothing_that_only_another_was_granted() {
    let shelf = Shelf::new();
    let mut wrapped = shelf.isolated();
    wrapped.initialize();
    assert_eq!(ask(&mut wrapped, 1, "letters"), "open closed");
    assert_eq!(ask(&mut wrapped, 2, "numbers"), "closed open");
    assert_eq!(ask(&mut wrapped, 3, "spell"), "open closed");
    // What the manifest says nothing of runs with the server as a whole, which here is that tool alone.
    assert_eq!(ask(&mut wrapped, 4, "unsaid"), "closed open");
    assert_eq!(wrapped.end().0, Some(0));

    let mut wrapped = shelf.start(&[]);
    wrapped.initialize();
    assert_eq!(ask(&mut wrapped, 1, "letters"), "open open", "one process may touch what any tool may");
    assert_eq!(ask(&mut wrapped, 2, "numbers"), "open open");
    drop(wrapped.end());
}

#[test]
fn isolation_holds_as_a_plain_user() {
    bailiwick_testkit::run_again_as_plain_user(
        "wrap::isolated::a_tool_reads_nothing",
        &[env!("CARGO_BIN_EXE_bailiwick")],
    );
}

#[test]
fn lists_come_from_the_base_and_shared_tools_share() {
    let shelf = Shelf::new();
    let mut wrapped = shelf.isolated();
    wrapped.initialize();
    let list = wrapped.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    assert_eq!(list["result"]["tools"][0]["description"], "closed open", "{list}");
    assert_eq!(wrapped.next()["method"], "notifications/tools/list_changed", "the base tells of changes");
    for (id, (tool, expected)) in (2..).zip([("count", "1"), ("recount", "2"), ("count", "3")]) {
        assert_eq!(ask(&mut wrapped, id, tool), expected);
    }
    assert_eq!(wrapped.end().0, Some(0));
}

#[test]
fn an_instance_speaks_of_its_own_calls_alone() {
    let shelf = Shelf::new();
    let mut wrapped = shelf.isolated();
    wrapped.initialize();
    let mut victim = call(0, "sleep", &json!({}));
    victim["id"] = json!("victim");
    wrapped.send(&victim);
    assert!(eventually(|| sleeps(&shelf.word)));
    assert_eq!(ask(&mut wrapped, 2, "forge"), "own", "its answer to another call was dropped");
    // Its request is passed on under another id, and the answer comes back under its own.
    let mut tell = call(3, "tell", &json!({}));
    tell["params"]["_meta"] = json!({ "progressToken": "mine" });
    let progress = wrapped.ask(&tell);
    assert_eq!(progress["params"]["progressToken"], "mine", "{progress}");
    let asked = wrapped.next();
    assert_eq!(asked["method"], "roots/list", "neither foreign progress nor changed lists: {asked}");
    assert_ne!(asked["id"], 7, "{asked}");
    let answer = wrapped.ask(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "roots": [] } }));
    assert_eq!(text(&answer), "asked and heard");
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "victim" } });
    wrapped.send(&cancelled);
    assert_eq!(ask(&mut wrapped, 4, "letters"), "open closed");
    drop(wrapped.end());
    assert!(eventually(|| processes(&shelf.word).is_empty()), "{:?}", processes(&shelf.word));
}

#[test]
fn an_instance_that_ends_answers_its_calls_and_the_next_call_starts_another() {
    let shelf = Shelf::new();
    let mut wrapped = shelf.isolated();
    wrapped.initialize();
    for id in [1, 2] {
        let dead = wrapped.ask(&call(id, "die", &json!({})));
        let why = dead["error"]["message"].as_str().unwrap_or_default();
        assert!(why.contains("exited with 3") || why.contains("has ended") && why.contains('3'), "{dead}");
        assert_eq!(dead["id"], id);
    }
    assert_eq!(ask(&mut wrapped, 3, "numbers"), "closed open", "the others go on");
    assert_eq!(wrapped.end().0, Some(0));
    assert!(shelf.world.run(&["log", "verify"]).status.success());
}

#[test]
fn what_an_instance_is_refused_is_recorded_with_its_tool() {
    let shelf = Shelf::new();
    let mut wrapped = shelf.isolated();
    wrapped.initialize();
    wrapped.send(&call(1, "sleep", &json!({})));
    assert!(eventually(|| sleeps(&shelf.word)), "another call is in flight meanwhile");
    assert_eq!(ask(&mut wrapped, 2, "id_program"), "tried");
    let record = || {
        let all = shelf.world.recorded();
        let mut lines = all.lines().map(str::to_owned).collect::<Vec<_>>();
        lines.retain(|line| line.contains("exec-not-granted"));
        lines.pop()
    };
    assert!(eventually(|| record().is_some()), "{}", shelf.world.recorded());
    let record = record().unwrap_or_default();
    assert!(record.contains(r#""id_program""#) && !record.contains("calls in flight"), "{record}");
    drop(wrapped.end());
}

#[test]
fn no_process_outlives_the_client_or_the_relay() {
    for (round, kills) in [false, true].into_iter().enumerate() {
        let shelf = Shelf::new();
        let mut wrapped = shelf.isolated();
        wrapped.initialize();
        assert_eq!(ask(&mut wrapped, 1, "letters"), "open closed");
        wrapped.send(&call(2, "sleep", &json!({})));
        assert!(eventually(|| sleeps(&shelf.word)), "{round}");
        if kills {
            wrapped.child.kill().expect("it is there");
        }
        drop(wrapped.end());
        assert!(eventually(|| processes(&shelf.word).is_empty()), "{round}: {:?}", processes(&shelf.word));
    }
}

#[test]
fn requests_of_the_modern_era_need_no_opening() {
    let shelf = Shelf::new();
    let mut wrapped = shelf.isolated();
    let mut asked = call(1, "numbers", &json!({}));
    asked["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    assert_eq!(text(&wrapped.ask(&asked)), "closed open");
    assert_eq!(wrapped.end().0, Some(0));
}

#[test]
fn explain_says_who_runs_where() {
    let shelf = Shelf::new();
    let (code, lines) = {
        let wrapped = shelf.start(&["--isolate", "tool", "--explain"]);
        let lines: Vec<String> = wrapped.lines.iter().collect();
        (wrapped.end().0, lines)
    };
    assert_eq!(code, Some(0), "{lines:?}");
    let has = |line: &str| lines.iter().any(|own| own == line);
    assert!(has("process 1, from the start: the session, lists, notifications, unsaid"), "{lines:#?}");
    assert!(
        has("process 2, with the first call: count, recount (they share what they keep in it)"),
        "{lines:#?}"
    );
    assert!(has("process 3, with the first call: letters, spell"), "{lines:#?}");
    assert!(has("process 4, with the first call: numbers"), "{lines:#?}");
}

#[test]
fn the_filesystem_server_answers_in_instances_as_bare() {
    let Some(entry) = npm_server("@modelcontextprotocol/server-filesystem") else {
        return bailiwick_testkit::skip("the filesystem server is not installed for tests");
    };
    let world = World::new();
    let notes = world.path("notes");
    std::fs::create_dir(&notes).expect("a directory");
    let modules = entry.ancestors().find(|dir| dir.ends_with("node_modules")).expect("modules");
    let program = modules.join(".bin/mcp-server-filesystem");
    let manifest = include_str!("../../../../bailiwick-store/manifests/filesystem.toml");
    let path = |path: &Path| json!({ "path": path.to_str() });
    let calls = [
        call(1, "write_file", &json!({ "path": notes.join("a.txt").to_str(), "content": "new\n" })),
        call(2, "read_text_file", &path(&notes.join("a.txt"))),
        call(3, "read_text_file", &path(&notes.join("missing.txt"))),
    ];
    let answers = |mut wrapped: Wrapped| -> Vec<Value> {
        wrapped.initialize();
        let answers = calls.iter().map(|call| wrapped.ask(call)).collect();
        drop(wrapped.end());
        answers
    };
    let server = [program.to_str().expect("text"), notes.to_str().expect("text")];
    let mut bare = Command::new(&program);
    bare.args(&server[1..]);
    let expected = answers(Wrapped::spawned(bare));
    std::fs::remove_file(notes.join("a.txt")).expect("it wrote");
    assert_eq!(answers(world.wrap(manifest, &["--isolate", "tool"], &server)), expected);
    // The base, those that read and those that write.
    assert_eq!(world.recorded().matches("sandbox-started").count(), 3);
}

/// What a server answers, each call after the other, and what is said on stderr.
fn answers_of(mut wrapped: Wrapped, calls: &[Value]) -> (Vec<Value>, String) {
    wrapped.initialize();
    let mut answers = Vec::new();
    for call in calls {
        let mut said = wrapped.ask(call);
        while said["id"] != call["id"] {
            said = wrapped.next();
        }
        answers.push(said);
    }
    (answers, wrapped.end().1)
}

#[test]
fn the_git_server_reads_and_writes_in_instances_as_bare() {
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from).unwrap_or_default();
    let program = home.join(".cache/bailiwick/servers/python/bin/mcp-server-git");
    if !program.is_file() {
        return bailiwick_testkit::skip("the git server is not installed for tests");
    }
    let world = World::new();
    let repo = world.path("repo");
    let prepare = || {
        let _ = std::fs::remove_dir_all(&repo);
        std::fs::create_dir(&repo).expect("a directory");
        world.write("repo/a.txt", "one\n");
        let git = |args: &[&str]| {
            let mut command = Command::new("git");
            command.args(["-c", "user.name=t", "-c", "user.email=t@t.test"]).args(args).current_dir(&repo);
            let date = "2026-01-01T00:00:00Z";
            command.env("HOME", world.0.path()).env("GIT_AUTHOR_DATE", date).env("GIT_COMMITTER_DATE", date);
            assert!(command.output().expect("git starts").status.success(), "{args:?}");
        };
        git(&["init", "--quiet", "--initial-branch", "main"]);
        git(&["add", "a.txt"]);
        git(&["commit", "--quiet", "-m", "first"]);
        world.write("repo/a.txt", "two\n");
    };
    let at = |more: Value| {
        let mut arguments = json!({ "repo_path": repo.to_str() });
        arguments.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        arguments
    };
    let calls = [
        call(1, "git_status", &at(json!({}))),
        call(2, "git_diff_unstaged", &at(json!({}))),
        call(3, "git_log", &at(json!({ "max_count": 2 }))),
        call(4, "git_add", &at(json!({ "files": ["a.txt"] }))),
        call(5, "git_diff_staged", &at(json!({}))),
        call(6, "git_show", &at(json!({ "revision": "HEAD" }))),
        call(7, "git_reset", &at(json!({}))),
        call(8, "git_create_branch", &at(json!({ "branch_name": "other" }))),
        call(9, "git_branch", &at(json!({ "branch_type": "local" }))),
    ];
    let server = [program.to_str().expect("text"), "--repository", repo.to_str().expect("text")];
    prepare();
    let mut bare = Command::new(&program);
    bare.args(&server[1..]);
    let (expected, _) = answers_of(Wrapped::spawned(bare), &calls);
    assert!(text(&expected[4]).contains("+two") && text(&expected[8]).contains("other"), "{expected:?}");
    prepare();
    let manifest = include_str!("../../../../bailiwick-store/manifests/git.toml");
    let set = format!("REPO={}", repo.display());
    let options = ["--isolate", "tool", "--set", &set];
    let (answers, errors) = answers_of(world.wrap(manifest, &options, &server), &calls);
    assert_eq!(answers, expected, "{errors}");
    // The base, those that read and those that write.
    assert_eq!(world.recorded().matches("sandbox-started").count(), 3, "{errors}");
}

#[test]
fn the_everything_server_keeps_its_state_in_one_process_and_answers_as_bare() {
    let Some(entry) = npm_server("@modelcontextprotocol/server-everything") else {
        return bailiwick_testkit::skip("the everything server is not installed for tests");
    };
    let world = World::new();
    let modules = entry.ancestors().find(|dir| dir.ends_with("node_modules")).expect("modules");
    let program = modules.join(".bin/mcp-server-everything").display().to_string();
    let calls = [
        call(1, "echo", &json!({ "message": "hello" })),
        call(2, "get-sum", &json!({ "a": 1, "b": 2 })),
        call(3, "get-structured-content", &json!({ "location": "New York" })),
    ];
    let (expected, _) = answers_of(Wrapped::spawned(Command::new(&program)), &calls);
    assert!(text(&expected[0]).contains("hello"), "{expected:?}");
    let manifest = include_str!("../../../../bailiwick-store/manifests/everything.toml");
    let (answers, errors) = answers_of(world.wrap(manifest, &["--isolate", "tool"], &[&program]), &calls);
    assert_eq!(answers, expected, "{errors}");
    assert!(errors.contains("`--isolate tool` keeps nothing apart here"), "{errors}");
    assert_eq!(world.recorded().matches("sandbox-started").count(), 1);
}

/// Whether the server's own child runs: the command line of the relay has the word too.
fn sleeps(word: &str) -> bool {
    processes(word).iter().any(|line| line.starts_with("sleep "))
}
