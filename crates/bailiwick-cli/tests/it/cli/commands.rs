//! What golden files cannot show: files that are written, stdin, colours, pipes.

use std::process::Stdio;

use super::{command, run, run_json, run_with};

const GITHUB: &str = "examples/github.toml";

#[test]
fn a_manifest_may_come_from_stdin() {
    let text = std::fs::read(super::root().join(GITHUB)).unwrap();
    let ran = run_with(&["check", "-"], text.clone());
    assert_eq!((ran.exit, ran.err.as_str()), (0, ""));
    assert!(ran.out.starts_with("ok: <stdin>\n"), "{}", ran.out);
    assert_eq!(run_with(&["diff", GITHUB, "-"], text).exit, 0);
    assert_eq!(run(&["diff", "-", "-"]).exit, 2);
}

#[test]
fn a_snapshot_is_verified_and_compared() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("reviewed.json");
    let stored = path.to_str().unwrap();
    assert_eq!(run(&["snapshot", GITHUB, "--out", stored]).exit, 0);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), run(&["snapshot", GITHUB]).out);

    let checked = run_json(&["check", "--format", "json", stored]);
    assert_eq!(checked["files"][0]["kind"], "snapshot");
    assert_eq!(run(&["snapshot", GITHUB, "--check", stored]).exit, 0);
    assert_eq!(run(&["snapshot", stored, "--check", stored]).exit, 0);
    assert_eq!(run(&["diff", stored, GITHUB]).exit, 0);
    let allowed = run(&["allows", stored, "net:connect:api.github.com:443"]);
    assert_eq!(allowed.exit, 0, "{}", allowed.err);

    let differs = run(&["snapshot", "examples/github-wider.toml", "--check", stored]);
    assert_eq!(differs.exit, 1);
    assert!(differs.out.contains("tool.added.high-risk"), "{}", differs.out);

    let edited = std::fs::read_to_string(&path).unwrap().replace("api.github.com", "api.github.dev");
    std::fs::write(&path, edited).unwrap();
    assert_eq!(run(&["check", stored]).exit, 1);
    let refused = run(&["diff", stored, GITHUB]);
    assert_eq!(refused.exit, 3);
    assert!(refused.err.contains("snapshot-hash"), "{}", refused.err);
    assert_eq!(run(&["snapshot", GITHUB, "--check", GITHUB]).exit, 3, "a manifest is no snapshot");
}

#[test]
fn a_faulty_place_to_write_is_a_fault() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("no/such/directory.json");
    for args in [["snapshot", GITHUB, "--out"], ["init", "--template", "git"]] {
        let ran = run(&[&args[..], &[nowhere.to_str().unwrap()]].concat());
        assert_eq!(ran.exit, 5);
        assert!(ran.err.starts_with("fault: cannot write"), "{}", ran.err);
    }
}

#[test]
fn init_never_overwrites_unless_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("server.toml");
    let file = path.to_str().unwrap();
    assert_eq!(run(&["init", "--name", "mine", file]).exit, 0);
    let first = std::fs::read_to_string(&path).unwrap();
    assert!(first.contains("name = \"mine\"\n"), "{first}");
    let refused = run(&["init", file]);
    assert_eq!(refused.exit, 3);
    assert!(refused.err.contains("--force"), "{}", refused.err);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), first);
    assert_eq!(run(&["init", "--force", file]).exit, 0);
    assert_ne!(std::fs::read_to_string(&path).unwrap(), first);
    assert_eq!(run(&["check", "-q", file]).exit, 0);
}

