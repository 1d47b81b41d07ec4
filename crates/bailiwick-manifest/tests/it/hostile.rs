//! Hostile texts: whatever comes in, no reader panics, and a refusal has a finding whose place is in the text.
//!
//! Nothing here measures time; what is not bounded shows as a test that does not end.

use std::fmt::Write as _;

use bailiwick_manifest::caveats::Caveats;
use bailiwick_manifest::diff::Accepted;
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_manifest::{MAX_CAPABILITIES, MAX_TOOLS, Manifest};
use bailiwick_policy::capability::{Capability, CapabilitySet, MAX_CAPABILITY};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::finding::{Code, Finding, Findings};
use bailiwick_policy::path::AbsPath;

const MANIFEST_TOML: &str = r#"name = "files"
version = "1"
command = 'server'
args = ["-v"]
serverCapabilities = ["fs:read:/été/[a-z]*", "net:https:GET@https://*.a.test:443/x/**"]
env = { LANG = "C" }
x-note = { a.b = [1, 2.5, 2024-01-01] }

[limits]
timeout = "5s"
cpu = 1.5

[[tool]]
name = "read"
capabilities = ["env:inject:PATH?loader=true", """assert:a:\"b\""""]
policy.network = "deny"
policy.filesystem.read = ["$HOME/x"]
constraints = { only_after = ["write"], max_invocations = 3, fleet_budget = { name = "b", unit = "money", each = 2 } }

[[tool]]
name = "write"
"#;

const MANIFEST_JSON: &str = r#"{"name": "files", "version": "1", "x-é": [null, -1.5e3, "\u00e9\n"],
 "tools": [{"name": "read", "capabilities": ["fs:read:\/a", "net:connect:[::1]:80", "exec:spawn:git"],
 "policy": {"exec": ["git"], "risk": "low"}}], "limits": {"memory": "1G", "pids": 7},
 "pins": {"set": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}"#;

const CAVEATS: &str = r#"{"fs_read":"all","fs_write":{"only":["/repo"]},"exec":{"only":["git"]},"net":{"only":["*.b.test:1-9"]},
"max_calls":{"at_most":3},"valid_for_generation":{"only":[42]},"env":{"only":["HOME"]},"ipc":{"only":["unix:/a"]}}"#;

const ACCEPT: &str =
    "[[accept]]\ncode = \"tool.added\"\nreason = \"é\"\nexpires = 2027-01-31\ntool = \"x\"\n";

const CAPABILITIES: &[&str] = &[
    "fs:read,write:/a/[!b-d]?*/**/é",
    "net:connect:*.bücher.test:80-90?blockPrivate=false&protocol=raw",
    "net:connect:[fd00::/8]:443",
    "net:connect:10.0.0.0/8",
    "net:https:GET,POST@https://[::1]:8443/x/*",
    "exec:spawn:/usr/bin/env?nestedSandbox=true",
    "env:read,inject:LD_PRELOAD?loader=true",
    "ipc:connect:unix:/run/a.sock",
    "clock:system,tzdata",
    "assert:a.b:\"c \\\"d\\\" \\u00e9\"",
];

/// Reads `text` in every way there is; says whether it was read as a manifest.
fn read_every_way(text: &str) -> bool {
    let manifest = Manifest::parse(text);
    if let Ok(manifest) = &manifest {
        let canonical = manifest.canonical().to_string();
        assert_eq!(Manifest::parse(&canonical).unwrap().canonical().to_string(), canonical);
        let facts = HostFacts::unknown().with_variable("HOME", "/root").unwrap();
        sane(text, &manifest.clone().check(&facts));
    }
    sane(text, &manifest);
    sane(text, &Snapshot::parse(text));
    sane(text, &Accepted::parse(text));
    sane(text, &Caveats::parse_config(text));
    let caveats = Caveats::parse(text);
    if let Ok(caveats) = &caveats {
        caveats.authority().unwrap();
    }
    sane(text, &caveats);
    manifest.is_ok()
}

fn sane<T>(text: &str, result: &Result<T, Findings>) {
    let Err(findings) = result else { return };
    assert!(!findings.as_slice().is_empty(), "refused without a finding: {text:.200}");
    let shown = findings.as_slice().iter().filter(|finding| finding.code() != Code::TooManyFindings);
    shown.for_each(|finding| sane_finding(text, finding));
}

fn sane_finding(text: &str, finding: &Finding) {
    let Some(span) = finding.span() else { panic!("`{finding}` has no place in {text:.200}") };
    let inside = span.start <= span.end && text.get(span.start..span.end).is_some();
    assert!(inside, "{span:?} of `{finding}` is not in {text:.200}");
    for line in [Some(finding.message()), finding.help_text()].into_iter().flatten() {
        assert!(
            !line.is_empty() && line.len() < 10_000 && !line.chars().any(char::is_control),
            "{line:.200}"
        );
    }
}

