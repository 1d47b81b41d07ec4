//! The pattern of one name: `*`, `?`, `[…]` and plain letters.
//!
//! Bytes of a name that are not UTF-8 are letters of their own. Takes time proportional to the length of name and
//! pattern multiplied, whatever they hold.

/// The pattern of one name.
#[derive(Debug)]
pub(super) struct Pattern {
    tokens: Vec<Token>,
    /// It begins with a dot that is written out, as is needed for names that do.
    hidden: bool,
}

#[derive(Debug)]
enum Token {
    Letter(char),
    Any,
    Many,
    Set { negated: bool, items: Vec<Item> },
}

#[derive(Debug)]
enum Item {
    Range(char, char),
    Class(fn(char) -> bool),
    /// A class that there is none of.
    Nothing,
}

/// Whether a text holds something that can match more than itself.
pub(super) fn is_pattern(text: &str) -> bool {
    let (mut escaped, mut bracket) = (false, false);
    text.chars().any(|c| {
        if std::mem::take(&mut escaped) {
            return false;
        }
        match c {
            '\\' => escaped = true,
            '[' => bracket = true,
            '*' | '?' => return true,
            ']' => return bracket,
            _ => {}
        }
        false
    })
}

/// The text without its escapes.
pub(super) fn unescaped(text: &str) -> String {
    let mut escaped = false;
    let keep = |c: &char| {
        escaped = !escaped && *c == '\\';
        !escaped
    };
    text.chars().filter(keep).collect()
}

impl Pattern {
    /// Reads the pattern of a name; a bracket that is not closed is a letter.
    pub(super) fn read(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let (mut tokens, mut rest) = (Vec::new(), chars.as_slice());
        while let Some((c, tail)) = rest.split_first() {
            rest = tail;
            tokens.push(match (c, tail) {
                ('*', _) => Token::Many,
                ('?', _) => Token::Any,
                ('\\', [escaped, after @ ..]) => {
                    rest = after;
                    Token::Letter(*escaped)
                }
                ('[', _) => match bracket(tail) {
                    Some((set, after)) => {
                        rest = after;
                        set
                    }
                    None => Token::Letter('['),
                },
                _ => Token::Letter(*c),
            });
        }
        let hidden = matches!(tokens.first(), Some(Token::Letter('.')));
        Self { tokens, hidden }
    }

    /// Whether the whole name matches.
    pub(super) fn matches(&self, name: &[u8]) -> bool {
        if name.first() == Some(&b'.') && !self.hidden {
            return false;
        }
        let name = letters(name);
        let (mut tokens, mut rest) = (self.tokens.as_slice(), name.as_slice());
        // Only the last `*` needs another try: what stood before it matched already.
        let mut retry: Option<(&[Token], &[char])> = None;
        loop {
            if let Some((Token::Many, after)) = tokens.split_first() {
                tokens = after;
                retry = Some((after, rest));
                continue;
            }
            match (tokens.split_first(), rest.split_first()) {
                (Some((token, after)), Some((c, tail))) if token.takes(*c) => (tokens, rest) = (after, tail),
                (None, None) => return true,
                _ => {
                    let Some((after, [_, tail @ ..])) = retry else { return false };
                    retry = Some((after, tail));
                    (tokens, rest) = (after, tail);
                }
            }
        }
    }
}

impl Token {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Letter(own) => *own == c,
            Self::Any | Self::Many => true,
            Self::Set { negated, items } => items.iter().any(|item| item.holds(c)) != *negated,
        }
    }
}

impl Item {
    fn holds(&self, c: char) -> bool {
        match self {
            Self::Range(low, high) => (*low..=*high).contains(&c),
            Self::Class(class) => class(c),
            Self::Nothing => false,
        }
    }
}

/// A name as letters. Bytes that are not UTF-8 become letters of a private plane, each its own.
fn letters(name: &[u8]) -> Vec<char> {
    let mut letters = Vec::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        letters.extend(chunk.valid().chars());
        let own =
            |byte: &u8| char::from_u32(0x10_FF00 + u32::from(*byte)).unwrap_or(char::REPLACEMENT_CHARACTER);
        letters.extend(chunk.invalid().iter().map(own));
    }
    letters
}

