//! The command lines of `bailiwick` and of `bailiwick-serve`. Each command is described alone, because to describe all of them takes as long
//! as all else that happens before a sandbox starts. Lines of other commands, and lines that are wrong, are left to
//! `bailiwick-admin`, which knows all of them.

use std::ffi::{OsStr, OsString};

use bailiwick_command::args::hook::Hook;
use bailiwick_command::args::run::{Demo, Run};
use bailiwick_command::args::serve::Serve;
use bailiwick_command::args::without_secret;
use bailiwick_command::args::wrap::Wrap;
use bailiwick_command::companion::{ADMIN, SERVE};
use clap::{Args, ColorChoice, Parser};

/// What `bailiwick` itself does.
#[derive(Debug)]
pub(crate) enum Command {
    Hook(Hook),
    Run(Run),
    Wrap(Wrap),
    /// Hold the values of secrets for another process of this program.
    Hold,
    /// Look once at the log of the fleet.
    RefreshFleet,
}

/// What `bailiwick-serve` does.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one, and it is taken apart at once")]
pub(crate) enum ServeCommand {
    Demo(Demo),
    Serve(Serve),
    /// Hold the values of secrets for another process of this program.
    Hold,
}

/// What became of a line.
pub(crate) enum Read<C> {
    /// It is a command of this program.
    Here(C, ColorChoice),
    /// It is for this other program, perhaps because it is wrong in the way that is told here.
    Elsewhere(&'static str, Option<clap::Error>),
}

impl Read<Command> {
    /// Reads the words of a line of `bailiwick`, the program's name and the command first.
    pub(crate) fn new(words: Vec<OsString>) -> Self {
        let (name, words) = without_name(words);
        match name.as_deref().and_then(OsStr::to_str) {
            Some("hook") => Line::read(&words, Command::Hook),
            Some("run") => Line::read(&words, Command::Run),
            Some("wrap") => Line::read(&words, Command::Wrap),
            Some("secret") if is_alone(&words, "hold") => Self::Here(Command::Hold, ColorChoice::Auto),
            Some("refresh-fleet") if words.len() == 1 => Self::Here(Command::RefreshFleet, ColorChoice::Auto),
            Some("demo" | "serve") => Self::Elsewhere(SERVE, None),
            _ => Self::Elsewhere(ADMIN, None),
        }
    }
}

impl Read<ServeCommand> {
    /// The same of `bailiwick-serve`.
    pub(crate) fn new(words: Vec<OsString>) -> Self {
        let (name, words) = without_name(words);
        match name.as_deref().and_then(OsStr::to_str) {
            Some("demo") => Line::read(&words, ServeCommand::Demo),
            Some("serve") => Line::read(&words, ServeCommand::Serve),
            Some("secret") if is_alone(&words, "hold") => Self::Here(ServeCommand::Hold, ColorChoice::Auto),
            _ => Self::Elsewhere(ADMIN, None),
        }
    }
}

/// The name of the command, and the other words.
fn without_name(mut words: Vec<OsString>) -> (Option<OsString>, Vec<OsString>) {
    let name = (words.len() > 1).then(|| words.remove(1));
    (name, words)
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
    fn read<D>(words: &[OsString], command: fn(C) -> D) -> Read<D> {
        match Self::try_parse_from(words) {
            Ok(Self { colour, command: args }) => Read::Here(command(args), colour),
            Err(wrong) => Read::Elsewhere(ADMIN, Some(without_secret(wrong))),
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
    fn other_commands_and_wrong_lines_are_left_to_the_program_that_knows_them() {
        let left_to = |line: &str| match Read::<Command>::new(words(line)) {
            Read::Here(..) => "",
            Read::Elsewhere(program, _) => program,
        };
        for own in
            ["b run -- x", "b hook generic", "b secret hold", "b refresh-fleet", "b wrap --color never -- x"]
        {
            assert_eq!(left_to(own), "", "{own}");
        }
        for served in ["b serve", "b demo", "b serve --help", "b serve --nonsense"] {
            assert_eq!(left_to(served), SERVE, "{served}");
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
            assert_eq!(left_to(other), ADMIN, "{other}");
        }
        assert!(matches!(Read::<Command>::new(words("b hook nonsense")), Read::Elsewhere(_, Some(_))));
        let served = |line: &str| matches!(Read::<ServeCommand>::new(words(line)), Read::Here(..));
        assert!(served("b serve") && served("b demo") && served("b secret hold") && !served("b run -- x"));
        assert!(!served("b serve --help") && !served("b serve --nonsense"));
    }
}
