//! One session: what is shared by everything that answers one sandbox, and the course of one connection.
//!
//! A connection asks [`decide`] until the answer is final, is told why if it is refused, and is dialled at an address
//! that was judged if it is not.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bailiwick_policy::net::{Host, canonical_ip};
use bailiwick_policy::plan::Network;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::blocks::Blocks;
use crate::code::Code;
use crate::copy::{Copier, Pulse};
use crate::decide::{self, Known, Pass, Refusal, Rules, Target, Verdict, decide};
use crate::event::{EgressOutcome, Event};
use crate::handover::{Teller, TlsEnd};
use crate::hello::{Hello, Listening, Request};
use crate::limits::{Bucket, Limits};
use crate::names::{Names, WildcardNames};
use crate::own_ports::is_own;
use crate::requests::Passage;
use crate::resolve::Lookup;
use crate::serve::Options;
use crate::stream::Stream;

/// How many refused names are remembered, so that each is told once.
const REMEMBERED: usize = 1024;
/// How many repeated complaints are told a second.
const COMPLAINTS_A_SECOND: u32 = 20;
/// How long one address is dialled before the next is tried beside it.
const STAGGER: Duration = Duration::from_millis(250);
/// How long a refused client is listened to so that it hears the refusal.
const FAREWELL: Duration = Duration::from_millis(200);
/// `access_denied`, as TLS says it.
pub(crate) const TLS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

/// What everything that answers one sandbox shares.
pub(crate) struct Session {
    pub(crate) rules: Rules,
    pub(crate) limits: Limits,
    pub(crate) copier: Copier,
    names: Mutex<Names>,
    lookup: Lookup,
    wildcard_names: Mutex<WildcardNames>,
    complaints: Mutex<(HashSet<Box<str>>, Bucket)>,
    listener: Teller,
    pub(crate) tls_end: Option<Arc<dyn TlsEnd>>,
    open: AtomicUsize,
    pending: AtomicUsize,
}

/// Why a connection ends before it is done.
pub(crate) enum End {
    /// It is refused.
    Refused(Refusal),
    /// A side went away.
    Gone,
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Code> for End {
    fn from(code: Code) -> Self {
        Self::Refused(Refusal::new(code))
    }
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// A place taken in a count that is given back.
pub(crate) struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn take_place(count: &AtomicUsize, most: usize) -> Option<Place<'_>> {
    let place = Place(count);
    (count.fetch_add(1, Ordering::Relaxed) < most).then_some(place)
}

/// A connection that may go on.
pub(crate) struct Settled {
    pub(crate) pass: Pass,
    pub(crate) said: Vec<u8>,
    pub(crate) greeted: bool,
}

/// What is said to a client before it is heard, and what it has said already: the difference between fronts.
#[derive(Default)]
pub(crate) struct Opening {
    /// Said by us once the connection may go on.
    pub(crate) greeting: &'static [u8],
    /// Said by the client already.
    pub(crate) said: Vec<u8>,
}

impl Session {
    pub(crate) fn new(network: &Network, options: Options) -> Self {
        let now = Instant::now();
        let rules = Rules::new(network);
        let names = Names::new(Blocks::beyond(&rules), &options.limits, now);
        Self {
            rules,
            limits: options.limits,
            copier: Copier::new(options.copying),
            names: Mutex::new(names),
            lookup: Lookup::new(options.resolver, options.hosts, options.limits.answer),
            wildcard_names: Mutex::new(WildcardNames::new(&options.limits, now)),
            complaints: Mutex::new((HashSet::new(), Bucket::new(COMPLAINTS_A_SECOND, now))),
            listener: options.events.into(),
            tls_end: options.tls_end,
            open: AtomicUsize::new(0),
            pending: AtomicUsize::new(0),
        }
    }

    pub(crate) fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tell(&self, event: Event) {
        (self.listener)(event);
    }

    pub(crate) fn teller(&self) -> Teller {
        Arc::clone(&self.listener)
    }

