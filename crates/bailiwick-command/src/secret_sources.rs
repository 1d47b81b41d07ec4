//! Which secrets have a source. Sources are named on the command line or in the user's own settings; the command line counts
//! where both name one. Nothing here reads a value.

use std::collections::BTreeMap;

use bailiwick_broker::{NamedSource, OAuth, Source};
use bailiwick_launch::LoadSecret;
use bailiwick_manifest::settings::secret_settings;
use bailiwick_policy::capability::BrokerHost;
use bailiwick_policy::secret_use::OAuthSetting;

use crate::args::secret::SecretOptions;
use crate::facts;

/// A secret whose source is known.
pub struct KnownSecret {
    /// Where its value comes from.
    pub source: Source,
    /// The only hosts that the user's settings have for it.
    pub hosts: Option<Vec<BrokerHost>>,
    /// The service that gives a token for it.
    pub oauth: Option<OAuthSetting>,
}

/// The same, to be read by the process that holds it.
///
/// # Errors
/// If the source of its client's secret is none.
pub fn loadable(name: &str, known: KnownSecret) -> Result<LoadSecret, String> {
    let oauth = known.oauth.map(OAuth::try_from).transpose();
    let oauth = oauth.map_err(|why| format!("the secret `{name}`: `client_secret`: {why}"))?;
    let named = NamedSource { name: name.to_owned(), source: known.source };
    Ok(LoadSecret { named, oauth, hosts: known.hosts })
}

/// Variables that are sources: no copy of them is made.
pub fn source_variables(options: &SecretOptions) -> Vec<String> {
    let known = known(options).unwrap_or_default().into_values();
    known.filter_map(|secret| if let Source::Env(name) = secret.source { Some(name) } else { None }).collect()
}

/// Every secret whose source is known.
///
/// # Errors
/// What is wrong with the settings.
pub fn known(options: &SecretOptions) -> Result<BTreeMap<String, KnownSecret>, String> {
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
