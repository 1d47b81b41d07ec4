//! One network rule: a box of requests.

use std::fmt;

use ipnet::IpNet;

use super::{HostPattern, Methods, NetRequest, PortRange, Schemes, Speak, UrlPath};
use crate::path::{PathPattern, PathScope};

/// Hosts × ports × speech, and whether private addresses may be reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetRule {
    host: HostPattern,
    ports: PortRange,
    private: bool,
    speech: Speech,
}

/// What may be spoken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Speech {
    /// TLS and HTTP, any request.
    Connect {
        /// Any other bytes too.
        raw: bool,
        /// TLS that hides the name too.
        ech: bool,
    },
    /// Only these HTTP requests.
    Http {
        /// Plain, inside TLS, or both.
        schemes: Schemes,
        /// These methods.
        methods: Methods,
        /// These paths.
        path: PathPattern,
    },
}

impl NetRule {
    /// A rule as declared: naming private addresses or `localhost` is the consent to reach them.
    #[must_use]
    pub fn new(host: HostPattern, ports: PortRange, open_private: bool, speech: Speech) -> Self {
        let private = open_private || host.names_private();
        Self { host, ports, private, speech }
    }

    /// Whom it lets be reached.
    #[must_use]
    pub const fn host(&self) -> &HostPattern {
        &self.host
    }

    /// On which ports.
    #[must_use]
    pub const fn ports(&self) -> PortRange {
        self.ports
    }

    /// Whether private addresses may be reached.
    #[must_use]
    pub const fn opens_private(&self) -> bool {
        self.private
    }

    /// What may be spoken.
    #[must_use]
    pub const fn speech(&self) -> &Speech {
        &self.speech
    }

    /// Whether the rule allows `request`.
    #[must_use]
    pub fn allows(&self, request: &NetRequest) -> bool {
        self.ports.contains(request.port())
            && (self.private || !request.is_private())
            && self.host.matches(request.host())
            && self.speech.allows(request.speak())
    }

    /// A request that the rule allows, where its host is one name or address.
    #[must_use]
    pub(crate) fn example(&self) -> Option<NetRequest> {
        let host = match &self.host {
            HostPattern::Name(name) => super::Host::Name(name.clone()),
            HostPattern::Net(net) => super::Host::Ip(net.network()),
            HostPattern::Below(name) => super::Host::Name(format!("any.{name}").into()),
            HostPattern::Any => super::Host::Name("any.example".into()),
        };
        let speak = match &self.speech {
            Speech::Connect { raw: true, .. } => Speak::Raw,
            Speech::Connect { ech: true, .. } => Speak::HiddenTls,
            Speech::Connect { .. } => Speak::Tls,
            Speech::Http { schemes, methods, path } => {
                let (scheme, method) = (schemes.iter().next()?, methods.iter().next()?);
                Speak::Http { scheme, method, path: UrlPath::Clear(path.base()) }
            }
        };
        let request = NetRequest::new(host, self.ports.low(), speak);
        Some(if self.private { request.resolved_privately() } else { request })
    }

    /// Whether this one rule allows all that `other` does. Exact for one rule; a union may cover more.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.ports.covers(other.ports)
            && (self.private || !other.private)
            && self.host.covers(&other.host)
            && self.speech.covers(&other.speech)
    }

    /// What both allow: `Some(None)` for nothing, `None` if that is no single rule.
    pub(super) fn meet(&self, other: &Self) -> Option<Option<Self>> {
        let private = self.private && other.private;
        let (Some(host), Some(ports)) = (self.host.meet(&other.host), self.ports.meet(other.ports)) else {
            return Some(None);
        };
        if host.names_private() && !private {
            return Some(None);
        }
        let speech = self.speech.meet(&other.speech)?;
        Some(speech.map(|speech| Self { host, ports, private, speech }))
    }

    /// The same requests as rules that can each be written as a capability: a URL names one scheme.
    pub(super) fn written(self) -> Vec<Self> {
        let Speech::Http { schemes, methods, path } = &self.speech else { return vec![self] };
        let anywhere = self.host == HostPattern::Any && self.ports == PortRange::ANY;
        if anywhere && *path == PathPattern::everything() {
            return vec![self];
        }
        let one = |scheme| Speech::Http {
            schemes: Schemes::from_list(&[scheme]),
            methods: *methods,
            path: path.clone(),
        };
        schemes.iter().map(|scheme| Self { speech: one(scheme), ..self.clone() }).collect()
    }

    /// The refinements, as they stand after `?`.
    fn refinements(&self) -> Vec<&'static str> {
        let mut refinements = Vec::new();
        if self.private && !self.host.names_private() {
            refinements.push("blockPrivate=false");
        }
        if let Speech::Connect { raw, ech } = &self.speech {
            if *ech {
                refinements.push("ech=allow");
            }
            if *raw {
                refinements.push("protocol=raw");
            }
        }
        refinements
    }
}

