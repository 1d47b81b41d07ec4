//! One thing a program wants to do on the network.

use std::fmt;

use super::{Host, Method, Scheme, UrlPath};

/// One connection or HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetRequest {
    host: Host,
    port: u16,
    private: bool,
    speak: Speak,
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
        Self { host, port, private, speak }
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

impl fmt::Display for NetRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = (&self.host, self.port);
        match &self.speak {
            Speak::Http { scheme, method, path } => {
                write!(f, "{} {}://{host}:{port}{path}", method.as_str(), scheme.as_str())?;
            }
            Speak::Tls => write!(f, "{host}:{port}")?,
            Speak::HiddenTls => write!(f, "{host}:{port} with a hidden name")?,
            Speak::Raw => write!(f, "{host}:{port} with a raw protocol")?,
        }
        let by_resolution = self.private && !self.host.is_private();
        if by_resolution { f.write_str(" at a private address") } else { Ok(()) }
    }
}
