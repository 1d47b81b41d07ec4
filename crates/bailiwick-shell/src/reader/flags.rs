//! Flags in one spelling: long ones short, short ones merged, every order tried.

use std::borrow::Cow;

use super::Simple;

/// How many short flags are put in every order, each selection of them; more are only tried in pairs.
const ALL_ORDERS: usize = 4;
/// How many short flags a command may have before the rest is left as written.
const MAX_FLAGS: usize = 16;

/// Long flags with a short name: program, long, short. An abbreviation that is no other's counts too.
const LONG: &[(&str, &str, char)] = &[
    ("rm", "recursive", 'r'),
    ("rm", "force", 'f'),
    ("rm", "dir", 'd'),
    ("rm", "verbose", 'v'),
    ("rmdir", "parents", 'p'),
    ("chmod", "recursive", 'R'),
    ("chown", "recursive", 'R'),
    ("chgrp", "recursive", 'R'),
    ("cp", "recursive", 'r'),
    ("cp", "force", 'f'),
    ("mv", "force", 'f'),
    ("ln", "force", 'f'),
    ("ln", "symbolic", 's'),
    ("shred", "remove", 'u'),
    ("shred", "force", 'f'),
    ("truncate", "size", 's'),
    ("git", "force", 'f'),
    ("git", "delete", 'd'),
    ("git", "all", 'a'),
    ("git", "mirror", 'm'),
    ("docker", "force", 'f'),
    ("docker", "all", 'a'),
    ("kubectl", "force", 'f'),
];

/// Programs whose first word says what they do.
const WITH_SUBCOMMAND: &[&str] = &[
    "git",
    "cargo",
    "docker",
    "podman",
    "kubectl",
    "npm",
    "pnpm",
    "yarn",
    "systemctl",
    "terraform",
    "helm",
    "gh",
];

/// Programs whose single dashes start long names.
const SINGLE_DASH: &[&str] =
    &["find", "java", "go", "terraform", "gcc", "clang", "openssl", "ffmpeg", "convert"];

/// A command with its texts.
pub(super) fn simple(words: Vec<String>, writes: Vec<String>) -> Simple {
    let mut redirected = String::new();
    for file in &writes {
        redirected += " > ";
        redirected += &shown(file);
    }
    let mut plain = String::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            plain.push(' ');
        }
        plain += &shown(word);
    }
    plain += &redirected;
    if plain.starts_with(char::is_whitespace) {
        plain = plain.trim_start().to_owned();
    }
    let mut variants = variants(&words, &redirected);
    variants.retain(|variant| *variant != plain);
    Simple { words, writes, plain, variants, ..Simple::default() }
}

/// A word as one: quoted when it is not plain.
fn shown(word: &str) -> Cow<'_, str> {
    let plain =
        |c: char| !c.is_whitespace() && !matches!(c, '\'' | '"' | ';' | '|' | '&' | '<' | '>' | '(' | ')');
    if !word.is_empty() && word.chars().all(plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// The command's other spellings, each with what it is redirected into.
fn variants(words: &[String], redirected: &str) -> Vec<String> {
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    if SINGLE_DASH.contains(&program.as_str()) {
        return Vec::new();
    }
    let (mut flags, mut rest, mut long) = (Vec::new(), Vec::new(), Vec::new());
    let mut operands_only = false;
    for word in arguments {
        match word.strip_prefix('-') {
            _ if operands_only => rest.push(shown(word)),
            Some("-") => operands_only = true,
            Some(name) if name.starts_with('-') => match short(program, name.trim_start_matches('-')) {
                Some(letter) => flags.push(letter),
                None => long.push(shown(word)),
            },
            Some(letters) if is_cluster(letters) => flags.extend(letters.chars()),
            Some(_) => long.push(shown(word)),
            None => rest.push(shown(word)),
        }
    }
    let flags = distinct(program, flags);
    if flags.is_empty() && long.is_empty() && !operands_only {
        return Vec::new();
    }
    let mut head = program.clone();
    if WITH_SUBCOMMAND.contains(&program.as_str()) && !rest.is_empty() {
        head.push(' ');
        head += &rest.remove(0);
    }
    let mut tail = String::new();
    for word in rest.iter().chain(&long) {
        tail.push(' ');
        tail += word;
    }
    tail += redirected;
    let written = |order: &String| {
        let mut line = String::with_capacity(head.len() + order.len() + tail.len() + 2);
        line += &head;
        if !order.is_empty() {
            line += " -";
            line += order;
        }
        line + &tail
    };
    orders(&flags).iter().rev().map(written).collect()
}

fn is_cluster(letters: &str) -> bool {
    !letters.is_empty() && letters.len() <= 8 && letters.chars().all(|c| c.is_ascii_alphabetic())
}

/// The short name of a long flag, which may be abbreviated while it is no other's.
fn short(program: &str, name: &str) -> Option<char> {
    let known = || LONG.iter().filter(|(owner, ..)| *owner == program);
    let exact = known().find(|(_, long, _)| *long == name);
    let mut abbreviated = known().filter(|(_, long, _)| !name.is_empty() && long.starts_with(name));
    let only = abbreviated.next().filter(|_| abbreviated.next().is_none() && program != "git");
    exact.or(only).map(|(.., letter)| *letter)
}

fn distinct(program: &str, flags: Vec<char>) -> Vec<char> {
    let mut distinct = Vec::new();
    for flag in flags {
        let flag = if program == "rm" && flag == 'R' { 'r' } else { flag };
        if !distinct.contains(&flag) && distinct.len() < MAX_FLAGS {
            distinct.push(flag);
        }
    }
    distinct
}

/// `f`, `r`, `fr`, `rf`: the flags merged in every order, and every selection of them; the whole of them last.
fn orders(flags: &[char]) -> Vec<String> {
    let most = if flags.len() <= ALL_ORDERS { flags.len() } else { 2 };
    let mut made = vec![String::new()];
    let mut from = 0;
    for _ in 0..most {
        let grown = made.len();
        for at in from..grown {
            for flag in flags {
                let shorter = made.get(at).filter(|order| !order.contains(*flag));
                if let Some(mut order) = shorter.cloned() {
                    order.push(*flag);
                    made.push(order);
                }
            }
        }
        from = grown;
    }
    if flags.len() > ALL_ORDERS {
        made.push(flags.iter().collect());
    }
    made
}