    /// Whether a complaint about `name` was not told lately. A flood of them is told in part.
    pub(crate) fn is_news(&self, name: &str) -> bool {
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let (told, bucket) = &mut *complaints;
        if told.contains(name) || !bucket.take(Instant::now()) {
            return false;
        }
        if told.len() >= REMEMBERED {
            told.clear();
        }
        told.insert(name.into())
    }

    /// Whom a connection to this address is for.
    pub(crate) fn target(&self, address: SocketAddr) -> Target {
        let ip = canonical_ip(address.ip());
        let name = self.names().name(ip).map(Box::from);
        Target::new(name.map_or(Host::Ip(ip), Host::Name), address.port())
    }

    /// Whether a connection is for an address that is kept for names, stands for none and would be granted: behind it
    /// may be a real host, which cannot be told from a name that was never asked for.
    pub(crate) fn is_reserved(&self, target: &Target) -> bool {
        let Host::Ip(ip) = target.host else { return false };
        self.names().is_unassigned(ip) && self.rules.name(&target.host)
    }

    /// Breaks a connection off that nothing could allow.
    pub(crate) async fn turn_away(&self, client: &Stream, target: &Target, code: Code) {
        let refusal = Refusal::new(code);
        self.tell_refused(target, None, refusal.clone());
        send_refusal(client, None, target, &refusal).await;
    }

    /// A place for one more connection; `None`, and an event, if all are taken.
    pub(crate) fn admit(&self) -> Option<Place<'_>> {
        let place = take_place(&self.open, self.limits.connections);
        if place.is_none() {
            self.complain_of_crowd();
        }
        place
    }

    fn complain_of_crowd(&self) {
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        if complaints.1.take(Instant::now()) {
            drop(complaints);
            self.tell(Event::new("*", None, EgressOutcome::Refused(Refusal::new(Code::TooManyConnections))));
        }
    }

    /// Takes a connection from its first word to its last.
    pub(crate) async fn relay_client(&self, client: Stream, target: Target, opening: Opening) {
        if let Some(end) = self.tls_end(&target) {
            return Box::pin(self.hand_over(client, target, opening, end)).await;
        }
        let greeting = opening.greeting;
        let mut hello = None;
        let dialled = async {
            // In boxes: what is needed to make the connection takes no memory after that.
            let settled = Box::pin(self.settle(&client, &target, opening, &mut hello)).await?;
            let server = Box::pin(self.dial(&settled.pass, target.port)).await?;
            let greeting = if settled.greeted { &[] } else { greeting };
            client.write_all(greeting).await?;
            Ok((settled, server))
        };
        match dialled.await {
            Ok((settled, server)) => self.copy(&client, &target, settled, server).await.unwrap_or_default(),
            Err(End::Gone) => {}
            Err(End::Refused(refusal)) => {
                let request = if let Some(Hello::Http(request)) = &hello { Some(request) } else { None };
                self.tell_refused(&target, request, refusal.clone());
                Box::pin(send_refusal(&client, hello.as_ref(), &target, &refusal)).await;
            }
        }
    }

    pub(crate) fn tell_refused(&self, target: &Target, request: Option<&Request>, refusal: Refusal) {
        let host = target.host.to_string();
        // What must not be sent is not repeated in the record.
        let host = if self.is_forbidden(&host) { "*" } else { &*host };
        let request = request.filter(|request| !self.is_forbidden(&request.path));
        let event = Event::new(host, Some(target.port), EgressOutcome::Refused(refusal));
        self.tell(match request {
            Some(request) => event.about(&request.method, &request.path),
            None => event,
        });
    }

