//! Which words of a command name paths, and the variables that a manifest binds to them.

/// What the host has at a word that could be a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentPath {
    /// A directory.
    Directory,
    /// Something else, or nothing, in a directory that is there.
    Entry,
    /// No path.
    No,
}

/// A variable that a manifest could bind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuessedVariable {
    /// Its name, without `$`.
    pub name: String,
    /// The text behind `NAME =`.
    pub binding: String,
}

/// The variables for the words of a command, behind its program, and for environment variables that hold paths. `what` says
/// what the host has at a word.
///
/// # Examples
/// ```
/// use bailiwick_learn::{ArgumentPath, guess_variables};
///
/// let words = ["--db-path".to_owned(), "/srv/x.db".to_owned(), "/srv".to_owned()];
/// let found = guess_variables(&words, &[], |word| match word {
///     "/srv" => ArgumentPath::Directory,
///     "/srv/x.db" => ArgumentPath::Entry,
///     _ => ArgumentPath::No,
/// });
/// assert_eq!(found[0].name, "DB_PATH");
/// assert_eq!(found[0].binding, "{ flag = \"--db-path\", parent = true }");
/// assert_eq!(found[1].binding, "{ argument = \"0..\" }");
/// ```
pub fn guess_variables(
    words: &[String],
    environment: &[(String, String)],
    what: impl Fn(&str) -> ArgumentPath,
) -> Vec<GuessedVariable> {
    let mut found = Vec::new();
    let mut positional = Vec::new();
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.next() {
        if word == "--" {
            positional.extend(rest.by_ref());
        } else if let Some((flag, value)) = word.split_once('=').filter(|(flag, _)| flag.starts_with('-')) {
            flagged(&mut found, flag, what(value));
        } else if word.starts_with('-') {
            let next = rest.peek().map_or(ArgumentPath::No, |next| what(next));
            if next != ArgumentPath::No && !rest.peek().is_some_and(|next| next.starts_with('-')) {
                rest.next();
                flagged(&mut found, word, next);
            }
        } else {
            positional.push(word);
        }
    }
    found.extend(arguments(&positional.iter().map(|word| what(word)).collect::<Vec<_>>()));
    for (name, value) in environment {
        let kind =
            if value.starts_with('/') || value.starts_with('~') { what(value) } else { ArgumentPath::No };
        if kind != ArgumentPath::No {
            let binding = format!("{{ env = {name:?}{} }}", parent(kind));
            found.push(GuessedVariable { name: format!("{name}_DIR"), binding });
        }
    }
    found
}

fn flagged(found: &mut Vec<GuessedVariable>, flag: &str, kind: ArgumentPath) {
    let name: String = flag.trim_start_matches('-').to_ascii_uppercase().replace('-', "_");
    let is_name = name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_taken =
        ["HOME", "WORKSPACE"].contains(&name.as_str()) || found.iter().any(|known| known.name == name);
    if kind != ArgumentPath::No && is_name && !is_taken {
        found.push(GuessedVariable { name, binding: format!("{{ flag = {flag:?}{} }}", parent(kind)) });
    }
}

/// One variable for all directories from one argument on, else one for each path.
fn arguments(kinds: &[ArgumentPath]) -> Vec<GuessedVariable> {
    let first = kinds.iter().position(|kind| *kind == ArgumentPath::Directory);
    if let Some(first) = first
        && kinds.iter().skip(first).all(|kind| *kind == ArgumentPath::Directory)
    {
        let binding = format!("{{ argument = \"{first}..\" }}");
        let mut all = arguments(kinds.get(..first).unwrap_or_default());
        all.push(GuessedVariable { name: "ROOTS".to_owned(), binding });
        return all;
    }
    let paths = kinds.iter().enumerate().filter(|(_, kind)| **kind != ArgumentPath::No);
    let each = paths.map(|(at, kind)| GuessedVariable {
        name: format!("ARGUMENT_{at}"),
        binding: format!("{{ argument = \"{at}\"{} }}", parent(*kind)),
    });
    each.collect()
}

const fn parent(kind: ArgumentPath) -> &'static str {
    match kind {
        ArgumentPath::Entry => ", parent = true",
        ArgumentPath::Directory | ArgumentPath::No => "",
    }
}
