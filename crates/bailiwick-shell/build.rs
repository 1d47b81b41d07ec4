//! Turns the tables of commands, of their files and of programs that run others into sorted constants: a hook judges one call and ends, so taking the
//! texts apart at run time would cost it more than all that it looks up in them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// From a text to constants.
type Emit = fn(&str) -> String;

/// Each text, and the part of the constants that it becomes.
const TABLES: [(&str, &str, Emit); 3] = [
    ("src/classes/commands.txt", "commands.rs", commands),
    ("src/classes/files.txt", "files.rs", roles),
    ("src/reader/runners.txt", "runners.rs", runners),
];

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    for (text, constants, emit) in TABLES {
        println!("cargo::rerun-if-changed={text}");
        std::fs::write(Path::new(&out).join(constants), emit(&std::fs::read_to_string(text)?))?;
    }
    Ok(())
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Lines by program, and those whose program is a pattern; each names its section by number.
fn commands(text: &str) -> String {
    let (mut sections, mut named, mut patterns) = (Vec::new(), Vec::new(), Vec::new());
    for line in lines(text) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            sections.push(name);
            continue;
        }
        let (programs, words) = line.split_once(' ').unwrap_or((line, ""));
        for program in programs.split('|') {
            let list = if program.contains(['*', '?', '[']) { &mut patterns } else { &mut named };
            list.push((program, sections.len().wrapping_sub(1), words));
        }
    }
    named.sort_by_key(|(program, ..)| *program); // stable: the lines of a program keep their order
    let constant = |name: &str, lines: &[(&str, usize, &str)]| {
        let line = |(program, section, words)| {
            format!("Line {{ program: {program:?}, section: {section}, words: {words:?} }}")
        };
        let lines: Vec<String> = lines.iter().copied().map(line).collect();
        format!("static {name}: &[Line] = &[{}];\n", lines.join(", "))
    };
    format!("static SECTIONS: &[&str] = &{sections:?};\n")
        + &constant("NAMED", &named)
        + &constant("PATTERNS", &patterns)
}

/// What each program does with files, with the flags for it.
fn roles(text: &str) -> String {
    let mut roles: BTreeMap<&str, Vec<(&str, Vec<&str>)>> = BTreeMap::new();
    for line in lines(text) {
        let mut words = line.split_whitespace();
        let (Some(role), Some(first)) = (words.next(), words.next()) else { continue };
        let rest: Vec<&str> = words.collect();
        // A line names programs, or one program and its flags.
        if role == "inplace" || rest.iter().any(|word| word.starts_with(['-', '+'])) {
            roles.entry(first).or_default().push((role, rest));
        } else {
            for program in std::iter::once(first).chain(rest) {
                roles.entry(program).or_default().push((role, Vec::new()));
            }
        }
    }
    let mut rust = "static ROLES: &[(&str, &[Role])] = &[".to_owned();
    for (program, roles) in roles {
        let roles: Vec<String> =
            roles.iter().map(|(role, flags)| format!("({role:?}, &{flags:?})")).collect();
        let _ = write!(rust, "({program:?}, &[{}]), ", roles.join(", "));
    }
    rust + "];\n"
}

/// How each program that runs others does, one line taken apart each.
fn runners(text: &str) -> String {
    let mut runners: Vec<_> = lines(text).filter_map(|line| line.split_once(' ')).collect();
    runners.sort_by_key(|(program, _)| *program); // stable, as above
    let mut rust = "static RUNNERS: &[(&str, Runner)] = &[".to_owned();
    for (program, line) in runners {
        let _ = write!(rust, "({program:?}, {}), ", runner(line));
    }
    rust + "];\n"
}

fn runner(line: &str) -> String {
    let mut parts = line.split_whitespace();
    let way: String = parts.next().unwrap_or_default().to_owned();
    let way = way.get(..1).unwrap_or_default().to_uppercase() + way.get(1..).unwrap_or_default();
    let (mut words, mut long, mut after) = (Vec::new(), Vec::new(), Vec::new());
    let (mut valued, mut operands) = ("", "0");
    for part in parts {
        match part.split_once('=') {
            Some(("valued", flags)) => valued = flags,
            Some(("long", flags)) => long = flags.split(',').collect(),
            Some(("after", names)) => after = names.split(',').collect(),
            Some(("operands", count)) => operands = count,
            Some(_) | None => words.push(part),
        }
    }
    format!(
        "Runner {{ way: Way::{way}, words: &{words:?}, valued: {valued:?}, long: &{long:?}, operands: {operands}, after: &{after:?} }}"
    )
}
