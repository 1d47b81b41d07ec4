//! The code that a program of an interpreted language brings, wherever it lies: a virtual environment with its base, and
//! the modules beside an entry point.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::closures::SHARED;

/// The directories of code of the program that was asked for at `path` and lies in `file`.
pub fn code_of(path: &Path, file: &Path, interpreters: &[std::ffi::OsString]) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for place in [path, file] {
        directories.extend(environment_of(place));
    }
    let runs_in_node =
        interpreters.iter().any(|name| matches!(Path::new(name).file_name(), Some(name) if name == "node"));
    if runs_in_node {
        directories.extend(modules_of(file));
    }
    directories
}

/// The virtual environment whose program lies there, and what its base has.
fn environment_of(program: &Path) -> Vec<PathBuf> {
    let Some(own) = program.parent().and_then(Path::parent) else { return Vec::new() };
    let Ok(settings) = std::fs::read_to_string(own.join("pyvenv.cfg")) else { return Vec::new() };
    let home = settings.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "home").then(|| PathBuf::from(value.trim()))
    });
    let base = home.and_then(|home| Some(home.canonicalize().ok()?.parent()?.to_owned()));
    // The system's own are part of what its interpreter brings.
    let library = base.filter(|base| !SHARED.iter().any(|shared| base == Path::new(shared)));
    [Some(own.to_owned()), library.map(|base| base.join("lib"))].into_iter().flatten().collect()
}

/// The modules of an entry point: the outermost directory of modules that it lies in, or the one beside its package.
fn modules_of(file: &Path) -> Option<PathBuf> {
    let modules = OsStr::new("node_modules");
    let around = file.ancestors().filter(|above| above.file_name() == Some(modules)).last();
    let package = || file.ancestors().skip(1).find(|above| above.join("package.json").is_file());
    around.map(Path::to_owned).or_else(|| Some(package()?.join(modules)).filter(|beside| beside.is_dir()))
}
