//! Arguments, read strictly: what is not known, of another kind or out of range is an error that says so.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use crate::tool::ToolError;

/// The arguments of one call.
pub(super) struct Args<'a> {
    tool: &'static str,
    fields: &'a Map<String, Value>,
}

impl<'a> Args<'a> {
    /// The arguments of `tool`, all of which must be `known`.
    pub(super) fn read(tool: &'static str, args: &'a Value, known: &[&str]) -> Result<Self, ToolError> {
        let fields = args.as_object().ok_or_else(|| wrong(tool, "the arguments are an object"))?;
        match fields.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => {
                let key = key.chars().take(80).collect::<String>();
                let what =
                    format!("there is no argument `{}`, only {}", key.escape_debug(), known.join(", "));
                Err(wrong(tool, &what))
            }
            None => Ok(Self { tool, fields }),
        }
    }

    /// All that were given.
    pub(super) const fn fields(&self) -> &'a Map<String, Value> {
        self.fields
    }

    /// A text, if it is there.
    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, ToolError> {
        match self.fields.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(&format!("`{key}` is a string"))),
        }
    }

    /// A text that must be there.
    pub(super) fn required(&self, key: &str) -> Result<&'a str, ToolError> {
        self.text(key)?.ok_or_else(|| self.wrong(&format!("`{key}` is missing")))
    }

    /// The path that the call is about.
    pub(super) fn path(&self) -> Result<&'a str, ToolError> {
        let path = self.required("path")?;
        if path.is_empty() { Err(self.wrong("`path` is empty")) } else { Ok(path) }
    }

    /// A whole number within `range`, if it is there.
    pub(super) fn number(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, ToolError> {
        let value = match self.fields.get(key) {
            None | Some(Value::Null) => return Ok(None),
            Some(value) => value,
        };
        let found = value.as_u64().filter(|number| range.contains(number));
        let what = || format!("`{key}` is a whole number from {} to {}", range.start(), range.end());
        found.map(Some).ok_or_else(|| self.wrong(&what()))
    }

    /// Yes or no; no if it is not there.
    pub(super) fn flag(&self, key: &str) -> Result<bool, ToolError> {
        match self.fields.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong(&format!("`{key}` is true or false"))),
        }
    }

    /// One of a few words; the first if it is not there.
    pub(super) fn word(&self, key: &str, words: &[&'static str]) -> Result<&'static str, ToolError> {
        let said = self.text(key)?;
        let found = said.map_or(words.first(), |said| words.iter().find(|word| **word == said));
        found.copied().ok_or_else(|| self.wrong(&format!("`{key}` is one of {}", words.join(", "))))
    }

    /// A list of objects that must be there.
    pub(super) fn objects(&self, key: &str) -> Result<&'a [Value], ToolError> {
        match self.fields.get(key) {
            Some(Value::Array(items)) if !items.is_empty() => Ok(items),
            Some(Value::Array(_)) => Err(self.wrong(&format!("`{key}` is empty"))),
            Some(_) => Err(self.wrong(&format!("`{key}` is a list"))),
            None => Err(self.wrong(&format!("`{key}` is missing"))),
        }
    }

    /// An error of this call.
    pub(super) fn wrong(&self, what: &str) -> ToolError {
        wrong(self.tool, what)
    }
}

/// An error of a tool that says what was wrong.
pub(super) fn wrong(tool: &str, what: &str) -> ToolError {
    ToolError::failed(format!("{tool}: {what}"))
}

/// The schema of an object that has these properties and no others.
pub(super) fn object(properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The schema of the path that a call is about.
pub(super) fn path_schema(what: &str) -> Value {
    let description =
        format!("{what}: an absolute path, one below `~/`, or one below the session's working directory.");
    json!({ "type": "string", "minLength": 1, "description": description })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said() {
        let said = |args: Value, read: &dyn Fn(&Args<'_>) -> Option<ToolError>| {
            let args = Args::read("t", &args, &["path", "n", "f", "w", "l"]);
            args.as_ref().map_or_else(ToString::to_string, |args| read(args).unwrap().to_string())
        };
        assert_eq!(said(json!([]), &|_| None), "t: the arguments are an object");
        assert_eq!(
            said(json!({"x\n": 1}), &|_| None),
            "t: there is no argument `x\\n`, only path, n, f, w, l"
        );
        assert_eq!(said(json!({"path": ""}), &|args| args.path().err()), "t: `path` is empty");
        assert_eq!(said(json!({}), &|args| args.path().err()), "t: `path` is missing");
        assert_eq!(said(json!({"path": 1}), &|args| args.path().err()), "t: `path` is a string");
        for bad in [json!(0), json!(10), json!(-1), json!(1.5), json!("1"), json!([1])] {
            let text = said(json!({ "n": bad }), &|args| args.number("n", 1..=9).err());
            assert_eq!(text, "t: `n` is a whole number from 1 to 9");
        }
        assert_eq!(said(json!({"f": "yes"}), &|args| args.flag("f").err()), "t: `f` is true or false");
        assert_eq!(
            said(json!({"w": "c"}), &|args| args.word("w", &["a", "b"]).err()),
            "t: `w` is one of a, b"
        );
        assert_eq!(said(json!({"l": []}), &|args| args.objects("l").err()), "t: `l` is empty");
    }
}
