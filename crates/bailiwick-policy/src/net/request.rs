//! One thing a program wants to do on the network.

use std::fmt;

use super::{Host, Method, PortRange, Scheme, UrlPath};

/// One connection or HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetRequest {
    host: Host,
    port: u16,
    private: bool,
    speak: Speak,
    stands_for: Option<Box<SampledPlace>>,
}

/// What the host and the port of an example stand for, where they are one of many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SampledPlace {
    pub(super) hosts: SampledHosts,
    pub(super) ports: PortRange,
}

/// Which hosts an example stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SampledHosts {
    /// Its own host alone.
    Itself,
    /// Every host that no rule names.
    Unnamed,
    /// Every host below this one that no rule names.
    UnnamedBelow(Box<str>),
}

/// What is spoken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speak {
    /// TLS that names the host openly.
    Tls,
    /// TLS that hides the name (encrypted client hello).
    HiddenTls,
    /// Bytes that are neither TLS nor HTTP.
    Raw,
    /// An HTTP request whose method and path are known.
    Http {
        /// Plain or inside TLS.
        scheme: Scheme,
        /// The method.
        method: Method,
        /// The path.
        path: UrlPath,
    },
}

impl NetRequest {
    /// A request to `host`; a name is taken to resolve to public addresses unless it says otherwise.
    #[must_use]
    pub fn new(host: Host, port: u16, speak: Speak) -> Self {
        let private = host.is_private();
        Self { host, port, private, speak, stands_for: None }
    }

    /// The same request as an example of many. Only its text is another.
    pub(super) fn standing_for(mut self, place: SampledPlace) -> Self {
        self.stands_for = Some(Box::new(place));
        self
    }

    /// The same request once its name has resolved to a special-purpose address.
    #[must_use]
    pub fn resolved_privately(mut self) -> Self {
        self.private = true;
        self
    }

    /// Whom it asks for.
    #[must_use]
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// On which port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Whether the address is of special purpose.
    #[must_use]
    pub const fn is_private(&self) -> bool {
        self.private
    }

    /// What is spoken.
    #[must_use]
    pub const fn speak(&self) -> &Speak {
        &self.speak
    }
}

impl NetRequest {
    /// The hosts and ports in words; `None` where they are one host and one port.
    fn place_in_words(&self) -> Option<String> {
        let SampledPlace { hosts, ports } = self.stands_for.as_deref()?;
        let host = match hosts {
            SampledHosts::Itself if ports.low() == ports.high() => return None,
            SampledHosts::Itself => self.host.to_string(),
            SampledHosts::Unnamed => "any other host".to_owned(),
            SampledHosts::UnnamedBelow(parent) => format!("any other host below {parent}"),
        };
        Some(match (ports.low(), ports.high()) {
            _ if *ports == PortRange::ANY => host,
            (low, high) if low == high => format!("{host} on port {low}"),
            (low, high) => format!("{host} on ports {low}-{high}"),
        })
    }
}

impl fmt::Display for NetRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.place_in_words();
        let place = words.clone().unwrap_or_else(|| format!("{}:{}", self.host, self.port));
        match &self.speak {
            Speak::Http { scheme, method, path } if words.is_some() => {
                write!(f, "{place} with {} {}:{path}", method.as_str(), scheme.as_str())?;
            }
            Speak::Http { scheme, method, path } => {
                write!(f, "{} {}://{place}{path}", method.as_str(), scheme.as_str())?;
            }
            Speak::Tls => f.write_str(&place)?,
            Speak::HiddenTls => write!(f, "{place} with a hidden name")?,
            Speak::Raw => write!(f, "{place} with a raw protocol")?,
        }
        let by_resolution = self.private && !self.host.is_private();
        if by_resolution { f.write_str(" at a private address") } else { Ok(()) }
    }
}
