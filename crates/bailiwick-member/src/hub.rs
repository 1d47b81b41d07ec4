//! Requests to the hubs of a fleet: TLS with the member's certificate, one hub after the other, bounded answers.
//!
//! A hub that does not answer, or whose database is away, is followed by the next; the one that answered last is asked first. That is harmless
//! because a request that changes something carries an id, and the same request again has the same answer. The few that carry none go to
//! another hub only if they were not sent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bailiwick_fleet::admin::IDEMPOTENCY_KEY;
use bailiwick_fleet::protocol::Refusal;
use bailiwick_remote::{Client, ConnectError, Endpoint, EndpointError, OwnTls, Resolver, SendError};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::identity::Identity;

/// How long a hub may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest answer: a page of members with their inventories.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// The hubs of a fleet, as one member asks them.
pub struct Hub {
    client: Client,
    bases: Vec<Endpoint>,
    /// Which answered last.
    first: AtomicUsize,
}

/// Why a hub cannot be asked at all.
#[derive(Debug, thiserror::Error)]
pub enum HubSetupError {
    /// A URL may not be asked.
    #[error(transparent)]
    Url(#[from] EndpointError),
    /// A certificate or key cannot be used.
    #[error(transparent)]
    Tls(#[from] ConnectError),
}

/// Why there is no answer, or which.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// None answers.
    #[error("no hub of the fleet answers: {0}")]
    Unreachable(String),
    /// It was refused.
    #[error("the hub refuses: {refusal}")]
    Refused {
        /// The status.
        status: StatusCode,
        /// The code, and why.
        refusal: Refusal,
    },
    /// The answer is not one of a hub.
    #[error("the answer of `{0}` is not one of a hub: {1}")]
    Unusable(String, String),
    /// The request cannot be written.
    #[error("the request cannot be written: {0}")]
    Request(String),
}

impl HubError {
    /// The code of a refusal.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { refusal, .. } => Some(&refusal.code),
            Self::Unreachable(_) | Self::Unusable(..) | Self::Request(_) => None,
        }
    }

    /// Whether the same request will never be done.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused { status, .. } if status.is_client_error() && *status != StatusCode::TOO_MANY_REQUESTS)
    }
}

/// One request.
pub(crate) struct Asked<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) body: Vec<u8>,
    /// The id of what is done once.
    pub(crate) once: Option<&'a str>,
    /// Whether it may be sent to another hub after it was sent to one.
    pub(crate) repeats: bool,
    pub(crate) patience: Duration,
}

impl Hub {
    /// The hubs of an identity's fleet.
    ///
    /// # Errors
    /// If a URL or a file of the identity cannot be used.
    pub fn new(identity: &Identity) -> Result<Self, HubSetupError> {
        let own = OwnTls {
            authorities: identity.authority.as_deref(),
            identity: Some((&identity.certificate, &identity.key)),
        };
        Self::at(&identity.enrolment.hub, &own)
    }

    /// Hubs at these URLs.
    ///
    /// # Errors
    /// If one of them may not be asked.
    pub(crate) fn at(urls: &[String], own: &OwnTls<'_>) -> Result<Self, HubSetupError> {
        let bases = urls.iter().map(|url| Endpoint::new(url)).collect::<Result<_, _>>()?;
        // A hub is of the user's own organization, so its name may lead into a private network.
        let client = Client::with_tls(Resolver::default(), Default::default(), own)?.for_own_network();
        Ok(Self { client, bases, first: AtomicUsize::new(0) })
    }

