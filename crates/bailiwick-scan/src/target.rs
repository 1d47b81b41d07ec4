//! The concrete target of a use, and the capability that names it.
//!
//! A target exists only if it can be written as a capability; everything else is dynamic.

use std::fmt;

use bailiwick_policy::authority::{Authority, Axis, Request, Spawn};
use bailiwick_policy::capability::{Capability, ClockActions};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::net::{Host, Method, NetRequest, Scheme, Speak, Speech, UrlPath};
use bailiwick_policy::path::AbsPath;

use crate::report::UseKind;

/// A path, a host, a program or a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An absolute path, or one below a variable.
    Path {
        /// `WORKSPACE` for relative paths, `HOME` for `~`.
        variable: Option<&'static str>,
        /// Components with a slash in front of each.
        rest: String,
    },
    /// A host.
    Host {
        /// Its name or address.
        name: String,
        /// The port, where it is known.
        port: Option<u16>,
        /// The path of the URL, as far as it is known.
        path: String,
        /// Whether it ends there.
        whole: bool,
        /// Whether it is spoken to in plain HTTP, in HTTPS, or in something else.
        scheme: Option<Scheme>,
    },
    /// A program by name or path.
    Program(String),
    /// A variable.
    Variable(String),
    /// Every variable.
    AllVariables,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { variable: Some("HOME"), rest } => write!(f, "~{}", quoted(rest)),
            Self::Path { variable: Some(name), rest } => write!(f, "${name}{}", quoted(rest)),
            Self::Path { variable: None, rest } => f.write_str(&quoted(rest)),
            Self::Host { name, port: Some(port), .. } => write!(f, "{name}:{port}"),
            Self::Host { name, port: None, .. } => write!(f, "{name}:*"),
            Self::Program(text) | Self::Variable(text) => f.write_str(text),
            Self::AllVariables => f.write_str("*"),
        }
    }
}

/// A path as a pattern that is just this path.
fn quoted(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for c in path.chars() {
        if matches!(c, '*' | '?' | '[') {
            pattern.extend(['[', c, ']']);
        } else {
            pattern.push(c);
        }
    }
    pattern
}

impl Target {
    /// The target that a whole text is for a kind; `None` if no capability can say it.
    pub(crate) fn from_text(kind: UseKind, text: &str) -> Option<Self> {
        let target = match kind {
            UseKind::Read | UseKind::Write | UseKind::Create | UseKind::Delete => path(text)?,
            UseKind::Net => return None,
            UseKind::Exec => Self::Program(text.to_owned()),
            UseKind::Env => Self::Variable(text.to_owned()),
            UseKind::Tzdata => return None,
        };
        target.is_writable(kind).then_some(target)
    }

    /// The host of a URL or of `host:port`; the text may go on where it is not `whole`.
    pub(crate) fn host(text: &str, whole: bool, port: Option<u16>, scheme: Option<&str>) -> Option<Self> {
        let (found, rest) = text.split_once("://").map_or((None, text), |(found, rest)| (Some(found), rest));
        let scheme = found.or(scheme);
        let end = rest.find(['/', '?', '#']);
        if end.is_none() && !whole {
            return None;
        }
        let (authority, behind) = rest.split_at_checked(end.unwrap_or(rest.len()))?;
        let authority = authority.rsplit('@').next().unwrap_or(authority);
        let (name, given) = match authority.rsplit_once(':') {
            Some((name, port)) if !name.ends_with(':') && !port.contains(']') => {
                (name, Some(port.parse().ok()?))
            }
            _ => (authority, None),
        };
        let known = match scheme {
            Some("https" | "wss") => Some(443),
            Some("http" | "ws") => Some(80),
            _ => None,
        };
        let target = Self::Host {
            name: name.to_owned(),
            port: given.or(port).or(known),
            path: behind.to_owned(),
            whole: whole || behind.contains(['?', '#']),
            scheme: match scheme {
                Some("https") => Some(Scheme::Https),
                Some("http") => Some(Scheme::Http),
                _ => None,
            },
        };
        target.is_writable(UseKind::Net).then_some(target)
    }

