//! Calls of tools: read from a file, one a line, or made from a schema.

use serde_json::{Map, Value, json};

/// The most calls of one file.
const MOST: usize = 10_000;
/// How deep a schema or an argument is followed.
const MOST_DEPTH: usize = 8;
/// How many words of one call are compared with what it asks for, and how much of each.
const MOST_WORDS: usize = 64;
const LONGEST_WORD: usize = 2_000;

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The name of the tool.
    pub tool: String,
    /// What it is given.
    pub arguments: Map<String, Value>,
}

impl ToolCall {
    /// The texts and numbers in its arguments.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        self.arguments.values().for_each(|value| add_words(value, 0, &mut words));
        words
    }
}

fn add_words(value: &Value, depth: usize, words: &mut Vec<String>) {
    if depth > MOST_DEPTH || words.len() >= MOST_WORDS {
        return;
    }
    match value {
        Value::String(text) => words.push(text.chars().take(LONGEST_WORD).collect()),
        Value::Number(number) => words.push(number.to_string()),
        Value::Array(all) => all.iter().for_each(|one| add_words(one, depth + 1, words)),
        Value::Object(all) => all.values().for_each(|one| add_words(one, depth + 1, words)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Why a text is no list of calls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallsError {
    /// A line is no call.
    #[error("line {0} is no call; write {{\"tool\": \"NAME\", \"arguments\": {{}}}}")]
    Line(usize),
    /// There are too many.
    #[error("it has more than {MOST} calls")]
    TooMany,
    /// There is none.
    #[error("it has no call; write {{\"tool\": \"NAME\", \"arguments\": {{}}}}, one a line")]
    None,
}

/// The calls of a text, one a line.
///
/// # Errors
/// The line that is no call.
///
/// # Examples
/// ```
/// let calls = bailiwick_learn::calls_of("{\"tool\": \"add\", \"arguments\": {\"a\": 1}}\n").unwrap();
/// assert_eq!(calls[0].tool, "add");
/// assert!(bailiwick_learn::calls_of("add 1").is_err());
/// ```
pub fn calls_of(text: &str) -> Result<Vec<ToolCall>, CallsError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let calls = lines.map(|(at, line)| call_of(line).ok_or(CallsError::Line(at + 1)));
    let calls = calls.collect::<Result<Vec<_>, _>>()?;
    match calls.len() {
        0 => Err(CallsError::None),
        count if count > MOST => Err(CallsError::TooMany),
        _ => Ok(calls),
    }
}

fn call_of(line: &str) -> Option<ToolCall> {
    let Ok(Value::Object(mut call)) = serde_json::from_str(line) else { return None };
    let tool = call.remove("tool")?.as_str()?.to_owned();
    let arguments = match call.remove("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return None,
    };
    Some(ToolCall { tool, arguments })
}

/// The least call of each tool, by name and schema, that no other call drives.
pub fn least_calls<'t>(
    tools: impl Iterator<Item = (&'t str, &'t Value)>,
    calls: &[ToolCall],
) -> Vec<ToolCall> {
    tools
        .filter(|(name, _)| !calls.iter().any(|call| call.tool == *name))
        .map(|(name, schema)| ToolCall { tool: name.to_owned(), arguments: least_object(schema, 0) })
        .collect()
}

/// The required properties alone, each with its least value.
fn least_object(schema: &Value, depth: usize) -> Map<String, Value> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let names = required.filter_map(Value::as_str);
    let of =
        |name: &str| schema.get("properties").and_then(|all| all.get(name)).cloned().unwrap_or(json!({}));
    names.map(|name| (name.to_owned(), least(&of(name), depth + 1))).collect()
}

/// The first value that a schema names, else the least of its type.
fn least(schema: &Value, depth: usize) -> Value {
    if depth > MOST_DEPTH {
        return Value::Null;
    }
    let first = |key: &str| schema.get(key).and_then(Value::as_array).and_then(|all| all.first());
    if let Some(value) = schema.get("const").or_else(|| schema.get("default")).or_else(|| first("enum")) {
        return value.clone();
    }
    if let Some(other) = first("anyOf").or_else(|| first("oneOf")).or_else(|| first("allOf")) {
        return least(other, depth + 1);
    }
    let kind = schema.get("type").and_then(Value::as_str).or_else(|| first("type").and_then(Value::as_str));
    match kind {
        Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(0)),
        Some("number") => schema.get("minimum").cloned().unwrap_or(json!(0)),
        Some("boolean") => json!(false),
        Some("array") => {
            let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(4);
            let item = schema.get("items").map_or(Value::Null, |items| least(items, depth + 1));
            (0..count).map(|_| item.clone()).collect()
        }
        Some("object") => Value::Object(least_object(schema, depth)),
        Some("null") => Value::Null,
        _ => json!("a"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_call_or_refused() {
        let call = call_of(r#"{"tool":"a","arguments":{"x":1}}"#).unwrap();
        assert_eq!((call.tool.as_str(), call.arguments.len()), ("a", 1));
        assert!(call_of(r#"{"tool":"a"}"#).is_some());
        for wrong in ["", "[]", "{}", r#"{"tool":1}"#, r#"{"tool":"a","arguments":[]}"#] {
            assert_eq!(call_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_least_call_has_what_is_required_and_no_more() {
        let schema = json!({
            "type": "object",
            "required": ["path", "mode", "count", "deep", "list"],
            "properties": {
                "path": { "type": "string" }, "mode": { "enum": ["r", "w"] }, "count": { "type": "integer", "minimum": 3 },
                "deep": { "type": "object", "required": ["x"], "properties": { "x": { "type": "boolean" } } },
                "list": { "type": "array", "minItems": 1, "items": { "type": "string" } }, "other": { "type": "string" },
            },
        });
        let tools = [("t", &schema)];
        let calls = least_calls(tools.into_iter(), &[]);
        let wanted = json!({ "path": "a", "mode": "r", "count": 3, "deep": { "x": false }, "list": ["a"] });
        assert_eq!(Value::Object(calls[0].arguments.clone()), wanted);
        assert_eq!(least_calls(tools.into_iter(), &calls), []);
    }
}