fn refused(text: &str) -> Vec<Code> {
    assert!(!read_every_way(text), "read: {text:.200}");
    Manifest::parse(text).map(|_| ()).unwrap_err().as_slice().iter().map(Finding::code).collect()
}

/// Mutations of `text`: one byte replaced, removed or doubled, at every place; those that are UTF-8.
fn mutations(text: &str) -> impl Iterator<Item = String> {
    const BYTES: &[u8] = b"\0\n\t \"'\\/[]{}(),.:;?=&*~$%#@!-+_0a9zZ\x7f";
    (0..text.len()).flat_map(move |at| {
        let bytes = text.as_bytes();
        let replaced = BYTES.iter().map(move |byte| {
            let mut changed = bytes.to_vec();
            changed.splice(at..=at, [*byte]);
            changed
        });
        let mut removed = bytes.to_vec();
        removed.remove(at);
        let mut doubled = bytes.to_vec();
        doubled.extend_from_within(at..);
        replaced.chain([removed, doubled]).filter_map(|bytes| String::from_utf8(bytes).ok())
    })
}

fn prefixes(text: &str) -> impl Iterator<Item = &str> {
    (0..=text.len()).filter_map(|end| text.get(..end))
}

#[test]
fn every_prefix_is_read_or_refused() {
    for text in [MANIFEST_TOML, MANIFEST_JSON, CAVEATS, ACCEPT] {
        for prefix in prefixes(text) {
            read_every_way(prefix);
        }
    }
    assert!(read_every_way(MANIFEST_TOML) && read_every_way(MANIFEST_JSON));
    Caveats::parse(CAVEATS).unwrap();
    Accepted::parse(ACCEPT).unwrap();
}

#[test]
fn every_mutation_of_a_manifest_is_read_or_refused() {
    for text in [MANIFEST_TOML, MANIFEST_JSON] {
        mutations(text).for_each(|mutant| sane(&mutant, &Manifest::parse(&mutant)));
    }
}

#[test]
fn every_mutation_of_a_grant_is_read_or_refused() {
    mutations(CAVEATS).for_each(|mutant| sane(&mutant, &Caveats::parse(&mutant)));
    mutations(ACCEPT).for_each(|mutant| sane(&mutant, &Accepted::parse(&mutant)));
    let snapshot = Snapshot::parse(MANIFEST_JSON).unwrap().to_text().unwrap();
    for mutant in mutations(&snapshot) {
        let read = Snapshot::parse(&mutant);
        sane(&mutant, &read);
        let changed = read.is_ok_and(|read| read.to_text().unwrap() != snapshot);
        assert!(!changed, "a changed snapshot is taken for reviewed: {mutant}");
    }
}

#[test]
fn every_mutation_of_a_capability_round_trips_or_is_refused() {
    for text in CAPABILITIES {
        text.parse::<Capability>().unwrap();
        for mutant in mutations(text).chain(prefixes(text).map(str::to_owned)) {
            match mutant.parse::<Capability>() {
                Err(finding) => sane_finding(&mutant, &finding),
                Ok(read) => {
                    let printed = read.to_string();
                    let again = printed.parse::<Capability>();
                    assert_eq!(again.as_ref(), Ok(&read), "`{mutant}` prints as `{printed}`");
                    assert_eq!(again.unwrap().to_string(), printed);
                }
            }
        }
    }
}

/// What is read as JSON here is JSON to others, and the other way round.
#[test]
fn json_is_what_others_take_for_json() {
    let more = [
        "{\"a\":-}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":+1}",
        "{\"a\":1e}",
        "{\"a\":0x1}",
        "{\"a\":-01}",
        "{\"a\":NaN}",
        "{\"a\":tru}",
        "{\"a\":\"\u{7f}\"}",
        "{\"a\":\"\t\"}",
        "{\u{a0}}",
        "{\u{c}}",
        "{}\u{feff}",
        "{\"\\uD83D\\uDE00\":1}",
        "{\"\\uDE00\":1}",
        "{\"a\":\"\\'\"}",
        "{\"a\":\"\\v\"}",
        "{\"a\" 1}",
        "{,}",
        "{\"a\":1,,\"b\":2}",
        "{\"a\":[,]}",
        "{\"a\":[1,]}",
        "{\"a\":/**/1}",
    ];
    for text in mutations(MANIFEST_JSON)
        .chain(more.map(str::to_owned))
        .filter(|text| text.trim_start().starts_with('{'))
    {
        let elsewhere = serde_json::from_str::<serde_json::Value>(&text).is_ok();
        let here = match Manifest::parse(&text) {
            Ok(_) => true,
            Err(findings) => findings.as_slice().iter().all(|finding| finding.code() != Code::SourceSyntax),
        };
        assert_eq!(here, elsewhere, "{text}");
    }
}

