//! What tools and servers may touch where policies narrow their lines.

use bailiwick_policy::authority::{Request, Spawn};
use bailiwick_policy::capability::Program;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::Network;

use super::*;

fn checked(server: &str, tools: &[&str]) -> Checked {
    let mut text = format!("name = 's'\nversion = '1'\n{server}\n");
    for (tool, name) in tools.iter().zip('a'..) {
        text += &format!("[[tools]]\nname = '{name}'\n{tool}\n");
    }
    Manifest::parse(&text).unwrap_or_else(|findings| panic!("{findings}\n{text}")).check(&facts()).unwrap()
}

fn facts() -> HostFacts {
    HostFacts::unknown().with_variable("HOME", "/home/u").unwrap()
}

fn start(program: &str) -> Request {
    Request::Spawn(Spawn::plain(Program::Name(program.into())))
}

#[test]
fn a_policy_narrows_its_tool_and_the_server() {
    let held = checked("", &["capabilities = ['exec:spawn:git', 'exec:spawn:sh']\npolicy.exec = ['git']"]);
    for authority in [held.authority(), held.tool("a").unwrap().authority()] {
        assert!(authority.allows(&start("git")) && !authority.allows(&start("sh")));
    }
    let held = checked("serverCapabilities = ['exec:spawn:sh']", &["policy.exec = ['git']"]);
    let tool = held.tool("a").unwrap().authority();
    assert!(tool.allows(&start("git")) && !tool.allows(&start("sh")), "a tool without lines is narrowed too");
    assert!(held.authority().allows(&start("git")) && held.authority().allows(&start("sh")));
}

#[test]
fn an_open_subject_neither_grants_nor_narrows() {
    let held = checked("serverCapabilities = ['exec:spawn:git']", &["policy.network = 'deny'"]);
    let tool = held.tool("a").unwrap().authority();
    assert!(tool.allows(&start("git")) && !tool.allows(&start("sh")));
}

#[test]
fn hidden_lines_are_found() {
    for (lines, policy, expected) in [
        ("'exec:spawn:sh'", "exec = ['git']", "allows nothing of `exec:spawn:sh`"),
        ("'exec:spawn:git?nestedSandbox=true'", "exec = ['git']", "`nestedSandbox=true` in"),
        ("'exec:spawn:git?fromWritable=true'", "exec = 'allow'", "`fromWritable=true` in"),
        ("'fs:read,write:/a'", "filesystem.write = []", "`write` in"),
        ("'fs:read,create:/a'", "filesystem.write = ['/b']", "`create` in"),
        ("'fs:read:/a'", "filesystem.read = ['/b']", "allows nothing of"),
        ("'env:read,inject:T'", "environment = []", "allows nothing of"),
        ("'net:connect:b.test'", "network = ['a.test']", "allows nothing of"),
        ("'net:connect:a.test?blockPrivate=false'", "network = ['a.test']", "`blockPrivate=false` in"),
        ("'net:connect:a.test?protocol=raw'", "network = ['a.test']", "`protocol=raw` in"),
        ("'net:connect:a.test?ech=allow'", "network = 'allow'", "`ech=allow` in"),
        ("'net:connect:10.0.0.1'", "network = 'allow'", "allows nothing of"),
    ] {
        let held = checked("", &[&format!("capabilities = [{lines}]\npolicy.{policy}")]);
        let found: Vec<String> = held.hidden_lines().iter().map(ToString::to_string).collect();
        assert!(found.len() == 1 && found[0].contains(expected), "{lines} behind {policy}: {found:?}");
    }
}

#[test]
fn a_line_that_is_only_narrowed_is_not_hidden() {
    for (lines, policy) in [
        ("'fs:read,write:/a'", "filesystem = { read = ['/a/b'], write = ['/a/c'] }"),
        ("'fs:read:$HOME/x'", "filesystem.read = ['/home/u']"),
        ("'net:connect:*.test'", "network = ['a.test:443']"),
        ("'exec:spawn:*'", "exec = ['git']"),
        ("'env:inject:TOKEN'", "environment = ['TOKEN']"),
        ("'ipc:connect:x11', 'clock:system', 'assert:x'", "exec = 'deny'"),
    ] {
        let held = checked("", &[&format!("capabilities = [{lines}]\npolicy.{policy}")]);
        assert!(held.hidden_lines().is_empty(), "{lines} behind {policy}: {:?}", held.hidden_lines());
    }
}

