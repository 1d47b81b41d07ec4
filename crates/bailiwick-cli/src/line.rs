//! The command line of what this program runs itself. Each command is described alone, because to describe all of them takes as long
//! as all else that happens before a sandbox starts. Lines of other commands, and lines that are wrong, are left to
//! `bailiwick-admin`, which knows all of them.

use std::ffi::{OsStr, OsString};

use bailiwick_command::args::hook::Hook;
use bailiwick_command::args::run::{Demo, Run};
use bailiwick_command::args::serve::Serve;
use bailiwick_command::args::without_secret;
use bailiwick_command::args::wrap::Wrap;
use clap::{Args, ColorChoice, Parser};

/// What to do.
#[derive(Debug)]
pub(crate) enum Command {
    Demo(Demo),
    Hook(Hook),
    Run(Run),
    Serve(Serve),
    Wrap(Wrap),
    /// Hold the values of secrets for another process of this program.
    Hold,
    /// Look once at the log of the fleet.
    RefreshFleet,
}

/// What became of a line.
#[expect(clippy::large_enum_variant, reason = "there is one, and it is taken apart at once")]
pub(crate) enum Read {
    /// It is a command of this program.
    Here(Command, ColorChoice),
    /// It is another program's, or wrong in the way that is told here.
    Elsewhere(Option<clap::Error>),
}

impl Read {
    /// Reads the words of a line, the program's name and the command first.
    pub(crate) fn new(mut words: Vec<OsString>) -> Self {
        let name = (words.len() > 1).then(|| words.remove(1));
        match name.as_deref().and_then(OsStr::to_str) {
            Some("demo") => Line::read(&words, Command::Demo),
            Some("hook") => Line::read(&words, Command::Hook),
            Some("run") => Line::read(&words, Command::Run),
            Some("serve") => Line::read(&words, Command::Serve),
            Some("wrap") => Line::read(&words, Command::Wrap),
            Some("secret") if is_alone(&words, "hold") => Self::Here(Command::Hold, ColorChoice::Auto),
            Some("refresh-fleet") if words.len() == 1 => Self::Here(Command::RefreshFleet, ColorChoice::Auto),
            _ => Self::Elsewhere(None),
        }
    }
}

/// A line of one command, its name left out.
#[derive(Debug, Parser)]
#[command(name = "bailiwick")]
struct Line<C: Args> {
    #[arg(long = "color", value_name = "WHEN", default_value = "auto")]
    colour: ColorChoice,
    #[command(flatten)]
    command: C,
}

impl<C: Args> Line<C> {
    fn read(words: &[OsString], command: fn(C) -> Command) -> Read {
        match Self::try_parse_from(words) {
            Ok(Self { colour, command: args }) => Read::Here(command(args), colour),
            Err(wrong) => Read::Elsewhere(Some(without_secret(wrong))),
        }
    }
}

fn is_alone(words: &[OsString], word: &str) -> bool {
    matches!(words, [_, only] if only == word)
}

/// Whether these words, the program's name first, ask for nothing but the version. Others may wait for that too: no
/// command is described for it.
pub(crate) fn asks_for_version(words: &[OsString]) -> bool {
    matches!(words, [_, asked] if asked == "--version" || asked == "-V")
}

/// The words with `--color WHEN` behind the command instead of before it: both are the same.
pub(crate) fn command_first(words: &[OsString]) -> Vec<OsString> {
    let mut words = words.to_vec();
    let count = match words.get(1).and_then(|word| word.to_str()) {
        Some("--color") => 2,
        Some(word) if word.starts_with("--color=") => 1,
        _ => 0,
    };
    if words.len() > count + 1 {
        words.get_mut(1..count + 2).into_iter().for_each(|first| first.rotate_left(count));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_version_alone_is_asked_for_in_two_ways() {
        for alone in ["--version", "-V"] {
            assert!(asks_for_version(&words(&format!("bailiwick {alone}"))));
            for more in [format!("bailiwick {alone} run"), format!("bailiwick run {alone}"), alone.to_owned()]
            {
                assert!(!asks_for_version(&words(&more)), "{more}");
            }
        }
        for other in ["bailiwick", "bailiwick --versio", "bailiwick --help"] {
            assert!(!asks_for_version(&words(other)), "{other}");
        }
    }

    #[test]
    fn colours_may_be_chosen_before_the_command() {
        let moved = |line: &str| command_first(&words(line));
        assert_eq!(moved("b --color never run -- x"), words("b run --color never -- x"));
        assert_eq!(moved("b --color=never run -- x"), words("b run --color=never -- x"));
        for as_it_is in
            ["b", "b run --color never", "b --color", "b --color never", "b --color=never", "b check"]
        {
            assert_eq!(moved(as_it_is), words(as_it_is));
        }
    }

    #[test]
    fn other_commands_and_wrong_lines_are_left_to_the_program_that_knows_all() {
        let here = |line: &str| matches!(Read::new(words(line)), Read::Here(..));
        for own in [
            "b run -- x",
            "b hook generic",
            "b secret hold",
            "b refresh-fleet",
            "b serve --color never",
            "b demo",
        ] {
            assert!(here(own), "{own}");
        }
        for other in [
            "b",
            "b --help",
            "b check x",
            "b secret list",
            "b secret hold x",
            "b refresh-fleet x",
            "b run --help",
        ] {
            assert!(!here(other), "{other}");
        }
        assert!(matches!(Read::new(words("b hook nonsense")), Read::Elsewhere(Some(_))));
    }
}
