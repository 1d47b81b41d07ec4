//! How a brokered secret is used at its hosts, and what an access token is fetched with, as values.

use std::collections::BTreeSet;

use crate::net::{Method, Methods, UrlPath};
use crate::path::PathPattern;

/// How a brokered secret is used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretUse {
    /// Fields of a request's head besides the usual ones, in lower case.
    pub headers: BTreeSet<String>,
    /// Parameters of the query.
    pub query: BTreeSet<String>,
    /// Fields of a body that is a form.
    pub form: BTreeSet<String>,
    /// Members of a body that is a JSON object.
    pub json: BTreeSet<String>,
    /// It may stand in the first message of a WebSocket.
    pub websocket: bool,
    /// It is put into no request, and signs them.
    pub sign: Option<RequestSigning>,
    /// Requests to its hosts may carry another credential.
    pub foreign: bool,
    /// The value may be shorter than 16 characters.
    pub short: bool,
    /// The requests that it is used on; all if there is no rule.
    pub rules: Vec<SecretRule>,
    /// Rules of others, each list of which must cover a request too.
    pub bounds: Vec<Vec<SecretRule>>,
}

/// How a secret signs requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestSigning {
    /// Signature Version 4 of AWS, with the secret as secret access key.
    AwsSigV4,
}

impl RequestSigning {
    /// As a manifest says it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AwsSigV4 => "aws-sigv4",
        }
    }

    /// Reads what a manifest says.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        (text == Self::AwsSigV4.as_str()).then_some(Self::AwsSigV4)
    }
}

/// Requests on which a secret is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRule {
    /// The methods.
    pub methods: Methods,
    /// The paths: any of these.
    pub paths: Vec<PathPattern>,
}

impl SecretUse {
    /// Whether it is used on a request.
    ///
    /// # Examples
    /// ```
    /// use bailiwick_policy::secret_use::SecretUse;
    /// use bailiwick_policy::net::{Method, UrlPath};
    ///
    /// let get = Method::new("GET")?;
    /// assert!(SecretUse::default().is_used_on(get, &UrlPath::of_target("/any")), "without rules on every request");
    /// # Ok::<(), bailiwick_policy::finding::Finding>(())
    /// ```
    #[must_use]
    pub fn is_used_on(&self, method: Method, path: &UrlPath) -> bool {
        let covers =
            |rules: &[SecretRule]| rules.is_empty() || rules.iter().any(|rule| rule.covers(method, path));
        covers(&self.rules) && self.bounds.iter().all(|rules| covers(rules))
    }

    /// Whether it is used on every request, whatever its method.
    #[must_use]
    pub fn is_used_on_all(&self) -> bool {
        self.rules.is_empty() && self.bounds.iter().all(Vec::is_empty)
    }

    /// What both allow. A secret that signs requests by one of them alone is used on none.
    ///
    /// # Examples
    /// ```
    /// use bailiwick_policy::net::{Method, Methods, UrlPath};
    /// use bailiwick_policy::path::PathPattern;
    /// use bailiwick_policy::secret_use::{SecretRule, SecretUse};
    ///
    /// let (get, put) = (Method::new("GET")?, Method::new("PUT")?);
    /// let reads = SecretRule { methods: Methods::from_methods([get]), paths: vec![PathPattern::everything()] };
    /// let both = SecretUse::default().meet(&SecretUse { rules: vec![reads], ..SecretUse::default() });
    /// let path = UrlPath::of_target("/any");
    /// assert!(both.is_used_on(get, &path) && !both.is_used_on(put, &path));
    /// # Ok::<(), bailiwick_policy::finding::Finding>(())
    /// ```
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        let common = |own: &BTreeSet<String>, other: &BTreeSet<String>| own & other;
        let lists = |usage: &Self| std::iter::once(usage.rules.clone()).chain(usage.bounds.clone());
        let mut lists: Vec<_> = lists(self).chain(lists(other)).filter(|rules| !rules.is_empty()).collect();
        if self.sign != other.sign {
            lists.push(vec![SecretRule { methods: Methods::from_methods([]), paths: Vec::new() }]);
        }
        let mut lists = lists.into_iter();
        let (rules, bounds) = (lists.next().unwrap_or_default(), lists.collect());
        Self {
            headers: common(&self.headers, &other.headers),
            query: common(&self.query, &other.query),
            form: common(&self.form, &other.form),
            json: common(&self.json, &other.json),
            websocket: self.websocket && other.websocket,
            sign: self.sign,
            foreign: self.foreign && other.foreign,
            short: self.short && other.short,
            rules,
            bounds,
        }
    }

    /// What of it is wider than `base`, in words.
    #[must_use]
    pub fn wider_than(&self, base: &Self) -> Vec<String> {
        let mut wider = Vec::new();
        for (what, own, old) in [
            ("header", &self.headers, &base.headers),
            ("query parameter", &self.query, &base.query),
            ("form field", &self.form, &base.form),
            ("JSON member", &self.json, &base.json),
        ] {
            wider.extend(own.difference(old).map(|name| format!("may be put into the {what} `{name}`")));
        }
        if self.websocket && !base.websocket {
            wider.push("may be put into the first message of a WebSocket".to_owned());
        }
        if let Some(sign) = self.sign.filter(|_| self.sign != base.sign) {
            wider.push(format!("may sign requests (`{}`)", sign.as_str()));
        }
        if self.sign.is_none() && base.sign.is_some() {
            wider.push("is put into requests and no longer signs them".to_owned());
        }
        if self.foreign && !base.foreign {
            wider.push("no longer keeps other credentials from its hosts".to_owned());
        }
        if self.short && !base.short {
            wider.push("may be short".to_owned());
        }
        let covered = |rule: &SecretRule| base.rules.iter().any(|old| rule.is_within(old));
        let bounds_held = base.bounds.iter().all(|bound| self.bounds.contains(bound));
        if !bounds_held
            || !base.rules.is_empty() && (self.rules.is_empty() || !self.rules.iter().all(covered))
        {
            wider.push("may be used on requests that no rule covered".to_owned());
        }
        wider
    }
}

impl SecretRule {
    fn covers(&self, method: Method, path: &UrlPath) -> bool {
        self.methods.contains(method) && self.paths.iter().any(|pattern| path.is_covered_by(pattern))
    }

    /// By its words: a pattern that another covers is looked for, not what several cover together.
    fn is_within(&self, other: &Self) -> bool {
        let paths =
            |own: &PathPattern| other.paths.iter().any(|old| old == own || *old == PathPattern::everything());
        self.methods.iter().all(|method| other.methods.contains(method)) && self.paths.iter().all(paths)
    }
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
