//! `--secret`, and arguments of `secret`.

use clap::{Args, Subcommand};

use super::AnswerFormat;
#[cfg(target_os = "linux")]
pub use bailiwick_broker::NamedSource;

/// Elsewhere nothing brokers a secret, so nothing reads the text.
#[cfg(not(target_os = "linux"))]
pub type NamedSource = String;

/// Where the values of secrets come from.
#[derive(Debug, Clone, Default, Args)]
pub struct SecretOptions {
    /// Take the value of a secret from `env:VARIABLE`, `file:/path`, `cmd:PROGRAM ARGUMENTS`, `keyring:SERVICE/USER` or
    /// `systemd:NAME`; may be repeated. Never the value itself.
    #[arg(long = "secret", value_name = "NAME=SOURCE")]
    pub secrets: Vec<NamedSource>,
}

/// Arguments of `secret`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick secret list
  bailiwick secret check --secret GITHUB_TOKEN='cmd:gh auth token'
  bailiwick secret check --format json

Sources are those of `--secret` and of `[secrets]` in config.toml. No value is ever printed.
Exit codes: 0 ok · 1 a source has no usable value · 2 usage · 3 unreadable settings")]
pub struct Secret {
    /// What to do.
    #[command(subcommand)]
    pub command: SecretCommand,
}

/// What to do with secrets.
#[derive(Debug, Subcommand)]
pub enum SecretCommand {
    /// List the secrets whose sources are known, and where they may be used
    List(SecretQuery),
    /// Read each source and say whether it has a usable value, never what it is
    Check(SecretQuery),
    /// Hold the values for another process of this program, whose socket is stdin
    #[command(hide = true)]
    Hold,
}

/// Which secrets, and how to print them.
#[derive(Debug, Args)]
pub struct SecretQuery {
    /// Where the values of secrets come from.
    #[command(flatten)]
    pub options: SecretOptions,
    /// How to print them.
    #[arg(long, value_enum, default_value = "text")]
    pub format: AnswerFormat,
}
