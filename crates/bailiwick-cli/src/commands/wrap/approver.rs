//! A person's consent to a call of a wrapped server: given at its client where that can ask, else with `bailiwick approve`.
//! On a machine that is enrolled in a fleet, an approver of the fleet answers, and this machine asks in no other place.
//!
//! Consent is bound to the server, the tool as it is pinned, the exact arguments, the manifest and this session, is used up
//! by one call, and expires. A tool of high or critical risk is never asked about through the client: some clients answer by
//! themselves. Fails closed when the store cannot be used: that is no consent.

use std::future::ready;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bailiwick_command::{console_presence, facts};
use bailiwick_fleet::Hash;
use bailiwick_guard::{Approver, Call, Consent};
use bailiwick_guardrails::approvals::{Consulted, FILE, Question, consult, take};
use bailiwick_guardrails::{State, digest};
use bailiwick_journal::{Body, Redaction, new_session};
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_manifest::{ClientFeatures, FeatureStance, Risk};
use bailiwick_mcp::relay::{
    ClientConsent, ClientFeature, ClientGate, ClientQuestion, FeatureVerdict, JudgedFeature, Redactor,
    ask_client, visible,
};
use bailiwick_member::approval::WaitingCall;
use bailiwick_policy::digest::Digest;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::WrappedServer;
use super::fleet::FleetPart;
use super::pins::KeptPins;

/// The longest arguments that a person is asked about at a client: what is shown is what runs.
const MAX_SHOWN: usize = 4_000;

/// The most bytes of arguments that the fleet is shown.
const MAX_SENT: usize = 32 * 1024;

/// The most questions of a server itself that wait at the fleet at once.
const MAX_ASKING: usize = 4;

/// How long a call is held where a console is there: clients wait a minute for an answer.
const HOLD: Duration = Duration::from_secs(45);
/// How often the store is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(10);
/// How often it is looked whether the console is still there.
const LOOK_FOR_CONSOLE: Duration = Duration::from_millis(500);

/// What the store says, and what a person can do.
enum Asked {
    Approved,
    Refused(String),
    Waiting(String),
}

/// What consent is bound to.
struct Bound {
    tool: String,
    digest: Digest,
    lasting: Option<Digest>,
}

/// When a file was replaced last, and its length.
fn changed_at(file: &Path) -> Option<(SystemTime, u64)> {
    let found = std::fs::symlink_metadata(file).ok()?;
    Some((found.modified().ok()?, found.len()))
}

/// Asks the person at the client, or the store that `bailiwick approve` writes to. Clones are the same.
#[derive(Clone)]
pub(super) struct Approvals(Arc<Kept>);

struct Kept {
    server: String,
    manifest: String,
    session: String,
    features: ClientFeatures,
    /// Tools that only a terminal approves.
    grave: Vec<String>,
    pins: KeptPins,
    state: State,
    /// Who answers on an enrolled machine.
    fleet: Option<Arc<FleetPart>>,
    redactor: Arc<Redactor>,
    /// Questions of the server itself that wait at the fleet.
    asking: Semaphore,
    /// What to tell the caller of the call that was asked about last.
    advice: Mutex<Option<(Call, String)>>,
}

impl Approvals {
    pub(super) fn new(
        server: &WrappedServer,
        pins: KeptPins,
        state: State,
        redactor: Arc<Redactor>,
    ) -> anyhow::Result<Self> {
        let manifest = server.checked.manifest();
        let taken =
            Snapshot::from_manifest(manifest.clone()).map_err(|finding| anyhow::anyhow!("{finding}"))?;
        let grave = manifest.tools().iter().filter(|tool| tool.risk() >= Some(Risk::High));
        Ok(Self(Arc::new(Kept {
            server: server.name.clone(),
            fleet: server.fleet.clone(),
            redactor,
            asking: Semaphore::new(MAX_ASKING),
            manifest: taken.hash().to_owned(),
            session: new_session()?.as_str().to_owned(),
            features: manifest.client(),
            grave: grave.map(|tool| tool.name().to_owned()).collect(),
            pins,
            state,
            advice: Mutex::new(None),
        })))
    }

