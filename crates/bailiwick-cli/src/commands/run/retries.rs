//! Clients that repeat a refused request for a minute are told not to wait so long.
//!
//! A name that does not exist is final, but some clients try again whatever the answer is (`npm` for 70 seconds). Each
//! has variables for that. Where the plan grants no host at all nothing is tried again; where it grants some, a client
//! tries again soon, since a granted host may fail for a moment. A variable is set only if its program is granted, and one
//! that the plan grants keeps the caller's value.

use std::collections::BTreeMap;

use bailiwick_policy::plan::{Network, Plan};

/// A variable that says how often or how soon to try again.
struct Variable {
    name: &'static str,
    /// The programs that read it.
    read_by: &'static [&'static str],
    /// What it is where no host is granted.
    without_hosts: Option<&'static str>,
    /// What it is where some hosts are.
    with_hosts: Option<&'static str>,
}

const NPM: &[&str] = &["npm", "npx", "pnpm", "pnpx"];

const VARIABLES: [Variable; 6] = [
    Variable { name: "npm_config_fetch_retries", read_by: NPM, without_hosts: Some("0"), with_hosts: None },
    // In milliseconds; they are ten seconds and a minute else.
    Variable {
        name: "npm_config_fetch_retry_mintimeout",
        read_by: NPM,
        without_hosts: None,
        with_hosts: Some("100"),
    },
    Variable {
        name: "npm_config_fetch_retry_maxtimeout",
        read_by: NPM,
        without_hosts: None,
        with_hosts: Some("1000"),
    },
    Variable {
        name: "PIP_RETRIES",
        read_by: &["pip", "pip3"],
        without_hosts: Some("0"),
        with_hosts: Some("1"),
    },
    Variable {
        name: "UV_HTTP_RETRIES",
        read_by: &["uv", "uvx"],
        without_hosts: Some("0"),
        with_hosts: Some("1"),
    },
    Variable {
        name: "CARGO_NET_RETRY",
        read_by: &["cargo"],
        without_hosts: Some("0"),
        with_hosts: Some("1"),
    },
];

/// What to set for a plan whose command has this name.
pub(super) fn variables(plan: &Plan, command: &str) -> BTreeMap<String, String> {
    let exec = plan.exec();
    let is_named = |name: &str| {
        let spawned = exec.programs.iter().map(|grant| grant.value.program.to_string());
        command == name || spawned.into_iter().any(|path| path.rsplit('/').next() == Some(name))
    };
    let is_used = |names: &[&str]| exec.any.is_some() || names.iter().any(|name| is_named(name));
    let value = |variable: &Variable| match plan.network() {
        Network::None => variable.without_hosts,
        Network::Allow(_) => variable.with_hosts,
        Network::Any => None,
    };
    let used = VARIABLES.iter().filter(|variable| is_used(variable.read_by));
    used.filter_map(|variable| Some((variable.name.to_owned(), value(variable)?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use bailiwick_policy::capability::CapabilitySet;
    use bailiwick_policy::facts::HostFacts;

    use super::*;

    fn names(caps: &[&str], command: &str) -> Vec<String> {
        all(caps, command).into_keys().collect()
    }

    fn all(caps: &[&str], command: &str) -> BTreeMap<String, String> {
        let set = CapabilitySet::new(caps.iter().copied()).unwrap();
        let plan = Plan::for_authority("test", set.authority(), &HostFacts::unknown()).unwrap();
        variables(&plan, command)
    }

    #[test]
    fn only_programs_that_are_granted_are_told() {
        assert_eq!(names(&[], "npm"), ["npm_config_fetch_retries"]);
        assert_eq!(names(&["exec:spawn:/opt/x/npm"], "bash"), ["npm_config_fetch_retries"]);
        let once = VARIABLES.iter().filter(|variable| variable.without_hosts.is_some()).count();
        assert_eq!(names(&["exec:spawn:*"], "bash").len(), once);
        assert_eq!(names(&["exec:spawn:git"], "bash"), [""; 0]);
        assert_eq!(names(&["net:connect:*:443"], "git"), [""; 0]);
    }

    #[test]
    fn where_some_hosts_are_granted_a_client_tries_again_and_soon() {
        let npm = all(&["net:connect:a.test:443"], "npm");
        let waits = ["npm_config_fetch_retry_maxtimeout", "npm_config_fetch_retry_mintimeout"];
        assert_eq!(npm.keys().collect::<Vec<_>>(), waits);
        assert_eq!(npm.get(waits[0]).map(String::as_str), Some("1000"));
        assert_eq!(names(&["net:connect:a.test:443"], "pip"), ["PIP_RETRIES"]);
    }
}
