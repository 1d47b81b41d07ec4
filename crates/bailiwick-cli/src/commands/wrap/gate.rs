//! The gate of a wrapped server: the registry that `serve` uses too, with a tool for everything that the manifest declares.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use bailiwick_command::answer::plain;
use bailiwick_command::args::wrap::{GateMode, Wrap};
use bailiwick_command::facts;
use bailiwick_command::user_state::state;
use bailiwick_guard::{Registry, RegistryBuilder, Rules, Session};
use bailiwick_journal::{Journal, Redaction};
use bailiwick_launch::{CallsInFlight as Serving, Moment};
use bailiwick_manifest::{ArgumentRule, Checked, Condition, Tool};
use bailiwick_mcp::Tools;
use bailiwick_mcp::relay::{CallsInFlight, Redactor, RelayCounts, RelayOptions, RemoteTool};

use super::WrappedServer;
use super::approver::Approvals;
use super::pins::KeptPins;
use super::secret::given_secret;
use crate::commands::serve::guarded;

/// Tools, grant and secrets of one server.
pub(super) struct Gate {
    tools: Tools,
    marks: BTreeMap<String, Vec<String>>,
    pub(super) redactor: Arc<Redactor>,
    /// The secret that the user gave for a server that runs elsewhere.
    pub(super) given: Option<(String, String)>,
    /// The calls that the server is answering.
    in_flight: Arc<CallsInFlight>,
    /// Those that the base is answering; all of them where there are no instances.
    pub(super) of_base: Arc<CallsInFlight>,
    checked: Checked,
    pins: KeptPins,
    approvals: Approvals,
}

impl Gate {
    /// # Errors
    /// Why nothing can be judged; nothing may be started then.
    pub(super) fn new(args: &Wrap, server: &WrappedServer, journal: &Journal) -> anyhow::Result<Self> {
        let checked = server.checked.clone();
        let cwd = facts::here().context("there is no current directory")?;
        let session = Session::new(&cwd).with_own(facts::kept_dirs());
        let session = facts::home().into_iter().fold(session, Session::with_home);
        let leash = server.leash.clone();
        let pins = KeptPins::open(&server.name, &server.identity, journal)?.held_by(leash.clone());
        let given = if args.url.is_some() { given_secret(&args.secrets)? } else { None };
        let secrets = known_secrets(server, given.clone());
        let redactor =
            Arc::new(Redactor::new(secrets.iter().map(|(name, value)| (name.as_str(), value.as_str()))));
        let approvals = Approvals::new(server, pins.clone(), state()?, Arc::clone(&redactor))?;
        let builder = Registry::builder(journal.clone(), session).approver(approvals.clone());
        let builder = server.fleet.iter().fold(builder, |builder, fleet| builder.meter(fleet.meter()));
        let builder = checked.tools().iter().fold(builder, |builder, tool| {
            let rules = Rules::for_tool(&checked, tool.name()).unwrap_or_else(Rules::forbidden);
            builder.tool_with(RemoteTool::new(tool.name()), rules)
        });
        let builder = builder.interceptor(pins.clone()).audit(args.mode == GateMode::Audit);
        let builder = leash.into_iter().fold(builder, RegistryBuilder::interceptor);
        let known = || secrets.iter().map(|(_, value)| value.clone()).collect();
        let recorded = args.record_arguments.then(|| Redaction { secrets: known(), ..Redaction::default() });
        let builder = recorded.into_iter().fold(builder, RegistryBuilder::record_arguments);
        let tools = match (&args.guardrails, server.guardrails.is_empty()) {
            (None, true) => Tools::Plain(builder.build()?),
            (file, _) => match guarded(file.as_deref(), &server.guardrails, builder)? {
                Ok(guarded) => Tools::Guarded(Box::new(guarded)),
                Err(refusal) => return Err(plain(refusal)),
            },
        };
        let marks = checked.manifest().tools().iter().map(|tool| (tool.name().to_owned(), marks(tool)));
        let in_flight = no_calls();
        let of_base = if server.groups.is_empty() { Arc::clone(&in_flight) } else { no_calls() };
        Ok(Self {
            tools,
            marks: marks.collect(),
            redactor,
            given,
            in_flight,
            of_base,
            checked,
            pins,
            approvals,
        })
    }

    /// Who tells which calls the server, or its base, is answering.
    pub(super) fn serving(&self) -> Serving {
        let in_flight = Arc::clone(&self.of_base);
        Arc::new(move |moment| in_flight.at(moment.as_nanos()))
    }

    /// What a relay needs of it.
    pub(super) fn into_options(
        self,
        journal: &Journal,
        counts: Arc<RelayCounts>,
        note: impl Fn(&str) + Send + Sync + 'static,
    ) -> RelayOptions {
        let grant = self.tools.registry().mint(self.checked.authority().clone());
        RelayOptions {
            grant,
            tools: self.tools,
            marks: self.marks,
            pins: Box::new(self.pins),
            client: Box::new(self.approvals),
            redactor: self.redactor,
            counts,
            in_flight: self.in_flight,
            journal: journal.clone(),
            note: Box::new(note),
        }
    }
}

/// No call yet, by the clock of the sandbox's refusals.
pub(super) fn no_calls() -> Arc<CallsInFlight> {
    Arc::new(CallsInFlight::new(|| Moment::now().as_nanos()))
}

/// The arguments of a tool that the manifest speaks of.
fn marks(tool: &Tool) -> Vec<String> {
    let ruled = tool.rules().iter().flat_map(ArgumentRule::conditions).flat_map(Condition::fields);
    tool.arguments().keys().cloned().chain(ruled).collect()
}

/// The variables that the server is given as secrets, with their values.
fn known_secrets(server: &WrappedServer, given: Option<(String, String)>) -> Vec<(String, String)> {
    let names = server.asked.plan.environment().injected.iter().map(|name| &*name.value);
    names
        .filter_map(|name| Some((name.to_owned(), facts::variable_of_caller(name)?.into_string().ok()?)))
        .chain(given)
        .collect()
}
