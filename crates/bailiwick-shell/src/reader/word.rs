//! Words as the shell would see them: quotes and escapes removed, known values filled in, substitutions followed.
//!
//! Linear in the word, with bounded nesting: the parser's own reader of words can take exponential time.

use super::{Context, Held, MAX_WORDS, Reader, parameter};

/// How many words one word may become by braces.
const MAX_BRACES: usize = 64;
/// How deep quotes and substitutions may nest in one word.
const MAX_NESTED: usize = 32;

/// One word after expansion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) text: String,
    /// Whether part of it is known only when it runs.
    pub(super) dynamic: bool,
    /// Whether it has a pattern that stands for file names.
    pub(super) glob: bool,
    begun: Begun,
}

/// How much of a word there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Begun {
    #[default]
    Nothing,
    /// Only an argument of the text itself stood here.
    Elided,
    /// Something, even if it is empty.
    Something,
}

impl Field {
    pub(super) fn unknown(text: &str) -> Self {
        Self { dynamic: true, ..Self::known(text) }
    }

    pub(super) fn known(text: &str) -> Self {
        Self { text: text.to_owned(), begun: Begun::Something, ..Self::default() }
    }

    /// The same knowledge of another text.
    pub(super) fn with_text(&self, text: &str) -> Self {
        Self { dynamic: self.dynamic, ..Self::known(text) }
    }

    fn push(&mut self, c: char) {
        self.text.push(c);
        self.begun = Begun::Something;
    }
}

impl Reader {
    /// The words that a word becomes.
    pub(super) fn expand(&mut self, word: &str, depth: usize) -> Vec<Field> {
        let mut fields = Vec::new();
        for word in braces(word) {
            let mut walk = Walk::new(self, depth, true);
            walk.unquoted(&mut word.chars().collect::<Vec<_>>().into_iter().peekable(), 0);
            fields.extend(walk.finish());
        }
        if fields.len() > MAX_WORDS {
            self.hide("a word becomes too many");
        }
        fields.truncate(MAX_WORDS);
        fields
    }

    /// The one word that a word becomes where none is split.
    pub(super) fn expand_quoted(&mut self, word: &str, depth: usize) -> Field {
        let mut walk = Walk::new(self, depth, false);
        walk.unquoted(&mut word.chars().collect::<Vec<_>>().into_iter().peekable(), 0);
        walk.finish().into_iter().next().unwrap_or_default()
    }

    /// Follows the substitutions in a text that is no word: a document, arithmetic, a test.
    pub(super) fn substitutions(&mut self, text: &str, depth: usize) {
        let mut walk = Walk::new(self, depth, false);
        walk.in_double(&mut text.chars().collect::<Vec<_>>().into_iter().peekable(), false, 0);
    }
}

pub(super) type Chars = std::iter::Peekable<std::vec::IntoIter<char>>;

/// A walk over one word.
struct Walk<'r> {
    reader: &'r mut Reader,
    depth: usize,
    splits: bool,
    done: Vec<Field>,
    now: Field,
}

impl<'r> Walk<'r> {
    fn new(reader: &'r mut Reader, depth: usize, splits: bool) -> Self {
        Self { reader, depth, splits, done: Vec::new(), now: Field::default() }
    }

    fn finish(mut self) -> Vec<Field> {
        self.split();
        self.done
    }

    fn split(&mut self) {
        let field = std::mem::take(&mut self.now);
        match field.begun {
            Begun::Nothing => {}
            Begun::Elided => self.done.push(Field::unknown("$@")),
            Begun::Something => self.done.push(field),
        }
    }

    fn elide(&mut self) {
        if self.now.begun == Begun::Nothing {
            self.now.begun = Begun::Elided;
        }
    }

