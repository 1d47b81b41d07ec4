//! The process that holds the values, as the supervisor has it, and the secrets of one sandbox.
//!
//! A sandbox starts as a copy of the supervisor's memory. So no value is ever in there: a process of its own reads the
//! sources, before any sandbox is made, and TLS is ended in it. The supervisor hands it connections, and is asked for each
//! request whether it may be sent.
//!
//! Fails closed when that process has ended: nothing reaches the hosts of secrets any more.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bailiwick_egress::{ClearText, Code, Handover, Resolver, Target, TlsEnd};
use bailiwick_policy::capability::BrokerHost;
use bailiwick_policy::plan::{BrokeredSecret, Plan};
use bailiwick_policy::secret_use::SecretUse;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::find::{Case, Finder, Search};
use crate::oauth::OAuth;
use crate::plans;
use crate::referee::Decider;
use crate::session::asked_for;
use crate::source::{NamedSource, own_environment};
use crate::trust;
use crate::wire::{Wanted, control_pair, converse, send_packet, send_soon};

/// Why secrets cannot be brokered.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// The process that is to hold them does not run.
    #[error("cannot start the process that holds secrets: {0}")]
    Start(io::Error),
    /// It cannot be asked.
    #[error("the process that holds secrets does not answer: {0}")]
    Silent(io::Error),
    /// It says why not. No value is part of that.
    #[error("{0}")]
    Refused(String),
    /// A variable that has the value of a secret cannot be emptied in this process.
    #[error("cannot empty a variable that has the value of a secret: {0}")]
    Environment(io::Error),
}

/// A secret to be read: where its value comes from, and what is fetched with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadSecret {
    /// Its name and source.
    pub named: NamedSource,
    /// The service that gives a token for it, which is then what requests are given.
    pub oauth: Option<OAuth>,
    /// The only hosts that the user's settings have for it; every host that is granted if absent.
    pub hosts: Option<Vec<BrokerHost>>,
}

/// How the process finds OAuth services.
#[derive(Debug, Clone, Default)]
pub struct ServiceNames {
    /// Who resolves names.
    pub resolver: Resolver,
    /// Names with fixed addresses.
    pub hosts: BTreeMap<Box<str>, Vec<IpAddr>>,
}

/// The process that holds the values of secrets. It ends when this is dropped.
pub struct BrokerProcess {
    control: OwnedFd,
    child: Child,
    /// What was read. No value is part of it.
    secrets: Vec<LoadSecret>,
}

impl BrokerProcess {
    /// Starts `command` with the socket on its stdin, and has it read the secrets. It is to call [`serve_secrets`](crate::serve_secrets).
    /// Variables of this process's own environment that have a value in them are empty afterwards.
    ///
    /// # Errors
    /// Which source has no value, and why.
    pub fn start(
        mut command: Command,
        secrets: Vec<LoadSecret>,
        names: &ServiceNames,
    ) -> Result<Arc<Self>, BrokerError> {
        let (control, theirs) = control_pair().map_err(BrokerError::Start)?;
        // No variable is set or taken away: a changed environment would be a copy of all of it on the heap.
        let child = command.stdin(Stdio::from(theirs)).stdout(Stdio::null()).spawn();
        // The command has the other end, and would keep it open.
        drop(command);
        let process = Self { control, child: child.map_err(BrokerError::Start)?, secrets };
        process.load(names)?;
        Ok(Arc::new(process))
    }

    fn ask(&self, wanted: Wanted, message: &Value) -> Result<(Value, UnixStream), BrokerError> {
        let (stream, theirs) = UnixStream::pair().map_err(BrokerError::Silent)?;
        send_packet(&self.control, wanted, &[theirs.as_fd()]).map_err(BrokerError::Silent)?;
        drop(theirs);
        let answer = converse(&stream, message).map_err(BrokerError::Silent)?;
        match answer.get("error").and_then(Value::as_str) {
            Some(why) => Err(BrokerError::Refused(why.to_owned())),
            None => Ok((answer, stream)),
        }
    }

