//! Takes the values of secrets out of what servers say.
//!
//! Every byte of a value, in whichever form it is found, becomes an asterisk: the length stays, so nothing that counts bytes
//! has to be read or written anew. A byte is passed on once it can be no part of a value any more.
//!
//! What is held back until more comes depends on the kinds of characters alone, never on the value: where a server lets a client
//! choose what it sends and stops in the middle, or where the borders of pieces can be seen, held bytes would otherwise tell the
//! value, one character after the other.
//!
//! Residual: how long the search takes depends on how much of a value is there, by nanoseconds a byte.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::find::{Case, Finder, Search};

/// What stands in the place of each byte of a value.
const INSTEAD: u8 = b'*';

/// Finds the values of a session's secrets. It tells nothing of them.
#[derive(Clone)]
pub(crate) struct Redactor {
    exact: Arc<Finder>,
    /// The same whatever the case of letters: names of fields are put into small letters on their way.
    folded: Arc<Finder>,
}

/// One stream that is redacted.
pub(crate) struct Redaction {
    redactor: Redactor,
    search: Search,
    held: VecDeque<u8>,
    /// Where the held bytes start in the stream.
    from: u64,
    /// What was found and not passed on yet: starts and ends, the earliest first.
    found: VecDeque<(u64, u64)>,
}

impl Redactor {
    /// Looks for these values.
    pub(crate) fn new<'v>(values: impl Iterator<Item = &'v [u8]> + Clone) -> Self {
        let finder = |case| Arc::new(Finder::new(values.clone(), case));
        Self { exact: finder(Case::Exact), folded: finder(Case::Ignored) }
    }

    /// Whether the name of a field has a value in it.
    pub(crate) fn is_in_name(&self, name: &str) -> bool {
        self.folded.is_in(name.as_bytes())
    }

    /// A text without values.
    pub(crate) fn redact(&self, text: &[u8]) -> Vec<u8> {
        let mut redaction = self.stream();
        let mut done = redaction.push(text);
        done.extend(redaction.finish());
        done
    }

    pub(crate) fn stream(&self) -> Redaction {
        Redaction {
            redactor: self.clone(),
            search: Search::default(),
            held: VecDeque::new(),
            from: 0,
            found: VecDeque::new(),
        }
    }
}

impl Redaction {
    /// Takes more of the stream, and gives what can be passed on.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Self { redactor, search, found, .. } = self;
        search.feed(&redactor.exact, bytes, |one| found.push_back((one.start, one.end)));
        self.held.extend(bytes);
        self.found.make_contiguous().sort_unstable();
        let end = self.from + u64::try_from(self.held.len()).unwrap_or(u64::MAX);
        let limit = end - self.open_end();
        self.release(self.search.earliest().map_or(limit, |earliest| earliest.min(limit)))
    }

    /// How many bytes at the end could begin some value of such lengths and marks, whichever it is.
    fn open_end(&self) -> u64 {
        let finder = &self.redactor.exact;
        let newest = self.held.iter().rev().take(finder.longest());
        let count = newest.take_while(|byte| finder.may_be_part(**byte)).count();
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// The rest of the stream.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.search = Search::default();
        self.release(u64::MAX)
    }

    /// Passes on what stands before `limit`.
    fn release(&mut self, limit: u64) -> Vec<u8> {
        let mut done = Vec::new();
        while self.from < limit {
            let Some(byte) = self.held.pop_front() else { break };
            while self.found.front().is_some_and(|(_, end)| *end <= self.from) {
                self.found.pop_front();
            }
            let covered = self.found.iter().take_while(|(start, _)| *start <= self.from);
            let is_covered = { covered }.any(|(_, end)| self.from < *end);
            done.push(if is_covered { INSTEAD } else { byte });
            self.from += 1;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn redactor(texts: &[&str]) -> Redactor {
        Redactor::new(texts.iter().map(|text| text.as_bytes()))
    }

    fn in_pieces(redactor: &Redactor, text: &str, size: usize) -> String {
        let mut stream = redactor.stream();
        let mut done: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| stream.push(piece)).collect();
        done.extend(stream.finish());
        String::from_utf8(done).unwrap()
    }

    #[test]
    fn a_value_becomes_asterisks_whatever_the_pieces() {
        let redactor = redactor(&["0123456789abcdef"]);
        let text = "x 0123456789abcdef0123456789abcdef 01234 %30123456789abcdef y0123456789abcde";
        let clean = "x ******************************** 01234 ****************** y0123456789abcde";
        for size in 1..text.len() {
            assert_eq!(in_pieces(&redactor, text, size), clean, "{size}");
        }
        assert_eq!(redactor.redact(text.as_bytes()), clean.as_bytes());
    }

    #[test]
    fn a_value_inside_another_covers_no_less() {
        let redactor = redactor(&["0123456789abcdef", "9abcdef-and-longer-than-that", "def-and"]);
        for size in 1..40 {
            assert_eq!(
                in_pieces(&redactor, "<0123456789abcdef-and-longer-than-that>", size),
                "<*************************************>"
            );
            assert_eq!(in_pieces(&redactor, "<9abcdef-and-longer>", size), "<9abc*******-longer>");
        }
    }

    /// What comes out at each piece, in which the values themselves are no part.
    fn lengths(redactor: &Redactor, pieces: &[String]) -> Vec<usize> {
        let mut stream = redactor.stream();
        pieces.iter().map(|piece| stream.push(piece.as_bytes()).len()).collect()
    }

    #[test]
    fn what_is_held_back_tells_nothing_of_a_value() {
        let value = "ghp_qXv83LmZ+/0PwRk5";
        let redactor = redactor(&[value]);
        let encoded = STANDARD.encode(value);
        let forms: [fn(&str) -> String; 4] = [
            str::to_owned,
            |text| text.bytes().map(|byte| format!("\\u{byte:04x}")).collect(),
            |text| text.bytes().map(|byte| format!("{byte:02x}")).collect(),
            |text| STANDARD.encode(text),
        ];
        for length in 1..value.len() {
            // The beginning of the value, and one that is as good a guess.
            let begun = |text: &str, length: usize| text.get(..length).unwrap().to_owned();
            let right = begun(value, length);
            let other = if right.ends_with('q') { 'x' } else { 'q' };
            let wrong = format!("{}{other}", begun(value, length - 1));
            for form in forms {
                let said = |guess: &str| {
                    ["x ".to_owned() + &form(guess), "\n".to_owned(), form(guess), " ".to_owned()]
                };
                assert_eq!(lengths(&redactor, &said(&right)), lengths(&redactor, &said(&wrong)), "{right}");
            }
            let said = |guess: &str| [begun(&encoded, length) + guess, " ".to_owned()];
            assert_eq!(lengths(&redactor, &said("A")), lengths(&redactor, &said("B")), "{length}");
        }
    }

    #[test]
    fn nothing_is_held_back_for_longer_than_a_value_may_be() {
        let value = "0123456789abcdef";
        let mut stream = redactor(&[value]).stream();
        let given: usize = (0..100).map(|_| stream.push(&[b'7'; 100]).len()).sum();
        assert!(given >= 10_000 - (value.len() + 2) * 9, "{given}");
    }

    #[test]
    fn what_can_be_no_value_is_passed_on_at_once() {
        let mut stream = redactor(&["0123456789abcdef"]).stream();
        assert_eq!(stream.push(b"data: hello\n\n"), b"data: hello\n\n");
        assert_eq!(stream.push(b"data: 0123"), b"data: ");
        assert_eq!(stream.push(b"x\n"), b"0123x\n");
    }
}
