//! The process that holds the secrets that plans broker, with the sources that a person named.
//!
//! Fails closed when a secret has no source or its source has no value.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;

use bailiwick_broker::no_source;
use bailiwick_command::args::run::NameOptions;
use bailiwick_command::args::secret::SecretOptions;
use bailiwick_command::secret_sources::{known, loadable};
use bailiwick_launch::{BrokerProcess, LoadSecret, ServiceNames};
use bailiwick_policy::plan::Plan;

/// The process that has the secrets of these plans; nothing if they broker none. It is to be started before the environment
/// is copied, and before any sandbox is made.
pub(in crate::commands) fn started(
    plans: &[&Plan],
    options: &SecretOptions,
    names: &NameOptions,
) -> Result<Option<Arc<BrokerProcess>>, String> {
    let wanted: Vec<_> = plans.iter().flat_map(|plan| &plan.environment().brokered).collect();
    let unused =
        options.secrets.iter().find(|named| !wanted.iter().any(|secret| *secret.value.name == *named.name));
    if let Some(named) = unused {
        return Err(format!(
            "`--secret {0}=…` is given and nothing brokers `{0}`; add `env:inject:{0}?broker=HOST` to what is granted; \
             nothing was started",
            named.name
        ));
    }
    if wanted.is_empty() {
        return Ok(None);
    }
    let mut known = known(options)?;
    let (mut seen, mut secrets) = (BTreeSet::new(), Vec::<LoadSecret>::new());
    for secret in wanted.iter().map(|secret| &secret.value).filter(|secret| seen.insert(secret.name.clone()))
    {
        let found = known.remove(&*secret.name);
        let found = found.ok_or_else(|| format!("{}; nothing was started", no_source(secret)))?;
        secrets.push(loadable(&secret.name, found)?);
    }
    let names = ServiceNames { resolver: names.resolver(), hosts: names.hosts() };
    let mut command = Command::new("/proc/self/exe");
    command.args(["secret", "hold"]);
    let process = BrokerProcess::start(command, secrets, &names);
    process.map(Some).map_err(|fault| format!("{fault}; nothing was started"))
}