    fn load(&self, names: &ServiceNames) -> Result<(), BrokerError> {
        let secrets: Vec<Value> = self
            .secrets
            .iter()
            .map(|secret| {
                json!({ "name": secret.named.name, "source": secret.named.source.to_string(),
                        "oauth": secret.oauth.as_ref().map(OAuth::to_json) })
            })
            .collect();
        let server = match names.resolver {
            Resolver::System => None,
            Resolver::Server(address) => Some(address.to_string()),
        };
        let hosts: BTreeMap<&str, Vec<String>> = names
            .hosts
            .iter()
            .map(|(name, all)| (&**name, all.iter().map(ToString::to_string).collect()))
            .collect();
        let message = json!({ "secrets": secrets, "resolver": server, "hosts": hosts });
        let (answer, _) = self.ask(Wanted::Load, &message)?;
        let emptied = answer.get("in_environment").and_then(Value::as_array).into_iter().flatten();
        let emptied: Vec<&str> = emptied.filter_map(Value::as_str).collect();
        own_environment::empty(&emptied).map_err(BrokerError::Environment)
    }

    /// The secrets of a plan, at the hosts that the user's settings have too; nothing if it brokers none.
    ///
    /// # Errors
    /// Which secret cannot be brokered for this plan, and why: it has no source, or the plan lets the source be read.
    pub fn agreed(&self, plan: &Plan) -> Result<Vec<BrokeredSecret>, BrokerError> {
        let wanted = plan.environment().brokered.iter().map(|secret| &secret.value);
        let agreed = |secret: &BrokeredSecret| {
            let known = self.secrets.iter().find(|known| *known.named.name == *secret.name);
            let known = known.ok_or_else(|| no_source(secret))?;
            plans::must_stay_outside(plan, known)?;
            plans::met(secret, known)
        };
        wanted.map(|secret| agreed(secret).map_err(BrokerError::Refused)).collect()
    }

    /// Placeholders and a certificate authority for one sandbox; nothing if its plan brokers no secret.
    ///
    /// # Errors
    /// Which secret cannot be brokered for this plan, and why.
    pub fn session(self: &Arc<Self>, plan: &Plan) -> Result<Option<Brokering>, BrokerError> {
        let secrets = self.agreed(plan)?;
        if secrets.is_empty() {
            return Ok(None);
        }
        let asked = secrets.iter().map(|secret| asked_for(&secret.name, &secret.hosts, &secret.usage));
        let message = json!({ "secrets": asked.collect::<Vec<_>>() });
        let (answer, stream) = self.ask(Wanted::Session, &message)?;
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let kept = || {
            let number = answer.get("session")?.as_u64()?;
            let bundle = text(&answer, "bundle")?.into_bytes();
            let described = answer.get("secrets")?.as_array()?;
            let placeholders =
                described.iter().map(|one| Some((text(one, "name")?.into(), text(one, "placeholder")?)));
            Some((number, bundle, placeholders.collect::<Option<Vec<(Box<str>, String)>>>()?))
        };
        let (number, bundle, placeholders) =
            kept().ok_or_else(|| BrokerError::Silent(io::ErrorKind::InvalidData.into()))?;
        Ok(Some(Brokering { process: Arc::clone(self), stream, number, bundle, placeholders, secrets }))
    }
}

/// Neither what was read nor from where.
impl std::fmt::Debug for BrokerProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BrokerProcess").finish_non_exhaustive()
    }
}

