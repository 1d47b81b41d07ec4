//! Probes on this host, and on one that is made poorer.

use super::*;

#[test]
fn everything_that_was_tried_has_an_answer_and_a_lack_has_a_fix() {
    let abilities = Abilities::probe();
    let names: Vec<&str> = abilities.iter().map(|ability| ability.name).collect();
    let expected = [
        "namespaces",
        "mounts",
        "proc",
        "landlock",
        "seccomp",
        "notify",
        "limit-memory",
        "limit-pids",
        "limit-cpu",
        "nft",
    ];
    assert_eq!(names, expected);
    for ability in abilities.iter() {
        eprintln!("{ability:?}");
        match &ability.result {
            Ok(how) => assert!(!how.is_empty(), "{}", ability.name),
            Err(lack) => assert!(!lack.why.is_empty() && !lack.fix.is_empty(), "{}", ability.name),
        }
    }
    let json = abilities.to_json();
    assert_eq!(json["namespaces"]["works"], abilities.has("namespaces"));
    assert!(!abilities.has("no such thing"));
}

/// What the test above prints on a host that `wrapper` has made poorer.
fn on_a_poorer_host(wrapper: &str) -> Option<String> {
    let test = "host::tests::everything_that_was_tried_has_an_answer_and_a_lack_has_a_fix";
    bailiwick_testkit::on_a_poorer_host(test, wrapper)
}

fn lacks(report: &str, name: &str) -> bool {
    report.lines().any(|line| line.starts_with(&format!("Ability {{ name: {name:?}, result: Err(")))
}

#[test]
fn a_host_without_user_namespaces_is_seen_as_one() {
    let wrapper = "unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; exec capsh --drop=all -- -c \"PROBE\"'";
    let Some(report) = on_a_poorer_host(wrapper) else { return };
    for lacking in ["namespaces", "mounts", "proc", "nft"] {
        assert!(lacks(&report, lacking), "{lacking}: {report}");
    }
    assert!(report.contains("user.max_user_namespaces"), "{report}");
    assert!(!lacks(&report, "seccomp"), "{report}");
}

#[test]
fn a_masked_proc_is_seen() {
    let wrapper = "unshare -Urmpf --mount-proc sh -c 'mount -t tmpfs none /proc/sys && PROBE'";
    let Some(report) = on_a_poorer_host(wrapper) else { return };
    assert!(lacks(&report, "proc") && !lacks(&report, "namespaces"), "{report}");
}