    /// Asks until the answer is final.
    pub(crate) async fn settle(
        &self,
        client: &Stream,
        target: &Target,
        opening: Opening,
        hello: &mut Option<Hello>,
    ) -> Result<Settled, End> {
        let Some(_pending) = take_place(&self.pending, self.limits.pending) else {
            self.complain_of_crowd();
            return Err(End::Gone);
        };
        let mut addresses = match target.host {
            Host::Ip(ip) => Some(vec![ip]),
            Host::Name(_) => None,
        };
        let mut listening = Listening::default();
        if !opening.said.is_empty() {
            *hello = listening.read_piece(&opening.said);
        }
        let mut greeted = false;
        loop {
            let known = Known { addresses: addresses.as_deref(), hello: hello.as_ref() };
            match decide(&self.rules, target, known) {
                Verdict::Resolve => addresses = Some(self.resolve(&target.host).await?),
                Verdict::Listen => {
                    client.write_all(opening.greeting).await?;
                    greeted = true;
                    *hello = Some(self.listen(client, &mut listening).await?);
                }
                Verdict::Allow(pass) => return Ok(Settled { pass, said: listening.into_bytes(), greeted }),
                Verdict::Refuse(refusal) => return Err(refusal.into()),
            }
        }
    }

    async fn resolve(&self, host: &Host) -> Result<Vec<IpAddr>, End> {
        let Host::Name(name) = host else { return Ok(Vec::new()) };
        if self.is_forbidden(name) {
            return Err(Code::SecretMisdirected.into());
        }
        if !self.lookup.is_fixed(name)
            && let Some(zones) = self.rules.wildcards_of(host)
        {
            let mut names = self.wildcard_names.lock().unwrap_or_else(PoisonError::into_inner);
            if !names.admit(name, &zones, Instant::now()) {
                return Err(Code::WildcardSpent.into());
            }
        }
        timeout(self.limits.dial, self.lookup.addresses(name)).await.map_err(|_| Code::NameUnresolved.into())
    }

    /// What the client says. One that says too little may wait for the server to speak: `decide` names that grant.
    pub(crate) async fn listen(&self, client: &Stream, listening: &mut Listening) -> Result<Hello, End> {
        let heard = async {
            let mut piece = vec![0; 4096];
            loop {
                let length = client.read(&mut piece).await?;
                match listening.read_piece(piece.get(..length).unwrap_or_default()) {
                    Some(hello) => return Ok(hello),
                    None if length == 0 => return Err(End::Gone),
                    None => {}
                }
            }
        };
        timeout(self.limits.hello, heard).await.unwrap_or(Ok(Hello::Unreadable(Code::HelloLate)))
    }

    /// Passes on what was said, and copies until the end.
    async fn copy(
        &self,
        client: &Stream,
        target: &Target,
        settled: Settled,
        (server, address): (Stream, IpAddr),
    ) -> Result<(), End> {
        let Settled { pass, said, .. } = settled;
        let pulse = Pulse::new();
        let still = pin!(pulse.stops(self.limits.idle, self.limits.half_closed));
        let back = pin!(self.copier.copy(&server, client, &pulse));
        match pass.stream {
            decide::Stream::Requests => {
                let passage =
                    Passage { client, server: &server, target, addresses: &pass.addresses, address };
                let requests = Box::pin(self.requests(&passage, said, &pulse));
                copy_both(requests, back, still).await
            }
            decide::Stream::Opaque | decide::Stream::Tls => {
                let host = target.host.to_string();
                self.tell(Event::new(&host, Some(target.port), EgressOutcome::Allowed(address)));
                if let (decide::Stream::Opaque, Some(watch)) = (pass.stream, self.clear_text()) {
                    let forth = Box::pin(self.copy_watched((client, &server), target, watch, said, &pulse));
                    return copy_both(forth, back, still).await;
                }
                let said = if pass.stream == decide::Stream::Tls {
                    let passage =
                        Passage { client, server: &server, target, addresses: &pass.addresses, address };
                    Box::pin(self.handshake(&passage, said)).await?
                } else {
                    said
                };
                server.write_all(&said).await?;
                drop(said);
                let forth = pin!(self.copier.copy(client, &server, &pulse));
                copy_both(forth, back, still).await
            }
        }
    }