    fn unquoted(&mut self, chars: &mut Chars, nested: usize) {
        while let Some(c) = chars.next() {
            match c {
                '\'' => self.single(chars),
                '"' => {
                    self.now.begun = Begun::Something;
                    self.in_double(chars, true, nested + 1);
                }
                '\\' => match chars.next() {
                    Some('\n') | None => {}
                    Some(escaped) => self.now.push(escaped),
                },
                '$' if chars.peek() == Some(&'\'') => {
                    chars.next();
                    self.ansi(chars);
                }
                '$' if chars.peek() == Some(&'"') => {}
                '$' => self.dollar(chars, false, nested),
                '`' => self.backquoted(chars, false),
                '*' | '?' | '[' => {
                    self.now.glob = true;
                    self.now.push(c);
                }
                _ => self.now.push(c),
            }
        }
    }

    fn single(&mut self, chars: &mut Chars) {
        self.now.begun = Begun::Something;
        self.now.text.extend(chars.by_ref().take_while(|c| *c != '\''));
    }

    /// Inside double quotes, up to the closing one if there is one to come.
    fn in_double(&mut self, chars: &mut Chars, closes: bool, nested: usize) {
        while let Some(c) = chars.next() {
            match c {
                '"' if closes => return,
                '\\' => match chars.next() {
                    Some('\n') | None => {}
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => self.now.push(escaped),
                    Some(other) => {
                        self.now.push('\\');
                        self.now.push(other);
                    }
                },
                '$' => self.dollar(chars, true, nested),
                '`' => self.backquoted(chars, true),
                _ => self.now.push(c),
            }
        }
    }

