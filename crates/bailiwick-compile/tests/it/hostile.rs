//! Hostile but legal text against every emitter: a reader of the target's own format gets back what was granted.

use bailiwick_compile::{Egress, Refusal, Target, compile, egress};
use bailiwick_policy::artifact::{Artifact, Provenance};
use bailiwick_policy::capability::CapabilitySet;
use bailiwick_policy::enforcement::Floor;
use bailiwick_policy::facts::{HostFacts, PathKind};
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::Plan;
use serde_json::Value;

use crate::golden;
use crate::parsers::{self, Form};

/// Directory names with all that some format gives a meaning to.
const NAMES: [&str; 14] = [
    "a b",
    "q\"q",
    "s's",
    "back\\slash",
    "end\\",
    "50%n",
    "$(HOME) ${X} $$",
    "semi;colon #hash",
    "(paren) [x] {y}",
    "-dash",
    "~tilde",
    "\u{fc}ml\u{e4}ut\u{2028}x",
    "<tag>&amp;",
    "`tick` | > < ! @",
];
const ARGS: [&str; 6] = ["two words", "line\nbreak", "%i %%", "$HOME $(id) `id`", "\"quoted\" 'q' \\", ";"];

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A manifest with all of it: `[` starts a glob, so it is written as a class.
fn manifest() -> String {
    let literal = |name: &str| name.replace('[', "[[]");
    let lines = NAMES.iter().map(|name| quoted(&format!("fs:read:/srv/{}", literal(name))));
    let writable = quoted(&format!("fs:read,write:/w/{}", literal(NAMES[3])));
    let args: Vec<String> = ARGS.iter().map(|arg| quoted(arg)).collect();
    format!(
        "name = 'hostile'\nversion = '1'\ncommand = 'server'\nargs = [{}]\nenv = {{ MODE = {} }}\n\
         server_capabilities = [{}, {writable}]\n",
        args.join(", "),
        quoted("a\nb \"%\" $(x)"),
        lines.collect::<Vec<_>>().join(", "),
    )
}

fn artifact(target: Target) -> Artifact {
    let plan = golden::plan(&manifest()).unwrap_or_else(|findings| panic!("{findings:?}"));
    let provenance = Provenance { manifest: None, compiler: "test".to_owned() };
    compile(target, &plan, &Floor::none(), provenance).unwrap_or_else(|refusal| panic!("{refusal}"))
}

fn paths() -> Vec<String> {
    let mut paths: Vec<String> = NAMES.iter().map(|name| format!("/srv/{name}")).collect();
    paths.sort();
    paths
}

#[test]
fn a_unit_is_read_back() {
    let artifact = artifact(Target::Systemd);
    let unit = parsers::unit(&artifact.files()[0].text);
    let of = |key: &'static str| {
        unit.iter().filter(move |(_, own, _)| own == key).map(|(_, _, value)| value.clone())
    };
    let mut bound: Vec<String> = of("BindReadOnlyPaths")
        .map(|value| parsers::bind(&value))
        .filter(|(source, _)| source.starts_with("/srv/"))
        .map(|(source, to)| {
            assert_eq!(source, to);
            source
        })
        .collect();
    bound.sort();
    assert_eq!(bound, paths());
    let writable: Vec<String> = of("BindPaths").map(|value| parsers::bind(&value).0).collect();
    assert_eq!(writable, [format!("/w/{}", NAMES[3])]);
    let start = parsers::words(&of("ExecStart").next().unwrap(), true);
    assert_eq!(start[0], ":server", "a colon keeps dollars what they are");
    assert_eq!(start[1..], ARGS);
    let variables: Vec<String> = of("Environment").flat_map(|value| parsers::words(&value, true)).collect();
    assert!(variables.contains(&"MODE=a\nb \"%\" $(x)".to_owned()), "{variables:?}");
    assert!(unit.iter().all(|(section, _, _)| section == "Unit" || section == "Service"));
}

#[test]
fn a_profile_is_read_back() {
    let artifact = artifact(Target::Seatbelt);
    let forms = parsers::forms(&artifact.files()[0].text);
    assert!(forms.iter().all(|form| matches!(form.head(), "version" | "deny" | "allow")));
    assert_eq!(forms[1], Form::List(vec![Form::Symbol("deny".into()), Form::Symbol("default".into())]));
    let mut read: Vec<&str> =
        forms.iter().flat_map(Form::texts).filter(|text| text.starts_with("/srv/")).collect();
    read.sort_unstable();
    assert_eq!(read, paths());
}