impl Drop for BrokerProcess {
    fn drop(&mut self) {
        // It keeps nothing that would have to be written.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A secret without a source, and the line that names one.
#[must_use]
pub fn no_source(secret: &BrokeredSecret) -> String {
    format!(
        "`{secret}` has no source of its value; name one with `--secret {}=env:VARIABLE` (or `file:`, `cmd:`, `keyring:`, \
         `systemd:`) or in `[secrets]` of config.toml",
        secret.name
    )
}

/// Secrets with placeholders, ready for a sandbox to be made. No value is in this process.
pub struct Brokering {
    process: Arc<BrokerProcess>,
    /// The session is over when this is closed.
    stream: UnixStream,
    number: u64,
    bundle: Vec<u8>,
    placeholders: Vec<(Box<str>, String)>,
    secrets: Vec<BrokeredSecret>,
}

impl Brokering {
    /// The variables of the inside: placeholders.
    pub fn placeholders(&self) -> impl Iterator<Item = (&str, &str)> {
        self.placeholders.iter().map(|(name, text)| (&**name, text.as_str()))
    }

    /// Variables that tell programs of the list of authorities.
    #[must_use]
    pub fn variables() -> BTreeMap<String, String> {
        trust::VARIABLES.iter().map(|name| ((*name).to_owned(), trust::BUNDLE.to_owned())).collect()
    }

    /// The session's own authority alone, as PEM.
    pub(crate) fn authority(&self) -> &[u8] {
        // It is the first of the list.
        let end = b"-----END CERTIFICATE-----\n";
        let place = self.bundle.windows(end.len()).position(|window| window == end);
        self.bundle.get(..place.map_or(0, |place| place + end.len())).unwrap_or_default()
    }

    /// The files of the inside: the list of authorities, with the session's own.
    #[must_use]
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        trust::places().into_iter().map(|place| (place, self.bundle.clone())).collect()
    }

    /// What ends TLS for the hosts of the secrets.
    #[must_use]
    pub fn open(self) -> Arc<dyn TlsEnd> {
        let marks = self.placeholders.iter().map(|(_, text)| text.as_bytes());
        let clear = Arc::new(Finder::new(marks, Case::Ignored));
        let hosts = self.secrets.iter().flat_map(|secret| secret.hosts.clone()).collect();
        let uses = self.secrets.into_iter().map(|secret| (secret.name, secret.usage)).collect();
        Arc::new(RemoteEnd {
            process: self.process,
            _stream: self.stream,
            number: self.number,
            hosts,
            uses: Arc::new(uses),
            clear,
        })
    }
}

/// Hands connections to the process that holds the values.
struct RemoteEnd {
    process: Arc<BrokerProcess>,
    _stream: UnixStream,
    number: u64,
    hosts: Vec<BrokerHost>,
    uses: Arc<Vec<(Box<str>, SecretUse)>>,
    /// Finds placeholders whatever the case of letters: names of hosts have none.
    clear: Arc<Finder>,
}

impl TlsEnd for RemoteEnd {
    fn ends(&self, target: &Target) -> bool {
        self.hosts.iter().any(|host| host.is_at(&target.host, target.port))
    }

    fn watch(&self) -> Box<dyn ClearText> {
        Box::new(Watch { finder: Arc::clone(&self.clear), search: Search::default() })
    }

    fn take(&self, connection: Handover) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (process, number, uses) = (Arc::clone(&self.process), self.number, Arc::clone(&self.uses));
        Box::pin(hand_over(process, number, uses, connection))
    }
}

async fn hand_over(
    process: Arc<BrokerProcess>,
    number: u64,
    uses: Arc<Vec<(Box<str>, SecretUse)>>,
    connection: Handover,
) {
    let Handover { target, client, server, address, dialler, rules, tell, idle } = connection;
    let decider = Decider { target, address, addresses: dialler.addresses(), rules, tell, uses };
    let handed = || {
        let (said, client) = client.into_parts()?;
        let server = OwnedFd::from(server.into_std()?);
        let (stream, theirs) = UnixStream::pair()?;
        send_packet(&process.control, Wanted::Connection, &[theirs.as_fd(), client.as_fd(), server.as_fd()])?;
        stream.set_nonblocking(true)?;
        Ok::<_, io::Error>((said, tokio::net::UnixStream::from_std(stream)?))
    };
    let Ok((said, mut stream)) = handed() else { return decider.refuse(Code::SecretBroker) };
    let addresses: Vec<String> = dialler.sockets().iter().map(ToString::to_string).collect();
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let message = json!({
        "session": number, "host": decider.target.host.to_string(), "port": decider.target.port,
        "said": STANDARD.encode(said), "addresses": addresses, "patience": millis(dialler.patience()),
        "idle": millis(idle),
    });
    if send_soon(&mut stream, &message).await.is_err() {
        return decider.refuse(Code::SecretBroker);
    }
    decider.answer(&mut stream).await;
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
