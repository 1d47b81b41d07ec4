//! Values of secrets, taken out of everything that a server says.
//!
//! A value is found as it is, in base64 (wherever it stands in a longer text), in hexadecimal and with percent signs, in
//! strings as JSON means them, however they are escaped, and as a number. Residual: other encodings, values that are
//! split over several strings, and values shorter than six bytes, which would be found in everything.

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;

/// Values with fewer bytes are not looked for.
const SHORTEST: usize = 6;

/// Finds the values of secrets and puts their names in their places.
#[derive(Debug, Default)]
pub struct Redactor(Option<Forms>);

#[derive(Debug)]
struct Forms {
    search: AhoCorasick,
    /// What each form is replaced by.
    replacements: Vec<String>,
}

/// A text without secrets.
#[derive(Debug, PartialEq, Eq)]
pub struct Redacted {
    /// The text.
    pub text: String,
    /// How many values were taken out.
    pub count: usize,
}

impl Redactor {
    /// Looks for these secrets: names and values.
    #[must_use]
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut forms = Vec::new();
        for (name, value) in secrets.into_iter().filter(|(_, value)| value.len() >= SHORTEST) {
            forms.extend(forms_of(value).into_iter().map(|form| (form, format!("[secret {name}]"))));
        }
        if forms.is_empty() {
            return Self(None);
        }
        let (patterns, replacements): (Vec<_>, Vec<_>) = forms.into_iter().unzip();
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(patterns);
        Self(search.ok().map(|search| Forms { search, replacements }))
    }

    /// A text of any kind without secrets.
    #[must_use]
    pub fn plain(&self, text: &str) -> Redacted {
        match &self.0 {
            None => Redacted { text: text.to_owned(), count: 0 },
            Some(forms) => forms.redact(text),
        }
    }

    /// A line of JSON without secrets; `None` if it has none, and can go as it is.
    #[must_use]
    pub fn json(&self, line: &str) -> Option<Redacted> {
        let forms = self.0.as_ref()?;
        // Without escapes the bytes are what they mean.
        if !line.contains('\\') && !forms.search.is_match(line) {
            return None;
        }
        let redacted = forms.redact_tokens(line);
        (redacted.count > 0).then_some(redacted)
    }
}

impl Forms {
    fn redact(&self, text: &str) -> Redacted {
        let (mut kept, mut last, mut count) = (String::with_capacity(text.len()), 0, 0);
        for found in self.search.find_iter(text) {
            kept += text.get(last..found.start()).unwrap_or_default();
            kept += self.replacements.get(found.pattern().as_usize()).map_or("[secret]", String::as_str);
            last = found.end();
            count += 1;
        }
        kept += text.get(last..).unwrap_or_default();
        Redacted { text: kept, count }
    }

    /// Goes through the tokens of JSON: strings are judged by what they mean, the rest as it is written.
    fn redact_tokens(&self, line: &str) -> Redacted {
        let (mut kept, mut rest, mut count) = (String::with_capacity(line.len()), line, 0);
        while !rest.is_empty() {
            let token = if rest.starts_with('"') {
                string_token(rest)
            } else {
                rest.split('"').next().unwrap_or(rest)
            };
            let (text, found) = self.redact_token(token);
            kept += &text;
            count += found;
            rest = rest.get(token.len()..).unwrap_or_default();
        }
        Redacted { text: kept, count }
    }

    /// What stands between strings: a number cannot hold a text, so a string takes its place.
    fn redact_numbers(&self, between: &str) -> (String, usize) {
        let is_mark = |c: char| matches!(c, '{' | '}' | '[' | ']' | ',' | ':') || c.is_ascii_whitespace();
        let mut count = 0;
        let word = |piece: &str| {
            let end = piece.find(is_mark).unwrap_or(piece.len());
            let (number, rest) = piece.split_at(end);
            match self.search.find(number) {
                None => piece.to_owned(),
                Some(found) => {
                    count += 1;
                    let named = self.replacements.get(found.pattern().as_usize());
                    format!("{}{rest}", Value::from(named.map_or("[secret]", String::as_str)))
                }
            }
        };
        let text = between.split_inclusive(is_mark).map(word).collect();
        (text, count)
    }

