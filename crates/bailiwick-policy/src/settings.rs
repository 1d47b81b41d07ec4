//! Settings of a configuration file besides `[caveats]`: what is recorded, where programs are looked for by name, and
//! whether `wrap` may only audit.
//!
//! Fails closed when: the table `[journal]` is there and cannot be read. Who reads it must then refuse.

use std::collections::BTreeMap;

use crate::capability::{BrokerHost, check_env_name};
use crate::document::{self, Fields, TableEntry, Value};
use crate::finding::{Code, Collector, Finding, Findings};
use crate::path::AbsPath;

/// Which calls a hook records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HookRecords {
    /// Those that it refuses or asks about.
    #[default]
    Refused,
    /// Those that it allows too.
    All,
}

impl HookRecords {
    /// Reads `[journal] hooks = "refused"` or `"all"` of a configuration file; the first unless it says otherwise.
    ///
    /// # Errors
    /// What is wrong with the file or its table `[journal]`.
    pub fn parse_config(text: &str) -> Result<Self, Findings> {
        let node = document::parse(text)?;
        let entries = node.table(Code::CaveatsShape)?;
        let Some(journal) = entries.iter().find(|entry| entry.key == "journal") else {
            return Ok(Self::default());
        };
        let mut found = Collector::default();
        let mut fields = Fields::from_node(&journal.node, "the table `journal`", Code::CaveatsShape)?;
        let hooks =
            fields.optional("hooks").and_then(|node| match found.keep(node.text(Code::CaveatsShape))? {
                "refused" => Some(Self::Refused),
                "all" => Some(Self::All),
                _ => {
                    found.push(node.expected(Code::CaveatsShape, "`\"refused\"` or `\"all\"`"));
                    None
                }
            });
        fields.finish(Code::CaveatsShape, &mut found);
        found.finish(hooks.unwrap_or_default())
    }
}

/// The directories of `[programs] path`, in their order; none if the table is not there.
///
/// # Errors
/// A finding for every entry that is no absolute path.
///
/// # Examples
/// ```
/// use bailiwick_policy::settings::program_directories;
///
/// let directories = program_directories("[programs]\npath = ['/opt/tools/bin']\n")?;
/// assert_eq!(directories.len(), 1);
/// assert!(program_directories("[programs]\npath = ['bin']\n").is_err());
/// # Ok::<(), bailiwick_policy::finding::Findings>(())
/// ```
pub fn program_directories(text: &str) -> Result<Vec<AbsPath>, Findings> {
    let node = document::parse(text)?;
    let entries = node.table(Code::CaveatsShape)?;
    let Some(programs) = entries.iter().find(|entry| entry.key == "programs") else { return Ok(Vec::new()) };
    let fields = programs.node.table(Code::CaveatsShape)?;
    let Some(path) = fields.iter().find(|field| field.key == "path") else { return Ok(Vec::new()) };
    let mut found = Collector::default();
    let read = |item: &document::Node<'_>| item.place(AbsPath::new(item.text(Code::CaveatsShape)?));
    let items = path.node.list(Code::CaveatsShape)?;
    let directories = items.iter().filter_map(|item| found.keep(read(item))).collect();
    found.finish(directories)
}

/// Whether `[wrap] audit = true` lets `bailiwick wrap --mode audit` be used; not if the table is not there.
///
/// # Errors
/// What is wrong with the file or its table `[wrap]`.
pub fn allows_audit(text: &str) -> Result<bool, Findings> {
    let node = document::parse(text)?;
    let entries = node.table(Code::CaveatsShape)?;
    let Some(wrap) = entries.iter().find(|entry| entry.key == "wrap") else { return Ok(false) };
    let mut found = Collector::default();
    let mut fields = Fields::from_node(&wrap.node, "the table `wrap`", Code::CaveatsShape)?;
    let audit = fields.optional("audit").and_then(|node| found.keep(node.flag(Code::CaveatsShape)));
    fields.finish(Code::CaveatsShape, &mut found);
    found.finish(audit.unwrap_or(false))
}

/// What the user's settings say of one secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSetting {
    /// Where its value comes from, as it is written.
    pub source: String,
    /// The only hosts it may be used at; every host that is granted if absent.
    pub hosts: Option<Vec<BrokerHost>>,
    /// Where an access token is fetched with it. The token is then what requests are given.
    pub oauth: Option<OAuthSetting>,
}

