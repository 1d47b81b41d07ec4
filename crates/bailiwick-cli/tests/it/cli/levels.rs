//! One judge: what holds an axis by the same mechanism reports the same level, compile targets and the native sandbox alike.

use std::mem::discriminant;

use bailiwick_compile::Target;
use bailiwick_confine::{native_coverage, native_mechanism};
use bailiwick_policy::capability::CapabilitySet;
use bailiwick_policy::enforcement::mechanism::{EnvironmentMechanism, Mechanism, ServiceMechanism};
use bailiwick_policy::enforcement::{Aspect, Coverage, Level};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::Plan;

/// One line of every kind and shape that mechanisms tell apart.
const LINES: [&str; 17] = [
    "fs:read:/a",
    "fs:read:/a/*.txt",
    "fs:create:/b",
    "fs:read,write:/c",
    "net:connect:a.test:443",
    "net:connect:*",
    "net:connect:10.0.0.1:80?protocol=raw",
    "net:https:GET@https://a.test/x",
    "exec:spawn:git",
    "exec:spawn:git?nestedSandbox=true",
    "exec:spawn:*",
    "env:read:A",
    "env:read:*",
    "env:inject:B",
    "ipc:connect:unix:/run/x.sock",
    "ipc:connect:x11",
    "clock:system",
];

fn plan(lines: &[&str]) -> Plan {
    let granted = CapabilitySet::new(lines.iter().copied()).expect("capabilities");
    Plan::for_authority("test", granted.authority(), &HostFacts::unknown()).expect("a plan")
}

/// Every target and the native sandbox: its name, what it holds plans with, and what it says of one.
fn all(plan: &Plan) -> Vec<(String, Mechanism, Coverage)> {
    let targets = Target::ALL.into_iter().map(|target| {
        let coverage = bailiwick_compile::coverage(target, plan);
        (target.as_str().to_owned(), bailiwick_compile::mechanism(target), coverage)
    });
    targets.chain([("native".to_owned(), native_mechanism(), native_coverage(plan))]).collect()
}

/// Whether two hold an axis by the same mechanism, whatever they call it.
fn same(one: &Mechanism, other: &Mechanism, aspect: Aspect) -> bool {
    match aspect {
        Aspect::Files => discriminant(&one.files) == discriminant(&other.files),
        Aspect::Network => discriminant(&one.network) == discriminant(&other.network),
        Aspect::Exec => discriminant(&one.programs) == discriminant(&other.programs),
        Aspect::Environment => match (&one.environment, &other.environment) {
            (
                EnvironmentMechanism::Fresh { passes_all: one, .. },
                EnvironmentMechanism::Fresh { passes_all: other, .. },
            ) => one == other,
            (one, other) => discriminant(one) == discriminant(other),
        },
        Aspect::Ipc => match (&one.services, &other.services) {
            (
                ServiceMechanism::Filtered { some: one, .. },
                ServiceMechanism::Filtered { some: other, .. },
            ) => discriminant(one) == discriminant(other),
            (one, other) => discriminant(one) == discriminant(other),
        },
        Aspect::Processes => discriminant(&one.processes) == discriminant(&other.processes),
        Aspect::Clock => true,
        // What is held depends on which limits a list has; none are declared here.
        Aspect::Limits => true,
    }
}

#[test]
fn the_same_mechanism_has_the_same_level_everywhere() {
    let mut compared = 0;
    for first in LINES {
        for second in LINES {
            let plan = plan(&if first == second { vec![first] } else { vec![first, second] });
            let all = all(&plan);
            for (at, (name, mechanism, coverage)) in all.iter().enumerate() {
                for (other_name, other, other_coverage) in all.iter().skip(at + 1) {
                    for aspect in Aspect::ALL.into_iter().filter(|aspect| same(mechanism, other, *aspect)) {
                        let (one, two) = (coverage.held(aspect), other_coverage.held(aspect));
                        assert_eq!(
                            one.level, two.level,
                            "{aspect} of [{first}, {second}]: {name}, {other_name}"
                        );
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 10_000, "{compared}");
}

#[test]
fn adding_a_capability_raises_no_level_of_the_native_sandbox() {
    for first in LINES {
        let before = native_coverage(&plan(&[first]));
        for second in LINES.into_iter().filter(|second| *second != first) {
            let after = native_coverage(&plan(&[first, second]));
            for (aspect, held) in after.iter() {
                assert!(held.level <= before.held(aspect).level, "{aspect}: [{first}] and {second}");
            }
        }
    }
}

#[test]
fn the_native_sandbox_claims_nothing_of_what_is_granted_whole() {
    let level = |line: &str, aspect| native_coverage(&plan(&[line])).held(aspect).level;
    assert_eq!(level("exec:spawn:*", Aspect::Exec), Level::Unsupported);
    assert_eq!(level("env:read:*", Aspect::Environment), Level::Unsupported);
    assert_eq!(level("exec:spawn:git", Aspect::Exec), Level::Kernel, "(control)");
}
