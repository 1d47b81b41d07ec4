//! Finds texts in a stream of bytes, in every form in which a server may repeat them.
//!
//! A text is found as it is, with percent signs, with the escapes of JSON, or in any mixture of these; its marks also with those of
//! HTML, C and shells; in hexadecimal of either case; and in base64 of either alphabet, wherever it stands in a longer text, where
//! the marks of base64 may be escaped in turn. All forms of all texts are one automaton, which goes through the bytes once and
//! keeps every beginning that may still become a text. So a text is found across any borders, and no more is held back than what
//! may be part of one.
//!
//! Residual: other encodings, an encoding of an encoding, texts that are split by other bytes, and parts of a text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use zeroize::{Zeroize as _, Zeroizing};

/// What forms are written with, besides letters, digits and marks of a text itself. The same for every text: base64 has marks that
/// are written otherwise somewhere for some texts alone, and which ones these are is not told.
const MARKS_OF_FORMS: &[u8] = b"+/-_%\\&#;";
/// How many bytes a form has for one of a text at most: base64 of which each character is escaped as JSON does.
const LONGEST_SPELLING: usize = 9;

/// How letters are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// As they are.
    Exact,
    /// Capitals for small letters: names of hosts.
    Ignored,
}

/// The automaton.
pub(crate) struct Finder {
    states: Vec<State>,
    starts: Vec<u32>,
    /// By the byte that a form begins with, what follows it.
    begun: Vec<Vec<u32>>,
    /// Marks of the texts: what in them is neither letter nor digit.
    marks: [bool; 256],
    /// No form of a text is longer.
    longest: usize,
}

#[derive(Default)]
struct State {
    edges: Vec<Edge>,
    /// Which text is complete here.
    found: Option<usize>,
}

struct Edge {
    byte: u8,
    folds: bool,
    to: u32,
}

/// A text that was found: which, and where its bytes are in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) text: usize,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// How far a search has come in one stream.
#[derive(Default)]
pub(crate) struct Search {
    live: Vec<(u32, u64)>,
    next: Vec<(u32, u64)>,
    at: u64,
}

impl Finder {
    /// Looks for these texts.
    pub(crate) fn new<'a>(texts: impl IntoIterator<Item = &'a [u8]>, case: Case) -> Self {
        let (states, starts, begun) = (Vec::new(), Vec::new(), vec![Vec::new(); 256]);
        let mut finder = Self { states, starts, begun, marks: [false; 256], longest: 0 };
        for (number, text) in texts.into_iter().enumerate().filter(|(_, text)| !text.is_empty()) {
            finder.longest = finder.longest.max((text.len() + 2) * LONGEST_SPELLING);
            for byte in text.iter().chain(MARKS_OF_FORMS) {
                if let Some(mark) = finder.marks.get_mut(usize::from(*byte)) {
                    *mark = !byte.is_ascii_alphanumeric();
                }
            }
            finder.add(number, text.iter().map(|byte| in_text(*byte)), case);
            finder.add(number, text.iter().map(|byte| in_hex(*byte)), case);
            for offset in 0..3 {
                let inner = in_base64(text, offset);
                finder.add(number, inner.iter().map(|byte| in_base64_text(*byte)), case);
            }
        }
        for start in &finder.starts {
            for edge in finder.states.get(*start as usize).into_iter().flat_map(|state| &state.edges) {
                let spelled = [edge.byte, edge.byte.to_ascii_uppercase(), edge.byte.to_ascii_lowercase()];
                for byte in spelled.into_iter().filter(|byte| *byte == edge.byte || edge.folds) {
                    if let Some(begun) = finder.begun.get_mut(usize::from(byte))
                        && !begun.contains(&edge.to)
                    {
                        begun.push(edge.to);
                    }
                }
            }
        }
        finder
    }

    /// A chain of units, each of which has one or several spellings.
    fn add(&mut self, text: usize, units: impl Iterator<Item = Vec<Spelling>>, case: Case) {
        let start = self.state();
        let mut at = start;
        for spellings in units {
            let after = self.state();
            for Spelling { bytes, folds } in spellings {
                let folds = folds || case == Case::Ignored;
                let mut from = at;
                for (index, byte) in bytes.iter().enumerate() {
                    let to = if index + 1 == bytes.len() { after } else { self.state() };
                    if let Some(state) = self.states.get_mut(from as usize) {
                        state.edges.push(Edge { byte: *byte, folds, to });
                    }
                    from = to;
                }
            }
            at = after;
        }
        if at != start {
            self.starts.push(start);
            if let Some(state) = self.states.get_mut(at as usize) {
                state.found = Some(text);
            }
        }
    }

    fn state(&mut self) -> u32 {
        self.states.push(State::default());
        u32::try_from(self.states.len() - 1).unwrap_or(u32::MAX)
    }

    /// Whether a byte may stand in some form of a text with such marks. Letters and digits all may: which of them a text
    /// has is not told.
    pub(crate) fn may_be_part(&self, byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || self.marks.get(usize::from(byte)).copied().unwrap_or(false)
    }

    /// No form of a text is longer, whatever its characters are.
    pub(crate) const fn longest(&self) -> usize {
        self.longest
    }

    /// Whether one of the texts is in these bytes.
    pub(crate) fn is_in(&self, bytes: &[u8]) -> bool {
        let mut any = false;
        Search::default().feed(self, bytes, |_| any = true);
        any
    }
}

