//! Hosts in a call's arguments: those that a tool is told to reach must be within its network authority.
//!
//! A string names a host if a mark of the manifest says so, or if its key does (`url`, `endpoint`, `host`, …) and the tool
//! itself declares something about the network. Under keys that name URLs only a whole URL counts. A URL in any other
//! text is left alone: most tools that are given one do not reach it.
//!
//! This looks at arguments, not at what the tool then does: the network allowlist holds that.
//! Fails closed when a URL can be read in two ways, or the arguments nest too deeply.

use std::collections::BTreeMap;

use bailiwick_manifest::{ArgumentAccess, Tool};
use bailiwick_policy::capability::Capability;
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::net::{Host, NetScope, NetSet, Schemes, Speech};
use serde_json::Value;

use super::keys::last_word;
use super::{MAX_DEPTH, too_deep};

/// Last words of names that mean a URL.
const URL_WORDS: [&str; 11] = [
    "url",
    "urls",
    "uri",
    "uris",
    "href",
    "endpoint",
    "endpoints",
    "webhook",
    "webhooks",
    "origin",
    "website",
];

/// Last words of names that mean a host.
const HOST_WORDS: [&str; 4] = ["host", "hosts", "hostname", "hostnames"];

/// Schemes whose URLs some programs read without the two slashes, and their ports.
const WEB: [(&str, u16); 5] = [("http", 80), ("https", 443), ("ws", 80), ("wss", 443), ("ftp", 21)];

/// A host, and how it would be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedHost {
    pub(crate) host: Host,
    port: Option<u16>,
    scheme: Option<String>,
}

/// The network authority of a tool, and which of its arguments name hosts.
#[derive(Debug, Clone)]
pub(crate) struct HostRules {
    net: NetScope,
    marks: BTreeMap<String, ArgumentAccess>,
    /// Whether names of arguments count.
    by_name: bool,
}

/// Whether the last word of `key` means a host or a URL.
#[must_use]
pub fn names_a_host(key: &str) -> bool {
    let last = last_word(key).to_ascii_lowercase();
    HOST_WORDS.contains(&&*last) || URL_WORDS.contains(&&*last)
}

/// What a string under a key may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Url,
    Host,
    Text,
}

impl HostRules {
    /// The rules of a declared tool that may reach `net`; `None` if nothing says which arguments name hosts.
    pub(crate) fn for_tool(declared: &Tool, net: &NetScope) -> Option<Self> {
        let marks = declared.arguments().clone();
        let by_name = declared.has_network_stance();
        let judges = by_name || marks.values().any(|access| *access == ArgumentAccess::Host);
        judges.then(|| Self { net: net.clone(), marks, by_name })
    }

    /// Whether every host in the arguments is within the authority.
    ///
    /// # Errors
    /// The denial of the first that is not, or that cannot be judged.
    pub(crate) fn judge(&self, tool: &str, args: &Value) -> Result<(), Denial> {
        self.walk(tool, args, Meaning::Text, 0)
    }

