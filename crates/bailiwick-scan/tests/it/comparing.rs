//! Declared against done.

use bailiwick_manifest::Manifest;
use bailiwick_policy::facts::HostFacts;
use bailiwick_scan::{Judgement, Report, compare, draft};

use super::scan_text;

const SERVER: &str = r#"
import os, subprocess, requests
from mcp.server.fastmcp import FastMCP
mcp = FastMCP("x")

@mcp.tool()
def one(path: str):
    open("/etc/hosts")
    requests.get("https://api.example.com/v1/x")
    os.getenv("TOKEN")
    subprocess.run(["git", "status"])
    open(path)
"#;

fn facts() -> HostFacts {
    HostFacts::unknown()
        .with_variable("WORKSPACE", "/workspace")
        .unwrap()
        .with_variable("HOME", "/home/user")
        .unwrap()
}

fn judged(report: &Report, lines: &[&str]) -> Judgement {
    let text = serde_json::json!({
        "name": "x", "version": "1", "tools": [{ "name": "one", "capabilities": lines }],
    });
    let checked = Manifest::parse(&text.to_string()).unwrap().check(&facts()).unwrap();
    compare(report, Some(&checked), &facts())
}

fn codes(judgement: &Judgement) -> Vec<&'static str> {
    judgement.items().iter().map(|item| item.finding.code().as_str()).collect()
}

const ALL: [&str; 4] =
    ["fs:read:/etc/*", "net:https:GET@https://api.example.com/v1/**", "env:inject:TOKEN", "exec:spawn:git"];

#[test]
fn all_that_is_declared_passes_and_what_cannot_be_checked_is_told() {
    let judgement = judged(&scan_text("a.py", SERVER), &ALL);
    assert_eq!(codes(&judgement), ["scan-dynamic"]);
    assert!(!judgement.fails(false) && judgement.fails(true));
}

#[test]
fn each_line_that_is_missing_fails_with_the_line_to_paste() {
    let report = scan_text("a.py", SERVER);
    for (missing, wanted) in [
        (0, "fs:read:/etc/hosts"),
        (1, "net:connect:api.example.com:443"),
        (2, "env:read:TOKEN"),
        (3, "exec:spawn:git"),
    ] {
        let mut lines = ALL.to_vec();
        lines[missing] = "clock:system";
        if missing == 0 {
            // So that the path that is not named has something to be compared with.
            lines.push("fs:read:/srv/**");
        }
        let judgement = judged(&report, &lines);
        assert!(judgement.fails(false), "{wanted}");
        let failed: Vec<_> = judgement
            .items()
            .iter()
            .filter(|item| item.finding.code().as_str() == "scan-use-undeclared")
            .collect();
        assert_eq!(failed.len(), 1, "{wanted}");
        assert!(failed[0].finding.help_text().unwrap().contains(&format!("\"{wanted}\"")), "{wanted}");
        lines.push(wanted);
        assert!(!judged(&report, &lines).fails(false), "the pasted line is enough: {wanted}");
    }
}

#[test]
fn what_the_source_does_not_name_fails_where_nothing_of_the_kind_is_declared() {
    let report = scan_text("a.py", "from mcp import mcp\n@mcp.tool()\ndef one(p): open(p)\n");
    assert_eq!(codes(&judged(&report, &["exec:spawn:git"]))[0], "scan-kind-undeclared");
    assert!(judged(&report, &["fs:write:/a"]).fails(false), "writing is not reading");
    assert!(!judged(&report, &["fs:read:/a"]).fails(false));
}

#[test]
fn declaring_more_than_is_used_is_told_and_passes() {
    let report = scan_text("a.py", "from mcp import mcp\n@mcp.tool()\ndef one(): open('/a')\n");
    let judgement = judged(&report, &["fs:read:/a", "exec:spawn:git", "fs:read:/b"]);
    assert_eq!(codes(&judgement), ["scan-unused", "scan-unused"]);
    assert!(!judgement.fails(true));
}

#[test]
fn tools_must_be_in_the_manifest() {
    let report = scan_text("a.py", "from mcp import mcp\n@mcp.tool()\ndef two(): open('/a')\n");
    let judgement = judged(&report, &[]);
    assert_eq!(codes(&judgement), ["scan-tool-undeclared", "scan-tool-unseen"]);
    assert!(judgement.fails(false));
    assert!(judgement.items()[0].finding.help_text().unwrap().contains("capabilities = [\"fs:read:/a\"]"));
}

#[test]
fn the_entry_of_a_missing_tool_can_be_pasted() {
    let report = scan_text("a.py", "from mcp import mcp\n@mcp.tool()\ndef two(): open('/a')\n");
    let text = "name = \"x\"\nversion = \"1\"\n\n[[tools]]\nname = \"one\"\ncapabilities = []\n";
    let checked = |text: &str| Manifest::parse(text).unwrap().check(&facts()).unwrap();
    let judgement = compare(&report, Some(&checked(text)), &facts());
    let entry = judgement.items().iter().find_map(|item| item.entry.clone()).unwrap();
    let pasted = checked(&format!("{text}\n{entry}"));
    assert_eq!(codes(&compare(&report, Some(&pasted), &facts())), ["scan-tool-unseen"]);
}