/// What was looked for may be a secret.
impl Drop for Finder {
    fn drop(&mut self) {
        self.states.iter_mut().flat_map(|state| &mut state.edges).for_each(|edge| edge.byte.zeroize());
    }
}

impl Search {
    /// Goes on with more bytes and tells what was found in them.
    pub(crate) fn feed(&mut self, finder: &Finder, bytes: &[u8], mut tell: impl FnMut(Found)) {
        for byte in bytes {
            let begun = finder.begun.get(usize::from(*byte)).map(Vec::as_slice).unwrap_or_default();
            if !self.live.is_empty() || !begun.is_empty() {
                self.step(finder, *byte, begun, &mut tell);
            }
            self.at += 1;
        }
    }

    fn step(&mut self, finder: &Finder, byte: u8, begun: &[u32], tell: &mut impl FnMut(Found)) {
        let Self { live, next, at } = self;
        next.clear();
        let mut reach = |to: u32, start: u64| {
            if next.contains(&(to, start)) {
                return;
            }
            match finder.states.get(to as usize).and_then(|state| state.found) {
                Some(text) => tell(Found { text, start, end: *at + 1 }),
                None => next.push((to, start)),
            }
        };
        for (state, start) in live.iter().copied() {
            for edge in finder.states.get(state as usize).into_iter().flat_map(|state| &state.edges) {
                if edge.byte == byte || (edge.folds && edge.byte.eq_ignore_ascii_case(&byte)) {
                    reach(edge.to, start);
                }
            }
        }
        begun.iter().for_each(|to| reach(*to, *at));
        std::mem::swap(live, next);
    }

    /// Where the earliest beginning stands that may still become a text.
    pub(crate) fn earliest(&self) -> Option<u64> {
        self.live.iter().map(|(_, start)| *start).min()
    }
}

/// One way to write a unit.
struct Spelling {
    bytes: Zeroizing<Vec<u8>>,
    /// Whether capitals may stand for small letters.
    folds: bool,
}

impl Spelling {
    fn exact(bytes: &[u8]) -> Self {
        Self { bytes: Zeroizing::new(bytes.to_vec()), folds: false }
    }

    fn folded(bytes: &[u8]) -> Self {
        Self { bytes: Zeroizing::new(bytes.to_vec()), folds: true }
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn hex(byte: u8) -> [u8; 2] {
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0');
    [digit(byte >> 4), digit(byte & 15)]
}

/// A byte of a text: itself, with a percent sign, or as JSON may write it.
fn in_text(byte: u8) -> Vec<Spelling> {
    let [high, low] = hex(byte);
    let mut all = vec![
        Spelling::exact(&[byte]),
        Spelling::folded(&[b'%', high, low]),
        Spelling::folded(&[b'\\', b'u', b'0', b'0', high, low]),
    ];
    if byte == b' ' {
        all.push(Spelling::exact(b"+"));
    }
    if is_escaped(byte) {
        all.extend(in_other_marks(byte));
    }
    all
}

/// Whether a byte is a mark that is written otherwise somewhere. Those of most tokens are not.
fn is_escaped(byte: u8) -> bool {
    !byte.is_ascii_alphanumeric() && !b"-._~".contains(&byte)
}

/// A mark as JSON, C, shells and HTML may write it.
fn in_other_marks(byte: u8) -> Vec<Spelling> {
    let [high, low] = hex(byte);
    let named: &[u8] = match byte {
        b'&' => b"&amp;",
        b'<' => b"&lt;",
        b'>' => b"&gt;",
        b'"' => b"&quot;",
        b'\'' => b"&apos;",
        _ => &[],
    };
    let number = Zeroizing::new(format!("&#{byte};"));
    let padded = Zeroizing::new(format!("&#{byte:03};"));
    let mut all = vec![
        Spelling::exact(&[b'\\', byte]),
        Spelling::folded(&[b'\\', b'x', high, low]),
        Spelling::folded(&[b'&', b'#', b'x', high, low, b';']),
        Spelling::exact(number.as_bytes()),
    ];
    if padded != number {
        all.push(Spelling::exact(padded.as_bytes()));
    }
    if !named.is_empty() {
        all.push(Spelling::exact(named));
    }
    all
}

fn in_hex(byte: u8) -> Vec<Spelling> {
    vec![Spelling::folded(&hex(byte))]
}

/// The characters that a text always has in base64 when `offset` bytes stand before it.
pub(crate) fn in_base64(text: &[u8], offset: usize) -> Zeroizing<Vec<u8>> {
    let mut padded = Zeroizing::new(vec![0; offset + text.len()]);
    padded.iter_mut().skip(offset).zip(text).for_each(|(to, from)| *to = *from);
    let encoded = Zeroizing::new(STANDARD_NO_PAD.encode(&*padded).into_bytes());
    let (first, bits) = ((offset * 8).div_ceil(6), padded.len() * 8);
    Zeroizing::new(encoded.get(first..bits / 6).unwrap_or_default().to_vec())
}

/// A character of base64 in either alphabet, and as it is escaped in a URL or in JSON.
fn in_base64_text(byte: u8) -> Vec<Spelling> {
    match byte {
        b'+' => [in_text(b'+'), in_text(b'-')].into_iter().flatten().collect(),
        b'/' => [in_text(b'/'), in_text(b'_')].into_iter().flatten().collect(),
        _ => vec![Spelling::exact(&[byte])],
    }
}

#[cfg(test)]
mod tests;
