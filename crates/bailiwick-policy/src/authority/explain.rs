//! Why a request is allowed or not.

use std::fmt;

use super::{ALLOWED, Authority, Axis, Request, env_flags};
use crate::capability::{Capability, EnvActions, FsActions};
use crate::finding::{Code, Finding};
use crate::lattice::Containment;
use crate::net::{HostPattern, NetRequest, NetRule, PortRange, Speak, Speech, UrlPath};
use crate::path::{AbsPath, PathPattern, PathScope};

/// The answer to one request, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    axis: Axis,
    allowed: bool,
    asked: String,
    deciding: Vec<String>,
    smallest: Option<Capability>,
    undecided: bool,
}

impl Explanation {
    /// The axis that decided.
    #[must_use]
    pub const fn axis(&self) -> Axis {
        self.axis
    }

    /// Whether it is allowed.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// Whether the question was too hard; it then counts as refused.
    #[must_use]
    pub const fn is_undecided(&self) -> bool {
        self.undecided
    }

    /// What was asked, in words.
    #[must_use]
    pub fn asked(&self) -> &str {
        &self.asked
    }

    /// The capabilities that allow it: one, or one of every grant that had to agree.
    #[must_use]
    pub fn deciding(&self) -> &[String] {
        &self.deciding
    }

    /// The smallest capability that would allow it.
    #[must_use]
    pub const fn smallest_grant(&self) -> Option<&Capability> {
        self.smallest.as_ref()
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verdict, axis, asked) =
            (if self.allowed { "allowed" } else { "denied" }, self.axis, &self.asked);
        write!(f, "{verdict} on {axis}: {asked}")?;
        if !self.deciding.is_empty() {
            write!(f, ", by {}", self.deciding.join(" and "))?;
        }
        match &self.smallest {
            Some(grant) if !self.allowed => write!(f, "; the smallest grant is {grant}"),
            _ => Ok(()),
        }
    }
}

impl Authority {
    /// Why `request` is allowed or not.
    #[must_use]
    pub fn explain(&self, request: &Request) -> Explanation {
        let allowed = self.allows(request);
        Explanation {
            axis: request.axis(),
            allowed,
            asked: request.to_string(),
            deciding: if allowed { self.deciding(request) } else { Vec::new() },
            smallest: (!allowed).then(|| smallest(request)),
            undecided: false,
        }
    }

    /// Why everything that `capability` asks for is allowed, or what of it is not.
    ///
    /// # Errors
    /// A finding if the capability still has a path variable.
    pub fn explain_capability(&self, capability: &Capability) -> Result<Explanation, Finding> {
        let asked = Self::from_capabilities(std::slice::from_ref(capability))?;
        let Some((axis, example)) = axis_and_example(capability) else {
            return Err(Finding::new(Code::AssertId, format!("`{capability}` is a promise, not a request"))
                .help("ask about an `fs`, `net`, `exec`, `env`, `ipc` or `clock` capability"));
        };
        let (axis, allowed, undecided, asked_text) = match asked.within(self) {
            Containment::Contained => (axis, true, false, capability.to_string()),
            Containment::Exceeds(excess) => (excess.axis(), false, false, excess.to_string()),
            Containment::Undecided => (axis, false, true, format!("{capability} (too hard to decide)")),
        };
        let deciding = example.filter(|_| allowed).map(|request| self.deciding(&request)).unwrap_or_default();
        let smallest = (!allowed).then(|| self.lacking(capability));
        Ok(Explanation { axis, allowed, asked: asked_text, deciding, smallest, undecided })
    }

    /// The capability with only those of its actions that are not allowed yet.
    fn lacking(&self, capability: &Capability) -> Capability {
        let lacks = |part: &Capability| {
            !Self::from_capabilities(std::slice::from_ref(part)).is_ok_and(|asked| asked.within(self).holds())
        };
        let parts: Vec<Capability> = match capability {
            Capability::Fs { actions, path } => {
                let all = FsActions::NAMES.iter().map(|(_, action)| *action).chain([FsActions::CODE]);
                let held = all.filter(|action| actions.contains(*action));
                held.map(|actions| Capability::Fs { actions, path: path.clone() }).collect()
            }
            Capability::Env { actions, name } => {
                let held = EnvActions::NAMES.iter().filter(|(_, action)| actions.contains(*action));
                held.map(|(_, actions)| Capability::Env { actions: *actions, name: name.clone() }).collect()
            }
            Capability::Net(_)
            | Capability::Listen(_)
            | Capability::Exec { .. }
            | Capability::Ipc(_)
            | Capability::Clock(_)
            | Capability::Assert { .. } => Vec::new(),
        };
        parts.into_iter().filter(lacks).reduce(joined).unwrap_or_else(|| capability.clone())
    }