    /// What follows a `$`.
    fn dollar(&mut self, chars: &mut Chars, quoted: bool, nested: usize) {
        if nested > MAX_NESTED {
            self.reader.hide("a word nests too deep");
            return chars.by_ref().for_each(drop);
        }
        match chars.peek().copied() {
            Some('(') => {
                chars.next();
                let inner = balanced(chars, ')');
                match inner.strip_prefix('(').filter(|_| inner.ends_with(')')) {
                    Some(arithmetic) => {
                        let mut inner: Chars = arithmetic.chars().collect::<Vec<_>>().into_iter().peekable();
                        let mut walk = Walk::new(self.reader, self.depth, false);
                        walk.in_double(&mut inner, false, nested + 1);
                        self.unknown("$…");
                    }
                    None => self.substitute(&inner, quoted),
                }
            }
            Some('{') => {
                chars.next();
                let inner = balanced(chars, '}');
                self.braced(&inner, quoted, nested + 1);
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let mut name = String::new();
                while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(c);
                }
                self.parameter(&name, quoted);
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                chars.next();
                self.positional(c, quoted);
            }
            Some(_) | None => self.now.push('$'),
        }
    }

    /// `$1`, `$@` and their like.
    fn positional(&mut self, c: char, quoted: bool) {
        let known = self.reader.positional.clone();
        match (known, c) {
            (Some(arguments), '@' | '*') => self.each(arguments.get(1..).unwrap_or_default(), quoted),
            (Some(arguments), '0'..='9') if c != '0' || !arguments.is_empty() => {
                let number = c.to_digit(10).and_then(|digit| usize::try_from(digit).ok()).unwrap_or_default();
                match arguments.get(number) {
                    Some(field) if field.dynamic => self.unknown(&field.text),
                    Some(field) => self.fill(&field.text, quoted),
                    None => self.elide(),
                }
            }
            // Outside of functions these are empty, so as part of a word they hide nothing.
            (_, '@' | '*' | '1'..='9') if self.splits => self.elide(),
            _ => self.unknown(&format!("${c}")),
        }
    }

    /// Several words, each a word of its own.
    fn each(&mut self, fields: &[Field], quoted: bool) {
        for (at, field) in fields.iter().enumerate() {
            if at > 0 && self.splits {
                self.split();
            } else if at > 0 {
                self.now.push(' ');
            }
            if field.dynamic { self.unknown(&field.text) } else { self.fill(&field.text, quoted) }
        }
        if fields.is_empty() {
            self.elide();
        }
    }

    /// `${…}`: a plain name, or an operation on it whose own words may hold substitutions.
    fn braced(&mut self, inner: &str, quoted: bool, nested: usize) {
        let indirect = inner
            .strip_prefix('!')
            .filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        if let Some(Held::Text(name)) = indirect.and_then(|name| self.reader.values.get(name)).cloned() {
            return self.parameter(&name, quoted);
        }
        let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inner.len());
        let (name, operation) = inner.split_at_checked(end).unwrap_or((inner, ""));
        if operation.is_empty() && name.len() == 1 && name.starts_with(|c: char| c.is_ascii_digit()) {
            return self.positional(name.chars().next().unwrap_or('0'), quoted);
        }
        if operation.is_empty() && !name.is_empty() {
            return self.parameter(name, quoted);
        }
        if self.listed(name, operation, quoted) {
            return;
        }
        let mut chars: Chars = operation.chars().collect::<Vec<_>>().into_iter().peekable();
        let mut walk = Walk::new(self.reader, self.depth, false);
        walk.in_double(&mut chars, false, nested);
        let value = match self.reader.values.get(name) {
            Some(Held::Text(value)) => Some(value.as_str()),
            Some(Held::List(_) | Held::Unknown) | None => None,
        };
        let lost = self.reader.values.get(name) == Some(&Held::Unknown);
        match parameter::operated(value, operation).filter(|_| !name.is_empty() && !lost) {
            Some(made) => self.fill(&made, quoted),
            None => self.unknown(&format!("${{{inner}}}")),
        }
    }

    /// `${list[@]}` and `${list[0]}`.
    fn listed(&mut self, name: &str, operation: &str, quoted: bool) -> bool {
        let Some(Held::List(values)) = self.reader.values.get(name) else { return false };
        let fields: Vec<Field> = values.iter().map(|value| Field::known(value)).collect();
        match operation.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some("@" | "*") => self.each(&fields, quoted),
            Some(number) => match number.parse().ok().and_then(|number: usize| fields.get(number)) {
                Some(field) => self.fill(&field.text, quoted),
                None => return false,
            },
            None => return false,
        }
        true
    }

    fn parameter(&mut self, name: &str, quoted: bool) {
        match self.reader.values.get(name).cloned() {
            Some(Held::Text(value)) => self.fill(&value, quoted),
            Some(Held::List(values)) => self.fill(&values.first().cloned().unwrap_or_default(), quoted),
            None if name == "IFS" && (quoted || !self.splits) => self.now.push(' '),
            None if name == "IFS" => self.split(),
            Some(Held::Unknown) | None => self.unknown(&format!("${name}")),
        }
    }

    /// A known value, split into words where the shell would split it.
    fn fill(&mut self, value: &str, quoted: bool) {
        if quoted || !self.splits {
            self.now.begun = Begun::Something;
            self.now.text += value;
            return;
        }
        for c in value.chars() {
            if c.is_whitespace() { self.split() } else { self.now.push(c) }
        }
    }

    fn unknown(&mut self, shown: &str) {
        self.now.begun = Begun::Something;
        self.now.dynamic = true;
        self.now.text += shown;
    }

    /// A substitution: what it prints, if that is known.
    fn substitute(&mut self, inner: &str, quoted: bool) {
        let here = self.reader.here.clone();
        let output = self.reader.text(inner, self.depth + 1, &Context::default());
        self.reader.here = here;
        match output {
            Some(text) => self.fill(text.trim_end_matches('\n'), quoted),
            None => self.unknown("$…"),
        }
    }

    fn backquoted(&mut self, chars: &mut Chars, quoted: bool) {
        let mut inner = String::new();
        while let Some(c) = chars.next() {
            match c {
                '`' => break,
                '\\' => match chars.next() {
                    Some(escaped @ ('`' | '\\' | '$')) => inner.push(escaped),
                    Some(other) => inner.extend(['\\', other]),
                    None => {}
                },
                _ => inner.push(c),
            }
        }
        self.substitute(&inner, quoted);
    }

    /// `$'…'`, with its escapes.
    fn ansi(&mut self, chars: &mut Chars) {
        self.now.begun = Begun::Something;
        while let Some(c) = chars.next() {
            match c {
                '\'' => return,
                '\\' => {
                    let code = match chars.next() {
                        Some('x') => digits(chars, 16, 2),
                        Some('u') => digits(chars, 16, 4),
                        Some('U') => digits(chars, 16, 8),
                        Some(first @ '0'..='7') => {
                            let rest = digits_text(chars, 8, 2);
                            u32::from_str_radix(&format!("{first}{rest}"), 8).ok()
                        }
                        Some('n') => Some(10),
                        Some('t') => Some(9),
                        Some('r') => Some(13),
                        Some('e' | 'E') => Some(27),
                        Some(other) => Some(u32::from(other)),
                        None => None,
                    };
                    match code.and_then(char::from_u32) {
                        Some(c) => self.now.push(c),
                        None => self.unknown("$'…'"),
                    }
                }
                _ => self.now.push(c),
            }
        }
    }
}

