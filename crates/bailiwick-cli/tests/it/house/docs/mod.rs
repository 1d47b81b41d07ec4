//! What the documents show is what happens.
//!
//! Every ```` ```sh ```` and ```` ```console ```` block of README.md and `docs/` runs, top to bottom, in one
//! fresh directory per document that holds a copy of `examples/`, with the built `bailiwick` first on the PATH; one that
//! says `--dir journal` finds a small journal there.
//!
//! - In a `console` block a line that starts with `$ ` is a command and the lines after it are what it prints,
//!   stdout and stderr together; a line `...` stands for any number of lines, and no lines for no output.
//! - A `sh` block without `$ ` is one script, run with `set -e`; its output is not compared.
//! - The last command of a block exits with 0, or with N when the info string says `exit=N`; those before it with 0.
//! - `no-run=REASON` in the info string leaves a block out; the test prints which and why.
//!
//! `block` reads the documents, `session` runs bash, `transcript` compares. `links` follows links, and `inline` looks at
//! commands that stand within a sentence.

mod block;
mod inline;
mod links;
mod session;
mod tests;
mod transcript;

use std::path::{Path, PathBuf};

use self::block::{Block, Run};
use self::session::Session;
use super::{assert_none, repo};

#[test]
fn the_documents_show_what_happens() {
    let failures: Vec<String> = documents().iter().flat_map(|path| failures_in(path)).collect();
    assert_none("a document shows something else than what happens", &failures);
}

/// The crates table of ARCHITECTURE.md says of each crate whether it exists; it must not drift.
#[test]
fn the_architecture_page_knows_which_crates_exist() {
    let page = std::fs::read_to_string(repo::root().join("ARCHITECTURE.md"))
        .expect("ARCHITECTURE.md is at the root");
    let existing: Vec<String> = repo::crate_dirs()
        .iter()
        .filter_map(|dir| dir.file_name().map(|name| name.to_string_lossy().into_owned()))
        .collect();
    assert_none("ARCHITECTURE.md is wrong about which crates exist", &wrong_rows(&page, &existing));
}

fn documents() -> Vec<PathBuf> {
    let root = repo::root();
    let mut documents = vec![root.join("README.md")];
    documents.extend(repo::files_below(&root.join("docs")));
    documents.retain(|path| path.is_file() && path.extension().is_some_and(|extension| extension == "md"));
    documents
}

fn failures_in(path: &Path) -> Vec<String> {
    let name = repo::relative(path);
    let text = std::fs::read_to_string(path).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    let examples = repo::root().join("examples");
    check(&name, &text, Path::new(env!("CARGO_BIN_EXE_bailiwick")), &examples)
}

/// Runs the blocks of one document in one session and says what differs, each with its line.
fn check(name: &str, text: &str, binary: &Path, examples: &Path) -> Vec<String> {
    let blocks = match block::read(text) {
        Ok(blocks) => blocks,
        Err(problem) => return vec![format!("{name}:{problem}")],
    };
    let session = Session::open(binary, examples);
    let session = if text.contains("--dir journal") { session.with_journal() } else { session };
    blocks
        .iter()
        .filter_map(|block| failure(block, &session).map(|what| format!("{name}:{}: {what}", block.line)))
        .collect()
}

fn failure(block: &Block, session: &Session) -> Option<String> {
    match &block.run {
        Run::Left { reason } => {
            eprintln!("not run: the block at line {} ({reason})", block.line);
            None
        }
        Run::Steps { steps, exit } => {
            let outcomes = session.run(steps);
            transcript::difference(steps, &outcomes, *exit)
        }
    }
}

/// Rows of the form ``| `crate` | … | yes |`` or `| … | not yet |`.
fn wrong_rows(page: &str, existing: &[String]) -> Vec<String> {
    let rows: Vec<(&str, bool)> = page.lines().filter_map(row).collect();
    let wrong = rows.iter().filter(|(name, exists)| existing.iter().any(|dir| dir == name) != *exists);
    let missing = existing.iter().filter(|dir| !rows.iter().any(|(name, _)| name == dir));
    let wrong = wrong.map(|(name, _)| format!("{name} is marked wrongly"));
    wrong.chain(missing.map(|name| format!("{name} has no row"))).collect()
}

fn row(line: &str) -> Option<(&str, bool)> {
    let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
    let name = cells.first()?.strip_prefix('`')?.strip_suffix('`')?;
    match *cells.last()? {
        "yes" => Some((name, true)),
        "not yet" => Some((name, false)),
        _ => None,
    }
}
