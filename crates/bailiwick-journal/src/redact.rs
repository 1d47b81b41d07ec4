//! Bodies for those who ask for them: arguments and results with what looks secret taken out, and cut to a size.
//!
//! By default only the digest is kept. Redaction is by name of the member, by the shape of well-known tokens, and by
//! secrets that the caller knows. Residual: a secret of unknown shape under a harmless name stays; and the
//! digest of something that is easily guessed can be guessed.
use crate::format::{Digest, Event};
use serde_json::Value;

/// What replaces a secret.
const REDACTED: &str = "[redacted]";

/// Members whose value is never stored: their name, without case, `-` and `_`, contains one of these.
const SECRET_NAMES: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
    "cookie",
    "credential",
    "sessionkey",
    "signature",
    "otp",
];

/// Text that starts a word of one of these shapes is never stored.
const SECRET_STARTS: [&str; 16] = [
    "sk-",
    "sk_live_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
    "npm_",
    "hf_",
];

/// What to take out, and how much to keep.
#[derive(Debug, Clone)]
pub struct Redaction {
    /// Texts that are never stored, wherever they occur.
    pub secrets: Vec<String>,
    /// The longest body that is stored, in bytes.
    pub max_bytes: usize,
}

impl Default for Redaction {
    fn default() -> Self {
        Self { secrets: Vec::new(), max_bytes: 4 * 1024 }
    }
}

/// A body, ready to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The SHA-256 of the canonical JSON of the whole, unredacted value.
    pub digest: Digest,
    /// The redacted value as JSON text.
    pub text: String,
}

impl Body {
    /// The digest alone, which is what is stored by default.
    pub fn digest_of(value: &Value) -> Digest {
        // canonical form fails only for numbers that JSON readers disagree on: those are digested as they are
        Digest::sha256(
            &serde_json_canonicalizer::to_vec(value).unwrap_or_else(|_| value.to_string().into_bytes()),
        )
    }

    /// The value, redacted.
    pub fn new(value: &Value, redaction: &Redaction) -> Self {
        let digest = Self::digest_of(value);
        let mut text = redaction.value(value).to_string();
        if text.len() > redaction.max_bytes {
            text = serde_json::json!({ "bytes": text.len(), "cut": true }).to_string();
        }
        Self { digest, text }
    }

    /// The event with this body as its arguments.
    #[must_use]
    pub fn as_args(self, event: Event) -> Event {
        event.with_args_digest(self.digest).with_args(self.text)
    }

    /// The event with this body as its result.
    #[must_use]
    pub fn as_result(self, event: Event) -> Event {
        event.with_result(self.text)
    }
}

impl Redaction {
    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| {
                    let value = if is_secret_name(name) { REDACTED.into() } else { self.value(value) };
                    (self.text(name), value)
                })
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn text(&self, text: &str) -> String {
        let mut text = text.to_string();
        for secret in self.secrets.iter().filter(|secret| !secret.is_empty()) {
            text = text.replace(secret, REDACTED);
        }
        if text.contains("-----BEGIN ") && text.contains("PRIVATE KEY") {
            return REDACTED.into();
        }
        if has_secret_word(&text) { words_redacted(&text) } else { text }
    }
}

fn is_secret_name(name: &str) -> bool {
    let plain: String =
        name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect();
    SECRET_NAMES.iter().any(|secret| plain.contains(secret))
}

fn is_word_end(c: char) -> bool {
    !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '~'))
}

fn is_secret_word(word: &str) -> bool {
    word.len() >= 16 && SECRET_STARTS.iter().any(|start| word.starts_with(start))
}

fn has_secret_word(text: &str) -> bool {
    let mut is_after_bearer = false;
    text.split(is_word_end).any(|word| {
        let is_secret = is_secret_word(word) || (is_after_bearer && !word.is_empty());
        is_after_bearer = is_scheme(word);
        is_secret
    })
}

fn is_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic")
}

fn words_redacted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_after_bearer = false;
    for piece in text.split_inclusive(is_word_end) {
        let word = piece.trim_end_matches(is_word_end);
        let is_secret = is_secret_word(word) || (is_after_bearer && !word.is_empty());
        out.push_str(if is_secret { REDACTED } else { word });
        out.extend(piece.chars().skip(word.chars().count()));
        is_after_bearer = is_scheme(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn redacted(value: &Value) -> String {
        let secrets = vec!["hunter2".to_string()];
        Body::new(value, &Redaction { secrets, ..Redaction::default() }).text
    }

    #[test]
    fn secrets_go_by_name_shape_and_knowledge() {
        let text = redacted(&json!({
            "path": "/etc/hosts",
            "API-Key": "abc",
            "nested": [{ "db_password": { "x": 1 } }, "curl -H 'Authorization: Bearer abc.def' https://x"],
            "env": "GH=ghp_0123456789abcdef0123 rest",
            "pem": "-----BEGIN OPENSSH PRIVATE KEY-----\nxx",
            "note": "my hunter2 word",
            "n": 3,
        }));
        for secret in ["abc", "ghp_", "xx", "hunter2", "\"x\""] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        for kept in ["/etc/hosts", "https://x", " rest", "my ", " word", "\"n\":3"] {
            assert!(text.contains(kept), "{kept} not in {text}");
        }
    }

    #[test]
    fn harmless_text_stays_as_it_is() {
        let value = json!({ "q": "the task-list; é ü 😀, sk- alone", "list": [true, null, 1.5] });
        assert_eq!(redacted(&value), value.to_string());
    }

    #[test]
    fn a_long_body_is_cut_but_its_digest_is_whole() {
        let value = json!({ "text": "x".repeat(10_000) });
        let body = Body::new(&value, &Redaction::default());
        assert!(body.text.len() < 100, "{}", body.text);
        assert_eq!(body.digest, Body::digest_of(&value));
        let again = Body::digest_of(&json!({ "b": 1, "a": 2 }));
        assert_eq!(again, Body::digest_of(&json!({ "a": 2, "b": 1 })));
    }
}
