//! Links of the documents lead somewhere, and the README leads to every document and every command.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::documents;
use crate::house::{assert_none, repo};

#[test]
fn links_between_documents_lead_somewhere() {
    let mut pages = documents();
    pages.extend(["ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md"].map(|name| repo::root().join(name)));
    let dead: Vec<String> = pages.iter().flat_map(|page| dead_links(page)).collect();
    assert_none("a link leads nowhere", &dead);
}

#[test]
fn the_readme_leads_to_every_document() {
    let readme = text(&repo::root().join("README.md"));
    let missing: Vec<String> = documents()
        .iter()
        .map(|page| repo::relative(page))
        .filter(|page| page != "README.md" && !targets(&readme).any(|target| target == page))
        .collect();
    assert_none("README.md has no link to a document", &missing);
}

#[test]
fn the_readme_names_every_command() {
    let help = Command::new(env!("CARGO_BIN_EXE_bailiwick")).arg("--help").output().expect("it starts");
    let help = String::from_utf8(help.stdout).expect("help is UTF-8");
    assert_none(
        "a command is not in the table of README.md",
        &missing_commands(&text(&repo::root().join("README.md")), &help),
    );
}

/// Commands that `--help` lists and that no row of the table names, in backticks and with or without `bailiwick`.
fn missing_commands(readme: &str, help: &str) -> Vec<String> {
    let rows: Vec<&str> = readme.lines().filter(|line| line.starts_with("| `bailiwick ")).collect();
    let named = |command: &str| {
        let starts = [format!("`bailiwick {command}"), format!("`{command}")];
        let ends = |rest: &str| rest.starts_with([' ', '`']);
        rows.iter()
            .any(|row| starts.iter().any(|start| row.split_once(start).is_some_and(|(_, rest)| ends(rest))))
    };
    let (_, listed) = help.split_once("Commands:").expect("help lists commands");
    let listed = listed.lines().skip(1).take_while(|line| !line.is_empty());
    let commands =
        listed.filter(|line| !line.starts_with("    ")).filter_map(|line| line.split_whitespace().next());
    commands.filter(|command| *command != "help" && !named(command)).map(str::to_owned).collect()
}

fn dead_links(page: &Path) -> Vec<String> {
    let text = text(page);
    let name = repo::relative(page);
    targets(&text)
        .filter(|target| !target.contains("://") && !leads_somewhere(page, target))
        .map(|target| format!("{name}: {target}"))
        .collect()
}

fn leads_somewhere(page: &Path, target: &str) -> bool {
    let (file, heading) =
        target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading)));
    let path: PathBuf = if file.is_empty() {
        page.to_owned()
    } else {
        page.parent().expect("a page has a directory").join(file)
    };
    path.is_file() && heading.is_none_or(|heading| anchors(&text(&path)).any(|anchor| anchor == heading))
}

/// What stands in the parentheses of `[words](target)`.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// The anchors that a page's headings have where it is shown.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let kept = |letter: &char| letter.is_alphanumeric() || "-_ ".contains(*letter);
    text.lines().filter(|line| line.starts_with('#')).map(move |line| {
        line.trim_start_matches('#')
            .trim()
            .to_lowercase()
            .chars()
            .filter(kept)
            .collect::<String>()
            .replace(' ', "-")
    })
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}

#[test]
fn the_rules_see_dead_links_and_missing_commands() {
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("b.md"), "# One: two\n").unwrap();
    let page = here.path().join("a.md");
    let dead = "[x](c.md), [y](b.md#three), [z](#none)";
    std::fs::write(&page, format!("[a](b.md) [b](b.md#one-two) [c](https://x.test/)\n{dead}\n")).unwrap();
    let seen: Vec<String> =
        dead_links(&page).iter().map(|link| link.rsplit(' ').next().unwrap().to_owned()).collect();
    assert_eq!(seen, ["c.md", "b.md#three", "#none"]);

    let help = "Usage\n\nCommands:\n  run    Run\n         more\n  log    Read\n  approve  x\n  help   Print\n\nOptions:\n  -h\n";
    assert_eq!(
        missing_commands("| `bailiwick run -- X` | |\n| `bailiwick pending`, `approve ID` |\nlog\n", help),
        ["log"]
    );
}
