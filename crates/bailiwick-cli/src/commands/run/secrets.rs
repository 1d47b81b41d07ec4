//! The secrets that a plan brokers, with the sources that a person named.
//!
//! Fails closed when a secret has no source, its source has no value, the user's settings do not have its hosts, or the
//! program may read a variable or file of the caller that is the source.

use bailiwick_broker::{SecretSource as _, Source};
use bailiwick_launch::Brokering;
use bailiwick_policy::capability::BrokerHost;
use bailiwick_policy::plan::{BrokeredSecret, Plan};

use crate::args::secret::SecretOptions;
use crate::commands::secret::{KnownSecret, known};

/// What brokers the secrets of a plan; nothing if it brokers none.
pub(super) fn brokering(plan: &Plan, options: &SecretOptions) -> Result<Option<Brokering>, String> {
    let wanted = &plan.environment().brokered;
    if wanted.is_empty() {
        return match options.secrets.first() {
            None => Ok(None),
            Some(named) => Err(format!(
                "`--secret {0}=…` is given and nothing brokers `{0}`; add `env:inject:{0}?broker=HOST` to what is granted; \
                 nothing was started",
                named.name
            )),
        };
    }
    let known = known(options)?;
    let mut secrets = Vec::new();
    for secret in wanted.iter().map(|secret| &secret.value) {
        let source = known.get(&*secret.name).ok_or_else(|| {
            format!(
                "`{secret}` has no source of its value; name one with `--secret {}=env:VARIABLE` (or `file:`, `cmd:`, \
                 `keyring:`, `systemd:`) or in `[secrets]` of config.toml; nothing was started",
                secret.name
            )
        })?;
        must_stay_outside(plan, &secret.name, &source.source)?;
        let secret = met(secret, source)?;
        let held = source.source.fetch();
        let held =
            held.map_err(|fault| format!("the secret `{}`: {fault}; nothing was started", secret.name))?;
        secrets.push((secret, held));
    }
    Brokering::new(secrets).map(Some).map_err(|fault| format!("{fault}; nothing was started"))
}

/// The secret at those hosts alone that the user's settings have too.
fn met(secret: &BrokeredSecret, known: &KnownSecret) -> Result<BrokeredSecret, String> {
    let Some(allowed) = &known.hosts else { return Ok(secret.clone()) };
    let hosts: Vec<BrokerHost> = secret
        .hosts
        .iter()
        .flat_map(|host| {
            allowed.iter().filter_map(move |own| match (own.covers(host), host.covers(own)) {
                (true, _) => Some(host.clone()),
                (false, true) => Some(own.clone()),
                (false, false) => None,
            })
        })
        .collect();
    if hosts.is_empty() {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        return Err(format!(
            "your settings have the secret `{}` for {} alone, and `{secret}` is for others; nothing was started",
            secret.name,
            if allowed.is_empty() { "no host".to_owned() } else { allowed.join(", ") }
        ));
    }
    Ok(BrokeredSecret { hosts, ..secret.clone() })
}

/// Refuses a source that the program could read by itself.
fn must_stay_outside(plan: &Plan, name: &str, source: &Source) -> Result<(), String> {
    let environment = plan.environment();
    let reads = |variable: &str| {
        let by_name = environment.read.iter().chain(&environment.injected).any(|own| &*own.value == variable);
        by_name || (environment.read_all && variable != name)
    };
    let is_seen = match source {
        Source::Env(variable) => reads(variable),
        Source::File(path) => is_readable(plan, path),
        Source::Command(_) | Source::Keyring { .. } | Source::Systemd(_) => false,
    };
    if is_seen {
        return Err(format!(
            "the program may read `{source}`, from which the secret `{name}` comes; take that grant away, or the secret from \
             elsewhere; nothing was started"
        ));
    }
    Ok(())
}

fn is_readable(plan: &Plan, path: &std::path::Path) -> bool {
    let Ok(real) = path.canonicalize() else { return false };
    let Some(path) = real.to_str().and_then(|text| bailiwick_policy::path::AbsPath::new(text).ok()) else {
        return false;
    };
    plan.files().iter().any(|grant| path.is_within(&grant.path()))
}
