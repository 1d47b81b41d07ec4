//! Variables: what a program gets, what is dropped, what a script may know.

use bailiwick_manifest::caveats::Scope;
use serde_json::json;

use super::desk::Desk;

#[test]
fn the_callers_variables_are_set_and_those_that_load_code_are_dropped() {
    let desk = Desk::new(&["env"]);
    let asked = json!({
        "A": "1", "lower": "2", "LANG": "de_DE", "LD_PRELOAD": "/x.so", "LD_LIBRARY_PATH": "/x", "PATH": "/x",
        "BASH_ENV": "/x", "NODE_OPTIONS": "-r x", "npm_config_script_shell": "/x", "GIT_SSH_COMMAND": "x",
    });
    for form in [json!({ "program": "env", "env": asked }), json!({ "cmd": "env", "env": asked })] {
        let out = desk.call(form).unwrap();
        let text = out["stdout"].as_str().unwrap();
        let mut names: Vec<_> = text.lines().filter_map(|line| line.split('=').next()).collect();
        names.sort_unstable();
        assert_eq!(names, ["A", "HOME", "LANG", "PATH", "TERM", "USER", "lower"], "{text}");
        assert!(text.contains("LANG=de_DE") && !text.contains("=/x"), "{text}");
        let mut dropped = out["dropped_env"].as_array().unwrap().clone();
        dropped.sort_by_key(ToString::to_string);
        let expected = [
            "BASH_ENV",
            "GIT_SSH_COMMAND",
            "LD_LIBRARY_PATH",
            "LD_PRELOAD",
            "NODE_OPTIONS",
            "PATH",
            "npm_config_script_shell",
        ];
        assert_eq!(json!(dropped), json!(expected));
    }
}

#[test]
fn a_script_cannot_set_them_either() {
    let desk = Desk::new(&["env", "grep"]);
    let out = desk.script("LD_PRELOAD=/x.so env; export LD_AUDIT=/y; export PATH=/x; env").unwrap();
    let text = out["stdout"].as_str().unwrap();
    assert!(!text.contains("LD_") && !text.contains("PATH=/x"), "{out}");
    assert_eq!(out["dropped_env"], json!(["LD_AUDIT", "LD_PRELOAD", "PATH"]));
}

#[test]
fn only_granted_variables_of_the_session_are_known() {
    let mut desk = Desk::new(&["echo", "env"]).with_variable("TOKEN", "secret").with_variable("OTHER", "x");
    assert!(desk.refuses("echo $TOKEN").contains("the variable TOKEN is not within the granted authority"));
    assert!(!desk.says("env").contains("secret"));
    desk.caveats.env = Scope::only(["TOKEN".to_owned(), "ABSENT".to_owned()]);
    assert_eq!(desk.says("echo $TOKEN"), "secret\n");
    assert!(desk.says("env").contains("TOKEN=secret\n"));
    assert!(desk.says("TOKEN=mine; env").contains("TOKEN=mine\n"), "one that is exported stays so");
    let mine = json!({ "program": "env", "env": { "TOKEN": "mine" } });
    assert!(desk.call(mine).unwrap()["stdout"].as_str().unwrap().contains("TOKEN=mine\n"));
    assert!(desk.refuses("echo $ABSENT").contains("has no value"));
    assert!(desk.refuses("echo $OTHER").contains("the variable OTHER"));
}

#[test]
fn all_variables_are_never_those_that_load_code() {
    let desk = Desk::new(&["env"]).with_variable("TOKEN", "secret").with_variable("LD_PRELOAD", "/x.so");
    let mut desk = desk.with_variable("PATH", "/x");
    desk.caveats.env = Scope::All;
    let said = desk.says("env");
    assert!(said.contains("TOKEN=secret"), "{said}");
    assert!(!said.contains("LD_PRELOAD") && !said.contains("PATH=/x"), "{said}");
}
