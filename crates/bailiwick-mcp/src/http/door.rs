//! Who may come in, decided by a request's head before anything of its body is read.
//!
//! A page in a browser can be made to send requests to this machine under a name of its own, so `Host` has to name
//! the loopback interface and our port, and `Origin`, if there is one, has to be this very server. Then the token.
//! Fails closed when: a header is missing, given twice, or is not text.

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, StatusCode};

use super::PATH;
use super::token::Token;

/// Names of the loopback interface, as `Host` and `Origin` write them.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Headers that say who the client is. The door alone reads them: no handler sees them, so none can pass them on.
const CREDENTIALS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// What a request's head is held against.
#[derive(Debug)]
pub(super) struct Door {
    port: u16,
    token: Option<Token>,
}

/// Why a request does not come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Host,
    Origin,
    Token,
    Path,
}

impl Door {
    pub(super) fn new(port: u16, token: Option<Token>) -> Self {
        Self { port, token }
    }

    /// Lets a request in, without its credentials.
    pub(super) fn admit(&self, head: &mut Parts) -> Result<(), Refusal> {
        if !self.named_rightly(head) {
            return Err(Refusal::Host);
        }
        if !self.is_same_origin(&head.headers) {
            return Err(Refusal::Origin);
        }
        if !self.has_token(&head.headers) {
            return Err(Refusal::Token);
        }
        if head.uri.path() != PATH {
            return Err(Refusal::Path);
        }
        for name in CREDENTIALS {
            head.headers.remove(name);
        }
        Ok(())
    }

    fn named_rightly(&self, head: &Parts) -> bool {
        let named = only(&head.headers, &HOST).is_ok_and(|host| host.is_some_and(|host| self.is_here(host)));
        named && head.uri.authority().is_none_or(|authority| self.is_here(authority.as_str()))
    }

    fn is_same_origin(&self, headers: &HeaderMap) -> bool {
        match only(headers, &ORIGIN) {
            Ok(None) => true,
            Ok(Some(origin)) => origin.strip_prefix("http://").is_some_and(|rest| self.is_here(rest)),
            Err(Unclear) => false,
        }
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

    /// Whether an authority is a name of the loopback interface with our port.
    fn is_here(&self, authority: &str) -> bool {
        let Ok(authority) = authority.parse::<Authority>() else {
            return false;
        };
        let alone = !authority.as_str().contains('@');
        let named = NAMES.iter().any(|name| authority.host().eq_ignore_ascii_case(name));
        alone && named && authority.port_u16().unwrap_or(80) == self.port
    }
}

impl Refusal {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::Path => StatusCode::NOT_FOUND,
        }
    }

    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Host => "the Host header does not name this server",
            Self::Origin => "requests of other origins are not served",
            Self::Token => {
                "send the token as `Authorization: Bearer`; the server said at its start which file it is in"
            }
            Self::Path => "only /mcp is served",
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
