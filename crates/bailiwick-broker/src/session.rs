//! The secrets of one sandbox: what stands inside for them, and the table by which values take the places of placeholders.
//!
//! Two steps, because a sandbox starts as a copy of this process: [`Brokering`] is made before it and has no value in this
//! process's memory; [`Brokering::open`] reads the values once the copy was made.
//!
//! Fails closed when a value is missing, cannot stand in a request, or is too short to be told from other text.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use bailiwick_egress::{ClearText, Handover, Target, TlsEnd};
use bailiwick_policy::capability::BrokerHost;
use bailiwick_policy::manifest::SecretUse;
use bailiwick_policy::plan::BrokeredSecret;
use rustls::ClientConfig;

use crate::authority::{CertificateError, SessionAuthority};
use crate::connection;
use crate::find::{Case, Finder, Search};
use crate::placeholder::{SHORTEST, placeholder_for};
use crate::redact::Redactor;
use crate::source::own_environment;
use crate::trust::{self, SystemRoots};
use crate::value::{HeldSecret, SecretValue};

/// Why secrets cannot be brokered.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// The value is not there any more.
    #[error("the value of `{name}` cannot be read: {source}")]
    Unread {
        /// The secret.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The value cannot stand in a request.
    #[error(
        "the value of `{name}` has characters other than printable ASCII, so it can be put into no request"
    )]
    Unprintable {
        /// The secret.
        name: String,
    },
    /// The value is short.
    #[error(
        "the value of `{name}` has fewer than {SHORTEST} characters, so that it is easily guessed; a manifest can allow it \
         with `[secrets.{name}]` and below it `short = \"allow\"`"
    )]
    Short {
        /// The secret.
        name: String,
    },
    /// Nothing looks like the value without being it.
    #[error("no placeholder can be made for the value of `{name}`")]
    NoPlaceholder {
        /// The secret.
        name: String,
    },
    /// No certificate can be made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// TLS cannot be spoken.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// Secrets with placeholders, ready for a sandbox to be made. It has no value in memory.
pub struct Brokering {
    secrets: Vec<Kept>,
    authority: SessionAuthority,
    client: Arc<ClientConfig>,
    bundle: Vec<u8>,
}

struct Kept {
    name: Box<str>,
    hosts: Vec<BrokerHost>,
    usage: SecretUse,
    placeholder: String,
    held: HeldSecret,
}

/// A secret of an open session.
pub(crate) struct OpenSecret {
    pub(crate) name: Box<str>,
    hosts: Vec<BrokerHost>,
    pub(crate) usage: SecretUse,
    pub(crate) placeholder: String,
    pub(crate) value: SecretValue,
}

/// A session whose values are known: it ends TLS for their hosts.
pub(crate) struct OpenBroker {
    pub(crate) secrets: Vec<OpenSecret>,
    pub(crate) authority: SessionAuthority,
    pub(crate) client: Arc<ClientConfig>,
    pub(crate) redactor: Redactor,
    /// Finds placeholders.
    pub(crate) placeholders: Arc<Finder>,
    /// The same whatever the case of letters: names of hosts have none.
    clear: Arc<Finder>,
}

impl Brokering {
    /// Makes placeholders and a certificate authority for these secrets.
    ///
    /// # Errors
    /// Which value cannot be brokered, and why.
    pub fn new(secrets: impl IntoIterator<Item = (BrokeredSecret, HeldSecret)>) -> Result<Self, BrokerError> {
        let kept: Vec<Kept> =
            secrets.into_iter().map(|(secret, held)| kept(secret, held)).collect::<Result<_, _>>()?;
        let hosts: BTreeSet<Box<str>> =
            kept.iter().flat_map(|secret| &secret.hosts).map(|host| host.name().into()).collect();
        let authority = SessionAuthority::new(&hosts)?;
        let roots = SystemRoots::load();
        let bundle = roots.bundle_with(authority.pem());
        Ok(Self { secrets: kept, authority, client: roots.client()?, bundle })
    }

