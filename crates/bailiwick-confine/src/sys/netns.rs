//! The network of a sandbox that may reach somebody: every address is local, and ours are the sockets that answer.
//!
//! Runs in the new network namespace, after clone and before capabilities are dropped, and allocates nothing. The
//! sockets it makes are passed out to the supervisor; nothing of ours stays inside.
//!
//! Connections reach us by a redirection of the kernel's packet filter where that can be loaded: then any port works
//! and none is taken from the sandbox's own servers. Elsewhere there is a listener for every granted port, and a plan
//! that grants too many ports for that is refused.
//!
//! Residual: with listeners, the sandbox cannot itself listen on a granted port.
#![expect(unsafe_code, reason = "sockets, ioctl and netlink before exec, without allocation")]

mod entrance;
mod netlink;
mod redirect;
#[cfg(test)]
mod tests;

use bailiwick_policy::net::{Listen, PortRange};
use bailiwick_policy::plan::{Network, Plan, Ports};
use netlink::{Batch, acknowledged};

const MAX_PORTS: usize = 64;
const MAX_LOOPBACK: usize = 16;
const BACKLOG: i32 = 4096;
const LOOPBACK_INDEX: u32 = 1;
/// How many ports are tried until one is free in both families.
const TRIES: usize = 8;

/// What is wanted, gathered before clone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    ports: [u16; MAX_PORTS],
    count: usize,
    any: bool,
    loopback: [(u16, u16); MAX_LOOPBACK],
    loopback_count: usize,
    redirect: bool,
    egress: bool,
    inward: Inward,
}

/// Whether the sandbox is reached from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inward {
    /// On no port.
    Closed,
    /// On ports of its own.
    Open,
    /// One of the ports is granted for connecting too: only a redirection tells the two apart.
    Contested,
}

/// The sockets that were made, and how connections come to them.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// Name service over UDP, v4 and v6.
    pub(crate) dns_udp: [Option<Descriptor>; 2],
    /// Name service over TCP, v4 and v6.
    pub(crate) dns_tcp: [Option<Descriptor>; 2],
    /// For connections.
    pub(crate) relays: [Option<Descriptor>; 2 * MAX_PORTS],
    /// For connections from outside: an unconnected socket and a listener of v4, the same of v6.
    pub(crate) entrance: [Option<Descriptor>; 4],
    /// How connections come to the relays.
    pub(crate) way: Way,
}

/// How connections come to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By redirection; the kernel knows where they were meant to go.
    Redirected,
    /// To one listener for every granted port.
    Listeners,
}

/// A descriptor that is closed when it is dropped.
#[derive(Debug)]
pub(crate) struct Descriptor(pub(crate) i32);

/// What failed, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The step.
    pub(crate) step: Step,
    /// The error of the system call.
    pub(crate) errno: i32,
}

/// The steps, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The loopback device is switched on.
    LoopbackUp,
    /// Every address becomes local.
    Route,
    /// The sockets for names.
    Names,
    /// The sockets for connections.
    Relays,
    /// The sockets for connections from outside.
    Entrance,
    /// The redirection; its failure is an answer only if listeners will not do.
    Redirect,
}

impl Request {
    /// What a plan's network needs.
    ///
    /// # Errors
    /// If it names more ranges of loopback ports than there is room for.
    pub(crate) fn for_plan(plan: &Plan) -> Result<Self, Fault> {
        let network = plan.network();
        let inward = if plan.listens().is_empty() { Inward::Closed } else { Inward::Open };
        let mut request = Self {
            ports: [0; MAX_PORTS],
            count: 0,
            any: false,
            loopback: [(0, 0); MAX_LOOPBACK],
            loopback_count: 0,
            redirect: true,
            egress: *network != Network::None,
            inward,
        };
        match network.ports() {
            Ports::Any => request.any = true,
            Ports::Fixed(ports) => {
                for (place, port) in request.ports.iter_mut().zip(&ports) {
                    *place = *port;
                }
                request.count = ports.len();
                if plan.listens().iter().any(|listen| ports.contains(&listen.value.port())) {
                    request.inward = Inward::Contested;
                }
            }
        }
        let loopback = without(network.loopback_ports(), plan.listens().iter().map(|listen| listen.value));
        if loopback.len() > MAX_LOOPBACK {
            return Err(Fault { step: Step::Redirect, errno: libc::E2BIG });
        }
        for (place, range) in request.loopback.iter_mut().zip(&loopback) {
            *place = *range;
        }
        request.loopback_count = loopback.len();
        Ok(request)
    }

