//! A call that waits for a person of the fleet: posted, looked at by long poll, and its answer taken for exactly one call.
//!
//! What is asked about is bound to the arguments by their digest, to what the server says of itself, and to the policy. Consent is only the
//! hub's answer to *taking* the approval, for the same arguments and with a nonce of this call: an answer that was seen or kept permits
//! nothing. A call that is made again while its question waits is the same question. Two equal calls at the same time are two questions.
//!
//! Fails closed when: no hub answers, or an answer names other arguments.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bailiwick_fleet::Hash;
use bailiwick_fleet::admin::TakeRequest;
use bailiwick_fleet::protocol::{ApprovalRequest, ApprovalStatus};
use serde_json::Value;

use crate::draw_id;
use crate::hub::{Hub, HubError};

/// How long a question waits at the hub, in seconds.
const TTL_S: u64 = 600;
/// The longest single wait for an answer; proxies end what is silent for a minute.
const MAX_POLL_S: u64 = 20;
/// The most bytes of a reason.
const MAX_REASON: usize = 900;
/// The most questions that are remembered.
const MAX_OPEN: usize = 256;

/// A call that needs a person.
#[derive(Debug, Clone)]
pub struct WaitingCall {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments with secrets taken out.
    pub shown: Value,
    /// The SHA-256 of the canonical arguments as they are.
    pub arguments_sha256: Hash,
    /// The SHA-256 of what the server says of the tool.
    pub pins: Hash,
    /// The SHA-256 of the manifest that asks.
    pub policy: Hash,
    /// What is asked.
    pub reason: String,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may run, once.
    Allowed {
        /// Who said so.
        by: String,
    },
    /// It may not.
    Denied {
        /// Who said so.
        by: String,
        /// A remark.
        remark: Option<String>,
    },
    /// No answer yet.
    Waiting {
        /// The question's id.
        id: String,
    },
    /// No answer came in time, or it was taken before.
    Over,
}

/// Questions of this process.
pub struct ApprovalDesk {
    hub: Arc<Hub>,
    open: Mutex<HashMap<Hash, OpenQuestion>>,
}

/// A question at the hub. Only one call at a time has it.
struct OpenQuestion {
    request: ApprovalRequest,
    /// What takes the answer: the same for each try of the call that this is about.
    nonce: String,
}

impl ApprovalDesk {
    /// A desk that asks these hubs.
    #[must_use]
    pub fn new(hub: Arc<Hub>) -> Self {
        Self { hub, open: Mutex::default() }
    }

    /// Asks about a call, and waits this long for the answer. Asked again later, a question that still waits goes on.
    ///
    /// # Errors
    /// If no hub answers, or it refuses the question.
    pub async fn decide(&self, call: &WaitingCall, hold: Duration) -> Result<Decision, HubError> {
        let key = binding(call);
        let held = self.locked().remove(&key);
        let question = match held {
            Some(question) => question,
            None => OpenQuestion::draw(call)?,
        };
        let decided = self.settle(&question, hold).await;
        // A question without an answer is asked again by the next call that is the same; so is one whose answer was lost.
        let goes_on = match &decided {
            Ok(Decision::Waiting { .. }) => true,
            Ok(Decision::Allowed { .. } | Decision::Denied { .. } | Decision::Over) => false,
            Err(error) => !error.is_final(),
        };
        let mut open = self.locked();
        if goes_on && open.len() < MAX_OPEN {
            open.insert(key, question);
        }
        decided
    }

    async fn settle(&self, question: &OpenQuestion, hold: Duration) -> Result<Decision, HubError> {
        let (until, id) = (Instant::now() + hold, &question.request.id);
        let mut status: ApprovalStatus = self.hub.post("/v1/approvals", &question.request).await?;
        loop {
            match status {
                ApprovalStatus::Allowed { .. } => return self.take(question).await,
                ApprovalStatus::Denied { by, remark } => return Ok(Decision::Denied { by, remark }),
                ApprovalStatus::Expired => return Ok(Decision::Over),
                // Taken by us, where the answer to that was lost: it is given again for the same nonce alone.
                ApprovalStatus::Used => return self.take(question).await,
                ApprovalStatus::Waiting { .. } => {}
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Decision::Waiting { id: id.clone() });
            }
            let wait = (left.as_secs() + 1).min(MAX_POLL_S);
            let path = format!("/v1/approvals/{id}?wait={wait}");
            status = self.hub.get_within(&path, Duration::from_secs(wait + 10)).await?;
        }
    }

    /// Takes the answer for this call. Only this permits it.
    async fn take(&self, question: &OpenQuestion) -> Result<Decision, HubError> {
        let OpenQuestion { request, nonce } = question;
        let wanted = request.arguments_sha256;
        let taken = TakeRequest { arguments_sha256: wanted, nonce: nonce.clone() };
        let path = format!("/v1/approvals/{}/take", request.id);
        match self.hub.post(&path, &taken).await? {
            ApprovalStatus::Allowed { by, arguments_sha256, .. } if arguments_sha256 == wanted => {
                Ok(Decision::Allowed { by })
            }
            ApprovalStatus::Denied { by, remark } => Ok(Decision::Denied { by, remark }),
            ApprovalStatus::Allowed { .. }
            | ApprovalStatus::Waiting { .. }
            | ApprovalStatus::Expired
            | ApprovalStatus::Used => Ok(Decision::Over),
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Hash, OpenQuestion>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenQuestion {
    fn draw(call: &WaitingCall) -> Result<Self, HubError> {
        let id = || draw_id().map_err(|why| HubError::Request(format!("no random bytes: {why}")));
        let WaitingCall { server, tool, shown, arguments_sha256, pins, policy, reason } = call.clone();
        let request = ApprovalRequest {
            id: id()?,
            server,
            tool,
            arguments: shown,
            arguments_sha256,
            pins,
            policy,
            reason: plain(&reason),
            ttl_s: TTL_S,
        };
        Ok(Self { request, nonce: id()? })
    }
}

/// What makes two calls the same question.
fn binding(call: &WaitingCall) -> Hash {
    let parts = [call.arguments_sha256, call.pins, call.policy];
    let [arguments, pins, policy] = parts.each_ref().map(|hash| hash.as_bytes().as_slice());
    let name = |text: &str| Hash::sha256(text.as_bytes());
    let (server, tool) = (name(&call.server), name(&call.tool));
    Hash::of_parts(&[server.as_bytes(), tool.as_bytes(), arguments, pins, policy])
}

/// Without control characters, and as short as the hub takes it.
fn plain(text: &str) -> String {
    let mut kept = String::new();
    for letter in text.chars().filter(|letter| !letter.is_control()) {
        if kept.len() + letter.len_utf8() > MAX_REASON {
            break;
        }
        kept.push(letter);
    }
    kept
}

#[cfg(test)]
mod tests;
