//! A person's consent to one call, asked for through the client: by a request of our own in the legacy era, by a result
//! that says what is missing in the modern one.
//!
//! A question is bound to one call by its digest, is good for one use and a short while, and few wait at once; a question
//! that waits already is not asked again. Fails closed when: the client cannot ask people, no answer comes in time, or the
//! answer is for another call. Residual: some clients answer by themselves, so calls of high risk are not asked about here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::Shared;
use super::message::{RequestKey, line};

/// How long a question is good.
const VALID: Duration = Duration::from_secs(120);

/// How many questions wait at once.
const MAX_OPEN: usize = 4;

/// The field of a request for input that is ours.
const APPROVAL: &str = "dev.bailiwick/approval";

/// Where a client of the modern era says what it can do.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What a person is asked.
#[derive(Debug, Clone)]
pub struct ClientQuestion {
    /// What the consent is bound to.
    pub digest: String,
    /// What is read by the person.
    pub message: String,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientConsent {
    /// Yes, once.
    Given,
    /// No.
    Refused,
    /// The client was told what is missing, and calls again with the answer.
    Asked,
    /// The client cannot ask a person.
    Unavailable,
}

tokio::task_local! {
    static CALLER: Arc<CallerLink>;
}

/// Asks the person at the client whose call is being judged.
pub async fn ask_client(question: &ClientQuestion) -> ClientConsent {
    match CALLER.try_with(Arc::clone) {
        Ok(link) => link.ask(question).await,
        Err(_) => ClientConsent::Unavailable,
    }
}

/// The questions of one relay.
#[derive(Debug)]
pub(super) struct ConsentDesk {
    /// Begins every id of our questions. The client alone is told it: a server that knew one could ask its client something under
    /// the id of ours, and the answer would be taken for consent.
    prefix: String,
    /// Begins every id of what we ask the server.
    to_server: String,
    next: AtomicU64,
    /// Whether the client of a legacy session asks people.
    can_elicit: AtomicBool,
    open: Mutex<HashMap<String, OpenQuestion>>,
}

#[derive(Debug)]
struct OpenQuestion {
    digest: String,
    since: Instant,
    /// Who waits for the answer, in the legacy era.
    answer: Option<oneshot::Sender<Value>>,
}

/// The client that made a call, while it is judged.
pub(super) struct CallerLink {
    pub(super) shared: Arc<Shared>,
    pub(super) caller: Caller,
    /// What is sent in place of a refusal: what is missing.
    pub(super) missing: Mutex<Option<Value>>,
}

/// What a call says of its client.
#[derive(Debug, Default)]
pub(super) struct Caller {
    pub(super) is_modern: bool,
    can_elicit: bool,
    /// The state that it brings, and whether the person said yes.
    brought: Option<(String, bool)>,
    /// Whether it brings answers to questions of the server.
    has_other_answers: bool,
    /// What every request of a modern client says of itself.
    pub(super) meta: Map<String, Value>,
}

impl Caller {
    /// What the parameters of a call say. An answer to us is taken out of them.
    pub(super) fn from_params(params: &mut Map<String, Value>, is_modern: bool, desk: &ConsentDesk) -> Self {
        let capabilities = params.get("_meta").and_then(|meta| meta.get(CAPABILITIES));
        let can_elicit = is_modern && capabilities.is_some_and(can_elicit);
        let state = params.get("requestState").and_then(Value::as_str);
        let ours = state.filter(|state| desk.is_ours(state)).map(str::to_owned);
        let brought = ours.map(|state| {
            let answer = params.get("inputResponses").and_then(|answers| answers.get(APPROVAL));
            let consents = answer.is_some_and(is_consent);
            params.remove("requestState");
            params.remove("inputResponses");
            (state, consents)
        });
        let has_other_answers = params.contains_key("requestState") || params.contains_key("inputResponses");
        let meta = params.get("_meta").and_then(Value::as_object).filter(|_| is_modern);
        let meta =
            meta.into_iter().flatten().filter(|(name, _)| name.starts_with("io.modelcontextprotocol/"));
        let meta = meta.map(|(name, value)| (name.clone(), value.clone())).collect();
        Self { is_modern, can_elicit, brought, has_other_answers, meta }
    }

    pub(super) const fn brings_our_answer(&self) -> bool {
        self.brought.is_some()
    }
}

impl ConsentDesk {
    pub(super) fn new() -> Self {
        let (next, can_elicit) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { prefix: random(), to_server: random(), next, can_elicit, open: Mutex::default() }
    }

    /// A key that is used once; `None` if there is no randomness.
    pub(super) fn key(&self) -> Option<String> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (!self.prefix.is_empty()).then(|| format!("{}{number}", self.prefix))
    }

