//! Differences: each code, and that a widening is reported exactly when containment fails.

mod policies;
mod property;

use proptest::prelude::*;

use super::*;
use crate::manifest::Manifest;

fn snapshot(text: &str) -> Snapshot {
    Snapshot::from_manifest(Manifest::parse(text).unwrap_or_else(|findings| panic!("{findings}\n{text}")))
        .unwrap()
}

fn tool(body: &str) -> String {
    format!("name = \"s\"\nversion = \"1\"\n[[tools]]\nname = \"t\"\n{body}\n")
}

fn codes(base: &str, new: &str) -> Vec<&'static str> {
    let diff = Diff::between(&snapshot(base), &snapshot(new)).unwrap();
    diff.differences().iter().map(|difference| difference.code().as_str()).collect()
}

#[test]
fn every_change_of_a_tool_has_its_code() {
    for (base, new, expected) in [
        ("capabilities = ['fs:read:/a']", "capabilities = ['fs:read:/']", "tool.filesystem.read.widened"),
        (
            "capabilities = ['fs:read:/a']",
            "capabilities = ['fs:read,create:/a']",
            "tool.filesystem.write.widened",
        ),
        ("capabilities = []", "capabilities = ['exec:spawn:git']", "tool.exec.widened"),
        (
            "capabilities = ['net:connect:a.test:1-9']",
            "capabilities = ['net:connect:a.test']",
            "tool.network.widened",
        ),
        ("capabilities = []", "capabilities = ['env:inject:TOKEN']", "tool.environment.widened"),
        ("capabilities = []", "capabilities = ['ipc:connect:x11']", "tool.ipc.widened"),
        ("capabilities = []", "capabilities = ['clock:system']", "tool.clock.widened"),
        ("capabilities = ['fs:read:/a']", "capabilities = ['fs:read:/a/b']", "tool.narrowed"),
        ("risk = 'low'", "risk = 'medium'", "tool.risk.increased"),
        ("risk = 'high'", "risk = 'low'", "tool.risk.decreased"),
        ("", "risk = 'critical'", "tool.risk.increased"),
        ("constraints.max_invocations = 3", "constraints.max_invocations = 4", "constraints.relaxed"),
        ("constraints.max_invocations = 3", "", "constraints.relaxed"),
        ("constraints.forbidden = true", "constraints.forbidden = false", "constraints.relaxed"),
        ("constraints.fleet_budget = { name = 'b' }", "", "constraints.relaxed"),
        (
            "constraints.fleet_budget = { name = 'b' }",
            "constraints.fleet_budget = { name = 'c' }",
            "constraints.relaxed",
        ),
        (
            "constraints.fleet_budget = { name = 'b', each = 3 }",
            "constraints.fleet_budget = { name = 'b', each = 2 }",
            "constraints.relaxed",
        ),
        (
            "constraints.fleet_budget = { name = 'b' }",
            "constraints.fleet_budget = { name = 'b', unit = 'money' }",
            "constraints.relaxed",
        ),
        ("constraints.confirm = true", "", "approval.removed"),
        ("capabilities = ['assert:x']", "capabilities = []", "enforcement.disabled"),
        ("capabilities = []\npolicy.network = 'deny'", "capabilities = []", "policy.removed"),
        ("policy.exec = 'deny'", "policy.risk = 'low'", "tool.exec.widened"),
        ("policy.risk = 'low'", "policy.exec = 'allow'", "tool.exec.widened"),
        ("policy.network = ['a.test:443']", "policy.network = 'allow'", "tool.network.widened"),
        ("policy.filesystem.read = []", "policy.filesystem.read = ['/a']", "tool.filesystem.read.widened"),
    ] {
        let found = codes(&tool(base), &tool(new));
        assert!(found.contains(&expected), "{base} → {new}: {found:?}");
    }
}

#[test]
fn spelling_is_no_difference() {
    for (base, new) in [
        ("capabilities = ['fs:read:/a']", "capabilities = ['fs:read:/a/**', 'fs:read:/a/b']"),
        ("capabilities = ['fs:read:/a/*']", "capabilities = ['fs:read:/a/[a-m]*', 'fs:read:/a/[!a-m]*']"),
        ("capabilities = ['fs:read:$HOME/x']", "capabilities = ['fs:read:~/x/**']"),
        ("capabilities = ['net:connect:A.test.']", "capabilities = ['network:connect:a.test:*']"),
        (
            "constraints.fleet_budget = { name = 'b' }",
            "constraints.fleet_budget = { name = 'b', unit = 'calls', each = 1 }",
        ),
    ] {
        assert_eq!(codes(&tool(base), &tool(new)), Vec::<&str>::new(), "{base} → {new}");
    }
    assert_eq!(
        codes(&tool("capabilities = ['fs:read:$HOME']"), &tool("capabilities = ['fs:read:/home']")),
        ["tool.filesystem.read.widened"]
    );
}

