//! Readers of the targets' own formats, as those targets read them: what comes out is what a target would see.

/// A systemd unit as `(section, key, value)`, continuation lines and comments as systemd has them.
pub(crate) fn unit(text: &str) -> Vec<(String, String, String)> {
    let (mut section, mut settings) = (String::new(), Vec::new());
    for line in text.lines() {
        assert!(!ends_open(line), "a line goes on: {line:?}");
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.to_owned();
            continue;
        }
        let (key, value) = line.split_once('=').expect("a setting");
        settings.push((section.clone(), key.to_owned(), value.to_owned()));
    }
    settings
}

/// Whether a line ends in a backslash that is not escaped itself.
fn ends_open(line: &str) -> bool {
    line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

/// The words of a value, quotes and backslashes taken away; `escapes` says whether `\x0a` is a byte.
pub(crate) fn words(value: &str, escapes: bool) -> Vec<String> {
    let (mut words, mut word, mut started) = (Vec::new(), Vec::new(), false);
    let mut quote = None;
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', _) => {
                let next = chars.next().expect("an escaped character");
                let code: Option<String> = (escapes && next == 'x').then(|| chars.by_ref().take(2).collect());
                match code {
                    Some(code) => word.push(u8::from_str_radix(&code, 16).expect("two hex digits")),
                    None => word.extend(next.to_string().bytes()),
                }
                started = true;
            }
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => (quote, started) = (Some(c), true),
            (' ' | '\t', None) => {
                if std::mem::take(&mut started) {
                    words.push(text(std::mem::take(&mut word)));
                }
            }
            _ => {
                word.extend(c.to_string().bytes());
                started = true;
            }
        }
    }
    assert!(quote.is_none(), "a quote stays open: {value}");
    if started {
        words.push(text(word));
    }
    words
}

fn text(word: Vec<u8>) -> String {
    String::from_utf8(word).unwrap().replace("%%", "%")
}

/// The source and the destination of one entry of `BindPaths=`, which systemd reads twice: first for words, with
/// escapes kept, then for the colon.
pub(crate) fn bind(value: &str) -> (String, String) {
    let mut parts = vec![String::new()];
    let mut chars = value.trim_start_matches('-').chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => parts.last_mut().unwrap().push(chars.next().expect("an escaped character")),
            ':' => parts.push(String::new()),
            ' ' | '"' | '\'' => panic!("{c:?} is not escaped in {value}"),
            c => parts.last_mut().unwrap().push(c),
        }
    }
    let parts: Vec<String> = parts.into_iter().map(|part| part.replace("%%", "%")).collect();
    assert!(parts.len() <= 2, "{value}");
    (parts[0].clone(), parts.last().unwrap().clone())
}

/// An s-expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    Symbol(String),
    Text(String),
    List(Vec<Form>),
}

/// All forms of a profile.
pub(crate) fn forms(text: &str) -> Vec<Form> {
    let mut chars = text.chars().peekable();
    let mut stack: Vec<Vec<Form>> = vec![Vec::new()];
    while let Some(c) = chars.next() {
        match c {
            ';' => while chars.next().is_some_and(|c| c != '\n') {},
            '(' => stack.push(Vec::new()),
            ')' => {
                let list = Form::List(stack.pop().expect("an open list"));
                stack.last_mut().expect("a list that is not closed too often").push(list);
            }
            '"' => {
                let mut literal = String::new();
                loop {
                    match chars.next().expect("a closed literal") {
                        '"' => break,
                        '\\' => literal.push(chars.next().expect("an escaped character")),
                        c => literal.push(c),
                    }
                }
                stack.last_mut().unwrap().push(Form::Text(literal));
            }
            c if c.is_whitespace() => {}
            c => {
                let mut symbol = c.to_string();
                while let Some(c) = chars.next_if(|c| !c.is_whitespace() && !"()\";".contains(*c)) {
                    symbol.push(c);
                }
                stack.last_mut().unwrap().push(Form::Symbol(symbol));
            }
        }
    }
    assert_eq!(stack.len(), 1, "a list stays open");
    stack.pop().unwrap()
}

impl Form {
    /// The first symbol of a list.
    pub(crate) fn head(&self) -> &str {
        match self {
            Self::List(items) => match items.first() {
                Some(Self::Symbol(symbol)) => symbol,
                _ => panic!("no operation: {self:?}"),
            },
            Self::Symbol(_) | Self::Text(_) => panic!("no list: {self:?}"),
        }
    }

    /// Every literal inside, in order.
    pub(crate) fn texts(&self) -> Vec<&str> {
        match self {
            Self::Text(text) => vec![text],
            Self::Symbol(_) => Vec::new(),
            Self::List(items) => items.iter().flat_map(Self::texts).collect(),
        }
    }
}
