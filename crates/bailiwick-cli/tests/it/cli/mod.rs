//! The built `bailiwick` command, driven as a person or a script would.

mod bounds;
mod codes;
mod commands;
mod companions;
mod compile;
mod export;
mod golden;
mod guard;
mod guard_ways;
mod harm;
mod import;
mod install_undo;
mod levels;
mod log;
mod sarif;
mod scan;
mod schema;
mod state;
mod templates;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What a run did.
struct Ran {
    exit: i32,
    out: String,
    err: String,
}

/// The root of the checkout, from which commands run.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two levels below the root").to_path_buf()
}

/// The command, in a small known environment.
fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bailiwick"));
    command.args(args).current_dir(root()).env_clear();
    command.env("HOME", "/home/user").env("WORKSPACE", "/workspace").stdin(Stdio::null());
    command
}

/// Runs the command from the root of the checkout.
fn run(args: &[&str]) -> Ran {
    done(command(args).output().expect("the command starts"))
}

/// Runs the command with a text on its stdin.
fn run_with(args: &[&str], input: impl Into<Vec<u8>>) -> Ran {
    let input = input.into();
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    // The command may stop reading at its limit.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("the command ends");
    writer.join().expect("the writer ends");
    done(output)
}

fn done(output: Output) -> Ran {
    Ran {
        exit: output.status.code().expect("the command exits by itself"),
        out: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        err: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

/// Runs the command and reads what it prints as JSON.
fn run_json(args: &[&str]) -> serde_json::Value {
    let ran = run(args);
    serde_json::from_str(&ran.out).unwrap_or_else(|fault| panic!("{args:?}: {fault}\n{}{}", ran.out, ran.err))
}