#[test]
fn what_cannot_be_decided_counts_as_wider() {
    let pattern = |marks: usize| format!("'fs:read:/*a{}'", "?".repeat(marks));
    let base = tool(&format!("capabilities = [{}]", (0..14).map(pattern).collect::<Vec<_>>().join(", ")));
    let new = tool(&format!("capabilities = [{}]", pattern(40)));
    assert_eq!(codes(&base, &new), ["diff.undecided"]);
    let diff = Diff::between(&snapshot(&base), &snapshot(&new)).unwrap();
    assert!(diff.needs_review() && diff.widens());
}

#[test]
fn tools_come_and_go() {
    let base = "name = 's'\nversion = '1'\n[[tools]]\nname = 'a'\ncapabilities = ['exec:spawn:git']\n";
    let renamed = base.replace("'a'", "'b'");
    assert_eq!(codes(base, &renamed), ["tool.renamed"]);
    let empty = "name = 's'\nversion = '1'\n";
    assert_eq!(codes(base, empty), ["tool.removed"]);
    assert_eq!(codes(empty, base), ["tool.added"]);
    assert_eq!(codes(empty, &format!("{base}risk = 'high'\n")), ["tool.added.high-risk"]);
    let diff = Diff::between(&snapshot(empty), &snapshot(base)).unwrap();
    assert_eq!(diff.differences()[0].severity(), Severity::High, "a new tool that starts programs");
    assert!(diff.needs_review() && diff.widens());
}

#[test]
fn the_server_itself_is_compared() {
    let head = "name = 's'\nversion = '1'\n";
    for (base, new, expected) in [
        ("", "serverCapabilities = ['fs:read:/a']", "server.widened"),
        ("serverCapabilities = ['fs:read:/a']", "", "server.narrowed"),
        ("command = 'node'", "command = 'deno'", "server.command.changed"),
        ("env.MODE = 'a'", "env.MODE = 'b'", "server.command.changed"),
        ("limits.memory = '1G'", "limits.memory = '2G'", "limits.relaxed"),
        ("limits.pids = 9", "", "limits.relaxed"),
        ("version = '2'", "version = '3'", "manifest.version.changed"),
    ] {
        let with = |body: &str| {
            if body.starts_with("version") {
                format!("name = 's'\n{body}\n")
            } else {
                format!("{head}{body}\n")
            }
        };
        assert_eq!(codes(&with(base), &with(new)), [expected], "{base} → {new}");
    }
    let pin = |hash: char| format!("{head}pins.instructions = 'sha256:{}'\n", hash.to_string().repeat(64));
    assert_eq!(codes(&pin('a'), &pin('b')), ["pin.changed"]);
    assert_eq!(codes(&pin('a'), head), ["enforcement.disabled"]);
}

#[test]
fn a_policy_that_is_no_longer_enforced_is_reported_and_narrows_nothing() {
    let with = |policy: &str| {
        tool(&format!(
            "capabilities = ['fs:read:/a', 'exec:spawn:git']\npolicy.filesystem.read = ['/a/b']\n{policy}"
        ))
    };
    let (held, left) = (with(""), with("policy.enforced = false"));
    assert_eq!(codes(&held, &with("policy.enforced = true")), [""; 0]);
    let found = codes(&held, &left);
    assert!(found.contains(&"enforcement.disabled"), "{found:?}");
    assert!(found.contains(&"tool.filesystem.read.widened"), "{found:?}");
    assert!(!codes(&left, &held).contains(&"enforcement.disabled"));
    assert_eq!(codes(&left, &left), [""; 0]);
}

