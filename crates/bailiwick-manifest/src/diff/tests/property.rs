//! `diff` is silent only if nothing is allowed that was not: generated manifests with tools, policies, constraints
//! and server lines, against every request of a small universe on every path that enforces.
//!
//! The paths: each tool by the authority that its gate takes, each tool and the whole server by the plan that a
//! sandbox takes, paths in arguments, and the constraints of a session.

use std::collections::BTreeSet;

use bailiwick_policy::authority::{Authority, Request, Spawn};
use bailiwick_policy::capability::{ClockActions, Endpoint, FsActions, Program};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::net::{Host, Method, NetRequest, Scheme, Speak};
use bailiwick_policy::path::{AbsPath, PathScope};
use bailiwick_policy::plan::{Network, Plan};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use super::snapshot;
use crate::diff::Diff;
use crate::manifest::{ArgumentAccess, Checked, Manifest, Tool};

const LINES: [&str; 27] = [
    "fs:read:/a",
    "fs:read:/a/*",
    "fs:read:/a/*/c",
    "fs:read:$HOME/x",
    "fs:read,write:/a/b",
    "fs:write:/",
    "fs:create:/a",
    "fs:delete:/b",
    "net:connect:a.test:443",
    "net:connect:a.test:443?blockPrivate=false",
    "net:connect:a.test:443?protocol=raw",
    "net:connect:a.test:443?ech=allow",
    "net:connect:*.test",
    "net:https:GET@https://a.test/x/**",
    "net:connect:10.0.0.1:80",
    "exec:spawn:git",
    "exec:spawn:git?nestedSandbox=true",
    "exec:spawn:git?fromWritable=true",
    "exec:spawn:/bin/x",
    "exec:spawn:*",
    "env:read:TOKEN",
    "env:inject:TOKEN",
    "env:inject:LD_PRELOAD?loader=true",
    "ipc:connect:x11",
    "net:listen:8080",
    "clock:system",
    "clock:tzdata",
];
const PATHS: [&str; 7] = ["/", "/a", "/a/b", "/a/b/c", "/b", "/home/u/x", "/home/u/x/y"];
const READS: [&str; 6] = ["", "[]", "['/a']", "['/a/*', '$HOME/x']", "['/home/u']", "['/']"];
const WRITES: [&str; 6] = ["", "[]", "['/a/b']", "['/a', '/b']", "['/a/*/c']", "['/']"];
const NETWORKS: [&str; 6] =
    ["", "'deny'", "'allow'", "['a.test:443']", "['a.test:443?blockPrivate=false', '10.0.0.1:80']", "['*']"];
const ENVIRONMENTS: [&str; 4] = ["", "[]", "['TOKEN']", "['MODE', 'LD_PRELOAD']"];
const EXECS: [&str; 5] = ["", "'deny'", "'allow'", "['git']", "['git', '/bin/x']"];
const CONSTRAINTS: [&str; 8] = [
    "",
    "max_invocations = 0",
    "max_invocations = 2",
    "only_after = ['other']",
    "forbidden = true",
    "confirm = true",
    "confirm = true\nmax_invocations = 1",
    "max_invocations = 2\nonly_after = ['other']",
];
const ARGUMENTS: [&str; 5] = ["", "to = 'read'", "to = 'write'", "to = 'path'", "to = 'text'"];
const NAMES: [&str; 2] = ["t", "u"];

/// What one tool is written from; each field is mutated alone.
#[derive(Debug, Clone)]
struct ToolModel(Vec<String>);

/// What a manifest is written from.
#[derive(Debug, Clone)]
struct Model {
    server: Vec<String>,
    tools: Vec<ToolModel>,
}

impl Model {
    fn text(&self) -> String {
        let head = "name = 's'\nversion = '1'";
        let mut text = format!("{head}\n{}\n[[tools]]\nname = 'other'\n", self.server.join("\n"));
        for (tool, name) in self.tools.iter().zip(NAMES) {
            let [present, fields @ ..] = &*tool.0 else { continue };
            if present == "yes" {
                text += &format!("[[tools]]\nname = '{name}'\n{}\n", fields.join("\n"));
            }
        }
        text
    }

