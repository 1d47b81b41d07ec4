//! Which class a command belongs to by its words, from `commands.txt`, and what it does with files, from `files.txt`.
//! `build.rs` makes sorted constants of both.

use crate::class::Class;

use crate::glob;

/// One line of the table.
#[derive(Debug)]
struct Line {
    program: &'static str,
    /// Its number in [`SECTIONS`].
    section: usize,
    /// What must stand among the words; most lines are never asked for it, so it is taken apart when it is.
    words: &'static str,
}

/// A role that a program has, and the flags with which it has it.
type Role = (&'static str, &'static [&'static str]);

include!(concat!(env!("OUT_DIR"), "/commands.rs"));
include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// What must stand among the words of a command.
#[derive(Debug)]
enum Token {
    Operand { first: bool, choices: Vec<&'static str> },
    Flags(Vec<&'static str>),
    Within(&'static str),
    NoOperand,
    Not(Box<Token>),
}

impl Line {
    fn class(&self) -> Option<Class> {
        SECTIONS.get(self.section).and_then(|section| Class::parse(section))
    }
}

/// The lines of a program by its name.
fn lines_named(program: &str) -> &'static [Line] {
    let from = NAMED.partition_point(|line| line.program < program);
    let rest = NAMED.get(from..).unwrap_or_default();
    let count = rest.iter().take_while(|line| line.program == program).count();
    rest.get(..count).unwrap_or_default()
}

fn token(word: &'static str) -> Token {
    if let Some(rest) = word.strip_prefix('!').filter(|rest| !rest.is_empty()) {
        return Token::Not(Box::new(token(rest)));
    }
    if word == "." {
        return Token::NoOperand;
    }
    if let Some(text) = word.strip_prefix('=') {
        return Token::Within(text);
    }
    if word.starts_with('-') && word != "-" {
        return Token::Flags(word.split('|').collect());
    }
    let first = word.starts_with('^');
    Token::Operand { first, choices: word.trim_start_matches('^').split('|').collect() }
}

/// The classes of a command by its program and arguments, each with the line that says so.
pub(super) fn classes_of(program: &str, arguments: &[String]) -> impl Iterator<Item = Class> {
    let patterns = PATTERNS.iter().filter(move |line| glob::matches(line.program, program));
    let lines = lines_named(program).iter().chain(patterns);
    lines.filter(move |line| fits(line.words, arguments)).filter_map(Line::class)
}

/// Whether a command is of any class by its words.
pub(crate) fn has_classes(program: &str, arguments: &[String]) -> bool {
    classes_of(program, arguments).next().is_some()
}

/// Whether the table has a line of a class for a program.
pub(super) fn judges(class: &str, program: &str) -> bool {
    lines_named(program)
        .iter()
        .any(|line| SECTIONS.get(line.section).is_some_and(|section| *section == class))
}

/// Whether anything is known of a program.
pub(crate) fn is_known_program(name: &str) -> bool {
    !lines_named(name).is_empty()
        || PATTERNS.iter().any(|line| glob::matches(line.program, name))
        || roles_of(name).is_some()
        || super::code::is_interpreter(name)
        || crate::reader::is_shell(name)
        || crate::reader::is_runner(name)
        || OTHERS.contains(&name)
}

/// Programs that start commands and are in no table.
const OTHERS: &[&str] = &[
    "cat", "curl", "wget", "sudo", "dd", "nc", "ncat", "socat", "psql", "mysql", "sqlite3", "head", "base64",
    "env",
];

fn fits(words: &'static str, arguments: &[String]) -> bool {
    let operands: Vec<&str> =
        arguments.iter().map(String::as_str).filter(|word| !word.starts_with('-') || *word == "-").collect();
    let mut at = 0;
    for token in words.split_whitespace().map(token) {
        let fits = match &token {
            Token::Operand { first, choices } => {
                let from = operands.get(at..).unwrap_or_default();
                let window = if *first { from.get(..1).unwrap_or_default() } else { from };
                match window.iter().position(|word| choices.iter().any(|one| glob::matches(one, word))) {
                    Some(found) => {
                        at += found + 1;
                        true
                    }
                    None => false,
                }
            }
            Token::Flags(_) | Token::Within(_) | Token::NoOperand | Token::Not(_) => {
                token.holds(arguments, &operands)
            }
        };
        if !fits {
            return false;
        }
    }
    true
}

impl Token {
    fn holds(&self, arguments: &[String], operands: &[&str]) -> bool {
        match self {
            Self::Flags(flags) => arguments.iter().any(|word| flags.iter().any(|flag| is_flag(flag, word))),
            Self::Within(text) => arguments.iter().any(|word| word.contains(text)),
            Self::NoOperand => operands.is_empty(),
            Self::Not(token) => !token.holds(arguments, operands),
            Self::Operand { choices, .. } => {
                operands.iter().any(|word| choices.iter().any(|one| glob::matches(one, word)))
            }
        }
    }
}

/// Whether a word is a flag: the same, with a value, or among merged short ones.
fn is_flag(flag: &str, word: &str) -> bool {
    if word == flag {
        return true;
    }
    match (flag.strip_prefix("--"), flag.strip_prefix('-')) {
        (Some(_), _) => word.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')),
        (None, Some(letter)) if letter.len() == 1 => {
            word.strip_prefix('-').is_some_and(|rest| is_cluster(rest) && rest.contains(letter))
        }
        (None, _) => false,
    }
}

fn is_cluster(letters: &str) -> bool {
    letters.len() <= 8 && letters.chars().all(|c| c.is_ascii_alphanumeric())
}

/// What a program does with the files among its words.
fn roles_of(program: &str) -> Option<&'static [Role]> {
    let at = ROLES.binary_search_by(|(known, _)| (*known).cmp(program)).ok()?;
    ROLES.get(at).map(|(_, roles)| *roles)
}

/// The flags with which a program has a role; none if it always has it.
pub(super) fn role(role: &str, program: &str) -> Option<&'static [&'static str]> {
    roles_of(program)?.iter().find(|(known, _)| *known == role).map(|(_, flags)| *flags)
}

/// Whether one of these flags is among the arguments; always if there are none.
pub(super) fn has_flag(flags: &[&str], arguments: &[String]) -> bool {
    flags.is_empty() || arguments.iter().any(|word| flags.iter().any(|flag| is_flag(flag, word)))
}

/// The values of these flags: `-o FILE`, `-oFILE`, `--output=FILE`.
pub(super) fn flag_values<'a>(flags: &[&str], arguments: &'a [String]) -> Vec<&'a str> {
    let mut values = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        for flag in flags {
            if is_flag(flag, word) && !word.contains('=') {
                values.extend(arguments.get(at + 1).map(String::as_str));
            } else if let Some(rest) = word.strip_prefix(flag) {
                values.push(rest.trim_start_matches('='));
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(line: &str, class: &str) -> bool {
        let mut words = line.split(' ').map(str::to_owned);
        let program = words.next().unwrap();
        let arguments: Vec<String> = words.collect();
        classes_of(&program, &arguments).any(|found| found.to_string() == class)
    }

    #[test]
    fn every_section_is_a_class() {
        assert!(!SECTIONS.is_empty());
        for section in SECTIONS {
            assert!(Class::parse(section).is_some(), "{section}");
        }
        for line in NAMED.iter().chain(PATTERNS) {
            assert!(line.class().is_some(), "{line:?}");
        }
    }

    #[test]
    fn words_are_found_in_order_and_flags_anywhere() {
        assert!(has("git push -f", "loses(history)"));
        assert!(has("git push origin main --force", "loses(history)"));
        assert!(has("git push -uf origin main", "loses(history)"));
        assert!(!has("git push -u origin main", "loses(history)"));
        assert!(!has("git commit -m push -f", "loses(history)"));
        assert!(has("git push --force-with-lease", "loses(leased)"));
        assert!(!has("git push --force-with-lease", "loses(history)"));
        assert!(has("aws --profile p ec2 terminate-instances", "changes(shared)"));
        assert!(has("mkfs.ext4 /dev/sda1", "writes(disk)"));
        assert!(!has("fdisk -l", "writes(disk)"));
        assert!(!has("cargo publish --dry-run", "changes(shared)"));
    }
}