    /// The variables of the inside: placeholders.
    pub fn placeholders(&self) -> impl Iterator<Item = (&str, &str)> {
        self.secrets.iter().map(|secret| (&*secret.name, secret.placeholder.as_str()))
    }

    /// Variables that tell programs of the list of authorities.
    #[must_use]
    pub fn variables() -> BTreeMap<String, String> {
        trust::VARIABLES.iter().map(|name| ((*name).to_owned(), trust::BUNDLE.to_owned())).collect()
    }

    /// The files of the inside: the list of authorities, with the session's own.
    #[must_use]
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        trust::places().into_iter().map(|place| (place, self.bundle.clone())).collect()
    }

    /// Reads the values. To be called when the sandbox was made and before its program runs.
    ///
    /// # Errors
    /// Which value cannot be read.
    pub fn open(self) -> Result<Arc<dyn TlsEnd>, BrokerError> {
        let secrets: Vec<OpenSecret> = self.secrets.into_iter().map(opened).collect::<Result<_, _>>()?;
        let values = Finder::new(secrets.iter().map(|secret| secret.value.expose()), Case::Exact);
        let marks = || secrets.iter().map(|secret| secret.placeholder.as_bytes());
        let (placeholders, clear) = (Finder::new(marks(), Case::Exact), Finder::new(marks(), Case::Ignored));
        Ok(Arc::new(Session(Arc::new(OpenBroker {
            secrets,
            authority: self.authority,
            client: self.client,
            redactor: Redactor::new(values),
            placeholders: Arc::new(placeholders),
            clear: Arc::new(clear),
        }))))
    }
}

fn kept(secret: BrokeredSecret, held: HeldSecret) -> Result<Kept, BrokerError> {
    let BrokeredSecret { name, hosts, usage } = secret;
    let unread = |source| BrokerError::Unread { name: name.to_string(), source };
    // The only moment at which the value is in memory before the sandbox is made; the buffer is wiped at its end.
    let value = held.read().map_err(unread)?;
    own_environment::erase(value.expose()).map_err(unread)?;
    if !value.expose().iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err(BrokerError::Unprintable { name: name.into() });
    }
    if value.expose().len() < SHORTEST && !usage.short {
        return Err(BrokerError::Short { name: name.into() });
    }
    let placeholder = placeholder_for(value.expose()).map_err(unread)?;
    let placeholder = placeholder.ok_or_else(|| BrokerError::NoPlaceholder { name: name.to_string() })?;
    Ok(Kept { name, hosts, usage, placeholder, held })
}

fn opened(kept: Kept) -> Result<OpenSecret, BrokerError> {
    let Kept { name, hosts, usage, placeholder, held } = kept;
    let value = held.read().map_err(|source| BrokerError::Unread { name: name.to_string(), source })?;
    Ok(OpenSecret { name, hosts, usage, placeholder, value })
}

impl OpenSecret {
    /// Whether it is used at this host and port.
    pub(crate) fn is_for(&self, target: &Target) -> bool {
        self.hosts.iter().any(|host| host.is_at(&target.host, target.port))
    }
}

impl OpenBroker {
    /// The secrets that are used at a host and port.
    pub(crate) fn secrets_for<'a>(&'a self, target: &'a Target) -> impl Iterator<Item = &'a OpenSecret> {
        self.secrets.iter().filter(|secret| secret.is_for(target))
    }
}

struct Session(Arc<OpenBroker>);

impl TlsEnd for Session {
    fn ends(&self, target: &Target) -> bool {
        self.0.secrets_for(target).next().is_some()
    }

    fn watch(&self) -> Box<dyn ClearText> {
        Box::new(Watch { finder: Arc::clone(&self.0.clear), search: Search::default() })
    }

    fn take(&self, connection: Handover) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(connection::serve(Arc::clone(&self.0), connection))
    }
}

struct Watch {
    finder: Arc<Finder>,
    search: Search,
}

impl ClearText for Watch {
    fn is_forbidden(&mut self, bytes: &[u8]) -> bool {
        let mut any = false;
        self.search.feed(&self.finder, bytes, |_| any = true);
        any
    }
}
