//! From the client to the server: every message is read strictly, and judged if its method is.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use bailiwick_guard::{Outcome, PendingCall, ToolError, ToolFault};
use bailiwick_policy::denial::{Denial, DenialCode};
use serde_json::{Map, Value, json};
use tokio::io::AsyncRead;
use tokio::sync::oneshot;

use super::Shared;
use super::call::{RelayedCall, with_injected};
use super::consent::{Caller, CallerLink};
use super::counts::Era;
use super::features::granted_responses;
use super::from_peer::RawFields;
use super::in_flight::ServedCall;
use super::message::{
    ClientMessage, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Malformed, OWN_ERROR, RequestKey,
    error_line, read_client, result_line,
};
use super::own_list;
use super::pins::ListKind;
use super::waiting::{Feature, Reply, WaitingCall};
use super::{from_server, strict};
use crate::answer::{self, DECISION};
use crate::stdio::frames::{Frame, Frames};

/// Methods that pass without being judged: they open a session, list, or end a subscription.
const PASSED: [&str; 9] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/unsubscribe",
    "prompts/list",
    "logging/setLevel",
];

/// The field of `_meta` by which a request of the modern era says its version.
const MODERN: &str = "io.modelcontextprotocol/protocolVersion";

/// Reads until the client has gone.
pub(super) async fn read_all(shared: &Arc<Shared>, input: impl AsyncRead + Unpin) {
    let mut frames = Frames::new(input);
    loop {
        shared.to_server.has_room().await;
        match frames.next().await {
            Ok(Frame::Whole(line)) => {
                shared.heard.store(true, Ordering::Release);
                accept(shared, line).await;
            }
            Ok(Frame::TooLong) => refuse(shared, &Malformed::too_long()),
            Ok(Frame::End) | Err(_) => return,
        }
    }
}

async fn accept(shared: &Arc<Shared>, line: Vec<u8>) {
    let accepted = match read_client(&line) {
        Ok(None) => Ok(()),
        Ok(Some(ClientMessage::Request { id, method, params, has_odd_number })) => {
            request(shared, id, &method, params, has_odd_number, line).await
        }
        Ok(Some(ClientMessage::Notification { method, params })) => {
            notification(shared, &method, &params, line);
            Ok(())
        }
        Ok(Some(ClientMessage::Answer { id })) => {
            answer_of_client(shared, &id, line);
            Ok(())
        }
        Err(malformed) => Err(malformed),
    };
    if let Err(malformed) = accepted {
        refuse(shared, &malformed);
    }
}

/// Answers a message that is not passed on, and records it.
fn refuse(shared: &Shared, malformed: &Malformed) {
    shared.record_refusal(DenialCode::MessageAmbiguous, &malformed.message);
    shared.to_client.push(malformed.to_line());
}

async fn request(
    shared: &Arc<Shared>,
    id: RequestKey,
    method: &str,
    params: Map<String, Value>,
    has_odd_number: bool,
    line: Vec<u8>,
) -> Result<(), Malformed> {
    if let Some(reason) = shared.ended.get() {
        shared.to_client.push(error_line(&id, OWN_ERROR, reason, None));
        return Ok(());
    }
    note_era(shared, method, &params);
    if method == "initialize" {
        shared.desk.note_client(&params);
    }
    if PASSED.contains(&method) || is_plain_listening(method, &params) {
        let reply = match (method, ListKind::of_method(method)) {
            (_, Some(kind)) => Reply::List(kind),
            ("initialize" | "server/discover", None) => Reply::Opening,
            (_, None) => Reply::Passed,
        };
        shared.waiting.begin(&id, reply)?;
        shared.to_server.push(with_newline(line));
        return Ok(());
    }
    if has_odd_number {
        let message = "Invalid request: it has a number that parsers read differently".to_owned();
        return Err(Malformed { id: Some(id), code: INVALID_REQUEST, message });
    }
    let asked = AskedCall::new(shared, id, method, params, line)?;
    start(shared, asked).await;
    Ok(())
}

fn note_era(shared: &Shared, method: &str, params: &Map<String, Value>) {
    match method {
        "initialize" => shared.options.counts.note_era(Era::Legacy),
        // Clients of both eras ask so which one the server speaks.
        "server/discover" => {}
        _ if is_modern(params) => shared.options.counts.note_era(Era::Modern),
        _ => {}
    }
}

/// Whether a request says its version.
fn is_modern(params: &Map<String, Value>) -> bool {
    params.get("_meta").is_some_and(|meta| meta.get(MODERN).is_some())
}

/// Whether a request of the modern era only subscribes to changed lists; resources in it are judged.
fn is_plain_listening(method: &str, params: &Map<String, Value>) -> bool {
    let resources = params.get("notifications").and_then(|wanted| wanted.get("resourceSubscriptions"));
    method == "subscriptions/listen" && resources.is_none()
}

