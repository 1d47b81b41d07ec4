//! A person's consent to a call of a wrapped server, given with `bailiwick approve`.
//!
//! An approval is bound to the server, the tool, the exact arguments and the manifest, is used up by one call, and expires.
//! Fails closed when the store cannot be used: nobody consented.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use bailiwick_guard::{Approver, Call, Consent};
use bailiwick_guardrails::approvals::{Consulted, Question, consult};
use bailiwick_guardrails::{State, digest};
use bailiwick_policy::manifest::Checked;
use bailiwick_policy::snapshot::Snapshot;
use serde_json::json;

use crate::facts;

/// Asks the store that `bailiwick approve` writes to.
pub(super) struct StoredApprovals {
    server: String,
    manifest: String,
    state: State,
    /// What to tell the caller of the call that was asked about last.
    advice: Mutex<Option<(Call, String)>>,
}

impl StoredApprovals {
    pub(super) fn new(server: &str, checked: &Checked, state: State) -> Self {
        let manifest = Snapshot::of(checked.manifest().clone()).map(|taken| taken.hash().to_owned());
        let manifest = manifest.unwrap_or_else(|finding| finding.to_string());
        Self { server: server.to_owned(), manifest, state, advice: Mutex::new(None) }
    }

    fn consent(&self, call: &Call, question: &str) -> Consent {
        let tool = format!("{}/{}", self.server, call.tool);
        let bound = json!({ "arguments": call.args, "manifest": self.manifest });
        let arguments = call.args.to_string();
        let asked = Question {
            digest: digest(&Call { tool: tool.as_str().into(), args: bound }),
            tool: &tool,
            arguments: &arguments,
            question,
            now: facts::now_us(),
        };
        let advice = match consult(&self.state, &asked) {
            Ok(Consulted::Approved) => return Consent::Given,
            Ok(Consulted::Denied) => "a person refused it".to_owned(),
            Ok(Consulted::Waiting(id)) => {
                format!("a person can allow it with `bailiwick approve {id}`; call again after that")
            }
            Err(fault) => fault.to_string(),
        };
        *self.advice.lock().unwrap_or_else(PoisonError::into_inner) = Some((call.clone(), advice));
        Consent::Refused
    }
}

impl Approver for StoredApprovals {
    fn ask<'a>(
        &'a self,
        call: &'a Call,
        question: &'a str,
    ) -> Pin<Box<dyn Future<Output = Consent> + Send + 'a>> {
        Box::pin(async { self.consent(call, question) })
    }

    fn advice(&self, call: &Call) -> Option<String> {
        let last = self.advice.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(asked, _)| asked == call).map(|(_, advice)| advice.clone())
    }
}
