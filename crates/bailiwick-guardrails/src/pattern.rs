//! Patterns that cost nothing until a text could match: checked when read, compiled when first needed.
//!
//! Most patterns contain a word that every match must contain. Looking for that word is hundreds of times cheaper
//! than compiling a pattern, and a hook process judges one call only. A pattern of rules that this session has accepted
//! before is not checked again; should it be none after all, it fails when it is first needed, and the call with it.

use std::sync::OnceLock;

use regex::Regex;
use regex_syntax::ast::{Ast, RepetitionKind, RepetitionRange};
use regex_syntax::hir::{Hir, HirKind};

use crate::searched::SearchedText;

/// The fewest bytes of a word worth looking for.
const MIN_NEEDLE: usize = 2;
/// The most alternatives that are looked for one by one.
const MAX_NEEDLES: usize = 16;

/// One pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: String,
    /// One of these is in every text that matches; `None` if nothing is known.
    needles: Option<Vec<String>>,
    regex: OnceLock<Option<Regex>>,
}

/// What is wrong with a pattern, in one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct PatternError(String);

/// A pattern that cannot be compiled after all: too large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TooLarge(pub(crate) String);

impl Pattern {
    /// Checks a pattern.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub(crate) fn new(text: &str) -> Result<Self, PatternError> {
        let needles = match plain_syntax(text) {
            Some(ast) => needles_of_syntax(&ast),
            None => {
                let hir = regex_syntax::parse(text).map_err(|error| PatternError(reason(&error)))?;
                needles(&hir)
            }
        };
        Ok(Self { text: text.to_owned(), needles, regex: OnceLock::new() })
    }

    /// A pattern that was found good before. Its word is looked for without parsing it.
    pub(crate) fn checked_before(text: &str) -> Self {
        let needles = match plain_word(text) {
            Some(word) => Some(vec![word.to_owned()]),
            None => return Self::new(text).unwrap_or_else(|_| Self::unknown(text)),
        };
        Self { needles, ..Self::unknown(text) }
    }

    fn unknown(text: &str) -> Self {
        Self { text: text.to_owned(), needles: None, regex: OnceLock::new() }
    }

    /// Whether the pattern matches somewhere in the text.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool, TooLarge> {
        if !self.may_match_by(|needle| text.contains(needle)) {
            return Ok(false);
        }
        self.compiled().map(|regex| regex.is_match(text))
    }

    /// Whether it matches somewhere in one of the texts.
    pub(crate) fn is_match_any(&self, texts: &[SearchedText<'_>]) -> Result<bool, TooLarge> {
        for text in texts {
            if self.may_match(text) && self.compiled()?.is_match(text.text()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a text could match, found out without the pattern itself.
    pub(crate) fn may_match(&self, text: &SearchedText<'_>) -> bool {
        self.may_match_by(|needle| text.contains(needle))
    }

    fn may_match_by(&self, contains: impl Fn(&str) -> bool) -> bool {
        self.needles.as_ref().is_none_or(|needles| needles.iter().any(|needle| contains(needle)))
    }

    /// Compiles it now.
    pub(crate) fn compiled(&self) -> Result<&Regex, TooLarge> {
        let regex = self.regex.get_or_init(|| Regex::new(&self.text).ok());
        regex.as_ref().ok_or_else(|| TooLarge(self.text.clone()))
    }
}

fn reason(error: &regex_syntax::Error) -> String {
    match error {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        _ => "it is not a regular expression".to_owned(),
    }
}

/// The syntax of a pattern that cannot fail later: without flags and named classes of characters, everything that
/// parses has a meaning. Finding that meaning costs as much again, and most patterns of a file are never matched.
fn plain_syntax(text: &str) -> Option<Ast> {
    let mut groups = text.split("(?").skip(1);
    let special = text.contains("\\p") || text.contains("\\P") || groups.any(|rest| !rest.starts_with(':'));
    if special { None } else { regex_syntax::ast::parse::Parser::new().parse(text).ok() }
}

/// The longest word that stands outside of all groups and alternatives of a well-formed pattern: every match contains it.
/// Nothing is found in a pattern with flags, classes within classes, or escapes of several characters.
fn plain_word(pattern: &str) -> Option<&str> {
    if pattern.split("(?").skip(1).any(|rest| !rest.starts_with(':')) {
        return None;
    }
    let (mut best, mut start, mut depth): (&str, Option<usize>, usize) = ("", None, 0);
    let mut signs = pattern.char_indices().peekable();
    while let Some((at, sign)) = signs.next() {
        if depth == 0 && !r"\[](){}?*+|^$.".contains(sign) {
            start = start.or(Some(at));
            continue;
        }
        let optional = matches!(sign, '?' | '*' | '{');
        let word = start.take().and_then(|start| pattern.get(start..at)).unwrap_or_default();
        let repeated = word.char_indices().last().filter(|_| optional).map(|(last, _)| last);
        let word = repeated.and_then(|last| word.get(..last)).unwrap_or(word);
        best = if word.len() > best.len() { word } else { best };
        match sign {
            '|' if depth == 0 => return None,
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            '{' => while signs.next()?.1 != '}' {},
            '\\' => {
                signs.next().filter(|(_, escaped)| !"pPxuU".contains(*escaped))?;
            }
            '[' => class_end(&mut signs)?,
            _ => {}
        }
    }
    let word = start.and_then(|start| pattern.get(start..)).unwrap_or_default();
    let best = if word.len() > best.len() { word } else { best };
    (best.len() >= MIN_NEEDLE).then_some(best)
}

/// Skips a class of characters whose `[` has been read; nothing for one that is not simple.
fn class_end(signs: &mut std::iter::Peekable<std::str::CharIndices<'_>>) -> Option<()> {
    signs.next_if(|(_, sign)| *sign == '^');
    signs.peek().filter(|(_, sign)| *sign != ']')?;
    loop {
        match signs.next()?.1 {
            ']' => return Some(()),
            '[' => return None,
            '\\' => drop(signs.next()?),
            _ => {}
        }
    }
}

/// Words of which every match contains one, by the syntax alone.
fn needles_of_syntax(ast: &Ast) -> Option<Vec<String>> {
    match ast {
        Ast::Group(group) => needles_of_syntax(&group.ast),
        Ast::Repetition(repetition) if is_needed(&repetition.op.kind) => needles_of_syntax(&repetition.ast),
        Ast::Concat(concat) => {
            let mut found: Vec<Vec<String>> = concat.asts.iter().filter_map(needles_of_syntax).collect();
            let mut word = String::new();
            for part in &concat.asts {
                if let Ast::Literal(literal) = part {
                    word.push(literal.c);
                } else {
                    found.extend(worth_looking(std::mem::take(&mut word)));
                }
            }
            found.extend(worth_looking(word));
            found.into_iter().max_by_key(|words| worth(words))
        }
        Ast::Alternation(alternation) => {
            let all: Option<Vec<Vec<String>>> = alternation.asts.iter().map(needles_of_syntax).collect();
            let all: Vec<String> = all?.into_iter().flatten().collect();
            (all.len() <= MAX_NEEDLES).then_some(all)
        }
        Ast::Empty(_)
        | Ast::Flags(_)
        | Ast::Literal(_)
        | Ast::Dot(_)
        | Ast::Assertion(_)
        | Ast::ClassUnicode(_)
        | Ast::ClassPerl(_)
        | Ast::ClassBracketed(_)
        | Ast::Repetition(_) => None,
    }
}

fn worth_looking(word: String) -> Option<Vec<String>> {
    (word.len() >= MIN_NEEDLE).then(|| vec![word])
}

/// Whether what is repeated is there at least once.
const fn is_needed(kind: &RepetitionKind) -> bool {
    match kind {
        RepetitionKind::ZeroOrOne | RepetitionKind::ZeroOrMore => false,
        RepetitionKind::OneOrMore => true,
        RepetitionKind::Range(
            RepetitionRange::Exactly(least)
            | RepetitionRange::AtLeast(least)
            | RepetitionRange::Bounded(least, _),
        ) => *least > 0,
    }
}

/// Words of which every match contains one.
fn needles(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Literal(literal) => {
            let word = std::str::from_utf8(&literal.0).ok()?;
            (word.len() >= MIN_NEEDLE).then(|| vec![word.to_owned()])
        }
        HirKind::Capture(capture) => needles(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => needles(&repetition.sub),
        HirKind::Concat(parts) => parts.iter().filter_map(needles).max_by_key(|words| worth(words)),
        HirKind::Alternation(parts) => {
            let all: Option<Vec<Vec<String>>> = parts.iter().map(needles).collect();
            let all: Vec<String> = all?.into_iter().flatten().collect();
            (all.len() <= MAX_NEEDLES).then_some(all)
        }
        HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) | HirKind::Repetition(_) => None,
    }
}

/// How much a set of words narrows: its shortest word, less what it costs to look for many.
fn worth(words: &[String]) -> (usize, usize) {
    (words.iter().map(String::len).min().unwrap_or(0), usize::MAX - words.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn needles_are_words_that_every_match_has() {
        let of = |text| Pattern::new(text).unwrap().needles;
        assert_eq!(of(r"^rm\s+-rf?"), Some(vec!["-r".to_owned()]));
        assert_eq!(of(r"git push.*(--force|-f)\b"), Some(vec!["git push".to_owned()]));
        assert_eq!(of("(abc|def)+"), Some(vec!["abc".to_owned(), "def".to_owned()]));
        assert_eq!(of("(abc|d)"), None);
        assert_eq!(of("(abc)?"), None);
        assert_eq!(of("(?i)abc"), None);
    }

    #[test]
    fn words_are_found_without_parsing() {
        let of = |text| plain_word(text);
        assert_eq!(of(r"^tool12\s+(?:--force|-f)\b"), Some("tool12"));
        assert_eq!(of(r"git push.*(--force|-f)\b"), Some("git push"));
        assert_eq!(of(r"^rm\s+-rf?"), Some("rm"));
        assert_eq!(of("abc?d*ef+gh"), Some("ab"));
        assert_eq!(of(r"[ab]cd{2}x\.env"), Some("env"));
        for none in ["abc|def", "(abc|def)", "(?i)abc", r"\x41bcd", "a[[:alpha:]]bcd", "a?b*"] {
            assert_eq!(of(none), None, "{none}");
        }
        let broken = Pattern::checked_before("abc(");
        assert!(
            broken.is_match("abc").is_err(),
            "a pattern that is none after all is no pattern that never matches"
        );
    }

    #[test]
    fn a_pattern_that_is_none_says_why() {
        assert_eq!(Pattern::new("a(").unwrap_err().to_string(), "unclosed group");
        assert!(Pattern::new(r"\p{nope}").is_err());
        let large = Pattern::new(r"(\w{1000}){1000}").unwrap();
        assert!(large.is_match("x").is_err(), "found when it is needed");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The shortcut never changes the answer.
        #[test]
        fn needles_change_no_answer(
            regex in r"(\^)?([ab]{1,3}|\(ab\|ba\)|\(aa\)\?|\[ab\]|a\*|\(b\|aba\)\+|\(\?:ab\)\{0,2\}|\(\?i:ab\)|\\w|b\{2\}){1,4}(\$)?",
            text in "[abc]{0,12}",
        ) {
            if let Ok(plain) = Regex::new(&regex) {
                prop_assert_eq!(Pattern::new(&regex).unwrap().is_match(&text), Ok(plain.is_match(&text)));
                prop_assert_eq!(Pattern::checked_before(&regex).is_match(&text), Ok(plain.is_match(&text)));
            }
        }

        /// A word that is found without parsing is in every match, whatever the pattern.
        #[test]
        fn plain_words_are_in_every_match(
            regex in r"([ab(|)*+?^$.{}\[\]\\-]|\(\?:|\\[swbdDWSBpPx]|\[\^?a-b\]|ab|\{0,1\}|b\{0\}|\\\.|a\{1\}){0,12}",
            text in "[ab.]{0,12}",
        ) {
            if let (Ok(compiled), Some(word)) = (Regex::new(&regex), plain_word(&regex)) {
                prop_assert!(!compiled.is_match(&text) || text.contains(word), "{} {}", regex, word);
            }
        }

        /// What is checked by its syntax alone is what the whole check says.
        #[test]
        fn a_pattern_is_checked_as_it_is_compiled(regex in r"([ab(|)*+?^$.,:i&0-9{}\[\]\\-]|\(\?:|\\[swbdDWSBpPx]|\[\^?a-|&&){0,12}") {
            prop_assert_eq!(Pattern::new(&regex).is_ok(), regex_syntax::parse(&regex).is_ok(), "{}", regex);
        }
    }
}
