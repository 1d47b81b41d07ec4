//! The files in `deploy/` are taken by those that they are for, and start what there is.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bailiwick_testkit::skip;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn program(name: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let validators = cache.map(|cache| cache.join("bailiwick/validators/bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = validators.into_iter().chain(std::env::split_paths(&path));
    places.find_map(|directory| Some(directory.join(name)).filter(|file| file.is_file()))
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn kubernetes_takes_the_objects() {
    let Some(validate) = program("kubernetes-validate") else {
        return skip("kubernetes-validate is not installed; scripts/test does it");
    };
    let directory = tempfile::tempdir().unwrap();
    for name in ["hub.yaml", "server.yaml"] {
        let file = deploy().join("kubernetes").join(name);
        let output = Command::new(&validate).arg("--strict").arg(&file).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let broken = directory.path().join(name);
        let text = std::fs::read_to_string(&file).unwrap().replacen("securityContext", "securityContexts", 1);
        std::fs::write(&broken, text).unwrap();
        assert!(
            !Command::new(&validate).arg("--strict").arg(&broken).output().unwrap().status.success(),
            "the check can fail"
        );
    }
}

#[test]
fn systemd_takes_the_units() {
    let Some(analyze) = program("systemd-analyze") else { return skip("systemd-analyze is not installed") };
    let directory = tempfile::tempdir().unwrap();
    // The verifier wants the program to be there.
    let unit = |name: &str, program: &str| {
        let text = std::fs::read_to_string(deploy().join("systemd").join(name)).unwrap();
        text.replace(program, env!("CARGO_BIN_EXE_bailiwick-hub"))
    };
    let text = unit("bailiwick-hub.service", "/usr/bin/bailiwick-hub");
    let verify = |name: &str, text: &str| {
        let file = directory.path().join(name);
        std::fs::write(&file, text).unwrap();
        let output = Command::new(&analyze).args(["verify", "--man=no"]).arg(&file).output().unwrap();
        let ours = said(&output).lines().any(|line| line.contains(name));
        output.status.success() && !ours
    };
    assert!(verify("bailiwick-hub.service", &text));
    assert!(verify("bailiwick-export.service", &unit("bailiwick-export.service", "/usr/bin/bailiwick")));
    assert!(!verify("broken.service", &text.replace("PrivateTmp", "PrivateTmps")), "the check can fail");
}

#[test]
fn the_flags_of_the_files_are_flags_of_the_program() {
    let help = Command::new(env!("CARGO_BIN_EXE_bailiwick-hub")).arg("--help").output().unwrap();
    let help = said(&help);
    for name in ["kubernetes/hub.yaml", "systemd/bailiwick-hub.service", "compose/compose.yaml"] {
        let text = std::fs::read_to_string(deploy().join(name)).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let words =
            lines.flat_map(str::split_whitespace).filter(|word| word.starts_with("--") && *word != "---");
        let flags: Vec<&str> = words.map(|word| word.split('=').next().unwrap()).collect();
        assert!(flags.len() >= 4, "{name}: {flags:?}");
        for flag in flags {
            assert!(help.contains(&format!("{flag} <")), "{name}: {flag} is not in\n{help}");
        }
    }
}
