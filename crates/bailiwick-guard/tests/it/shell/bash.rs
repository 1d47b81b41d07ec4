//! A real bash, for those who are granted one.

use serde_json::json;

use super::desk::Desk;

fn bash(desk: &Desk, text: &str) -> Result<serde_json::Value, bailiwick_guard::ToolError> {
    desk.call(json!({ "cmd": text, "engine": "bash", "env": { "X": "1", "BASH_ENV": "/dev/stdin" }, "stdin": "echo sourced" }))
}

#[test]
fn bash_runs_only_where_it_is_granted() {
    let denied = bash(&Desk::new(&["echo"]), "echo x").unwrap_err().to_string();
    assert!(denied.contains("exec of \"bash\" is not within the granted authority"), "{denied}");
    let desk = Desk::new(&["bash", "cat"]);
    let out = bash(&desk, "for n in 1 2; do echo $n$X; done; echo $(echo sub); cat a.txt > made; cat < made")
        .unwrap();
    assert_eq!(
        (&out["exit_code"], &out["stdout"]),
        (&json!(0), &json!("11\n21\nsub\nwork/a.txt\n")),
        "{out}"
    );
}

#[test]
fn the_kernel_holds_what_it_does() {
    let desk = Desk::new(&["bash"]);
    let outside = desk.outside().display().to_string();
    let out = bash(&desk, "id; /usr/bin/id; echo done").unwrap();
    assert_eq!(out["stdout"], "done\n", "{out}");
    let out =
        bash(&desk, &format!("read x < {outside}/secret; echo $x; echo y > {outside}/new; exit 4")).unwrap();
    assert_eq!((&out["exit_code"], &out["stdout"]), (&json!(4), &json!("\n")), "{out}");
    assert!(!desk.outside().join("new").exists());
    std::fs::create_dir_all(desk.work().join(".git/hooks")).unwrap();
    let out = bash(&desk, "echo x > .git/hooks/pre-commit").unwrap();
    assert_ne!(out["exit_code"], 0, "{out}");
}
