//! Whether a plan and the user's settings agree on a secret.
//!
//! Fails closed when the user's settings do not have its hosts, or the program may read a variable or file that is the source.

use bailiwick_policy::capability::BrokerHost;
use bailiwick_policy::plan::{BrokeredSecret, Plan};

use crate::process::LoadSecret;
use crate::source::Source;

/// The secret at those hosts alone that the user's settings have too.
pub(crate) fn met(secret: &BrokeredSecret, known: &LoadSecret) -> Result<BrokeredSecret, String> {
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
            "your settings have the secret `{}` for {} alone, and `{secret}` is for others",
            secret.name,
            if allowed.is_empty() { "no host".to_owned() } else { allowed.join(", ") }
        ));
    }
    Ok(BrokeredSecret { hosts, ..secret.clone() })
}

/// Refuses a source that the program could read by itself.
pub(crate) fn must_stay_outside(plan: &Plan, known: &LoadSecret) -> Result<(), String> {
    let name = &known.named.name;
    let own = known.oauth.as_ref().and_then(|oauth| oauth.client_secret.as_ref());
    for source in std::iter::once(&known.named.source).chain(own) {
        if is_seen(plan, name, source) {
            return Err(format!(
                "the program may read `{source}`, from which the secret `{name}` comes; take that grant away, or the secret \
                 from elsewhere"
            ));
        }
    }
    Ok(())
}

fn is_seen(plan: &Plan, name: &str, source: &Source) -> bool {
    let environment = plan.environment();
    match source {
        Source::Env(variable) => {
            let mut by_name = environment.read.iter().chain(&environment.injected);
            by_name.any(|own| *own.value == **variable) || (environment.read_all && variable != name)
        }
        Source::File(path) => is_readable(plan, path),
        Source::Command(_) | Source::Keyring { .. } | Source::Systemd(_) => false,
    }
}

fn is_readable(plan: &Plan, path: &std::path::Path) -> bool {
    let Ok(real) = path.canonicalize() else { return false };
    let Some(path) = real.to_str().and_then(|text| bailiwick_policy::path::AbsPath::new(text).ok()) else {
        return false;
    };
    // A granted path may lead there by a link.
    plan.files().iter().any(|grant| path.is_within(&grant.path()) || path.is_within(&grant.source))
}