    fn walk(&self, tool: &str, value: &Value, meaning: Meaning, depth: usize) -> Result<(), Denial> {
        if depth > MAX_DEPTH {
            return Err(too_deep(tool));
        }
        match value {
            Value::String(text) => self.judge_text(tool, text, meaning),
            Value::Array(items) => {
                items.iter().try_for_each(|item| self.walk(tool, item, meaning, depth + 1))
            }
            Value::Object(fields) => fields
                .iter()
                .try_for_each(|(key, item)| self.walk(tool, item, self.meaning(key, meaning), depth + 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    /// What stands under `key`: by mark, as what it stands in, or by name.
    fn meaning(&self, key: &str, inherited: Meaning) -> Meaning {
        match self.marks.get(key) {
            Some(ArgumentAccess::Host) => return Meaning::Host,
            Some(ArgumentAccess::Text) => return Meaning::Text,
            Some(ArgumentAccess::Read | ArgumentAccess::Write | ArgumentAccess::Path) | None => {}
        }
        let last = last_word(key).to_ascii_lowercase();
        match () {
            () if inherited != Meaning::Text => inherited,
            () if self.by_name && HOST_WORDS.contains(&&*last) => Meaning::Host,
            () if self.by_name && URL_WORDS.contains(&&*last) => Meaning::Url,
            () => Meaning::Text,
        }
    }

    fn judge_text(&self, tool: &str, text: &str, meaning: Meaning) -> Result<(), Denial> {
        let named = match meaning {
            Meaning::Text => return Ok(()),
            Meaning::Url => host_of_url(text),
            Meaning::Host => Some(host_of(text)),
        };
        let deny = |why: String| {
            Denial::new(DenialCode::ArgumentHost, format!("Tool '{tool}' denied by policy: {why}"))
        };
        let shown = text.escape_debug();
        match named {
            None => Ok(()),
            Some(Err(why)) => Err(deny(format!("host in '{shown}' cannot be judged: {why}"))),
            Some(Ok(named)) if named.is_within(&self.net) => Ok(()),
            Some(Ok(named)) => {
                let why = format!("host '{}' outside declared network policy", named.host);
                let port = named.port.unwrap_or(443);
                let smallest = Capability::new(format!("net:connect:{}:{port}", named.host)).ok();
                Err(deny(why).with_smallest(smallest))
            }
        }
    }
}

impl NamedHost {
    /// Whether the host may be reached so: its port and scheme count where they are known.
    fn is_within(&self, net: &NetScope) -> bool {
        match net {
            NetScope::None => false,
            NetScope::Any => true,
            NetScope::Only(clauses) => clauses.sets().all(|set| self.is_in(set)),
        }
    }

    fn is_in(&self, set: &NetSet) -> bool {
        set.matching(&self.host).any(|rule| {
            let speaks = match (rule.speech(), self.scheme.as_deref()) {
                (Speech::Connect { .. }, _) | (_, None) => true,
                (Speech::Http { schemes, .. }, Some(scheme)) => has_scheme(*schemes, scheme),
            };
            let port = self.port.is_none_or(|port| rule.ports().contains(port));
            speaks && port && (rule.opens_private() || !self.host.is_private())
        })
    }
}

fn has_scheme(schemes: Schemes, scheme: &str) -> bool {
    schemes.iter().any(|one| one.as_str() == scheme)
}

/// The host of a URL, or of a host with or without a port.
pub(crate) fn host_of(text: &str) -> Result<NamedHost, &'static str> {
    host_of_url(text).unwrap_or_else(|| {
        let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
        named(authority, None)
    })
}

/// The host of a URL; `None` if the text is none, or one that names no host.
fn host_of_url(text: &str) -> Option<Result<NamedHost, &'static str>> {
    // Some programs drop such characters before they read a URL.
    let dropped = |c: char| c.is_control() || c == ' ';
    let plain: String = text.trim_matches(dropped).chars().filter(|c| !c.is_control()).collect();
    let (scheme, rest) = plain.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    let scheme = scheme.to_ascii_lowercase();
    let port = WEB.iter().find(|(name, _)| *name == scheme).map(|(_, port)| *port);
    if !is_scheme || scheme == "file" || (port.is_none() && !rest.starts_with("//")) {
        return None;
    }
    let after = rest.strip_prefix("//").filter(|after| !after.starts_with(['/', '\\']));
    let Some(after) = after else { return Some(Err("it is not written as SCHEME://HOST")) };
    if plain.len() != text.len() || after.contains('\\') {
        return Some(Err("programs read it in different ways"));
    }
    let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    Some(named(host, Some((scheme, port))))
}

fn named(authority: &str, scheme: Option<(String, Option<u16>)>) -> Result<NamedHost, &'static str> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') && (!host.contains(':') || host.starts_with('[')) => {
            (host, port)
        }
        _ => (authority, ""),
    };
    let given = (!port.is_empty()).then(|| port.parse::<u16>().map_err(|_| "its port is not a number"));
    let host = Host::new(host).map_err(|_| "it is not the name or the address of one host")?;
    let usual = scheme.as_ref().and_then(|(_, port)| *port);
    Ok(NamedHost { host, port: given.transpose()?.or(usual), scheme: scheme.map(|(scheme, _)| scheme) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bailiwick_manifest::Manifest;
    use bailiwick_policy::facts::HostFacts;
    use serde_json::json;

    fn judged(capabilities: &str, arguments: &str, args: &Value) -> Result<(), String> {
        let text = format!(
            "name = 'n'\nversion = '1'\n[[tools]]\nname = 't'\ncapabilities = [{capabilities}]\n[tools.arguments]\n{arguments}\n"
        );
        let checked = Manifest::parse(&text).unwrap().check(&HostFacts::unknown()).unwrap();
        let declared = &checked.manifest().tools()[0];
        let rules = HostRules::for_tool(declared, checked.tool("t").unwrap().authority().net());
        rules.map_or(Ok(()), |rules| rules.judge("t", args).map_err(|denial| denial.to_string()))
    }

    #[test]
    fn hosts_under_telling_names_are_held_to_the_tools_network() {
        let own = "'net:connect:api.test:443', 'net:https:GET@https://docs.test/**'";
        for args in [
            json!({ "url": "https://api.test/x" }),
            json!({ "url": "HTTPS://user@API.test:443?x" }),
            json!({ "options": { "endpoint": ["https://docs.test/a"] } }),
            json!({ "host": "api.test" }),
            json!({ "host": "api.test:443" }),
            json!({ "url": "/relative", "uri": "notes.txt", "href": "mailto:a@b.test", "origin": "data:,x" }),
            json!({ "text": "see https://evil.test/", "query": "https://evil.test", "message": "evil.test" }),
        ] {
            assert_eq!(judged(own, "", &args), Ok(()), "{args}");
        }
        for args in [
            json!({ "url": "https://evil.test/x" }),
            json!({ "url": "http://api.test/" }),
            json!({ "url": "https://api.test:8443/" }),
            json!({ "url": "https://api.test@evil.test/" }),
            json!({ "url": "https://api.test\\@evil.test/" }),
            json!({ "url": "https:/evil.test/" }),
            json!({ "url": "https:evil.test/" }),
            json!({ "url": "\thttps://evil.test/" }),
            json!({ "url": "ht\ntps://api.test/" }),
            json!({ "url": "https://api%2etest/" }),
            json!({ "url": "https://0x7f.1/" }),
            json!({ "baseUrl": "ssh://git@evil.test/x" }),
            json!({ "a": { "targetHost": "evil.test" } }),
            json!({ "hosts": ["api.test", "10.0.0.1"] }),
            json!({ "url": "http://docs.test/" }),
        ] {
            let why = judged(own, "", &args).expect_err(&args.to_string());
            assert!(why.contains("argument-host") || why.contains("host"), "{why}");
        }
    }

    #[test]
    fn a_mark_decides_before_the_name() {
        let evil = json!({ "url": "https://evil.test/" });
        assert!(judged("'net:connect:api.test:443'", "", &evil).is_err());
        assert_eq!(judged("'net:connect:api.test:443'", "url = 'text'", &evil), Ok(()));
        assert_eq!(judged("'fs:read:/srv'", "", &evil), Ok(()), "the tool says nothing about the network");
        assert!(judged("'fs:read:/srv'", "url = 'host'", &evil).is_err(), "nothing is granted");
        let target = |host: &str| json!({ "target": host });
        assert!(judged("'net:connect:*.test:443'", "target = 'host'", &target("a.example")).is_err());
        assert!(judged("'net:connect:*.test:443'", "target = 'host'", &target("not a host")).is_err());
        assert_eq!(judged("'net:connect:*.test:443'", "target = 'host'", &target("a.test")), Ok(()));
    }
}
