//! `bailiwick secret`: which secrets have a source, and whether each source has a usable value. Never a value.
//!
//! Sources are named on the command line or in the user's own settings; the command line counts where both name one.

use std::fmt::Write as _;

use bailiwick_broker::{SecretSource as _, Source};
use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::args::secret::{Secret, SecretCommand};
use bailiwick_command::render::{escape, style};
use bailiwick_command::secret_sources::{KnownSecret, known};
use serde_json::{Value, json};

/// Reads each source of a secret. What there is to say of a value that can be used, or why there is none.
fn check(secret: &KnownSecret) -> Result<Option<&'static str>, String> {
    let held = secret.source.fetch().map_err(|fault| fault.to_string())?;
    if let Some(own) = secret.oauth.as_ref().and_then(|oauth| oauth.client_secret.as_deref()) {
        let in_words = |why: String| format!("`client_secret`: {why}");
        let own: Source = own.parse().map_err(|why| in_words(format!("{why}")))?;
        own.fetch().map_err(|fault| in_words(fault.to_string()))?;
    }
    // What is fetched with it is what requests are given.
    let is_short = secret.oauth.is_none() && held.is_short();
    Ok(is_short
        .then_some("fewer than 16 characters: brokered only where the manifest says `short = \"allow\"`"))
}

pub(super) fn run(args: &Secret) -> anyhow::Result<Answer> {
    let (query, checks) = match &args.command {
        SecretCommand::List(query) => (query, false),
        SecretCommand::Check(query) => (query, true),
        SecretCommand::Hold => anyhow::bail!("`secret hold` is started by `bailiwick` itself"),
    };
    let known = match known(&query.options) {
        Ok(known) => known,
        Err(why) => return Ok(refused(Exit::Invalid, &why)),
    };
    let mut entries = Vec::new();
    let mut exit = Exit::Fine;
    for (name, secret) in &known {
        let verdict = if checks { check(secret) } else { Ok(None) };
        if verdict.is_err() {
            exit = Exit::Found;
        }
        let (fault, note) = match verdict {
            Ok(note) => (None, note),
            Err(fault) => (Some(fault), None),
        };
        entries.push(Entry { name, secret, fault, note });
    }
    let text = match query.format {
        AnswerFormat::Text => as_text(&entries, checks),
        AnswerFormat::Json => format!(
            "{:#}\n",
            json!({ "secrets": entries.iter().map(|one| one.to_json(checks)).collect::<Vec<_>>() })
        ),
    };
    Ok(Answer::result(exit, text))
}

struct Entry<'a> {
    name: &'a str,
    secret: &'a KnownSecret,
    /// Why there is no usable value.
    fault: Option<String>,
    /// What is to be known of one that is usable.
    note: Option<&'static str>,
}

impl Entry<'_> {
    fn hosts(&self) -> Option<Vec<String>> {
        self.secret.hosts.as_ref().map(|hosts| hosts.iter().map(ToString::to_string).collect())
    }

    fn to_json(&self, checks: bool) -> Value {
        let mut entry = json!({
            "name": self.name, "source": self.secret.source.describe(), "hosts": self.hosts(),
        });
        if checks && let Some(table) = entry.as_object_mut() {
            table.insert("usable".to_owned(), self.fault.is_none().into());
            table.insert("why".to_owned(), self.fault.as_deref().into());
            table.insert("note".to_owned(), self.note.into());
        }
        entry
    }
}

fn as_text(entries: &[Entry<'_>], checks: bool) -> String {
    if entries.is_empty() {
        return "no secret has a source: name one with `--secret NAME=SOURCE` or in `[secrets]` of config.toml\n".to_owned();
    }
    let mut text = String::new();
    for entry in entries {
        let (name, source) = (escape::line(entry.name), escape::line(&entry.secret.source.describe()));
        let hosts = entry.hosts().map_or_else(|| "every granted host".to_owned(), |hosts| hosts.join(", "));
        let verdict = match &entry.fault {
            _ if !checks => String::new(),
            None => format!("{}  ", style::good("ok")),
            Some(_) => format!("{}  ", style::error("error")),
        };
        let _ = writeln!(text, "{verdict}{name}  {source}  {hosts}");
        if let Some(more) = entry.fault.as_deref().or(entry.note) {
            let _ = writeln!(text, "  {}", escape::line(more));
        }
    }
    text
}
