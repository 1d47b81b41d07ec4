//! Words: quotes and escapes taken off, variables and patterns marked; and what they become when values are known.
//!
//! What a word becomes depends on values alone. Anything that would have to run something to be known is refused by
//! its name when the word is read.

use super::super::args::is_name;
use super::Outside;

/// One word of a script.
#[derive(Debug, Clone, Default)]
pub(super) struct Word(Vec<Part>);

#[derive(Debug, Clone)]
enum Part {
    Text {
        text: String,
        quoted: bool,
    },
    Variable {
        name: String,
        quoted: bool,
    },
    /// `~` at the start.
    Home,
}

/// One argument that a word became.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) text: String,
    /// The same as a pattern of file names, if it is one.
    pub(super) pattern: Option<String>,
}

/// The values that words are filled in with; `HOME` is what `~` stands for.
pub(super) trait Values {
    type Unknown;
    fn value(&self, name: &str) -> Result<String, Self::Unknown>;
}

impl Word {
    /// Reads a word as a shell would.
    pub(super) fn read(raw: &str) -> Result<Self, Outside> {
        let mut reader = Reader::new(raw);
        reader.unquoted()?;
        Ok(Self(reader.parts))
    }

    /// Reads the text of a document, in which only `$` and `\` mean something.
    pub(super) fn read_document(raw: &str, expands: bool) -> Result<Self, Outside> {
        if !expands {
            return Ok(Self(vec![Part::Text { text: raw.to_owned(), quoted: true }]));
        }
        let mut reader = Reader::new(raw);
        reader.double(false)?;
        Ok(Self(reader.parts))
    }

    /// The arguments that the word becomes: none, one, or more where a value has blanks.
    pub(super) fn fields<V: Values>(&self, values: &V) -> Result<Vec<Field>, V::Unknown> {
        let mut building = Building::default();
        for part in &self.0 {
            match part {
                Part::Text { text, quoted } => building.push(text, *quoted),
                Part::Variable { name, quoted: true } => building.push(&values.value(name)?, true),
                Part::Variable { name, quoted: false } => building.push_split(&values.value(name)?),
                Part::Home => building.push(&values.value("HOME")?, true),
            }
        }
        building.split();
        Ok(building.done)
    }

    /// The one text that the word becomes where nothing is split and nothing is a pattern.
    pub(super) fn text<V: Values>(&self, values: &V) -> Result<String, V::Unknown> {
        let texts = self.0.iter().map(|part| match part {
            Part::Text { text, .. } => Ok(text.clone()),
            Part::Variable { name, .. } => values.value(name),
            Part::Home => values.value("HOME"),
        });
        texts.collect()
    }
}

/// Fields while they are put together.
#[derive(Default)]
struct Building {
    done: Vec<Field>,
    text: String,
    pattern: String,
    is_pattern: bool,
    begun: bool,
}

impl Building {
    fn push(&mut self, text: &str, quoted: bool) {
        // Quotes make a word even if there is nothing in them.
        self.begun |= quoted || !text.is_empty();
        text.chars().for_each(|c| self.push_char(c, quoted));
    }

    fn push_char(&mut self, c: char, quoted: bool) {
        let means_more = matches!(c, '*' | '?' | '[');
        self.is_pattern |= means_more && !quoted;
        if quoted && (means_more || matches!(c, ']' | '!' | '^' | '-')) || c == '\\' {
            self.pattern.push('\\');
        }
        self.pattern.push(c);
        self.text.push(c);
    }

    /// An unquoted value: blanks in it separate fields.
    fn push_split(&mut self, value: &str) {
        for c in value.chars() {
            if matches!(c, ' ' | '\t' | '\n') {
                self.split();
            } else {
                self.begun = true;
                self.push_char(c, false);
            }
        }
    }

    fn split(&mut self) {
        if std::mem::take(&mut self.begun) {
            let (text, pattern) = (std::mem::take(&mut self.text), std::mem::take(&mut self.pattern));
            let pattern = std::mem::take(&mut self.is_pattern).then_some(pattern);
            self.done.push(Field { text, pattern });
        }
    }
}

struct Reader {
    chars: std::iter::Peekable<std::vec::IntoIter<char>>,
    parts: Vec<Part>,
}

impl Reader {
    fn new(raw: &str) -> Self {
        Self { chars: raw.chars().collect::<Vec<_>>().into_iter().peekable(), parts: Vec::new() }
    }