    /// A sandbox that is reached by nobody and reaches nobody starts without a network too: that is no leak.
    const fn forgive(&self, fault: Fault) -> Result<(), Fault> {
        if self.egress || self.is_entered() { Err(fault) } else { Ok(()) }
    }

    const fn is_entered(&self) -> bool {
        !matches!(self.inward, Inward::Closed)
    }

    fn ports(&self) -> &[u16] {
        self.ports.get(..self.count).unwrap_or_default()
    }

    fn loopback(&self) -> &[(u16, u16)] {
        self.loopback.get(..self.loopback_count).unwrap_or_default()
    }
}

impl Sockets {
    /// No socket yet.
    pub(crate) const fn new() -> Self {
        Self {
            dns_udp: [const { None }; 2],
            dns_tcp: [const { None }; 2],
            relays: [const { None }; 2 * MAX_PORTS],
            entrance: [const { None }; 4],
            way: Way::Listeners,
        }
    }
}

/// Makes the network of the namespace that the caller is in.
pub(crate) fn open(request: &Request, out: &mut Sockets) -> Result<(), Fault> {
    loopback_up().or_else(|fault| request.forgive(fault))?;
    if request.is_entered() {
        entrance::open(libc::AF_INET, &mut out.entrance)?;
        // A kernel without IPv6 has no server that listens there.
        let _ = entrance::open(libc::AF_INET6, out.entrance.get_mut(2..).unwrap_or_default());
    }
    if !request.egress {
        // Without it a name fails as if the network were broken, and what was asked for is not known.
        let names = datagrams(libc::AF_INET);
        return names.map(|names| put(&mut out.dns_udp, 0, names)).or_else(|fault| request.forgive(fault));
    }
    route(libc::AF_INET)?;
    let families: &[i32] = match route(libc::AF_INET6) {
        Ok(()) => &[libc::AF_INET, libc::AF_INET6],
        // A kernel without IPv6, or with it switched off.
        Err(Fault { errno: libc::EAFNOSUPPORT | libc::EOPNOTSUPP | libc::EACCES, .. }) => &[libc::AF_INET],
        Err(fault) => return Err(fault),
    };
    for (index, family) in families.iter().enumerate() {
        put(&mut out.dns_udp, index, datagrams(*family)?);
        put(&mut out.dns_tcp, index, listener(*family, Bind::Everywhere(53), Step::Names)?);
    }
    match redirected(request, families, out) {
        Ok(()) => out.way = Way::Redirected,
        Err(fault) if request.any || request.inward == Inward::Contested => return Err(fault),
        Err(_) => {
            listeners(request, families, out)?;
            out.way = Way::Listeners;
        }
    }
    Ok(())
}

fn redirected(request: &Request, families: &[i32], out: &mut Sockets) -> Result<(), Fault> {
    if !request.redirect {
        return Err(Fault { step: Step::Redirect, errno: libc::EOPNOTSUPP });
    }
    let port = relay_pair(families, out)?;
    redirect::install(request, port)
}