#[test]
fn a_pod_is_read_back() {
    let artifact = artifact(Target::Kubernetes);
    let text = &artifact.files()[0].text;
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    assert_eq!(documents.len(), 2);
    let spec = &documents[0]["spec"];
    let mut read: Vec<&str> = spec["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|own| own["hostPath"]["path"].as_str())
        .collect();
    read.retain(|path| path.starts_with("/srv/"));
    read.sort_unstable();
    assert_eq!(read, paths());
    let args = spec["containers"][0]["args"].as_array().unwrap();
    let expanded: Vec<String> = args.iter().map(|arg| arg.as_str().unwrap().replace("$$", "$")).collect();
    assert_eq!(expanded, ARGS);
    assert!(
        !args.iter().any(|arg| arg.as_str().unwrap().replace("$$", "").contains('$')),
        "nothing is replaced"
    );
}

#[test]
fn json_targets_are_read_back() {
    let landlock: Value = serde_json::from_str(&artifact(Target::Landlock).files()[0].text).unwrap();
    let mut read: Vec<&str> =
        landlock["rules"].as_array().unwrap().iter().filter_map(|rule| rule["path"].as_str()).collect();
    read.retain(|path| path.starts_with("/srv/"));
    read.sort_unstable();
    assert_eq!(read, paths());
    let worker: Value = serde_json::from_str(&artifact(Target::Worker).files()[0].text).unwrap();
    assert_eq!(worker["options"]["env"]["MODE"], "a\nb \"%\" $(x)");
}

#[test]
fn a_line_break_in_a_real_path_is_refused_everywhere() {
    let path = |text: &str| AbsPath::new(text).unwrap();
    let facts =
        HostFacts::unknown().with_place(path("/w"), path("/x\n[Service]\nUser=root"), PathKind::Directory);
    let set = CapabilitySet::new(["fs:read:/w"]).unwrap();
    let plan = Plan::for_authority("test", set.authority(), &facts).unwrap();
    for target in Target::ALL {
        let provenance = Provenance { manifest: None, compiler: "test".to_owned() };
        let refusal = compile(target, &plan, &Floor::none(), provenance).unwrap_err();
        assert!(matches!(refusal, Refusal::Inexpressible { .. }), "{target}: {refusal}");
    }
}

#[test]
fn a_colon_that_kubernetes_would_split_at_is_refused() {
    let text = "name = 's'\nversion = '1'\nserver_capabilities = ['fs:read:/w/a:b']\n";
    let provenance = Provenance { manifest: None, compiler: "test".to_owned() };
    let refusal = compile(Target::Kubernetes, &golden::plan(text).unwrap(), &Floor::none(), provenance);
    assert!(refusal.unwrap_err().to_string().contains("colon"));
}

/// Every line of a squid configuration starts with a known word, and the words of each are whole.
#[test]
fn paths_of_rules_stay_one_word_of_a_gateway() {
    let text = |path: &str| {
        format!(
            "name = 's'\nversion = '1'\nserver_capabilities = [{}]\n",
            quoted(&format!("net:http:GET@http://a.example{path}"))
        )
    };
    for path in ["/a#b", "/a;b", "/x'y", "/p(q)|r", "/a.b+c", "/a%20b", "/\"x", "/a{2}", "/**/z", "/*.json"] {
        let Ok(plan) = golden::plan(&text(path)) else { continue };
        let squid = match egress(Egress::Squid, &plan) {
            Ok(file) => file.text,
            Err(Refusal::Egress { .. }) => continue,
            Err(other) => panic!("{other}"),
        };
        let known = [
            "acl",
            "http_access",
            "http_port",
            "visible_hostname",
            "cache",
            "forwarded_for",
            "pinger_enable",
            "shutdown_lifetime",
            "#",
        ];
        for line in squid.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert!(known.contains(&words[0]), "{line}");
            if words[0] == "acl" && words[1].starts_with("path") {
                assert_eq!(words.len(), 4, "{line}");
                assert!(words[3].starts_with("^/") || words[3].starts_with("^("), "{line}");
                assert!(!words[3].contains(['#', '"', '\'']), "{line}");
            }
        }
        let allows = squid.lines().filter(|line| line.starts_with("http_access allow")).count();
        assert_eq!(allows, 1, "{squid}");
        let envoy: Value = serde_saphyr::from_str(&egress(Egress::Envoy, &plan).unwrap().text).unwrap();
        let manager =
            &envoy["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"];
        assert_eq!(manager["route_config"]["virtual_hosts"][0]["routes"].as_array().unwrap().len(), 1);
    }
}

/// No text that a manifest lets through as a host can leave its place in a configuration.
#[test]
fn hosts_are_refused_before_they_reach_a_gateway() {
    let hostile = [
        "a.example\nhttp_access allow all",
        "a.example allow",
        "a.example;",
        "a.example\"",
        "a.example'",
        "a.example}",
        "a.example#",
        "a.example\\",
        "a.example,b.example",
        "*.*",
        "a.example/../b",
        "a:b",
        "\u{202e}a.example",
        "a.example\r",
        "a.example\t",
        "(.*)",
        "a|b",
        "^a",
        "a$",
    ];
    for host in hostile {
        let line = quoted(&format!("net:connect:{host}:443"));
        let text = format!("name = 's'\nversion = '1'\nserver_capabilities = [{line}]\n");
        assert!(golden::plan(&text).is_err(), "{host:?} is taken for a host");
    }
}
