//! A permit: one call that may run, once.

use std::time::Instant;

use bailiwick_journal::format::{Decision, Event};

use super::ToolContext;
use crate::grant::Grant;
use crate::offload::CancelFlag;
use crate::outcome::{Outcome, Output};
use crate::tool::{AnyTool, Listener, Tool, ToolError, ToolFault};
use bailiwick_guardrails::Call;

/// Leave to run one call once. Only the gate makes one; using it uses it up, and dropping it unused puts the
/// call back.
///
/// See [`Gate`](super::Gate) for an example.
#[must_use = "a permit that is not used puts its call back"]
pub struct Permit {
    call: Call,
    context: ToolContext,
    grant: Grant,
    index: usize,
    progress: Progress,
}

/// How far a permit has come.
enum Progress {
    Unused,
    Running(Instant),
    Settled,
}

impl Permit {
    pub(super) const fn mint(call: Call, context: ToolContext, grant: Grant, index: usize) -> Self {
        Self { call, context, grant, index, progress: Progress::Unused }
    }

    /// The call as it will run.
    #[must_use]
    pub const fn call(&self) -> &Call {
        &self.call
    }

    /// The same, with a listener for what the call reports while it runs.
    pub fn heard_by(mut self, listener: Listener) -> Self {
        self.context.listener = Some(listener);
        self
    }

    /// The same, with a listener if there is one.
    pub(crate) fn heard_by_some(mut self, listener: Option<Listener>) -> Self {
        self.context.listener = listener;
        self
    }

    /// The same, stopped by this flag.
    pub(crate) fn cancelled_by(mut self, flag: CancelFlag) -> Self {
        self.context.cancelled = flag;
        self
    }

    /// Which tool of the registry it is for.
    pub(crate) const fn index(&self) -> usize {
        self.index
    }

    /// Runs the call with the tool it is for, and settles what it cost. A tool may block the thread that polls this;
    /// [`crate::Registry::dispatch`] has threads for that.
    ///
    /// # Errors
    /// How the tool failed; that it is another tool than the permit is for.
    pub async fn run(self, tool: &impl Tool) -> Result<Outcome, ToolFault> {
        if tool.name() != &*self.call.tool {
            return Err(ToolFault::NotFound(tool.name().to_owned()));
        }
        self.run_any(tool).await
    }

    pub(crate) async fn run_any(mut self, tool: &dyn AnyTool) -> Result<Outcome, ToolFault> {
        let started = Instant::now();
        self.progress = Progress::Running(started);
        let on_denied = self.context.on_denied();
        let args = match &on_denied {
            Some(_) => self.call.args.clone(),
            None => std::mem::take(&mut self.call.args),
        };
        let result = catching(tool.invoke(args, &self.context)).await;
        self.progress = Progress::Settled;
        let untouched = !self.context.has_acted();
        let stopped = |error: &ToolError| error.denial().is_some() || error.is_cancelled();
        if result.as_ref().is_err_and(stopped) && untouched {
            self.put_back();
        } else if result.as_ref().is_ok_and(|output| !output.is_error)
            && let Some(counted) = self.grant.tool(&self.call.tool)
        {
            counted.mark_succeeded();
        }
        self.record_end(&result, started);
        if let (Some(hear), Err(ToolError::Denied { denial, .. })) = (on_denied, &result) {
            hear(&self.call.tool, &self.call.args, denial);
        }
        Outcome::sorted(result)
    }

    fn put_back(&self) {
        self.grant.return_call();
        if let Some(counted) = self.grant.tool(&self.call.tool) {
            counted.return_run();
        }
    }

    fn record_end(&self, result: &Result<Output, ToolError>, started: Instant) {
        let event = self.end(Some(started));
        let event = match result {
            Ok(output) if output.is_error => {
                event.with_decision(Decision::Allow).with_code("tool-failed").with_reason("the tool says so")
            }
            Ok(_) => event.with_decision(Decision::Allow),
            Err(error) => {
                let decision = if error.denial().is_some() { Decision::Deny } else { Decision::Allow };
                event.with_decision(decision).with_code(error.code()).with_reason(error.to_string())
            }
        };
        drop(self.context.journal().append(event));
    }

    fn end(&self, started: Option<Instant>) -> Event {
        let event = self.context.finished();
        match started {
            Some(started) => {
                event.with_duration_us(u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX))
            }
            None => event,
        }
    }
}

impl Drop for Permit {
    /// A call that touched nothing costs nothing; that it never ran, or was cut off, is recorded.
    fn drop(&mut self) {
        let (started, code) = match self.progress {
            Progress::Settled => return,
            Progress::Unused => (None, "permit-unused"),
            Progress::Running(started) => (Some(started), "tool-cancelled"),
        };
        if !self.context.has_acted() {
            self.put_back();
        }
        drop(self.context.journal().append(self.end(started).with_decision(Decision::Allow).with_code(code)));
    }
}

/// Awaits a call; a panic is a failure of the tool, not of the caller.
async fn catching(mut running: crate::tool::Running<'_>) -> Result<Output, ToolError> {
    std::future::poll_fn(move |waker| {
        let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| running.as_mut().poll(waker)));
        polled.unwrap_or_else(|_| std::task::Poll::Ready(Err(ToolError::failed("the tool panicked"))))
    })
    .await
}