/// One listener a family, all on one port that nobody asked for.
fn relay_pair(families: &[i32], out: &mut Sockets) -> Result<u16, Fault> {
    let mut fault = Fault { step: Step::Relays, errno: libc::EADDRINUSE };
    for _ in 0..TRIES {
        let first = listener(libc::AF_INET, Bind::Loopback(0), Step::Relays)?;
        let port = first.port()?;
        put(&mut out.relays, 0, first);
        if !families.contains(&libc::AF_INET6) {
            return Ok(port);
        }
        match listener(libc::AF_INET6, Bind::Loopback(port), Step::Relays) {
            Ok(second) => {
                put(&mut out.relays, 1, second);
                return Ok(port);
            }
            Err(other) => fault = other,
        }
    }
    Err(fault)
}

fn listeners(request: &Request, families: &[i32], out: &mut Sockets) -> Result<(), Fault> {
    out.relays = [const { None }; 2 * MAX_PORTS];
    let mut index = 0;
    for port in request.ports().iter().filter(|port| **port != 53) {
        for family in families {
            put(&mut out.relays, index, listener(*family, Bind::Everywhere(*port), Step::Relays)?);
            index += 1;
        }
    }
    Ok(())
}

/// The ranges without the ports on which the sandbox itself is reached from outside: there both are one server.
fn without(ranges: Vec<PortRange>, listens: impl Iterator<Item = Listen> + Clone) -> Vec<(u16, u16)> {
    let mut kept: Vec<(u16, u16)> = ranges.iter().map(|range| (range.low(), range.high())).collect();
    for port in listens.map(Listen::port) {
        let split = |(low, high): (u16, u16)| {
            let inside = low <= port && port <= high;
            let below = if inside { port.checked_sub(1).map(|end| (low, end)) } else { Some((low, high)) };
            let above = if inside { port.checked_add(1).map(|start| (start, high)) } else { None };
            [below, above].into_iter().flatten().filter(|(low, high)| low <= high)
        };
        kept = kept.into_iter().flat_map(split).collect();
    }
    kept
}

fn put(places: &mut [Option<Descriptor>], index: usize, descriptor: Descriptor) {
    if let Some(place) = places.get_mut(index) {
        *place = Some(descriptor);
    }
}

fn loopback_up() -> Result<(), Fault> {
    let up = u32::try_from(libc::IFF_UP).unwrap_or(1).to_ne_bytes();
    let mut body = [0_u8; 16];
    for (place, byte) in
        body.iter_mut().skip(4).zip(LOOPBACK_INDEX.to_ne_bytes().iter().chain(&up).chain(&up))
    {
        *place = *byte;
    }
    let mut batch = Batch::new();
    batch.message(libc::RTM_NEWLINK, acknowledged(0), &body);
    batch.send(libc::NETLINK_ROUTE, Step::LoopbackUp)
}

/// `ip route add local default dev lo table local`
fn route(family: i32) -> Result<(), Fault> {
    let family = u8::try_from(family).unwrap_or(0);
    let (table, protocol, scope, kind) =
        (libc::RT_TABLE_LOCAL, libc::RTPROT_STATIC, libc::RT_SCOPE_HOST, libc::RTN_LOCAL);
    let mut batch = Batch::new();
    let body = [family, 0, 0, 0, table, protocol, scope, kind, 0, 0, 0, 0];
    batch.message(libc::RTM_NEWROUTE, acknowledged(libc::NLM_F_CREATE | libc::NLM_F_EXCL), &body);
    batch.attribute(libc::RTA_OIF, &LOOPBACK_INDEX.to_ne_bytes());
    batch.send(libc::NETLINK_ROUTE, Step::Route)
}

fn datagrams(family: i32) -> Result<Descriptor, Fault> {
    let socket = Descriptor::socket(family, libc::SOCK_DGRAM, 0, Step::Names)?;
    if family == libc::AF_INET6 {
        socket.set(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, Step::Names)?;
        socket.set(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, Step::Names)?;
    } else {
        socket.set(libc::IPPROTO_IP, libc::IP_PKTINFO, Step::Names)?;
    }
    socket.bind(family, Bind::Everywhere(53), Step::Names)?;
    Ok(socket)
}