    /// Whether a capability can say it.
    fn is_writable(&self, kind: UseKind) -> bool {
        let shown = match self {
            Self::Path { variable: Some(_), rest } => format!("/x{}", quoted(rest)),
            Self::Path { .. }
            | Self::Host { .. }
            | Self::Program(_)
            | Self::Variable(_)
            | Self::AllVariables => self.to_string(),
        };
        let wild = matches!(self, Self::Program(text) | Self::Variable(text) if text.contains('*'));
        !wild && format!("{}:{shown}", kind.as_str()).parse::<Capability>().is_ok()
    }

    /// How far an authority covers a use of it.
    pub(crate) fn cover(&self, kind: UseKind, authority: &Authority, facts: &HostFacts) -> Cover {
        let requests = self.requests(kind, facts);
        if requests.is_empty() {
            return Cover::whole_if(holds(&format!("{}:{self}", kind.as_str()), authority));
        }
        if requests.iter().any(|request| authority.allows(request)) {
            return Cover::Whole;
        }
        match self {
            Self::Host { name, port: Some(port), path, whole: false, scheme: Some(scheme) } => {
                below(*scheme, name, *port, path, authority)
            }
            Self::Host { .. }
            | Self::Path { .. }
            | Self::Program(_)
            | Self::Variable(_)
            | Self::AllVariables => Cover::None,
        }
    }

    /// Requests any of which shows that the use is covered.
    fn requests(&self, kind: UseKind, facts: &HostFacts) -> Vec<Request> {
        match self {
            Self::Path { variable, rest } => {
                let base = match variable {
                    Some(name) => facts.variable(name).map(ToString::to_string),
                    None => Some(String::new()),
                };
                let full = base.map(|base| format!("{}{rest}", base.trim_end_matches('/')));
                let full = full.and_then(|full| AbsPath::new(if full.is_empty() { "/" } else { &full }).ok());
                full.map(|path| file_request(kind, path)).into_iter().collect()
            }
            Self::Host { name, port: Some(port), path, whole, scheme } => {
                let Ok(host) = Host::new(name) else { return Vec::new() };
                let speaks =
                    std::iter::once(Speak::Tls).chain(http(path, *scheme).into_iter().filter(|_| *whole));
                speaks.map(|speak| Request::Net(NetRequest::new(host.clone(), *port, speak))).collect()
            }
            Self::Host { port: None, .. } | Self::AllVariables => Vec::new(),
            Self::Program(name) => match format!("exec:spawn:{name}").parse() {
                Ok(Capability::Exec { program: Some(program), .. }) => {
                    vec![Request::Spawn(Spawn { program, nested_sandbox: false, from_writable: false })]
                }
                _ => Vec::new(),
            },
            Self::Variable(name) => {
                let name: Box<str> = name.as_str().into();
                vec![Request::ReadEnv(name.clone()), Request::InjectEnv(name)]
            }
        }
    }
}

/// Whether an authority covers reading time zones.
pub(crate) fn allows_zones(authority: &Authority) -> bool {
    let zones = AbsPath::new("/usr/share/zoneinfo").ok().map(Request::Read);
    authority.allows(&Request::Clock(ClockActions::TZDATA))
        || zones.is_some_and(|zones| authority.allows(&zones))
}

fn file_request(kind: UseKind, path: AbsPath) -> Request {
    match kind {
        UseKind::Write => Request::Write(path),
        UseKind::Create => Request::Create(path),
        UseKind::Delete => Request::Delete(path),
        UseKind::Read | UseKind::Net | UseKind::Exec | UseKind::Env | UseKind::Tzdata => Request::Read(path),
    }
}

/// How far a use is covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cover {
    /// All that it may be is.
    Whole,
    /// Some of what it may be is.
    Undecided,
    /// Nothing of it is.
    None,
}

impl Cover {
    pub(crate) const fn whole_if(covered: bool) -> Self {
        if covered { Self::Whole } else { Self::None }
    }
}

/// Whether a line is within an authority.
fn holds(line: &str, authority: &Authority) -> bool {
    let asked = line.parse::<Capability>().and_then(|line| Authority::from_capabilities(&[line]));
    asked.is_ok_and(|asked| asked.within(authority).holds())
}

