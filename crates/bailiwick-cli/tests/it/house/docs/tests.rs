//! The runner's own tests, so that a green page means something while pages are few.

use std::path::Path;

use super::block::{Block, Run, Step, read};
use super::{check, wrong_rows};

/// A document of one block with this info string and body.
fn page(info: &str, body: &str) -> String {
    format!("Words.\n\n```{info}\n{body}\n```\n")
}

fn failures(text: &str) -> Vec<String> {
    check("a.md", text, Path::new(env!("CARGO_BIN_EXE_bailiwick")), Path::new("/proc/nonexistent"))
}

fn passes(text: &str) {
    assert_eq!(failures(text), [""; 0], "{text}");
}

/// The document fails with exactly one message, which holds `what`.
fn fails(text: &str, what: &str) {
    let failures = failures(text);
    assert!(failures.len() == 1 && failures[0].contains(what), "{text}\n{failures:#?}");
}

#[test]
fn a_true_page_passes() {
    passes("No block at all.\n");
    passes(&page("toml", "$ false"));
    passes(&page("console", "$ echo one; echo two >&2\none\ntwo\n$ true\n$ printf x\nx"));
    passes(&page("console exit=3", "$ true\n$ sh -c 'echo no; exit 3'\nno"));
    passes(&page("sh", "echo unseen\nx=1\ntest $x = 1"));
    passes(&page("sh", "$ echo unseen"));
    passes(&page("console no-run=needs-network", "$ false"));
}

#[test]
fn a_false_page_fails_with_its_line() {
    fails(&page("console", "$ echo one\ntwo"), "a.md:3: `echo one` prints:\none\n");
    fails(&page("console", "$ echo one"), "prints:\none\n");
    fails(&page("console", "$ true\nsomething"), "shows:\nsomething");
    fails(&page("console", "$ false"), "exits with 1, not 0");
    fails(&page("console exit=1", "$ true"), "exits with 0, not 1");
    fails(&page("console exit=1", "$ false\n$ false"), "exits with 1, not 0");
    fails(&page("console", "$ exit 0\n$ true"), "ended the shell");
    fails(&page("sh", "true\nfalse"), "exits with 1");
    fails(&page("sh", "false\ntrue"), "exits with 1");
    fails(&page("sh", "$ echo one\ntwo"), "prints:\none\n");
}

#[test]
fn a_slip_of_the_pen_does_not_hide_a_command() {
    fails(&page("bash", "false"), "call it `sh` or `console`");
    fails(&page("console no-run", "$ true"), "`no-run` is not understood");
    fails(&page("console no-run=", "$ true"), "`no-run=` is not understood");
    fails(&page("console exit=one", "$ true"), "not an exit code");
    fails(&page("console", "true"), "starts with a `$ ` line");
    fails(&page("sh", ""), "no command");
    fails(&page("console", ""), "no command");
    fails("```sh\ntrue\n", "never closed");
}

#[test]
fn three_dots_stand_for_any_lines() {
    let four = "$ printf 'a\\nb\\nc\\nd\\n'\n";
    for shown in ["...", "a\n...", "...\nd", "a\n...\nd", "a\n...\nb\nc\nd", "...\nb\n...\nd"] {
        passes(&page("console", &format!("{four}{shown}")));
    }
    for shown in ["b\n...", "...\nc", "a\n...\nb", "a ...\nb\nc\nd"] {
        fails(&page("console", &format!("{four}{shown}")), "the document shows");
    }
}

#[test]
fn blocks_of_a_page_share_a_directory_and_commands_of_a_block_a_shell() {
    let first =
        page("console", "$ mkdir d\n$ cd d\n$ cat > f <<EOF\n> one\n>\n> two\n> EOF\n$ cat f\none\n\ntwo");
    let second = page("console", "$ ls\nd\n$ wc -l \\\n>   d/f\n3 d/f");
    passes(&format!("{first}{second}"));
    passes(&page("console", "$ ls\n$ test -d \"$HOME\" && ls -A \"$HOME\""));
}

#[test]
fn the_built_command_comes_first_on_the_path() {
    let built = env!("CARGO_BIN_EXE_bailiwick");
    passes(&page("console", &format!("$ command -v bailiwick\n{built}")));
}

#[test]
fn the_examples_are_copied_in() {
    let examples = tempfile::tempdir().unwrap();
    std::fs::create_dir(examples.path().join("deep")).unwrap();
    std::fs::write(examples.path().join("deep/a.toml"), "x = 1\n").unwrap();
    let page = page("console", "$ cat examples/deep/a.toml\nx = 1\n$ rm -r examples");
    assert_eq!(check("a.md", &page, Path::new("/bin/true"), examples.path()), [""; 0]);
    assert!(examples.path().join("deep/a.toml").is_file(), "the original is untouched");
}

#[test]
fn fences_are_read_as_markdown_has_them() {
    let text = "  ~~~sh\n  echo ```\n  ~~~\n````md\n```sh\nfalse\n```\n````\n```console exit=2\n$ a\n```";
    let script = Step { command: "(set -e\necho ```\n)".to_owned(), output: None };
    let shown = Step { command: "a".to_owned(), output: Some(Vec::new()) };
    let expected = [
        Block { line: 1, run: Run::Steps { steps: vec![script], exit: 0 } },
        Block { line: 9, run: Run::Steps { steps: vec![shown], exit: 2 } },
    ];
    assert_eq!(read(text).unwrap(), expected);
}

#[test]
fn the_crates_table_is_compared_both_ways() {
    let page = "| `a` | stage | yes |\n| `b` | stage | not yet |\n| `c` | stage | yes |\n| `d` | prose |\n";
    let existing = ["a", "b", "e"].map(str::to_owned);
    assert_eq!(wrong_rows(page, &existing), ["b is marked wrongly", "c is marked wrongly", "e has no row"]);
}