/// A request that the gate judges.
struct AskedCall {
    id: RequestKey,
    /// As the gate knows it: a tool's name, or a method's.
    name: String,
    args: Value,
    /// Where the arguments stand in the parameters; nowhere if they are the parameters.
    field: Option<&'static str>,
    line: Vec<u8>,
    answer: oneshot::Receiver<Vec<u8>>,
    served: Arc<ServedCall>,
    caller: Caller,
    is_tool: bool,
}

impl AskedCall {
    fn new(
        shared: &Shared,
        id: RequestKey,
        method: &str,
        mut params: Map<String, Value>,
        line: Vec<u8>,
    ) -> Result<Self, Malformed> {
        let wrong =
            |message: &str| Malformed { id: Some(id.clone()), code: INVALID_PARAMS, message: message.into() };
        let is_modern = is_modern(&params);
        let caller = Caller::from_params(&mut params, is_modern, &shared.desk);
        let line = with_own_answers(shared, &caller, &params, line)
            .ok_or_else(|| wrong("Invalid params: `inputResponses` cannot be passed on"))?;
        let (name, args, field) = if method == "tools/call" {
            let Some(Value::String(name)) = params.remove("name") else {
                return Err(wrong("Invalid params: `name` is the name of a tool"));
            };
            // A method that the manifest lists is no tool.
            let name =
                if name.contains('/') && is_method(&name) { format!("tools/call {name}") } else { name };
            let args = match params.remove("arguments") {
                args @ (None | Some(Value::Object(_))) => args,
                Some(_) => return Err(wrong("Invalid params: `arguments` is an object")),
            };
            let field = args.is_some().then_some("arguments");
            (name, args.unwrap_or_else(|| json!({})), field)
        } else {
            params.remove("_meta");
            params.remove("requestState");
            params.remove("inputResponses");
            (method.to_owned(), Value::Object(params), None)
        };
        let marks = shared.options.marks.get(&name).map(Vec::as_slice).unwrap_or_default();
        let marks: Vec<&str> = marks.iter().map(String::as_str).collect();
        if strict::imitates_a_mark(&args, &marks) {
            return Err(wrong("Invalid params: an argument passes for another one"));
        }
        let (sender, answer) = oneshot::channel();
        let served = shared.options.in_flight.call(&name);
        let waits = WaitingCall { answer: sender, served: Arc::clone(&served) };
        shared.waiting.begin(&id, Reply::Judged(waits))?;
        Ok(Self { id, name, args, field, line, answer, served, caller, is_tool: method == "tools/call" })
    }

    fn is_tool(&self) -> bool {
        self.is_tool
    }
}

/// The line without an answer that is for us, and without roots that are not granted among those for the server; `None` if it
/// cannot be written.
fn with_own_answers(
    shared: &Shared,
    caller: &Caller,
    params: &Map<String, Value>,
    line: Vec<u8>,
) -> Option<Vec<u8>> {
    let authority = shared.options.grant.authority();
    let granted = params.get("inputResponses").and_then(|answers| granted_responses(answers, authority));
    if granted.is_none() && !caller.brings_our_answer() {
        return Some(line);
    }
    let message: RawFields<'_> = serde_json::from_slice(&line).ok()?;
    let mut fields: RawFields<'_> = serde_json::from_str(message.only("params")?).ok()?;
    if caller.brings_our_answer() {
        fields.0.retain(|(name, _)| name != "requestState" && name != "inputResponses");
    }
    let granted = granted.map(|answers| answers.to_string());
    let params = fields.write(|name, _| granted.clone().filter(|_| name == "inputResponses"));
    Some(message.write(|name, _| (name == "params").then(|| params.clone())).into_bytes())
}

/// Whether a name is that of a method of the protocol, not of a tool.
#[must_use]
pub fn is_method(name: &str) -> bool {
    const FAMILIES: [&str; 9] = [
        "resources/",
        "prompts/",
        "completion/",
        "tasks/",
        "sampling/",
        "elicitation/",
        "roots/",
        "subscriptions/",
        "tools/",
    ];
    FAMILIES.iter().any(|family| name.starts_with(family))
}

/// Judges a call at once, so that calls reach the server in the order in which they came; only what waits, for a person
/// or for its answer, goes on beside the others.
async fn start(shared: &Arc<Shared>, asked: AskedCall) {
    let mut call: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(run(Arc::clone(shared), asked));
    let first = std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await;
    if first.is_pending() {
        let mut calls = shared.calls.lock().unwrap_or_else(PoisonError::into_inner);
        while calls.try_join_next().is_some() {}
        calls.spawn(call);
    }
}