    /// Dials the addresses that were judged, and no others.
    pub(crate) async fn dial(&self, pass: &Pass, port: u16) -> Result<(Stream, IpAddr), End> {
        if pass.addresses.iter().any(|address| is_own(*address, port)) {
            return Err(Code::OwnPort.into());
        }
        let addresses = pass.addresses.iter().map(|address| SocketAddr::new(*address, port));
        let dialled = timeout(self.limits.dial, first_to_answer(addresses)).await.ok().flatten();
        let stream = dialled.ok_or(Code::Unreachable)?;
        let address = canonical_ip(stream.peer_addr()?.ip());
        Ok((Stream::from(stream), address))
    }
}

/// Both directions to their ends, unless one fails or nothing moves any more. Takes what is pinned already: futures
/// that are moved into others are kept twice.
pub(crate) async fn copy_both(
    forth: impl Future<Output = Result<(), impl Into<End>>> + Unpin,
    back: impl Future<Output = io::Result<()>> + Unpin,
    still: impl Future<Output = ()> + Unpin,
) -> Result<(), End> {
    let forth = async { forth.await.map_err(Into::into) };
    let back = async { back.await.map_err(End::from) };
    tokio::select! {
        done = async { tokio::try_join!(forth, back) } => done.map(drop),
        () = still => Ok(()),
    }
}

/// Dials one address after the other, without waiting long for any of them.
pub(crate) async fn first_to_answer(
    mut addresses: impl ExactSizeIterator<Item = SocketAddr>,
) -> Option<TcpStream> {
    if addresses.len() == 1 {
        return TcpStream::connect(addresses.next()?).await.ok();
    }
    let mut attempts = JoinSet::new();
    for address in addresses {
        attempts.spawn(TcpStream::connect(address));
        if let Ok(Some(Ok(Ok(stream)))) = timeout(STAGGER, attempts.join_next()).await {
            return Some(stream);
        }
    }
    while let Some(done) = attempts.join_next().await {
        if let Ok(Ok(stream)) = done {
            return Some(stream);
        }
    }
    None
}

/// Tells the client in its own language, if it has said which, and else breaks off.
pub(crate) async fn send_refusal(client: &Stream, hello: Option<&Hello>, target: &Target, refusal: &Refusal) {
    let words = match hello {
        Some(Hello::Tls { .. } | Hello::Unreadable(Code::TlsUnreadable)) => TLS_DENIED.to_vec(),
        Some(
            Hello::Http(_) | Hello::Unreadable(Code::HttpUnreadable | Code::HttpHostOther | Code::HttpTunnel),
        ) => forbidden(target, refusal),
        Some(Hello::Unreadable(_) | Hello::Other) | None => Vec::new(),
    };
    if words.is_empty() || client.write_all(&words).await.is_err() || client.finish().is_err() {
        // A reset, so that the client does not wait for an answer.
        drop(socket2::SockRef::from(client).set_linger(Some(Duration::ZERO)));
        return;
    }
    // What lies unread when a socket closes resets the connection, and the words would be lost.
    let mut rest = vec![0; 4096];
    let drained = async { while client.read(&mut rest).await.is_ok_and(|length| length > 0) {} };
    drop(timeout(FAREWELL, drained).await);
}

/// The refusal as an HTTP response.
pub(crate) fn forbidden(target: &Target, refusal: &Refusal) -> Vec<u8> {
    let (host, port, code) = (&target.host, target.port, refusal.code());
    let advice = refusal.grant().map(|grant| format!("; a person can allow it by granting {grant}"));
    let body =
        format!("bailiwick: refused {host}:{port}: {}{}\n", code.meaning(), advice.unwrap_or_default());
    let no_way = matches!(code, Code::NameUnresolved | Code::Unreachable);
    let status = if no_way { "502 Bad Gateway" } else { "403 Forbidden" };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nBailiwick-Code: {code}\r\n\
         Connection: close\r\n\r\n"
    );
    (head + &body).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thousand idle connections are a thousand of these.
    #[tokio::test]
    async fn a_connection_takes_little_room() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let session = Session::new(&Network::None, Options::default());
        let target = Target::new(Host::Name("a.test".into()), 443);
        let size = size_of_val(&session.relay_client(Stream::from(stream), target, Opening::default()));
        assert!(size < 2560, "{size} bytes");
    }
}
