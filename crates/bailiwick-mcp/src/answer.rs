//! What came of a call, as a result of the protocol: structured for programs, and text as a model wants to read it.

use bailiwick_guard::{Content, Outcome, Output, Part, ResourceBody, ToolFault};
use bailiwick_guardrails::InjectedMessage;
use bailiwick_policy::denial::Denial;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Map, Value, json};

/// Where a result says what policy decided.
pub(crate) const DECISION: &str = "dev.bailiwick/decision";

/// The longest text of a client that is said back to it.
const MAX_SHOWN: usize = 100;

/// What came of a call, as the protocol says it.
pub(crate) fn result(outcome: Result<Outcome, ToolFault>, guidance: Option<&str>) -> CallToolResult {
    match outcome {
        Ok(Outcome::Ran(output)) => ran(output),
        Ok(Outcome::Refused(denial)) => refused(&denial, guidance),
        Err(fault) => CallToolResult::error(vec![ContentBlock::text(fault.to_string())]),
    }
}

/// The result of a call that ran. Where the tool gave no parts, the structured answer is worded.
fn ran(output: Output) -> CallToolResult {
    let Output { structured, content, is_error, meta } = output;
    let mut blocks: Vec<_> = content.into_iter().map(block).collect();
    if let (true, Some(value)) = (blocks.is_empty(), &structured) {
        blocks.push(ContentBlock::text(text(value)));
    }
    let mut result = if is_error { CallToolResult::error(blocks) } else { CallToolResult::success(blocks) };
    // Older clients take nothing but an object.
    result.structured_content = structured.filter(Value::is_object);
    result.meta = (!meta.is_empty()).then_some(MetaObject(meta));
    result
}

/// A part as the protocol writes it; what the protocol does not know is said as text.
fn block(part: Part) -> ContentBlock {
    let fields = fields(part);
    serde_json::from_value(fields.clone()).unwrap_or_else(|_| ContentBlock::text(fields.to_string()))
}

/// The fields of a part on the wire.
fn fields(part: Part) -> Value {
    let Part { content, extra } = part;
    let own = match content {
        Content::Text(text) => json!({ "type": "text", "text": text }),
        Content::Image { data, mime_type } => json!({ "type": "image", "data": data, "mimeType": mime_type }),
        Content::Audio { data, mime_type } => json!({ "type": "audio", "data": data, "mimeType": mime_type }),
        Content::ResourceLink { uri, name } => json!({ "type": "resource_link", "uri": uri, "name": name }),
        Content::Resource { uri, mime_type, body } => {
            let (field, data) = match body {
                ResourceBody::Text(text) => ("text", text),
                ResourceBody::Bytes(data) => ("blob", data),
            };
            let mut resource =
                Map::from_iter([("uri".to_owned(), uri.into()), (field.to_owned(), data.into())]);
            resource.extend(mime_type.map(|mime_type| ("mimeType".to_owned(), mime_type.into())));
            json!({ "type": "resource", "resource": resource })
        }
        Content::Unknown { kind } => json!({ "type": kind }),
        // Added since this was written: nothing is known of it but what came with it.
        _ => json!({ "type": "unknown" }),
    };
    let Value::Object(own) = own else { return Value::Object(extra) };
    Value::Object(extra.into_iter().chain(own).collect())
}

/// The result of a call that policy refused: what a model can read and act on.
pub(crate) fn refused(denial: &Denial, guidance: Option<&str>) -> CallToolResult {
    let mut text = format!("denied: {}", denial.message());
    text.extend(advice(denial, guidance).into_iter().flat_map(|advice| ["\n".to_owned(), advice]));
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    result.meta = Some(MetaObject(Map::from_iter([(DECISION.to_owned(), decision(denial))])));
    result
}

/// What policy decided, for programs.
pub(crate) fn decision(denial: &Denial) -> Value {
    json!({ "decision": "deny", "code": denial.code().as_str(), "grant": denial.smallest_lines() })
}

/// The same result, with what a project's hooks have to say to the model.
pub(crate) fn with_injected(mut result: CallToolResult, injected: Vec<InjectedMessage>) -> CallToolResult {
    result.content.extend(injected.into_iter().map(|message| ContentBlock::text(message.text)));
    result
}

/// A client's own text, fit to be said back.
pub(crate) fn shown(text: &str) -> String {
    let short: String = text.chars().take(MAX_SHOWN).collect();
    let rest = if short.len() < text.len() { "…" } else { "" };
    format!("{}{rest}", short.escape_debug())
}