/// How far URLs that begin with a path are covered, by any method.
fn below(scheme: Scheme, name: &str, port: u16, path: &str, authority: &Authority) -> Cover {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let scheme_name = scheme.as_str();
    let all_below = |method: Method| {
        format!("net:{scheme_name}:{}@{scheme_name}://{name}:{port}{}/**", method.as_str(), quoted(directory))
    };
    if Method::all().any(|method| holds(&all_below(method), authority)) {
        return Cover::Whole;
    }
    let Ok(host) = Host::new(name) else { return Cover::None };
    let may_meet = |line: &Capability| match line {
        Capability::Net(rule) => match rule.speech() {
            Speech::Http { schemes, path: allowed, .. } => {
                let base = allowed.base().to_string();
                let meets = path.starts_with(&base) || base.starts_with(path);
                rule.host().matches(&host) && rule.ports().contains(port) && schemes.contains(scheme) && meets
            }
            Speech::Connect { .. } => false,
        },
        _ => false,
    };
    match authority.capabilities_on(Axis::Net) {
        Some(lines) if !lines.iter().any(may_meet) => Cover::None,
        _ => Cover::Undecided,
    }
}

/// A request of any method for the path.
fn http(path: &str, scheme: Option<Scheme>) -> Vec<Speak> {
    // A client keeps the fragment to itself.
    let path = UrlPath::of_target(path.split('#').next().unwrap_or_default());
    let Some(scheme) = scheme else { return Vec::new() };
    Method::all().map(|method| Speak::Http { scheme, method, path: path.clone() }).collect()
}

fn path(text: &str) -> Option<Target> {
    let text = text.strip_prefix("file://").unwrap_or(text);
    let (variable, rest) = match text {
        "" => return None,
        "~" => (Some("HOME"), ""),
        _ if text.starts_with('/') => (None, text),
        _ => match text.strip_prefix("~/") {
            Some(rest) => (Some("HOME"), rest),
            None if text.contains("://") || text.starts_with('~') => return None,
            None => (Some("WORKSPACE"), text),
        },
    };
    let mut clean = String::new();
    for name in rest.split('/').filter(|name| !name.is_empty() && *name != ".") {
        if name == ".." {
            return None;
        }
        clean.push('/');
        clean.push_str(name);
    }
    if clean.is_empty() && variable.is_none() {
        clean.push('/');
    }
    Some(Target::Path { variable, rest: clean })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_capabilities_or_dynamic() {
        let of = |text: &str| Target::from_text(UseKind::Read, text).map(|target| target.to_string());
        for (text, capability) in [
            ("/etc/hosts", "/etc/hosts"),
            ("/etc//./hosts/", "/etc/hosts"),
            ("data.json", "$WORKSPACE/data.json"),
            ("~/notes", "~/notes"),
            ("/a/[b]*", "/a/[[]b][*]"),
            ("file:///srv/a", "/srv/a"),
        ] {
            assert_eq!(of(text).as_deref(), Some(capability), "{text}");
        }
        for text in ["", "../x", "/a/../b", "https://x.test/", "~bob/x", "/a\n"] {
            assert_eq!(of(text), None, "{text:?}");
        }
    }

    #[test]
    fn hosts_need_their_end() {
        let of = |text: &str, whole| Target::host(text, whole, None, None).map(|target| target.to_string());
        assert_eq!(of("https://api.example.com/x", true).as_deref(), Some("api.example.com:443"));
        assert_eq!(of("https://api.example.com/", false).as_deref(), Some("api.example.com:443"));
        assert_eq!(of("https://api.example", false), None, "the name may go on");
        assert_eq!(of("http://u:p@h.test:8080", true).as_deref(), Some("h.test:8080"));
        assert_eq!(of("db.example.com", true).as_deref(), Some("db.example.com:*"));
        assert_eq!(of("ws://[::1]:9000/x", true).as_deref(), Some("[::1]:9000"));
        assert_eq!(of("https://{host}/", true), None);
    }

    #[test]
    fn programs_and_variables_are_plain_names() {
        let program = |text: &str| Target::from_text(UseKind::Exec, text).is_some();
        assert!(program("git") && program("/usr/bin/git"));
        assert!(!program("./run.sh") && !program("git status") && !program("*"));
        let variable = |text: &str| Target::from_text(UseKind::Env, text).is_some();
        assert!(variable("API_KEY") && !variable("http_proxy") && !variable("*"));
    }
}
