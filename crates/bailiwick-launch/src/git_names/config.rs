//! Git's configuration files, as far as it matters which commands and files they name.
//!
//! A test compares what is read here with what git itself reads. What git refuses to read names nothing: git then runs
//! nothing either.

/// One variable of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfigVariable {
    /// Its section in lower case, without the subsection.
    pub(super) section: String,
    /// Its name in lower case.
    pub(super) name: String,
    /// Its value; empty if it has none.
    pub(super) value: String,
}

/// Variables whose value is a path that git runs, or takes hooks from.
const PATHS: [(&str, &str); 4] =
    [("core", "hookspath"), ("core", "fsmonitor"), ("core", "askpass"), ("init", "templatedir")];
/// Variables whose value is a command that git runs by itself, whatever the subsection is.
const COMMANDS: [(&str, &str); 20] = [
    ("core", "sshcommand"),
    ("core", "gitproxy"),
    ("core", "editor"),
    ("core", "pager"),
    ("core", "alternaterefscommand"),
    ("sequence", "editor"),
    ("diff", "external"),
    ("diff", "command"),
    ("diff", "textconv"),
    ("filter", "clean"),
    ("filter", "smudge"),
    ("filter", "process"),
    ("merge", "driver"),
    ("gpg", "program"),
    ("gpg", "defaultkeycommand"),
    ("credential", "helper"),
    ("interactive", "difffilter"),
    ("trailer", "command"),
    ("trailer", "cmd"),
    ("uploadpack", "packobjectshook"),
];

impl ConfigVariable {
    pub(super) fn is(&self, section: &str, name: &str) -> bool {
        self.section == section && self.name == name
    }

    /// The file that it includes.
    pub(super) fn included(&self) -> Option<&str> {
        let includes = self.is("include", "path") || self.is("includeif", "path");
        includes.then_some(&*self.value).filter(|path| !path.is_empty())
    }

    pub(super) fn is_path_that_runs(&self) -> bool {
        let is_switch = matches!(
            &*self.value.to_ascii_lowercase(),
            "" | "true" | "false" | "yes" | "no" | "on" | "off" | "0" | "1"
        );
        !is_switch && PATHS.iter().any(|(section, name)| self.is(section, name))
    }

    pub(super) fn is_command(&self) -> bool {
        COMMANDS.iter().any(|(section, name)| self.is(section, name)) || self.section == "pager"
    }
}

/// The variables of a configuration, in order. Reading ends at the first line that git would refuse.
pub(super) fn entries(text: &str) -> Vec<ConfigVariable> {
    let mut found = Vec::new();
    let mut section = String::new();
    let mut rest = Scanner { rest: text.strip_prefix('\u{feff}').unwrap_or(text) };
    while let Some(c) = rest.next_token() {
        match c {
            '[' => match rest.section() {
                Some(own) => section = own,
                None => break,
            },
            '#' | ';' => rest.skip_line(),
            c if c.is_ascii_alphabetic() && !section.is_empty() => match rest.variable(c) {
                Some((name, value)) => found.push(ConfigVariable { section: section.clone(), name, value }),
                None => break,
            },
            _ => break,
        }
    }
    found
}

/// What is left of a configuration.
struct Scanner<'a> {
    rest: &'a str,
}

impl Scanner<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
        // A carriage return before the end of a line belongs to that end.
        if c == '\r' && self.rest.starts_with('\n') {
            return self.next();
        }
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// The next character that is no space.
    fn next_token(&mut self) -> Option<char> {
        loop {
            match self.next()? {
                c if c.is_ascii_whitespace() => {}
                c => return Some(c),
            }
        }
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|c| c != '\n') {}
    }

    /// The section of a header, after its bracket. A subsection is left out: `[a "b"]` and `[a.b]` are `a`.
    fn section(&mut self) -> Option<String> {
        let mut name = String::new();
        loop {
            match self.next()? {
                ']' => break,
                c if c.is_ascii_whitespace() && c != '\n' => return self.subsection().then_some(name),
                c if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') => name.push(c.to_ascii_lowercase()),
                _ => return None,
            }
        }
        Some(name.split('.').next().unwrap_or_default().to_owned())
    }

    /// Whether a quoted subsection and its bracket follow.
    fn subsection(&mut self) -> bool {
        if self.next_token() != Some('"') {
            return false;
        }
        loop {
            match self.next() {
                Some('"') => return self.next() == Some(']'),
                Some('\\') => {
                    if matches!(self.next(), None | Some('\n')) {
                        return false;
                    }
                }
                None | Some('\n') => return false,
                Some(_) => {}
            }
        }
    }

    /// A variable that begins with `first`.
    fn variable(&mut self, first: char) -> Option<(String, String)> {
        let mut name = String::from(first.to_ascii_lowercase());
        while let Some(c) = self.peek().filter(|c| c.is_ascii_alphanumeric() || *c == '-') {
            self.next();
            name.push(c.to_ascii_lowercase());
        }
        while self.peek().is_some_and(|c| matches!(c, ' ' | '\t')) {
            self.next();
        }
        match self.next() {
            None | Some('\n') => Some((name, String::new())),
            Some('=') => Some((name, self.value()?)),
            Some('#' | ';') => {
                self.skip_line();
                Some((name, String::new()))
            }
            Some(_) => None,
        }
    }

    /// A value up to the end of its line: quotes and escapes read, comments and spaces at its ends left out.
    fn value(&mut self) -> Option<String> {
        let (mut value, mut spaces, mut quoted) = (String::new(), String::new(), false);
        loop {
            let c = match self.next() {
                None | Some('\n') if quoted => return None,
                None | Some('\n') => return Some(value),
                Some('"') => {
                    quoted = !quoted;
                    value.push_str(&std::mem::take(&mut spaces));
                    continue;
                }
                Some('#' | ';') if !quoted => {
                    self.skip_line();
                    return Some(value);
                }
                Some(c) if !quoted && c.is_ascii_whitespace() => {
                    if !value.is_empty() {
                        spaces.push(c);
                    }
                    continue;
                }
                Some('\\') => match self.next()? {
                    '\n' => continue,
                    'n' => '\n',
                    't' => '\t',
                    'b' => '\u{8}',
                    c @ ('\\' | '"') => c,
                    _ => return None,
                },
                Some(c) => c,
            };
            value.push_str(&std::mem::take(&mut spaces));
            value.push(c);
        }
    }
}
