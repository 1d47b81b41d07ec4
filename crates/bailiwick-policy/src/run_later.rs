//! Names that run code after they were written, such as git hooks, agents' settings and shell start files.
//!
//! One list (`run_later/names.txt`) serves the sandbox, the file tools, the compile targets and `diff`. [`role`] judges
//! one path by the list and by what is around that path ([`Ground`]); it allocates nothing, so that the sandbox's first
//! process can use it. Names are compared as a file system that folds case might compare them.
//!
//! Residual: a project directory without `.git` below the top of a writable tree is not known as one.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use crate::path::{PathPattern, parse_pattern};

/// What the directories around a path are. Directories are absolute paths without a trailing slash, but for `/`.
pub trait Ground {
    /// Whether a directory is a home, or the top of a writable tree.
    fn is_home(&self, directory: &[u8]) -> bool;
    /// Whether a directory holds an entry `.git`.
    fn holds_git(&self, directory: &[u8]) -> bool;
    /// Whether git takes a directory for a repository's own. Asked only for directories not called `.git`.
    fn is_git_directory(&self, directory: &[u8]) -> bool;
}

/// Whether a directory is a user's home: the caller's own, or where homes usually are.
#[must_use]
pub fn is_users_home(directory: &[u8], own: Option<&[u8]>) -> bool {
    let of_others = || directory.strip_prefix(b"/home/").is_some_and(|name| !name.contains(&b'/'));
    own == Some(directory) || directory == b"/root" || of_others()
}

/// Whether git takes a directory for a repository's own, by what it holds.
pub fn is_repository(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

/// Whether git keeps the repository of a submodule in a directory. What runs code in it has names of its own on the list,
/// whether it is a repository yet or not.
#[must_use]
pub fn is_module(directory: &[u8], ground: &impl Ground) -> bool {
    let parent = |path: &[u8]| path.iter().rposition(|byte| *byte == b'/');
    let modules =
        parent(directory).and_then(|at| directory.get(..at)).filter(|path| is_called(path, "modules"));
    let owner = modules.and_then(|modules| modules.get(..parent(modules)?));
    owner.is_some_and(|owner| Place::Git.is_at(owner, ground))
}

/// What a path is to the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Nothing.
    Free,
    /// A directory on the way to a name that runs code later.
    OnTheWay,
    /// A name that runs code later, or something below one.
    Protected,
}

/// What an absolute path is to the list.
pub fn role(path: &[u8], ground: &impl Ground) -> Role {
    let mut found = Role::Free;
    for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
        let (directory, rest) = (path.get(..at.max(1)), path.get(at + 1..));
        let (Some(directory), Some(rest)) = (directory, rest) else { continue };
        for rule in NAMES.iter().filter(|rule| rule.place != Place::Report) {
            let role = rule.role_of(rest);
            if role > found && rule.place.is_at(directory, ground) {
                found = role;
            }
        }
    }
    found
}

/// What a grant by name opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// Nothing: the name runs no code.
    Nothing,
    /// The name alone: what runs code in it has names of its own, as in `.git`.
    Itself,
    /// The name and all below it.
    Everything,
}

/// What a grant of that very path opens of the names that run code later.
pub fn opened_by(name: &[u8], ground: &impl Ground) -> Opened {
    if role(name, ground) != Role::Protected {
        return Opened::Nothing;
    }
    let below = [name, b"/x"].concat();
    if role(&below, ground) == Role::Protected { Opened::Everything } else { Opened::Itself }
}

/// The names without wildcards that hold in a writable tree at these two paths (where it appears, where it lies),
/// relative to it: for targets that can only mount. Directories on the way come with the names below them, in order.
pub fn fixed_names<'a>(tree: [&'a str; 2]) -> impl Iterator<Item = &'static str> + 'a {
    let is_called = move |name: &str| tree.iter().any(|path| path.rsplit('/').next() == Some(name));
    let below = FIXED.iter().filter_map(move |name| {
        let (parent, rest) = name.split_once('/')?;
        is_called(parent).then_some(rest)
    });
    FIXED.iter().map(String::as_str).chain(below)
}

/// The settings that say which hooks of an agent run: a directory, and a file in it.
pub fn hook_settings() -> impl Iterator<Item = (&'static str, &'static str)> {
    NAMES.iter().filter(|name| name.place == Place::Hooks).filter_map(|name| match name.parts[..] {
        [directory, file] => Some((directory, file)),
        _ => None,
    })
}

/// The list as patterns of absolute paths, reported names included.
pub fn patterns() -> &'static [PathPattern] {
    &PATTERNS
}

/// The same without the reported names: what stays closed in a writable tree.
pub fn protected_patterns() -> &'static [PathPattern] {
    &PROTECTED_PATTERNS
}

/// Reads the list, so that nothing is allocated later.
pub fn prepare() {
    LazyLock::force(&NAMES);
}