#[test]
fn init_writes_into_the_current_directory_by_default() {
    let dir = tempfile::tempdir().unwrap();
    let status = command(&["init"]).current_dir(dir.path()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    assert!(dir.path().join("bailiwick.toml").is_file());
}

#[test]
fn the_workspace_is_the_current_directory_unless_something_says_otherwise() {
    let touched = |command: &mut std::process::Command| {
        let output = command.output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    let file = super::root().join("examples/filesystem.toml");
    let args = ["check", file.to_str().unwrap()];
    let here = dir.path().canonicalize().unwrap();
    let out = touched(command(&args).env_remove("WORKSPACE").current_dir(dir.path()));
    assert!(out.contains(&format!("fs:read:{}/**", here.display())), "{out}");
    let out = touched(&mut command(&args));
    assert!(out.contains("fs:read:/workspace/**"), "{out}");
    let out = touched(&mut command(&[&args[..], &["--set", "WORKSPACE=/elsewhere"]].concat()));
    assert!(out.contains("fs:read:/elsewhere/**"), "{out}");
}

#[test]
fn a_bad_value_in_the_environment_is_a_finding_at_the_line_that_uses_it() {
    let output = command(&["check", "examples/filesystem.toml"]).env("WORKSPACE", "../up").output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        out.contains("error[path-variable-value]") && out.contains("examples/filesystem.toml:10:17"),
        "{out}"
    );
}

#[test]
fn colours_only_where_they_are_wanted() {
    let broken = "crates/bailiwick-cli/tests/fixtures/broken.toml";
    assert!(!run(&["check", broken]).out.contains('\u{1b}'));
    assert!(run(&["check", "--color", "always", broken]).out.contains('\u{1b}'));
    assert!(!run(&["--color=never", "check", broken]).out.contains('\u{1b}'));
    for format in ["json", "sarif"] {
        assert!(!run(&["check", "--color", "always", "--format", format, broken]).out.contains('\u{1b}'));
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for (args, exit) in
        [(&["schema"][..], 0), (&["check", "crates/bailiwick-cli/tests/fixtures/broken.toml"][..], 1)]
    {
        let mut child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(exit), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

#[test]
fn usage_errors_exit_with_2() {
    for args in [
        &[][..],
        &["chek", GITHUB],
        &["check"],
        &["check", "--frmat", "json", GITHUB],
        &["diff", GITHUB],
        &["diff", "--format", "yaml", GITHUB, GITHUB],
        &["snapshot", GITHUB, "--out", "a", "--check", "b"],
        &["completions", "tcsh"],
        &["allows", GITHUB],
        &["check", "--set", "lower=/x", GITHUB],
        &["check", "--set", "NAME", GITHUB],
    ] {
        let ran = run(args);
        assert_eq!(ran.exit, 2, "{args:?}\n{}{}", ran.out, ran.err);
        assert!(!ran.err.is_empty());
    }
    assert_eq!(run(&["--version"]).exit, 0);
}

#[test]
fn a_malformed_capability_is_a_usage_error_in_every_command() {
    for wrong in ["exec:swan:x", "fs:read", "net:connect:a b", "", "fs:read:$NOWHERE/x"] {
        for before in [&["run"][..], &["run", "--manifest", GITHUB], &["serve"], &["serve", "--explain"]] {
            let after: &[&str] = if before[0] == "run" { &["--", "/bin/true"] } else { &[] };
            let ran = run(&[before, &["--cap", wrong], after].concat());
            assert_eq!((ran.exit, ran.out.as_str()), (2, ""), "{before:?} `{wrong}`: {}", ran.err);
            assert!(ran.err.contains("--cap"), "{before:?} `{wrong}`: {}", ran.err);
        }
    }
    assert_eq!(run(&["allows", GITHUB, "exec:swan:x"]).exit, 2);
}

#[test]
fn a_difference_names_what_it_is_an_example_of() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = |name: &str, line: &str| {
        let path = dir.path().join(name);
        let line = if line.is_empty() { String::new() } else { format!("'{line}'") };
        std::fs::write(&path, format!("name = 's'\nversion = '1'\nserver_capabilities = [{line}]\n"))
            .unwrap();
        path.to_str().unwrap().to_owned()
    };
    for (base, new, reached) in [
        ("net:connect:other0:443", "net:connect:*", "any other host\n"),
        ("", "net:connect:*", "any other host\n"),
        ("net:connect:a.test:443", "net:connect:*:443", "any other host on port 443\n"),
        ("net:connect:a.test:443", "net:connect:*:8000-8999", "any other host on ports 8000-8999\n"),
        ("net:connect:a.b.test:443", "net:connect:*.b.test:443", "any other host below b.test on port 443\n"),
        ("net:connect:a.test:443", "net:connect:a.test:1-443", "a.test on ports 1-442\n"),
        ("net:connect:a.test:443", "net:connect:b.test:443", "b.test:443\n"),
        ("", "net:connect:10.0.0.0/8:443", "10.0.0.0:443\n"),
        (
            "net:connect:a.test:443",
            "net:https:GET@https://*/x/**",
            "any other host on port 443 with GET https:/x\n",
        ),
    ] {
        let ran = run(&["diff", &manifest("base.toml", base), &manifest("new.toml", new)]);
        let expected = format!("the server may now reach {reached}");
        assert!(ran.exit == 1 && ran.out.contains(&expected), "{base} {new}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = run(&["completions", shell]);
        assert_eq!(ran.exit, 0);
        assert!(ran.out.contains("bailiwick") && ran.out.contains("snapshot"), "{shell}");
    }
}

#[test]
fn unreadable_and_wrong_together_exit_with_the_graver_code() {
    let broken = "crates/bailiwick-cli/tests/fixtures/broken.toml";
    assert_eq!(run(&["check", "examples", broken]).exit, 3);
    let report = run_json(&["check", "--format", "json", "nowhere.toml", broken, GITHUB]);
    let ok: Vec<_> = report["files"].as_array().unwrap().iter().map(|file| file["ok"].clone()).collect();
    assert_eq!(ok, [false, false, true]);
}

#[test]
fn only_tightening_refuses_what_was_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let base =
        write("base.toml", "name = \"a\"\nversion = \"1\"\n[[tools]]\nname = \"t\"\ncapabilities = []\n");
    let new = write(
        "new.toml",
        "name = \"a\"\nversion = \"1\"\n[[tools]]\nname = \"t\"\ncapabilities = [\"fs:read:/srv\"]\n",
    );
    let accept = write(
        "accept.toml",
        "[[accept]]\ncode = \"tool.filesystem.read.widened\"\ntool = \"t\"\nreason = \"seen\"\nexpires = \"2099-01-01\"\n",
    );
    assert_eq!(run(&["diff", &base, &new]).exit, 1);
    assert_eq!(run(&["diff", "--accept", &accept, &base, &new]).exit, 0);
    let refused = run(&["diff", "--accept", &accept, "--tighten-only", &base, &new]);
    assert_eq!(refused.exit, 1);
    assert!(refused.out.contains("refused: wider than before"), "{}", refused.out);
}

#[test]
fn a_denial_says_when_only_the_path_itself_is_allowed() {
    let text = "name = \"a\"\nversion = \"1\"\nserver_capabilities = [\"fs:read:/srv/*.txt\"]\n";
    let ran = run_with(&["allows", "-", "fs:read:/srv/a.txt"], text);
    assert_eq!(ran.exit, 1);
    assert!(ran.out.contains("the path itself is allowed"), "{}", ran.out);
    let ran = run_with(&["allows", "-", "fs:read,write:/srv/a.txt"], text);
    assert!(!ran.out.contains("the path itself is allowed"), "{}", ran.out);
    assert_eq!(run_with(&["allows", "-", "fs:read:/srv/[ab].txt"], text).exit, 0);
}

#[test]
fn a_line_behind_a_policy_is_granted_by_no_command() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = |name: &str, hosts: &str| {
        let path = dir.path().join(name);
        let text = format!(
            "name = 's'\nversion = '1'\n[[tools]]\nname = 't'\ncapabilities = [{hosts}]\npolicy.network = ['a.test:443']\n"
        );
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let base = manifest("base.toml", "'net:connect:a.test:443'");
    let new = manifest("new.toml", "'net:connect:a.test:443', 'net:connect:b.test:443'");
    let checked = run(&["check", &new]);
    assert_eq!((run(&["check", &base]).exit, checked.exit), (0, 1));
    assert!(checked.out.contains("capability-beyond-policy"), "{}", checked.out);
    for tool in [&[][..], &["--tool", "t"][..]] {
        let allows = |host: &str| run(&[&["allows", &new, host][..], tool].concat()).exit;
        assert_eq!((allows("net:connect:a.test:443"), allows("net:connect:b.test:443")), (0, 1), "{tool:?}");
    }
    for more in [&[][..], &["--tighten-only"][..]] {
        let diff = run(&[&["diff", &base, &new][..], more].concat());
        assert_eq!(diff.exit, 1, "{}", diff.out);
        assert!(diff.out.contains("capability-beyond-policy  tool t"), "{}", diff.out);
        assert!(diff.out.contains("+ net:connect:b.test:443"), "{}", diff.out);
    }
    let compiled = run_json(&["compile", &new, "--target", "docker"]);
    let hosts = compiled["egress"].as_array().unwrap();
    assert!(hosts.len() == 1 && hosts[0]["host"] == "a.test", "{hosts:?}");
}