    fn push(&mut self, c: char, quoted: bool) {
        match self.parts.last_mut() {
            Some(Part::Text { text, quoted: same }) if *same == quoted => text.push(c),
            _ => self.parts.push(Part::Text { text: c.to_string(), quoted }),
        }
    }

    fn unquoted(&mut self) -> Result<(), Outside> {
        while let Some(c) = self.chars.next() {
            match c {
                '\'' => {
                    let text = self.chars.by_ref().take_while(|c| *c != '\'').collect();
                    self.parts.push(Part::Text { text, quoted: true });
                }
                '"' => {
                    self.parts.push(Part::Text { text: String::new(), quoted: true });
                    self.double(true)?;
                }
                '\\' => match self.chars.next() {
                    Some('\n') | None => {}
                    Some(escaped) => self.push(escaped, true),
                },
                '$' => self.dollar(false)?,
                '`' => return Err(Outside::substitution("`…`")),
                '{' if self.braces_expand() => {
                    return Err(Outside::named("brace expansion `{a,b}`", "write the words out"));
                }
                '(' | ')' => return Err(Outside::named("a parenthesis in a word", "quote it")),
                '~' if self.parts.is_empty() => self.tilde()?,
                _ => self.push(c, false),
            }
        }
        Ok(())
    }

    /// Inside double quotes up to the closing one; or all of a document, where quotes are text.
    fn double(&mut self, closes: bool) -> Result<(), Outside> {
        while let Some(c) = self.chars.next() {
            match c {
                '"' if closes => return Ok(()),
                '\\' => match self.chars.next() {
                    Some('\n') => {}
                    Some(escaped @ ('$' | '`' | '\\')) => self.push(escaped, true),
                    Some('"') if closes => self.push('"', true),
                    Some(other) => {
                        self.push('\\', true);
                        self.push(other, true);
                    }
                    None => self.push('\\', true),
                },
                '$' => self.dollar(true)?,
                '`' => return Err(Outside::substitution("`…`")),
                _ => self.push(c, true),
            }
        }
        Ok(())
    }

    /// What follows a `$`.
    fn dollar(&mut self, quoted: bool) -> Result<(), Outside> {
        let Some(next) = self.chars.peek().copied() else {
            self.push('$', quoted);
            return Ok(());
        };
        match next {
            '(' => {
                self.chars.next();
                Err(match self.chars.peek() {
                    Some('(') => Outside::named("arithmetic `$(( ))`", "work it out before"),
                    _ => Outside::substitution("$( )"),
                })
            }
            '[' => Err(Outside::named("arithmetic `$[ ]`", "work it out before")),
            '{' => {
                self.chars.next();
                let inner: String = self.chars.by_ref().take_while(|c| *c != '}').collect();
                if !is_name(&inner) {
                    let what = format!("`${{{inner}}}`, more than a plain variable,");
                    return Err(Outside::named(&what, "only `$NAME` and `${NAME}` are filled in"));
                }
                self.parts.push(Part::Variable { name: inner, quoted });
                Ok(())
            }
            '\'' | '"' if !quoted => Err(Outside::named("`$'…'`", "use plain quotes")),
            c if c.is_ascii_alphabetic() || c == '_' => {
                let mut name = String::new();
                while let Some(c) = self.chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(c);
                }
                self.parts.push(Part::Variable { name, quoted });
                Ok(())
            }
            c if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                Err(Outside::named(&format!("`${c}`"), "only named variables are filled in"))
            }
            _ => {
                self.push('$', quoted);
                Ok(())
            }
        }
    }

    fn tilde(&mut self) -> Result<(), Outside> {
        match self.chars.peek() {
            None | Some('/') => {
                self.parts.push(Part::Home);
                Ok(())
            }
            Some(_) => Err(Outside::named("`~` of another user", "write the path, or quote it")),
        }
    }

    /// Whether what follows an opening brace makes several words of one.
    fn braces_expand(&self) -> bool {
        let (mut depth, mut before) = (1_usize, ' ');
        for c in self.chars.clone() {
            match c {
                '{' => depth += 1,
                '}' if depth == 1 => return false,
                '}' => depth -= 1,
                ',' => return true,
                '.' if before == '.' => return true,
                _ => {}
            }
            before = c;
        }
        false
    }
}
