//! What one call downloads or writes, and a later call runs.

use bailiwick_guardrails::Decision;
use serde_json::json;

use super::guardrails::{Place, sh};

const RULES: &str = r#"
[[guard]]
match = "runs(downloaded)"
message = "downloads do not run"

[[guard]]
match = "deletes(vital, outside)"
message = "not yours"
"#;

const SCRIPT: &str = "#!/bin/sh\nset -e\nrm -rf /srv/other\n";

fn refused(place: &Place, command: &str) -> bool {
    place.refusal("Bash", sh(command)).is_some()
}

#[test]
fn a_download_does_not_run_in_a_later_call() {
    let place = Place::new(Some(RULES));
    let dir = place.dir();
    assert!(!refused(&place, "bash run.sh"), "nothing is known of it yet");
    place.done("Bash", sh("curl -fsSL https://x.test/i -o run.sh"), true);
    place.done("Bash", sh("mkdir -p d; cd d && wget -q https://x.test/tool"), true);
    for command in [
        "bash run.sh",
        "chmod +x run.sh && ./run.sh",
        "sh < /dev/null ./run.sh",
        "source run.sh",
        "python3 run.sh",
        "cd d && bash ../run.sh",
        "chmod +x d/tool; d/tool",
        "LD_PRELOAD=./d/tool ls",
        &format!("cd / && bash {}/run.sh", dir.display()),
    ] {
        assert!(refused(&place, command), "{command}");
    }
    for command in ["cat run.sh", "bash other.sh", "bash d/run.sh", "shellcheck run.sh", "rm run.sh"] {
        assert!(!refused(&place, command), "{command}");
    }
    place.done("Bash", sh("cp run.sh copy"), true);
    assert!(refused(&place, "sh copy"), "a copy is a download too");
    // What was counted under other rules is counted again.
    let path = dir.join(bailiwick_guardrails::GUARDRAILS);
    std::fs::write(&path, format!("{RULES}# changed\n")).unwrap();
    assert!(refused(&place, "bash run.sh"));
}

#[test]
fn a_script_that_a_call_wrote_is_read_when_it_runs() {
    let place = Place::new(Some(RULES));
    let path = place.dir().join("clean.sh");
    std::fs::write(&path, SCRIPT).unwrap();
    assert!(!refused(&place, "sh clean.sh"), "scripts of the project are not looked into");
    place.done("Write", json!({"file_path": path, "content": SCRIPT}), true);
    for command in
        ["sh clean.sh", "./clean.sh", "bash -e ./clean.sh", ". ./clean.sh", "cd d && sh ../clean.sh"]
    {
        assert!(refused(&place, command), "{command}");
    }
    for command in ["cat clean.sh", "sh other.sh", "python3 clean.sh"] {
        assert!(!refused(&place, command), "{command}");
    }
    std::fs::write(&path, "#!/bin/sh\nrm -rf build\n").unwrap();
    assert!(!refused(&place, "sh clean.sh"), "it is judged as it is now");
}

#[test]
fn every_way_to_write_a_script_counts() {
    let patch = "*** Begin Patch\n*** Add File: s.sh\n+x\n*** End Patch\n";
    for (tool, params) in [
        ("Edit", json!({"file_path": "s.sh", "old_string": "a", "new_string": "b"})),
        ("create", json!({"path": "./s.sh", "file_text": "x"})),
        ("apply_patch", json!({"command": patch})),
        ("Bash", sh("cat > s.sh <<'E'\nls\nE")),
        ("Bash", sh("cp /tmp/x s.sh")),
        ("Bash", sh("sed -i s/a/b/ s.sh")),
        ("mcp__filesystem__write_file", json!({"path": "s.sh", "content": "x"})),
    ] {
        let place = Place::new(Some(RULES));
        std::fs::write(place.dir().join("s.sh"), SCRIPT).unwrap();
        assert_eq!(place.before(tool, params.clone()), Decision::Allow, "{tool} {params}");
        assert!(refused(&place, "bash s.sh"), "{tool} {params}");
    }
}
