//! The data file of what programs cannot do without.

use std::path::{Path, PathBuf};

/// What comes with a program.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Closure {
    /// Directories whose files may be started and mapped as code.
    pub directories: Vec<PathBuf>,
    /// Directories whose files may be mapped as code.
    pub code: Vec<PathBuf>,
    /// What is only read.
    pub data: Vec<PathBuf>,
    /// Other programs.
    pub programs: Vec<&'static str>,
}

/// Directories that hold the programs of every package.
pub const SHARED: [&str; 3] = ["/usr", "/usr/local", "/"];

/// What comes with the program that was asked for at `path` and lies in `file`.
pub fn closure_of(path: &Path, file: &Path) -> Closure {
    let mut closure = Closure::default();
    let Some(name) = file.file_name().and_then(|name| name.to_str()) else { return closure };
    let asked = path.file_name().and_then(|name| name.to_str()).unwrap_or(name);
    let prefix = file.parent().and_then(Path::parent).and_then(Path::to_str).unwrap_or_default();
    for line in include_str!("closures.txt").lines().filter(|line| !line.starts_with('#')) {
        let Some((names, items)) = line.split_once(" = ") else { continue };
        if names.split(' ').any(|pattern| matches(pattern, name) || matches(pattern, asked)) {
            add(&mut closure, items, prefix, name);
        }
    }
    closure
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}

fn add(closure: &mut Closure, items: &'static str, prefix: &str, name: &str) {
    for item in items.split(' ') {
        let (directories, item) = match item.split_once(':') {
            Some(("code", path)) => (&mut closure.code, path),
            Some(("data", path)) => (&mut closure.data, path),
            _ => (&mut closure.directories, item),
        };
        if !item.starts_with(['/', '{']) {
            closure.programs.push(item);
            continue;
        }
        if item.starts_with("{own}") && SHARED.contains(&prefix) {
            continue;
        }
        let path = item.replace("{own}", prefix).replace("{prefix}", prefix).replace("{name}", name);
        directories.push(PathBuf::from(path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directories(path: &str) -> Vec<String> {
        let closure = closure_of(Path::new(path), Path::new(path));
        closure.directories.iter().map(|directory| directory.display().to_string()).collect()
    }

    #[test]
    fn a_program_brings_its_own_directories_and_never_everybodys() {
        assert_eq!(
            directories("/usr/local/bin/git"),
            ["/usr/local/lib/git-core", "/usr/local/libexec/git-core"]
        );
        let python = closure_of(Path::new("/usr/bin/python3.11"), Path::new("/usr/bin/python3.11"));
        assert!(python.code.contains(&PathBuf::from("/usr/lib/python3.11")));
        let node = closure_of(Path::new("/opt/node/bin/node"), Path::new("/opt/node/bin/node"));
        assert_eq!(node.code, [PathBuf::from("/opt/node/lib")]);
        for path in ["/usr/bin/node", "/usr/bin/true", "/bin/sh", "/usr/bin/perl"] {
            assert_eq!(directories(path), Vec::<String>::new(), "{path}");
        }
    }

    #[test]
    fn no_line_opens_a_directory_of_every_package() {
        let lines =
            include_str!("closures.txt").lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        for line in lines {
            let (_, items) = line.split_once(" = ").unwrap_or_else(|| panic!("`{line}`"));
            let paths = items.split(' ').map(|item| item.split_once(':').map_or(item, |(_, path)| path));
            for item in paths.filter(|item| item.starts_with(['/', '{'])) {
                let path = item.replace("{prefix}", "/usr").replace("{name}", "x");
                assert!(path.starts_with("{own}/") || !SHARED.contains(&&*path), "{item}");
                assert!(!["/usr/lib", "/usr/bin", "/usr/lib64", "/usr/libexec"].contains(&&*path), "{item}");
            }
        }
    }
}