pub(super) fn digits_text(chars: &mut Chars, radix: u32, most: usize) -> String {
    let mut text = String::new();
    while text.len() < most {
        let Some(c) = chars.next_if(|c| c.is_digit(radix)) else { break };
        text.push(c);
    }
    text
}

pub(super) fn digits(chars: &mut Chars, radix: u32, most: usize) -> Option<u32> {
    u32::from_str_radix(&digits_text(chars, radix, most), radix).ok()
}

/// Everything up to the bracket that closes, which is left out; quotes hide brackets.
fn balanced(chars: &mut Chars, close: char) -> String {
    let open = if close == ')' { '(' } else { '{' };
    let (mut inner, mut depth, mut quote) = (String::new(), 0_usize, None);
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, c) if c == close && depth == 0 => return inner,
            (None, c) if c == close => depth -= 1,
            (None, c) if c == open => depth += 1,
            (None, '\'' | '"') => quote = Some(c),
            (None | Some('"'), '\\') => {
                inner.push(c);
                inner.extend(chars.next());
                continue;
            }
            (Some(quoted), c) if c == quoted => quote = None,
            (None | Some(_), _) => {}
        }
        inner.push(c);
    }
    inner
}

/// The words that braces make of a word: `{a,b}c` is `ac` and `bc`.
fn braces(word: &str) -> Vec<String> {
    let mut words = vec![word.to_owned()];
    for _ in 0..MAX_BRACES {
        let Some((at, made)) = words.iter().enumerate().find_map(|(at, word)| Some((at, one_brace(word)?)))
        else {
            return words;
        };
        if words.len() + made.len() > MAX_BRACES {
            return words;
        }
        words.splice(at..=at, made);
    }
    words
}

/// The first unquoted `{…,…}` of a word, written out.
fn one_brace(word: &str) -> Option<Vec<String>> {
    let (mut quote, mut escaped, mut stack) = (None, false, Vec::<(usize, Vec<usize>)>::new());
    let mut before = ' ';
    for (at, c) in word.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"' | '`') => quote = Some(c),
            (Some(quoted), c) if c == quoted => quote = None,
            (None, '{') => stack.push((if before == '$' { usize::MAX } else { at }, Vec::new())),
            (None, ',') => stack.last_mut()?.1.push(at),
            (None, '}') => {
                if let Some((open, commas)) = stack.pop()
                    && open != usize::MAX
                    && !commas.is_empty()
                {
                    return written_out(word, open, &commas, at);
                }
            }
            (None, '(') if before == '$' => return None,
            (None | Some(_), _) => {}
        }
        if c == ',' && stack.is_empty() {
            continue;
        }
        before = c;
    }
    None
}

fn written_out(word: &str, open: usize, commas: &[usize], close: usize) -> Option<Vec<String>> {
    let (head, tail) = (word.get(..open)?, word.get(close + 1..)?);
    let ends: Vec<usize> = commas.iter().copied().chain([close]).collect();
    let mut start = open + 1;
    let mut made = Vec::new();
    for end in ends {
        made.push(format!("{head}{}{tail}", word.get(start..end)?));
        start = end + 1;
    }
    Some(made)
}
