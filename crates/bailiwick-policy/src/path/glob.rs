//! One component's glob: tokens, reading, printing, matching.
//!
//! A class that holds a single character is that character, so `[*]` is a literal star; a glob whose tokens are
//! all characters is a literal component.

use std::fmt::{self, Write as _};

use super::Part;
use super::parse::variable_name;
use crate::finding::{Code, Finding, Span};

/// A glob that matches one component; never all characters (that is a literal).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Glob(Box<[Token]>);

/// One element of a glob.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Token {
    /// Exactly this character.
    Char(char),
    /// `?`: any one character.
    One,
    /// `*`: any characters, none included.
    Many,
    /// `[…]`: one character in, or not in, the ranges.
    Class(Class),
}

/// A set of characters: inclusive ranges, sorted and apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    negated: bool,
    ranges: Box<[(char, char)]>,
}

impl Glob {
    /// The elements.
    #[must_use]
    pub const fn tokens(&self) -> &[Token] {
        &self.0
    }

    /// Whether the glob matches the whole of `name`.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let (mut tokens, mut rest) = (self.tokens(), name);
        let mut retry: Option<(&[Token], &str)> = None;
        loop {
            if let Some((Token::Many, after)) = tokens.split_first() {
                tokens = after;
                retry = Some((after, rest));
                continue;
            }
            let step = tokens.split_first().zip(split_char(rest));
            match step {
                Some(((token, after), (c, tail))) if token.takes(c) => (tokens, rest) = (after, tail),
                _ if tokens.is_empty() && rest.is_empty() => return true,
                _ => {
                    let Some((after, from)) = retry else { return false };
                    let Some((_, tail)) = split_char(from) else { return false };
                    retry = Some((after, tail));
                    (tokens, rest) = (after, tail);
                }
            }
        }
    }
}

impl Token {
    /// Whether the token accepts `c` as its one character (for `Many`: as one of its characters).
    pub(super) fn takes(&self, c: char) -> bool {
        match self {
            Self::Char(own) => *own == c,
            Self::One | Self::Many => true,
            Self::Class(class) => class.contains(c),
        }
    }
}

impl Class {
    /// Whether the class accepts `c`.
    #[must_use]
    pub fn contains(&self, c: char) -> bool {
        self.ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != self.negated
    }

    /// The ranges, before negation.
    #[must_use]
    pub const fn ranges(&self) -> &[(char, char)] {
        &self.ranges
    }

    fn new(negated: bool, mut ranges: Vec<(char, char)>) -> Self {
        ranges.sort_unstable();
        let mut merged: Vec<(char, char)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if u32::from(low) <= u32::from(last.1) + 1 => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Self { negated, ranges: merged.into_boxed_slice() }
    }

    fn into_token(self) -> Token {
        match (self.negated, &*self.ranges) {
            (false, [(low, high)]) if low == high => Token::Char(*low),
            _ => Token::Class(self),
        }
    }
}

fn split_char(text: &str) -> Option<(char, &str)> {
    let mut chars = text.chars();
    chars.next().map(|c| (c, chars.as_str()))
}

/// Reads one component that is neither empty nor `**`.
pub(super) fn parse_component(text: &str, span: Span) -> Result<Part, Finding> {
    if !text.contains(['*', '?', '[']) {
        return Ok(Part::Literal(text.into()));
    }
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some((c, tail)) = split_char(rest) {
        rest = tail;
        let token = match c {
            '*' => Token::Many,
            '?' => Token::One,
            '[' => {
                let (class, tail) = parse_class(rest).map_err(|why| malformed(text, span, why))?;
                rest = tail;
                class.into_token()
            }
            other => Token::Char(other),
        };
        if !(token == Token::Many && tokens.last() == Some(&Token::Many)) {
            tokens.push(token);
        }
    }
    literal_or_glob(tokens, text, span)
}

fn literal_or_glob(tokens: Vec<Token>, text: &str, span: Span) -> Result<Part, Finding> {
    let literal: Option<String> = tokens
        .iter()
        .map(|token| match token {
            Token::Char(c) => Some(*c),
            Token::One | Token::Many | Token::Class(_) => None,
        })
        .collect();
    match literal {
        Some(name) if name == "." || name == ".." => {
            Err(Finding::new(Code::PathDot, format!("`{text}` is `{name}` in disguise"))
                .at(span)
                .help("write the path it leads to"))
        }
        Some(name) => Ok(Part::Literal(name.into_boxed_str())),
        None => Ok(Part::Glob(Glob(tokens.into_boxed_slice()))),
    }
}