fn listener(family: i32, at: Bind, step: Step) -> Result<Descriptor, Fault> {
    let socket = Descriptor::socket(family, libc::SOCK_STREAM, 0, step)?;
    if family == libc::AF_INET6 {
        socket.set(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, step)?;
    }
    socket.bind(family, at, step)?;
    // SAFETY: the descriptor is a socket of ours.
    let listening = unsafe { libc::listen(socket.0, BACKLOG) };
    if listening < 0 { Err(Fault { step, errno: errno() }) } else { Ok(socket) }
}

#[derive(Clone, Copy)]
enum Bind {
    Everywhere(u16),
    Loopback(u16),
}

impl Descriptor {
    fn socket(family: i32, kind: i32, protocol: i32, step: Step) -> Result<Self, Fault> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
        if fd < 0 { Err(Fault { step, errno: errno() }) } else { Ok(Self(fd)) }
    }

    /// Switches an option on.
    fn set(&self, level: i32, option: i32, step: Step) -> Result<(), Fault> {
        let on: i32 = 1;
        // SAFETY: the value is an initialised `int`, of the length that is said, and lives through the call.
        let done =
            unsafe { libc::setsockopt(self.0, level, option, (&raw const on).cast(), length_of::<i32>()) };
        if done < 0 { Err(Fault { step, errno: errno() }) } else { Ok(()) }
    }

    fn bind(&self, family: i32, at: Bind, step: Step) -> Result<(), Fault> {
        let (port, loopback) = match at {
            Bind::Everywhere(port) => (port, false),
            Bind::Loopback(port) => (port, true),
        };
        let done = if family == libc::AF_INET6 {
            let mut bytes = [0; 16];
            bytes[15] = u8::from(loopback);
            let address = libc::sockaddr_in6 {
                sin6_family: family_of(family),
                sin6_port: port.to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: bytes },
                sin6_scope_id: 0,
            };
            // SAFETY: the address is an initialised structure of the length that is said.
            unsafe { libc::bind(self.0, (&raw const address).cast(), length_of::<libc::sockaddr_in6>()) }
        } else {
            let bytes = if loopback { [127, 0, 0, 1] } else { [0; 4] };
            let address = libc::sockaddr_in {
                sin_family: family_of(family),
                sin_port: port.to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(bytes) },
                sin_zero: [0; 8],
            };
            // SAFETY: the address is an initialised structure of the length that is said.
            unsafe { libc::bind(self.0, (&raw const address).cast(), length_of::<libc::sockaddr_in>()) }
        };
        if done < 0 { Err(Fault { step, errno: errno() }) } else { Ok(()) }
    }

    /// The port that a v4 socket is bound to.
    fn port(&self) -> Result<u16, Fault> {
        let mut address = libc::sockaddr_in {
            sin_family: 0,
            sin_port: 0,
            sin_addr: libc::in_addr { s_addr: 0 },
            sin_zero: [0; 8],
        };
        let mut length = length_of::<libc::sockaddr_in>();
        // SAFETY: the kernel writes at most `length` bytes, which is the size of the structure.
        let done = unsafe { libc::getsockname(self.0, (&raw mut address).cast(), &raw mut length) };
        if done < 0 {
            Err(Fault { step: Step::Relays, errno: errno() })
        } else {
            Ok(u16::from_be(address.sin_port))
        }
    }
}

impl std::os::fd::AsFd for Descriptor {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as `self` is there.
        unsafe { std::os::fd::BorrowedFd::borrow_raw(self.0) }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours alone and is not used afterwards.
        unsafe { libc::close(self.0) };
    }
}

fn length_of<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0)
}

fn family_of(family: i32) -> libc::sa_family_t {
    libc::sa_family_t::try_from(family).unwrap_or(0)
}

fn errno() -> i32 {
    // SAFETY: no precondition; it gives the place of the thread's own errno.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: that place is valid for as long as the thread lives.
    unsafe { *place }
}