/// What follows an opening bracket: the set, and what stands behind it. Nothing if it is not closed.
fn bracket(text: &[char]) -> Option<(Token, &[char])> {
    let (negated, mut rest) = match text {
        ['!' | '^', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let mut items = Vec::new();
    loop {
        let (item, after) = match rest {
            [] => return None,
            [']', after @ ..] if !items.is_empty() => return Some((Token::Set { negated, items }, after)),
            ['[', ':', after @ ..] => match named(after, ':') {
                Some((name, after)) => (class(&name), after),
                None => single(rest)?,
            },
            _ => single(rest)?,
        };
        items.push(item);
        rest = after;
    }
}

/// One letter of a set, or a range of them.
fn single(text: &[char]) -> Option<(Item, &[char])> {
    let (low, rest) = letter(text)?;
    match rest {
        ['-', ']', ..] | [] => Some((Item::Range(low, low), rest)),
        ['-', rest @ ..] => {
            let (high, rest) = letter(rest)?;
            Some((Item::Range(low, high), rest))
        }
        _ => Some((Item::Range(low, low), rest)),
    }
}

/// One letter: plain, escaped, or written as `[.x.]` or `[=x=]`. Nothing if `[.` is not closed, as then nothing is.
fn letter(text: &[char]) -> Option<(char, &[char])> {
    match text {
        ['[', '.', rest @ ..] => {
            let (name, after) = named(rest, '.')?;
            // Names of letters are not known: they stand for none, and no name of a file holds that.
            Some((<[char; 1]>::try_from(name).map_or('\0', |[only]| only), after))
        }
        ['[', '=', only, '=', ']', rest @ ..] => Some((*only, rest)),
        ['\\', escaped, rest @ ..] => Some((*escaped, rest)),
        [c, rest @ ..] => Some((*c, rest)),
        [] => None,
    }
}

/// A name up to `:]`, `.]` or `=]`.
fn named(text: &[char], mark: char) -> Option<(Vec<char>, &[char])> {
    let end = text.windows(2).position(|pair| pair == [mark, ']'])?;
    Some((text.get(..end)?.to_vec(), text.get(end + 2..)?))
}

fn class(name: &[char]) -> Item {
    let name: String = name.iter().collect();
    Item::Class(match name.as_str() {
        "alnum" => char::is_alphanumeric,
        "alpha" => char::is_alphabetic,
        "ascii" => |c| c.is_ascii(),
        "blank" => |c| c == ' ' || c == '\t',
        "cntrl" => char::is_control,
        "digit" => |c| c.is_ascii_digit(),
        "graph" => |c| !c.is_control() && !c.is_whitespace(),
        "lower" => char::is_lowercase,
        "print" => |c| !c.is_control(),
        "punct" => |c| c.is_ascii_punctuation(),
        "space" => char::is_whitespace,
        "upper" => char::is_uppercase,
        "word" => |c| c.is_alphanumeric() || c == '_',
        "xdigit" => |c| c.is_ascii_hexdigit(),
        _ => return Item::Nothing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_a_shell() {
        let rows: [(&str, &[&str], &[&str]); 12] = [
            ("*", &["a", "é"], &[".a"]),
            (".*", &[".a", "..b"], &["a"]),
            ("?", &["a", "é"], &["ab", "."]),
            ("[!a]", &["b", "é"], &["a", ".", "bb"]),
            ("[^a]*", &["b"], &["a"]),
            ("[]a]", &["]", "a"], &["b"]),
            ("[a-c]x", &["bx"], &["dx", "-x"]),
            ("[a-]", &["a", "-"], &["b"]),
            ("[[:digit:]]", &["1"], &["a", "[", ":"]),
            (r"\**", &["*a", "*"], &["a"]),
            ("[a", &["[a"], &["a"]),
            ("*a*a*a*a*b", &["aaaab", "xaxaxaxab"], &["aaab", "aaaaa"]),
        ];
        for (pattern, yes, no) in rows {
            let read = Pattern::read(pattern);
            yes.iter().for_each(|name| assert!(read.matches(name.as_bytes()), "{pattern} {name}"));
            no.iter().for_each(|name| assert!(!read.matches(name.as_bytes()), "{pattern} {name}"));
        }
        assert!(Pattern::read("a?").matches(b"a\xff") && !Pattern::read("a?").matches(b"a\xff\xff"));
        let long = Pattern::read(&format!("{}b", "*a".repeat(10_000)));
        assert!(!long.matches(&[b'a'; 255]), "and it ends");
    }

    #[test]
    fn patterns_are_told_from_plain_text() {
        for yes in ["*", "a?", "[a]", "a[!b]c", r"\[*"] {
            assert!(is_pattern(yes), "{yes}");
        }
        for no in ["a", "[a", "a]", r"\*", r"\[a]", ""] {
            assert!(!is_pattern(no), "{no}");
        }
    }
}
