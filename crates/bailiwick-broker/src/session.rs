//! The secrets of one sandbox, in the process that holds their values: what stands inside for them, and the table by which
//! values take the places of placeholders.
//!
//! Fails closed when a value is missing, cannot stand in a request, or is too short to be told from other text.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use bailiwick_egress::Target;
use bailiwick_policy::capability::BrokerHost;
use bailiwick_policy::secret_use::{RequestSigning, SecretUse};
use serde_json::{Value, json};

use crate::authority::{CertificateError, SessionAuthority};
use crate::find::{Case, Finder};
use crate::oauth::{OAuthFault, TokenSource};
use crate::placeholder::{SHORTEST, placeholder_for};
use crate::redact::Redactor;
use crate::trust::{SystemRoots, UpstreamTls};
use crate::value::SecretValue;

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionFault {
    #[error("`{name}` was not among the secrets that were read at the start")]
    Unknown { name: String },
    #[error(
        "the value of `{name}` has characters other than printable ASCII, so it can be put into no request"
    )]
    Unprintable { name: String },
    #[error(
        "the value of `{name}` has fewer than {SHORTEST} characters, so that it is easily guessed; a manifest can allow it \
         with `[secrets.{name}]` and below it `short = \"allow\"`"
    )]
    Short { name: String },
    #[error("no placeholder can be made for the value of `{name}`")]
    NoPlaceholder { name: String },
    #[error("no placeholder can be made: {0}")]
    NoRandom(#[from] io::Error),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("the secret `{name}`: {fault}")]
    Token { name: String, fault: OAuthFault },
    #[error("a message that is none of ours")]
    Message,
}

/// A secret that was read at the start.
pub(crate) enum LoadedSecret {
    /// It is what requests are given.
    Value(Arc<SecretValue>),
    /// A token that is fetched with it is.
    Token(Arc<TokenSource>),
}

/// Everything that was read at the start.
pub(crate) struct Loaded {
    pub(crate) secrets: HashMap<Box<str>, LoadedSecret>,
    pub(crate) roots: SystemRoots,
    pub(crate) tls: UpstreamTls,
}

/// A secret of an open session.
pub(crate) struct OpenSecret {
    pub(crate) name: Box<str>,
    hosts: Vec<BrokerHost>,
    pub(crate) usage: SecretUse,
    pub(crate) placeholder: String,
    value: RwLock<Arc<SecretValue>>,
    token: Option<Arc<TokenSource>>,
}

/// A session whose values are known: TLS is ended for their hosts.
pub(crate) struct OpenSession {
    pub(crate) secrets: Vec<OpenSecret>,
    pub(crate) authority: SessionAuthority,
    pub(crate) tls: UpstreamTls,
    redactor: RwLock<Redactor>,
    /// Every value that was put into a request, and what tokens were fetched with.
    known: RwLock<Vec<Arc<SecretValue>>>,
    /// Finds placeholders.
    pub(crate) placeholders: Arc<Finder>,
}

/// What is asked of one session, as the supervisor says it.
pub(crate) fn asked_for(name: &str, hosts: &[BrokerHost], usage: &SecretUse) -> Value {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    json!({
        "name": name, "hosts": hosts, "headers": usage.headers, "query": usage.query, "form": usage.form,
        "json": usage.json, "websocket": usage.websocket, "sign": usage.sign.map(RequestSigning::as_str),
        "foreign": usage.foreign, "short": usage.short,
    })
}

/// The same, read. Rules stay with the supervisor, who judges by them.
fn read_asked(message: &Value) -> Option<(Box<str>, Vec<BrokerHost>, SecretUse)> {
    let texts = |key: &str| -> Option<Vec<String>> {
        message.get(key)?.as_array()?.iter().map(|one| one.as_str().map(str::to_owned)).collect()
    };
    let names = |key: &str| Some(texts(key)?.into_iter().collect::<BTreeSet<_>>());
    let flag = |key: &str| message.get(key)?.as_bool();
    let sign = match message.get("sign").filter(|sign| !sign.is_null()) {
        None => None,
        Some(text) => Some(RequestSigning::from_text(text.as_str()?)?),
    };
    let usage = SecretUse {
        headers: names("headers")?,
        query: names("query")?,
        form: names("form")?,
        json: names("json")?,
        websocket: flag("websocket")?,
        sign,
        foreign: flag("foreign")?,
        short: flag("short")?,
        rules: Vec::new(),
        bounds: Vec::new(),
    };
    let hosts = texts("hosts")?.iter().map(|host| BrokerHost::new(host).ok()).collect::<Option<_>>()?;
    Some((message.get("name")?.as_str()?.into(), hosts, usage))
}

