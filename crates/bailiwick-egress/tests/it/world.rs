//! Two network namespaces in one process: the world outside, and a sandbox's inside.
//!
//! A test runs itself again under `unshare`. There, every address is local, so that servers of the test stand for
//! any host of the internet; a thread of the process goes into a namespace of its own, in which every address leads
//! to the allowlist.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bailiwick_egress::{Egress, Event, Limits, Options, Running, Sockets};
use bailiwick_policy::authority::Authority;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::{Network, Plan};
use bailiwick_testkit::is_in_world;
use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};

pub(crate) use bailiwick_testkit::test_name;

/// Whether the test is in a world of its own; if not, runs it in one and waits.
pub(crate) fn in_world(test: &str) -> bool {
    is_in_world(test, bailiwick_testkit::World { flags: "-Urn", mark: "user" })
}

pub(crate) fn network(grants: &[&str]) -> Network {
    let grants: Vec<_> = grants.iter().map(|text| text.parse().unwrap()).collect();
    let authority = Authority::from_capabilities(&grants).unwrap();
    Plan::for_authority("t", &authority, &HostFacts::unknown()).unwrap().network().clone()
}

/// Fixed names, as `--hosts` gives them.
pub(crate) fn hosts(pairs: &[(&str, &str)]) -> BTreeMap<Box<str>, Vec<IpAddr>> {
    let mut all: BTreeMap<Box<str>, Vec<IpAddr>> = BTreeMap::new();
    for (name, ip) in pairs {
        all.entry((*name).into()).or_default().push(ip.parse().unwrap());
    }
    all
}

/// Options that keep what they are told.
pub(crate) fn options(hosts: BTreeMap<Box<str>, Vec<IpAddr>>, limits: Limits) -> (Options, Told) {
    let told = Told::default();
    let keep = Told::clone(&told);
    let events = Box::new(move |event: Event| keep.0.lock().unwrap().push(event));
    (Options { hosts, limits, events, ..Options::default() }, told)
}

/// The events of a session.
#[derive(Clone, Default)]
pub(crate) struct Told(Arc<Mutex<Vec<Event>>>);

impl Told {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(ToString::to_string).collect()
    }

    /// The grant that the first refusal of this code names.
    pub(crate) fn grant(&self, code: &str) -> Option<String> {
        self.wait_for(code);
        let events = self.0.lock().unwrap();
        let mut refusals = events.iter().filter_map(Event::refusal);
        refusals.find(|refusal| refusal.code().as_str() == code)?.grant().map(str::to_owned)
    }

    /// Waits until an event is of this code.
    pub(crate) fn wait_for(&self, code: &str) {
        let told = |event: &Event| event.refusal().is_some_and(|refusal| refusal.code().as_str() == code);
        for _ in 0..500 {
            if self.0.lock().unwrap().iter().any(told) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{code} was not told: {:?}", self.lines());
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// A sandbox's namespace, and the allowlist that answers it.
pub(crate) struct World {
    jobs: Sender<Job>,
    pub(crate) told: Told,
    pub(crate) running: Option<Running>,
}

impl World {
    /// A world with these grants, names and limits, listening on ports 22, 80, 443 and 5432 inside.
    pub(crate) fn new(grants: &[&str], hosts_of: &[(&str, &str)]) -> Self {
        Self::with(grants, hosts_of, Limits::default(), |_| {})
    }

    pub(crate) fn with(
        grants: &[&str],
        hosts_of: &[(&str, &str)],
        limits: Limits,
        change: impl FnOnce(&mut Options),
    ) -> Self {
        let (mut options, told) = options(hosts(hosts_of), limits);
        change(&mut options);
        Self::start(Egress::new(&network(grants), options), told, false)
    }

    /// The same, with every port redirected.
    pub(crate) fn redirected(grants: &[&str], hosts_of: &[(&str, &str)]) -> Self {
        let (options, told) = options(hosts(hosts_of), Limits::default());
        Self::start(Egress::new(&network(grants), options), told, true)
    }

    fn start(egress: Egress, told: Told, redirected: bool) -> Self {
        every_address_is_local();
        let (jobs, queue) = mpsc::channel::<Job>();
        std::thread::spawn(move || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            queue.into_iter().for_each(|job| job());
        });
        let mut world = Self { jobs, told, running: None };
        let sockets = world.inside(move || inner_sockets(redirected));
        world.running = Some(egress.serve(sockets).unwrap());
        world
    }

    /// Does something inside.
    pub(crate) fn inside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = mpsc::channel();
        self.jobs.send(Box::new(move || drop(done.send(work())))).unwrap();
        result.recv_timeout(Duration::from_secs(60)).expect("the work inside ended well")
    }

    /// The address that stands for a name inside, if it has one.
    pub(crate) fn address(&self, name: &str) -> Option<IpAddr> {
        let name = name.to_owned();
        let (code, found) = self.inside(move || query("127.0.0.53:53", &name, RecordType::A));
        (code == ResponseCode::NoError).then(|| found[0])
    }

    /// A connection from inside to a name.
    pub(crate) fn connect(&self, name: &str, port: u16) -> TcpStream {
        self.connect_to(self.at(name, port)).unwrap()
    }

    /// A connection from inside; one that is refused may be reset before it is made.
    pub(crate) fn connect_to(&self, address: SocketAddr) -> io::Result<TcpStream> {
        self.inside(move || {
            let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            Ok(stream)
        })
    }

    fn at(&self, name: &str, port: u16) -> SocketAddr {
        let ip = self.address(name).unwrap_or_else(|| panic!("{name} has no address"));
        SocketAddr::new(ip, port)
    }

    /// What comes back from a name after these bytes were sent; nothing if the connection breaks.
    pub(crate) fn exchange(&self, name: &str, port: u16, bytes: &[u8]) -> Vec<u8> {
        self.exchange_with(self.at(name, port), bytes)
    }

    /// The same with an address.
    pub(crate) fn exchange_with(&self, address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
        let Ok(mut stream) = self.connect_to(address) else { return Vec::new() };
        drop(stream.write_all(bytes));
        read_all(&mut stream)
    }
}