#[test]
fn random_bytes_are_refused() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for length in 0..2_000_usize {
        let bytes: Vec<u8> = (0..length % 200)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state.to_be_bytes()[0]
            })
            .collect();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!read_every_way(&text));
        assert!(!read_every_way(&format!("{{{text}")));
        for kind in ["", "fs:read:/", "net:connect:", "exec:spawn:", "assert:a:\""] {
            let text = format!("{kind}{text}");
            if let Err(finding) = text.parse::<Capability>() {
                sane_finding(&text, &finding);
            }
        }
    }
}

#[test]
fn deep_nesting_is_refused_without_running_out_of_stack() {
    let many = 100_000;
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let value = format!("{}1{}", open.repeat(many), close.repeat(many));
        assert_eq!(refused(&format!("{{\"x-a\": {value}}}")), [Code::SourceNesting]);
        refused(&format!("{{\"x-a\": {}", open.repeat(many)));
    }
    for (open, close) in [("[", "]"), ("{a=", "}"), ("[{a=", "}]")] {
        let value = format!("{}1{}", open.repeat(many), close.repeat(many));
        assert_eq!(refused(&format!("x-a = {value}\n")), [Code::SourceNesting]);
        refused(&format!("x-a = {}", open.repeat(many)));
    }
    refused(&format!("x-a{} = 1\n", ".a".repeat(many)));
    refused(&format!("[x-a{}]\n", ".a".repeat(many)));
    refused(&format!("[[x-a{}]]\n", ".a".repeat(many)));
    refused(&"[".repeat(many));
    refused(&"{".repeat(many));
    refused(&"[x]\n".repeat(many));
}

#[test]
fn nesting_up_to_the_limit_is_read_in_both_formats() {
    for depth in [60, 63, 64, 65, 70] {
        let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let json =
            Manifest::parse(&format!("{{\"name\": \"a\", \"version\": \"1\", \"x-a\": {value}}}")).is_ok();
        let toml = Manifest::parse(&format!("name = \"a\"\nversion = \"1\"\nx-a = {value}\n")).is_ok();
        assert_eq!((json, toml), (depth <= 64, depth <= 64), "{depth}");
    }
}

#[test]
fn long_strings_are_refused_or_kept() {
    let long = "é".repeat(500_000);
    let manifest = |field: &str| format!("{{\"name\": \"a\", \"version\": \"1\", {field}}}");
    assert!(read_every_way(&manifest(&format!("\"description\": \"{long}\""))));
    assert!(read_every_way(&manifest(&format!("\"x-{long}\": 1"))));
    for field in [
        format!("\"{long}\": 1"),
        format!("\"tools\": [{{\"name\": \"{long}\"}}]"),
        format!("\"serverCapabilities\": [\"{long}\"]"),
        format!("\"serverCapabilities\": [\"fs:read:/{long}\"]"),
        format!("\"limits\": {{\"memory\": \"{long}\"}}"),
        format!("\"limits\": {{\"pids\": {}}}", "9".repeat(1_000_000)),
        format!("\"env\": {{\"{long}\": \"\"}}"),
        format!("\"pins\": {{\"set\": \"{long}\", \"tools\": {{\"{long}\": \"\"}}}}"),
        format!(
            "\"tools\": [{{\"name\": \"a\", \"risk\": \"{long}\", \"policy\": {{\"network\": \"{long}\", \"{long}\": 1}}}}]"
        ),
        format!("\"tools\": [{{\"name\": \"a\", \"constraints\": {{\"only_after\": [\"{long}\"]}}}}]"),
        format!(
            "\"tools\": [{{\"name\": \"a\", \"policy\": {{\"filesystem\": {{\"read\": [\"{long}\", \"/{long}\"]}}, \"network\": [\"{long}\"], \"exec\": [\"{long}\"]}}}}]"
        ),
    ] {
        refused(&manifest(&field));
    }
    for text in [
        long.clone(),
        format!("fs:read:/{long}"),
        format!("net:connect:{long}"),
        format!("assert:a:\"{long}\""),
    ] {
        assert_eq!(text.parse::<Capability>().unwrap_err().code(), Code::CapTooLong);
    }
    let quoted = format!("assert:a:\"{}\"", "é".repeat((MAX_CAPABILITY - 11) / 2));
    assert_eq!(quoted.parse::<Capability>().unwrap().to_string(), quoted);
}