impl OpenSession {
    /// Makes placeholders and a certificate authority, and fetches tokens. Gives the session, and the list of authorities
    /// for the inside.
    pub(crate) async fn open(loaded: &Loaded, message: &Value) -> Result<(Self, Vec<u8>), SessionFault> {
        let asked = message.get("secrets").and_then(Value::as_array).ok_or(SessionFault::Message)?;
        let mut secrets = Vec::new();
        for one in asked {
            let (name, hosts, usage) = read_asked(one).ok_or(SessionFault::Message)?;
            secrets.push(opened(loaded, name, hosts, usage).await?);
        }
        let hosts: BTreeSet<Box<str>> =
            secrets.iter().flat_map(|secret| &secret.hosts).map(|host| host.name().into()).collect();
        let authority = SessionAuthority::new(&hosts)?;
        let bundle = loaded.roots.bundle_with(authority.pem());
        let marks = secrets.iter().map(|secret| secret.placeholder.as_bytes());
        let placeholders = Arc::new(Finder::new(marks, Case::Exact));
        let session = Self {
            authority,
            tls: loaded.tls.clone(),
            redactor: RwLock::new(Redactor::new(std::iter::empty())),
            known: RwLock::default(),
            placeholders,
            secrets,
        };
        session.look_for_values();
        Ok((session, bundle))
    }

    /// What the supervisor is told of it: placeholders.
    pub(crate) fn described(&self) -> Value {
        self.secrets
            .iter()
            .map(|secret| json!({ "name": secret.name, "placeholder": secret.placeholder }))
            .collect()
    }

    /// The secrets that are used at a host and port.
    pub(crate) fn secrets_for<'a>(&'a self, target: &'a Target) -> impl Iterator<Item = &'a OpenSecret> {
        self.secrets.iter().filter(|secret| secret.is_for(target))
    }

    /// Fetches the tokens anew that are about to be over.
    pub(crate) async fn refresh(&self, target: &Target) -> Result<(), OAuthFault> {
        let mut changed = false;
        for secret in self.secrets_for(target) {
            let Some(token) = &secret.token else { continue };
            let fresh = token.current().await?;
            let mut value = secret.value.write().unwrap_or_else(PoisonError::into_inner);
            if !Arc::ptr_eq(&value, &fresh) {
                (*value, changed) = (fresh, true);
            }
        }
        if changed {
            self.look_for_values();
        }
        Ok(())
    }

    /// Every value is taken out of responses from now on, those of before too.
    fn look_for_values(&self) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for secret in &self.secrets {
            let basis = secret.token.iter().flat_map(|token| token.held());
            for value in std::iter::once(secret.value()).chain(basis) {
                if !known.iter().any(|own| own.expose() == value.expose()) {
                    known.push(value);
                }
            }
        }
        let redactor = Redactor::new(known.iter().map(|value| value.expose()));
        *self.redactor.write().unwrap_or_else(PoisonError::into_inner) = redactor;
    }

    /// What takes values out of responses.
    pub(crate) fn redactor(&self) -> Redactor {
        self.redactor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl OpenSecret {
    /// Whether it is used at this host and port.
    pub(crate) fn is_for(&self, target: &Target) -> bool {
        self.hosts.iter().any(|host| host.is_at(&target.host, target.port))
    }

    /// What requests are given.
    pub(crate) fn value(&self) -> Arc<SecretValue> {
        Arc::clone(&self.value.read().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn opened(
    loaded: &Loaded,
    name: Box<str>,
    hosts: Vec<BrokerHost>,
    usage: SecretUse,
) -> Result<OpenSecret, SessionFault> {
    let own = || name.to_string();
    let secret = loaded.secrets.get(&name).ok_or_else(|| SessionFault::Unknown { name: own() })?;
    let (value, token) = match secret {
        LoadedSecret::Value(value) => (Arc::clone(value), None),
        LoadedSecret::Token(token) => {
            let value = token.current().await;
            let value = value.map_err(|fault| SessionFault::Token { name: own(), fault })?;
            (value, Some(Arc::clone(token)))
        }
    };
    if !value.expose().iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err(SessionFault::Unprintable { name: own() });
    }
    if value.expose().len() < SHORTEST && !usage.short {
        return Err(SessionFault::Short { name: own() });
    }
    let placeholder = placeholder_for(value.expose())?;
    let placeholder = placeholder.ok_or_else(|| SessionFault::NoPlaceholder { name: own() })?;
    Ok(OpenSecret { name, hosts, usage, placeholder, value: RwLock::new(value), token })
}