    fn redact_token(&self, token: &str) -> (String, usize) {
        let meaning = token.starts_with('"').then(|| serde_json::from_str::<String>(token).ok()).flatten();
        let Some(meaning) = meaning else { return self.redact_numbers(token) };
        let redacted = self.redact(&meaning);
        if redacted.count == 0 {
            (token.to_owned(), 0)
        } else {
            (Value::from(redacted.text).to_string(), redacted.count)
        }
    }
}

/// The string at the start of a text, with its quotes.
fn string_token(text: &str) -> &str {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return text.get(..=at).unwrap_or(text),
            _ => {}
        }
    }
    text
}

/// Every form of a value that is looked for.
fn forms_of(value: &str) -> Vec<String> {
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent = |keep: fn(u8) -> bool| -> String {
        let each = |byte: u8| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
        value.bytes().map(each).collect()
    };
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let (encoded, all) = (percent(unreserved), percent(|_| false));
    let json = Value::from(value).to_string().trim_matches('"').to_owned();
    let mut forms = vec![
        value.to_owned(),
        hex.to_uppercase(),
        hex,
        encoded.to_lowercase(),
        encoded,
        all.to_lowercase(),
        all,
        json,
    ];
    forms.extend((0..3).flat_map(|offset| in_base64(value, offset)));
    forms.retain(|form| form.len() >= SHORTEST);
    forms.sort();
    forms.dedup();
    forms
}

/// The characters that a value always has in base64 when `offset` bytes stand before it, in both alphabets.
fn in_base64(value: &str, offset: usize) -> [String; 2] {
    let padded = [&vec![0; offset][..], value.as_bytes()].concat();
    let (first, bits) = ((offset * 8).div_ceil(6), padded.len() * 8);
    let inner = |text: String| text.get(first..bits / 6).unwrap_or_default().to_owned();
    [inner(STANDARD_NO_PAD.encode(&padded)), inner(URL_SAFE_NO_PAD.encode(&padded))]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "s3cr+t/\"value\"";

    fn redactor() -> Redactor {
        Redactor::new([("TOKEN", SECRET), ("NUMBER", "1234567890"), ("SHORT", "abc")])
    }

    #[test]
    fn every_form_is_replaced_in_json() {
        let alone = STANDARD_NO_PAD.encode(SECRET);
        let shifted =
            ["u:", "ab:", "abc:"].map(|before| STANDARD_NO_PAD.encode(format!("{before}{SECRET}:x")));
        let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
        let escaped: String = SECRET.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        let texts = [
            Value::from(format!("a {SECRET} b")).to_string(),
            format!("\"{alone}\""),
            format!("\"{}\"", shifted[0]),
            format!("\"{}\"", shifted[1]),
            format!("\"{}\"", shifted[2]),
            format!("\"{hex}\""),
            format!("\"{}\"", hex.to_uppercase()),
            format!("\"{escaped}\""),
            "\"s3cr%2Bt%2F%22value%22\"".to_owned(),
        ];
        for text in texts {
            let line = format!("{{\"keep\":1.0e2,\"text\":{text}}}");
            let redacted = redactor().json(&line).unwrap_or_else(|| panic!("{line}"));
            assert!(redacted.text.contains("[secret TOKEN]"), "{}", redacted.text);
            assert!(redacted.text.starts_with("{\"keep\":1.0e2,"), "{}", redacted.text);
            let value: Value = serde_json::from_str(&redacted.text).unwrap();
            assert!(!value["text"].as_str().unwrap().contains("value"), "{value}");
        }
        let number = redactor().json("{\"n\":1234567890}").unwrap();
        assert_eq!(number.text, "{\"n\":\"[secret NUMBER]\"}");
        let list = redactor().json("[1, 91234567890,[1234567890]]").unwrap();
        assert_eq!(list.text, "[1, \"[secret NUMBER]\",[\"[secret NUMBER]\"]]");
    }

    #[test]
    fn what_has_no_secret_goes_as_it_is() {
        assert_eq!(redactor().json("{\"a\":\"\\u00e9 abc\",\"b\":12345}"), None);
        assert_eq!(Redactor::default().json(SECRET), None);
        assert_eq!(redactor().plain("say abc").count, 0);
        assert_eq!(redactor().plain(SECRET).text, "[secret TOKEN]");
    }
}
