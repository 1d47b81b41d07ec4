//! Where a path leads and what lies there, from `places.txt`: by its text alone, nothing is opened.

use std::sync::LazyLock;

use crate::glob;

const TABLE: &str = include_str!("places.txt");

/// Where a call stands: the project, the directory in which its text starts, and the home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    project: String,
    start: String,
    home: String,
}

impl Default for Setting {
    fn default() -> Self {
        Self::new("/home/user/project", "/home/user/project", "/home/user")
    }
}

impl Setting {
    /// A session that works on `project`, in a call that starts in `start`.
    #[must_use]
    pub fn new(project: &str, start: &str, home: &str) -> Self {
        let clean = |path: &str| path.trim_end_matches('/').to_owned();
        Self { project: clean(project), start: clean(start), home: clean(home) }
    }

    /// The same for a text that starts in a directory of this one.
    pub(super) fn starting(&self, here: &str) -> Self {
        Self { start: absolute(self, &self.start, here).0, ..self.clone() }
    }
}

/// A path, made absolute by its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    parts: Vec<String>,
    /// How many parts of it name the project; `None` if it lies elsewhere.
    inside: Option<usize>,
    /// Whether it starts with something that is only known when it runs.
    pub(super) unknown: bool,
    home: Vec<String>,
    /// Whether it is a directory above the project.
    above: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    Root,
    Home,
    Anywhere,
}

/// One pattern of the table.
#[derive(Debug)]
struct Entry {
    kind: &'static str,
    anchor: Anchor,
    parts: Vec<&'static str>,
    deep: bool,
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut entries = Vec::new();
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let Some(kind) = words.next() else { continue };
        entries.extend(words.map(|word| entry(kind, word)));
    }
    entries
});

fn entry(kind: &'static str, word: &'static str) -> Entry {
    let (word, deep) = word.strip_suffix("/**").map_or((word, false), |word| (word, true));
    let (anchor, rest) = if let Some(rest) = word.strip_prefix("**/") {
        (Anchor::Anywhere, rest)
    } else if let Some(rest) = word.strip_prefix('~') {
        (Anchor::Home, rest)
    } else {
        (Anchor::Root, word)
    };
    let deep = deep || matches!(kind, "system" | "scratch");
    Entry { kind, anchor, parts: rest.split('/').filter(|part| !part.is_empty()).collect(), deep }
}

/// Where a word leads from a directory of the text. `None` if it is no path of this machine.
pub(super) fn spot(setting: &Setting, here: &str, word: &str) -> Option<Spot> {
    if word.is_empty() || word.len() > 4096 {
        return None;
    }
    let word = word.strip_prefix("file://").unwrap_or(word);
    if word.contains("://") || is_remote(word) {
        return None;
    }
    let (here, _) = absolute(setting, &setting.start, here);
    let (path, unknown) = absolute(setting, &here, word);
    let unknown = unknown || path.starts_with("/$");
    let parts = lexical(&path);
    let project = lexical(&setting.project);
    let inside = parts.starts_with(&project).then_some(project.len());
    let above = project.starts_with(&parts) && parts.len() < project.len();
    Some(Spot { inside, unknown, home: lexical(&setting.home), above, parts })
}

/// The path as one text, and whether its start is only known when it runs.
fn absolute(setting: &Setting, here: &str, word: &str) -> (String, bool) {
    let variable = |name: &str| {
        let plain = word.strip_prefix('$').and_then(|rest| rest.strip_prefix(name));
        let braced = || word.strip_prefix("${").and_then(|rest| rest.strip_prefix(name)?.strip_prefix('}'));
        plain.or_else(braced).filter(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if let Some(rest) = variable("HOME") {
        return (format!("{}{rest}", setting.home), false);
    }
    if let Some(rest) = variable("PWD") {
        return (format!("{here}{rest}"), false);
    }
    if let Some(rest) = variable("TMPDIR") {
        return (format!("/tmp{rest}"), false);
    }
    match word.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => (format!("{}{rest}", setting.home), false),
        Some("+") => (here.to_owned(), false),
        Some(user) => (format!("/home/{user}"), false),
        None if word.starts_with('/') => (word.to_owned(), false),
        None if word.starts_with('$') => (format!("/{word}"), true),
        None => (format!("{here}/{word}"), here.starts_with("/$")),
    }
}

/// `host:path`, as `scp` and `rsync` write it.
fn is_remote(word: &str) -> bool {
    let name = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-@[]".contains(c))
    };
    word.split_once(':').is_some_and(|(host, _)| name(host) && !host.starts_with('.'))
}

fn lexical(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            other => parts.push(other.to_owned()),
        }
    }
    parts
}

/// Whether a name stands for everything there is in a directory.
fn is_everything(part: &str) -> bool {
    part.contains('*') && part.chars().all(|c| "*?.[]!^".contains(c))
}

impl Spot {
    /// Whether the path is of a kind in the table; a pattern is what it may stand for.
    pub(super) fn is(&self, kind: &str) -> bool {
        ENTRIES.iter().filter(|entry| entry.kind == kind).any(|entry| self.fits(entry))
    }

    /// Whether it holds a secret. A pattern that may stand for one does, whatever else it stands for.
    pub(super) fn is_secret(&self) -> bool {
        let pattern = self.parts.last().is_some_and(|last| glob::is_pattern(last));
        self.is("secret") && (pattern || !self.is("public"))
    }

