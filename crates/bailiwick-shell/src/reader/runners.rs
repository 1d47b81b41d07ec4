//! What is known of programs that run other programs, from `runners.txt`, which `build.rs` sorts.

/// How a program runs others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Only the command behind its own flags counts.
    Rest,
    /// The values of some flags are texts.
    Flag,
    /// The rest of its words, joined, is a text.
    Text,
    /// Each of its words with blanks is a text.
    Texts,
    /// A command stands somewhere among its words.
    Search,
    /// Settings with these names are texts.
    Key,
    /// Lines that start with these words are texts.
    Line,
    /// Its arguments are texts, or name them.
    Values,
    /// Its input is a text.
    Input,
}

/// One line of the table.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) way: Way,
    /// Flags, keys or starts of lines.
    pub(super) words: &'static [&'static str],
    /// Short flags that take the next word as their value.
    pub(super) valued: &'static str,
    /// Long flags that do.
    pub(super) long: &'static [&'static str],
    /// Words that come before the command.
    pub(super) operands: usize,
    /// Words of which one must stand before the command.
    pub(super) after: &'static [&'static str],
}

include!(concat!(env!("OUT_DIR"), "/runners.rs"));

const VARIABLES: &str = include_str!("variables.txt");
const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh", "nu", "xonsh", "yash",
];

/// Every way in which a program runs others.
pub(super) fn runners_of(program: &str) -> impl Iterator<Item = &'static Runner> {
    let from = RUNNERS.partition_point(|(known, _)| *known < program);
    let lines = RUNNERS.get(from..).unwrap_or_default().iter();
    lines.take_while(move |(known, _)| *known == program).map(|(_, runner)| runner)
}

/// Whether a program runs others in a way that is known.
#[must_use]
pub fn is_runner(program: &str) -> bool {
    runners_of(program).next().is_some()
}

/// Whether a program is a shell.
#[must_use]
pub fn is_shell(program: &str) -> bool {
    SHELLS.contains(&program)
}

/// Whether programs run the value of a variable.
pub(super) fn runs_text_in_variable(name: &str) -> bool {
    VARIABLES.lines().any(|line| line == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        assert!(RUNNERS.len() > 100);
        assert!(RUNNERS.is_sorted_by_key(|(program, _)| program));
        let text = include_str!("runners.txt");
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(lines.count(), RUNNERS.len());
        assert_eq!(runners_of("env").count(), 2);
        assert_eq!(runners_of("nothing").count() + runners_of("en").count() + runners_of("").count(), 0);
    }
}
