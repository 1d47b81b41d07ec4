//! The names of tools in what a server answers to `tools/list`, or in a manifest.

use bailiwick_manifest::Manifest;
use serde_json::Value;

/// The most tools of one list.
const MOST: usize = 10_000;

/// A text that lists no tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it lists no tools: write the answer to `tools/list`, {{\"tools\": [{{\"name\": \"NAME\"}}]}}, or a manifest"
)]
pub struct NoToolList;

/// The names in `{"result": {"tools": [{"name": …}]}}`, its inner parts, or a manifest.
///
/// # Errors
/// If the text is none of these.
///
/// # Examples
/// ```
/// let names = bailiwick_scan::listed_tools(r#"{"tools": [{"name": "add"}]}"#).unwrap();
/// assert_eq!(names, ["add"]);
/// assert!(bailiwick_scan::listed_tools("[]").is_err());
/// ```
pub fn listed_tools(text: &str) -> Result<Vec<String>, NoToolList> {
    let names = match serde_json::from_str::<Value>(text) {
        Ok(answer) => in_answer(&answer),
        Err(_) => None,
    };
    let names = names.or_else(|| {
        let manifest = Manifest::parse(text).ok()?;
        Some(manifest.tools().iter().map(|tool| tool.name().to_owned()).collect())
    });
    names.filter(|names: &Vec<String>| !names.is_empty() && names.len() <= MOST).ok_or(NoToolList)
}

fn in_answer(answer: &Value) -> Option<Vec<String>> {
    let answer = answer.get("result").unwrap_or(answer);
    let tools = answer.get("tools").unwrap_or(answer).as_array()?;
    tools.iter().map(|tool| Some(tool.get("name")?.as_str()?.to_owned())).collect()
}