#[test]
fn verdicts_answer_the_reviewer() {
    let yes = |base: &str, new: &str| {
        let diff = Diff::between(&snapshot(&tool(base)), &snapshot(&tool(new))).unwrap();
        let answered = diff.verdicts().iter().filter(|verdict| verdict.evidence.is_some());
        answered.map(|verdict| verdict.question.as_str()).collect::<Vec<_>>()
    };
    let none = "capabilities = ['net:connect:a.test:443', 'env:inject:TOKEN']";
    assert_eq!(yes(none, none), Vec::<&str>::new());
    assert_eq!(
        yes(none, "capabilities = ['net:connect:b.test:443', 'env:inject:TOKEN']"),
        ["credential-reach", "new-host"]
    );
    assert_eq!(
        yes(none, "capabilities = ['net:connect:a.test:443', 'env:inject:OTHER']"),
        ["credential-reach"]
    );
    assert_eq!(yes(none, "capabilities = ['net:connect:169.254.169.254:80']"), ["new-host", "private-reach"]);
    assert_eq!(yes(none, "capabilities = ['exec:spawn:sh']"), ["new-execution"]);
    assert_eq!(yes(none, "capabilities = ['fs:write:/repo/**']"), ["runs-later"]);
    assert_eq!(yes(none, "capabilities = ['fs:write:/repo/src/*.rs']"), Vec::<&str>::new());
    assert_eq!(yes(none, "policy.exec = 'allow'"), ["new-execution"], "what is unspecified grants nothing");
}

#[test]
fn accepted_risks_have_a_reason_and_an_end() {
    let (base, new) =
        (snapshot(&tool("capabilities = []")), snapshot(&tool("capabilities = ['exec:spawn:git']")));
    let diff = || Diff::between(&base, &new).unwrap();
    let file = |extra: &str| {
        let text = format!(
            "[[accept]]\ncode = 'tool.exec.widened'\ntool = 't'\nreason = 'r'\nexpires = 2030-01-31\n{extra}"
        );
        Accepted::parse(&text).unwrap()
    };
    let day = |text: &str| accept::day(text).unwrap();
    assert!(diff().needs_review());
    let accepted = diff().accepting(&file(""), day("2030-01-31"), &new);
    assert!(!accepted.needs_review() && accepted.widens());
    assert!(diff().accepting(&file(""), day("2030-02-01"), &new).needs_review(), "expired");
    let elsewhere = file("snapshot = 'sha256:00'\n");
    assert!(diff().accepting(&elsewhere, day("2029-01-01"), &new).needs_review(), "of another snapshot");
    let bound = file(&format!("snapshot = '{}'\n", new.hash()));
    assert!(!diff().accepting(&bound, day("2029-01-01"), &new).needs_review());
    for bad in [
        "[[accept]]\ncode = 'x'\nreason = 'r'\nexpires = 2030-01-31\n",
        "[[accept]]\ncode = 'tool.added'\nexpires = 2030-01-31\n",
    ] {
        assert!(Accepted::parse(bad).is_err());
    }
}

fn any_lines() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "fs:read:/a",
        "fs:read:/a/*",
        "fs:write:/a/b",
        "fs:read:$HOME",
        "net:connect:*.test",
        "net:connect:a.test:443",
        "exec:spawn:git",
        "exec:spawn:*",
        "env:read:HOME",
        "env:inject:T",
        "ipc:connect:x11",
        "clock:system",
        "fs:create:/",
    ]);
    prop::collection::vec(line, 0..5).prop_map(|lines| tool(&format!("capabilities = {lines:?}")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_differs_from_itself(text in any_lines()) {
        prop_assert_eq!(codes(&text, &text), Vec::<&str>::new());
        let taken = snapshot(&text);
        let read = Snapshot::parse(&taken.to_text().unwrap()).unwrap();
        prop_assert_eq!(read.hash(), taken.hash());
        prop_assert!(Diff::between(&taken, &read).unwrap().differences().is_empty());
    }

    #[test]
    fn widening_of_lines_is_reported_exactly_when_containment_fails(base in any_lines(), new in any_lines()) {
        let (old, fresh) = (snapshot(&base), snapshot(&new));
        let tool_of = |side: &Snapshot| side.manifest().tools()[0].clone();
        let (old_tool, new_tool) = (tool_of(&old), tool_of(&fresh));
        let declared = |tool: &crate::manifest::Tool| tool.declared(&crate::manifest::symbolic).unwrap();
        let contained = declared(&new_tool).within(&declared(&old_tool)).holds();
        let unjudged = old_tool.has_file_stance() && !new_tool.has_file_stance();
        prop_assert_eq!(Diff::between(&old, &fresh).unwrap().widens(), !contained || unjudged);
    }
}
