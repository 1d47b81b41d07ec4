//! A text in which many words are looked for: hundreds of rules each have one, and nearly none is there.
//!
//! Which pairs of neighbouring bytes the text has is found out once. A word with a pair that the text does not have is
//! not in it, which takes a few nanoseconds to see; only the others are looked for.

use std::borrow::Cow;

/// How many kinds of pairs are told apart; pairs that fall together cost a search, and change no answer.
const KINDS: usize = 4096;

/// A text, with the pairs of bytes in it.
#[derive(Debug)]
pub(crate) struct SearchedText<'t> {
    text: Cow<'t, str>,
    pairs: [u64; KINDS / 64],
}

impl<'t> SearchedText<'t> {
    pub(crate) fn new(text: impl Into<Cow<'t, str>>) -> Self {
        let text = text.into();
        let mut pairs = [0; KINDS / 64];
        for (word, bit) in kinds(&text) {
            if let Some(word) = pairs.get_mut(word) {
                *word |= bit;
            }
        }
        Self { text, pairs }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether a word is in the text.
    pub(crate) fn contains(&self, word: &str) -> bool {
        let has = |(at, bit): (usize, u64)| self.pairs.get(at).is_some_and(|word| word & bit != 0);
        kinds(word).all(has) && self.text.contains(word)
    }
}

/// The kinds of a text's pairs: which word of the table, and which bit of it.
fn kinds(text: &str) -> impl Iterator<Item = (usize, u64)> {
    let bytes = text.as_bytes();
    bytes.iter().zip(bytes.iter().skip(1)).map(|(one, next)| {
        let kind = (usize::from(*one) * 61 + usize::from(*next)) % KINDS;
        (kind / 64, 1 << (kind % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// What is found is what is there.
        #[test]
        fn pairs_change_no_answer(text in "[a-cé\u{0}-\u{7f}]{0,40}", word in "[a-cé]{0,3}") {
            prop_assert_eq!(SearchedText::new(text.as_str()).contains(&word), text.contains(&word));
        }
    }
}
