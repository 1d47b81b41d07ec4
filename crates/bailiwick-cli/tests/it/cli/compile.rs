//! `bailiwick compile` from outside: the same bytes everywhere, files written whole or not at all, links followed.

use std::os::unix::fs::symlink;
use std::path::Path;

use super::{command, done, run, run_json, run_with};

const GITHUB: &str = "examples/github.toml";
const SET: [&str; 2] = ["--set", "WORKSPACE=/workspace"];

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}

#[test]
fn the_same_manifest_gives_the_same_bytes_in_every_locale_and_time_zone() {
    let targets =
        ["bwrap", "docker", "oci", "kubernetes", "systemd", "firejail", "seatbelt", "landlock", "worker"];
    let lax = ["--require", "fs=unsupported", "--require", "net=unsupported"];
    let mut compared = 0;
    for target in targets {
        let args = [&["compile", GITHUB, "--target", target, "--egress", "envoy"][..], &SET, &lax].concat();
        let settings = [
            ("C", "UTC", "/a"),
            ("de_DE.UTF-8", "Asia/Tokyo", "/b"),
            ("tr_TR.UTF-8", "America/New_York", "/c"),
        ];
        let mut all: Vec<_> = settings
            .into_iter()
            .map(|(locale, zone, home)| {
                let mut command = command(&args);
                command.env("LC_ALL", locale).env("LANG", locale).env("TZ", zone);
                command.env("HOME", home).env("WORKSPACE", home).env("PATH", home);
                done(command.output().unwrap())
            })
            .map(|ran| (ran.exit, ran.out, ran.err))
            .collect();
        let first = all.remove(0);
        assert!(all.iter().all(|other| *other == first), "{target}");
        compared += usize::from(first.0 == 0);
    }
    assert!(compared >= 5, "only {compared} targets compile");
}

#[test]
fn a_manifest_comes_from_stdin_too() {
    let manifest = std::fs::read_to_string(super::root().join(GITHUB)).unwrap();
    let args = |file| [&["compile", file, "--target", "systemd", "--format", "native"][..], &SET].concat();
    let piped = run_with(&args("-"), manifest);
    assert_eq!(piped.exit, 0, "{}", piped.err);
    assert_eq!(piped.out, run(&args(GITHUB)).out);
}

#[test]
fn files_are_written_all_or_none_and_links_are_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("sandbox");
    let to = out.to_str().unwrap();
    let args =
        [&["compile", GITHUB, "--target", "systemd", "--egress", "squid", "--out", to][..], &SET].concat();
    let ran = run(&args);
    assert_eq!(ran.exit, 0, "{}", ran.err);
    let unit = text(&out.join("unit.service"));
    assert!(
        unit.contains("[Service]") && text(&out.join("squid.conf")).contains("dstdomain -n api.github.com")
    );
    let artifact: serde_json::Value = serde_json::from_str(&text(&out.join("artifact.json"))).unwrap();
    assert_eq!(artifact["files"]["unit.service"], *unit);

    let elsewhere = directory.path().join("elsewhere");
    std::fs::write(&elsewhere, "mine").unwrap();
    std::fs::remove_file(out.join("unit.service")).unwrap();
    std::fs::remove_file(out.join("artifact.json")).unwrap();
    symlink(&elsewhere, out.join("squid.conf.new")).unwrap();
    std::fs::remove_file(out.join("squid.conf")).unwrap();
    symlink(&elsewhere, out.join("squid.conf")).unwrap();
    let ran = run(&args);
    assert_eq!(ran.exit, 3, "{}", ran.out);
    assert!(ran.err.contains("squid.conf already"), "{}", ran.err);
    assert!(!out.join("unit.service").exists(), "none is written");

    let ran = run(&[&args[..], &["--force"]].concat());
    assert_eq!(ran.exit, 0, "{}", ran.err);
    assert_eq!(text(&elsewhere), "mine", "the link is replaced, not followed");
    assert!(text(&out.join("squid.conf")).contains("http_access deny all"));
}

#[test]
fn links_are_followed_where_this_host_is_asked_and_only_there() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    std::fs::create_dir_all(base.join("real/data")).unwrap();
    symlink(base.join("real"), base.join("link")).unwrap();
    symlink(base.join("nowhere"), base.join("dangling")).unwrap();
    let manifest = |path: &str| {
        let path = base.join(path);
        let (name, text) = (base.join("m.toml"), path.display());
        std::fs::write(
            &name,
            format!(
                "name = 's'\nversion = '1'\ncommand = 'server'\nserver_capabilities = ['fs:read:{text}']\n"
            ),
        )
        .unwrap();
        name.to_str().unwrap().to_owned()
    };
    let native = |file: &str, more: &[&str]| {
        run(&[&["compile", file, "--target", "systemd", "--format", "native"][..], more].concat())
    };
    let file = manifest("link/data");
    let (asked, link) =
        (base.join("real/data").display().to_string(), base.join("link/data").display().to_string());
    assert!(native(&file, &["--here"]).out.contains(&format!("BindReadOnlyPaths={asked}:{link}\n")));
    assert!(native(&file, &[]).out.contains(&format!("BindReadOnlyPaths={link}:{link}\n")));
    let missing = native(&manifest("real/absent"), &["--here"]);
    assert_eq!((missing.exit, missing.out.contains("absent")), (0, false), "{}", missing.err);
    let dangling = native(&manifest("dangling"), &["--here"]);
    assert_eq!(dangling.exit, 5, "{}", dangling.out);
    assert!(dangling.err.contains("dangling"), "{}", dangling.err);
}

