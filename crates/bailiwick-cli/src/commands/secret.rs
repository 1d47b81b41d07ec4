//! `bailiwick secret`: which secrets have a source, and whether each source has a usable value. Never a value.
//!
//! Sources are named on the command line or in the user's own settings; the command line counts where both name one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::fd::AsFd as _;

use anyhow::Context as _;
use bailiwick_broker::{NamedSource, OAuth, SecretSource as _, Source, serve_secrets};
use bailiwick_launch::LoadSecret;
use bailiwick_manifest::settings::secret_settings;
use bailiwick_policy::capability::BrokerHost;
use bailiwick_policy::secret_use::OAuthSetting;
use serde_json::{Value, json};

use super::trust::refused;
use crate::answer::{Answer, Exit};
use crate::args::AnswerFormat;
use crate::args::secret::{Secret, SecretCommand, SecretOptions};
use crate::facts;
use crate::render::{escape, style};

/// A secret whose source is known.
pub(super) struct KnownSecret {
    pub(super) source: Source,
    /// The only hosts that the user's settings have for it.
    pub(super) hosts: Option<Vec<BrokerHost>>,
    /// The service that gives a token for it.
    oauth: Option<OAuthSetting>,
}

impl KnownSecret {
    /// Reads each source of it. What there is to say of a value that can be used, or why there is none.
    fn check(&self) -> Result<Option<&'static str>, String> {
        let held = self.source.fetch().map_err(|fault| fault.to_string())?;
        if let Some(own) = self.oauth.as_ref().and_then(|oauth| oauth.client_secret.as_deref()) {
            let in_words = |why: String| format!("`client_secret`: {why}");
            let own: Source = own.parse().map_err(|why| in_words(format!("{why}")))?;
            own.fetch().map_err(|fault| in_words(fault.to_string()))?;
        }
        // What is fetched with it is what requests are given.
        let is_short = self.oauth.is_none() && held.is_short();
        Ok(is_short
            .then_some("fewer than 16 characters: brokered only where the manifest says `short = \"allow\"`"))
    }
}

/// The same, to be read by the process that holds it.
///
/// # Errors
/// If the source of its client's secret is none.
pub(super) fn loadable(name: &str, known: KnownSecret) -> Result<LoadSecret, String> {
    let oauth = known.oauth.map(OAuth::try_from).transpose();
    let oauth = oauth.map_err(|why| format!("the secret `{name}`: `client_secret`: {why}"))?;
    let named = NamedSource { name: name.to_owned(), source: known.source };
    Ok(LoadSecret { named, oauth, hosts: known.hosts })
}

/// Variables that are sources: no copy of them is made.
pub(super) fn source_variables(options: &SecretOptions) -> Vec<String> {
    let known = known(options).unwrap_or_default().into_values();
    known.filter_map(|secret| if let Source::Env(name) = secret.source { Some(name) } else { None }).collect()
}

/// Every secret whose source is known.
///
/// # Errors
/// What is wrong with the settings.
pub(super) fn known(options: &SecretOptions) -> Result<BTreeMap<String, KnownSecret>, String> {
    let mut all = BTreeMap::new();
    if let Some(file) = facts::settings_file() {
        let wrong = |why: String| format!("`{}`: {why}", file.display());
        let text = match std::fs::read_to_string(&file) {
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|fault| wrong(fault.to_string()))?,
        };
        for (name, setting) in secret_settings(&text).map_err(|findings| wrong(findings.to_string()))? {
            let source = setting.source.parse().map_err(|why| wrong(format!("secret `{name}`: {why}")))?;
            all.insert(name, KnownSecret { source, hosts: setting.hosts, oauth: setting.oauth });
        }
    }
    for named in &options.secrets {
        let (hosts, oauth) = all.remove(&named.name).map_or((None, None), |known| (known.hosts, known.oauth));
        all.insert(named.name.clone(), KnownSecret { source: named.source.clone(), hosts, oauth });
    }
    Ok(all)
}

pub(super) fn run(args: &Secret) -> anyhow::Result<Answer> {
    let (query, checks) = match &args.command {
        SecretCommand::List(query) => (query, false),
        SecretCommand::Check(query) => (query, true),
        SecretCommand::Hold => return hold(),
    };
    let known = match known(&query.options) {
        Ok(known) => known,
        Err(why) => return Ok(refused(Exit::Invalid, &why)),
    };
    let mut entries = Vec::new();
    let mut exit = Exit::Fine;
    for (name, secret) in &known {
        let verdict = if checks { secret.check() } else { Ok(None) };
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

/// Holds the values for the process that started this one.
fn hold() -> anyhow::Result<Answer> {
    let stdin = std::io::stdin();
    serve_secrets(stdin.as_fd().try_clone_to_owned()?)
        .context("`secret hold` is started by `bailiwick` itself")?;
    Ok(Answer::result(Exit::Fine, String::new()))
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