/// An OAuth service, and what is said to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthSetting {
    /// The URL of its token endpoint: `https`, with a name.
    pub token_url: String,
    /// What the secret's source has.
    pub grant: OAuthGrant,
    /// Who asks.
    pub client_id: String,
    /// Where the client's own secret comes from, as it is written; only besides a refresh token.
    pub client_secret: Option<String>,
    /// What is asked for.
    pub scope: Option<String>,
}

/// What an access token is fetched with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OAuthGrant {
    /// A refresh token.
    RefreshToken,
    /// The secret of the client itself.
    ClientCredentials,
}

/// The secrets of `[secrets]`: a source each, or a table with `source` and `hosts`.
///
/// # Errors
/// What is wrong with the file or its table `[secrets]`.
///
/// # Examples
/// ```
/// use bailiwick_policy::settings::secret_settings;
///
/// let text = "[secrets]\nTOKEN = 'cmd:gh auth token'\nKEY = { source = 'env:KEY', hosts = ['api.example.com'] }\n";
/// let secrets = secret_settings(text)?;
/// assert_eq!(secrets["TOKEN"].source, "cmd:gh auth token");
/// assert_eq!(secrets["KEY"].hosts.as_ref().map(Vec::len), Some(1));
/// # Ok::<(), bailiwick_policy::finding::Findings>(())
/// ```
pub fn secret_settings(text: &str) -> Result<BTreeMap<String, SecretSetting>, Findings> {
    let node = document::parse(text)?;
    let entries = node.table(Code::CaveatsShape)?;
    let Some(secrets) = entries.iter().find(|entry| entry.key == "secrets") else {
        return Ok(BTreeMap::new());
    };
    let mut found = Collector::default();
    let entries = secrets.node.table(Code::CaveatsShape)?;
    let read = entries.iter().filter_map(|entry| {
        found.keep(check_env_name(&entry.key).map_err(|finding| finding.at(entry.key_span)))?;
        Some((entry.key.to_string(), secret_setting(entry, &mut found)?))
    });
    let read = read.collect();
    found.finish(read)
}

fn secret_setting(entry: &TableEntry<'_>, found: &mut Collector) -> Option<SecretSetting> {
    if let Value::Text { .. } = entry.node.value {
        let source = found.keep(entry.node.text(Code::CaveatsShape))?.to_owned();
        return Some(SecretSetting { source, hosts: None, oauth: None });
    }
    let mut fields = found.keep(Fields::from_node(&entry.node, "a secret", Code::CaveatsShape))?;
    let source = found.keep(fields.required("source", Code::CaveatsShape));
    let source = source.and_then(|node| found.keep(node.text(Code::CaveatsShape))).map(str::to_owned);
    let hosts = fields.optional("hosts").map(|node| {
        let items = found.keep(node.list(Code::CaveatsShape)).unwrap_or_default();
        let read = |item: &document::Node<'_>| item.place(BrokerHost::new(item.text(Code::CaveatsShape)?));
        items.iter().filter_map(|item| found.keep(read(item))).collect()
    });
    let oauth = fields.optional("oauth").map(|node| oauth_setting(node, found));
    fields.finish(Code::CaveatsShape, found);
    let oauth = match oauth {
        Some(read) => Some(read?),
        None => None,
    };
    Some(SecretSetting { source: source?, hosts, oauth })
}

