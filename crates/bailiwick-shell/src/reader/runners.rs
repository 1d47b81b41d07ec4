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
    pub(super) words: Vec<&'static str>,
    /// Short flags that take the next word as their value.
    pub(super) valued: &'static str,
    /// Long flags that do.
    pub(super) long: Vec<&'static str>,
    /// Words that come before the command.
    pub(super) operands: usize,
    /// Words of which one must stand before the command.
    pub(super) after: Vec<&'static str>,
}

include!(concat!(env!("OUT_DIR"), "/runners.rs"));

const VARIABLES: &str = include_str!("variables.txt");
const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh", "nu", "xonsh", "yash",
];

/// Every way in which a program runs others. A hook asks for few programs: only their lines are taken apart.
pub(super) fn runners_of(program: &str) -> impl Iterator<Item = Runner> {
    let from = RUNNERS.partition_point(|(known, _)| *known < program);
    let lines = RUNNERS.get(from..).unwrap_or_default().iter();
    lines.take_while(move |(known, _)| *known == program).filter_map(|(_, line)| runner(line))
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

fn runner(line: &'static str) -> Option<Runner> {
    let mut words = line.split_whitespace();
    let way = match words.next()? {
        "rest" => Way::Rest,
        "flag" => Way::Flag,
        "text" => Way::Text,
        "texts" => Way::Texts,
        "search" => Way::Search,
        "key" => Way::Key,
        "line" => Way::Line,
        "values" => Way::Values,
        "input" => Way::Input,
        _ => return None,
    };
    let mut made =
        Runner { way, words: Vec::new(), valued: "", long: Vec::new(), operands: 0, after: Vec::new() };
    for word in words {
        match word.split_once('=') {
            Some(("valued", flags)) => made.valued = flags,
            Some(("long", flags)) => made.long = flags.split(',').collect(),
            Some(("after", names)) => made.after = names.split(',').collect(),
            Some(("operands", count)) => made.operands = count.parse().unwrap_or_default(),
            Some(_) | None => made.words.push(word),
        }
    }
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let unread: Vec<_> = RUNNERS.iter().filter(|(_, line)| runner(line).is_none()).collect();
        assert!(RUNNERS.len() > 100);
        assert!(unread.is_empty(), "{unread:#?}");
        assert_eq!(runners_of("env").count(), 2);
        assert_eq!(runners_of("nothing").count() + runners_of("en").count() + runners_of("").count(), 0);
    }
}
