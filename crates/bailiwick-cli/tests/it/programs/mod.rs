//! Real programs with the grants they need, run as root and as a plain user. `docs/programs.md` is printed from the rows.

mod rows;
pub(crate) mod services;
mod stage;
mod tools;

use std::path::Path;

use bailiwick_testkit::skip;

use crate::escape::User;
use rows::{Row, rows};
use stage::{Host, Stage};

/// Programs that refuse to be run by root by themselves.
const NOT_AS_ROOT: [&str; 2] = ["chromium", "chromium, the whole browser in its own sandbox"];

/// Everyone who runs them here.
fn users() -> &'static [User] {
    if rustix::process::getuid().is_root() { &[User::Root, User::Plain] } else { &[User::Caller] }
}

/// The rows whose programs this host has.
fn installed() -> Vec<Row> {
    let (here, missing): (Vec<Row>, Vec<Row>) = rows().into_iter().partition(Row::is_installed);
    let mut missing: Vec<&str> = missing.iter().map(|row| row.missing()).collect();
    missing.dedup();
    if !missing.is_empty() {
        skip(&format!("not installed here: {}", missing.join(", ")));
    }
    here
}

#[test]
fn real_programs_run_with_the_grants_of_the_table() {
    let (mut wrong, mut tried) = (Vec::new(), 0);
    let host = Host::default();
    for user in users() {
        let stage = Stage::new(&host, *user);
        for row in &installed() {
            if *user == User::Root && NOT_AS_ROOT.contains(&row.program) {
                continue;
            }
            tried += 1;
            let ran = stage.run(row, &row.grants);
            if !ran.succeeded {
                wrong.push(format!("{} as {user:?}: {:?}\n{}", row.program, ran.code, ran.text));
            }
        }
    }
    assert!(tried > 40, "{tried} tried");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}

/// How often what a run says is granted.
const ROUNDS: usize = 2;
/// The ordinary run follows the hints of one row in so many.
const SLICE: usize = 6;

#[test]
fn hints_lead_from_nothing_to_every_row_in_two_rounds() {
    let user = if rustix::process::getuid().is_root() { User::Plain } else { User::Caller };
    let host = Host::default();
    let stage = Stage::new(&host, user);
    let is_full = std::env::var_os("BAILIWICK_REQUIRE").is_some_and(|value| value == "all");
    let step = if is_full { 1 } else { SLICE };
    let mut stuck = Vec::new();
    for row in installed().iter().step_by(step) {
        match follow(&stage, row) {
            Err(why) if row.unhinted.is_none() => stuck.push(format!("{}: {why}", row.program)),
            Ok(()) if row.unhinted.is_some() => stuck.push(format!("{}: hints do lead there", row.program)),
            Ok(()) | Err(_) => {}
        }
    }
    assert!(stuck.is_empty(), "{}:\n{}", stuck.len(), stuck.join("\n"));
}

/// Grants just what each run says, as it is written, until the row works.
fn follow(stage: &Stage<'_>, row: &Row) -> Result<(), String> {
    let (mut grants, mut rounds, mut options): (Vec<String>, usize, &[&str]) = (Vec::new(), 0, &[]);
    loop {
        let ran = stage.run_with(row, options, &grants);
        if ran.succeeded {
            return Ok(());
        }
        let hinted = hints(&ran.text).filter(|hint| !grants.contains(hint)).collect::<Vec<_>>();
        // A run that fails says so; one that ends well and did nothing says nothing.
        let leads_on = ran.code == Some(0) || ran.text.contains("run it again with `--tell`");
        if hinted.is_empty() && options.is_empty() && leads_on {
            options = &["--tell"]; // grants nothing, so it is no round
            continue;
        }
        if hinted.is_empty() || rounds == ROUNDS {
            return Err(format!("after {rounds} rounds with {grants:?}: {:?}\n{}", ran.code, ran.text));
        }
        rounds += 1;
        grants.extend(hinted);
    }
}

/// The grants that a run names.
fn hints(text: &str) -> impl Iterator<Item = String> {
    let after = text.lines().filter_map(|line| line.split_once("add --cap "));
    after.map(|(_, grant)| grant.trim_end().trim_matches('\'').to_owned())
}

#[test]
fn no_grant_of_the_table_is_wider_than_needed() {
    if std::env::var_os("BAILIWICK_REQUIRE").is_none_or(|value| value != "all") {
        return eprintln!("skipped: only with BAILIWICK_REQUIRE=all, as in scripts/test --full");
    }
    let mut needless = Vec::new();
    let user = if rustix::process::getuid().is_root() { User::Plain } else { User::Caller };
    let host = Host::default();
    let stage = Stage::new(&host, user);
    for row in installed() {
        for (at, grant) in row.grants.iter().enumerate() {
            let mut others = row.grants.clone();
            others.remove(at);
            if stage.run(&row, &others).succeeded {
                needless.push(format!("{}: {grant}", row.program));
            }
        }
    }
    assert!(needless.is_empty(), "works without:\n{}", needless.join("\n"));
}

#[test]
fn cargo_builds_through_the_proxy_of_rustup() {
    let proxy = std::env::var_os("CARGO_HOME")
        .map(std::path::PathBuf::from)
        .or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")))
        .map(|own| own.join("bin"))
        .filter(|bin| bin.join("rustup").exists() && bin.join("cargo").exists());
    let Some(proxy) = proxy else { return skip("no rustup here") };
    let host = Host::default();
    let stage = Stage::new(&host, User::Caller);
    let manifest = "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    std::fs::create_dir(stage.path("out/src")).unwrap();
    std::fs::write(stage.path("out/Cargo.toml"), manifest).unwrap();
    std::fs::write(stage.path("out/src/main.rs"), "fn main() { println!(\"hi\"); }\n").unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bailiwick"));
    command.arg("run").args(["--cap", &stage.fill("fs:read,write:{out}"), "--cap", "exec:spawn:cc"]);
    command.args(["--", "cargo", "build", "--offline"]).current_dir(stage.path("out"));
    // The tests' own toolchain is in the environment; rustup decides here.
    for name in ["CARGO", "RUSTUP_TOOLCHAIN", "CARGO_TARGET_DIR"] {
        command.env_remove(name);
    }
    command.env("PATH", format!("{}:/usr/bin:/bin", proxy.display()));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let built = std::process::Command::new(stage.path("out/target/debug/demo")).output().unwrap();
    assert_eq!(built.stdout, b"hi\n");
}

#[test]
fn the_page_is_printed_from_the_rows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/programs.md");
    let text = rows::page();
    assert!(rows().len() >= 45, "{} rows", rows().len());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "UPDATE_GOLDEN=1 prints it anew");
}