    /// The capabilities that let an allowed request through.
    fn deciding(&self, request: &Request) -> Vec<String> {
        let paths = |scope: &PathScope, actions: FsActions, path: &AbsPath| {
            let patterns = scope.deciding(path).into_iter();
            patterns.map(|path| Capability::Fs { actions, path }.to_string()).collect()
        };
        match request {
            Request::Read(path) => paths(&self.read, FsActions::READ, path),
            Request::MapCode(path) => paths(&self.code, FsActions::CODE, path),
            Request::Write(path) => paths(&self.write, FsActions::WRITE, path),
            Request::Create(path) => paths(&self.create, FsActions::CREATE, path),
            Request::Delete(path) => paths(&self.delete, FsActions::DELETE, path),
            Request::Net(request) => self.net.deciding(request).iter().map(ToString::to_string).collect(),
            Request::Listen(listen) => match self.listen.listens() {
                Some(own) => {
                    let own = own.into_iter().filter(|own| own.shares_place(*listen));
                    own.map(|own| Capability::Listen(own).to_string()).collect()
                }
                None => vec!["every port".to_owned()],
            },
            Request::Spawn(spawn) => {
                let by_all = self.exec.rest().contains(spawn.flags());
                let program = (!by_all).then(|| spawn.program.clone());
                vec![exec_capability(program, spawn.nested_sandbox, spawn.from_writable).to_string()]
            }
            Request::ReadEnv(name) => {
                let by_all = self.env.rest().contains(env_flags::READ);
                vec![
                    Capability::Env { actions: EnvActions::READ, name: (!by_all).then(|| name.clone()) }
                        .to_string(),
                ]
            }
            Request::InjectEnv(name) => {
                vec![Capability::Env { actions: EnvActions::INJECT, name: Some(name.clone()) }.to_string()]
            }
            Request::Ipc(_) if self.ipc.rest().contains(ALLOWED) => vec!["every local service".to_owned()],
            Request::Ipc(endpoint) => vec![Capability::Ipc(endpoint.clone()).to_string()],
            Request::Clock(actions) => vec![Capability::Clock(*actions).to_string()],
        }
    }
}

impl Capability {
    /// The axis that decides about it; `None` for a promise.
    #[must_use]
    pub fn axis(&self) -> Option<Axis> {
        axis_and_example(self).map(|(axis, _)| axis)
    }
}

/// Two capabilities that differ in their actions only, as one.
fn joined(one: Capability, other: Capability) -> Capability {
    match (one, other) {
        (Capability::Fs { actions, path }, Capability::Fs { actions: more, .. }) => {
            Capability::Fs { actions: actions.union(more), path }
        }
        (Capability::Env { actions, name }, Capability::Env { actions: more, .. }) => {
            Capability::Env { actions: actions.union(more), name }
        }
        (one, _) => one,
    }
}

const fn exec_capability(
    program: Option<crate::capability::Program>,
    nested_sandbox: bool,
    from_writable: bool,
) -> Capability {
    Capability::Exec { program, nested_sandbox, from_writable }
}

/// The smallest capability that allows the request.
#[must_use]
pub(crate) fn smallest(request: &Request) -> Capability {
    let file = |actions, path: &AbsPath| Capability::Fs { actions, path: PathPattern::below(path) };
    match request {
        Request::Read(path) => file(FsActions::READ, path),
        Request::MapCode(path) => file(FsActions::CODE, path),
        Request::Write(path) => file(FsActions::WRITE, path),
        Request::Create(path) => file(FsActions::CREATE, path),
        Request::Delete(path) => file(FsActions::DELETE, path),
        Request::Net(request) => Capability::Net(smallest_rule(request)),
        Request::Listen(listen) => Capability::Listen(*listen),
        Request::Spawn(spawn) => {
            exec_capability(Some(spawn.program.clone()), spawn.nested_sandbox, spawn.from_writable)
        }
        Request::ReadEnv(name) => Capability::Env { actions: EnvActions::READ, name: Some(name.clone()) },
        Request::InjectEnv(name) => Capability::Env { actions: EnvActions::INJECT, name: Some(name.clone()) },
        Request::Ipc(endpoint) => Capability::Ipc(endpoint.clone()),
        Request::Clock(actions) => Capability::Clock(*actions),
    }
}