    /// Reads.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, HubError> {
        self.get_within(path, PATIENCE).await
    }

    pub(crate) async fn get_within<T: DeserializeOwned>(
        &self,
        path: &str,
        patience: Duration,
    ) -> Result<T, HubError> {
        let asked =
            Asked { method: Method::GET, path, body: Vec::new(), once: None, repeats: true, patience };
        self.json(&asked).await
    }

    /// Sends what can be sent again: what it says has an id.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, HubError> {
        self.json(&posted(path, body, None, true)?).await
    }

    /// The same for what a hub answers without a body.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn tell(&self, path: &str, body: &impl Serialize) -> Result<(), HubError> {
        self.send(&posted(path, body, None, true)?).await.map(drop)
    }

    /// Sends what has no id: it goes to another hub only if it was not sent.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn post_unrepeated<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, HubError> {
        self.json(&posted(path, body, None, false)?).await
    }

    /// Sends what shall be done once, under this id.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn post_once<T: DeserializeOwned>(
        &self,
        path: &str,
        id: &str,
        body: &impl Serialize,
    ) -> Result<T, HubError> {
        self.json(&posted(path, body, Some(id), true)?).await
    }

    async fn json<T: DeserializeOwned>(&self, asked: &Asked<'_>) -> Result<T, HubError> {
        let (origin, body) = self.send(asked).await?;
        serde_json::from_slice(&body).map_err(|why| HubError::Unusable(origin, why.to_string()))
    }

    /// Asks the hubs one after the other. Answers the origin and the body of the first answer that is one.
    async fn send(&self, asked: &Asked<'_>) -> Result<(String, Vec<u8>), HubError> {
        let first = self.first.load(Ordering::Relaxed);
        let mut failed = Vec::new();
        for step in 0..self.bases.len() {
            let at = (first + step) % self.bases.len();
            let Some(base) = self.bases.get(at) else { continue };
            let (why, was_sent) = match self.send_to(base, asked).await {
                Ok((status, body)) if status != StatusCode::SERVICE_UNAVAILABLE => {
                    self.first.store(at, Ordering::Relaxed);
                    return answered(base.origin(), status, body);
                }
                // Its database is away: nothing was done, as far as it knows.
                Ok((_, body)) => (unavailable(base, &body), true),
                Err(why) => (why.to_string(), !matches!(why, SendError::Connect(_))),
            };
            failed.push(why);
            if was_sent && !asked.repeats {
                break;
            }
        }
        Err(HubError::Unreachable(failed.join("; ")))
    }

    async fn send_to(&self, base: &Endpoint, asked: &Asked<'_>) -> Result<(StatusCode, Vec<u8>), SendError> {
        let unusable = |why: String| SendError::Unusable(base.origin(), why);
        let target = base.join(asked.path).map_err(|why| unusable(why.to_string()))?;
        let mut request = Request::builder().method(asked.method.clone()).uri(target.as_str());
        if !asked.body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(id) = asked.once {
            request = request.header(IDEMPOTENCY_KEY, id);
        }
        let request = request.body(Bytes::copy_from_slice(&asked.body)).map_err(SendError::Request)?;
        let exchange = async {
            let answered = self.client.send(&target, &request, asked.patience).await?;
            Ok((answered.status, answered.body.read(MAX_ANSWER).await?))
        };
        // Each piece has its time, and all of them together.
        let all = asked.patience.saturating_mul(2);
        timeout(all, exchange).await.map_err(|_| SendError::Silent(base.origin(), all.as_secs()))?
    }
}

fn posted<'a>(
    path: &'a str,
    body: &impl Serialize,
    once: Option<&'a str>,
    repeats: bool,
) -> Result<Asked<'a>, HubError> {
    let body = serde_json::to_vec(body).map_err(|why| HubError::Request(why.to_string()))?;
    Ok(Asked { method: Method::POST, path, body, once, repeats, patience: PATIENCE })
}

fn answered(origin: String, status: StatusCode, body: Vec<u8>) -> Result<(String, Vec<u8>), HubError> {
    if status.is_success() {
        return Ok((origin, body));
    }
    match serde_json::from_slice::<Refusal>(&body) {
        Ok(refusal) => Err(HubError::Refused { status, refusal: plain(refusal) }),
        Err(_) => Err(HubError::Unusable(origin, format!("status {}", status.as_u16()))),
    }
}

/// A refusal is shown on terminals and told to models: without control characters, and not longer than a few lines.
fn plain(refusal: Refusal) -> Refusal {
    let cut = |text: &str| text.chars().filter(|letter| !letter.is_control()).take(400).collect();
    Refusal { code: cut(&refusal.code), message: cut(&refusal.message) }
}

fn unavailable(base: &Endpoint, body: &[u8]) -> String {
    let said = serde_json::from_slice::<Refusal>(body).map(plain).map(|refusal| refusal.to_string());
    format!("`{}` answers 503: {}", base.origin(), said.unwrap_or_else(|_| "no reason is given".to_owned()))
}

#[cfg(test)]
pub(crate) mod tests;
