//! Arguments of `hook`.

use std::path::PathBuf;

use bailiwick_clients::hooks::{AGENTS, Agent, GENERIC, agent};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Arguments of `hook`.
#[derive(Debug, Args)]
#[command(after_help = "Example, as an agent runs it:
  echo '{\"event\":\"before\",\"session\":\"s\",\"tool\":\"Bash\",\"params\":{\"command\":\"ls\"}}' | bailiwick hook generic

Exit codes: 0 judged, the answer is on stdout · 2 the call must not run, why is on stderr · 5 a fault after the call")]
pub struct Hook {
    /// Whose format.
    #[arg(value_parser = agents())]
    pub agent: &'static Agent,
    /// Hold the tools that a manifest declares to their file policy and constraints too.
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,
    /// The role for which validators are chosen, instead of the agent's own word for it; `TYPE=ROLE` for agents of that
    /// type only, `main=ROLE` for the session's own. May be repeated.
    #[arg(long, value_name = "[TYPE=]ROLE")]
    pub role: Vec<String>,
}

/// An agent by its name.
pub fn agents() -> impl TypedValueParser<Value = &'static Agent> {
    let shown = |agent: &Agent| PossibleValue::new(agent.name).help(agent.title);
    let all = AGENTS.iter().map(shown).chain([shown(&GENERIC)]);
    PossibleValuesParser::new(all).try_map(|name| agent(&name).ok_or("there is no agent of this name"))
}
