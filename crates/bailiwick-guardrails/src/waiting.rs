//! Programs that wait for commands on their input.
//!
//! An agent that lets the model type into a running program without asking its hooks (Codex: `write_stdin`) must not
//! start one: what is typed there is judged by nothing. Residual: programs that read commands and are not listed here,
//! and scripts that start a listed one.
use bailiwick_shell::Simple;

/// Shells and interpreters that read commands from their input if they are given none.
const READERS_OF_COMMANDS: &[&str] = &[
    "ash", "bash", "bun", "csh", "dash", "deno", "fish", "gdb", "ghci", "irb", "julia", "ksh", "lua",
    "mysql", "node", "perl", "php", "psql", "python", "python2", "python3", "R", "ruby", "screen", "script",
    "sftp", "sh", "sqlite3", "tclsh", "tcsh", "tmux", "xonsh", "zsh",
];

/// Flags after which such a program does not wait: it was given its text, or only says something about itself.
const GIVEN: &[&str] =
    &["-c", "-e", "-m", "-E", "-r", "-p", "-V", "-v", "--version", "--help", "-h", "--eval", "--print"];

/// The program in a shell text that would wait for commands, if there is one.
pub(crate) fn waiting_program<'c>(commands: &'c [Simple], text: &str) -> Option<&'c str> {
    let waits = |command: &&Simple| {
        let Some((program, rest)) = command.words.split_first() else { return false };
        let given = rest.iter().any(|word| !word.starts_with('-') || GIVEN.contains(&word.as_str()));
        let forced = rest.iter().any(|word| word == "-i" || word == "--interactive");
        READERS_OF_COMMANDS.contains(&program.as_str()) && (!given || forced) && !is_fed(program, text)
    };
    commands.iter().find(waits).and_then(|command| command.words.first()).map(String::as_str)
}

/// Whether every place that names the program feeds it: from a pipe, a file or a here-document.
fn is_fed(program: &str, text: &str) -> bool {
    let names = |piece: &&str| {
        let mut words = piece.split(|c: char| c.is_whitespace() || "'\"()`".contains(c));
        words.any(|word| word.rsplit('/').next() == Some(program))
    };
    text.split([';', '&', '\n']).filter(names).all(|piece| piece.contains(['<', '|']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bailiwick_shell::read;

    #[test]
    fn programs_that_wait_are_found() {
        let waiting = |text: &str| waiting_program(&read(text).commands, text).map(str::to_owned);
        for text in [
            "bash",
            "/bin/sh -i",
            "python3",
            "cd /tmp && node",
            "bash; echo '<'",
            "env A=1 python3 -i x.py",
            "python3 -",
        ] {
            assert!(waiting(text).is_some(), "{text}");
        }
        for text in [
            "bash -c 'ls'",
            "python3 x.py",
            "python3 - <<'E'\nprint(1)\nE",
            "node --version",
            "ls",
            "bash run.sh",
        ] {
            assert_eq!(waiting(text), None, "{text}");
        }
    }
}
