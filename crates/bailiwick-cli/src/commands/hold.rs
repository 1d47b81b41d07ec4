//! `bailiwick secret hold`: holds the values of secrets for the process that started this one.

use std::os::fd::AsFd as _;

use anyhow::Context as _;
use bailiwick_broker::serve_secrets;
use bailiwick_command::answer::{Answer, Exit};

pub(super) fn run() -> anyhow::Result<Answer> {
    let stdin = std::io::stdin();
    serve_secrets(stdin.as_fd().try_clone_to_owned()?)
        .context("`secret hold` is started by `bailiwick` itself")?;
    Ok(Answer::result(Exit::Fine, String::new()))
}
