//! A plan in words: one entry a rule, with the lines it comes from.

use super::{Network, Origin, Plan, Sourced};
use crate::digest::Digest;

/// One rule of a plan and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The rule, as a capability or a setting would be written.
    pub rule: String,
    /// The lines it comes from; empty if it comes from the grant as a whole.
    pub origins: Vec<Origin>,
}

impl Plan {
    /// The hash of what the plan allows, its rules in their order and its limits.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut text: String = self.explain().into_iter().map(|one| one.rule + "\n").collect();
        text += &format!("{:?}", self.limits);
        Digest::sha256(text.as_bytes())
    }

    /// Every rule of the plan, in the order of its axes.
    #[must_use]
    pub fn explain(&self) -> Vec<Explained> {
        let mut all: Vec<Explained> = Vec::new();
        let of = |rule: String, at: Vec<Origin>| Explained { rule, origins: at };
        for grant in &self.files {
            let rule = format!("fs:{}:{}", grant.actions, grant.pattern.value);
            all.push(of(rule, self.origins(&grant.pattern).collect()));
        }
        match &self.network {
            Network::None => {}
            Network::Any => all.push(of("net:connect:*".to_owned(), Vec::new())),
            Network::Allow(rules) => {
                all.extend(rules.iter().map(|rule| self.explained(rule, "", &rule.value)))
            }
        }
        all.extend(self.listens.iter().map(|listen| self.explained(listen, "net:listen:", &listen.value)));
        if self.exec.any.is_some() {
            all.push(of("exec:spawn:*".to_owned(), Vec::new()));
        }
        let programs = self.exec.programs.iter();
        all.extend(programs.map(|program| self.explained(program, "", &program.value)));
        let fixed = self.environment.fixed.keys().map(|name| of(format!("env {name} (fixed)"), Vec::new()));
        all.extend(fixed);
        let environment = &self.environment;
        all.extend(environment.injected.iter().map(|name| self.explained(name, "env:inject:", &name.value)));
        all.extend(environment.brokered.iter().map(|secret| self.explained(secret, "", &secret.value)));
        all.extend(environment.read.iter().map(|name| self.explained(name, "env:read:", &name.value)));
        if environment.read_all {
            all.push(of("env:read:*".to_owned(), Vec::new()));
        }
        let endpoints = self.ipc.endpoints.iter();
        all.extend(endpoints.map(|endpoint| self.explained(endpoint, "ipc:connect:", &endpoint.value)));
        all.extend(self.clock.map(|actions| of(format!("clock:{actions}"), Vec::new())));
        let assertions = self.assertions.iter();
        all.extend(assertions.map(|assertion| self.explained(assertion, "assert:", &assertion.value.id)));
        all
    }

    fn explained<T>(&self, value: &Sourced<T>, prefix: &str, what: &impl std::fmt::Display) -> Explained {
        Explained { rule: format!("{prefix}{what}"), origins: self.origins(value).collect() }
    }
}