#[test]
fn a_floor_refuses_and_says_what_would_be_enough() {
    let compile = |more: &[&str]| {
        run(&[&["compile", "examples/filesystem.toml", "--target", "kubernetes"][..], &SET, more].concat())
    };
    let refused = compile(&[]);
    assert!(refused.exit == 4 && refused.out.contains("ADAPTER_UNSUPPORTED"), "{}", refused.out);
    assert!(refused.err.contains("--require net=mediated"), "{}", refused.err);
    assert_eq!(compile(&["--require", "net=mediated"]).exit, 0);
    assert_eq!(compile(&["--require", "net=mediated", "--require", "exec=kernel"]).exit, 4);
}

#[test]
fn words_of_a_command_line_are_quoted_for_a_shell() {
    let manifest = "name = 's'\nversion = '1'\ncommand = 'server'\nargs = ['two words', '$(id)', \"it's\"]\n\
                    server_capabilities = ['fs:read:/srv']\n";
    let args = ["compile", "-", "--target", "seatbelt", "--format", "argv"];
    let ran = run_with(&args, manifest);
    assert_eq!(ran.exit, 0, "{}", ran.err);
    let shell = std::process::Command::new("sh")
        .args(["-c", &format!("printf '%s\\n' {}", ran.out.trim_end())])
        .output()
        .unwrap();
    let words = String::from_utf8(shell.stdout).unwrap();
    assert!(words.ends_with("server\ntwo words\n$(id)\nit's\n"), "{words}");
}

#[test]
fn a_coverage_fits_a_hundred_columns_and_has_colours_on_a_terminal_only() {
    let ran = run(&[&["coverage", GITHUB][..], &SET].concat());
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    assert!(!ran.out.contains('\u{1b}'));
    let coloured = run(&[&["--color", "always", "coverage", GITHUB][..], &SET].concat());
    assert!(coloured.out.contains('\u{1b}'));
}

/// A manifest with these lines, written to a directory.
fn manifest_of(directory: &Path, lines: &str) -> String {
    let path = directory.join("m.toml");
    let text = "name = 's'\nversion = '1'\ncommand = 'sh'\nargs = ['-c', 'cat \"$0\"; echo more >>\"$0\"']\n";
    std::fs::write(&path, format!("{text}server_capabilities = [{lines}]\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn compiled_bwrap_lines_start_for_a_single_file_asked_or_not() {
    if !Path::new("/usr/bin/bwrap").exists() {
        return bailiwick_testkit::skip("bwrap is not installed");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("db.sqlite");
    let manifest = manifest_of(directory.path(), &format!("'fs:read,write:{}'", file.display()));
    for here in [&["--here"][..], &[]] {
        std::fs::write(&file, "text\n").unwrap();
        let ran = run(&[&["compile", &manifest, "--target", "bwrap", "--format", "argv"][..], here].concat());
        assert_eq!(ran.exit, 0, "{}", ran.err);
        let line = format!("{} {}", ran.out.trim_end(), file.display());
        let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        assert!(output.status.success(), "{here:?}: {output:?}");
        assert_eq!(text(&file), "text\nmore\n", "{here:?}");
    }
}

#[test]
fn a_command_line_says_on_stderr_which_variables_it_lacks() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = manifest_of(directory.path(), "'env:read:MODE', 'env:inject:TOKEN'");
    for format in ["argv", "flags"] {
        for target in ["bwrap", "docker"] {
            let ran = run(&["compile", &manifest, "--target", target, "--format", format]);
            assert_eq!(ran.exit, 0, "{}", ran.err);
            let said = ran.err.lines().any(|line| line.starts_with("note: set MODE, TOKEN when starting it"));
            assert!(said, "{target} {format}: {}", ran.err);
        }
    }
}

#[test]
fn flags_are_an_array_that_a_program_and_a_command_are_put_around() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = manifest_of(directory.path(), "'fs:read:/srv'");
    for (target, program, end) in [("bwrap", &["bwrap"][..], "--"), ("docker", &["docker", "run"], "IMAGE")] {
        let flags = run_json(&["compile", &manifest, "--target", target, "--format", "flags"]);
        let argv = run_json(&["compile", &manifest, "--target", target])["argv"].clone();
        let words =
            |value: &serde_json::Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
        let command = ["sh", "-c", "cat \"$0\"; echo more >>\"$0\""].map(str::to_owned);
        let whole = [
            program.iter().map(|word| (*word).to_owned()).collect(),
            words(&flags),
            vec![end.to_owned()],
            command.to_vec(),
        ];
        assert_eq!(whole.concat(), words(&argv), "{target}");
        assert!(words(&flags)[0].starts_with("--"), "{flags}");
    }
    let refused = run(&["compile", &manifest, "--target", "systemd", "--format", "flags"]);
    assert_eq!((refused.exit, &*refused.out), (2, ""));
    assert!(refused.err.contains("is for bwrap and docker"), "{}", refused.err);
}

#[test]
fn findings_exit_with_four_and_their_codes_are_in_json() {
    let failure = |manifest: &str, target: &str, exit: i32| {
        let ran = run_with(&["compile", "-", "--target", target], manifest);
        assert_eq!(ran.exit, exit, "{manifest}: {}", ran.err);
        assert!(!ran.err.is_empty(), "a person is told too");
        let value: serde_json::Value =
            serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}", ran.out));
        assert_eq!(value["format"], "bailiwick.compile-failure/1");
        let of = |key: &str| value["findings"][0][key].as_str().unwrap_or_default().to_owned();
        (of("code"), of("alias"))
    };
    let pair = |code: &str, alias: &str| (code.to_owned(), alias.to_owned());
    let with = |line: &str| format!("name = 's'\nversion = '1'\nserver_capabilities = ['{line}']\n");
    assert_eq!(failure(&with("fz:read:/x"), "bwrap", 4), pair("cap-unknown-kind", "CAP_UNKNOWN_KIND"));
    assert_eq!(failure(&with("fs:reed:/x"), "bwrap", 4), pair("cap-action-unknown", "CAP_ACTION_UNKNOWN"));
    assert_eq!(failure("version = '1'\n", "bwrap", 4), pair("manifest-shape", "MANIFEST_SHAPE"));
    assert_eq!(failure(&with("fs:read:/**"), "docker", 4), pair("target-unsupported", "ADAPTER_UNSUPPORTED"));
    assert_eq!(failure("name = \n", "bwrap", 3), pair("source-syntax", ""));
    let other = run_with(&["compile", "-", "--target", "bwrap", "--format", "argv"], with("fz:read:/x"));
    assert_eq!((other.exit, &*other.out), (4, ""), "nobody takes findings for a command line");
}

