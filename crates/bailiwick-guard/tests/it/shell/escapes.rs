//! Ways around a script's redirections, patterns and programs.

use bailiwick_manifest::caveats::Scope;
use serde_json::json;

use super::desk::Desk;

#[test]
fn a_link_that_the_script_makes_itself_leads_nowhere() {
    let desk = Desk::new(&["ln", "echo", "cat", "touch"]);
    let outside = desk.outside().display().to_string();
    for (script, word) in [
        ("ln -s {out} l; echo x > l/new", "write of"),
        ("ln -s {out}/new m; echo x > m", "write of"),
        ("ln -s {out} n; cat < n/secret", "read of"),
        ("ln -s {out} o; cd o; echo x", "read of"),
    ] {
        let out = desk.script(&format!("{}; touch after", script.replace("{out}", &outside))).unwrap();
        assert_eq!((&out["exit_code"], &out["stdout"]), (&json!(126), &json!("")), "{script}: {out}");
        assert!(out["denials"][0]["message"].as_str().unwrap().contains(word), "{script}: {out}");
        assert!(out["denials"][0]["grant"].as_str().unwrap().starts_with("fs:"), "{script}: {out}");
        assert!(!desk.outside().join("new").exists() && !desk.has("after"), "{script}");
    }
}

#[test]
fn files_that_run_code_later_are_no_targets() {
    let desk = Desk::new(&["echo", "ln", "cat"]);
    std::fs::create_dir_all(desk.work().join(".git/hooks")).unwrap();
    for target in
        [".git/hooks/pre-commit", ".git/config", ".mcp.json", ".bashrc", "sub/.git/config", ".claude/x"]
    {
        let error = desk.refuses(&format!("echo evil > {target}"));
        assert!(error.contains("runs code later") && error.contains("fs:write:"), "{target}: {error}");
        assert!(!desk.has(target), "{target}");
    }
    let out = desk.script("ln -s .git/hooks/post-merge l; echo evil > l").unwrap();
    assert_eq!(out["exit_code"], 126, "{out}");
    assert!(!desk.has(".git/hooks/post-merge"));
    let mut named = Desk::new(&["echo", "cat"]);
    std::fs::write(named.work().join(".bashrc"), "").unwrap();
    let line = named.work().join(".bashrc").to_str().unwrap().to_owned();
    let Scope::Only(paths) = &mut named.caveats.fs_write else { panic!("a list") };
    paths.clear();
    paths.insert(line);
    assert_eq!(named.says("echo mine > .bashrc; cat .bashrc"), "mine\n", "unless granted by name");
}

#[test]
fn all_files_are_not_the_hosts_own_nor_ours() {
    let mut desk = Desk::new(&["cat", "echo"]);
    (desk.caveats.fs_read, desk.caveats.fs_write) = (Scope::All, Scope::All);
    let journal = desk.journal();
    std::fs::create_dir_all(&journal).unwrap();
    for script in [
        "cat < /proc/self/environ".to_owned(),
        "echo x > /proc/self/comm".to_owned(),
        "cat < /sys/kernel/profiling".to_owned(),
        "echo x > /dev/shm/bailiwick-test".to_owned(),
        "echo x > /run/bailiwick-test".to_owned(),
        format!("echo x > {}/new", journal.display()),
        format!("echo {}/*", journal.display()),
    ] {
        match desk.script(&script) {
            Err(error) => assert!(error.to_string().contains("never within a grant"), "{script}: {error}"),
            Ok(out) => assert!(out["stdout"].as_str().unwrap().ends_with("/*\n"), "{script}: {out}"),
        }
    }
    assert!(!journal.join("new").exists());
}

#[test]
fn a_pattern_says_nothing_of_directories_outside() {
    let desk = Desk::new(&["echo"]);
    let outside = desk.outside().display().to_string();
    std::os::unix::fs::symlink(desk.outside(), desk.work().join("link")).unwrap();
    for pattern in
        [format!("{outside}/*"), "../outside/*".to_owned(), "link/*".to_owned(), "*/secret".to_owned()]
    {
        let said = desk.says(&format!("echo {pattern}"));
        assert_eq!(said.trim_end(), pattern, "stays as it is written");
    }
}

#[test]
fn a_file_called_git_elsewhere_is_not_git() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new(&["git", "echo"]);
    let fake = desk.work().join("git");
    std::fs::write(&fake, "#!/bin/sh\necho fake\n").unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let work = desk.work().display().to_string();
    let path = json!({ "program": "git", "args": ["--version"], "cwd": work, "env": { "PATH": work } });
    let out = desk.call(path).unwrap();
    assert!(out["stdout"].as_str().unwrap().starts_with("git version"), "{out}");
    assert_eq!(out["dropped_env"], json!(["PATH"]));
    let said = desk.says(&format!("PATH={work} git --version; PATH={work}; git --version"));
    assert_eq!(said.lines().filter(|line| line.starts_with("git version")).count(), 2, "{said}");
    for program in [fake.to_str().unwrap(), "./git", "git/../git"] {
        assert!(desk.call(json!({ "program": program })).is_err(), "{program}");
        assert!(desk.script(program).is_err(), "{program}");
    }
}

#[test]
fn granted_programs_start_no_others() {
    let desk = Desk::new(&["find", "env", "sh", "xargs", "echo"]);
    let loader = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    let loader = loader.into_iter().find(|path| std::path::Path::new(path).exists()).unwrap();
    for script in [
        "find . -maxdepth 0 -exec id \\;".to_owned(),
        "env id".to_owned(),
        "echo id | xargs -n 1 env".to_owned(),
        "sh -c id".to_owned(),
        format!("sh -c '{loader} /usr/bin/id'"),
        "sh -c 'cp /usr/bin/id x; ./x'".to_owned(),
    ] {
        let out = desk.script(&script).unwrap();
        assert!(!out["stdout"].as_str().unwrap().contains("uid="), "{script}: {out}");
        assert_ne!(out["stderr"], "", "{script}: {out}");
    }
}

#[test]
fn a_redirected_file_is_no_way_to_code() {
    let desk = Desk::new(&["sh", "cat", "echo"]);
    std::fs::copy("/usr/bin/id", desk.work().join("evil")).unwrap();
    let loader = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    let loader = loader.into_iter().find(|path| std::path::Path::new(path).exists()).unwrap();
    for script in [
        format!("sh -c '{loader} /proc/self/fd/0' < evil"),
        format!("sh -c '{loader} /dev/stdin' < evil"),
        format!("sh -c 'cat evil; {loader} /proc/self/fd/1 >&2' > copy"),
        format!("sh -c '{loader} /proc/self/fd/1 >&2' >> evil"),
        format!("sh -c '{loader} ./evil'"),
    ] {
        // Some of them wait for themselves to say something.
        let out = desk.call(json!({ "cmd": script, "timeout_ms": 2_000 })).unwrap();
        let said = format!("{}{}", out["stdout"], out["stderr"]);
        assert!(!said.contains("uid="), "{script}: {out}");
        assert_ne!(out["exit_code"], 0, "{script}: {out}");
    }
}
