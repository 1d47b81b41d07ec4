//! The `shell` tool with real programs.

use bailiwick_guard::journal::Options;
use bailiwick_guard::tools::Shell;
use bailiwick_guard::{Registry, Session, ToolError};
use bailiwick_policy::caveats::{Caveats, Scope};
use serde_json::{Value, json};

use super::support::Dir;

fn shell(exec: Scope<String>, args: Value) -> Result<Value, ToolError> {
    let dir = Dir::new();
    let registry =
        Registry::builder(dir.open("s", Options::default()), Session::new("/")).tool(Shell).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let caveats = Caveats { exec, ..Caveats::top() };
    runtime.block_on(registry.dispatch_oneshot("shell", args, &caveats))
}

fn only(names: &[&str]) -> Scope<String> {
    Scope::only(names.iter().map(|name| (*name).to_owned()))
}

#[test]
fn a_granted_program_runs_and_another_does_not() {
    let out = shell(only(&["echo"]), json!({ "program": "echo", "args": ["hello"] })).unwrap();
    assert_eq!((&out["exit_code"], &out["stdout"]), (&json!(0), &json!("hello\n")));
    assert_eq!(out["sandbox"], "none", "nothing is claimed that is not held");
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
    assert!(shell(only(&["echo"]), json!({ "program": "echo", "env": { "PATH": "/tmp" } })).is_err());
}

#[test]
fn the_environment_is_fixed_and_input_is_passed() {
    let out = shell(only(&["env"]), json!({ "program": "env" })).unwrap();
    let mut lines: Vec<_> =
        out["stdout"].as_str().unwrap().lines().filter_map(|line| line.split('=').next()).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["LANG", "PATH"]);
    let out = shell(only(&["cat"]), json!({ "program": "cat", "stdin": "in" })).unwrap();
    assert_eq!(out["stdout"], "in");
}

#[test]
fn a_runaway_is_ended_with_its_children() {
    let marker = format!("{}", std::process::id());
    let script = format!("echo started; (sleep 300.{marker}) & sleep 300.{marker}");
    let out =
        shell(only(&["sh"]), json!({ "program": "sh", "args": ["-c", script], "timeout_ms": 300 })).unwrap();
    assert_eq!((&out["timed_out"], &out["stdout"]), (&json!(true), &json!("started\n")));
    let left = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter(|entry| {
        std::fs::read(entry.path().join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(&format!("300.{marker}")))
    });
    assert_eq!(left.count(), 0, "nothing outlives the call");
}

#[test]
fn big_output_is_cut_and_said_so() {
    let out =
        shell(only(&["head"]), json!({ "program": "head", "args": ["-c", "3000000", "/dev/zero"] })).unwrap();
    assert_eq!(out["stdout"].as_str().unwrap().len(), 1024 * 1024);
    assert_eq!((&out["stdout_truncated"], &out["stderr_truncated"]), (&json!(true), &json!(false)));
}
