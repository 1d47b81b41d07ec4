//! Containment, axis by axis, with an example of what exceeds.

use super::{Authority, Axis, ClockActions, Request, Spawn, env_flags, exec_flags};
use crate::capability::{Endpoint, Program};
use crate::lattice::{Containment, CountBound, FlagMap, Flags};

/// How one authority exceeds another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excess {
    axis: Axis,
    example: Example,
}

/// An example of what only the larger authority allows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Example {
    Request(Request),
    Any(&'static str),
    Calls(CountBound),
    Generation(Option<u64>),
}

impl Excess {
    /// On which axis.
    #[must_use]
    pub const fn axis(&self) -> Axis {
        self.axis
    }

    /// The request that only the larger one allows, where it is one request.
    #[must_use]
    pub const fn request(&self) -> Option<&Request> {
        match &self.example {
            Example::Request(request) => Some(request),
            Example::Any(_) | Example::Calls(_) | Example::Generation(_) => None,
        }
    }
}

impl std::fmt::Display for Excess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.example {
            Example::Request(request) => write!(f, "{request}"),
            Example::Any(what) => f.write_str(what),
            Example::Calls(CountBound::Unlimited) => f.write_str("make any number of calls"),
            Example::Calls(CountBound::AtMost(calls)) => write!(f, "make {calls} calls"),
            Example::Generation(None) => f.write_str("act in any generation"),
            Example::Generation(Some(number)) => write!(f, "act in generation {number}"),
        }
    }
}

impl Authority {
    /// Whether everything this authority allows, `other` allows too.
    #[must_use]
    pub fn within(&self, other: &Self) -> Containment<Excess> {
        Axis::ALL
            .into_iter()
            .fold(Containment::Contained, |answer, axis| answer.and_then(|| self.within_on(axis, other)))
    }

    /// The same, on one axis.
    #[must_use]
    pub fn within_on(&self, axis: Axis, other: &Self) -> Containment<Excess> {
        let request = |request| Excess { axis, example: Example::Request(request) };
        match axis {
            Axis::FsRead => self.reads_within(other).map(request),
            Axis::FsWrite => self.writes_within(other).map(request),
            Axis::Net => {
                let reached = self.net.within(&other.net).map(Request::Net);
                reached.and_then(|| self.listen.within(&other.listen).map(Request::Listen)).map(request)
            }
            Axis::Exec => flags_within(axis, &self.exec, &other.exec, exec_example),
            Axis::Env => flags_within(axis, &self.env, &other.env, env_example)
                .and_then(|| self.brokered_within(other).map(request)),
            Axis::Ipc => flags_within(axis, &self.ipc, &other.ipc, ipc_example),
            Axis::Clock => self.clock_within(other).map(request),
            Axis::MaxCalls if self.calls.leq(other.calls) => Containment::Contained,
            Axis::MaxCalls => Containment::Exceeds(Excess { axis, example: Example::Calls(self.calls) }),
            Axis::Generation => match self.generations.excess(&other.generations) {
                None => Containment::Contained,
                Some((number, _)) => {
                    Containment::Exceeds(Excess { axis, example: Example::Generation(number.copied()) })
                }
            },
        }
    }

    fn reads_within(&self, other: &Self) -> Containment<Request> {
        let read = self.read.within(&other.read).map(Request::Read);
        read.and_then(|| self.code.within(&other.code).map(Request::MapCode))
    }

    fn writes_within(&self, other: &Self) -> Containment<Request> {
        let (own, bound) = (&self.write, &other.write);
        let write = own.within(bound).map(Request::Write);
        // One set for all three on both sides is asked about once.
        let same = |a: &Self| a.create == a.write && a.delete == a.write;
        if same(self) && same(other) {
            return write;
        }
        write
            .and_then(|| self.create.within(&other.create).map(Request::Create))
            .and_then(|| self.delete.within(&other.delete).map(Request::Delete))
    }

    fn brokered_within(&self, other: &Self) -> Containment<Request> {
        let mut all = self.brokered.pairs();
        let request = |(name, host): (&str, &crate::capability::BrokerHost)| Request::BrokerEnv {
            name: name.into(),
            host: host.clone(),
        };
        match all.find(|pair| !other.allows(&request(*pair))) {
            None => Containment::Contained,
            Some(pair) => Containment::Exceeds(request(pair)),
        }
    }

    fn clock_within(&self, other: &Self) -> Containment<Request> {
        let more = self.clock.minus(other.clock);
        let example = match () {
            () if more.is_empty() => return Containment::Contained,
            () if more.contains(super::clock_flags(ClockActions::SYSTEM)) => ClockActions::SYSTEM,
            () => ClockActions::TZDATA,
        };
        Containment::Exceeds(Request::Clock(example))
    }
}

fn flags_within<K: Ord + Clone>(
    axis: Axis,
    own: &FlagMap<K>,
    bound: &FlagMap<K>,
    example: impl Fn(Option<&K>, Flags) -> Example,
) -> Containment<Excess> {
    match own.excess(bound) {
        None => Containment::Contained,
        Some((key, more)) => Containment::Exceeds(Excess { axis, example: example(key, more) }),
    }
}

fn exec_example(program: Option<&Program>, more: Flags) -> Example {
    let Some(program) = program else {
        return Example::Any(match () {
            () if more.contains(exec_flags::SPAWN) => "start any program",
            () if more.contains(exec_flags::NESTED) => "start any program with a sandbox of its own",
            () => "start any program from a writable directory",
        });
    };
    let nested_sandbox = more.contains(exec_flags::NESTED) && !more.contains(exec_flags::SPAWN);
    let from_writable = more.contains(exec_flags::FROM_WRITABLE) && !more.contains(exec_flags::SPAWN);
    Example::Request(Request::Spawn(Spawn { program: program.clone(), nested_sandbox, from_writable }))
}

#[expect(clippy::borrowed_box, reason = "the key type of the map")]
fn env_example(name: Option<&Box<str>>, more: Flags) -> Example {
    let reads = more.contains(env_flags::READ);
    match name {
        Some(name) if reads => Example::Request(Request::ReadEnv(name.clone())),
        Some(name) => Example::Request(Request::InjectEnv(name.clone())),
        None if reads => Example::Any("see any variable"),
        None => Example::Any("be given any variable"),
    }
}

fn ipc_example(endpoint: Option<&Endpoint>, _: Flags) -> Example {
    endpoint.map_or(Example::Any("talk to any local service"), |endpoint| {
        Example::Request(Request::Ipc(endpoint.clone()))
    })
}
