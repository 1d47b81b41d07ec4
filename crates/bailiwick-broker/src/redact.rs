//! Takes the values of secrets out of what servers say.
//!
//! Every byte of a value, in whichever form it is found, becomes an asterisk: the length stays, so nothing that counts bytes
//! has to be read or written anew. A byte is passed on once it can be no part of a value any more.
//!
//! Values are also found as requests had them: within base64, with percent signs, or with the escapes of JSON; servers repeat those
//! in forms of their own. The case of letters does not matter: a server may put what it repeats into small letters.
//!
//! What is held back until more comes depends on the kinds of characters alone, never on the value: where a server lets a client
//! choose what it sends and stops in the middle, or where the borders of pieces can be seen, held bytes would otherwise tell the
//! value, one character after the other.
//!
//! Residual: how long the search takes depends on how much of a value is there, by nanoseconds a byte.

use std::collections::VecDeque;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::find::{Case, Finder, Search, in_base64};
use crate::request::{json_escaped, percent_encode};

/// What stands in the place of each byte of a value.
const INSTEAD: u8 = b'*';

/// A part of what a value became is looked for from this length on, and for values up to this one: each form takes memory.
const PART: usize = 12;
const MOST_SENT: usize = 4 * 1024;

/// Finds the values of a session's secrets. It tells nothing of them.
#[derive(Clone)]
pub(crate) struct Redactor(Arc<Finder>);

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
    pub(crate) fn new<'v>(values: impl Iterator<Item = &'v [u8]>) -> Self {
        let texts: Vec<Zeroizing<Vec<u8>>> = values.flat_map(as_sent).collect();
        Self(Arc::new(Finder::new(texts.iter().map(|text| text.as_slice()), Case::Ignored)))
    }

    /// Whether the name of a field has a value in it.
    pub(crate) fn is_in_name(&self, name: &str) -> bool {
        self.0.is_in(name.as_bytes())
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

/// A value, and what it is in requests.
fn as_sent(value: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    if value.len() > MOST_SENT {
        return vec![Zeroizing::new(value.to_vec())];
    }
    let mut percent = String::with_capacity(value.len() * 3);
    percent_encode(value, &mut percent);
    let parts = (0..3).map(|offset| in_base64(value, offset)).filter(|part| part.len() >= PART);
    let escaped = [percent, json_escaped(value)].map(|text| Zeroizing::new(text.into_bytes()));
    let mut all = vec![Zeroizing::new(value.to_vec())];
    for more in parts.chain(escaped) {
        if !all.contains(&more) {
            all.push(more);
        }
    }
    all
}

impl Redaction {
    /// Takes more of the stream, and gives what can be passed on.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Self { redactor, search, found, .. } = self;
        search.feed(&redactor.0, bytes, |one| found.push_back((one.start, one.end)));
        self.held.extend(bytes);
        self.found.make_contiguous().sort_unstable();
        let end = self.from + u64::try_from(self.held.len()).unwrap_or(u64::MAX);
        let limit = end - self.open_end();
        self.release(self.search.earliest().map_or(limit, |earliest| earliest.min(limit)))
    }

    /// How many bytes at the end could begin some value of such lengths and marks, whichever it is.
    fn open_end(&self) -> u64 {
        let finder = &self.redactor.0;
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

    #[test]
    fn a_value_is_found_in_a_form_of_the_form_that_was_sent() {
        let value = "k9+Zr/3x=\"Qd\\7~Vb Mh2:Wn%5&Ty8";
        let redactor = redactor(&[value]);
        let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
        let mut query = String::new();
        percent_encode(value.as_bytes(), &mut query);
        for user in ["", "u", "me", "you"] {
            for sent in
                [STANDARD.encode(format!("{user}:{value}")), query.clone(), json_escaped(value.as_bytes())]
            {
                for said in
                    [sent.to_ascii_lowercase(), sent.to_ascii_uppercase(), hex(&sent), STANDARD.encode(&sent)]
                {
                    let clean = String::from_utf8(redactor.redact(format!("<{said}>").as_bytes())).unwrap();
                    // Ends of what stands in base64 are parts of other characters too.
                    let shown = clean.bytes().filter(|byte| *byte != b'*').count();
                    assert!(shown <= 2 + 12 + user.len() * 4, "{sent} {said}: {clean}");
                    assert!(clean.len() == said.len() + 2, "{clean}");
                }
            }
        }
        assert_eq!(redactor.redact(b"K9 QD VB MH2"), b"K9 QD VB MH2");
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
        // In base64 it has a third more letters.
        assert!(given >= 10_000 - (value.len() * 4 / 3 + 4) * 9, "{given}");
    }

    #[test]
    fn what_can_be_no_value_is_passed_on_at_once() {
        let mut stream = redactor(&["0123456789abcdef"]).stream();
        assert_eq!(stream.push(b"data: hello\n\n"), b"data: hello\n\n");
        assert_eq!(stream.push(b"data: 0123"), b"data: ");
        assert_eq!(stream.push(b"x\n"), b"0123x\n");
    }
}
