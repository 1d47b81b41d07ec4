//! Where a server is: a URL that may be asked at all.

use bailiwick_policy::net::{Host, canonical_ip, is_special};
use url::Url;

/// The longest URL.
const LONGEST: usize = 4096;

/// The URL of a server: `https:`, or `http:` on the loopback interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    url: Url,
    host: Host,
}

/// Why a URL is not asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// It is no URL.
    #[error("`{0}` is not a URL: {1}")]
    NotUrl(String, String),
    /// It would be read by everyone on the way.
    #[error(
        "`{0}` is not encrypted: write `https:`; plain `http:` is for 127.0.0.1, [::1] and localhost alone"
    )]
    NotEncrypted(String),
    /// It carries a credential.
    #[error(
        "the URL carries a user name or password; give the credential with `--secret NAME=SOURCE` instead"
    )]
    HasCredential,
    /// Its host is none.
    #[error("`{0}` names no host that can be asked: {1}")]
    Host(String, String),
}

impl Endpoint {
    /// Reads a URL. A fragment means nothing to a server and is left out.
    ///
    /// # Errors
    /// If it may not be asked.
    pub fn new(text: &str) -> Result<Self, EndpointError> {
        let shown = || text.chars().take(200).flat_map(char::escape_debug).collect::<String>();
        if text.len() > LONGEST {
            return Err(EndpointError::NotUrl(shown(), "it is too long".to_owned()));
        }
        let url = Url::parse(text).map_err(|why| EndpointError::NotUrl(shown(), why.to_string()))?;
        Self::of_url(url)
    }

    fn of_url(mut url: Url) -> Result<Self, EndpointError> {
        let shown = || url.as_str().chars().take(200).collect::<String>();
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointError::HasCredential);
        }
        let name = match url.host() {
            Some(url::Host::Domain(name)) => name.to_owned(),
            Some(url::Host::Ipv4(ip)) => ip.to_string(),
            Some(url::Host::Ipv6(ip)) => ip.to_string(),
            None => return Err(EndpointError::Host(shown(), "it has none".to_owned())),
        };
        let host =
            Host::new(&name).map_err(|finding| EndpointError::Host(shown(), finding.message().to_owned()))?;
        let is_local = match &host {
            Host::Ip(ip) => ip.is_loopback(),
            Host::Name(name) => **name == *"localhost",
        };
        match url.scheme() {
            "https" => {}
            "http" if is_local => {}
            _ => return Err(EndpointError::NotEncrypted(shown())),
        }
        url.set_fragment(None);
        Ok(Self { url, host })
    }

    /// The URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Its host.
    #[must_use]
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or(443)
    }

    /// Whether it is asked inside TLS.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Its path, as it is sent.
    #[must_use]
    pub fn path(&self) -> &str {
        self.url.path()
    }

    /// Scheme, host and port.
    #[must_use]
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Whether both have the same scheme, host and port.
    #[must_use]
    pub fn is_same_origin(&self, other: &Self) -> bool {
        self.url.origin() == other.url.origin()
    }

    /// What a reference means that stands at this URL.
    ///
    /// # Errors
    /// If it may not be asked.
    pub fn join(&self, reference: &str) -> Result<Self, EndpointError> {
        let shown = || reference.chars().take(200).flat_map(char::escape_debug).collect::<String>();
        let url = self.url.join(reference).map_err(|why| EndpointError::NotUrl(shown(), why.to_string()))?;
        Self::of_url(url)
    }

    /// The same URL with more parameters in its query.
    pub(crate) fn with_query<'a>(&self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut url = self.url.clone();
        url.query_pairs_mut().extend_pairs(pairs);
        Self { url, host: self.host.clone() }
    }

    /// Whether it names an address of this machine or of a private network.
    pub(crate) fn is_of_this_network(&self) -> bool {
        match &self.host {
            Host::Ip(ip) => is_special(canonical_ip(*ip)),
            Host::Name(name) => **name == *"localhost" || name.ends_with(".localhost"),
        }
    }

    /// Path and query, as they are sent.
    pub(crate) fn target(&self) -> String {
        match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        }
    }

    /// What the `Host` header says.
    pub(crate) fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_encrypted_or_local_urls_are_asked() {
        for fine in [
            "https://mcp.example.com/mcp",
            "https://10.0.0.7/mcp",
            "http://127.0.0.1:8080/mcp",
            "http://[::1]:1/",
            "http://localhost:9/x",
            "http://127.1:80/",
        ] {
            assert!(Endpoint::new(fine).is_ok(), "{fine}");
        }
        for (wrong, why) in [
            ("http://mcp.example.com/mcp", "not encrypted"),
            ("http://10.0.0.7/mcp", "not encrypted"),
            ("http://localhost.example.com/", "not encrypted"),
            ("http://127.0.0.1.example.com/", "not encrypted"),
            ("https://me:secret@mcp.example.com/", "user name"),
            ("https://me@127.0.0.1/", "user name"),
            ("file:///etc/passwd", "names no host"),
            ("ftp://mcp.example.com/", "not encrypted"),
            ("mcp.example.com", "not a URL"),
            ("https://", "not a URL"),
        ] {
            let said = Endpoint::new(wrong).map_or_else(|why| why.to_string(), |fine| fine.to_string());
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }

    #[test]
    fn origins_are_compared_as_a_whole() {
        let base = Endpoint::new("https://a.example/mcp").unwrap();
        assert!(base.is_same_origin(&base.join("/other?x#y").unwrap()));
        assert!(base.is_same_origin(&Endpoint::new("https://A.example:443/").unwrap()));
        for other in ["//b.example/", "https://a.example:8443/mcp", "https://a.example.b.example/mcp"] {
            assert!(!base.is_same_origin(&base.join(other).unwrap()), "{other}");
        }
        assert!(base.join("http://a.example/mcp").is_err(), "no way back to plain HTTP");
    }
}