async fn run(shared: Arc<Shared>, asked: AskedCall) {
    let is_tool = asked.is_tool();
    let AskedCall { id, name, args, field, line, mut answer, served, caller, .. } = asked;
    let form = ReplyForm { is_tool, is_modern: caller.is_modern };
    let link = Arc::new(CallerLink { shared: Arc::clone(&shared), caller, missing: Mutex::default() });
    shared.options.counts.count_call();
    if is_tool && shared.options.tools.registry().has_tool(&name) {
        own_list::ensure_listed(&shared, &link.caller).await;
    }
    let pending = PendingCall::new(name.as_str(), args.clone(), &shared.options.grant);
    let admitted = match link.lend(shared.options.tools.admit(pending)).await {
        Ok(admitted) => admitted,
        Err(error) => {
            if matches!(error, ToolError::Denied { .. }) {
                shared.options.counts.count_denial();
            }
            let missing = link.missing.lock().unwrap_or_else(PoisonError::into_inner).take();
            let line = missing
                .map_or_else(|| refusal(&id, &name, form, &error), |missing| result_line(&id, &missing));
            // A client that cancelled it meanwhile waits no more; one whose server has ended does.
            if shared.waiting.end(&id).is_some() || answer.try_recv().is_ok() {
                shared.send_to_client(line);
            }
            return;
        }
    };
    let call = RelayedCall::new((name.clone(), args), line, answer, shared.to_server.clone(), field);
    shared.options.in_flight.begin(&served);
    let answered = admitted.run_with(&call).await;
    served.end();
    let line = match (call.take_answer(), answered.result) {
        (Some(line), _) => with_newline(with_injected(line, &answered.injected)),
        (None, Ok(Outcome::Refused(denial))) => {
            shared.options.counts.count_denial();
            refusal(&id, &name, form, &denial.into())
        }
        (None, Err(ToolFault::Cancelled)) => return,
        (None, Err(fault)) => refusal(&id, &name, form, &fault.into()),
        (None, Ok(Outcome::Ran(_))) => return,
    };
    drop(shared.waiting.end(&id));
    shared.send_to_client(line);
}

/// How a request is answered.
#[derive(Clone, Copy)]
struct ReplyForm {
    is_tool: bool,
    is_modern: bool,
}

/// What a client is told of a call that does not run.
fn refusal(id: &RequestKey, name: &str, form: ReplyForm, error: &ToolError) -> Vec<u8> {
    let ReplyForm { is_tool, is_modern } = form;
    match error {
        ToolError::Denied { denial, .. } if is_tool => refused_tool(id, denial, is_modern),
        ToolError::Denied { denial, .. } => refused_method(id, denial),
        ToolError::Fault(ToolFault::NotFound(_)) if is_tool => {
            error_line(id, INVALID_PARAMS, &format!("Unknown tool: {}", answer::shown(name)), None)
        }
        ToolError::Fault(ToolFault::NotFound(_)) => {
            let advice = "the manifest does not list it: add a `[[tools]]` entry of this name";
            error_line(
                id,
                METHOD_NOT_FOUND,
                &format!("Method not found: {} ({advice})", answer::shown(name)),
                None,
            )
        }
        ToolError::Fault(_) | _ => error_line(id, OWN_ERROR, &error.to_string(), None),
    }
}

fn refused_tool(id: &RequestKey, denial: &Denial, is_modern: bool) -> Vec<u8> {
    let mut result = serde_json::to_value(answer::refused(denial, None)).unwrap_or_default();
    if let (Value::Object(fields), false) = (&mut result, is_modern) {
        // Clients of the legacy era know no such field.
        fields.shift_remove("resultType");
    }
    result_line(id, &result)
}

fn refused_method(id: &RequestKey, denial: &Denial) -> Vec<u8> {
    let data = json!({ DECISION: answer::decision(denial) });
    error_line(id, OWN_ERROR, &denial.to_string(), Some(data))
}

fn notification(shared: &Shared, method: &str, params: &Map<String, Value>, line: Vec<u8>) {
    if !method.starts_with("notifications/") {
        let reason = format!("`{}` came without an id", answer::shown(method));
        shared.record_refusal(DenialCode::MethodUnlisted, &reason);
        return;
    }
    shared.to_server.push(with_newline(line));
    if method == "notifications/cancelled" {
        let id = params.get("requestId").and_then(RequestKey::from_value);
        // Who waits for the answer hears that there will be none.
        id.into_iter().for_each(|id| shared.waiting.cancel(id));
    }
}

fn answer_of_client(shared: &Shared, id: &RequestKey, line: Vec<u8>) {
    if shared.desk.answered(id, &line) {
        return;
    }
    match shared.waiting.answered(id) {
        None => shared.note("the client answered what the server had not asked; the answer was dropped"),
        Some(Feature::Roots) => {
            let authority = shared.options.grant.authority();
            shared.to_server.push(from_server::with_granted_roots(&line, authority));
        }
        Some(Feature::Other) => shared.to_server.push(with_newline(line)),
    }
}

/// The line with its end.
pub(super) fn with_newline(mut line: Vec<u8>) -> Vec<u8> {
    if line.last() != Some(&b'\n') {
        line.push(b'\n');
    }
    line
}
