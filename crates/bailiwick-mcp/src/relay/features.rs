//! What a server asks its client for: by a request of its own, or, in the modern era, by a result that says what is missing.
//!
//! Both are judged alike. What passes to a person is labelled as the server's, with deceptive characters made visible, so
//! that no server can speak as Bailiwick. Fails closed when: the feature is not open, a method is not known, or what is
//! asked for cannot be read. Nothing is passed on then, and the server hears why.

use std::future::ready;
use std::pin::Pin;

use bailiwick_pins::fold::is_invisible;
use bailiwick_policy::authority::Authority;
use bailiwick_policy::denial::DenialCode;
use serde_json::Value;

use super::Shared;
use super::from_peer::RawFields;
use super::from_server::is_granted;
use super::message::{OWN_ERROR, RequestKey, error_line};
use crate::answer::shown;
use crate::json;

/// Something that a client does for its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientFeature {
    /// Tells the directories that it works in.
    Roots,
    /// Lets its model speak.
    Sampling,
    /// Asks its person.
    Elicitation,
    /// Runs tasks.
    Tasks,
}

/// Whether a server may ask for it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeatureVerdict {
    /// It may.
    Open,
    /// It may not: why, and what a person can do, in one line.
    Refused(String),
}

/// A verdict that is there at once, or when a person has answered.
pub type JudgedFeature<'a> = Pin<Box<dyn Future<Output = FeatureVerdict> + Send + 'a>>;

/// Decides what a server may ask its client for.
pub trait ClientGate: Send + Sync {
    /// Judges one request. While it waits for a person, everything else goes on.
    fn judge<'a>(&'a self, feature: ClientFeature, params: &'a Value) -> JudgedFeature<'a>;

    /// What people call the server.
    fn server(&self) -> &str;
}

/// Opens roots alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct RootsAlone;

impl ClientGate for RootsAlone {
    fn judge<'a>(&'a self, feature: ClientFeature, _: &'a Value) -> JudgedFeature<'a> {
        let verdict = match feature {
            ClientFeature::Roots => FeatureVerdict::Open,
            ClientFeature::Sampling | ClientFeature::Elicitation | ClientFeature::Tasks => {
                FeatureVerdict::Refused("it is not granted to this server".to_owned())
            }
        };
        Box::pin(ready(verdict))
    }

    fn server(&self) -> &'static str {
        "server"
    }
}

impl ClientFeature {
    /// Its name in manifests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Roots => "roots",
            Self::Sampling => "sampling",
            Self::Elicitation => "elicitation",
            Self::Tasks => "tasks",
        }
    }

    fn of_method(method: &str) -> Option<Self> {
        match method {
            "roots/list" => Some(Self::Roots),
            "sampling/createMessage" => Some(Self::Sampling),
            "elicitation/create" => Some(Self::Elicitation),
            _ => method.starts_with("tasks/").then_some(Self::Tasks),
        }
    }
}

/// Judges a request of the server's; the feature, or why not, which is recorded.
pub(super) async fn judge_request(
    shared: &Shared,
    method: &str,
    params: &Value,
) -> Result<ClientFeature, String> {
    let gate = &shared.options.client;
    let refused = |why: String| {
        let reason = format!("the server asked its client for `{}`: {why}", shown(method));
        shared.record_refusal(DenialCode::ClientFeatureRefused, &reason);
        shared.note(&reason);
        reason
    };
    let Some(feature) = ClientFeature::of_method(method) else {
        return Err(refused("it is not granted to this server".to_owned()));
    };
    match gate.judge(feature, params).await {
        FeatureVerdict::Open => Ok(feature),
        FeatureVerdict::Refused(why) => Err(refused(why)),
    }
}

/// A request of the server's with its message labelled; `None` if it has no message for people.
pub(super) fn labelled(line: &str, feature: ClientFeature, server: &str) -> Option<String> {
    let message: RawFields<'_> = serde_json::from_str(line).ok()?;
    let params = message.only("params")?;
    let params = labelled_params(params, feature, server)?;
    Some(message.write(|name, _| (name == "params").then(|| params.clone())))
}