/// As much of a URL's path as a capability can hold.
fn writable_part(path: &AbsPath) -> AbsPath {
    let plain =
        |name: &&str| !name.contains(['?', '#', '\\', ' ', '%']) && !name.chars().any(char::is_control);
    let names: Vec<&str> = path.components().take_while(plain).collect();
    AbsPath::new(&format!("/{}", names.join("/"))).unwrap_or_else(|_| path.clone())
}

fn smallest_rule(request: &NetRequest) -> NetRule {
    let host = match request.host() {
        crate::net::Host::Name(name) => HostPattern::Name(name.clone()),
        crate::net::Host::Ip(ip) => HostPattern::Net((*ip).into()),
    };
    let speech = match request.speak() {
        Speak::Tls => Speech::Connect { raw: false, ech: false },
        Speak::HiddenTls => Speech::Connect { raw: false, ech: true },
        Speak::Raw => Speech::Connect { raw: true, ech: false },
        Speak::Http { scheme, method, path } => Speech::Http {
            schemes: crate::net::Schemes::from_list(&[*scheme]),
            methods: crate::net::Methods::from_methods([*method]),
            path: match path {
                UrlPath::Clear(path) => PathPattern::below(&writable_part(path)),
                UrlPath::Ambiguous { .. } => PathPattern::everything(),
            },
        },
    };
    NetRule::new(host, PortRange::only(request.port()), request.is_private(), speech)
}

/// The axis a capability speaks of, and one request that shows which line decides.
fn axis_and_example(capability: &Capability) -> Option<(Axis, Option<Request>)> {
    Some(match capability {
        Capability::Fs { actions, path } => {
            let make = match () {
                () if actions.contains(FsActions::WRITE) => Request::Write,
                () if actions.contains(FsActions::CREATE) => Request::Create,
                () if actions.contains(FsActions::DELETE) => Request::Delete,
                () if actions.contains(FsActions::CODE) => Request::MapCode,
                () => Request::Read,
            };
            let request = make(path.base());
            (request.axis(), Some(request))
        }
        Capability::Net(rule) => (Axis::Net, rule.example().map(Request::Net)),
        Capability::Listen(listen) => (Axis::Net, Some(Request::Listen(*listen))),
        Capability::Exec { program, nested_sandbox, from_writable } => {
            let (nested_sandbox, from_writable) = (*nested_sandbox, *from_writable);
            let spawn =
                program.clone().map(|program| super::Spawn { program, nested_sandbox, from_writable });
            (Axis::Exec, spawn.map(Request::Spawn))
        }
        Capability::Env { actions, name } => {
            let make = if actions.contains(EnvActions::READ) { Request::ReadEnv } else { Request::InjectEnv };
            (Axis::Env, name.clone().map(make))
        }
        Capability::Ipc(endpoint) => (Axis::Ipc, Some(Request::Ipc(endpoint.clone()))),
        Capability::Clock(actions) => (Axis::Clock, Some(Request::Clock(*actions))),
        Capability::Assert { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::CapabilitySet;

    #[test]
    fn the_axis_and_the_smallest_grant_are_those_of_what_is_missing() {
        let set = CapabilitySet::new(["fs:write:/a", "env:read:TOKEN"]).unwrap();
        for (asked, axis, smallest) in [
            ("fs:read,write:/a", Axis::FsRead, "fs:read:/a"),
            ("fs:read,create:/a/b", Axis::FsRead, "fs:read:/a/b"),
            ("fs:read,write:/b", Axis::FsRead, "fs:read,write:/b"),
            ("env:read,inject:TOKEN", Axis::Env, "env:inject:TOKEN"),
        ] {
            let explanation = set.explain(asked).unwrap();
            assert_eq!(explanation.axis(), axis, "{asked}");
            assert_eq!(explanation.smallest_grant(), Some(&Capability::new(smallest).unwrap()), "{asked}");
        }
    }
}