#[test]
fn a_manifest_that_declares_nothing_is_a_finding() {
    let nothing = "name = 's'\nversion = '1'\ncommand = 'server'\n";
    let empty = format!("{nothing}server_capabilities = []\n");
    for manifest in [nothing, &empty] {
        let ran = run_with(&["compile", "-", "--target", "bwrap"], manifest);
        assert_eq!(ran.exit, 4, "{}", ran.out);
        assert!(
            ran.out.contains("MANIFEST_SHAPE") && ran.err.contains("no tools and no server capabilities")
        );
    }
    let tool = format!("{nothing}[[tools]]\nname = 't'\ncapabilities = []\n");
    assert_eq!(
        run_with(&["compile", "-", "--target", "bwrap"], tool).exit,
        0,
        "a tool that needs nothing is one"
    );
}

#[test]
fn a_writable_root_of_a_container_has_to_be_asked_for_and_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = manifest_of(directory.path(), "'net:connect:a.example:443'");
    let compiled =
        |more: &[&str]| run_json(&[&["compile", &manifest, "--target", "docker"][..], more].concat());
    let of = |artifact: &serde_json::Value| {
        let compose: serde_json::Value =
            serde_json::from_str(artifact["files"]["compose.yaml"].as_str().unwrap()).unwrap();
        let in_argv = artifact["argv"].as_array().unwrap().contains(&"--read-only".into());
        let told = artifact["coverage"]["fs"]["why"].as_str().unwrap().contains("and changed in a layer");
        (in_argv, compose["services"]["server"]["read_only"] == true, told)
    };
    assert_eq!(of(&compiled(&[])), (true, true, false));
    assert_eq!(of(&compiled(&["--read-only-rootfs=true"])), (true, true, false));
    assert_eq!(of(&compiled(&["--read-only-rootfs=false"])), (false, false, true));
    let other = run(&["compile", &manifest, "--target", "bwrap", "--read-only-rootfs=false"]);
    assert_eq!((other.exit, &*other.out), (2, ""), "{}", other.err);
}

#[test]
fn the_coverage_of_the_own_sandbox_is_the_first_row() {
    let args = [&["coverage", GITHUB][..], &SET].concat();
    let rows: Vec<String> = run(&args).out.lines().skip(3).take(2).map(str::to_owned).collect();
    assert!(rows[0].starts_with("native ") && rows[1].starts_with("bwrap "), "{rows:?}");
    let document = run_json(&[&args[..], &["--format", "json"]].concat());
    let level = |axis: &str| document["targets"]["native"]["coverage"][axis]["level"].clone();
    assert_eq!(
        (level("fs"), level("net"), level("process")),
        ("kernel".into(), "mediated".into(), "kernel".into())
    );
    assert_eq!(document["targets"]["native"]["refused"], serde_json::Value::Null);
    let markdown = run(&[&args[..], &["--format", "markdown"]].concat()).out;
    assert!(markdown.contains("\n| native | kernel"), "{markdown}");
}
