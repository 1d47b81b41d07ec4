//! Which programs may be started: each resolved to its file, with the links on the way, the interpreter of a
//! script, and the directories that its kind of program cannot do without.
//!
//! The command itself is found as the caller's shell would find it. A name that a plan grants is looked for in the
//! system's program directories and those of the user's settings; there the caller's `PATH` decides nothing.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use bailiwick_policy::plan::PROGRAM_DIRECTORIES;

use crate::refusal::Refusal;
use crate::shims::{self, Behind, ToolChoice};
use crate::{base, closures, runtimes};

/// The most links that one path may lead through: the kernel's own limit.
const MOST_LINKS: usize = 40;
/// The most interpreters that one script may lead through: the kernel's own limit is 5.
const MOST_INTERPRETERS: usize = 5;

/// The programs that may be started, and what comes with them.
#[derive(Debug, Default)]
pub struct Programs {
    /// Their files, links resolved.
    pub files: BTreeSet<PathBuf>,
    /// Links on the way to them, and their targets as written.
    pub links: BTreeSet<(PathBuf, PathBuf)>,
    /// Directories whose programs and libraries come with them.
    pub directories: BTreeSet<PathBuf>,
    /// Directories whose files may be mapped as code and not started.
    pub code: BTreeSet<PathBuf>,
    /// What is only read.
    pub data: BTreeSet<PathBuf>,
    /// Directories outside of the system's that programs were found in by name.
    pub found_in: Vec<PathBuf>,
}

/// Where programs are looked for by name, and what version managers go by.
#[derive(Debug, Clone, Copy)]
pub struct Lookup<'a> {
    /// Looked into before the system's directories.
    pub first: &'a [PathBuf],
    /// Which of several versions a version manager would choose.
    pub choice: &'a ToolChoice,
}

impl Programs {
    /// Adds a program by name or path, and all that it needs to start. Returns the path to start it by.
    pub fn add(&mut self, program: &OsStr, from: &Path, lookup: Lookup<'_>) -> Result<PathBuf, Refusal> {
        let path = self.locate(program, from, lookup)?;
        self.add_path(&path, MOST_INTERPRETERS, lookup)?;
        Ok(path)
    }

    fn add_path(&mut self, path: &Path, interpreters: usize, lookup: Lookup<'_>) -> Result<(), Refusal> {
        let file = self.follow(path)?;
        let named = interpreters_of(&file);
        self.code.extend(runtimes::code_of(path, &file, &named));
        if !self.files.insert(file.clone()) {
            return Ok(());
        }
        self.add_closure(path, &file, lookup)?;
        let missing = |interpreter: &OsStr| Refusal::NoInterpreter {
            path: path.to_owned(),
            interpreter: interpreter.to_string_lossy().into_owned(),
        };
        for interpreter in named {
            let remaining = interpreters.checked_sub(1).ok_or_else(|| missing(&interpreter))?;
            let found =
                self.locate(&interpreter, Path::new("/"), lookup).map_err(|_| missing(&interpreter))?;
            self.add_path(&found, remaining, lookup)?;
        }
        Ok(())
    }

    fn add_closure(&mut self, path: &Path, file: &Path, lookup: Lookup<'_>) -> Result<(), Refusal> {
        let closure = closures::closure_of(path, file);
        let real = |directory: PathBuf| std::fs::canonicalize(directory).ok();
        self.directories
            .extend(closure.directories.into_iter().filter_map(real).filter(|directory| directory.is_dir()));
        self.code.extend(closure.code.into_iter().filter_map(real).filter(|directory| directory.is_dir()));
        self.data
            .extend(closure.data.iter().flat_map(|path| base::matching(path)).filter(|path| path.exists()));
        for helper in closure.programs {
            // A helper that this host does not have cannot be started anyway.
            match self.locate(OsStr::new(helper), Path::new("/"), lookup) {
                Ok(found) => self.add_path(&found, MOST_INTERPRETERS, lookup)?,
                Err(_) => continue,
            }
        }
        Ok(())
    }

