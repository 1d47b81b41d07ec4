//! A call that the gate let through, on its way to the server and back.

use std::sync::{Mutex, PoisonError};

use bailiwick_guard::{Output, Part, Tool, ToolContext, ToolError, ToolFault};
use bailiwick_guardrails::InjectedMessage;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::from_peer::{RawFields, ServerMessage};
use super::lines::LineQueue;

/// A tool of a registry that runs elsewhere: the gate knows its name and its rules, and it can only be called through a
/// relay.
#[derive(Debug, Clone)]
pub struct RemoteTool(String);

impl RemoteTool {
    /// A tool of this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

impl Tool for RemoteTool {
    fn name(&self) -> &str {
        &self.0
    }

    fn schema(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn invoke(&self, _: Value, _: &ToolContext) -> Result<Output, ToolError> {
        Err(ToolError::failed("this tool runs in a server, behind a relay"))
    }
}

/// One call: the line that was judged, and where the answer will come.
pub(super) struct RelayedCall {
    name: String,
    /// The arguments as they were judged first.
    args: Value,
    /// The line and who waits for the answer; gone once it is sent.
    ready: Mutex<Option<ReadyLine>>,
    server: LineQueue,
    /// Where the arguments stand in the parameters; nowhere if they are the parameters.
    field: Option<&'static str>,
    answer: Mutex<Option<Vec<u8>>>,
}

struct ReadyLine {
    line: Vec<u8>,
    answer: oneshot::Receiver<Vec<u8>>,
}

impl RelayedCall {
    pub(super) fn new(
        (name, args): (String, Value),
        line: Vec<u8>,
        answer: oneshot::Receiver<Vec<u8>>,
        server: LineQueue,
        field: Option<&'static str>,
    ) -> Self {
        let ready = Mutex::new(Some(ReadyLine { line, answer }));
        Self { name, args, ready, server, field, answer: Mutex::new(None) }
    }

    /// The server's answer, once.
    pub(super) fn take_answer(&self) -> Option<Vec<u8>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps an answer for the client; what is heard of it.
    fn keep(&self, answered: Vec<u8>) -> Output {
        let output = heard(&answered);
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answered);
        output
    }

    /// The line with other arguments: what was judged last is what is sent.
    fn rewritten(&self, line: &[u8], args: Value) -> Option<Vec<u8>> {
        let mut message: Value = serde_json::from_slice(line).ok()?;
        match self.field {
            Some(field) => *message.get_mut("params")?.get_mut(field)? = args,
            None => *message.get_mut("params")? = args,
        }
        Some(message.to_string().into_bytes())
    }
}

impl Tool for RelayedCall {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(ReadyLine { line, mut answer }) = ready else { return Err(ToolFault::Cancelled.into()) };
        // The client may have cancelled it while a person was asked.
        match answer.try_recv() {
            Err(oneshot::error::TryRecvError::Empty) => {}
            Err(oneshot::error::TryRecvError::Closed) => return Err(ToolFault::Cancelled.into()),
            // The server has ended before the call reached it.
            Ok(ended) => return Ok(self.keep(ended)),
        }
        let line = if args == self.args { Some(line) } else { self.rewritten(&line, args) };
        let Some(mut line) = line else {
            return Err(ToolError::failed("the rewritten call cannot be written"));
        };
        line.push(b'\n');
        context.mark_acted();
        self.server.push(line);
        let answered = answer.await.map_err(|_| ToolFault::Cancelled)?;
        Ok(self.keep(answered))
    }
}

/// What the record and the guardrails are told of an answer.
fn heard(answer: &[u8]) -> Output {
    let message = ServerMessage::read(answer).unwrap_or_default();
    let Some(result) = message.result else {
        let text = message.error.map(|error| error.get().to_owned());
        return Output {
            is_error: true,
            content: text.into_iter().map(Part::text).collect(),
            ..Output::default()
        };
    };
    let Ok(result) = serde_json::from_str::<RawFields<'_>>(result.get()) else { return Output::default() };
    let blocks: Option<Vec<&RawValue>> =
        result.find("content").and_then(|blocks| serde_json::from_str(blocks).ok());
    let text = |block: &RawValue| -> Option<String> {
        let block: RawFields<'_> = serde_json::from_str(block.get()).ok()?;
        serde_json::from_str(block.find("text")?).ok()
    };
    Output {
        is_error: result.find("isError") == Some("true"),
        content: blocks.unwrap_or_default().into_iter().filter_map(text).map(Part::text).collect(),
        ..Output::default()
    }
}

/// The answer with what a project's hooks have to say to the model behind it.
pub(super) fn with_injected(answer: Vec<u8>, injected: &[InjectedMessage]) -> Vec<u8> {
    if injected.is_empty() {
        return answer;
    }
    let Ok(mut message) = serde_json::from_slice::<Value>(&answer) else { return answer };
    let content = message.get_mut("result").and_then(|result| result.get_mut("content"));
    let Some(Value::Array(content)) = content else { return answer };
    content.extend(injected.iter().map(|one| json!({ "type": "text", "text": one.text })));
    message.to_string().into_bytes()
}
