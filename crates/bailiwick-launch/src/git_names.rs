//! Paths that git runs, or reads as configuration, because a repository's configuration names them: `core.hooksPath`,
//! `include.path`, filters, drivers and other commands.
//!
//! Names such as `.git/hooks` are on the list of `bailiwick_policy::run_later`. These are not known before the configuration
//! was read: it is read as git reads it, on the host, before anything starts. The program cannot change it afterwards,
//! because `.git/config` and what it includes are closed.
//!
//! Looked at are the repository around a directory, the directory itself, and directories up to two levels below it, with their
//! submodules; and the user's and the system's own configuration.
//!
//! Residual: repositories deeper below a writable directory that is no work tree itself, configuration that only an
//! environment variable names (`GIT_CONFIG_GLOBAL`), and scripts that are named by another script.

mod config;

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use config::{ConfigVariable, entries};

/// The most directories that are looked at for repositories.
const MAX_DIRECTORIES: usize = 512;
/// How deep configuration includes configuration: git's own limit.
const MAX_INCLUDES: usize = 10;
/// The largest configuration that is read.
const MAX_CONFIG: u64 = 1 << 20;

/// A repository: where its configuration is, and where its files are.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Repository {
    /// Its own directory, `.git` in most work trees.
    git_dir: PathBuf,
    /// Where its configuration is: the same, unless it is a work tree of another repository.
    common_dir: PathBuf,
    /// Where hooks and commands run.
    work_tree: PathBuf,
}

/// What git runs or reads as configuration for repositories around and in a directory, besides the names that are always
/// on the list: absolute paths within the work trees, whether they exist or not.
#[must_use]
pub fn paths_named_by_git(directory: &Path, home: Option<&Path>) -> BTreeSet<PathBuf> {
    let Ok(directory) = directory.canonicalize() else { return BTreeSet::new() };
    let repositories = repositories(&directory);
    let mut found = BTreeSet::new();
    for repository in &repositories {
        let mut reader = Reader { repository, home, found: &mut found };
        for file in shared_files(home) {
            reader.read(&file, 0);
        }
        reader.read(&repository.common_dir.join("config"), 0);
        reader.read(&repository.git_dir.join("config.worktree"), 0);
    }
    found
}

/// The configuration of the system and of the user.
fn shared_files(home: Option<&Path>) -> Vec<PathBuf> {
    let of_user = home.map(|home| [home.join(".config/git/config"), home.join(".gitconfig")]);
    std::iter::once(PathBuf::from("/etc/gitconfig")).chain(of_user.into_iter().flatten()).collect()
}

fn repositories(directory: &Path) -> BTreeSet<Repository> {
    let mut found = BTreeSet::new();
    let around = directory.ancestors().find_map(Repository::at);
    let is_work_tree = around.is_some();
    found.extend(around);
    if !is_work_tree {
        let mut level = vec![directory.to_owned()];
        let mut left = MAX_DIRECTORIES;
        for _ in 0..2 {
            let below = level.iter().flat_map(|above| directories_in(above));
            level = below.filter(|below| !below.ends_with(".git")).take(left).collect();
            left = left.saturating_sub(level.len());
            found.extend(level.iter().filter_map(|below| Repository::at(below)));
        }
    }
    let modules: Vec<Repository> = found.iter().flat_map(Repository::modules).collect();
    found.extend(modules);
    found
}

fn directories_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let is_directory = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_directory).map(|entry| entry.path()).take(MAX_DIRECTORIES).collect()
}

impl Repository {
    /// The repository whose work tree is a directory, or that is the directory.
    fn at(directory: &Path) -> Option<Self> {
        let own = directory.join(".git");
        let kind = own.metadata().ok();
        let git_dir = match kind {
            Some(kind) if kind.is_file() => {
                let text = text_of(&own)?;
                directory.join(text.strip_prefix("gitdir:")?.trim())
            }
            Some(_) => own,
            None => ["HEAD", "objects", "refs"]
                .iter()
                .all(|name| directory.join(name).exists())
                .then(|| directory.to_owned())?,
        };
        let common = text_of(&git_dir.join("commondir")).map(|text| git_dir.join(text.trim()));
        Some(Self {
            common_dir: common.unwrap_or_else(|| git_dir.clone()),
            git_dir,
            work_tree: directory.to_owned(),
        })
    }

    /// The repositories of its submodules that have a work tree.
    fn modules(&self) -> Vec<Self> {
        let modules = directories_in(&self.common_dir.join("modules"));
        let work_tree = |git_dir: &PathBuf| {
            let text = text_of(&git_dir.join("config"))?;
            let entry = entries(&text).into_iter().find(|entry| entry.is("core", "worktree"))?;
            Some(lexical(&git_dir.join(entry.value)))
        };
        let module = |git_dir: PathBuf| {
            Some(Self { work_tree: work_tree(&git_dir)?, common_dir: git_dir.clone(), git_dir })
        };
        modules.into_iter().filter_map(module).collect()
    }
}

/// Reads the configuration of one repository.
struct Reader<'a> {
    repository: &'a Repository,
    home: Option<&'a Path>,
    found: &'a mut BTreeSet<PathBuf>,
}

impl Reader<'_> {
    fn read(&mut self, file: &Path, depth: usize) {
        let Some(text) = text_of(file).filter(|_| depth <= MAX_INCLUDES) else { return };
        for entry in entries(&text) {
            if let Some(path) = entry.included() {
                let included = lexical(&self.expanded(file.parent().unwrap_or(file), path));
                self.add(included.clone());
                self.read(&included, depth + 1);
            } else if entry.is_path_that_runs() {
                let path = self.expanded(&self.repository.work_tree, &entry.value);
                self.add(lexical(&path));
            } else if entry.is_command() {
                self.add_words(&entry);
            }
        }
    }

    /// Words of a command that name a file in the work tree: the program, or a script that it is given.
    fn add_words(&mut self, entry: &ConfigVariable) {
        let words = entry.value.split(|c: char| c.is_whitespace() || "'\"!;|&()<>=".contains(c));
        for word in words.filter(|word| !word.is_empty()) {
            let path = lexical(&self.expanded(&self.repository.work_tree, word));
            if path.is_file() {
                self.add(path);
            }
        }
    }

    /// A path as git reads it: `~` is the home, `%(prefix)` is not looked into.
    fn expanded(&self, base: &Path, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => base.join(path),
        }
    }

    /// Only what lies in the work tree: the rest is no part of a writable project, and is judged by its own names.
    fn add(&mut self, path: PathBuf) {
        let work_tree = &self.repository.work_tree;
        if path.starts_with(work_tree) && path != *work_tree && !path.starts_with(work_tree.join(".git")) {
            self.found.insert(path);
        }
    }
}

fn text_of(file: &Path) -> Option<String> {
    let is_small = file.metadata().is_ok_and(|kind| kind.is_file() && kind.len() <= MAX_CONFIG);
    let bytes = is_small.then(|| std::fs::read(file).ok())??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A path without `.` and `..`.
fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => clean.push(component),
        }
    }
    clean
}

#[cfg(test)]
mod tests;