/// Where a name counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Any,
    Git,
    Project,
    Hooks,
    Home,
    Report,
}

/// One line of the list.
#[derive(Debug)]
struct Name {
    place: Place,
    parts: Vec<&'static str>,
    /// Whether everything below it counts too.
    deep: bool,
}

static NAMES: LazyLock<Vec<Name>> = LazyLock::new(|| {
    let lines = include_str!("run_later/names.txt").lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).filter_map(Name::read).collect()
});

static FIXED: LazyLock<Vec<String>> = LazyLock::new(|| {
    let fixed = NAMES.iter().filter(|name| name.place != Place::Report && !name.parts.contains(&"*"));
    // A mount cannot tell a repository's own directory from a file that leads to one: `.git` alone is left to those.
    let mut names: Vec<String> = fixed.filter(|name| name.place != Place::Any).map(Name::relative).collect();
    names.sort();
    names
});

static PATTERNS: LazyLock<Vec<PathPattern>> =
    LazyLock::new(|| NAMES.iter().flat_map(Name::patterns).collect());

static PROTECTED_PATTERNS: LazyLock<Vec<PathPattern>> = LazyLock::new(|| {
    let protected = NAMES.iter().filter(|name| name.place != Place::Report);
    protected.flat_map(Name::patterns).collect()
});

impl Place {
    fn is_at(self, directory: &[u8], ground: &impl Ground) -> bool {
        match self {
            Self::Any => true,
            Self::Git => is_called(directory, ".git") || ground.is_git_directory(directory),
            Self::Project | Self::Hooks => ground.is_home(directory) || ground.holds_git(directory),
            Self::Home => ground.is_home(directory),
            Self::Report => false,
        }
    }
}

impl Name {
    fn read(line: &'static str) -> Option<Self> {
        let (place, name) = line.split_once(' ')?;
        let place = match place {
            "any" => Place::Any,
            "git" => Place::Git,
            "project" => Place::Project,
            "hooks" => Place::Hooks,
            "home" => Place::Home,
            "report" => Place::Report,
            _ => return None,
        };
        let parts = name.trim_end_matches('/').split('/').collect();
        Some(Self { place, parts, deep: name.ends_with('/') })
    }

    /// What a path relative to the right directory is to this name.
    fn role_of(&self, rest: &[u8]) -> Role {
        let mut parts = self.parts.iter();
        for component in rest.split(|byte| *byte == b'/') {
            match parts.next() {
                Some(part) if *part == "*" || is_folded(component, part) => {}
                Some(_) => return Role::Free,
                None => return if self.deep { Role::Protected } else { Role::Free },
            }
        }
        if parts.next().is_none() { Role::Protected } else { Role::OnTheWay }
    }

    fn relative(&self) -> String {
        let name = self.parts.join("/");
        if self.place == Place::Git { format!(".git/{name}") } else { name }
    }

    /// The name itself, and everything below it.
    fn patterns(&self) -> Vec<PathPattern> {
        let name = self.relative();
        let name = name.trim_start_matches('/');
        let start = if self.parts.first() == Some(&"") { "/" } else { "/**/" };
        let texts = [Some(format!("{start}{name}")), self.deep.then(|| format!("{start}{name}/**"))];
        texts.into_iter().flatten().filter_map(|text| parse_pattern(&text, false).ok()).collect()
    }
}

/// Whether the last component of a directory folds to `name`.
fn is_called(directory: &[u8], name: &str) -> bool {
    directory.rsplit(|byte| *byte == b'/').next().is_some_and(|last| is_folded(last, name))
}

/// Whether a component names the same entry as `name` on a file system that folds case, drops code points that are
/// ignored, or drops dots and spaces at the end.
fn is_folded(component: &[u8], name: &str) -> bool {
    let end = component.iter().rposition(|byte| !matches!(byte, b'.' | b' ')).map_or(0, |at| at + 1);
    let mut rest = component.get(..end).unwrap_or_default();
    let mut wanted = name.bytes().map(|byte| byte.to_ascii_lowercase());
    while let Some((byte, after)) = fold(rest) {
        rest = after;
        if byte.is_some_and(|byte| wanted.next() != Some(byte)) {
            return false;
        }
    }
    wanted.next().is_none()
}

/// The next byte of a folded name, `None` for one that is dropped, and what follows it.
fn fold(rest: &[u8]) -> Option<(Option<u8>, &[u8])> {
    match rest {
        [] => None,
        [0xc5, 0xbf, after @ ..] => Some((Some(b's'), after)), // long s
        [0xe2, 0x84, 0xaa, after @ ..] => Some((Some(b'k'), after)), // the Kelvin sign
        [byte, after @ ..] if byte.is_ascii() => Some((Some(byte.to_ascii_lowercase()), after)),
        [_, after @ ..] => Some((None, after)),
    }
}