#[test]
fn a_hidden_line_opens_no_name_in_a_tree() {
    let named = |policy: &str| {
        let tools =
            ["capabilities = ['fs:write:/w']", &format!("capabilities = ['fs:write:/w/x']\n{policy}")];
        let plan = checked("", &tools).server_plan(&facts()).unwrap();
        plan.named().contains(&AbsPath::new("/w/x").unwrap())
    };
    assert!(named(""));
    assert!(!named("policy.filesystem.write = ['/elsewhere']"));
}

#[test]
fn fixed_variables_pass_only_where_the_policy_lets_them() {
    let fixed = |policy: &str| {
        let held = checked("env.MODE = 'x'", &[policy]);
        let tool = held.tool_plan(held.tool("a").unwrap(), &facts()).unwrap();
        let server = held.server_plan(&facts()).unwrap();
        assert!(server.environment().fixed.contains_key("MODE"));
        tool.environment().fixed.contains_key("MODE")
    };
    assert!(fixed("") && fixed("policy.environment = ['MODE']") && fixed("policy.exec = 'deny'"));
    assert!(!fixed("policy.environment = []") && !fixed("policy.environment = ['HOME']"));
}

#[test]
fn an_answer_names_the_lines_that_a_policy_outvotes() {
    let held = checked("", &["capabilities = ['exec:spawn:sh']\npolicy.exec = ['git']"]);
    for tool in [None, held.tool("a")] {
        let explained = held.explain(&"exec:spawn:sh".parse().unwrap(), tool, &facts()).unwrap();
        assert!(!explained.explanation.is_allowed());
        assert!(explained.origins.is_empty() && explained.outvoted.len() == 1, "{explained:?}");
    }
}

#[test]
fn lines_and_policies_that_overlap_in_globs_are_joined_exactly_or_refused() {
    let tool = "capabilities = ['fs:read:/d/*a']\npolicy.filesystem.read = ['/d/b*']";
    let held = checked("serverCapabilities = ['fs:read:/e']", &[tool, "capabilities = ['fs:read:/f']"]);
    for (path, expected) in [("/d/ba", true), ("/d/a", false), ("/d/b", false), ("/e/x", true), ("/f", true)]
    {
        let request = Request::Read(AbsPath::new(path).unwrap());
        assert_eq!(held.authority().allows(&request), expected, "{path}");
    }
    let many: String = (0..9)
        .map(|n| {
            let globs = format!("capabilities = ['fs:read:/{n}/*a']\npolicy.filesystem.read = ['/{n}/b*']");
            format!("[[tools]]\nname = 't{n}'\n{globs}\n")
        })
        .collect();
    let manifest = Manifest::parse(&format!("name = 's'\nversion = '1'\n{many}")).unwrap();
    let found = manifest.check(&facts()).unwrap_err();
    assert_eq!(found.as_slice()[0].code().as_str(), "plan-inexpressible");
}

#[test]
fn arguments_flags_and_variables_give_path_variables_their_values() {
    let text = "name = 'm'\nversion = '1'\n[variables]\nALL = { argument = '1..', default = [] }\n\
                ONE = { argument = '0' }\nREPO = { flag = ['--repository', '-r'], default = '.' }\n\
                STATE = { env = 'STATE_FILE', parent = true, default = '~/s/f' }\n";
    let manifest = Manifest::parse(text).unwrap();
    let bound = |words: &[&str], env: Option<&str>| {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let bound = manifest.bound_values(&words, |_| env.map(str::to_owned))?;
        let shown = bound.into_iter().map(|(name, values)| format!("{name}={}", values.words.join(",")));
        Ok::<_, bailiwick_policy::finding::Findings>(shown.collect::<Vec<_>>().join(" "))
    };
    assert_eq!(bound(&["a"], None).unwrap(), "ALL= ONE=a REPO=. STATE=~/s/f");
    let words = ["-v", "--repository", "r", "a", "-r=q", "b", "--", "-c"];
    assert_eq!(bound(&words, Some("/x/y")).unwrap(), "ALL=b,-c ONE=a REPO=r,q STATE=/x/y");
    assert!(bound(&["--repository", "r"], None).unwrap_err().to_string().contains("argument 0"));
}

