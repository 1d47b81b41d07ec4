//! A list of tools, prompts or resources without those that may not be seen. What stays is byte for byte what the server wrote.

use std::collections::HashSet;

use serde_json::Value;
use serde_json::value::RawValue;

use super::from_peer::RawFields;
use super::pins::{ListKind, ListedTool};
use super::strict;

/// A list with what stays of it.
pub(super) struct Listed {
    pub(super) line: Vec<u8>,
    /// The name of the next page; `None` if this is the last.
    pub(super) next: Option<String>,
}

/// The message with the entries of its result as `listed` wants them. Entries that can be read in two ways and second ones
/// of one name are left out, and so are keys that some clients take for the list. `None` if the message is no such list.
pub(super) fn with_listed(
    line: &str,
    kind: ListKind,
    listed: impl Fn(&str, &Value) -> ListedTool,
) -> Option<Listed> {
    let message: RawFields<'_> = serde_json::from_str(line).ok()?;
    let (_, result) = message.0.iter().find(|(name, _)| name == "result")?;
    let fields: RawFields<'_> = serde_json::from_str(result.get()).ok()?;
    let fields = fields.without_imitations(kind.field()).without_imitations("nextCursor");
    let (_, tools) = fields.0.iter().find(|(name, _)| name == kind.field())?;
    let tools: Vec<&RawValue> = serde_json::from_str(tools.get()).ok()?;
    let mut names = HashSet::new();
    let mut kept = Vec::new();
    for raw in tools {
        let Ok(read) = strict::read(raw.get().as_bytes()) else { continue };
        let Some(name) = read.value.get(kind.key()).and_then(Value::as_str) else { continue };
        if !names.insert(name.to_owned()) {
            continue;
        }
        match listed(name, &read.value) {
            ListedTool::AsWritten => kept.push(raw.get().to_owned()),
            ListedTool::Pinned(text) => kept.push(text),
            ListedTool::Withheld => {}
        }
    }
    let tools = format!("[{}]", kept.join(","));
    let result = fields.write(|name, _| (name == kind.field()).then(|| tools.clone()));
    let text = message.write(|name, _| (name == "result").then(|| result.clone()));
    let next = fields.0.iter().find(|(name, value)| name == "nextCursor" && value.get() != "null");
    let next = next.map(|(_, value)| value.get().to_owned());
    Some(Listed { line: (text + "\n").into_bytes(), next })
}

/// The message with other instructions in its result; `None` if they are the same.
pub(super) fn with_instructions(
    line: &str,
    pinned: impl FnOnce(Option<&str>) -> Option<String>,
) -> Option<Vec<u8>> {
    let message: RawFields<'_> = serde_json::from_str(line).ok()?;
    let (_, result) = message.0.iter().find(|(name, _)| name == "result")?;
    let fields: RawFields<'_> = serde_json::from_str(result.get()).ok()?;
    let imitates = fields.has_imitation("instructions");
    let mut fields = fields.without_imitations("instructions");
    let said = fields.0.iter().find(|(name, _)| name == "instructions").map(|(_, text)| *text);
    let said: Option<String> = said.and_then(|text| serde_json::from_str(text.get()).ok());
    let pinned = pinned(said.as_deref());
    if pinned == said && !imitates {
        return None;
    }
    fields.0.retain(|(name, _)| name != "instructions");
    let mut result = fields.write(|_, _| None);
    if let Some(pinned) = pinned {
        result.pop();
        result += if fields.0.is_empty() { "" } else { "," };
        result += &format!("\"instructions\":{}}}", Value::from(pinned));
    }
    let text = message.write(|name, _| (name == "result").then(|| result.clone()));
    Some((text + "\n").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_what_was_written() {
        let line = r#"{"result":{"x":1.0e3,"tools":[{"name":"a","z":1E2},{"name":"b"},{"name":"a","second":1},{"name":"c","name":"a"},7],"nextCursor":"n"},"jsonrpc":"2.0","id":3}"#;
        let listed =
            |name: &str, _: &Value| if name == "b" { ListedTool::Withheld } else { ListedTool::AsWritten };
        let Listed { line: seen, next } = with_listed(line, ListKind::Tools, listed).unwrap();
        assert_eq!(next.as_deref(), Some("\"n\""));
        let expected = r#"{"result":{"x":1.0e3,"tools":[{"name":"a","z":1E2}],"nextCursor":"n"},"jsonrpc":"2.0","id":3}"#;
        assert_eq!(String::from_utf8(seen).unwrap(), format!("{expected}\n"));
        let none = with_listed(r#"{"id":1,"error":{}}"#, ListKind::Tools, |_, _| ListedTool::AsWritten);
        assert!(none.is_none());
        let opening = r#"{"id":1,"result":{"instructions":"new","x":1.0}}"#;
        let pinned = with_instructions(opening, |_| Some("old".to_owned())).unwrap();
        assert_eq!(pinned, b"{\"id\":1,\"result\":{\"x\":1.0,\"instructions\":\"old\"}}\n");
        assert!(with_instructions(opening, |said| said.map(str::to_owned)).is_none());
    }
}
