//! Who may come in, decided by a request's head before anything of its body is read.
//!
//! A page in a browser can be made to send requests to this machine under a name of its own, so `Host` has to name
//! the loopback interface and our port, and `Origin`, if there is one, has to be this very server. Then the token.
//! Fails closed when: a header is missing, given twice, or is not text.

use std::net::IpAddr;

use http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, StatusCode};

use crate::answer::{Answer, closing, plain, with_header};
use crate::token::Token;

/// Names of the loopback interface, as `Host` and `Origin` write them.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Headers that say who the client is. The door alone reads them: no handler sees them, so none can pass them on.
const CREDENTIALS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// What a request's head is held against.
#[derive(Debug)]
pub struct DoorRules {
    /// The one path that is served; with `/` at its end, every path below it.
    path: &'static str,
    token: Option<Token>,
    /// Paths that are served without the token.
    open: &'static [&'static str],
    /// The one name that `Host` and `Origin` may give; every name of the loopback interface if there is none.
    name: Option<String>,
    /// Whether clients speak TLS.
    is_tls: bool,
}

/// Why a request does not come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Host,
    Origin,
    Token,
    Path,
}

impl DoorRules {
    /// Admits requests for this path that show the token.
    #[must_use]
    pub fn with_token(path: &'static str, token: Token) -> Self {
        Self { path, token: Some(token), open: &[], name: None, is_tls: false }
    }

    /// Admits every process of this machine: only for a service that can do nothing.
    #[must_use]
    pub fn for_everyone(path: &'static str) -> Self {
        Self { path, token: None, open: &[], name: None, is_tls: false }
    }

    /// Serves these paths without the token: what is there may hold no secret and change nothing.
    #[must_use]
    pub fn with_open_paths(mut self, open: &'static [&'static str]) -> Self {
        self.open = open;
        self
    }

    /// Serves under this address alone: another address of the loopback interface may be another user's server, and
    /// another name of it is another origin.
    #[must_use]
    pub fn under_one_name(mut self, address: IpAddr) -> Self {
        self.name = Some(match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        });
        self
    }

    /// Serves under this name alone, in TLS.
    #[must_use]
    pub fn under_tls_name(mut self, name: &str) -> Self {
        (self.name, self.is_tls) = (Some(name.to_owned()), true);
        self
    }

    /// Whether a path is served without the token.
    pub(super) fn is_open(&self, path: &str) -> bool {
        self.open.contains(&path)
    }

    /// Lets a request in, without its credentials.
    pub(super) fn admit(&self, port: u16, head: &mut Parts) -> Result<(), Refusal> {
        let place = Place { port, name: self.name.as_deref(), is_tls: self.is_tls };
        if !named_rightly(place, head) {
            return Err(Refusal::Host);
        }
        if !is_same_origin(place, &head.headers) {
            return Err(Refusal::Origin);
        }
        let is_open = self.is_open(head.uri.path());
        if !is_open && !self.has_token(&head.headers) {
            return Err(Refusal::Token);
        }
        if !is_open && !self.serves(head.uri.path()) {
            return Err(Refusal::Path);
        }
        for name in CREDENTIALS {
            head.headers.remove(name);
        }
        Ok(())
    }

    fn serves(&self, path: &str) -> bool {
        path == self.path || (self.path.ends_with('/') && path.starts_with(self.path))
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let presented = only(headers, &AUTHORIZATION).ok().flatten().and_then(|value| value.split_once(' '));
        presented.is_some_and(|(scheme, rest)| {
            scheme.eq_ignore_ascii_case("bearer") && token.is(rest.trim().as_bytes())
        })
    }
}

/// Where we are reached.
#[derive(Clone, Copy)]
struct Place<'a> {
    port: u16,
    name: Option<&'a str>,
    is_tls: bool,
}

fn named_rightly(place: Place<'_>, head: &Parts) -> bool {
    let is_here = |authority: &str| is_here(place, authority);
    let named = only(&head.headers, &HOST).is_ok_and(|host| host.is_some_and(is_here));
    named && head.uri.authority().is_none_or(|authority| is_here(authority.as_str()))
}

fn is_same_origin(place: Place<'_>, headers: &HeaderMap) -> bool {
    let scheme = if place.is_tls { "https://" } else { "http://" };
    match only(headers, &ORIGIN) {
        Ok(None) => true,
        Ok(Some(origin)) => origin.strip_prefix(scheme).is_some_and(|rest| is_here(place, rest)),
        Err(Unclear) => false,
    }
}

/// Whether an authority is this name, or any of the loopback interface, with our port.
fn is_here(place: Place<'_>, authority: &str) -> bool {
    let Ok(authority) = authority.parse::<Authority>() else {
        return false;
    };
    let alone = !authority.as_str().contains('@');
    let names = place.name.as_ref().map_or(&NAMES[..], std::slice::from_ref);
    let default = if place.is_tls { 443 } else { 80 };
    let named = names.iter().any(|name| authority.host().eq_ignore_ascii_case(name));
    alone && named && authority.port_u16().unwrap_or(default) == place.port
}

impl Refusal {
    pub(super) fn answer(self) -> Answer {
        let answer = closing(plain(self.status(), self.reason()));
        match self {
            Self::Token => with_header(answer, WWW_AUTHENTICATE, "Bearer"),
            Self::Host | Self::Origin | Self::Path => answer,
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::Path => StatusCode::NOT_FOUND,
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Host => "the Host header does not name this server",
            Self::Origin => "requests of other origins are not served",
            Self::Token => {
                "send the token as `Authorization: Bearer`; the server said at its start which file it is in"
            }
            Self::Path => "this path is not served",
        }
    }
}

/// A header that is there twice, or is not text.
struct Unclear;

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Unclear> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next(), values.next());
    match (first, second) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| Unclear),
        (Some(_), Some(_)) => Err(Unclear),
    }
}

#[cfg(test)]
mod tests;
