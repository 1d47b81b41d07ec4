//! The process that holds the values: reads them, opens sessions and takes connections, as the supervisor says.
//!
//! It keeps no file open but its sockets, is in no core file, and cannot be looked into by other processes of its user. It
//! ends when the supervisor does.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bailiwick_egress::{Dialler, Lookup, Replayed, Resolver, Target};
use bailiwick_policy::net::Host;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{DumpableBehavior, set_dumpable_behavior, setpgid};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::connection::{self, TakenConnection};
use crate::oauth::{OAuth, TokenSource};
use crate::referee::Referee;
use crate::session::{Loaded, LoadedSecret, OpenSession};
use crate::source::{SecretSource as _, Source, own_environment};
use crate::trust::SystemRoots;
use crate::value::SecretValue;
use crate::wire::{Packet, Wanted, receive, receive_packet, receive_soon, send, send_soon};

/// How long a name of an OAuth service is kept.
const KEEP: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Holder {
    loaded: OnceLock<Loaded>,
    sessions: Mutex<(u64, HashMap<u64, Arc<OpenSession>>)>,
}

/// Serves the supervisor at the other end of this socket until it has gone.
///
/// # Errors
/// If the socket is none of a supervisor's, or no thread can be started.
pub fn serve_secrets(control: OwnedFd) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let holder = Arc::new(Holder::default());
    while let Some(Packet { wanted, stream, sockets }) = receive_packet(&control)? {
        let stream = UnixStream::from(stream);
        match (wanted, sockets) {
            (Wanted::Load, _) => {
                let message = receive(&stream)?;
                let answer = holder.load(&message).unwrap_or_else(|why| json!({ "error": why }));
                send(&stream, &answer)?;
            }
            (Wanted::Session, _) => drop(runtime.spawn(Arc::clone(&holder).session(stream))),
            (Wanted::Connection, Some(sockets)) => {
                drop(runtime.spawn(Arc::clone(&holder).connection(stream, sockets)));
            }
            (Wanted::Connection, None) => {}
        }
    }
    runtime.shutdown_background();
    Ok(())
}

/// Makes this process one that no other of its user may look into, that leaves no core file, and that signals of the
/// terminal do not reach. After the sources were read: programs that are sources may ask at the terminal.
///
/// # Errors
/// If the kernel refuses.
fn seal() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // Refused to the leader of a session, which has no group above it to leave.
    let _ = setpgid(None, None);
    Ok(())
}

impl Holder {
    /// Reads every source. The answer names variables that have a value in them.
    fn load(&self, message: &Value) -> Result<Value, String> {
        let broken = || "a message that is none of ours".to_owned();
        let list = message.get("secrets").and_then(Value::as_array).ok_or_else(broken)?;
        let (mut values, mut oauths, mut taken) = (Vec::new(), Vec::new(), Vec::new());
        for one in list {
            let name = one.get("name").and_then(Value::as_str).ok_or_else(broken)?;
            let source = one.get("source").and_then(Value::as_str).ok_or_else(broken)?;
            values.push((Box::<str>::from(name), read(name, source, &mut taken)?));
            let oauth = match one.get("oauth") {
                None | Some(Value::Null) => None,
                Some(oauth) => Some(OAuth::from_json(oauth).ok_or_else(broken)?),
            };
            oauths.push(match oauth {
                None => None,
                Some(oauth) => {
                    let own = oauth
                        .client_secret
                        .as_ref()
                        .map(|source| read(name, &source.to_string(), &mut taken));
                    Some((oauth, own.transpose()?))
                }
            });
        }
        let own = oauths.iter().flatten().filter_map(|(_, own)| own.as_ref());
        let all = values.iter().map(|(_, value)| value).chain(own).map(SecretValue::expose);
        taken.extend(own_environment::erase(all).map_err(|why| why.to_string())?);
        seal().map_err(|why| format!("cannot keep others from looking into this process: {why}"))?;
        let roots = SystemRoots::load();
        let tls = roots.upstream().map_err(|why| format!("cannot set up TLS: {why}"))?;
        let lookup = Arc::new(lookup_in(message).ok_or_else(broken)?);
        let secrets = values.into_iter().zip(oauths).map(|((name, value), oauth)| {
            let secret = match oauth {
                None => LoadedSecret::Value(Arc::new(value)),
                Some((oauth, own)) => {
                    let source = TokenSource::new(oauth, value, own, Arc::clone(&lookup), &tls);
                    LoadedSecret::Token(Arc::new(source))
                }
            };
            (name, secret)
        });
        let loaded = Loaded { secrets: secrets.collect(), roots, tls };
        self.loaded.set(loaded).map_err(|_| "the sources were read before".to_owned())?;
        Ok(json!({ "in_environment": taken }))
    }