impl Speech {
    /// Whether it may be spoken.
    #[must_use]
    pub fn allows(&self, speak: &Speak) -> bool {
        match (self, speak) {
            (Self::Connect { .. }, Speak::Tls | Speak::Http { .. }) => true,
            (Self::Connect { raw, ech }, Speak::HiddenTls) => *raw || *ech,
            (Self::Connect { raw, .. }, Speak::Raw) => *raw,
            (Self::Http { schemes, methods, path }, Speak::Http { scheme, method, path: asked }) => {
                schemes.contains(*scheme) && methods.contains(*method) && asked.is_covered_by(path)
            }
            (Self::Http { .. }, Speak::Tls | Speak::HiddenTls | Speak::Raw) => false,
        }
    }

    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Connect { raw, ech }, Self::Connect { raw: other_raw, ech: other_ech }) => {
                (*raw || !other_raw) && (*raw || *ech || !other_ech)
            }
            (Self::Connect { .. }, Self::Http { .. }) => true,
            (Self::Http { .. }, Self::Connect { .. }) => false,
            (
                Self::Http { schemes, methods, path },
                Self::Http { schemes: other_schemes, methods: other_methods, path: other_path },
            ) => {
                schemes.covers(*other_schemes)
                    && methods.covers(*other_methods)
                    // A rule for every path allows ambiguous ones too.
                    && (path.is_everything() || !other_path.is_everything())
                    && (path == other_path
                        || PathScope::union([other_path]).within(&PathScope::union([path])).holds())
            }
        }
    }

    fn meet(&self, other: &Self) -> Option<Option<Self>> {
        match (self, other) {
            (Self::Connect { raw, ech }, Self::Connect { raw: other_raw, ech: other_ech }) => {
                let raw_met = *raw && *other_raw;
                let ech_met = (*raw || *ech) && (*other_raw || *other_ech) && !raw_met;
                Some(Some(Self::Connect { raw: raw_met, ech: ech_met }))
            }
            (Self::Connect { .. }, http @ Self::Http { .. })
            | (http @ Self::Http { .. }, Self::Connect { .. }) => Some(Some(http.clone())),
            (
                Self::Http { schemes, methods, path },
                Self::Http { schemes: other_schemes, methods: other_methods, path: other_path },
            ) => {
                let (schemes, methods) = (schemes.meet(*other_schemes), methods.meet(*other_methods));
                if schemes.is_empty() || methods.is_empty() {
                    return Some(None);
                }
                let path = meet_paths(path, other_path)?;
                Some(path.map(|path| Self::Http { schemes, methods, path }))
            }
        }
    }
}

/// The paths that both patterns cover, if that is one pattern or nothing.
fn meet_paths(a: &PathPattern, b: &PathPattern) -> Option<Option<PathPattern>> {
    if a == b {
        return Some(Some(a.clone()));
    }
    match PathScope::union([a]).meet(&PathScope::union([b])) {
        PathScope::None => Some(None),
        PathScope::Any => Some(Some(PathPattern::everything())),
        PathScope::Only(clauses) => {
            let mut sets = clauses.sets();
            let set = sets.next().filter(|set| set.len() == 1)?;
            if sets.next().is_some() { None } else { Some(set.patterns().next()) }
        }
    }
}

impl fmt::Display for NetRule {
    /// The canonical capability text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.speech {
            Speech::Connect { .. } => {
                write!(f, "net:connect:{}", self.host)?;
                if self.ports != PortRange::ANY {
                    write!(f, ":{}", self.ports)?;
                }
            }
            Speech::Http { schemes, methods, path } => {
                let actions: Vec<_> = schemes.iter().map(super::Scheme::as_str).collect();
                write!(f, "net:{}:", actions.join(","))?;
                self.write_http(f, *schemes, *methods, path)?;
            }
        }
        let refinements = self.refinements();
        if refinements.is_empty() { Ok(()) } else { write!(f, "?{}", refinements.join("&")) }
    }
}

impl NetRule {
    fn write_http(
        &self,
        f: &mut fmt::Formatter<'_>,
        schemes: Schemes,
        methods: Methods,
        path: &PathPattern,
    ) -> fmt::Result {
        let anywhere = self.host == HostPattern::Any && self.ports == PortRange::ANY;
        if anywhere && *path == PathPattern::everything() {
            return write!(f, "{methods}");
        }
        if methods != Methods::ALL {
            write!(f, "{methods}@")?;
        }
        let scheme = schemes.iter().next().unwrap_or(super::Scheme::Https);
        // Without brackets the length of a block of v4 addresses would be read as a path.
        if let HostPattern::Net(IpNet::V4(net)) = &self.host
            && net.prefix_len() < 32
        {
            write!(f, "{}://[{net}]", scheme.as_str())?;
        } else {
            write!(f, "{}://{}", scheme.as_str(), self.host)?;
        }
        if self.ports != PortRange::only(scheme.default_port()) {
            write!(f, ":{}", self.ports)?;
        }
        if *path == PathPattern::everything() { Ok(()) } else { write!(f, "{path}") }
    }
}