#[test]
fn a_line_is_there_once_for_each_value_of_its_variable() {
    let text = "name = 'm'\nversion = '1'\nserver_capabilities = ['fs:read:$A/x', 'fs:read:$B', 'fs:read:/c']\n\
                [[tools]]\nname = 't'\npolicy.filesystem.write = ['$B']\n[variables]\nA = { argument = '0..' }\n\
                B = { flag = '--b' }\n";
    let values = |paths: &[&str]| {
        paths.iter().map(|path| bailiwick_policy::path::AbsPath::new(path).unwrap()).collect()
    };
    let values = [("A".to_owned(), values(&["/one", "/two*"])), ("B".to_owned(), Vec::new())].into();
    let manifest = Manifest::parse(text).unwrap().with_values(&values);
    assert!(manifest.variables().is_empty());
    let lines: Vec<String> = manifest.lines().map(|line| line.value.to_string()).collect();
    assert_eq!(lines, ["fs:read:/one/x", "fs:read:/two[*]/x", "fs:read:/c"]);
    let checked = manifest.check(&bailiwick_policy::facts::HostFacts::unknown()).unwrap();
    assert!(
        checked.authority().capabilities().unwrap().iter().all(|line| !line.to_string().contains("write"))
    );
}

#[test]
fn every_rule_of_a_manifest_knows_its_line() {
    let text = r#"
name = "s"
version = "1"
env = { MODE = "x" }
server_capabilities = ["fs:read:/w", "net:connect:a.example:443"]
[[tools]]
name = "t"
capabilities = ["fs:read,write:/w/out", "exec:spawn:git", "env:inject:TOKEN", 'assert:ok.it:"holds"']
[[tools]]
name = "u"
capabilities = ["fs:read:/w/out", "ipc:connect:x11", "clock:system", "env:read:LANG"]
"#;
    let facts = HostFacts::unknown();
    let checked = Manifest::parse(text).unwrap().check(&facts).unwrap();
    let plan = checked.server_plan(&facts).unwrap();
    let lines: Vec<String> = plan
        .explain()
        .into_iter()
        .map(|one| {
            let from = one.origins.iter().map(|origin| {
                let written = text.get(origin.span.start + 1..origin.span.end - 1);
                assert_eq!(written, Some(&*origin.capability));
                format!("{}:{}", origin.tool.as_deref().unwrap_or("-"), origin.capability)
            });
            format!("{} < {}", one.rule, from.collect::<Vec<_>>().join(" "))
        })
        .collect();
    assert_eq!(
        lines,
        [
            "fs:read:/w < -:fs:read:/w",
            "fs:read,write:/w/out < t:fs:read,write:/w/out u:fs:read:/w/out",
            "net:connect:a.example:443 < -:net:connect:a.example:443",
            "exec:spawn:git < t:exec:spawn:git",
            "env MODE (fixed) < ",
            "env:inject:TOKEN < t:env:inject:TOKEN",
            "env:read:LANG < u:env:read:LANG",
            "ipc:connect:x11 < u:ipc:connect:x11",
            "clock:system < ",
            "assert:ok.it < t:assert:ok.it:\"holds\"",
        ]
    );
    let tool = checked.tool("u").unwrap();
    let rules = checked.tool_plan(tool, &facts).unwrap().explain().into_iter().map(|one| one.rule);
    let rules: Vec<String> = rules.collect();
    assert!(!rules.iter().any(|rule| rule.contains("write") || rule.contains("git")), "{rules:?}");
}

#[test]
fn a_policy_narrows_the_plan_of_its_tool() {
    let text = "name = 's'\nversion = '1'\n[[tools]]\nname = 't'\n\
        capabilities = ['fs:read,write:/w', 'net:connect:a.example:443']\n\
        [tools.policy]\nrisk = 'low'\nnetwork = 'deny'\n";
    let facts = HostFacts::unknown();
    let checked = match Manifest::parse(text) {
        Ok(manifest) => manifest.check(&facts).unwrap(),
        Err(findings) => panic!("{findings:?}"),
    };
    let plan = checked.tool_plan(checked.tool("t").unwrap(), &facts).unwrap();
    assert_eq!(*plan.network(), Network::None);
}