fn oauth_setting(node: &document::Node<'_>, found: &mut Collector) -> Option<OAuthSetting> {
    let mut fields = found.keep(Fields::from_node(node, "the table `oauth`", Code::CaveatsShape))?;
    let required = |found: &mut Collector, node: Result<&document::Node<'_>, Finding>| {
        let node = found.keep(node)?;
        found.keep(node.text(Code::CaveatsShape)).map(str::to_owned)
    };
    let token_url = required(found, fields.required("token_url", Code::CaveatsShape));
    let client_id = required(found, fields.required("client_id", Code::CaveatsShape));
    let grant = found.keep(fields.required("grant", Code::CaveatsShape)).and_then(|node| {
        match found.keep(node.text(Code::CaveatsShape))? {
            "refresh-token" => Some(OAuthGrant::RefreshToken),
            "client-credentials" => Some(OAuthGrant::ClientCredentials),
            _ => {
                found.push(
                    node.expected(Code::CaveatsShape, "`\"refresh-token\"` or `\"client-credentials\"`"),
                );
                None
            }
        }
    });
    let mut optional = |key| {
        fields.optional(key).and_then(|node| found.keep(node.text(Code::CaveatsShape))).map(str::to_owned)
    };
    let (client_secret, scope) = (optional("client_secret"), optional("scope"));
    fields.finish(Code::CaveatsShape, found);
    let (token_url, client_id, grant) = (token_url?, client_id?, grant?);
    let is_https = token_url.strip_prefix("https://").is_some_and(|rest| !rest.starts_with(['/', ':']));
    let is_clean = token_url.bytes().all(|byte| byte.is_ascii_graphic()) && !token_url.contains(['@', '#']);
    if !is_https || !is_clean {
        found.push(node.expected(Code::CaveatsShape, "a `token_url` that starts with `https://`"));
        return None;
    }
    if client_secret.is_some() && grant == OAuthGrant::ClientCredentials {
        found.push(
            node.expected(Code::CaveatsShape, "no `client_secret`: the secret itself is that of the client"),
        );
        return None;
    }
    Some(OAuthSetting { token_url, grant, client_id, client_secret, scope })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_have_a_source_and_may_have_hosts() {
        assert!(secret_settings("").is_ok_and(|secrets| secrets.is_empty()));
        for text in [
            "[secrets]\ntoken = 'env:A'\n",
            "[secrets]\nA = 1\n",
            "[secrets.A]\nhosts = ['a.test']\n",
            "[secrets.A]\nsource = 'env:A'\nhosts = ['*.test']\n",
            "[secrets.A]\nsource = 'env:A'\nhost = 'a.test'\n",
            "[secrets.A]\nsource = 'env:A'\n[secrets.A.oauth]\ntoken_url = 'https://a.test/'\ngrant = 'password'\nclient_id = 'c'\n",
            "[secrets.A]\nsource = 'env:A'\n[secrets.A.oauth]\ntoken_url = 'http://a.test/'\ngrant = 'refresh-token'\nclient_id = 'c'\n",
            "[secrets.A]\nsource = 'env:A'\n[secrets.A.oauth]\ntoken_url = 'https://a.test/'\ngrant = 'refresh-token'\n",
        ] {
            assert!(secret_settings(text).is_err(), "{text}");
        }
        let oauth = "[secrets.A]\nsource = 'env:A'\n[secrets.A.oauth]\ntoken_url = 'https://a.test/t'\ngrant = \
                     'refresh-token'\nclient_id = 'c'\nclient_secret = 'env:B'\n";
        let read = secret_settings(oauth).unwrap();
        assert_eq!(read["A"].oauth.as_ref().map(|oauth| oauth.grant), Some(OAuthGrant::RefreshToken));
    }

    #[test]
    fn audit_is_allowed_by_one_word_alone() {
        assert!(allows_audit("[wrap]\naudit = true\n").is_ok_and(|allowed| allowed));
        for text in ["", "[wrap]\n", "[wrap]\naudit = false\n", "[journal]\nhooks = 'all'\n"] {
            assert!(allows_audit(text).is_ok_and(|allowed| !allowed), "{text}");
        }
        for text in ["[wrap]\naudit = 'true'\n", "[wrap]\nmode = 'audit'\n", "wrap = true\n"] {
            assert!(allows_audit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn hooks_record_what_they_refuse_unless_the_file_says_all() {
        let read = |text: &str| HookRecords::parse_config(text).map_err(|findings| findings.to_string());
        assert_eq!(read(""), Ok(HookRecords::Refused));
        assert_eq!(read("[journal]\n"), Ok(HookRecords::Refused));
        assert_eq!(read("[caveats]\nexec = 'all'\n"), Ok(HookRecords::Refused));
        assert_eq!(read("[journal]\nhooks = 'refused'\n"), Ok(HookRecords::Refused));
        assert_eq!(read("[journal]\nhooks = 'all'\n"), Ok(HookRecords::All));
        for bad in ["[journal]\nhooks = 'none'\n", "[journal]\nhook = 'all'\n", "journal = 1\n", "[journal"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