    /// What consent to something is bound to: in this session, and without it where a person may allow it always.
    fn bound(&self, what: &str, args: &Value) -> Bound {
        let Kept { server, manifest, session, pins, grave, .. } = &*self.0;
        let tool = format!("{server}/{what}");
        let hash = |session: &Value| {
            let args = json!({
                "arguments": args, "manifest": manifest, "session": session, "definition": pins.definition(what),
            });
            digest(&Call { tool: tool.as_str().into(), args })
        };
        let lasting = (!grave.iter().any(|tool| tool == what)).then(|| hash(&Value::Null));
        Bound { digest: hash(&session.as_str().into()), lasting, tool }
    }

    async fn consent(&self, call: &Call, question: &str) -> Consent {
        if let Some(fleet) = &self.0.fleet {
            return match fleet.consent(&self.waiting_call(call, question)).await {
                Ok(()) => Consent::Given,
                Err(advice) => self.refused(call, advice),
            };
        }
        let bound = self.bound(&call.tool, &call.args);
        if take(&self.0.state, bound.digest, bound.lasting, facts::now_us()).is_ok_and(|taken| taken) {
            return Consent::Given;
        }
        let advice = match self.ask_at_client(call, question, bound.digest).await {
            ClientConsent::Given => return Consent::Given,
            ClientConsent::Refused => "the person at the client refused it".to_owned(),
            ClientConsent::Asked => "the person at the client is asked".to_owned(),
            ClientConsent::Unavailable => match self.ask_and_hold(&bound, &call.args, question).await {
                Asked::Approved => return Consent::Given,
                Asked::Refused(advice) | Asked::Waiting(advice) => advice,
            },
        };
        self.refused(call, advice)
    }

    fn refused(&self, call: &Call, advice: String) -> Consent {
        *self.0.advice.lock().unwrap_or_else(PoisonError::into_inner) = Some((call.clone(), advice));
        Consent::Refused
    }

    /// A call as the fleet is asked about it: secrets are taken out of what is shown, and the digest is of what would run.
    fn waiting_call(&self, call: &Call, question: &str) -> WaitingCall {
        let Kept { server, manifest, pins, redactor, .. } = &*self.0;
        let body = Body::new(&call.args, &Redaction { max_bytes: MAX_SENT, ..Redaction::default() });
        let text = redactor.json(&body.text).map_or(body.text, |redacted| redacted.text);
        let hash = |digest: Digest| Hash::from_bytes(*digest.as_bytes());
        let policy = manifest.strip_prefix("sha256:").and_then(|hex| hex.parse().ok());
        WaitingCall {
            server: server.clone(),
            tool: call.tool.to_string(),
            shown: serde_json::from_str(&text).unwrap_or(Value::Null),
            arguments_sha256: hash(body.digest),
            pins: hash(pins.surface_digest()),
            policy: policy.unwrap_or_else(|| Hash::sha256(manifest.as_bytes())),
            reason: redactor.plain(question).text,
        }
    }

    /// Asks the fleet whether a server may use a feature of its client. Few such questions wait at once: servers ask unasked.
    async fn ask_fleet_for(
        &self,
        fleet: &FleetPart,
        feature: ClientFeature,
        params: &Value,
        question: String,
    ) -> FeatureVerdict {
        let Ok(_place) = self.0.asking.try_acquire() else {
            return FeatureVerdict::Refused(format!("{MAX_ASKING} questions of this server wait already"));
        };
        let call = Call { tool: format!("client:{}", feature.as_str()).into(), args: params.clone() };
        let mut waiting = self.waiting_call(&call, &question);
        // An answer for a feature is none for a tool of that name.
        waiting.pins = Hash::of_parts(&[b"[client]", waiting.pins.as_bytes()]);
        match fleet.consent(&waiting).await {
            Ok(()) => FeatureVerdict::Open,
            Err(why) => FeatureVerdict::Refused(why),
        }
    }

