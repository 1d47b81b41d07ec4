//! `bailiwick compile` from outside: the same bytes everywhere, files written whole or not at all, links followed.

use std::os::unix::fs::symlink;
use std::path::Path;

use super::{command, done, run, run_with};

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
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("sandbox");
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

    let elsewhere = folder.path().join("elsewhere");
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
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
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
    assert_eq!((refused.exit, &*refused.out), (4, ""));
    assert!(refused.err.contains("--require net=mediated"), "{}", refused.err);
    assert_eq!(compile(&["--require", "net=mediated"]).exit, 0);
    assert_eq!(compile(&["--require", "net=mediated", "--require", "exec=kernel"]).exit, 4);
}

#[test]
fn words_of_a_command_line_are_quoted_for_a_shell() {
    let manifest = "name = 's'\nversion = '1'\ncommand = 'server'\nargs = ['two words', '$(id)', \"it's\"]\n";
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
