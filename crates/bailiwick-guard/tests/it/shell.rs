//! The `shell` tool with real programs.

mod bash;
mod desk;
mod ends;
mod env;
mod escapes;
mod globs;
mod network;
mod plain_user;
mod scripts;

use bailiwick_guard::tools::Shell;
use bailiwick_guard::{Effect, Output, Registry, Session, Tool, ToolError};
use bailiwick_journal::Options;
use bailiwick_manifest::caveats::{Caveats, Scope};
use serde_json::{Value, json};

use bailiwick_testkit::journal::Dir;

fn shell(exec: Scope<String>, args: Value) -> Result<Value, ToolError> {
    output(exec, args).map(Output::into_value)
}

fn output(exec: Scope<String>, args: Value) -> Result<Output, ToolError> {
    let dir = Dir::new();
    let registry =
        Registry::builder(dir.open("s", Options::default()), Session::new("/")).tool(Shell).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let none = || Scope::only(Vec::<String>::new());
    let caveats = Caveats { exec, fs_read: none(), fs_write: none(), net: none(), ..Caveats::top() };
    runtime.block_on(registry.dispatch("shell", args, &caveats))
}

fn only(names: &[&str]) -> Scope<String> {
    Scope::only(names.iter().map(|name| (*name).to_owned()))
}

#[test]
fn a_granted_program_runs_and_another_does_not() {
    let out = shell(only(&["echo"]), json!({ "program": "echo", "args": ["hello"] })).unwrap();
    assert_eq!((&out["exit_code"], &out["stdout"]), (&json!(0), &json!("hello\n")));
    let denied = shell(only(&["echo"]), json!({ "program": "rm", "args": ["-rf", "/"] })).unwrap_err();
    assert!(
        denied.to_string().starts_with("denied: exec of \"rm\" is not within the granted authority"),
        "{denied}"
    );
    assert!(
        shell(only(&["echo"]), json!({ "program": "/tmp/echo" })).is_err(),
        "a file elsewhere is another program"
    );
    assert!(shell(only(&["echo"]), json!({ "program": "../bin/echo" })).is_err());
}

#[test]
fn the_environment_is_fixed_and_input_is_passed() {
    let out = shell(only(&["env"]), json!({ "program": "env" })).unwrap();
    let mut lines: Vec<_> =
        out["stdout"].as_str().unwrap().lines().filter_map(|line| line.split('=').next()).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["HOME", "LANG", "PATH", "TERM", "USER"]);
    let out = shell(only(&["cat"]), json!({ "program": "cat", "stdin": "in" })).unwrap();
    assert_eq!(out["stdout"], "in");
}

#[test]
fn a_runaway_is_ended_with_its_children() {
    let marker = format!("{}", std::process::id());
    let script = format!("echo started; (sleep 200.{marker}) & sleep 200.{marker}");
    let out =
        shell(only(&["sh", "sleep"]), json!({ "program": "sh", "args": ["-c", script], "timeout_ms": 300 }))
            .unwrap();
    assert_eq!((&out["timed_out"], &out["stdout"]), (&json!(true), &json!("started\n")));
    let left = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).into_owned())
            .filter(|line| line.contains(&format!("200.{marker}")))
    });
    assert_eq!(left.collect::<Vec<_>>(), [""; 0], "nothing outlives the call");
}

#[test]
fn big_output_is_cut_and_said_so() {
    let out =
        shell(only(&["head"]), json!({ "program": "head", "args": ["-c", "3000000", "/dev/zero"] })).unwrap();
    assert_eq!(out["stdout"].as_str().unwrap().len(), 1024 * 1024);
    assert_eq!((&out["stdout_truncated"], &out["stderr_truncated"]), (&json!(true), &json!(false)));
}

#[test]
fn what_was_not_granted_is_not_there() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    let path = secret.path().to_str().unwrap();
    let out = shell(only(&["cat"]), json!({ "program": "cat", "args": [path] })).unwrap();
    assert_eq!(out["exit_code"], 1, "{out}");
    let out = shell(only(&["sh"]), json!({ "program": "sh", "args": ["-c", "id || echo no id"] })).unwrap();
    assert_eq!(out["stdout"], "no id\n", "a program that was not granted is absent: {out}");
    let alone = "while read line; do echo $line; done < /proc/net/dev";
    let out = shell(only(&["sh"]), json!({ "program": "sh", "args": ["-c", alone] })).unwrap();
    let interfaces = out["stdout"].as_str().unwrap().lines().filter(|line| line.contains(": ")).count();
    assert_eq!(interfaces, 1, "only its own loopback: {out}");
}

#[test]
fn arguments_are_read_strictly() {
    for (args, word) in [
        (json!([]), "an object"),
        (json!({}), "`program` is missing"),
        (json!({ "program": "echo", "cmd": "echo" }), "not both"),
        (json!({ "program": "echo", "cmd": null }), "`cmd` is a string"),
        (json!({ "cmd": "echo", "program": null }), "`program` is a string"),
        (json!({ "cmd": "echo", "args": [] }), "`args` goes with `program`"),
        (json!({ "program": "echo", "engine": "bash" }), "`engine` goes with `cmd`"),
        (json!({ "cmd": "echo", "engine": "zsh" }), "`safe` or `bash`"),
        (json!({ "program": "echo", "command": "id" }), "no argument `command`"),
        (json!({ "program": "echo", "args": "x" }), "list of strings"),
        (json!({ "program": "echo", "args": ["a\0b"] }), "list of strings"),
        (json!({ "program": "echo", "env": ["A"] }), "object of strings"),
        (json!({ "program": "echo", "env": { "A": 1 } }), "object of strings"),
        (json!({ "program": "echo", "env": { "A=B": "" } }), "not the name of a variable"),
        (json!({ "program": "echo", "timeout_ms": -1 }), "`timeout_ms` is a number"),
    ] {
        let error = shell(only(&["echo"]), args.clone()).unwrap_err().to_string();
        assert!(error.contains(word), "{args}: {error}");
    }
}

#[test]
fn a_result_has_exactly_what_its_schema_promises() {
    let schema = Shell.output().unwrap();
    let promised: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(schema["required"], json!(promised));
    for args in [json!({ "program": "echo" }), json!({ "cmd": "echo a; false" }), json!({ "cmd": "true" })] {
        let out = shell(only(&["echo"]), args).unwrap();
        assert_eq!(out.as_object().unwrap().keys().cloned().collect::<Vec<_>>(), promised, "{out}");
    }
    assert_eq!(Shell.hints().effect, Effect::Changes);
    let none = shell(only(&[]), json!({ "cmd": "true" })).unwrap();
    assert_eq!(none["exit_code"], 0);
}

#[test]
fn what_held_a_call_is_beside_its_result() {
    let held = |args| output(only(&["echo"]), args).unwrap().meta["dev.bailiwick/enforcement"].clone();
    let ran = held(json!({ "program": "echo" }));
    assert_eq!(ran["sandbox"], "native");
    assert_eq!((&ran["levels"]["fs"], &ran["levels"]["net"]), (&json!("kernel"), &json!("kernel")));
    let none = held(json!({ "cmd": "true" }));
    assert_eq!((&none["sandbox"], &none["levels"]), (&json!(null), &json!({})), "nothing was started");
    assert_eq!((&none["notes"], &none["more_notes"]), (&json!([]), &json!(0)));
}
