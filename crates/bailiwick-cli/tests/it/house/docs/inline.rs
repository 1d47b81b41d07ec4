//! Commands that stand within a sentence or a table are not run, but what they name exists: `bailiwick SUB --flag`.

use std::collections::BTreeMap;
use std::process::Command;

use super::documents;
use crate::house::{assert_none, repo};

#[test]
fn commands_within_sentences_name_what_exists() {
    let mut helps = Helps::default();
    let pages = documents();
    let unknown: Vec<String> = pages
        .iter()
        .flat_map(|page| {
            let text = std::fs::read_to_string(page).expect("a document can be read");
            let name = repo::relative(page);
            helps.unknown_in(&text).into_iter().map(move |what| format!("{name}: {what}")).collect::<Vec<_>>()
        })
        .collect();
    assert_none("a document names a command or a flag that does not exist", &unknown);
}

/// What `--help` says of each subcommand, asked once.
#[derive(Default)]
struct Helps(BTreeMap<String, Option<String>>);

impl Helps {
    fn unknown_in(&mut self, text: &str) -> Vec<String> {
        spans(text).filter_map(|span| self.unknown(span)).collect()
    }

    /// What is wrong with a span such as `bailiwick run --cap X -- true`.
    fn unknown(&mut self, span: &str) -> Option<String> {
        let mut words = span.strip_prefix("bailiwick ")?.split_whitespace();
        let command = words.next().filter(|word| word.chars().all(|letter| letter.is_ascii_lowercase()))?;
        let Some(help) = self.help_of(command) else {
            return Some(format!("`{span}`: no command `{command}`"));
        };
        // Behind `--` stands another program's command line.
        let flags = words.take_while(|word| *word != "--").filter(|word| word.starts_with("--"));
        let mut names = flags.map(|flag| flag.split(['=', '[']).next().unwrap_or(flag));
        let unknown = names.find(|flag| !mentions(help, flag))?;
        Some(format!("`{span}`: `{command}` has no `{unknown}`"))
    }

    /// The help of a command and of its own subcommands, or nothing where there is no such command.
    fn help_of(&mut self, command: &str) -> Option<&str> {
        let entry = self.0.entry(command.to_owned()).or_insert_with(|| {
            let whole = help(&[command])?;
            let below =
                subcommands(&whole).into_iter().filter_map(|sub| help(&[command, &sub])).collect::<String>();
            Some(whole + &below)
        });
        entry.as_deref()
    }
}

fn help(words: &[&str]) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_bailiwick")).args(words).arg("--help").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn subcommands(help: &str) -> Vec<String> {
    let Some((_, listed)) = help.split_once("Commands:\n") else { return Vec::new() };
    let lines = listed.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("    "));
    lines
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// Whether a flag stands in a help text as a whole word.
fn mentions(help: &str, flag: &str) -> bool {
    help.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').any(|word| word == flag)
}

/// Code within lines, outside of fenced blocks; one span may not go over a line's end.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines()
        .filter(move |line| {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            !fenced && !fence
        })
        .flat_map(|line| line.split('`').skip(1).step_by(2))
}

#[test]
fn the_rule_sees_unknown_commands_and_flags() {
    let mut helps = Helps::default();
    let fine =
        "Run `bailiwick run --cap X -- prog --nonsense`, `bailiwick log verify --key K`, `bailiwick-page`.";
    assert_eq!(helps.unknown_in(fine), [""; 0]);
    assert_eq!(helps.unknown_in("```sh\nbailiwick nonsense `bailiwick nonsense`\n```\n"), [""; 0]);
    let seen = helps.unknown_in(
        "`bailiwick nonsense` and `bailiwick run --nonsense=1 -- true`, `bailiwick log show --key`",
    );
    let expected = [
        "`bailiwick nonsense`: no command `nonsense`",
        "`bailiwick run --nonsense=1 -- true`: `run` has no `--nonsense`",
    ];
    assert_eq!(seen, expected);
}
