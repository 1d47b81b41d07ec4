//! Who may come in, decided by a request's head before anything of its body is read.
//!
//! A page in a browser can be made to send requests to this machine under a name of its own, so `Host` has to name
//! the loopback interface and our port, and `Origin`, if there is one, has to be this very server. Then the token.
//! Fails closed when: a header is missing, given twice, or is not text.

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
    /// The one path that is served.
    path: &'static str,
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

impl DoorRules {
    /// Admits requests for this path that show the token.
    #[must_use]
    pub fn with_token(path: &'static str, token: Token) -> Self {
        Self { path, token: Some(token) }
    }

    /// Admits every process of this machine: only for a service that can do nothing.
    #[must_use]
    pub fn for_everyone(path: &'static str) -> Self {
        Self { path, token: None }
    }

    /// Lets a request in, without its credentials.
    pub(super) fn admit(&self, port: u16, head: &mut Parts) -> Result<(), Refusal> {
        if !named_rightly(port, head) {
            return Err(Refusal::Host);
        }
        if !is_same_origin(port, &head.headers) {
            return Err(Refusal::Origin);
        }
        if !self.has_token(&head.headers) {
            return Err(Refusal::Token);
        }
        if head.uri.path() != self.path {
            return Err(Refusal::Path);
        }
        for name in CREDENTIALS {
            head.headers.remove(name);
        }
        Ok(())
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

fn named_rightly(port: u16, head: &Parts) -> bool {
    let named = only(&head.headers, &HOST).is_ok_and(|host| host.is_some_and(|host| is_here(port, host)));
    named && head.uri.authority().is_none_or(|authority| is_here(port, authority.as_str()))
}

fn is_same_origin(port: u16, headers: &HeaderMap) -> bool {
    match only(headers, &ORIGIN) {
        Ok(None) => true,
        Ok(Some(origin)) => origin.strip_prefix("http://").is_some_and(|rest| is_here(port, rest)),
        Err(Unclear) => false,
    }
}

/// Whether an authority is a name of the loopback interface with our port.
fn is_here(port: u16, authority: &str) -> bool {
    let Ok(authority) = authority.parse::<Authority>() else {
        return false;
    };
    let alone = !authority.as_str().contains('@');
    let named = NAMES.iter().any(|name| authority.host().eq_ignore_ascii_case(name));
    alone && named && authority.port_u16().unwrap_or(80) == port
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
