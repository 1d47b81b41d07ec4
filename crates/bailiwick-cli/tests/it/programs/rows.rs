//! The rows of `programs.txt`, and the page that is printed from them.

use std::path::Path;

use super::{services, tools};

/// One program.
pub(super) struct Row {
    heading: &'static str,
    pub(super) program: &'static str,
    pub(super) grants: Vec<&'static str>,
    pub(super) command: &'static str,
    /// What is typed on a terminal; none if it has no terminal.
    pub(super) keys: Option<&'static str>,
    pub(super) expected: Expected,
    /// Why hints alone do not lead to it; none if they do.
    pub(super) unhinted: Option<&'static str>,
}

/// How a run is known to have worked, besides its exit code.
pub(super) enum Expected {
    /// It prints this.
    Text(&'static str),
    /// This file is there then.
    File(&'static str),
}

impl Row {
    pub(super) fn is_installed(&self) -> bool {
        self.missing().is_empty()
    }

    /// The first program of the row that is not there; empty if all are.
    pub(super) fn missing(&self) -> &'static str {
        let spawned = self.grants.iter().filter_map(|grant| grant.strip_prefix("exec:spawn:"));
        let spawned =
            spawned.map(|name| name.split('?').next().unwrap_or_default()).filter(|name| *name != "*");
        let own = self.command.split(' ').next();
        let is_here = |program: &&str| {
            if program.starts_with("{tools}") {
                return tools::has(program);
            }
            program.starts_with('{')
                || ["/usr/local/bin", "/usr/bin", "/bin"]
                    .iter()
                    .any(|directory| Path::new(directory).join(program).exists())
        };
        let program = own.into_iter().chain(spawned).find(|program| !is_here(program)).unwrap_or_default();
        if program.is_empty() { services::missing(self.command) } else { program }
    }
}

pub(super) fn rows() -> Vec<Row> {
    let mut heading = "";
    let mut rows = Vec::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/programs/programs.txt");
    let text: &'static str = std::fs::read_to_string(path).expect("the rows").leak();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(why) = line.strip_prefix("not by hints: ") {
            let row: &mut Row = rows.last_mut().expect("it stands below a row");
            row.unhinted = Some(why);
            continue;
        }
        if let Some(text) = line.strip_prefix("# ") {
            heading = text;
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        // A pipe of the command may have room on both sides: the cells around it are known.
        let cells: Vec<&str> = line.splitn(3, " | ").collect();
        let [program, grants, rest] = cells[..] else { panic!("four cells: {line}") };
        let (command, expected) = rest.rsplit_once(" |").unwrap_or_else(|| panic!("four cells: {line}"));
        let grants = grants.split(' ').filter(|grant| *grant != "-").collect();
        let (keys, command) = match command.trim().strip_prefix("keys ") {
            Some(typed) => {
                let (keys, command) =
                    typed.split_once(" on ").unwrap_or_else(|| panic!("keys ... on: {line}"));
                (Some(keys), command)
            }
            None => (None, command),
        };
        let expected = expected.trim();
        let expected = expected.strip_prefix("file:").map_or(Expected::Text(expected), Expected::File);
        rows.push(Row { heading, program, grants, command: command.trim(), keys, expected, unhinted: None });
    }
    rows
}

const OPENING: &str = "# Programs

Real programs and the grants they need. A test runs every row that a host has the program for, as root and as a plain
user: `crates/bailiwick-cli/tests/it/programs/programs.txt`, from which this page is printed; a longer run takes every grant
away once and sees that the row then fails. `{w}` is a project directory, `{out}` an empty one, `{home}` the home, `{tools}` a
virtual environment with `node_modules`, `{sockets}` a directory with a socket; `{port}`, `{tls}`, `{pg}` and `{redis}` are ports of
this host. Everything else of the host stays closed: nothing is reached but what a row grants. A browser has a sandbox of its own, which
needs namespaces (`?nestedSandbox=true`); with `--no-sandbox` it goes without, and is held by this one alone.

The grants need not be known before. Another test starts each row with none, adds what the notes of a failed run name, as it is
written, and runs again, with `--tell` where the note says so: after at most two rounds the program works, but for the rows that are
named at the end.
";

/// `docs/programs.md`.
pub(super) fn page() -> String {
    let mut text = OPENING.to_owned();
    let mut heading = "";
    for row in rows() {
        if row.heading != heading {
            heading = row.heading;
            text += &format!("\n## {heading}\n\n| program | grants | command |\n|---|---|---|\n");
        }
        let grants: Vec<String> = row.grants.iter().map(|grant| format!("`{grant}`")).collect();
        let grants = if grants.is_empty() { "none".to_owned() } else { grants.join(" ") };
        text += &format!("| {} | {grants} | `{}` |\n", row.program, row.command.replace('|', "\\|"));
    }
    text += "\n## Not by notes alone\n\nTwo rounds of notes do not lead to these:\n\n";
    for row in rows() {
        if let Some(why) = row.unhinted {
            text += &format!("- {}: {why}\n", row.program);
        }
    }
    text
}