    /// The path of a program: as given if it has a slash, else the first in the directories. Behind a version manager's shim
    /// it is the tool that the shim stands for.
    fn locate(&mut self, program: &OsStr, from: &Path, lookup: Lookup<'_>) -> Result<PathBuf, Refusal> {
        let not_found = || Refusal::NotFound { name: program.to_string_lossy().into_owned() };
        if program.as_bytes().contains(&b'/') {
            let path: PathBuf = from.join(program).components().collect();
            return match shims::behind(&path, lookup.choice) {
                Behind::Tool(tool) => Ok(tool),
                Behind::Itself | Behind::Elsewhere => Ok(path),
            };
        }
        if program.is_empty() {
            return Err(not_found());
        }
        let of_system = PROGRAM_DIRECTORIES.iter().map(Path::new);
        for directory in lookup.first.iter().map(PathBuf::as_path).chain(of_system) {
            let candidate = directory.join(program);
            if !is_executable(&candidate) {
                continue;
            }
            let found = match shims::behind(&candidate, lookup.choice) {
                Behind::Tool(tool) => tool,
                Behind::Itself => candidate,
                Behind::Elsewhere => continue,
            };
            self.remember_directory(&found);
            return Ok(found);
        }
        Err(not_found())
    }

    fn remember_directory(&mut self, program: &Path) {
        let Some(directory) = program.parent() else { return };
        let known = PROGRAM_DIRECTORIES.iter().any(|own| directory == Path::new(own));
        if !known && !self.found_in.iter().any(|own| own == directory) {
            self.found_in.push(directory.to_owned());
        }
    }

    /// Follows every link of a path, and remembers those that the new root must have.
    fn follow(&mut self, path: &Path) -> Result<PathBuf, Refusal> {
        let gone = || Refusal::NoSuchProgram { path: path.to_owned() };
        let mut rest: Vec<OsString> = parts(path).rev().collect();
        let mut done = PathBuf::from("/");
        let mut links = 0;
        while let Some(part) = rest.pop() {
            if part == ".." {
                done.pop();
                continue;
            }
            let next = done.join(&part);
            let Ok(target) = std::fs::read_link(&next) else {
                done = next;
                continue;
            };
            links += 1;
            if links > MOST_LINKS {
                return Err(gone());
            }
            if target.is_absolute() {
                done = PathBuf::from("/");
            }
            rest.extend(parts(&target).rev());
            self.links.insert((next, target));
        }
        let found = std::fs::metadata(&done).map_err(|error| {
            if error.kind() != std::io::ErrorKind::PermissionDenied {
                return gone();
            }
            Refusal::Unreachable { path: done.display().to_string(), reason: "permission denied".to_owned() }
        })?;
        if !found.is_file() || found.permissions().mode() & 0o111 == 0 {
            return Err(Refusal::NotExecutable { path: path.to_owned() });
        }
        Ok(done)
    }
}

fn parts(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

/// The path of a program: as given if it has a slash, else the first in the program directories.
pub fn locate(program: &OsStr, from: &Path) -> Result<PathBuf, Refusal> {
    if program.as_bytes().contains(&b'/') {
        return Ok(from.join(program).components().collect());
    }
    let candidates = PROGRAM_DIRECTORIES.iter().map(|directory| Path::new(directory).join(program));
    let not_found = || Refusal::NotFound { name: program.to_string_lossy().into_owned() };
    if program.is_empty() {
        return Err(not_found());
    }
    candidates.into_iter().find(|path| is_executable(path)).ok_or_else(not_found)
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// What the first line of a script names: the interpreter, and for `env` the program that it starts.
pub fn interpreters_of(file: &Path) -> Vec<OsString> {
    let mut head = Vec::with_capacity(256);
    let read = File::open(file).and_then(|file| file.take(256).read_to_end(&mut head));
    let Some(line) = head.strip_prefix(b"#!").filter(|_| read.is_ok()) else { return Vec::new() };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let Some(interpreter) = words.next() else { return Vec::new() };
    let mut named = vec![OsString::from_vec(interpreter.to_vec())];
    if Path::new(OsStr::from_bytes(interpreter)).file_name() == Some(OsStr::new("env")) {
        let program = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='));
        named.extend(program.map(|word| OsString::from_vec(word.to_vec())));
    }
    named
}
