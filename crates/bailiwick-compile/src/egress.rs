//! The network allowlist as configuration of a gateway: one file a format, each with the same function.
//!
//! Rules come as parsed hosts, ports and paths, so no text of a manifest reaches a configuration unread: names
//! have letters, digits, `-`, `_` and dots only. Every format denies what it does not name, and private
//! addresses unless a rule opens them; none of them asks DNS for a name that no rule allows.

mod envoy;
mod list;
mod nftables;
mod squid;

use std::fmt;

use bailiwick_policy::artifact::ArtifactFile;
use bailiwick_policy::net::{HostPattern, NetRule, PortRange, Speech};
use bailiwick_policy::plan::{Network, Plan};

use crate::Refusal;

/// Where the gateways listen, and where targets that need one look for it.
pub(crate) const GATEWAY_PORT: u16 = 3128;

/// A format for the network allowlist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Egress {
    /// Our own, as JSON.
    Json,
    /// Our own, as YAML.
    Yaml,
    /// A squid proxy.
    Squid,
    /// An nftables ruleset.
    Nftables,
    /// An Envoy proxy.
    Envoy,
}

impl Egress {
    /// All of them, in the order they are shown.
    pub const ALL: [Self; 5] = [Self::Json, Self::Yaml, Self::Squid, Self::Nftables, Self::Envoy];

    /// The name on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Squid => "squid",
            Self::Nftables => "nftables",
            Self::Envoy => "envoy",
        }
    }

    /// The name of its file.
    #[must_use]
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Json => "egress.json",
            Self::Yaml => "egress.yaml",
            Self::Squid => "squid.conf",
            Self::Nftables => "egress.nft",
            Self::Envoy => "envoy.yaml",
        }
    }
}

impl fmt::Display for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The allowlist of a plan in a format.
pub(crate) fn emit(format: Egress, plan: &Plan) -> Result<ArtifactFile, Refusal> {
    let rules = rules(plan.network());
    let text = match format {
        Egress::Json => list::json(plan, &rules),
        Egress::Yaml => list::yaml(plan, &rules),
        Egress::Squid => squid::emit(plan, &rules)?,
        Egress::Nftables => nftables::emit(plan, &rules),
        Egress::Envoy => envoy::emit(&rules)?,
    };
    Ok(ArtifactFile { name: format.file_name().to_owned(), text })
}

/// The rules; `Any` is the rule for every public host.
fn rules(network: &Network) -> Vec<NetRule> {
    match network {
        Network::None => Vec::new(),
        Network::Any => {
            let speech = Speech::Connect { raw: true, ech: true };
            vec![NetRule::new(HostPattern::Any, PortRange::ANY, false, speech)]
        }
        Network::Allow(rules) => rules.iter().map(|rule| rule.value.clone()).collect(),
    }
}

/// Those that open private addresses first: what they allow, a later denial must not take away.
fn private_first(rules: &[NetRule]) -> impl Iterator<Item = &NetRule> {
    let open = rules.iter().filter(|rule| rule.opens_private());
    open.chain(rules.iter().filter(|rule| !rule.opens_private()))
}

/// The subject's name as an identifier of letters, digits and `_`.
fn identifier(plan: &Plan) -> String {
    let subject = plan.subject();
    let named = subject.tool.iter().fold(subject.name.clone(), |name, tool| format!("{name}_{tool}"));
    named.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(48).collect()
}

fn refused(format: Egress, rule: &NetRule, why: &str) -> Refusal {
    Refusal::Egress { format, rule: rule.to_string(), why: why.to_owned() }
}