#[test]
fn ten_thousand_components_are_refused() {
    let path = "/a".repeat(10_000);
    assert_eq!(format!("fs:read:{path}").parse::<Capability>().unwrap_err().code(), Code::CapTooLong);
    assert_eq!(AbsPath::new(&path).unwrap_err().code(), Code::PathTooLong);
    let long = "/a".repeat(2_048);
    let read: Capability = format!("fs:read:{long}").parse().unwrap();
    assert!(CapabilitySet::new(["fs:read:/a"]).unwrap().has(&read));
    assert!(!CapabilitySet::new(["fs:read:/a/b"]).unwrap().has(&read));
}

#[test]
fn many_tools_and_capabilities_are_read_up_to_the_limits() {
    let tools = |count: usize| {
        let mut text = "name = \"a\"\nversion = \"1\"\n".to_owned();
        (0..count).for_each(|number| writeln!(text, "[[tool]]\nname = \"t{number}\"").unwrap());
        text
    };
    let read = Manifest::parse(&tools(MAX_TOOLS)).unwrap();
    assert_eq!(read.tools().len(), MAX_TOOLS);
    assert_eq!(refused(&tools(MAX_TOOLS + 1)), [Code::ManifestTooMany]);
    let lines = |count: usize| {
        let lines: Vec<String> =
            (0..count).map(|number| format!("\"fs:read:/d{}/f{number}\"", number % 100)).collect();
        format!("{{\"name\": \"a\", \"version\": \"1\", \"serverCapabilities\": [{}]}}", lines.join(",\n"))
    };
    let read = Manifest::parse(&lines(100_000)).unwrap();
    assert_eq!(read.server_capabilities().len(), 100_000);
    assert!(read.check(&HostFacts::unknown()).is_ok());
    assert!(Manifest::parse(&lines(MAX_CAPABILITIES + 1)).is_err());
}

#[test]
fn a_hundred_thousand_capabilities_decide() {
    let lines: Vec<String> = (0..50_000)
        .flat_map(|number| {
            [format!("fs:read:/d{}/f{number}", number % 100), format!("net:connect:h{number}.test:443")]
        })
        .collect();
    let set = CapabilitySet::new(lines.iter().map(String::as_str)).unwrap();
    assert!(set.has("fs:read:/d7/f107/x") && set.has("net:connect:h49999.test:443"));
    assert!(
        !set.has("fs:read:/d7/f108") && !set.has("net:connect:h50000.test:443") && !set.has("fs:read:/**")
    );
}

#[test]
fn ten_megabytes_are_read_and_seventeen_refused() {
    let filler = |bytes: usize| {
        format!(
            "{{\"name\": \"a\", \"version\": \"1\", \"x-fill\": [{}\"\"]}}",
            "\"0123456\",".repeat(bytes / 10)
        )
    };
    assert!(Manifest::parse(&filler(10_000_000)).is_ok());
    assert_eq!(refused(&filler(17_000_000)), [Code::SourceTooLarge]);
    let comment = format!("# {}\nname = \"a\"\nversion = \"1\"\n", "x".repeat(10_000_000));
    assert!(Manifest::parse(&comment).is_ok());
}

/// More findings than anyone reads are counted, and advice is not sought for those that are not shown.
#[test]
fn many_findings_are_cut_short() {
    let unknown: Vec<String> = (0..300_000).map(|number| format!("\"n{number}\": 1")).collect();
    let codes = refused(&format!("{{\"name\": \"a\", \"version\": \"1\", {}}}", unknown.join(", ")));
    assert_eq!((codes.len(), codes.last()), (1_001, Some(&Code::TooManyFindings)));
    let after: Vec<String> = (0..MAX_TOOLS)
        .map(|number| {
            format!(
                "{{\"name\": \"tool{number}\", \"constraints\": {{\"only_after\": [\"toll{number}x\"]}}}}"
            )
        })
        .collect();
    let codes =
        refused(&format!("{{\"name\": \"a\", \"version\": \"1\", \"tools\": [{}]}}", after.join(", ")));
    assert_eq!(codes.last(), Some(&Code::TooManyFindings));
    let pins: Vec<String> = (0..100_000).map(|number| format!("\"p{number}\": \"x\"")).collect();
    refused(&format!(
        "{{\"name\": \"a\", \"version\": \"1\", \"pins\": {{\"tools\": {{{}}}}}}}",
        pins.join(", ")
    ));
}