#[test]
fn a_url_that_is_known_in_part_is_held_to_the_lines_for_its_host() {
    let report = |url: &str| {
        let text =
            format!("import requests\nfrom mcp import mcp\n@mcp.tool()\ndef one(x): requests.get({url})\n");
        scan_text("a.py", text)
    };
    let line = "net:https:GET@https://api.example.com/v1/**";
    for (url, expected) in [
        ("'https://api.example.com/v1/' + x", [].as_slice()),
        ("'https://api.example.com/v1/a/b' + x", &[]),
        ("'https://api.example.com/v1/search?q=' + x", &[]),
        ("'https://api.example.com/' + x", &["scan-dynamic"]),
        ("'https://api.example.com/v' + x", &["scan-dynamic"]),
        ("'https://api.example.com/v2/' + x", &["scan-use-undeclared", "scan-unused"]),
        ("'https://api.example.com/v2/search?q=' + x", &["scan-use-undeclared", "scan-unused"]),
        ("'http://api.example.com/v1/' + x", &["scan-use-undeclared", "scan-unused"]),
        ("'https://other.example.com/v1/' + x", &["scan-use-undeclared", "scan-unused"]),
    ] {
        assert_eq!(codes(&judged(&report(url), &[line])), expected, "{url}");
    }
    let one = "net:https:GET@https://api.example.com/v1";
    assert_eq!(codes(&judged(&report("'https://api.example.com/v1' + x"), &[one])), ["scan-dynamic"]);
}

#[test]
fn what_happens_at_start_up_must_be_declared_too() {
    let report =
        scan_text("a.py", "import os\nos.remove('/a')\nfrom mcp import mcp\n@mcp.tool()\ndef one(): pass\n");
    assert_eq!(codes(&judged(&report, &[])), ["scan-use-undeclared"]);
    assert!(!judged(&report, &["fs:delete:/a"]).fails(false), "a server may touch what its tools may");
}

#[test]
fn the_policy_beside_a_tool_counts_without_a_manifest() {
    let kotlin = |policy: &str| {
        let text = format!(
            "import java.io.File\nval t = tool(\"one\") {{ policy {{ {policy} }}\n executor {{ File(\"/srv/a\").readText() }} }}"
        );
        compare(&scan_text("a.kt", text), None, &facts())
    };
    assert!(!kotlin("filesystem { read(\"/srv/**\") }").fails(false));
    assert!(kotlin("filesystem { write(\"/srv/**\") }").fails(false));
    assert!(kotlin("filesystem { read(\"/srv2/**\") }").fails(false));
    assert!(kotlin("network { allowAll() }").fails(false), "what is not specified grants nothing");
    assert_eq!(codes(&kotlin("filesystem { read(\"../x\") }")), ["scan-policy"]);
    assert!(kotlin("filesystem { read(\"../x\") }").fails(false));
    let process = |policy: &str| {
        let text = format!(
            "val t = processTool(\"one\", policy = toolPolicy {{ {policy} }}) {{ listOf(\"rg\", \"x\") }}"
        );
        compare(&scan_text("a.kt", text), None, &facts())
    };
    assert!(codes(&process("exec { allow(\"rg\") }")).is_empty());
    assert_eq!(codes(&process("exec { allow(\"sed\") }")), ["scan-use-undeclared", "scan-unused"]);
    let trait_tool = super::corpus_dir().join("rust/tool_trait.rs");
    let judgement = compare(&super::scan(&trait_tool), None, &facts());
    assert_eq!(codes(&judgement), ["scan-dynamic", "scan-use-undeclared"]);
}

#[test]
fn unknown_fails_where_it_is_strict() {
    let judgement = compare(&scan_text("a.py", "eval(input())"), None, &facts());
    assert_eq!(codes(&judgement), ["scan-unknown"]);
    assert!(!judgement.fails(false) && judgement.fails(true));
}

#[test]
fn a_draft_is_a_manifest_that_the_source_passes() {
    for entry in std::fs::read_dir(super::corpus_dir()).unwrap() {
        for case in std::fs::read_dir(entry.unwrap().path()).unwrap() {
            let case = case.unwrap().path();
            if case.ends_with("labels.toml") {
                continue;
            }
            let report = super::scan(&case);
            let text = draft("a case", &report);
            let manifest =
                Manifest::parse(&text).unwrap_or_else(|wrong| panic!("{}: {wrong}\n{text}", case.display()));
            let checked = manifest.check(&facts()).unwrap();
            let judgement = compare(&report, Some(&checked), &facts());
            let failed = codes(&judgement);
            assert!(!failed.contains(&"scan-use-undeclared"), "{}: {failed:?}\n{text}", case.display());
            assert!(!failed.contains(&"scan-tool-undeclared"), "{}: {failed:?}\n{text}", case.display());
        }
    }
}
