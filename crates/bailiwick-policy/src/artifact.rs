//! Artifacts: what a target needs to hold a plan, in its own words, with how well it holds it.
//!
//! The JSON shape is stable and the same for all targets; fields are only ever added.

use serde_json::{Map, Value, json};

use crate::enforcement::Coverage;
use crate::net::{HostPattern, NetRule, PortRange};
use crate::plan::{Network, Plan};

/// A compiled plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    target: &'static str,
    argv: Vec<String>,
    files: Vec<ArtifactFile>,
    egress: Vec<EgressRule>,
    env_injections: Vec<String>,
    assertions: Vec<(String, Option<String>)>,
    notes: Vec<String>,
    coverage: Coverage,
    provenance: Provenance,
}

/// A file in a target's own format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactFile {
    /// Its name, as `--out` writes it: relative, at most one directory deep.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// One line of the network allowlist, for whoever enforces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressRule {
    /// A name, `*.name`, an address, a block, or `*`.
    pub host: String,
    /// The ports.
    pub ports: PortRange,
    /// Whether an answer with a private address must be refused.
    pub block_private: bool,
}

/// Where an artifact comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// The hash of the manifest, as its snapshot has it.
    pub manifest: Option<String>,
    /// The name and version of the compiler.
    pub compiler: String,
}

/// What a target says of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted {
    /// The command line, program first; empty for targets that have none.
    pub argv: Vec<String>,
    /// The target's own files.
    pub files: Vec<ArtifactFile>,
    /// What a person should know: what was narrowed, what the host must do.
    pub notes: Vec<String>,
    /// How well each aspect is held.
    pub coverage: Coverage,
}

impl Artifact {
    /// The artifact of a plan: what the target says, and what is the same for all targets.
    #[must_use]
    pub fn new(target: &'static str, plan: &Plan, emitted: Emitted, provenance: Provenance) -> Self {
        let Emitted { argv, files, notes, coverage } = emitted;
        let assertion = |own: &crate::plan::Assertion| {
            (own.id.to_string(), own.description.as_ref().map(ToString::to_string))
        };
        Self {
            target,
            argv,
            files,
            egress: egress(plan),
            env_injections: plan.environment().injected.iter().map(|name| name.value.to_string()).collect(),
            assertions: plan.assertions().iter().map(|own| assertion(&own.value)).collect(),
            notes,
            coverage,
            provenance,
        }
    }

    /// The same artifact with one more file beside the target's own.
    #[must_use]
    pub fn with_file(mut self, file: ArtifactFile) -> Self {
        self.files.push(file);
        self
    }

    /// The target's name.
    #[must_use]
    pub const fn target(&self) -> &'static str {
        self.target
    }

    /// The command line, program first; empty for targets that have none.
    #[must_use]
    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// The target's own files.
    #[must_use]
    pub fn files(&self) -> &[ArtifactFile] {
        &self.files
    }

    /// The network allowlist.
    #[must_use]
    pub fn egress(&self) -> &[EgressRule] {
        &self.egress
    }

    /// The variables that the host must set when it starts the process.
    #[must_use]
    pub fn env_injections(&self) -> &[String] {
        &self.env_injections
    }

    /// What a person should know.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How well each aspect is held.
    #[must_use]
    pub const fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// The stable JSON form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let files: Map<String, Value> =
            self.files.iter().map(|file| (file.name.clone(), Value::from(&*file.text))).collect();
        let assertion =
            |(id, description): &(String, Option<String>)| json!({ "id": id, "description": description });
        json!({
            "target": self.target,
            "argv": self.argv,
            "egress": self.egress.iter().map(EgressRule::to_json).collect::<Vec<_>>(),
            "envInjections": self.env_injections,
            "assertions": self.assertions.iter().map(assertion).collect::<Vec<_>>(),
            "notes": self.notes,
            "coverage": self.coverage.to_json(),
            "files": files,
            "provenance": {
                "manifest": self.provenance.manifest, "compiler": self.provenance.compiler,
            },
        })
    }
}

impl EgressRule {
    /// The rule as whoever enforces names and ports alone sees it.
    #[must_use]
    pub fn from_rule(rule: &NetRule) -> Self {
        Self { host: rule.host().to_string(), ports: rule.ports(), block_private: !rule.opens_private() }
    }

    /// The stable JSON form: the port is a number, a range as text, or null for every port.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let port = match self.ports {
            PortRange::ANY => Value::Null,
            ports if ports.low() == ports.high() => Value::from(ports.low()),
            ports => Value::from(ports.to_string()),
        };
        json!({ "host": self.host, "port": port, "blockPrivate": self.block_private })
    }
}

/// The allowlist of a plan; rules that differ only in what may be spoken are one.
fn egress(plan: &Plan) -> Vec<EgressRule> {
    let mut rules: Vec<EgressRule> = match plan.network() {
        Network::None => Vec::new(),
        Network::Any => {
            vec![EgressRule {
                host: HostPattern::Any.to_string(),
                ports: PortRange::ANY,
                block_private: true,
            }]
        }
        Network::Allow(rules) => rules.iter().map(|rule| EgressRule::from_rule(&rule.value)).collect(),
    };
    let mut seen = std::collections::HashSet::new();
    rules.retain(|rule| {
        seen.insert((rule.host.clone(), rule.ports.low(), rule.ports.high(), rule.block_private))
    });
    rules
}
