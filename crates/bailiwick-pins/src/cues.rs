//! Cues in a text that a model reads: addresses, paths, other tools, invisible characters, orders.
//!
//! A text is not judged by what it means. It is compared with the one before: a cue that is there more often than before
//! is new.

use std::collections::BTreeMap;

use crate::fold::{folded, is_invisible};

/// Words and phrases that give orders to a model, speak of secrets, or imitate the structure of a conversation.
const PHRASES: &str = include_str!("phrases.txt");

/// Marks that imitate the structure of a conversation or hide text from people.
const MARKS: &str = "<!-- --> <| |> [inst [/inst << ### ``` system: assistant: user: human: {{ }} \u{1b}";

/// How often each cue is in a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Cues(BTreeMap<String, usize>);

impl Cues {
    /// The cues of a text; `names` are the names of other tools.
    pub(super) fn in_text(text: &str, names: &[&str]) -> Self {
        let mut cues = Self::default();
        cues.note_characters(text);
        // Folding drops line breaks, which part words.
        let plain = folded(&text.replace(char::is_whitespace, " "));
        let words: Vec<&str> = plain
            .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '_')
            .filter(|word| !word.is_empty())
            .collect();
        let line = format!(" {} ", words.join(" "));
        for phrase in PHRASES.lines() {
            cues.note(|| format!("says `{phrase}`"), line.matches(&format!(" {phrase} ")).count());
        }
        for mark in MARKS.split(' ') {
            cues.note(|| format!("has `{}`", mark.escape_debug()), plain.matches(mark).count());
        }
        for token in text.split(|c: char| c.is_whitespace() || "\"'`()<>[]{},;".contains(c)) {
            cues.note_token(&token.to_lowercase());
        }
        for name in names {
            cues.note_name(text, name);
        }
        cues
    }

    fn note(&mut self, cue: impl FnOnce() -> String, count: usize) {
        if count > 0 {
            *self.0.entry(cue()).or_default() += count;
        }
    }

    fn note_characters(&mut self, text: &str) {
        let hidden = text.chars().filter(|c| is_invisible(*c) && !matches!(c, '\n' | '\r' | '\t')).count();
        self.note(|| "has invisible or control characters".to_owned(), hidden);
        // Words of other scripts cannot be looked up; letters that look like Latin ones hide words that can.
        let strange = text.chars().any(|c| c.is_alphabetic() && u32::from(c) > 0x24f);
        self.note(|| "has letters that are not Latin".to_owned(), usize::from(strange));
    }

    /// Addresses, paths and long runs that hide text.
    fn note_token(&mut self, token: &str) {
        let token =
            token.trim_end_matches(['.', ':', '!', '?', '*']).trim_start_matches([':', '!', '?', '*']);
        if let Some((scheme, rest)) = token.split_once("://") {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            return self.note(|| format!("names the address `{scheme}://{host}`"), 1);
        }
        let is_address = token.starts_with("www.")
            || ["data:", "javascript:", "file:", "mailto:"].iter().any(|scheme| token.starts_with(scheme))
            || token.split_once('@').is_some_and(|(user, host)| !user.is_empty() && host.contains('.'))
            || token.split_once('/').is_some_and(|(host, _)| looks_like_host(host));
        self.note(|| format!("names the address `{token}`"), usize::from(is_address));
        let first = token.strip_prefix('/').and_then(|rest| rest.chars().next());
        let is_path = first.is_some_and(char::is_alphanumeric)
            || token.starts_with("~/")
            || token.starts_with("../")
            || token.get(1..3) == Some(":\\")
            || [".ssh", ".env", ".aws", ".netrc", ".npmrc", ".git-credentials", ".bashrc", ".zshrc"]
                .iter()
                .any(|name| token.contains(name));
        self.note(|| format!("names the path `{token}`"), usize::from(is_path && !is_address));
        let is_run = token.len() >= 40
            && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_%".contains(&byte));
        self.note(|| "has a long run of letters".to_owned(), usize::from(is_run));
    }

    /// Whether a text names a tool.
    pub(super) fn names_tool(text: &str, name: &str) -> bool {
        let mut cues = Self::default();
        cues.note_name(text, name);
        !cues.0.is_empty()
    }

    /// Another tool, where its name is not an ordinary word or stands as a name.
    fn note_name(&mut self, text: &str, name: &str) {
        let is_plain = name.chars().all(|c| c.is_ascii_lowercase());
        let quoted = [
            format!("`{name}`"),
            format!("\"{name}\""),
            format!("{name}()"),
            format!("tool {name}"),
            format!("{name} tool"),
        ];
        let count = if is_plain {
            quoted.iter().map(|quoted| text.matches(quoted.as_str()).count()).sum()
        } else {
            text.split(|c: char| !c.is_alphanumeric() && !"_-./".contains(c))
                .filter(|word| word.trim_matches('.') == name)
                .count()
        };
        self.note(|| format!("names the tool `{name}`"), count);
    }
}

fn looks_like_host(text: &str) -> bool {
    let mut labels = text.rsplit('.');
    let last = labels.next().unwrap_or_default();
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    (2..=24).contains(&last.len())
        && last.bytes().all(|byte| byte.is_ascii_alphabetic())
        && text.contains('.')
        && labels.all(is_label)
}

/// The cues that are there more often than before.
pub(super) fn new_cues(old: &Cues, new: &Cues) -> Vec<String> {
    let more = new.0.iter().filter(|(cue, count)| **count > old.0.get(*cue).copied().unwrap_or(0));
    more.map(|(cue, _)| format!("the text now {cue}")).collect()
}
