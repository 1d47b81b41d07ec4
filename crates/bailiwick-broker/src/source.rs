//! Where the value of a secret comes from: `env:VAR`, `file:PATH`, `cmd:PROGRAM…`, `keyring:SERVICE/USER`, `systemd:NAME`.
//!
//! A source is named by a person, on the command line or in the user's own settings, and never by a manifest: `cmd:`
//! runs a program, and `file:` reads one. Values are read at use. None is ever part of a command line.
//!
//! Fails closed when there is no value, an empty one, one that is too long or one that no variable could hold.

pub(crate) mod own_environment;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::str::FromStr;

use bailiwick_policy::capability::Capability;

use crate::value::{HeldSecret, MAX_SECRET, SecretValue};

/// Where a value comes from.
pub trait SecretSource {
    /// The source as a person writes it. It tells nothing of the value.
    fn describe(&self) -> String;

    /// Reads the value.
    ///
    /// # Errors
    /// Which source was tried, and why it has no value.
    fn fetch(&self) -> Result<HeldSecret, SourceError>;
}

/// A source that a person can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A variable of this process's own environment. Fetching it takes the value out of there.
    Env(String),
    /// The contents of a file.
    File(PathBuf),
    /// What a program prints.
    Command(Vec<String>),
    /// An entry of the desktop's keyring, by `secret-tool`.
    Keyring {
        /// The attribute `service`.
        service: String,
        /// The attribute `username`.
        user: String,
    },
    /// A credential that systemd gave this process.
    Systemd(String),
}

/// `NAME=SOURCE`: a secret and where its value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSource {
    /// The variable.
    pub name: String,
    /// Its source.
    pub source: Source,
}

/// A text that is no source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceText(String);

/// Why a source has no value.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It cannot be read.
    #[error("`{tried}` was tried: {why}")]
    Unread {
        /// The source.
        tried: String,
        /// What happened.
        why: String,
    },
    /// It is empty.
    #[error("`{tried}` was tried: the value is empty")]
    Empty {
        /// The source.
        tried: String,
    },
    /// It is too long.
    #[error("`{tried}` was tried: the value has more than {MAX_SECRET} bytes")]
    TooLong {
        /// The source.
        tried: String,
    },
}

const FORMS: &str =
    "write `env:VARIABLE`, `file:/path`, `cmd:PROGRAM ARGUMENTS`, `keyring:SERVICE/USER` or `systemd:NAME`";

impl FromStr for Source {
    type Err = SourceText;

    fn from_str(text: &str) -> Result<Self, SourceText> {
        let wrong = |why: &str| SourceText(format!("{why}; {FORMS}"));
        // What stands in place of a source may be the value itself, so it is never repeated.
        let (kind, rest) = text.split_once(':').ok_or_else(|| wrong("this names no source of a value"))?;
        if rest.is_empty() || rest.contains('\0') {
            return Err(wrong("the source is empty"));
        }
        match kind {
            "env" if rest.contains('=') => Err(wrong("a variable has no `=` in its name")),
            "env" => Ok(Self::Env(rest.to_owned())),
            "file" => Ok(Self::File(PathBuf::from(rest))),
            "cmd" => match shlex::split(rest).filter(|words| !words.is_empty()) {
                Some(words) => Ok(Self::Command(words)),
                None => Err(wrong("the command cannot be split into words")),
            },
            "keyring" => match rest.split_once('/') {
                Some((service, user)) if !service.is_empty() && !user.is_empty() => {
                    Ok(Self::Keyring { service: service.to_owned(), user: user.to_owned() })
                }
                _ => Err(wrong("an entry of the keyring has a service and a user")),
            },
            "systemd" if rest.contains('/') || rest.starts_with('.') => {
                Err(wrong("a credential's name is no path"))
            }
            "systemd" => Ok(Self::Systemd(rest.to_owned())),
            _ => Err(wrong("this names no source of a value")),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Command(words) => {
                let joined = shlex::try_join(words.iter().map(String::as_str));
                write!(f, "cmd:{}", joined.unwrap_or_default())
            }
            Self::Keyring { service, user } => write!(f, "keyring:{service}/{user}"),
            Self::Systemd(name) => write!(f, "systemd:{name}"),
        }
    }
}

impl FromStr for NamedSource {
    type Err = SourceText;

