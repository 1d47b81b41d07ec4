//! How a page comes in: a code that is good once, exchanged for the token. The next code is then shown where the first one was.
//!
//! The code stands in the fragment of the address, which a browser sends to no server; the page takes it out of there and
//! sends it in a body. Fails closed when: it is wrong, was used, or others were tried too often. Then no code is good any more.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use bailiwick_door::{Limits, Token, TokenFault, read_body};
use http::request::Parts;
use http::{Method, StatusCode};
use hyper::body::Incoming;
use serde_json::json;

use crate::reply::Reply;

/// Where the code is exchanged.
pub(crate) const PATH: &str = "/enter";

/// The longest body of that request.
const MAX_CODE: usize = 256;

/// How many wrong codes end the right one.
const MAX_WRONG: u32 = 8;

/// A code that lets one page in, once. Its `Debug` says nothing.
pub struct OneTimeCode(String);

impl OneTimeCode {
    /// The code, for the address that is shown to the user.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for OneTimeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneTimeCode(…)")
    }
}

/// The code that is good now, and what it is exchanged for.
pub(crate) struct Entry {
    token: String,
    code: Mutex<Option<(Token, u32)>>,
}

impl Entry {
    pub(crate) fn new(token: &Token) -> Result<(Self, OneTimeCode), TokenFault> {
        let code = Token::random()?;
        let shown = OneTimeCode(code.reveal().to_owned());
        Ok((Self { token: token.reveal().to_owned(), code: Mutex::new(Some((code, 0))) }, shown))
    }

    /// Lets a page in, and has the next code shown.
    pub(crate) async fn answer(
        &self,
        head: &Parts,
        body: Incoming,
        show: impl FnOnce(&OneTimeCode),
    ) -> Reply {
        if head.method != Method::POST {
            return Reply::refused(StatusCode::METHOD_NOT_ALLOWED, "the code is sent with POST");
        }
        let mut limits = Limits::default();
        limits.body_bytes = MAX_CODE;
        let Ok(body) = read_body(&head.headers, body, &limits).await else {
            return Reply::refused(StatusCode::PAYLOAD_TOO_LARGE, "a code is shorter");
        };
        if self.redeem(&body) {
            if let Some(next) = self.renew() {
                show(&next);
            }
            return Reply::json(&json!({ "token": self.token }));
        }
        let why = "this code is wrong or was used; the terminal that runs the console shows the next link";
        Reply::refused(StatusCode::FORBIDDEN, why)
    }

    /// The code for the next page. Without random numbers there is none.
    fn renew(&self) -> Option<OneTimeCode> {
        let code = Token::random().ok()?;
        let shown = OneTimeCode(code.reveal().to_owned());
        *self.code.lock().unwrap_or_else(PoisonError::into_inner) = Some((code, 0));
        Some(shown)
    }

    /// Uses up the code if this is it.
    fn redeem(&self, presented: &[u8]) -> bool {
        let mut kept = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((code, wrong)) = kept.as_mut() else { return false };
        if code.is(presented) {
            *kept = None;
            return true;
        }
        *wrong += 1;
        if *wrong >= MAX_WRONG {
            *kept = None;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> (Entry, String) {
        let (entry, code) = Entry::new(&Token::random().unwrap()).unwrap();
        assert!(!format!("{code:?}").contains(code.reveal()));
        (entry, code.reveal().to_owned())
    }

    #[test]
    fn a_code_is_good_once() {
        let (entry, code) = entry();
        assert!(!entry.redeem(b"") && !entry.redeem(&code.as_bytes()[1..]));
        assert!(entry.redeem(code.as_bytes()));
        assert!(!entry.redeem(code.as_bytes()), "used");
        let next = entry.renew().unwrap();
        assert!(next.reveal() != code && !entry.redeem(code.as_bytes()), "the used one stays used");
        assert!(entry.redeem(next.reveal().as_bytes()) && !entry.redeem(next.reveal().as_bytes()));
    }

    #[test]
    fn who_guesses_ends_it() {
        let (entry, code) = entry();
        for _ in 0..MAX_WRONG {
            assert!(!entry.redeem(b"guess"));
        }
        assert!(!entry.redeem(code.as_bytes()));
    }
}
