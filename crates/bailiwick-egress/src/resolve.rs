//! Resolving names outside: with the host's own resolver, one that was named, or a fixed table.
//!
//! Answers are kept for a moment, so that a burst of connections asks once; they are judged anew for each of them.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hickory_proto::op::{Edns, Message, MessageType, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::dns::addresses_in;

/// How long one try may take, and how many there are.
const TRY: Duration = Duration::from_secs(2);
const TRIES: usize = 2;
/// How many names are remembered.
const MAX_RECENT: usize = 8192;
/// The most addresses of a name that are looked at.
const MAX_ADDRESSES: usize = 64;

/// Who resolves names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Resolver {
    /// The host, as its other programs do.
    #[default]
    System,
    /// The name server at this address.
    Server(SocketAddr),
}

type Slot = Arc<tokio::sync::Mutex<Option<(Instant, Vec<IpAddr>)>>>;

/// Resolves names.
#[derive(Debug)]
pub struct Lookup {
    resolver: Resolver,
    fixed: BTreeMap<Box<str>, Vec<IpAddr>>,
    keep: Duration,
    recent: Mutex<HashMap<Box<str>, Slot>>,
}

impl Lookup {
    /// Asks `resolver`, except for the names in `fixed`, and keeps each answer that long.
    #[must_use]
    pub fn new(resolver: Resolver, fixed: BTreeMap<Box<str>, Vec<IpAddr>>, keep: Duration) -> Self {
        Self { resolver, fixed, keep, recent: Mutex::default() }
    }

    /// Whether `name` has fixed addresses and is never looked up outside.
    pub(crate) fn is_fixed(&self, name: &str) -> bool {
        self.fixed.contains_key(name)
    }

    /// The addresses of `name`; none if it has none or no server answers.
    pub async fn addresses(&self, name: &str) -> Vec<IpAddr> {
        if let Some(fixed) = self.fixed.get(name) {
            return fixed.clone();
        }
        let slot = {
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            if recent.len() >= MAX_RECENT {
                recent.clear();
            }
            Slot::clone(recent.entry(name.into()).or_default())
        };
        let mut known = slot.lock().await;
        if let Some((when, addresses)) = &*known
            && when.elapsed() < self.keep
        {
            return addresses.clone();
        }
        let mut addresses = match self.resolver {
            Resolver::System => system(name).await,
            Resolver::Server(server) => ask(server, name).await,
        };
        addresses.dedup();
        // Cutting the list must not cut off the one address that gives it away.
        if addresses.len() > MAX_ADDRESSES {
            addresses.clear();
        }
        *known = Some((Instant::now(), addresses.clone()));
        addresses
    }
}

async fn system(name: &str) -> Vec<IpAddr> {
    let found = tokio::net::lookup_host((name, 0)).await;
    found.map(|all| all.map(|address| address.ip()).collect()).unwrap_or_default()
}

/// Asks one server for both kinds of address.
async fn ask(server: SocketAddr, name: &str) -> Vec<IpAddr> {
    let both = tokio::join!(ask_for(server, name, RecordType::A), ask_for(server, name, RecordType::AAAA));
    let (v4, v6) = both;
    v4.into_iter().chain(v6).flatten().collect()
}

async fn ask_for(server: SocketAddr, name: &str, kind: RecordType) -> Option<Vec<IpAddr>> {
    let name = Name::from_ascii(format!("{name}.")).ok()?;
    let query = Query::query(name, kind);
    for _ in 0..TRIES {
        let mut id = [0; 2];
        getrandom::fill(&mut id).ok()?;
        let question = question(u16::from_be_bytes(id), &query)?;
        let reply = match timeout(TRY, over_udp(server, &question, &query)).await {
            Ok(Ok(reply)) if reply.metadata.truncation => {
                timeout(TRY, over_tcp(server, &question, &query)).await
            }
            other => other,
        };
        if let Ok(Ok(reply)) = reply {
            let fine = reply.metadata.response_code == ResponseCode::NoError;
            return fine.then(|| addresses_in(&reply, &query));
        }
    }
    None
}

fn question(id: u16, query: &Query) -> Option<Vec<u8>> {
    let mut message = Message::query();
    message.metadata.id = id;
    message.metadata.recursion_desired = true;
    message.add_query(query.clone());
    let mut edns = Edns::new();
    edns.set_max_payload(1232);
    message.set_edns(edns);
    message.to_vec().ok()
}

async fn over_udp(server: SocketAddr, question: &[u8], query: &Query) -> io::Result<Message> {
    let any: SocketAddr = if server.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(server).await?;
    socket.send(question).await?;
    let mut bytes = vec![0; 4096];
    loop {
        let length = socket.recv(&mut bytes).await?;
        if let Some(reply) = reply_to(question, query, bytes.get(..length).unwrap_or_default()) {
            return Ok(reply);
        }
    }
}

async fn over_tcp(server: SocketAddr, question: &[u8], query: &Query) -> io::Result<Message> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(question.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], question].concat()).await?;
    let mut bytes = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut bytes).await?;
    reply_to(question, query, &bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The reply, if it is one to this very question.
fn reply_to(question: &[u8], query: &Query, bytes: &[u8]) -> Option<Message> {
    let reply = Message::from_vec(bytes).ok()?;
    let same_id = question.first_chunk::<2>().is_some_and(|id| reply.metadata.id == u16::from_be_bytes(*id));
    let is_reply = reply.metadata.message_type == MessageType::Response;
    (same_id && is_reply && reply.queries.as_slice() == std::slice::from_ref(query)).then_some(reply)
}

/// For fuzzing: what is made of a reply to our own question for the addresses of `a.test`.
#[must_use]
pub fn answer_for_fuzzing(bytes: &[u8]) -> Vec<IpAddr> {
    let query = Name::from_ascii("a.test.").map(|name| Query::query(name, RecordType::A));
    let Ok(query) = query else { return Vec::new() };
    let question = bytes.first_chunk::<2>().copied().unwrap_or_default();
    reply_to(&question, &query, bytes).map(|reply| addresses_in(&reply, &query)).unwrap_or_default()
}
