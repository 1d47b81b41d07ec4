//! `--secret NAME=SOURCE`: where the credential of a server that runs elsewhere comes from. Values are read at the start, never
//! from the command line, and nothing shows them.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::facts;

/// The most bytes of a secret.
const MOST: usize = 16 * 1024;

/// The one secret that was given: its name and its value.
///
/// # Errors
/// If its source has none; the source is named, and never what it holds.
pub(super) fn given_secret(secrets: &[String]) -> anyhow::Result<Option<(String, String)>> {
    let Some(first) = secrets.first() else { return Ok(None) };
    anyhow::ensure!(
        secrets.len() == 1,
        "a server that runs elsewhere has one credential: give one `--secret`"
    );
    let (name, source) = first.split_once('=').context("write `--secret NAME=SOURCE`")?;
    let value = read(source).with_context(|| format!("the secret `{name}` is not there"))?;
    let value = value.trim_end_matches(['\n', '\r']).to_owned();
    anyhow::ensure!(
        (1..=MOST).contains(&value.len()),
        "the secret `{name}` is empty, or longer than {MOST} bytes"
    );
    Ok(Some((name.to_owned(), value)))
}

fn read(source: &str) -> anyhow::Result<String> {
    match source.split_once(':') {
        Some(("env", name)) => {
            let value = facts::variable_of_caller(name).with_context(|| format!("`{name}` is not set"))?;
            value.into_string().ok().with_context(|| format!("`{name}` is not text"))
        }
        Some(("file", path)) => {
            std::fs::read_to_string(Path::new(path)).with_context(|| format!("cannot read `{path}`"))
        }
        Some(("cmd", line)) => of_command(line),
        _ => anyhow::bail!("write `env:VARIABLE`, `file:PATH` or `cmd:PROGRAM ARGUMENT…`"),
    }
}

/// What a program prints. No shell reads its line.
fn of_command(line: &str) -> anyhow::Result<String> {
    let words = shlex::split(line).context("its quotes are not closed")?;
    let (program, arguments) = words.split_first().context("there is no program")?;
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start `{program}`"))?;
    anyhow::ensure!(output.status.success(), "`{program}` has failed: {}", output.status);
    String::from_utf8(output.stdout).ok().with_context(|| format!("what `{program}` printed is not text"))
}
