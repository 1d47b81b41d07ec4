//! SARIF as code scanning needs it.

use serde_json::Value;

use super::run_json;

/// What is missing or wrong in a log.
fn complaints(log: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut hold = |holds: bool, what: &str| {
        if !holds {
            wrong.push(what.to_owned());
        }
    };
    hold(log["version"] == "2.1.0", "version");
    hold(log["$schema"].as_str().is_some_and(|schema| schema.contains("sarif-2.1.0")), "$schema");
    for run in log["runs"].as_array().into_iter().flatten() {
        let driver = &run["tool"]["driver"];
        hold(driver["name"] == "bailiwick", "driver.name");
        let rules = driver["rules"].as_array().cloned().unwrap_or_default();
        for rule in &rules {
            hold(rule["shortDescription"]["text"].is_string(), "rule.shortDescription");
            hold(rule["help"]["text"].is_string(), "rule.help");
            hold(rule["properties"]["security-severity"].is_string(), "rule.security-severity");
        }
        for result in run["results"].as_array().into_iter().flatten() {
            let index = result["ruleIndex"].as_u64().and_then(|index| usize::try_from(index).ok());
            let rule = index.and_then(|index| rules.get(index));
            hold(rule.is_some_and(|rule| rule["id"] == result["ruleId"]), "result.ruleIndex");
            hold(["error", "warning", "note"].iter().any(|level| result["level"] == *level), "result.level");
            hold(result["message"]["text"].as_str().is_some_and(|text| !text.is_empty()), "result.message");
            let place = &result["locations"][0]["physicalLocation"];
            let uri = place["artifactLocation"]["uri"].as_str().unwrap_or_default();
            hold(!uri.is_empty() && !uri.starts_with('/') && !uri.contains(' '), "uri");
            let number = |key: &str| place["region"][key].as_u64().unwrap_or(0);
            let (start, end) =
                ((number("startLine"), number("startColumn")), (number("endLine"), number("endColumn")));
            hold(start.0 >= 1 && start.1 >= 1 && start < end, "region");
        }
    }
    wrong
}

#[test]
fn logs_have_the_shape_that_code_scanning_reads() {
    let broken = "crates/bailiwick-cli/tests/fixtures/broken.toml";
    let nasty = "crates/bailiwick-cli/tests/fixtures/nasty.json";
    for args in [
        &["check", "--format", "sarif", broken, nasty, "examples/github.toml"][..],
        &["diff", "--format", "sarif", "examples/github.toml", "examples/github-wider.toml"],
        &[
            "scan",
            "--no-cache",
            "--format",
            "sarif",
            "--manifest",
            "examples/github.toml",
            "crates/bailiwick-scan/tests/corpus",
        ],
        &["diff", "--format", "sarif", "examples/github.toml", "examples/github.toml"],
    ] {
        let log = run_json(args);
        assert_eq!(complaints(&log), Vec::<String>::new(), "{args:?}\n{log:#}");
        assert_eq!(log["runs"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn accepted_differences_are_suppressed() {
    let args = ["diff", "--format", "sarif", "--accept", "examples/accept.toml"];
    let log = run_json(&[&args[..], &["examples/github.toml", "examples/github-wider.toml"]].concat());
    let results = log["runs"][0]["results"].as_array().unwrap();
    let suppressed = results.iter().filter(|result| result["suppressions"][0]["kind"] == "external").count();
    assert_eq!(suppressed, 2);
}

#[test]
fn the_rule_sees_a_bad_log() {
    let log =
        serde_json::json!({ "version": "2.0.0", "runs": [{ "tool": { "driver": {} }, "results": [{}] }] });
    assert!(complaints(&log).len() > 5);
}