    /// Opens a session and keeps it until its stream is closed.
    async fn session(self: Arc<Self>, stream: UnixStream) {
        let Ok(mut stream) = to_tokio(stream) else { return };
        let Ok(message) = receive_soon(&mut stream).await else { return };
        let opened = match self.loaded.get() {
            Some(loaded) => OpenSession::open(loaded, &message).await.map_err(|why| why.to_string()),
            None => Err("no source was read yet".to_owned()),
        };
        let number = match opened {
            Err(why) => return drop(send_soon(&mut stream, &json!({ "error": why })).await),
            Ok((session, bundle)) => {
                let described = session.described();
                let number = {
                    let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
                    sessions.0 += 1;
                    let number = sessions.0;
                    sessions.1.insert(number, Arc::new(session));
                    number
                };
                let bundle = String::from_utf8_lossy(&bundle).into_owned();
                let answer = json!({ "session": number, "secrets": described, "bundle": bundle });
                drop(send_soon(&mut stream, &answer).await);
                number
            }
        };
        // Nothing more is said: this is the end.
        drop(receive_soon(&mut stream).await);
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&number);
    }

    /// Takes a connection to its end.
    async fn connection(self: Arc<Self>, stream: UnixStream, (client, server): (OwnedFd, OwnedFd)) {
        let Ok(mut stream) = to_tokio(stream) else { return };
        let Ok(message) = receive_soon(&mut stream).await else { return };
        let Some(mut taken) = self.taken(&message, client, server) else { return };
        let Some(session) = taken.session.take() else { return };
        let (referee, ended) = Referee::over(stream);
        tokio::select! {
            () = connection::serve(session, taken, Arc::new(referee)) => {}
            _ = ended => {}
        }
    }

    fn taken(&self, message: &Value, client: OwnedFd, server: OwnedFd) -> Option<TakenConnection> {
        let number = message.get("session")?.as_u64()?;
        let session = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).1.get(&number).cloned()?;
        let host = Host::new(message.get("host")?.as_str()?).ok()?;
        let port = u16::try_from(message.get("port")?.as_u64()?).ok()?;
        let said = STANDARD.decode(message.get("said")?.as_str()?).ok()?;
        let addresses = message.get("addresses")?.as_array()?.iter();
        let addresses: Vec<SocketAddr> =
            addresses.map(|text| text.as_str()?.parse().ok()).collect::<Option<_>>()?;
        let time = |key: &str| message.get(key)?.as_u64().map(Duration::from_millis);
        let server = std::net::TcpStream::from(server);
        server.set_nonblocking(true).ok()?;
        server.set_nodelay(true).ok()?;
        Some(TakenConnection {
            session: Some(session),
            target: Target::new(host, port),
            client: Replayed::from_parts(said, client).ok()?,
            server: TcpStream::from_std(server).ok()?,
            dialler: Dialler::new(addresses, time("patience")?),
            idle: time("idle")?,
        })
    }
}

/// The value behind a source, in the words of the source if there is none. A variable is taken out of the environment.
fn read(name: &str, source: &str, taken: &mut Vec<String>) -> Result<SecretValue, String> {
    let in_words = |why: String| format!("the secret `{name}`: {why}");
    let source: Source = source.parse().map_err(|why| in_words(format!("{why}")))?;
    if let Source::Env(variable) = &source {
        taken.push(variable.clone());
    }
    let held = source.fetch().map_err(|why| in_words(why.to_string()))?;
    held.read().map_err(|why| in_words(why.to_string()))
}

fn lookup_in(message: &Value) -> Option<Lookup> {
    let resolver = message.get("resolver").filter(|resolver| !resolver.is_null());
    let resolver = match resolver {
        None => Resolver::System,
        Some(address) => Resolver::Server(address.as_str()?.parse().ok()?),
    };
    let mut hosts = BTreeMap::new();
    for (name, all) in message.get("hosts")?.as_object()? {
        let all = all.as_array()?.iter().map(|text| text.as_str()?.parse::<IpAddr>().ok());
        hosts.insert(Box::<str>::from(name.as_str()), all.collect::<Option<Vec<_>>>()?);
    }
    Some(Lookup::new(resolver, hosts, KEEP))
}

fn to_tokio(stream: UnixStream) -> io::Result<tokio::net::UnixStream> {
    stream.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(stream)
}
