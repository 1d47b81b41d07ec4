//! What is emitted for every case, read by the program it is for. A program that is not here is said to be missing.

mod gateways;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bailiwick_testkit::skip;

use crate::golden::produced;

/// Where `scripts/test` puts the validators that come from PyPI.
fn validator(name: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("bailiwick/validators/bin").join(name))
        .filter(|path| path.is_file())
        .or_else(|| program(name))
}

/// A program of the system.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    directories.map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// What is emitted under a name, each in a file of a directory that ends with this value.
struct Files {
    _directory: tempfile::TempDir,
    paths: Vec<(String, PathBuf)>,
}

impl std::ops::Deref for Files {
    type Target = [(String, PathBuf)];

    fn deref(&self) -> &Self::Target {
        &self.paths
    }
}

fn files(name: &str) -> Files {
    let directory = tempfile::tempdir().unwrap();
    let written = |(case, text): (String, String)| {
        let path = directory.path().join(format!("{case}-{name}"));
        std::fs::write(&path, text).unwrap();
        (case, path)
    };
    let paths = produced(name).into_iter().map(written).collect();
    Files { _directory: directory, paths }
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

#[test]
fn systemd_reads_every_unit_without_a_word() {
    let Some(analyze) = program("systemd-analyze") else { return skip("systemd-analyze is not installed") };
    let directory = tempfile::tempdir().unwrap();
    let mut units = Vec::new();
    for (case, text) in produced("unit.service") {
        // the verifier wants the command to be there; what is started is not its business here
        let lines = text.lines().map(|line| match line.strip_prefix("ExecStart=:") {
            Some(rest) => format!("ExecStart=:/bin/true {rest}\n"),
            None => format!("{line}\n"),
        });
        let unit = directory.path().join(format!("{case}.service"));
        std::fs::write(&unit, lines.collect::<String>()).unwrap();
        units.push(unit);
    }
    assert!(units.len() > 15, "{units:?}");
    let output = Command::new(analyze).args(["verify", "--man=no"]).args(&units).output().unwrap();
    let ours =
        said(&output).lines().filter(|line| line.contains(&*directory.path().to_string_lossy())).count();
    assert!(output.status.success() && ours == 0, "{}", said(&output));
    let broken = directory.path().join("broken.service");
    std::fs::write(&broken, "[Service]\nExecStart=:/bin/true\nPrivateNetworks=yes\n").unwrap();
    let output =
        Command::new(program("systemd-analyze").unwrap()).args(["verify", "--man=no"]).arg(broken).output();
    assert!(said(&output.unwrap()).contains("PrivateNetworks"), "the check can fail");
}

#[test]
fn nft_takes_every_ruleset() {
    let Some(nft) = program("nft") else { return skip("nft is not installed") };
    let all: String = produced("egress.nft").into_iter().map(|(_, text)| text).collect();
    assert!(all.matches("policy drop").count() > 15, "{all}");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("all.nft");
    std::fs::write(&file, &all).unwrap();
    // in a network namespace of its own, so that a plain user may ask too
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net"])
        .arg(&nft)
        .args(["-c", "-f"])
        .arg(&file)
        .output();
    let output = output.expect("unshare starts");
    if said(&output).contains("unshare") {
        return skip("no user namespace can be made here");
    }
    assert!(output.status.success(), "{}", said(&output));
    std::fs::write(&file, all.replacen("policy drop", "policy dropp", 1)).unwrap();
    let broken = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net"])
        .arg(&nft)
        .args(["-c", "-f"])
        .arg(&file)
        .output();
    assert!(!broken.unwrap().status.success(), "the check can fail");
}

#[test]
fn squid_takes_every_configuration() {
    let Some(squid) = program("squid") else { return skip("squid is not installed") };
    let configurations = files("squid.conf");
    assert!(configurations.len() > 15);
    for (case, path) in configurations.iter() {
        let output = Command::new(&squid).args(["-k", "parse", "-f"]).arg(path).output().unwrap();
        let said = said(&output);
        let complains = ["FATAL", "ERROR", "WARNING", "Bungled"].iter().any(|word| said.contains(word));
        assert!(output.status.success() && !complains, "{case}: {said}");
    }
}

#[test]
fn kubernetes_objects_fit_the_published_schemas() {
    let Some(validate) = validator("kubernetes-validate") else {
        return skip("kubernetes-validate is not installed; scripts/test does it");
    };
    let pods = files("pod.yaml");
    let files: Vec<&PathBuf> = pods.iter().map(|(_, path)| path).collect();
    assert!(files.len() > 15);
    let output = Command::new(&validate).arg("--strict").args(&files).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let directory = tempfile::tempdir().unwrap();
    let broken = std::fs::read_to_string(files[0]).unwrap().replacen("restartPolicy", "restartPolicies", 1);
    let file = directory.path().join("pod.yaml");
    std::fs::write(&file, broken).unwrap();
    let output = Command::new(&validate).arg("--strict").arg(&file).output().unwrap();
    assert!(!output.status.success(), "the check can fail");
}

#[test]
fn envoy_takes_every_bootstrap() {
    let Some(envoy) = validator("envoy") else { return skip("envoy is not installed; scripts/test does it") };
    let accepts = |path: &Path| {
        let mut command = Command::new(&envoy);
        command.args(["--mode", "validate", "--log-level", "error", "--concurrency", "1", "-c"]);
        command.arg(path).output().unwrap()
    };
    let mut different = std::collections::BTreeMap::new();
    let bootstraps = files("envoy.yaml");
    for (case, path) in bootstraps.iter() {
        different.insert(std::fs::read_to_string(path).unwrap(), (case, path));
    }
    assert!(different.len() > 5);
    for (case, path) in different.values() {
        let output = accepts(path);
        assert!(output.status.success(), "{case}: {}", said(&output));
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("envoy.yaml");
    let (text, _) = different.first_key_value().unwrap();
    std::fs::write(&file, text.replacen("stat_prefix", "stat_prefiks", 1)).unwrap();
    assert!(!accepts(&file).status.success(), "the check can fail");
}
