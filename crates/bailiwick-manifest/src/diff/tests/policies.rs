//! Attempts to widen a manifest behind a policy, one a row: every axis by a tool's line, a server's line and a stance;
//! constraints, arguments, environment, command, limits and pins.

use super::{Diff, Snapshot, codes};

/// A name, the two sides as (server, tool), and every code that must be reported, the gravest first.
type Row =
    (&'static str, (&'static str, &'static str), (&'static str, &'static str), &'static [&'static str]);

const NONE: (&str, &str) = ("", "");
const BEYOND: &[&str] = &["capability-beyond-policy"];
const READ: &[&str] = &["tool.filesystem.read.widened"];
const WRITE: &[&str] = &["tool.filesystem.write.widened"];
const NET: &[&str] = &["tool.network.widened"];
const EXEC: &[&str] = &["tool.exec.widened"];
const ENV: &[&str] = &["tool.environment.widened"];
const RELAXED: &[&str] = &["constraints.relaxed"];
const SERVER: &[&str] = &["server.widened"];

const DENY_A: &str = "rules = [{ when = { argument = '/a', matches = 'x' }, then = 'deny', message = 'm' }]";
const ASK_A: &str =
    "rules = [{ when = { argument = '/a', matches = 'x' }, then = 'ask', message = 'other' }]";
const DENY_A_AND_B: &str = "rules = [{ when = [{ argument = '/b', number = '1..' }, { argument = '/a', matches = 'x' }], then = 'deny', message = 'm' }]";

fn manifest((server, tool): (&str, &str)) -> String {
    format!("name = 's'\nversion = '1'\n{server}\n[[tools]]\nname = 'u'\n[[tools]]\nname = 't'\n{tool}\n")
}

fn check_rows(rows: &[Row]) {
    for (name, base, new, expected) in rows {
        let found = codes(&manifest(*base), &manifest(*new));
        assert_eq!(found, *expected, "{name}: {base:?} → {new:?}");
        assert_eq!(codes(&manifest(*base), &manifest(*base)), Vec::<&str>::new(), "{name}");
    }
}

/// Lines that an unchanged policy hides: granted nowhere, and not passed over in silence.
const BEHIND_A_POLICY: &[Row] = &[
    (
        "a host",
        ("", "capabilities = ['net:connect:a.test:443']\npolicy.network = ['a.test:443']"),
        (
            "",
            "capabilities = ['net:connect:a.test:443', 'net:connect:b.test:443']\npolicy.network = ['a.test:443']",
        ),
        BEYOND,
    ),
    (
        "private addresses",
        ("", "capabilities = ['net:connect:a.test:443']\npolicy.network = ['a.test:443']"),
        ("", "capabilities = ['net:connect:a.test:443?blockPrivate=false']\npolicy.network = ['a.test:443']"),
        BEYOND,
    ),
    (
        "hidden names",
        ("", "capabilities = ['net:connect:a.test:443']\npolicy.network = ['a.test:443']"),
        ("", "capabilities = ['net:connect:a.test:443?ech=allow']\npolicy.network = ['a.test:443']"),
        BEYOND,
    ),
    (
        "raw bytes",
        ("", "capabilities = ['net:connect:a.test:443']\npolicy.network = ['a.test:443']"),
        ("", "capabilities = ['net:connect:a.test:443?protocol=raw']\npolicy.network = ['a.test:443']"),
        BEYOND,
    ),
    (
        "raw bytes behind allow",
        ("", "capabilities = ['net:connect:a.test:443']\npolicy.network = 'allow'"),
        ("", "capabilities = ['net:connect:a.test:443?protocol=raw']\npolicy.network = 'allow'"),
        BEYOND,
    ),
    (
        "a directory to read",
        ("", "capabilities = ['fs:read:/a']\npolicy.filesystem.read = ['/a']"),
        ("", "capabilities = ['fs:read:/a', 'fs:read:/etc']\npolicy.filesystem.read = ['/a']"),
        BEYOND,
    ),
    (
        "a directory to write",
        ("", "capabilities = ['fs:write:/a']\npolicy.filesystem.write = ['/a']"),
        ("", "capabilities = ['fs:write:/a', 'fs:create:/b']\npolicy.filesystem.write = ['/a']"),
        BEYOND,
    ),
    (
        "a program",
        ("", "capabilities = ['exec:spawn:git']\npolicy.exec = ['git']"),
        ("", "capabilities = ['exec:spawn:git', 'exec:spawn:sh']\npolicy.exec = ['git']"),
        BEYOND,
    ),
    (
        "a program from a writable directory",
        ("", "capabilities = ['exec:spawn:git']\npolicy.exec = ['git']"),
        ("", "capabilities = ['exec:spawn:git?fromWritable=true']\npolicy.exec = ['git']"),
        BEYOND,
    ),
    (
        "a nested sandbox behind allow",
        ("", "capabilities = ['exec:spawn:git']\npolicy.exec = 'allow'"),
        ("", "capabilities = ['exec:spawn:git?nestedSandbox=true']\npolicy.exec = 'allow'"),
        BEYOND,
    ),
    (
        "a variable to read",
        ("", "capabilities = []\npolicy.environment = ['HOME']"),
        ("", "capabilities = ['env:read:TOKEN']\npolicy.environment = ['HOME']"),
        BEYOND,
    ),
    (
        "a secret",
        ("", "capabilities = []\npolicy.environment = []"),
        ("", "capabilities = ['env:inject:TOKEN']\npolicy.environment = []"),
        BEYOND,
    ),
    (
        "a variable path that the policy may mean",
        ("", "capabilities = []\npolicy.filesystem.read = ['/home/u']"),
        ("", "capabilities = ['fs:read:$HOME/.ssh']\npolicy.filesystem.read = ['/home/u']"),
        BEYOND,
    ),
    (
        "what no policy narrows",
        ("", "capabilities = []\npolicy.exec = 'deny'"),
        ("", "capabilities = ['ipc:connect:x11']\npolicy.exec = 'deny'"),
        &["tool.ipc.widened"],
    ),
    (
        "the clock",
        ("", "capabilities = []\npolicy.exec = 'deny'"),
        ("", "capabilities = ['clock:system']\npolicy.exec = 'deny'"),
        &["tool.clock.widened"],
    ),
];

/// Lines that the policy lets through.
const WITHIN_A_POLICY: &[Row] = &[
    (
        "a file line within a list",
        ("", "capabilities = ['fs:read:/a/b']\npolicy.filesystem.read = ['/a']"),
        ("", "capabilities = ['fs:read:/a/b', 'fs:read:/a/c']\npolicy.filesystem.read = ['/a']"),
        READ,
    ),
    (
        "a file line wider than the list",
        ("", "capabilities = ['fs:read:/a/b']\npolicy.filesystem.read = ['/a']"),
        ("", "capabilities = ['fs:read:/']\npolicy.filesystem.read = ['/a']"),
        READ,
    ),
    (
        "a write line on an open subject",
        ("", "capabilities = ['fs:write:/a']\npolicy.network = 'deny'"),
        ("", "capabilities = ['fs:write:/']\npolicy.network = 'deny'"),
        WRITE,
    ),
    (
        "an injected variable that the policy names",
        ("", "capabilities = []\npolicy.environment = ['TOKEN']"),
        ("", "capabilities = ['env:inject:TOKEN']\npolicy.environment = ['TOKEN']"),
        ENV,
    ),
    (
        "a program behind allow",
        ("", "capabilities = ['exec:spawn:git']\npolicy.exec = 'allow'"),
        ("", "capabilities = ['exec:spawn:git', 'exec:spawn:sh']\npolicy.exec = 'allow'"),
        EXEC,
    ),
];

/// Lines of the server, which every tool has as far as its policy lets it.
const LINES_OF_THE_SERVER: &[Row] = &[
    ("a file", NONE, ("serverCapabilities = ['fs:read:/a']", ""), SERVER),
    ("a host", NONE, ("serverCapabilities = ['net:connect:a.test']", "policy.network = 'deny'"), SERVER),
    ("a program", NONE, ("serverCapabilities = ['exec:spawn:git']", ""), SERVER),
    ("a variable", NONE, ("serverCapabilities = ['env:inject:T']", ""), SERVER),
    (
        "a refinement",
        ("serverCapabilities = ['exec:spawn:git']", "policy.exec = ['git']"),
        ("serverCapabilities = ['exec:spawn:git?nestedSandbox=true']", "policy.exec = ['git']"),
        SERVER,
    ),
    (
        "a line that moves from the server to a tool",
        ("serverCapabilities = ['fs:read:/a']", "capabilities = []"),
        ("", "capabilities = ['fs:read:/a']"),
        &["server.narrowed"],
    ),
    (
        "a line that moves from a tool to the server",
        ("", "capabilities = ['exec:spawn:git']"),
        ("serverCapabilities = ['exec:spawn:git']", "capabilities = []"),
        SERVER,
    ),
];

/// Stances that let more through, whether or not a line uses it.
const STANCES: &[Row] = &[
    (
        "exec: unspecified to allow, no lines",
        ("", "policy.risk = 'low'"),
        ("", "policy = { risk = 'low', exec = 'allow' }"),
        EXEC,
    ),
    (
        "exec: unspecified to a list, no lines",
        ("", "policy.risk = 'low'"),
        ("", "policy = { risk = 'low', exec = ['git'] }"),
        EXEC,
    ),
    (
        "network: unspecified to allow, no lines",
        ("", "policy.risk = 'low'"),
        ("", "policy = { risk = 'low', network = 'allow' }"),
        NET,
    ),
    (
        "network: unspecified to a list, no lines",
        ("", "policy.risk = 'low'"),
        ("", "policy = { risk = 'low', network = ['a.test:443'] }"),
        NET,
    ),
    (
        "read: unspecified to a list, no lines",
        ("", "policy.risk = 'low'"),
        ("", "policy = { risk = 'low', filesystem.read = ['/a'] }"),
        READ,
    ),
    (
        "write: unspecified to a list, no lines",
        ("", "policy.risk = 'low'"),
        ("", "policy = { risk = 'low', filesystem.write = ['/a'] }"),
        WRITE,
    ),
    (
        "environment: unspecified to a list, no lines",
        ("", "policy.risk = 'low'"),
        ("", "policy = { risk = 'low', environment = ['HOME'] }"),
        ENV,
    ),
    (
        "exec: no policy to allow, with lines",
        ("", "capabilities = []"),
        ("", "capabilities = []\npolicy.exec = 'allow'"),
        EXEC,
    ),
    (
        "exec: unspecified to allow, with lines",
        ("", "capabilities = []\npolicy.risk = 'low'"),
        ("", "capabilities = []\npolicy = { risk = 'low', exec = 'allow' }"),
        EXEC,
    ),
    (
        "network: unspecified to allow, with lines",
        ("", "capabilities = ['net:connect:a.test']\npolicy.exec = 'deny'"),
        ("", "capabilities = ['net:connect:a.test']\npolicy = { exec = 'deny', network = 'allow' }"),
        NET,
    ),
    (
        "exec: deny to allow",
        ("", "capabilities = []\npolicy.exec = 'deny'"),
        ("", "capabilities = []\npolicy.exec = 'allow'"),
        EXEC,
    ),
    (
        "exec: deny to a list",
        ("", "capabilities = []\npolicy.exec = 'deny'"),
        ("", "capabilities = []\npolicy.exec = ['git']"),
        EXEC,
    ),
    (
        "exec: deny to unspecified",
        ("", "capabilities = []\npolicy = { exec = 'deny', network = 'deny' }"),
        ("", "capabilities = []\npolicy.network = 'deny'"),
        EXEC,
    ),
    (
        "network: a list to allow",
        ("", "capabilities = []\npolicy.network = ['a.test:443']"),
        ("", "capabilities = []\npolicy.network = 'allow'"),
        NET,
    ),
    (
        "network: a list to a longer one",
        ("", "capabilities = []\npolicy.network = ['a.test:443']"),
        ("", "capabilities = []\npolicy.network = ['a.test:443', 'b.test:443']"),
        NET,
    ),
    (
        "network: a refinement in a list",
        ("", "capabilities = []\npolicy.network = ['a.test:443']"),
        ("", "capabilities = []\npolicy.network = ['a.test:443?blockPrivate=false']"),
        NET,
    ),
    (
        "network: deny to unspecified",
        ("", "capabilities = []\npolicy = { exec = 'deny', network = 'deny' }"),
        ("", "capabilities = []\npolicy.exec = 'deny'"),
        NET,
    ),
    (
        "read: a list to a wider one",
        ("", "capabilities = ['fs:read:/a/b']\npolicy.filesystem.read = ['/a']"),
        ("", "capabilities = ['fs:read:/a/b']\npolicy.filesystem.read = ['/']"),
        READ,
    ),
    (
        "write: nothing to a list",
        ("", "capabilities = []\npolicy.filesystem.write = []"),
        ("", "capabilities = []\npolicy.filesystem.write = ['/a']"),
        WRITE,
    ),
    (
        "write: nothing to unspecified",
        ("", "capabilities = []\npolicy.filesystem = { read = [], write = [] }"),
        ("", "capabilities = []\npolicy.filesystem.read = []"),
        WRITE,
    ),
    (
        "environment: nothing to a list",
        ("", "capabilities = []\npolicy.environment = []"),
        ("", "capabilities = []\npolicy.environment = ['T']"),
        ENV,
    ),
    (
        "exec: a list that is gone, and nothing uses it",
        ("", "capabilities = []\npolicy = { exec = ['git'], network = 'deny' }"),
        ("", "capabilities = []\npolicy.network = 'deny'"),
        &[],
    ),
    (
        "exec: a list that is gone, and a line uses it",
        ("", "capabilities = ['exec:spawn:sh']\npolicy = { exec = ['git'], network = 'deny' }"),
        ("", "capabilities = ['exec:spawn:sh']\npolicy.network = 'deny'"),
        EXEC,
    ),
    (
        "network: a list that is gone while the server has hosts",
        (
            "serverCapabilities = ['net:connect:a.test']",
            "capabilities = []\npolicy = { network = ['b.test:1'], exec = 'deny' }",
        ),
        ("serverCapabilities = ['net:connect:a.test']", "capabilities = []\npolicy.exec = 'deny'"),
        &["tool.network.widened", "constraints.relaxed"],
    ),
    (
        "environment: not spoken of while the server injects a secret",
        (
            "serverCapabilities = ['env:inject:TOKEN']",
            "capabilities = []\npolicy = { environment = [], exec = 'deny' }",
        ),
        ("serverCapabilities = ['env:inject:TOKEN']", "capabilities = []\npolicy.exec = 'deny'"),
        ENV,
    ),
    (
        "environment: the same without lines",
        ("serverCapabilities = ['env:inject:TOKEN']", "policy = { environment = ['HOME'], exec = 'deny' }"),
        ("serverCapabilities = ['env:inject:TOKEN']", "policy.exec = 'deny'"),
        ENV,
    ),
    (
        "a policy that is gone",
        ("", "capabilities = ['exec:spawn:git']\npolicy.exec = 'deny'"),
        ("", "capabilities = ['exec:spawn:git']"),
        &["tool.exec.widened", "policy.removed"],
    ),
    (
        "a policy that is gone and hid nothing",
        ("", "capabilities = []\npolicy.exec = 'deny'"),
        ("", "capabilities = []"),
        &["policy.removed"],
    ),
    (
        "lines that are gone: the policy's count",
        ("", "capabilities = []\npolicy.exec = ['git']"),
        ("", "policy.exec = ['git']"),
        EXEC,
    ),
    (
        "allow to a list",
        ("", "capabilities = ['exec:spawn:git']\npolicy.exec = 'allow'"),
        ("", "capabilities = ['exec:spawn:git']\npolicy.exec = ['git']"),
        &[],
    ),
    (
        "unspecified to deny",
        ("", "capabilities = ['exec:spawn:git']\npolicy.network = 'deny'"),
        ("", "capabilities = ['exec:spawn:git']\npolicy = { network = 'deny', exec = 'deny' }"),
        &["tool.narrowed"],
    ),
];

/// Names in a writable tree: closed there if they run later, open if a line names them.
const NAMES: &[Row] = &[
    (
        "a file that runs later",
        ("", "capabilities = ['fs:write:/w']"),
        ("", "capabilities = ['fs:write:/w', 'fs:write:/w/.git/config']"),
        WRITE,
    ),
    (
        "a file below one that runs later",
        ("", "capabilities = ['fs:write:$HOME']"),
        ("", "capabilities = ['fs:write:$HOME', 'fs:create:$HOME/.git/hooks/pre-commit']"),
        WRITE,
    ),
    (
        "of the server",
        ("serverCapabilities = ['fs:write:/w']", ""),
        ("serverCapabilities = ['fs:write:/w', 'fs:write:/w/.mcp.json']", ""),
        SERVER,
    ),
    (
        "any other name",
        ("", "capabilities = ['fs:write:/w']"),
        ("", "capabilities = ['fs:write:/w', 'fs:write:/w/src']"),
        &[],
    ),
    (
        "for reading",
        ("", "capabilities = ['fs:read:/w']"),
        ("", "capabilities = ['fs:read:/w', 'fs:read:/w/.git/config']"),
        &[],
    ),
];

/// What is held beside authority.
const RULES: &[Row] = &[
    ("more calls", ("", "constraints.max_invocations = 1"), ("", "constraints.max_invocations = 2"), RELAXED),
    ("any number of calls", ("", "constraints.max_invocations = 0"), ("", ""), RELAXED),
    (
        "no longer after another",
        ("", "constraints.only_after = ['u']"),
        ("", "constraints.only_after = []"),
        RELAXED,
    ),
    ("no longer forbidden", ("", "constraints.forbidden = true"), ("", ""), RELAXED),
    ("no longer asked", ("", "constraints.confirm = true"), ("", ""), &["approval.removed"]),
    ("fewer calls", ("", ""), ("", "constraints.max_invocations = 2"), &[]),
    ("a written argument is read", ("", "arguments.to = 'write'"), ("", "arguments.to = 'read'"), RELAXED),
    ("a read argument is any path", ("", "arguments.of = 'read'"), ("", "arguments.of = 'path'"), RELAXED),
    ("a read argument is written", ("", "arguments.of = 'read'"), ("", "arguments.of = 'write'"), RELAXED),
    ("a path is text", ("", "arguments.path = 'path'"), ("", "arguments.path = 'text'"), RELAXED),
    ("a path by its name is text", ("", ""), ("", "arguments.path = 'text'"), RELAXED),
    ("an argument is no longer declared", ("", "arguments.of = 'path'"), ("", ""), RELAXED),
    ("any path is a read one", ("", "arguments.of = 'path'"), ("", "arguments.of = 'read'"), &[]),
    (
        "paths in arguments are no longer judged",
        ("", "capabilities = ['fs:read:/a']"),
        ("", "capabilities = []"),
        &["constraints.relaxed", "tool.narrowed"],
    ),
    (
        "hosts in arguments are no longer judged",
        ("serverCapabilities = ['net:connect:b.test:443']", "capabilities = ['net:connect:a.test:443']"),
        ("serverCapabilities = ['net:connect:b.test:443']", "capabilities = []"),
        &["constraints.relaxed", "tool.narrowed"],
    ),
    (
        "hosts in arguments of a server that reaches none",
        ("", "capabilities = ['net:connect:a.test:443']"),
        ("", "capabilities = []"),
        &["tool.narrowed"],
    ),
    ("a host is text", ("", "arguments.to = 'host'"), ("", "arguments.to = 'text'"), RELAXED),
    ("a path is a host", ("", "arguments.to = 'path'"), ("", "arguments.to = 'host'"), RELAXED),
    ("a new host", ("", ""), ("", "arguments.to = 'host'"), &[]),
    ("a rule is gone", ("", DENY_A), ("", ""), RELAXED),
    ("a question is gone", ("", ASK_A), ("", ""), &["approval.removed"]),
    ("a refusal is a question", ("", DENY_A), ("", ASK_A), RELAXED),
    ("a question is a refusal", ("", ASK_A), ("", DENY_A), &[]),
    ("a new rule", ("", ""), ("", DENY_A), &[]),
    ("a rule applies less often", ("", DENY_A), ("", DENY_A_AND_B), RELAXED),
    ("a rule applies more often", ("", DENY_A_AND_B), ("", DENY_A), &[]),
    ("sampling is open", ("client.sampling = 'deny'", ""), ("client.sampling = 'allow'", ""), RELAXED),
    ("sampling asks no more", NONE, ("client.sampling = 'allow'", ""), &["approval.removed"]),
    ("tasks are open", NONE, ("client.tasks = 'ask'", ""), RELAXED),
    ("a tool shares a process", ("", "state = 'none'"), ("", "state = 'shared'"), RELAXED),
    ("the state of a tool is not given", ("", "state = 'shared'"), NONE, RELAXED),
    ("a tool keeps nothing", NONE, ("", "state = 'none'"), &[]),
    ("roots are closed", NONE, ("client.roots = 'deny'", ""), &[]),
    ("a lower risk", ("", "policy.risk = 'high'"), ("", "policy.risk = 'low'"), &["tool.risk.decreased"]),
    ("another command", ("command = 'node'", ""), ("command = 'deno'", ""), &["server.command.changed"]),
    (
        "another argument",
        ("command = 'n'\nargs = ['a']", ""),
        ("command = 'n'\nargs = ['a', 'b']", ""),
        &["server.command.changed"],
    ),
    (
        "another fixed value",
        ("env.MODE = 'a'", "policy.environment = []"),
        ("env.MODE = 'b'", "policy.environment = []"),
        &["server.command.changed"],
    ),
    ("a new fixed value", NONE, ("env.MODE = 'b'", ""), &["server.widened", "server.command.changed"]),
    ("more memory", ("limits.memory = '1G'", ""), ("limits.memory = '2G'", ""), &["limits.relaxed"]),
    ("any time", ("limits.timeout = '1s'", ""), NONE, &["limits.relaxed"]),
    (
        "no pin",
        ("pins.set = 'sha256:0000000000000000000000000000000000000000000000000000000000000000'", ""),
        NONE,
        &["enforcement.disabled"],
    ),
    (
        "another pin",
        ("pins.tools.t = 'sha256:0000000000000000000000000000000000000000000000000000000000000000'", ""),
        ("pins.tools.t = 'sha256:1111111111111111111111111111111111111111111111111111111111111111'", ""),
        &["pin.changed"],
    ),
    (
        "a promise that is gone",
        ("", "capabilities = ['assert:x']\npolicy.exec = 'deny'"),
        ("", "capabilities = []\npolicy.exec = 'deny'"),
        &["enforcement.disabled"],
    ),
];

#[test]
fn lines_behind_an_unchanged_policy_are_reported() {
    check_rows(BEHIND_A_POLICY);
}

#[test]
fn lines_within_a_policy_are_compared() {
    check_rows(WITHIN_A_POLICY);
}

#[test]
fn lines_of_the_server_are_compared_once() {
    check_rows(LINES_OF_THE_SERVER);
}

#[test]
fn a_stance_that_lets_more_through_is_wider() {
    check_rows(STANCES);
}

#[test]
fn naming_a_file_that_runs_later_is_wider() {
    check_rows(NAMES);
    let text = manifest(("", "capabilities = ['fs:write:/w', 'fs:write:/w/.git/config']"));
    let taken = super::snapshot(&text);
    let kept = Snapshot::parse(&taken.to_text().unwrap()).unwrap();
    assert!(Diff::between(&kept, &taken).unwrap().differences().is_empty(), "a snapshot keeps the name");
}

#[test]
fn what_is_held_beside_authority_is_compared() {
    check_rows(RULES);
}

#[test]
fn there_are_enough_attempts() {
    let rows = [BEHIND_A_POLICY, WITHIN_A_POLICY, LINES_OF_THE_SERVER, STANCES, NAMES, RULES];
    let count: usize = rows.iter().map(|rows| rows.len()).sum();
    assert!(count >= 40, "{count}");
}
