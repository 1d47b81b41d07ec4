//! `docs/escapes.md`, printed from the rows.

use std::fmt::Write as _;
use std::path::Path;

use super::rows::rows;

const INTRODUCTION: &str = "# Escapes

What a confined program tries, and what stops it. Each row is tried from inside the native sandbox by a real program
(`crates/bailiwick-cli/tests/it/escape/probe.c`), as root and as a plain user, and what can be tried without a sandbox
is tried there too, where it must work. `scripts/mutate-sandbox` switches one protection off at a time, in builds that
cannot be released, and fails unless the tests then do.

This page is printed from the rows that the tests run: `crates/bailiwick-cli/tests/it/escape/escapes.txt`.
";

/// Tables of attempts that need more than one call, each in a test of its own.
const TABLES: &str = "
## Tables of their own

Attempts that need threads, several files or a service, each in a test with its own table, as root and as a plain user,
and outside, where they must work:

| test | what is tried | what stops it |
|---|---|---|
| `escape/mediator.c` | reaching a Unix socket that is not granted, past the supervisor that answers every connect: by other names, kinds of sockets and calls, by links and directories put in a granted name's place, by changing the address or the descriptor during the call, from threads with descriptors of their own, by killing, interrupting and flooding | the supervisor copies the address once, compares it byte by byte, follows no link, and connects itself |
| `escape/nested.c` | what `?nestedSandbox=true` gives beyond namespaces: mounts, covers taken away, other roots, ids, devices, kernel settings, sockets, keys; and again with a user map of one's own | Landlock refuses every mount, `/proc` is read-only but for the files of the program's own processes, root gets no map, seccomp refuses the rest |
| `escape/nested.c` | what `?fromWritable=true` starts beyond what was written: read-only data, absent programs, scripts of absent interpreters, memory, setuid files | other mounts are noexec, programs are absent, `nosuid`, seccomp |
| `escape/fifo.rs` | writing a FIFO in a tree that is granted for reading, wherever the tree lies | Landlock, and below the private directory the first process, which opens nothing for writing on a read-only mount |
| `escape/races.c` | making or changing a protected name by changing the path, the directory, the link, the working directory or the file while the call waits, in one sandbox and in two | the path is copied once and acted on by open directories; the program itself may create nothing (Landlock) |
| `bailiwick-confine/tests/it/git.rs` | making the host's git run something: 43 ways to plant configuration, hooks, repositories, submodules and worktrees, each followed by what a person does with git | names that run code later are judged as git reads them |
| `bailiwick-confine/tests/it/stdio.rs` | reaching further than the other end of a descriptor: sockets of every kind, files, devices | they stay outside, the program gets a pipe |
| `bailiwick-confine/tests/it/submounts.rs` | reaching the kernel's file systems where they are mounted below a granted directory | they are covered, ordinary file systems come along |
| `bailiwick-confine/tests/it/home.rs` | reading or changing what a home holds beside what is granted, and a home whose path has another use | the home is the sandbox's own directory with granted paths mounted in it; a path of the system is not taken for it |
| `bailiwick-confine/tests/it/code.rs` | starting or changing what is granted as code, changing a virtual environment, reading beside a program's modules | Landlock and read-only mounts; nothing but the code is shown |
| `bailiwick-confine/src/lost.rs` | leading the supervisor elsewhere when it counts the files that are lost, by links | names alone are read, below a directory opened before, through no link and no mount |
| `servers/mod.rs` | what reference servers do bare and their templates do not grant: other files, hosts and variables, their own code | the plan of the template |
| `run/leash.rs` | reading or changing the journal of the run, changing its manifest or its report, and making the report go elsewhere | the journal is covered, the others and the directories on the way are mounts of their own, all are opened before the start |
| `serve/leash.rs` | changing a session's grant, its guardrails or its journal, by programs and by the tools for files | the same, and the gate |
| `escape/landlock.rs` | all rows above where Landlock and the filter stand alone | `landlock.txt` lists what is not held there, and the status says so |
";

fn page() -> String {
    let mut text = INTRODUCTION.to_owned();
    let mut heading = "";
    for row in rows().iter().filter(|row| !row.is_control()) {
        if row.heading != heading {
            heading = row.heading;
            let _ = write!(
                text,
                "\n## {heading}\n\n| property | what is tried | what stops it |\n|---|---|---|\n"
            );
        }
        let _ = writeln!(text, "| `{}` | {} | {} |", row.id, row.tried, row.stopped_by);
    }
    text + TABLES
}

#[test]
fn the_page_is_printed_from_the_rows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/escapes.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, page()).expect("the page can be written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == page(), "docs/escapes.md is not what the rows say: run with UPDATE_GOLDEN=1");
}