    fn from_str(text: &str) -> Result<Self, SourceText> {
        let (name, source) = text
            .split_once('=')
            .ok_or_else(|| SourceText(format!("write NAME=SOURCE: a variable and its source; {FORMS}")))?;
        if Capability::new(format!("env:inject:{name}?loader=true")).is_ok() {
            return Err(SourceText(format!("`{name}` makes programs load code and is no secret")));
        }
        Capability::new(format!("env:inject:{name}")).map_err(|finding| {
            SourceText(format!("{}: {}", finding.message(), "a secret is named like a variable"))
        })?;
        Ok(Self { name: name.to_owned(), source: source.parse()? })
    }
}

impl fmt::Display for NamedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.source)
    }
}

impl SecretSource for Source {
    fn describe(&self) -> String {
        self.to_string()
    }

    fn fetch(&self) -> Result<HeldSecret, SourceError> {
        let tried = self.to_string();
        let held =
            self.held().map_err(|why| SourceError::Unread { tried: tried.clone(), why: why.to_string() })?;
        match held.len() {
            0 => Err(SourceError::Empty { tried }),
            length if length > MAX_SECRET => Err(SourceError::TooLong { tried }),
            _ => Ok(held),
        }
    }
}

impl Source {
    fn held(&self) -> io::Result<HeldSecret> {
        match self {
            Self::Env(name) => HeldSecret::keep(own_environment::take(name)?),
            Self::File(path) => HeldSecret::keep(SecretValue::read_from(File::open(path)?)?),
            Self::Command(words) => printed_by(words),
            Self::Keyring { service, user } => {
                let words = ["secret-tool", "lookup", "service", service, "username", user];
                printed_by(&words.map(str::to_owned))
            }
            Self::Systemd(name) => {
                let directory = std::env::var_os("CREDENTIALS_DIRECTORY")
                    .ok_or_else(|| io::Error::other("systemd gave this process no credentials"))?;
                HeldSecret::keep(SecretValue::read_from(File::open(PathBuf::from(directory).join(name))?)?)
            }
        }
    }
}

/// What a program prints. It writes to the file that keeps the value, so that the value passes through no buffer of ours.
fn printed_by(words: &[String]) -> io::Result<HeldSecret> {
    let (program, arguments) = words.split_first().ok_or_else(|| io::Error::other("no program"))?;
    let file = HeldSecret::empty()?;
    let status =
        Command::new(program).args(arguments).stdin(Stdio::null()).stdout(file.try_clone()?).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("`{program}` failed: {status}")));
    }
    HeldSecret::written(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_reads_back_as_it_prints() {
        for text in [
            "env:GH_TOKEN",
            "file:/run/secrets/a b",
            "cmd:op read 'op://a b/c'",
            "keyring:github.com/me",
            "systemd:token",
        ] {
            assert_eq!(text.parse::<Source>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_source_is_refused_and_never_repeated() {
        for text in [
            "hunter2hunter2",
            "vault:hunter2",
            "env:",
            "cmd:'hunter2",
            "keyring:hunter2",
            "systemd:../hunter2",
        ] {
            let message = text.parse::<Source>().unwrap_err().to_string();
            assert!(message.contains("env:VARIABLE") && !message.contains("hunter2"), "{message}");
        }
        for text in ["TOKEN", "token=env:A", "LD_PRELOAD=env:A", "=env:A", "A*=env:B"] {
            assert!(text.parse::<NamedSource>().is_err(), "{text}");
        }
        assert_eq!("A=cmd:x a=b".parse::<NamedSource>().unwrap().name, "A");
    }

    #[test]
    fn every_fault_names_the_source_that_was_tried() {
        let empty = tempfile::NamedTempFile::new().unwrap();
        let long = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(long.path(), "x".repeat(MAX_SECRET + 1)).unwrap();
        for source in [
            Source::Env("BAILIWICK_NO_SUCH_VARIABLE".to_owned()),
            Source::File("/no/such/file".into()),
            Source::File(empty.path().to_owned()),
            Source::File(long.path().to_owned()),
            Source::Command(vec!["false".to_owned()]),
            Source::Command(vec!["/no/such/program".to_owned()]),
            Source::Command(vec!["true".to_owned()]),
        ] {
            let message = source.fetch().err().unwrap().to_string();
            assert!(message.starts_with(&format!("`{source}` was tried: ")), "{message}");
        }
    }

    #[test]
    fn a_program_prints_the_value() {
        let held = Source::Command(["echo", "a value"].map(str::to_owned).to_vec()).fetch().unwrap();
        assert_eq!(held.read().unwrap().expose(), b"a value");
    }
}