    /// A key of something that we ask the server, which no client can choose and which says nothing of the other keys.
    pub(super) fn key_for_server(&self) -> Option<String> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (!self.to_server.is_empty()).then(|| format!("{}{number}", self.to_server))
    }

    pub(super) fn is_ours(&self, key: &str) -> bool {
        !self.prefix.is_empty() && key.starts_with(&self.prefix)
    }

    /// Notes what the client of a legacy session can do.
    pub(super) fn note_client(&self, params: &Map<String, Value>) {
        let can = params.get("capabilities").is_some_and(can_elicit);
        self.can_elicit.store(can, Ordering::Release);
    }

    /// Takes a client's answer to a question of ours; `false` if it is none.
    pub(super) fn answered(&self, id: &RequestKey, text: &[u8]) -> bool {
        let RequestKey::Text(key) = id else { return false };
        let Some(open) = self.locked().remove(&**key) else { return false };
        if let Some(answer) = open.answer {
            drop(answer.send(serde_json::from_slice(text).unwrap_or_default()));
        }
        true
    }

    /// Notes a question; `None` if too many wait, or this one does.
    fn begin(&self, question: &ClientQuestion, answer: Option<oneshot::Sender<Value>>) -> Option<String> {
        let mut open = self.locked();
        open.retain(|_, one| one.since.elapsed() < VALID);
        if open.len() >= MAX_OPEN || open.values().any(|one| one.digest == question.digest) {
            return None;
        }
        let key = self.key()?;
        let one = OpenQuestion { digest: question.digest.clone(), since: Instant::now(), answer };
        open.insert(key.clone(), one);
        Some(key)
    }

    /// The key of this question, if it waits already.
    fn waiting_for(&self, question: &ClientQuestion) -> Option<String> {
        let open = self.locked();
        let is_it = |one: &OpenQuestion| one.digest == question.digest && one.since.elapsed() < VALID;
        open.iter().find(|(_, one)| is_it(one)).map(|(key, _)| key.clone())
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, OpenQuestion>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallerLink {
    /// Lets a future ask this client.
    pub(super) async fn lend<T>(self: &Arc<Self>, judging: impl Future<Output = T>) -> T {
        CALLER.scope(Arc::clone(self), judging).await
    }

    async fn ask(&self, question: &ClientQuestion) -> ClientConsent {
        if let Some((state, consents)) = &self.caller.brought {
            return self.brought(state, *consents, question);
        }
        match self.caller.is_modern {
            true => self.say_what_is_missing(question),
            false => self.ask_now(question).await,
        }
    }

    /// The answer that the call brings, if it is for exactly this call.
    fn brought(&self, state: &str, consents: bool, question: &ClientQuestion) -> ClientConsent {
        let open = self.shared.desk.locked().remove(state);
        match open {
            Some(open) if open.digest == question.digest && open.since.elapsed() < VALID => {
                if consents {
                    ClientConsent::Given
                } else {
                    ClientConsent::Refused
                }
            }
            Some(_) | None => ClientConsent::Unavailable,
        }
    }

    fn say_what_is_missing(&self, question: &ClientQuestion) -> ClientConsent {
        if !self.caller.can_elicit || self.caller.has_other_answers {
            return ClientConsent::Unavailable;
        }
        let known = self.shared.desk.waiting_for(question);
        let Some(state) = known.or_else(|| self.shared.desk.begin(question, None)) else {
            return ClientConsent::Unavailable;
        };
        let request = json!({ "method": "elicitation/create", "params": form(&question.message) });
        let missing = json!({ "resultType": "input_required", "inputRequests": { APPROVAL: request }, "requestState": state });
        *self.missing.lock().unwrap_or_else(PoisonError::into_inner) = Some(missing);
        ClientConsent::Asked
    }

    async fn ask_now(&self, question: &ClientQuestion) -> ClientConsent {
        let desk = &self.shared.desk;
        if !desk.can_elicit.load(Ordering::Acquire) {
            return ClientConsent::Unavailable;
        }
        let (tell, answer) = oneshot::channel();
        let Some(key) = desk.begin(question, Some(tell)) else { return ClientConsent::Unavailable };
        let request = json!({ "jsonrpc": "2.0", "id": key, "method": "elicitation/create", "params": form(&question.message) });
        self.shared.send_to_client(line(&request));
        let answer = tokio::time::timeout(VALID, answer).await;
        desk.locked().remove(&key);
        match answer {
            Ok(Ok(answer)) => match answer.get("result") {
                Some(result) if is_consent(result) => ClientConsent::Given,
                Some(_) => ClientConsent::Refused,
                None => ClientConsent::Unavailable,
            },
            Ok(Err(_)) | Err(_) => ClientConsent::Unavailable,
        }
    }
}

/// Begins ids that cannot be guessed; nothing without randomness: nothing is asked then.
fn random() -> String {
    let mut random = [0_u8; 16];
    let is_random = getrandom::fill(&mut random).is_ok();
    if is_random { format!("bailiwick-{:032x}-", u128::from_be_bytes(random)) } else { String::new() }
}

/// Whether a client asks people by forms.
fn can_elicit(capabilities: &Value) -> bool {
    let elicitation = capabilities.get("elicitation").and_then(Value::as_object);
    elicitation.is_some_and(|modes| modes.is_empty() || modes.contains_key("form"))
}

/// Whether a person said yes: a client that answers without looking sends no such word.
fn is_consent(answer: &Value) -> bool {
    let allows = answer.get("content").and_then(|content| content.get("allow"));
    answer.get("action").and_then(Value::as_str) == Some("accept") && allows == Some(&Value::Bool(true))
}

/// A form with one box to tick.
fn form(message: &str) -> Value {
    let allow = json!({ "type": "boolean", "title": "Allow this call, once", "default": false });
    let schema = json!({ "type": "object", "properties": { "allow": allow }, "required": ["allow"] });
    json!({ "message": message, "requestedSchema": schema })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_is_asked_says_nothing_of_the_ids_of_questions() {
        let desk = ConsentDesk::new();
        let (told, own) = (desk.key_for_server().unwrap(), desk.key().unwrap());
        assert!(desk.is_ours(&own) && !desk.is_ours(&told), "{told} {own}");
        assert_ne!(told.rsplit_once('-').unwrap().0, own.rsplit_once('-').unwrap().0);
    }
}