    fn fits(&self, entry: &Entry) -> bool {
        match entry.anchor {
            Anchor::Root => run(&self.parts, entry, entry.parts.is_empty()),
            Anchor::Home => self.below_home().is_some_and(|rest| run(rest, entry, entry.parts.is_empty())),
            Anchor::Anywhere if entry.deep => {
                (0..self.parts.len()).any(|at| run(self.parts.get(at..).unwrap_or_default(), entry, false))
            }
            Anchor::Anywhere => {
                let at = self.parts.len().checked_sub(entry.parts.len());
                at.and_then(|at| self.parts.get(at..)).is_some_and(|rest| run(rest, entry, false))
            }
        }
    }

    /// What follows a home, if the path lies in one.
    fn below_home(&self) -> Option<&[String]> {
        if self.parts.starts_with(&self.home) {
            return self.parts.get(self.home.len()..);
        }
        match self.parts.first().map(String::as_str) {
            Some("root") => self.parts.get(1..),
            Some("home" | "Users") if self.parts.len() > 1 => self.parts.get(2..),
            Some(_) | None => None,
        }
    }

    /// The path as one text.
    pub(super) fn text(&self) -> String {
        format!("/{}", self.parts.join("/"))
    }

    /// Whether it is the root of all files.
    pub(super) const fn is_root(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether it lies in the project, or is it.
    pub(super) fn is_inside(&self) -> bool {
        self.inside.is_some() && !self.unknown
    }

    /// Whether it lies in a scratch directory, and is more than all of it.
    pub(super) fn is_scratch(&self) -> bool {
        self.is("scratch")
            && !ENTRIES.iter().any(|entry| {
                let whole = entry.parts.len() == self.parts.len()
                    || entry.parts.len() + 1 == self.parts.len()
                        && self.parts.last().is_some_and(|last| is_everything(last));
                entry.kind == "scratch" && whole && self.fits(entry)
            })
    }

    /// Whether deleting it takes the system, a home, the project or its history.
    pub(super) fn is_vital(&self) -> bool {
        let mut parts = self.parts.as_slice();
        let mut everything = false;
        while let Some((_, rest)) = parts.split_last().filter(|(last, _)| is_everything(last)) {
            (parts, everything) = (rest, true);
        }
        if let Some(count) = self.inside {
            let below = parts.get(count..).unwrap_or_default();
            return match below {
                [] => true,
                [only] => only == ".git",
                _ => false,
            };
        }
        let whole = Spot { parts: parts.to_vec(), ..self.clone() };
        let homes = matches!(parts.first().map(String::as_str), Some("home" | "Users"));
        let is_home = whole.below_home().is_some_and(<[String]>::is_empty) || (homes && parts.len() < 2);
        parts.is_empty() || self.above || is_home || (everything && whole.above) || whole.is("system")
    }
}

/// Whether parts start with an entry's, and end there unless all below counts. At least two characters of a pattern
/// must be written, or it stands for anything.
fn run(parts: &[String], entry: &Entry, whole: bool) -> bool {
    if whole {
        return parts.is_empty();
    }
    let Some(head) = parts.get(..entry.parts.len()) else { return false };
    if parts.len() > entry.parts.len() && !entry.deep {
        return false;
    }
    let mut written = 0;
    for (part, known) in head.iter().zip(&entry.parts) {
        if !may_be(part, known) {
            return false;
        }
        let part = part.split_once('$').map_or(part.as_str(), |(known, _)| known);
        written += part.chars().filter(|c| !"*?[]".contains(*c)).count();
    }
    written >= 2
}

/// Whether a part of a path, which may be a pattern or hold what is not known, may be a known name.
fn may_be(part: &str, known: &str) -> bool {
    if glob::matches(known, part) {
        return true;
    }
    let pattern = part.split_once('$').map(|(head, _)| format!("{head}*"));
    let pattern = pattern.as_deref().unwrap_or(part);
    let hidden = known.starts_with('.') && !pattern.starts_with('.');
    glob::is_pattern(pattern) && !hidden && glob::matches(pattern, &known.replace('*', "x"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(word: &str) -> Spot {
        spot(&Setting::default(), "", word).unwrap()
    }

    #[test]
    fn secrets_are_known_by_name_and_by_pattern() {
        for word in [
            ".env",
            "a/.env.local",
            ".en?",
            ".e*",
            "~/.ssh/id_rsa",
            "~/.ssh/*",
            "~/.a*/cred*",
            "$X/.env",
            "/proc/1/environ",
            "~/.ssh/$KEY",
        ] {
            assert!(at(word).is_secret(), "{word}");
        }
        for word in ["*", ".env.example", "src", "env", "$X", "~/.ssh/id_rsa.pub", "*.rs"] {
            assert!(!at(word).is_secret(), "{word}");
        }
    }

    #[test]
    fn what_is_vital_is_not_what_is_outside() {
        for word in [
            "/",
            "/*",
            "/etc",
            "/usr/lib/x",
            "~",
            "~/",
            "~/*",
            "..",
            "../..",
            ".",
            "*",
            "./*",
            ".git",
            "/home",
            "/home/*",
            "/home/other",
            "../*",
        ] {
            assert!(at(word).is_vital(), "{word}");
        }
        for word in
            ["target", "packages/*/dist", "*.log", "../other", "/data/x", "~/old", "/tmp/x", ".github"]
        {
            assert!(!at(word).is_vital(), "{word}");
        }
        assert!(at("/tmp/x").is_scratch() && !at("/tmp").is_scratch() && !at("/tmp/*").is_scratch());
        assert!(at("src/x").is_inside() && !at("../x").is_inside());
        assert!(at("~/.bashrc").is("startup") && at(".git/hooks/pre-commit").is("startup"));
    }
}
