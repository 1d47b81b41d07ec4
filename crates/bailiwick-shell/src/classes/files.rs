//! The files among the words of a command: read, written, deleted, or only named.

use super::effects::Seen;
use super::table::{flag_values, has_flag, role};
use crate::reader::Simple;

/// Subcommands of `git` that show what is in a file.
const GIT_READERS: &[&str] =
    &["diff", "show", "log", "hash-object", "cat-file", "archive", "blame", "difftool"];
/// Addresses at which clouds hand out credentials.
const METADATA: &[&str] =
    &["169.254.169.254", "metadata.google.internal", "fd00:ec2::254", "100.100.100.200"];

/// Notes what a command does with files.
pub(super) fn note(seen: &mut Seen<'_>, simple: &Simple, program: &str, arguments: &[String]) {
    let operands: Vec<&str> = operands(arguments);
    if role("deletes", program).is_some_and(|flags| has_flag(flags, arguments)) {
        let recursive = has_flag(&["-r", "-R", "--recursive", "-rf"], arguments);
        operands.iter().for_each(|file| seen.deleted(simple, file, recursive));
    }
    if role("moves", program).is_some()
        && let Some((last, first)) = operands.split_last()
    {
        first.iter().for_each(|file| seen.deleted(simple, file, true));
        seen.written_to(simple, last);
        if *last == "/dev/null" {
            seen.note("deletes(unknown)", &simple.plain);
        }
    }
    if role("copies", program).is_some()
        && let Some(last) = operands.last()
    {
        seen.written_to(simple, last);
    }
    // `tee` empties what it is given.
    if program == "tee" && operands.iter().any(|file| file.contains("$ARGS")) {
        seen.note("deletes(unknown)", &simple.plain);
    }
    if program == "rsync"
        && arguments.iter().any(|word| word.starts_with("--del"))
        && let Some(target) = operands.last()
    {
        seen.deleted(simple, target, true);
        if target.contains(':') {
            seen.note("deletes(outside)", target);
        }
    }
    if role("writes", program).is_some() {
        operands.iter().for_each(|file| seen.written_to(simple, file));
    }
    if role("inplace", program).is_some_and(|flags| {
        has_flag(flags, arguments) || arguments.iter().any(|word| flags.contains(&word.as_str()))
    }) {
        operands.iter().for_each(|file| seen.written_to(simple, file));
    }
    let into = role("into", program).unwrap_or(&["-o", "--output"]);
    for file in flag_values(into, arguments) {
        seen.written_to(simple, file);
    }
    if program == "dd" {
        for word in arguments {
            match word.split_once('=') {
                Some(("of", file)) => seen.written_to(simple, file),
                Some(("if", file)) => seen.read_from(simple, file, false),
                Some(_) | None => {}
            }
        }
    }
    read_words(seen, simple, program, arguments);
    found_files(seen, simple, program, arguments);
    served(seen, simple, program, arguments);
}

/// Words that are no flags.
fn operands(arguments: &[String]) -> Vec<&str> {
    let mut only = false;
    let mut operands = Vec::new();
    for word in arguments {
        if word == "--" && !only {
            only = true;
        } else if only || !word.starts_with('-') {
            operands.push(word.as_str());
        }
    }
    operands
}

/// Every word of a program that reads its words, and every piece of it that could be a path.
fn read_words(seen: &mut Seen<'_>, simple: &Simple, program: &str, arguments: &[String]) {
    let git = program == "git";
    let subcommand =
        arguments.iter().find(|word| !word.starts_with('-')).map(String::as_str).unwrap_or_default();
    let forced = has_flag(&["-f", "--force"], arguments);
    let git_reads = GIT_READERS.contains(&subcommand) || (subcommand == "add" && forced);
    if role("mentions", program).is_some() || (git && !git_reads) {
        return;
    }
    let recursive = role("recurses", program).is_some_and(|flags| has_flag(flags, arguments));
    let archived = git || program == "docker" || program == "podman";
    let pattern =
        role("pattern", program).is_some() && !has_flag(&["-e", "-f", "--regexp", "--file"], arguments);
    let mut skipped = !pattern;
    // The last file of a copy is written.
    let read = match arguments.split_last() {
        Some((last, first)) if role("copies", program).is_some() && !last.starts_with('-') => first,
        Some(_) | None => arguments,
    };
    for word in read {
        if METADATA.iter().any(|host| word.contains(host)) {
            seen.note("reads(secret)", word);
        }
        let excluded = ["--exclude", "--ignore", "!", "--include", "-name", "--glob="];
        if excluded.iter().any(|start| word.starts_with(start))
            || (word.contains("://") && !word.starts_with("file://"))
        {
            continue;
        }
        if !skipped && !word.starts_with('-') {
            skipped = true;
            continue;
        }
        for piece in pieces(word) {
            seen.read_from(simple, piece, recursive && !archived);
        }
    }
}

/// A word, and what stands behind signs that set off paths.
fn pieces(word: &str) -> Vec<&str> {
    let mut pieces = vec![word];
    if word.len() <= 4096 && word.contains(['=', '@', ',', ':', ' ', '\'', '"', '(', ';', '<', '>', '|']) {
        pieces.extend(
            word.split(['=', '@', ',', ':', ' ', '\'', '"', '(', ')', ';', '<', '>', '|', '\n']).take(64),
        );
    }
    if let Some(rest) = word.strip_prefix('-').filter(|rest| rest.len() > 2 && !rest.starts_with('-')) {
        pieces.extend(rest.get(1..));
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// `find` with the name of a secret and something that opens what is found.
fn found_files(seen: &mut Seen<'_>, simple: &Simple, program: &str, arguments: &[String]) {
    if !matches!(program, "find" | "fd" | "fdfind") {
        return;
    }
    let opens = arguments.iter().any(|word| {
        matches!(
            word.as_str(),
            "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch"
        )
    });
    let names = flag_values(&["-name", "-iname", "-path", "-wholename"], arguments);
    for name in names.iter().filter(|_| opens) {
        seen.read_from(simple, name, false);
    }
    let fed = seen.reading.commands.iter().any(|other| {
        !other.fed_by.is_empty()
            && other.fed_by.clone().any(|number| seen.reading.commands.get(number) == Some(simple))
    });
    if fed {
        let roots: Vec<&String> = arguments.iter().take_while(|word| !word.starts_with('-')).collect();
        let secret = |word: &str| {
            seen.spot(simple, word).is_some_and(|spot| {
                spot.is("secret") || spot.is("holder") && word != "." && word.contains('.')
            })
        };
        if roots.iter().any(|root| secret(root)) {
            seen.note("reads(secret)", &simple.plain);
        }
    }
}

/// A directory with secrets that is served to others.
fn served(seen: &mut Seen<'_>, simple: &Simple, program: &str, arguments: &[String]) {
    let serves = arguments.iter().any(|word| {
        matches!(word.as_str(), "http.server" | "SimpleHTTPServer" | "httpd" | "-S" | "serve" | "webdav")
    }) || matches!(program, "serve" | "http-server" | "httpd");
    if !serves
        || !matches!(
            program,
            "python"
                | "python2"
                | "python3"
                | "php"
                | "ruby"
                | "busybox"
                | "httpd"
                | "npx"
                | "serve"
                | "http-server"
                | "rclone"
        )
    {
        return;
    }
    let holder = |word: &str| seen.spot(simple, word).is_some_and(|spot| spot.is("holder"));
    if arguments.iter().any(|word| holder(word)) || holder(".") {
        seen.note("sends(private)", &simple.plain);
    }
}