/// The class after `[`, and what follows its `]`.
fn parse_class(text: &str) -> Result<(Class, &str), &'static str> {
    let (negated, mut rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
    if rest.starts_with('^') && !negated {
        return Err("write `[!…]` to negate a class, or put `^` later in it");
    }
    let mut ranges = Vec::new();
    loop {
        let (low, tail) = split_char(rest).ok_or("the class is not closed by `]`")?;
        rest = tail;
        if low == ']' && !ranges.is_empty() {
            return Ok((Class::new(negated, ranges), rest));
        }
        if low == '[' && rest.starts_with([':', '.', '=']) {
            return Err("named classes such as `[:alpha:]` are not known, only characters and ranges");
        }
        let mut high = low;
        if let Some(after) = rest.strip_prefix('-')
            && let Some((end, tail)) = split_char(after)
            && end != ']'
        {
            high = end;
            rest = tail;
        }
        if high < low {
            return Err("a range in the class runs backwards");
        }
        ranges.push((low, high));
    }
}

fn malformed(text: &str, span: Span, why: &str) -> Finding {
    Finding::new(Code::PathGlob, format!("`{text}` is not a glob: {why}"))
        .at(span)
        .help("close every `[` with `]`; write a literal `[` as `[[]`, `*` as `[*]`, `?` as `[?]`")
}

/// Prints a literal name so that it reads back as the same literal.
pub(super) fn write_literal(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    if variable_name(name).is_some() {
        let (first, rest) = split_char(name).unwrap_or_default();
        return write!(f, "[{first}]{rest}");
    }
    name.chars().try_for_each(|c| write_char(f, c))
}

fn write_char(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    match c {
        '*' | '?' | '[' => write!(f, "[{c}]"),
        other => f.write_char(other),
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut after_one = false;
        for token in self.tokens() {
            after_one |= *token == Token::One;
            match token {
                // `?name=` would read as a refinement.
                Token::Char('=') if after_one => f.write_str("[=]")?,
                Token::Char(c) => write_char(f, *c)?,
                Token::One => f.write_char('?')?,
                Token::Many => f.write_char('*')?,
                Token::Class(class) => write!(f, "{class}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Class {
    /// `]` can only stand first, `-` first or last, `!` and `^` not first; ranges are split where they must be.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (body, specials) = self.split_specials();
        f.write_str(if self.negated { "[!" } else { "[" })?;
        let first = specials.contains(']');
        if first {
            f.write_char(']')?;
        }
        for (low, high) in &body {
            if low == high { f.write_char(*low)? } else { write!(f, "{low}-{high}")? }
        }
        let dash_first = body.is_empty() && !first;
        let marks: String = specials.chars().filter(|c| matches!(c, '!' | '^')).collect();
        match (specials.contains('-'), dash_first) {
            (true, true) => write!(f, "-{marks}]"),
            (true, false) => write!(f, "{marks}-]"),
            (false, _) => write!(f, "{marks}]"),
        }
    }
}

impl Class {
    /// The ranges without the characters that mean something in a class, and those characters.
    fn split_specials(&self) -> (Vec<(char, char)>, String) {
        let (mut body, mut specials) = (Vec::new(), String::new());
        for &(mut low, mut high) in &self.ranges {
            while matches!(low, ']' | '-' | '!' | '^') && low <= high {
                specials.push(low);
                low = char::from_u32(u32::from(low) + 1).unwrap_or(char::MAX);
            }
            if high == ']' && low < high {
                specials.push(']');
                high = '\\';
            }
            if low <= high {
                body.push((low, high));
            }
        }
        (body, specials)
    }
}

/// Whether the components are matched by the parts, `**` taking zero or more of them.
pub(super) fn matches_parts<'a>(parts: &[Part], components: impl Iterator<Item = &'a str>) -> bool {
    let mut live = closure(parts, 1);
    for name in components {
        let mut next = 0_u64;
        for (index, part) in parts.iter().enumerate() {
            if live & (1 << index) == 0 {
                continue;
            }
            match part {
                Part::Deep => next |= 1 << index,
                Part::Literal(own) if **own == *name => next |= 1 << (index + 1),
                Part::Glob(glob) if glob.matches(name) => next |= 1 << (index + 1),
                Part::Literal(_) | Part::Glob(_) => {}
            }
        }
        live = closure(parts, next);
        if live == 0 {
            return false;
        }
    }
    live & (1 << parts.len()) != 0
}

/// Adds the positions reachable by letting `**` take nothing.
fn closure(parts: &[Part], mut live: u64) -> u64 {
    for (index, part) in parts.iter().enumerate() {
        if *part == Part::Deep && live & (1 << index) != 0 {
            live |= 1 << (index + 1);
        }
    }
    live
}