    async fn ask_at_client(&self, call: &Call, question: &str, digest: Digest) -> ClientConsent {
        let arguments = call.args.to_string();
        if self.0.grave.iter().any(|tool| **tool == *call.tool) || arguments.len() > MAX_SHOWN {
            return ClientConsent::Unavailable;
        }
        let message = format!(
            "Bailiwick asks: {} Server: {}. Tool: {}. Arguments: {}",
            visible(question),
            visible(&self.0.server),
            visible(&call.tool),
            visible(&arguments)
        );
        ask_client(&ClientQuestion { digest: digest.to_string(), message }).await
    }

    /// Asks the store, and holds the call while a console is there where a person can answer.
    async fn ask_and_hold(&self, bound: &Bound, args: &Value, question: &str) -> Asked {
        let file = self.0.state.dir().join(FILE);
        let (since, mut looked) = (Instant::now(), Instant::now());
        let mut stamp = changed_at(&file);
        let mut asked = self.ask_store(bound, args, question);
        let mut is_there = console_presence::is_there();
        while matches!(asked, Asked::Waiting(_)) && is_there && since.elapsed() < HOLD {
            tokio::time::sleep(LOOK).await;
            let now = changed_at(&file);
            if now != stamp {
                stamp = now;
                asked = self.ask_store(bound, args, question);
            }
            if looked.elapsed() > LOOK_FOR_CONSOLE {
                looked = Instant::now();
                is_there = console_presence::is_there();
            }
        }
        asked
    }

    /// Uses up an approval; else what a person can do.
    fn ask_store(&self, bound: &Bound, args: &Value, question: &str) -> Asked {
        let arguments = args.to_string();
        let Bound { tool, digest, lasting } = bound;
        let asked = Question {
            digest: *digest,
            tool,
            arguments: &arguments,
            question,
            now: facts::now_us(),
            of_session: true,
            lasting: *lasting,
        };
        match consult(&self.0.state, &asked) {
            Ok(Consulted::Approved) => Asked::Approved,
            Ok(Consulted::Denied) => Asked::Refused("a person refused it".to_owned()),
            Ok(Consulted::Waiting(id)) => {
                let how =
                    format!("a person can allow it with `bailiwick approve {id}`; call again after that");
                Asked::Waiting(how)
            }
            Err(fault) => Asked::Refused(fault.to_string()),
        }
    }
}

impl Approver for Approvals {
    fn ask<'a>(
        &'a self,
        call: &'a Call,
        question: &'a str,
    ) -> Pin<Box<dyn Future<Output = Consent> + Send + 'a>> {
        Box::pin(self.consent(call, question))
    }

    fn advice(&self, call: &Call) -> Option<String> {
        let last = self.0.advice.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(asked, _)| asked == call).map(|(_, advice)| advice.clone())
    }
}

/// The `[client]` table of the manifest, held.
impl ClientGate for Approvals {
    fn judge<'a>(&'a self, feature: ClientFeature, params: &'a Value) -> JudgedFeature<'a> {
        let features = self.0.features;
        let stance = match feature {
            ClientFeature::Roots => features.roots,
            ClientFeature::Sampling => features.sampling,
            ClientFeature::Elicitation => features.elicitation,
            ClientFeature::Tasks => features.tasks,
        };
        let verdict = match stance {
            FeatureStance::Allow => FeatureVerdict::Open,
            FeatureStance::Deny => FeatureVerdict::Refused(format!(
                "`{}` is not granted to this server by `[client]` of its manifest",
                feature.as_str()
            )),
            FeatureStance::Ask => {
                let question =
                    format!("may the server `{}` use `{}` of its client?", self.0.server, feature.as_str());
                if let Some(fleet) = self.0.fleet.as_deref() {
                    return Box::pin(self.ask_fleet_for(fleet, feature, params, question));
                }
                // No tool can be called so.
                let bound = self.bound(&format!("[client] {}", feature.as_str()), params);
                match self.ask_store(&bound, params, &question) {
                    Asked::Approved => FeatureVerdict::Open,
                    Asked::Refused(why) | Asked::Waiting(why) => FeatureVerdict::Refused(why),
                }
            }
        };
        Box::pin(ready(verdict))
    }

    fn server(&self) -> &str {
        &self.0.server
    }
}
