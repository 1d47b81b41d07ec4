//! Where a request goes: a URL as browsers read it, and what policy makes of it.
//!
//! Every spelling of an address (`0x7f.1`, `2130706433`, `127.1`) is that address before anything is judged, and dots
//! in paths are gone. What is judged is what is sent.

use bailiwick_policy::finding::Finding;
use bailiwick_policy::net::{Host, Method, NetRequest, Scheme, Speak, UrlPath};
use url::Url;

/// A URL that can be requested.
#[derive(Debug, Clone)]
pub(super) struct Target {
    url: Url,
    /// Plain or inside TLS.
    pub(super) scheme: Scheme,
    /// Whom it asks.
    pub(super) host: Host,
    /// On which port.
    pub(super) port: u16,
}

/// Why a URL is not requested.
#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    #[error("`{}` is not a URL: {source}", text.escape_debug())]
    NotUrl { text: String, source: url::ParseError },
    #[error("redirected to `{}`: {source}", text.escape_debug())]
    Location { text: String, source: url::ParseError },
    #[error("redirected: {0}")]
    Redirected(Box<Self>),
    #[error("redirected from https to `{0}`, which is not followed; ask for it by itself")]
    Downgraded(String),
    #[error("`{0}` URLs are not fetched, only http and https")]
    Scheme(String),
    #[error("the URL carries a user name or password, which is never sent")]
    Credentials,
    #[error("{0}")]
    Host(String),
    #[error("the URL names no host")]
    NoHost,
}

impl TargetError {
    fn host(finding: Finding) -> Self {
        Self::Host(finding.message().to_owned())
    }
}

impl Target {
    pub(super) fn read(text: &str) -> Result<Self, TargetError> {
        let url = Url::parse(text).map_err(|source| TargetError::NotUrl { text: text.to_owned(), source })?;
        Self::from_url(url)
    }

    /// Where a redirect from here leads.
    pub(super) fn follow(&self, location: &str) -> Result<Self, TargetError> {
        let to = self.url.join(location);
        let to = to.map_err(|source| TargetError::Location { text: location.to_owned(), source })?;
        let next = Self::from_url(to).map_err(|why| TargetError::Redirected(Box::new(why)))?;
        if self.scheme == Scheme::Https && next.scheme == Scheme::Http {
            return Err(TargetError::Downgraded(next.shown().to_owned()));
        }
        Ok(next)
    }

    fn from_url(mut url: Url) -> Result<Self, TargetError> {
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => return Err(TargetError::Scheme(other.to_owned())),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError::Credentials);
        }
        let host = match url.host() {
            Some(url::Host::Ipv4(ip)) => Host::Ip(ip.into()),
            Some(url::Host::Ipv6(ip)) => Host::new(&ip.to_string()).map_err(TargetError::host)?,
            Some(url::Host::Domain(name)) => Host::new(name).map_err(TargetError::host)?,
            None => return Err(TargetError::NoHost),
        };
        url.set_fragment(None);
        let port = url.port().unwrap_or(scheme.default_port());
        Ok(Self { url, scheme, host, port })
    }

    /// The request as policy sees it. A path that servers may read in two ways can be asked for only where every path
    /// of the host is granted.
    pub(super) fn request(&self, method: Method) -> NetRequest {
        let path = UrlPath::of_target(self.url.path());
        NetRequest::new(self.host.clone(), self.port, Speak::Http { scheme: self.scheme, method, path })
    }

    /// The URL, without its fragment.
    pub(super) fn shown(&self) -> &str {
        self.url.as_str()
    }

    /// The path, as it is sent.
    pub(super) fn path(&self) -> &str {
        self.url.path()
    }

    /// The query, if the URL has one.
    pub(super) fn query(&self) -> Option<&str> {
        self.url.query()
    }

    /// The URL without its query, in which there may be anything.
    pub(super) fn without_query(&self) -> String {
        format!("{}://{}{}", self.url.scheme(), self.authority(), self.url.path())
    }

    /// Whether it is another resource of the same server.
    pub(super) fn has_origin_of(&self, other: &Self) -> bool {
        self.url.origin() == other.url.origin()
    }

    /// Path and query, as they are sent.
    pub(super) fn path_and_query(&self) -> String {
        match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        }
    }

    /// What the `Host` header says.
    pub(super) fn authority(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(url: &str) -> String {
        let method = Method::new("GET").unwrap();
        Target::read(url).map_or_else(|why| why.to_string(), |target| target.request(method).to_string())
    }

    #[test]
    fn addresses_are_themselves_in_every_spelling() {
        for spelling in [
            "0x7f.1",
            "2130706433",
            "0177.0.0.1",
            "127.1",
            "127.0.0.1.",
            "0x7f000001",
            "127.0.1",
            "%31%32%37.1",
        ] {
            assert_eq!(asked(&format!("http://{spelling}/x")), "GET http://127.0.0.1:80/x", "{spelling}");
        }
        assert_eq!(asked("http://[::ffff:127.0.0.1]/"), "GET http://127.0.0.1:80/");
        assert_eq!(asked("http://[0:0::1]:81/"), "GET http://[::1]:81/");
        assert_eq!(asked("http://①②⑦.⓪.⓪.①/"), "GET http://127.0.0.1:80/");
    }

    #[test]
    fn what_is_judged_is_what_is_sent() {
        assert_eq!(asked("https://A.Example./a/../b/%2e%2E/c?q#f"), "GET https://a.example:443/c");
        assert_eq!(asked("http:\\\\a.example\\x"), "GET http://a.example:80/x");
        assert_eq!(
            asked("https://a.example/a%2fb"),
            "GET https://a.example:443/a%2fb (a rule for some paths cannot judge it: it has an escaped slash or a \
             backslash)",
            "only under a grant for every path"
        );
        let target = Target::read("https://a.example:8443/x?y=1#z").unwrap();
        assert_eq!((&*target.path_and_query(), &*target.authority()), ("/x?y=1", "a.example:8443"));
    }

    #[test]
    fn some_urls_are_never_fetched() {
        for (url, why) in [
            ("http://u@a.example/", "user name"),
            ("http://:p@a.example/", "user name"),
            ("http://127.0.0.1@a.example/", "user name"),
            ("ftp://a.example/", "`ftp`"),
            ("file:///etc/passwd", "`file`"),
            ("data:text/html,x", "`data`"),
            ("javascript:1", "`javascript`"),
            ("a.example", "not a URL"),
            ("http://", "not a URL"),
            ("http://1.2.3.4.5/", "not a URL"),
            ("http://a b/", "not a URL"),
        ] {
            let said = asked(url);
            assert!(said.contains(why), "{url}: {said}");
        }
    }

    #[test]
    fn redirects_stay_in_the_web_and_inside_tls() {
        let from = Target::read("https://a.example/x/y").unwrap();
        assert_eq!(from.follow("../z?q").unwrap().shown(), "https://a.example/z?q");
        assert_eq!(from.follow("//b.example/").unwrap().shown(), "https://b.example/");
        for to in ["http://a.example/", "file:///etc/passwd", "https://u@b.example/", "gopher://a/"] {
            assert!(from.follow(to).is_err(), "{to}");
        }
    }
}
