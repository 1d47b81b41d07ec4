//! Which files are read, and their text.
//!
//! Links are not followed inside a directory, and directories of other people's code are left out unless they are asked
//! for. Every file is bounded; one that is too large, and code that is no text, is kept as unknown.

use std::path::{Path, PathBuf};

use crate::parse::Grammar;

/// The largest file that is parsed, in bytes.
pub(crate) const MAX_FILE: u64 = 8 * 1024 * 1024;
/// The most files of one scan.
const MAX_FILES: usize = 200_000;
/// The deepest directory.
const MAX_DEPTH: usize = 64;

/// Directories of other projects' code, or of no code at all.
const LEFT_OUT: [&str; 6] = ["__pycache__", "node_modules", "site-packages", "target", "venv", "vendor"];
/// Code that is no text.
const NATIVE: [&str; 7] = ["a", "dll", "dylib", "node", "pyd", "so", "wasm"];

/// Why there is nothing to scan.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The system would not give it to us.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// What.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is in no language that is known here.
    #[error("`{}` is in no language that is known: .js, .jsx, .kt, .py, .rs, .ts or .tsx", .0.display())]
    NoLanguage(PathBuf),
    /// It has no source.
    #[error("`{}` has no source file", .0.display())]
    NoSource(PathBuf),
}

/// What is to be done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Treat {
    Parse(Grammar),
    /// Code that is no text.
    Native,
    /// The tree goes on, and is not followed.
    TooMany,
}

/// A file of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) treat: Treat,
}

/// The files below paths, in a fixed order, each once.
pub(crate) fn collect(paths: &[PathBuf], dependencies: bool) -> Result<Vec<SourceFile>, Fault> {
    let mut entries = Vec::new();
    for path in paths {
        let unreadable = |source| Fault::Unreadable { path: path.clone(), source };
        let about = std::fs::metadata(path).map_err(unreadable)?;
        if about.is_dir() {
            let before = entries.len();
            directory(path, dependencies, &mut entries)?;
            if dependencies {
                for package in packages_beside(path) {
                    directory(&package, dependencies, &mut entries)?;
                }
            }
            if entries.len() == before {
                return Err(Fault::NoSource(path.clone()));
            }
        } else if about.is_file() {
            let treat = treat(path).ok_or_else(|| Fault::NoLanguage(path.clone()))?;
            entries.push(SourceFile { path: path.clone(), treat });
        } else {
            return Err(unreadable(std::io::Error::other("it is neither a file nor a directory")));
        }
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    entries.dedup_by(|a, b| a.path == b.path);
    Ok(entries)
}

fn directory(root: &Path, dependencies: bool, entries: &mut Vec<SourceFile>) -> Result<(), Fault> {
    let mut open = vec![(root.to_owned(), 0_usize)];
    while let Some((dir, depth)) = open.pop() {
        let unreadable = |source| Fault::Unreadable { path: dir.clone(), source };
        for entry in std::fs::read_dir(&dir).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(unreadable)?);
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let beyond = entries.len() >= MAX_FILES || depth >= MAX_DEPTH;
            if kind.is_dir() && !is_left_out(&name, dependencies) {
                if beyond {
                    entries.push(SourceFile { path, treat: Treat::TooMany });
                } else {
                    open.push((path, depth + 1));
                }
            } else if kind.is_file()
                && let Some(treat) = treat(&path)
            {
                let treat = if entries.len() >= MAX_FILES { Treat::TooMany } else { treat };
                entries.push(SourceFile { path, treat });
            }
            if entries.len() > MAX_FILES {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The packages that a package of npm names and that lie beside it or above, where npm puts most of them.
fn packages_beside(root: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(root.join("package.json")).unwrap_or_default();
    let about = serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default();
    let Some(root) = root.canonicalize().ok() else { return Vec::new() };
    let named = about.get("dependencies").and_then(serde_json::Value::as_object);
    let names =
        named.into_iter().flat_map(|all| all.keys()).filter(|name| !name.split('/').any(|part| part == ".."));
    let found = names.filter_map(|name| {
        let above = root.ancestors().skip(1);
        let mut places = above.map(|dir| match dir.file_name() {
            Some(own) if own == "node_modules" => dir.join(name),
            _ => dir.join("node_modules").join(name),
        });
        places.find(|place| place.is_dir())
    });
    found.collect()
}

fn is_left_out(name: &str, dependencies: bool) -> bool {
    let foreign = LEFT_OUT.contains(&name) || name.starts_with('.');
    if dependencies { matches!(name, ".git" | "__pycache__") } else { foreign }
}

fn treat(path: &Path) -> Option<Treat> {
    let extension = path.extension()?.to_str()?;
    if NATIVE.contains(&extension) {
        return Some(Treat::Native);
    }
    // Declarations say what there is, not what it does.
    let declares =
        path.to_str().is_some_and(|path| [".d.ts", ".d.mts", ".d.cts"].iter().any(|end| path.ends_with(end)));
    Grammar::of_extension(extension).filter(|_| !declares).map(Treat::Parse)
}

/// The text of a file, with what is not UTF-8 replaced; `None` if it is too large.
pub(crate) fn read(path: &Path) -> std::io::Result<Option<String>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_FILE {
        return Ok(None);
    }
    Ok(Some(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(faulty) => String::from_utf8_lossy(faulty.as_bytes()).into_owned(),
    }))
}
