//! YAML as machines read it: every text is quoted, so that no reader takes `no`, `1e3` or `12:30` for anything else.

use serde::Serialize;
use serde_json::Value;
use serde_saphyr::SerializerOptions;

/// One document.
pub(crate) fn document(value: &Value) -> String {
    // a JSON value has nothing that YAML cannot say; were it otherwise, JSON itself is YAML
    written(value).unwrap_or_else(|| format!("{value}\n"))
}

/// A text for its place in a document that is written out.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'\'' && byte != b'\\';
    if text.bytes().all(plain) {
        return format!("'{text}'");
    }
    let quoted = written(text).unwrap_or_else(|| Value::from(text).to_string());
    quoted.trim_end().to_owned()
}

fn written(value: &(impl Serialize + ?Sized)) -> Option<String> {
    let mut options = SerializerOptions::default();
    options.quote_all = true;
    options.prefer_block_scalars = false;
    serde_saphyr::to_string_with_options(&value, options).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_come_back_as_they_went_in() {
        let nasty = [
            "no",
            "NO",
            "on",
            "~",
            "null",
            "1e3",
            "0x1f",
            "12:30:45",
            "1_000",
            "- a",
            "a: b",
            "a #b",
            "'q'",
            "\"",
            "&a",
            "*a",
            "!tag",
            "%",
            "@",
            "`",
            "{a}",
            "[a]",
            "|",
            ">",
            "a\nb",
            "",
            " a ",
            "ä\u{2028}",
            "...",
            "---",
            "?",
            "\\",
        ];
        let value =
            json!({ "texts": nasty, "number": 7, "flag": true, "none": null, "empty": {}, "list": [] });
        let read: Value = serde_saphyr::from_str(&document(&value)).unwrap();
        assert_eq!(read, value);
        let lines: String = nasty.iter().map(|text| format!("- {}\n", quoted(text))).collect();
        let read: Vec<String> = serde_saphyr::from_str(&lines).unwrap();
        assert_eq!(read, nasty, "{lines}");
    }
}