pub(crate) fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(length) = stream.read(&mut piece) {
        if length == 0 {
            break;
        }
        all.extend_from_slice(&piece[..length]);
    }
    all
}

fn every_address_is_local() {
    for line in [
        "link set lo up",
        "route replace local 0.0.0.0/0 dev lo table local",
        "-6 route replace local ::/0 dev lo table local",
    ] {
        assert!(Command::new("ip").args(line.split(' ')).status().unwrap().success(), "ip {line}");
    }
}

fn inner_sockets(redirected: bool) -> Sockets {
    every_address_is_local();
    let mut sockets = Sockets { redirected, ..Sockets::default() };
    for any in [IpAddr::from([0; 4]), IpAddr::from([0_u16; 8])] {
        let socket = socket(any, 53, socket2::Type::DGRAM);
        sockets.dns_udp.push(socket.into());
        sockets.dns_tcp.push(socket_listening(any, 53));
        let ports: &[u16] = if redirected { &[12_345] } else { &[22, 80, 443, 5432] };
        sockets.relays.extend(ports.iter().map(|port| socket_listening(any, *port)));
    }
    if redirected {
        let rules = "table inet t {\n chain o {\n type nat hook output priority -100\n tcp dport 53 accept\n \
                     ip daddr 127.0.0.0/8 accept\n ip6 daddr ::1 accept\n meta l4proto tcp redirect to :12345\n }\n}\n";
        let mut nft = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
        nft.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
        assert!(nft.wait().unwrap().success());
    }
    sockets
}

fn socket(ip: IpAddr, port: u16, kind: socket2::Type) -> socket2::Socket {
    let address = SocketAddr::new(ip, port);
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), kind, None).unwrap();
    if ip.is_ipv6() {
        socket.set_only_v6(true).unwrap();
    }
    socket.bind(&address.into()).unwrap();
    socket
}

fn socket_listening(ip: IpAddr, port: u16) -> TcpListener {
    let socket = socket(ip, port, socket2::Type::STREAM);
    socket.listen(1024).unwrap();
    socket.into()
}

/// Asks a name server, from the namespace of the calling thread.
pub(crate) fn query(server: &str, name: &str, kind: RecordType) -> (ResponseCode, Vec<IpAddr>) {
    let client = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    // Connected, so that a reply from another address than the one asked is lost.
    client.connect(server).unwrap();
    client.send(&question(name, kind)).unwrap();
    let mut bytes = [0; 2048];
    let length = client.recv(&mut bytes).unwrap();
    answered(&bytes[..length])
}

pub(crate) fn question(name: &str, kind: RecordType) -> Vec<u8> {
    let mut message = Message::query();
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    message.to_vec().unwrap()
}

pub(crate) fn answered(bytes: &[u8]) -> (ResponseCode, Vec<IpAddr>) {
    let reply = Message::from_vec(bytes).unwrap();
    (reply.metadata.response_code, reply.answers.iter().filter_map(|record| record.data.ip_addr()).collect())
}