fn labelled_params(params: &str, feature: ClientFeature, server: &str) -> Option<String> {
    if feature != ClientFeature::Elicitation {
        return None;
    }
    let params: RawFields<'_> = serde_json::from_str(params).ok()?;
    if params.has_imitation("message") {
        return None;
    }
    let said: String =
        params.only("message").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let label = format!("The server `{}` asks (not Bailiwick): {}", shown(server), visible(&said));
    Some(params.write(|name, _| (name == "message").then(|| Value::from(label.as_str()).to_string())))
}

/// A text in which nothing is hidden.
#[must_use]
pub fn visible(text: &str) -> String {
    let one =
        |c: char| if is_invisible(c) && c != '\n' { c.escape_unicode().to_string() } else { c.to_string() };
    text.chars().map(one).collect()
}

/// An answer of the server's; where it asks for input, what it asks for is judged, labelled, or refused as a whole.
pub(super) async fn with_judged_inputs(shared: &Shared, id: &RequestKey, line: Vec<u8>) -> Vec<u8> {
    let judged = match std::str::from_utf8(&line) {
        Ok(text) => judged_inputs(shared, text).await,
        Err(_) => None,
    };
    match judged {
        None => line,
        Some(Ok(text)) => text.into_bytes(),
        Some(Err(why)) => error_line(id, OWN_ERROR, &why, None),
    }
}

/// The line with its requests labelled, or why it is refused; `None` if it asks for nothing.
async fn judged_inputs(shared: &Shared, line: &str) -> Option<Result<String, String>> {
    let message: RawFields<'_> = serde_json::from_str(line).ok()?;
    let Ok(result) =
        serde_json::from_str::<RawFields<'_>>(message.find("result").filter(|it| *it != "null")?)
    else {
        return Some(Err("the server's result is no object".to_owned()));
    };
    let unreadable = || Err("the server asks for input in a way that cannot be read".to_owned());
    if result.has_imitation("inputRequests") {
        return Some(unreadable());
    }
    result.find("inputRequests")?;
    let (Some(_), Some(requests)) = (message.only("result"), result.only("inputRequests")) else {
        return Some(unreadable());
    };
    let Ok(requests) = serde_json::from_str::<RawFields<'_>>(requests) else { return Some(unreadable()) };
    let mut written = Vec::new();
    for (_, request) in &requests.0 {
        match judged_input(shared, request.get()).await {
            Some(Ok(text)) => written.push(text),
            Some(Err(why)) => return Some(Err(why)),
            None => return Some(unreadable()),
        }
    }
    let mut texts = written.into_iter();
    let requests = requests.rewrite(|_| texts.next());
    let result = result.write(|name, _| (name == "inputRequests").then(|| requests.clone()));
    Some(Ok(message.write(|name, _| (name == "result").then(|| result.clone()))))
}

/// One request for input, labelled.
async fn judged_input(shared: &Shared, request: &str) -> Option<Result<String, String>> {
    let fields: RawFields<'_> = serde_json::from_str(request).ok()?;
    let method: String = serde_json::from_str(fields.only("method")?).ok()?;
    let raw = if fields.find("params").is_some() { fields.only("params")? } else { "{}" };
    let params = json::read(raw.as_bytes()).ok()?;
    if ["method", "params"].iter().any(|name| fields.has_imitation(name)) {
        return None;
    }
    let feature = match judge_request(shared, &method, &params).await {
        Ok(feature) => feature,
        Err(why) => return Some(Err(why)),
    };
    match labelled_params(raw, feature, shared.options.client.server()) {
        Some(label) => Some(Ok(fields.write(|name, _| (name == "params").then(|| label.clone())))),
        None if feature == ClientFeature::Elicitation => None,
        None => Some(Ok(request.to_owned())),
    }
}

/// The answers that a client brings to a server, without roots that are not granted; `None` if none are taken out.
pub(super) fn granted_responses(responses: &Value, authority: &Authority) -> Option<Value> {
    let mut granted = responses.clone();
    for response in granted.as_object_mut()?.values_mut() {
        if let Some(Value::Array(roots)) = response.get_mut("roots") {
            retain_granted(roots, authority);
        }
    }
    (granted != *responses).then_some(granted)
}

/// Takes out roots that are not granted.
pub(super) fn retain_granted(roots: &mut Vec<Value>, authority: &Authority) {
    let uri =
        |root: &Value| root.get("uri").and_then(Value::as_str).is_some_and(|uri| is_granted(uri, authority));
    roots.retain(uri);
}