/// What is granted, and what a person would have to grant.
fn advice(denial: &Denial, guidance: Option<&str>) -> Option<String> {
    let granted = denial.granted_line().map(|granted| format!("granted: {granted}"));
    let lines: Vec<String> =
        granted.into_iter().chain(denial.advice()).chain(guidance.map(str::to_owned)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// What a model reads: a program's output, a page, a file; else the value itself.
fn text(value: &Value) -> String {
    if let Some(output) = of_program(value) {
        return output;
    }
    let main = ["markdown", "content", "text"].into_iter().find_map(|key| value.get(key)?.as_str());
    match main.or(value.as_str()) {
        Some(text) => text.to_owned(),
        None => format!("{value:#}"),
    }
}

/// The output of a program and how it ended, if the value is that of one.
fn of_program(value: &Value) -> Option<String> {
    let stream = |name: &str| value.get(name)?.as_str();
    let is = |name: &str| value.get(name) == Some(&Value::Bool(true));
    let (out, err) = (stream("stdout")?, stream("stderr")?);
    let mut text = out.to_owned();
    let mut note = |line: String| {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text += &line;
    };
    if is("stdout_truncated") {
        note("[stdout is longer; the rest was dropped]\n".to_owned());
    }
    if !err.is_empty() {
        note(format!("[stderr]\n{err}"));
    }
    if is("stderr_truncated") {
        note("[stderr is longer; the rest was dropped]\n".to_owned());
    }
    if is("timed_out") {
        note("[its time was over; it was ended with everything it started]".to_owned());
    } else if let Some(signal) = value.get("signal").and_then(Value::as_i64) {
        note(format!("[ended by signal {signal}]"));
    }
    match value.get("exit_code").and_then(Value::as_i64) {
        Some(0) if out.is_empty() && err.is_empty() => note("[exit code 0, no output]".to_owned()),
        Some(0) | None => {}
        Some(code) => note(format!("[exit code {code}]")),
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(code: i64, stdout: &str, stderr: &str) -> Value {
        json!({ "exit_code": code, "signal": null, "stdout": stdout, "stderr": stderr, "timed_out": false })
    }

    #[test]
    fn a_programs_text_is_its_output_and_how_it_ended() {
        let texts = [
            (ran(0, "hi\n", ""), "hi\n"),
            (ran(0, "", ""), "[exit code 0, no output]"),
            (ran(2, "a", "b"), "a\n[stderr]\nb\n[exit code 2]"),
            (ran(1, "", "no\n"), "[stderr]\nno\n[exit code 1]"),
        ];
        for (value, expected) in texts {
            assert_eq!(text(&value), expected);
        }
        let mut late = ran(0, "some", "");
        late["timed_out"] = true.into();
        late["exit_code"] = Value::Null;
        late["signal"] = 9.into();
        assert_eq!(text(&late), "some\n[its time was over; it was ended with everything it started]");
    }

    #[test]
    fn a_page_or_a_file_is_its_text_and_the_rest_is_json() {
        assert_eq!(text(&json!({ "status": 200, "markdown": "# Hi" })), "# Hi");
        assert_eq!(text(&json!({ "path": "/a", "content": "x" })), "x");
        assert_eq!(text(&json!("said")), "said");
        assert_eq!(text(&json!({ "n": 1 })), "{\n  \"n\": 1\n}");
    }

    #[test]
    fn parts_of_every_type_keep_what_came_with_them() {
        let extra = Map::from_iter([("_meta".to_owned(), json!({ "x/y": 1 }))]);
        let part = |content| Part { content, extra: extra.clone() };
        let (uri, mime_type) = ("file:///a".to_owned(), "image/png".to_owned());
        let contents = [
            Content::Text("t".to_owned()),
            Content::Image { data: "AA==".to_owned(), mime_type: mime_type.clone() },
            Content::Audio { data: "AA==".to_owned(), mime_type: "audio/wav".to_owned() },
            Content::ResourceLink { uri: uri.clone(), name: "a".to_owned() },
            Content::Resource {
                uri,
                mime_type: Some(mime_type),
                body: ResourceBody::Bytes("AA==".to_owned()),
            },
        ];
        let output = Output {
            content: contents.into_iter().map(part).collect(),
            is_error: true,
            meta: Map::from_iter([("x/y".to_owned(), json!(1))]),
            ..Output::default()
        };
        let answered = serde_json::to_value(result(Ok(Outcome::Ran(output)), None)).unwrap();
        assert_eq!((&answered["isError"], &answered["_meta"]), (&json!(true), &json!({ "x/y": 1 })));
        let types: Vec<_> =
            answered["content"].as_array().unwrap().iter().map(|part| &part["type"]).collect();
        assert_eq!(types, ["text", "image", "audio", "resource_link", "resource"]);
        for part in answered["content"].as_array().unwrap() {
            assert_eq!(part["_meta"], json!({ "x/y": 1 }), "{part}");
        }
        assert_eq!(answered["content"][4]["resource"]["blob"], "AA==");
    }

    #[test]
    fn a_part_of_an_unknown_type_is_said_as_text() {
        let part = Part { content: Content::Unknown { kind: "hologram".to_owned() }, extra: Map::new() };
        assert_eq!(block(part), ContentBlock::text("{\"type\":\"hologram\"}"));
    }

    #[test]
    fn a_clients_text_is_cut_and_escaped() {
        assert_eq!(shown("a\nb"), "a\\nb");
        assert_eq!(shown(&"é".repeat(200)).chars().count(), MAX_SHOWN + 1);
    }
}