    /// This model with the fields that `which` picks from another one.
    fn mutated(&self, other: &Self, which: &BTreeSet<usize>) -> Self {
        let mut at = 0;
        let mut mixed = |own: &[String], other: &[String]| -> Vec<String> {
            let fields = own.iter().zip(other).map(|(own, other)| {
                at += 1;
                if which.contains(&(at - 1)) { other.clone() } else { own.clone() }
            });
            fields.collect()
        };
        let server = mixed(&self.server, &other.server);
        let tools =
            self.tools.iter().zip(&other.tools).map(|(own, other)| ToolModel(mixed(&own.0, &other.0)));
        Self { server, tools: tools.collect() }
    }
}

fn lines(key: &'static str) -> impl Strategy<Value = String> {
    subsequence(LINES.to_vec(), 0..5).prop_map(move |lines| format!("{key} = {lines:?}"))
}

fn field(key: &'static str, values: &'static [&'static str]) -> impl Strategy<Value = String> {
    select(values)
        .prop_map(move |value| if value.is_empty() { String::new() } else { format!("{key} = {value}") })
}

/// A table whose entries are written out line by line.
fn table(key: &'static str, values: &'static [&'static str]) -> impl Strategy<Value = String> {
    let entry = move |line: &str| format!("{key}.{line}");
    select(values).prop_map(move |value| value.lines().map(entry).collect::<Vec<_>>().join("\n"))
}

fn any_tool() -> impl Strategy<Value = ToolModel> {
    let present = prop_oneof![4 => Just("yes".to_owned()), 1 => Just("no".to_owned())];
    let own = prop_oneof![3 => lines("capabilities"), 1 => Just(String::new())];
    let fields = (
        present,
        own,
        field("policy.filesystem.read", &READS),
        field("policy.filesystem.write", &WRITES),
        field("policy.network", &NETWORKS),
        field("policy.environment", &ENVIRONMENTS),
        field("policy.exec", &EXECS),
        table("constraints", &CONSTRAINTS),
        table("arguments", &ARGUMENTS),
        field("risk", &["", "'low'", "'high'"]),
    );
    fields.prop_map(|(a, b, c, d, e, f, g, h, i, j)| ToolModel(vec![a, b, c, d, e, f, g, h, i, j]))
}

fn any_model() -> impl Strategy<Value = Model> {
    let server = (lines("serverCapabilities"), field("env", &["", "{ MODE = 'x' }"]));
    let tools = (any_tool(), any_tool());
    (server, tools).prop_map(|((lines, env), (t, u))| Model { server: vec![lines, env], tools: vec![t, u] })
}

/// Two manifests that differ in at most three fields, or in all.
fn any_pair() -> impl Strategy<Value = (String, String)> {
    let few = prop::collection::btree_set(0..22_usize, 0..4);
    let which = prop_oneof![9 => few, 1 => Just((0..22).collect())];
    (any_model(), any_model(), which)
        .prop_map(|(base, other, which)| (base.text(), base.mutated(&other, &which).text()))
}

fn net_requests() -> Vec<Request> {
    let path = AbsPath::new("/x/y").unwrap();
    let http = Speak::Http {
        scheme: Scheme::Https,
        method: Method::new("GET").unwrap(),
        path: bailiwick_policy::net::UrlPath::Clear(path),
    };
    let mut all = Vec::new();
    for host in ["a.test", "b.test", "test", "other.example", "10.0.0.1"] {
        for port in [80, 443] {
            for speak in [Speak::Tls, Speak::HiddenTls, Speak::Raw, http.clone()] {
                let host = Host::new(host).unwrap();
                let request = NetRequest::new(host, port, speak);
                all.push(Request::Net(request.clone().resolved_privately()));
                all.push(Request::Net(request));
            }
        }
    }
    all
}

fn universe() -> Vec<Request> {
    let mut all = net_requests();
    for path in PATHS.map(|path| AbsPath::new(path).unwrap()) {
        all.extend(
            [Request::Read, Request::MapCode, Request::Write, Request::Create, Request::Delete]
                .map(|make| make(path.clone())),
        );
    }
    for program in [
        Program::Name("git".into()),
        Program::Name("sh".into()),
        Program::Path(AbsPath::new("/bin/x").unwrap()),
    ] {
        // Two refinements of one program are granted one by one, so no request asks for both.
        for (nested_sandbox, from_writable) in [(false, false), (true, false), (false, true)] {
            all.push(Request::Spawn(Spawn { program: program.clone(), nested_sandbox, from_writable }));
        }
    }
    for name in ["TOKEN", "MODE", "LD_PRELOAD", "OTHER"] {
        all.extend([Request::ReadEnv(name.into()), Request::InjectEnv(name.into())]);
    }
    all.extend(
        [None, Some(std::net::Ipv4Addr::LOCALHOST.into())]
            .map(|ip| Request::Listen(bailiwick_policy::net::Listen::new(ip, 8080))),
    );
    all.extend([Request::Ipc(Endpoint::X11), Request::Ipc(Endpoint::Wayland)]);
    all.extend([Request::Clock(ClockActions::SYSTEM), Request::Clock(ClockActions::TZDATA)]);
    all
}

/// Whether a sandbox that holds the plan lets a request through.
fn plan_allows(plan: &Plan, request: &Request) -> bool {
    let file = |action: FsActions, path: &AbsPath| {
        let mut grants = plan.files().iter();
        grants.any(|grant| {
            grant.actions.contains(action) && PathScope::union([&grant.pattern.value]).covers(path)
        })
    };
    let environment = plan.environment();
    match request {
        Request::Read(path) => file(FsActions::READ, path),
        Request::MapCode(path) => file(FsActions::CODE, path),
        Request::Write(path) => file(FsActions::WRITE, path),
        Request::Create(path) => file(FsActions::CREATE, path),
        Request::Delete(path) => file(FsActions::DELETE, path),
        Request::Net(request) => match plan.network() {
            Network::None => false,
            Network::Any => true,
            Network::Allow(rules) => rules.iter().any(|rule| rule.value.allows(request)),
        },
        Request::Listen(listen) => {
            let own = |place: std::net::SocketAddr| {
                let mut all = plan.listens().iter().flat_map(|own| own.value.places());
                all.any(|own| own == place)
            };
            listen.places().all(own)
        }
        Request::Spawn(spawn) => {
            let mine = plan.exec().programs.iter().filter(|one| one.value.program == spawn.program);
            let mut all = plan.exec().any.into_iter().chain(mine.map(|one| one.value.spawning));
            all.any(|how| {
                how.nested_sandbox >= spawn.nested_sandbox && how.from_writable >= spawn.from_writable
            })
        }
        Request::ReadEnv(name) => {
            environment.read_all || environment.read.iter().any(|own| own.value == *name)
        }
        Request::InjectEnv(name) => {
            environment.fixed.contains_key(&**name)
                || environment.injected.iter().any(|own| own.value == *name)
        }
        Request::BrokerEnv { name, host } => {
            let mine = environment.brokered.iter().filter(|own| own.value.name == *name);
            environment.injected.iter().any(|own| own.value == *name) || { mine }
                .any(|own| own.value.hosts.iter().any(|own| own.covers(host)))
        }
        Request::Ipc(endpoint) => {
            plan.ipc().any || plan.ipc().endpoints.iter().any(|own| own.value == *endpoint)
        }
        Request::Clock(actions) => plan.clock().is_some_and(|held| held.contains(*actions)),
    }
}

/// What the argument gate lets through: a path under a marked argument, and under one that its name marks.
fn arguments_allowed(tool: &Tool, authority: &Authority, allowed: &mut BTreeSet<String>) {
    for (argument, default) in [("to", None), ("path", Some(ArgumentAccess::Path))] {
        let mark = tool.arguments().get(argument).copied().or(default);
        for path in PATHS {
            let asked = AbsPath::new(path).unwrap();
            let (read, write) = (authority.read().covers(&asked), authority.write().covers(&asked));
            let passes = !tool.has_file_stance()
                || match mark {
                    Some(ArgumentAccess::Read) => read,
                    Some(ArgumentAccess::Write) => write,
                    Some(ArgumentAccess::Path) => read || write,
                    // A free text is judged if it looks like a path of this host.
                    None | Some(ArgumentAccess::Host) => read || write || path == "/",
                    Some(ArgumentAccess::Text) => true,
                };
            if passes {
                allowed.insert(format!("{}: argument {argument} = {path}", tool.name()));
            }
        }
    }
}

/// Which calls run in a session: by how often it ran before, and whether the other tool has succeeded.
fn calls_allowed(tool: &Tool, allowed: &mut BTreeSet<String>) {
    let rules = tool.constraints();
    for (before, succeeded) in [(0, false), (0, true), (1, true), (2, true), (9, true), (9, false)] {
        let runs = !rules.forbidden
            && rules.max_invocations.is_none_or(|most| before < most)
            && (rules.only_after.is_empty() || succeeded);
        let name = tool.name();
        if runs {
            allowed.insert(format!("{name}: runs after {before} calls, other {succeeded}, consent true"));
        }
        if runs && !rules.confirm {
            allowed.insert(format!("{name}: runs after {before} calls, other {succeeded}, consent false"));
        }
    }
}

fn facts() -> HostFacts {
    HostFacts::unknown().with_variable("HOME", "/home/u").unwrap()
}

/// Everything that some enforcement path lets through.
fn allowed(text: &str, renamed: Option<(&str, &str)>) -> BTreeSet<String> {
    let facts = facts();
    let checked: Checked = Manifest::parse(text).unwrap().check(&facts).unwrap();
    let requests = universe();
    let mut allowed = BTreeSet::new();
    let mut add = |who: &str, allows: &dyn Fn(&Request) -> bool| {
        let passed = requests.iter().filter(|request| allows(request));
        let shown = |request: &Request| {
            if let Request::Net(net) = request {
                return format!("{who}: {request}, private {}, {:?}", net.is_private(), net.speak());
            }
            format!("{who}: {request}")
        };
        allowed.extend(passed.map(shown));
    };
    add("server", &|request| checked.authority().allows(request));
    // What no plan can say is refused on this host; in other words it could be said.
    match checked.server_plan(&facts) {
        Ok(plan) => add("server's plan", &|request| plan_allows(&plan, request)),
        Err(_) => add("server's plan", &|request| checked.authority().allows(request)),
    }
    for tool in checked.tools() {
        add(tool.name(), &|request| tool.authority().allows(request));
        let who = format!("{}: plan", tool.name());
        match checked.tool_plan(tool, &facts) {
            Ok(plan) => add(&who, &|request| plan_allows(&plan, request)),
            Err(_) => add(&who, &|request| tool.authority().allows(request)),
        }
    }
    for (tool, held) in checked.manifest().tools().iter().zip(checked.tools()) {
        arguments_allowed(tool, held.authority(), &mut allowed);
        calls_allowed(tool, &mut allowed);
    }
    let Some((from, to)) = renamed else { return allowed };
    let prefix = format!("{from}:");
    allowed.into_iter().map(|one| one.replacen(&prefix, &format!("{to}:"), 1)).collect()
}

/// What the new manifest allows and the old one does not.
fn gained(base: &str, new: &str, diff: &Diff) -> Vec<String> {
    let rename = diff.differences().iter().find(|one| one.code().as_str() == "tool.renamed");
    let from = rename.and_then(|one| one.message().split('`').nth(1));
    let renamed = from.zip(rename.and_then(|one| one.tool()));
    allowed(new, None).difference(&allowed(base, renamed)).cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_silent_diff_allows_nothing_new((base, new) in any_pair()) {
        let diff = Diff::between(&snapshot(&base), &snapshot(&new)).unwrap();
        let gained = gained(&base, &new, &diff);
        prop_assert!(diff.widens() || gained.is_empty(), "{}\n→\n{}\nallows {:?}", base, new, gained);
    }

    #[test]
    fn the_server_has_what_its_lines_and_its_tools_have(model in any_model()) {
        let facts = facts();
        let checked = Manifest::parse(&model.text()).unwrap().check(&facts).unwrap();
        let lines = checked.manifest().server_lines(&|line| line.resolve(|name| facts.variable(name).cloned()));
        let lines = lines.unwrap();
        for request in universe() {
            let of_tools = checked.tools().iter().any(|tool| tool.authority().allows(&request));
            let expected = of_tools || lines.allows(&request);
            prop_assert_eq!(checked.authority().allows(&request), expected, "{}\n{}", request, model.text());
        }
    }
}

#[test]
fn the_generated_pairs_are_silent_and_not_silent_often_enough() {
    let mut runner = TestRunner::deterministic();
    let (mut silent, mut wider) = (0, 0);
    for _ in 0..300 {
        let (base, new) = any_pair().new_tree(&mut runner).unwrap().current();
        let diff = Diff::between(&snapshot(&base), &snapshot(&new)).unwrap();
        match diff.widens() {
            true => wider += 1,
            false if base != new => silent += 1,
            false => {}
        }
    }
    assert!(silent >= 30 && wider >= 30, "{silent} silent, {wider} wider");
}
