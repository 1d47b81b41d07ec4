//! The code of a server that lies in the user's own project, where no package manager put it: a script with the project
//! around it, and what that imports.
//!
//! A server can read it and not write it, also where a manifest lets it write the project. What lies there beside code (texts,
//! pictures) it can read, and write where that is granted. It is no authority of a tool. Hidden files and
//! files of secrets at the top of a project (`.env`, `.git`, `.npmrc`) are not shown.
//!
//! Fails closed when: the project is a home or another sensitive place. Then only the script itself is found.
//! Residual: secrets in ordinary files of a project's directories are read with them.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use bailiwick_manifest::sensitive::SensitivePlaces;
use bailiwick_policy::path::AbsPath;

use crate::host::StoreHost;
use crate::installed::environment;
use crate::values::places;

/// What lies at the top of a project of node, and of Python.
const NODE_MARKS: [&str; 3] = ["package.json", "deno.json", "deno.jsonc"];
const PYTHON_MARKS: [&str; 6] =
    ["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "uv.lock", "Pipfile"];

/// Endings of files that scripts import from beside them.
const NODE_CODE: [&str; 9] = ["js", "mjs", "cjs", "ts", "mts", "cts", "json", "node", "wasm"];
const PYTHON_CODE: [&str; 3] = ["py", "pyi", "so"];

/// Endings of files with keys.
const KEYS: [&str; 4] = ["pem", "key", "p12", "pfx"];

/// How many links of a directory of modules are followed, and how many projects they may lead to.
const MOST_LINKS: usize = 4096;
const MOST_PROJECTS: usize = 64;

/// How many entries of a directory are looked at for code.
const MOST_ENTRIES: usize = 2000;

/// What a server in the user's own project is shown of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectCode {
    /// Files and directories with code, which it never writes.
    pub code: Vec<PathBuf>,
    /// What lies beside them.
    pub data: Vec<PathBuf>,
}

/// The code of a server's command, as far as it lies in projects. `program` is where its program lies.
#[must_use]
pub fn code_of_command(program: &Path, words: &[OsString], host: &StoreHost) -> ProjectCode {
    let (places, projects) = (places(host), BTreeSet::new());
    let mut found = FoundCode { places, code: BTreeSet::new(), data: BTreeSet::new(), projects };
    let arguments = words.get(1..).unwrap_or_default();
    let name = program.file_name().and_then(OsStr::to_str).unwrap_or_default();
    match name {
        "node" | "nodejs" | "bun" | "deno" | "tsx" | "ts-node" => {
            found.node_script(arguments, &host.cwd);
            // `tsx` itself lies in the project's modules.
            found.node_modules_around(program);
        }
        _ if name.starts_with("python") => {
            found.python_command(arguments, &host.cwd);
            found.editable_projects(program);
        }
        _ => found.program(program),
    }
    ProjectCode { code: found.code.into_iter().collect(), data: found.data.into_iter().collect() }
}

struct FoundCode {
    places: SensitivePlaces,
    code: BTreeSet<PathBuf>,
    data: BTreeSet<PathBuf>,
    /// Where projects were found.
    projects: BTreeSet<PathBuf>,
}

/// How the code of a language is recognised.
#[derive(Clone, Copy)]
struct Language {
    marks: &'static [&'static str],
    endings: &'static [&'static str],
}

const NODE: Language = Language { marks: &NODE_MARKS, endings: &NODE_CODE };
const PYTHON: Language = Language { marks: &PYTHON_MARKS, endings: &PYTHON_CODE };

impl FoundCode {
    /// The first argument that is a file; options of node may stand before it.
    fn node_script(&mut self, arguments: &[OsString], cwd: &Path) {
        let plain = arguments.iter().filter(|word| !word.as_encoded_bytes().starts_with(b"-"));
        let script = plain.filter_map(|word| node_file(&cwd.join(word))).next();
        if let Some(script) = script {
            self.node_file(&script);
        }
    }

    fn node_file(&mut self, file: &Path) {
        self.project_of(file, NODE);
        self.node_modules_around(file);
    }

    /// Every directory of modules that a file's imports are looked for in, and projects that these link to.
    fn node_modules_around(&mut self, file: &Path) {
        let Ok(file) = file.canonicalize() else { return };
        let modules = OsStr::new("node_modules");
        for dir in file.ancestors().skip(1) {
            let beside = if dir.file_name() == Some(modules) { dir.to_owned() } else { dir.join(modules) };
            let Ok(beside) = beside.canonicalize() else { continue };
            if beside.is_dir() && !self.is_sensitive(&beside) && self.code.insert(beside.clone()) {
                for target in linked_projects(&beside) {
                    if self.projects.len() < MOST_PROJECTS && !self.projects.contains(&target) {
                        self.node_file(&target.join("package.json"));
                    }
                }
            }
        }
    }

    /// A script, or a module of the directory that Python is started in.
    fn python_command(&mut self, arguments: &[OsString], cwd: &Path) {
        if let Some(at) = arguments.iter().position(|word| word == "-m") {
            let module = arguments.get(at + 1).and_then(|word| word.to_str()).unwrap_or_default();
            let first = module.split('.').next().unwrap_or_default();
            let places = [cwd.join(first), cwd.join(format!("{first}.py"))];
            if let Some(module) = places.iter().find(|place| !first.is_empty() && place.exists()) {
                self.project_of(module, PYTHON);
            }
            return;
        }
        let plain = arguments.iter().filter(|word| !word.as_encoded_bytes().starts_with(b"-"));
        let script = plain.map(|word| cwd.join(word)).find(|file| file.exists());
        if let Some(script) = script {
            self.project_of(&script, PYTHON);
        }
    }

    /// A program that is a script itself, or that a virtual environment has.
    fn program(&mut self, program: &Path) {
        self.editable_projects(program);
        let Ok(file) = program.canonicalize() else { return };
        let ending = file.extension().and_then(OsStr::to_str).unwrap_or_default();
        if NODE_CODE.contains(&ending) {
            self.node_file(&file);
        } else if PYTHON_CODE.contains(&ending) {
            self.project_of(&file, PYTHON);
        }
    }

    /// Projects that a virtual environment has installed where they lie.
    fn editable_projects(&mut self, program: &Path) {
        let Some(packages) = environment(program) else { return };
        for entry in std::fs::read_dir(packages).into_iter().flatten().flatten() {
            let project = editable_project(&entry.path().join("direct_url.json"));
            if let Some(project) = project.filter(|_| self.projects.len() < MOST_PROJECTS) {
                self.whole_project(&project, &project);
            }
        }
    }

    /// The project around a file, or what lies beside a file without one.
    fn project_of(&mut self, file: &Path, language: Language) {
        let Ok(file) = file.canonicalize() else { return };
        let is_top = |dir: &&Path| language.marks.iter().any(|mark| dir.join(mark).is_file());
        match file.ancestors().skip(1).find(is_top).map(Path::to_owned) {
            Some(top) => self.whole_project(&top, &file),
            None => self.beside(&file, language),
        }
    }

    /// All that lies in a project, without what is hidden or secret at its top; the file alone where that cannot be meant.
    fn whole_project(&mut self, top: &Path, file: &Path) {
        let Ok(top) = top.canonicalize() else { return };
        if !self.projects.insert(top.clone()) {
            return;
        }
        if self.is_sensitive(&top) {
            self.add(file.to_owned());
            return;
        }
        for entry in std::fs::read_dir(&top).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let is_key = path.extension().is_some_and(|ending| KEYS.iter().any(|key| ending == *key));
            let is_hidden = is_key || name.as_encoded_bytes().starts_with(b".") || name == "node_modules";
            // A link that leads out of the project is no part of it. Modules are found by whose imports they are for.
            if !is_hidden && path.canonicalize().is_ok_and(|real| real.starts_with(&top)) {
                self.add(path);
            }
        }
    }

    /// A file, and the code beside it.
    fn beside(&mut self, file: &Path, language: Language) {
        self.add(file.to_owned());
        let dir = file.parent().filter(|dir| !self.is_sensitive(dir));
        for entry in dir.and_then(|dir| std::fs::read_dir(dir).ok()).into_iter().flatten().flatten() {
            let path = entry.path();
            let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
            let is_code = language.endings.contains(&ending) || path.join("__init__.py").is_file();
            if is_code && !path.is_symlink() {
                self.add(path);
            }
        }
    }

    /// A link counts as what it leads to. Nothing sensitive is code.
    fn add(&mut self, path: PathBuf) {
        let Ok(real) = path.canonicalize() else { return };
        if self.is_sensitive(&path) || self.is_sensitive(&real) {
            return;
        }
        let kind = if has_code(&real) { &mut self.code } else { &mut self.data };
        kind.insert(real);
    }

    fn is_sensitive(&self, path: &Path) -> bool {
        let path = path.to_str().and_then(|text| AbsPath::new(text).ok());
        path.is_none_or(|path| self.places.judge(&path).is_some())
    }
}

fn is_code(file: &Path) -> bool {
    let ending = file.extension().and_then(OsStr::to_str).unwrap_or_default();
    NODE_CODE.contains(&ending) || PYTHON_CODE.contains(&ending)
}

/// Whether a file is code, or one in a directory is. Hidden ones are not looked at; nor are those beyond a bound. What says
/// what a project is (`package.json`) counts as code.
fn has_code(path: &Path) -> bool {
    if !path.is_dir() {
        return is_code(path)
            || PYTHON_MARKS.iter().any(|mark| path.ends_with(mark))
            || path.extension().is_none();
    }
    let mut todo = vec![path.to_owned()];
    let mut seen = 0;
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let (path, hidden) = (entry.path(), entry.file_name().as_encoded_bytes().starts_with(b"."));
            let is_data = path.extension().is_some_and(|ending| ending == "json");
            seen += 1;
            match entry.file_type() {
                _ if hidden || seen > MOST_ENTRIES => {}
                Ok(kind) if kind.is_dir() => todo.push(path),
                Ok(kind) if kind.is_file() && !is_data && is_code(&path) => return true,
                Ok(_) | Err(_) => {}
            }
        }
    }
    false
}

/// The file that node runs for a word: as it is named, or with an ending.
fn node_file(path: &Path) -> Option<PathBuf> {
    let with_ending = || {
        let name = path.file_name()?.to_str()?;
        ["js", "mjs", "cjs"]
            .iter()
            .map(|ending| path.with_file_name(format!("{name}.{ending}")))
            .find(|file| file.is_file())
    };
    let index = || Some(path.join("index.js")).filter(|file| file.is_file());
    let manifest = || Some(path.join("package.json")).filter(|file| file.is_file());
    Some(path.to_owned()).filter(|file| file.is_file()).or_else(with_ending).or_else(index).or_else(manifest)
}

/// Where the links of a directory of modules lead, beyond directories of modules: other projects of a workspace.
fn linked_projects(modules: &Path) -> Vec<PathBuf> {
    let entries =
        |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_scope =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"@"));
    let own = entries(modules).flat_map(|path| {
        let scoped: Vec<PathBuf> = if is_scope(&path) { entries(&path).collect() } else { Vec::new() };
        std::iter::once(path).chain(scoped)
    });
    let links = own.take(MOST_LINKS).filter(|path| path.is_symlink());
    let targets = links.filter_map(|path| path.canonicalize().ok());
    let is_elsewhere = |path: &PathBuf| !path.iter().any(|part| part == "node_modules");
    targets.filter(is_elsewhere).filter(|path| path.join("package.json").is_file()).collect()
}

/// The directory of a project that was installed where it lies.
fn editable_project(record: &Path) -> Option<PathBuf> {
    let record: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(record).ok()?).ok()?;
    let is_editable = record.get("dir_info")?.get("editable")?.as_bool()?;
    let path = record.get("url")?.as_str()?.strip_prefix("file://")?;
    let path = String::from_utf8(bailiwick_policy::net::percent_decoded(path)?).ok()?;
    is_editable.then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project in a small host, and what is found as the code of a command there.
    fn found(files: &[&str], links: &[(&str, &str)], command: &[&str]) -> Vec<String> {
        let dir = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        let root = dir.path().canonicalize().unwrap();
        for file in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text =
                format!(r#"{{"url":"file://{}/home/lib","dir_info":{{"editable":true}}}}"#, root.display());
            std::fs::write(path, if file.ends_with("direct_url.json") { text } else { String::new() })
                .unwrap();
        }
        for (name, target) in links {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(root.join(target), path).unwrap();
        }
        let words: Vec<OsString> = command.iter().map(OsString::from).collect();
        let program = root.join("project").join(command[0]);
        let ProjectCode { code, data } = code_of_command(&program, &words, &StoreHost::for_tests(&root));
        let shown = |path: PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
        let data = data.into_iter().map(|path| format!("({})", shown(path))).collect::<Vec<_>>();
        code.into_iter().map(shown).chain(data).collect()
    }

    #[test]
    fn a_script_of_node_brings_its_project_and_the_modules_above() {
        let files = [
            "project/package.json",
            "project/dist/index.js",
            "project/.env",
            "project/.git/config",
            "project/server.pem",
            "project/data/notes.txt",
            "project/data/index.json",
            "project/node_modules/a/package.json",
            "node_modules/b/package.json",
            "libs/c/package.json",
            "libs/c/lib.js",
            "elsewhere/x",
        ];
        let links = [("project/node_modules/@o/c", "libs/c"), ("project/led", "elsewhere")];
        let expected = [
            "libs/c/lib.js",
            "libs/c/package.json",
            "node_modules",
            "project/dist",
            "project/node_modules",
            "project/package.json",
            "(project/data)",
        ];
        for command in [
            &["node", "dist/index.js", "server.pem"][..],
            &["node", "--import", "tsx", "dist/index", "x"],
            &["node", "."],
            &["dist/index.js"],
        ] {
            assert_eq!(found(&files, &links, command), expected, "{command:?}");
        }
    }

    #[test]
    fn python_brings_the_project_of_its_script_its_module_and_what_is_installed_where_it_lies() {
        let files = [
            "project/pyproject.toml",
            "project/pkg/__main__.py",
            "project/server.py",
            "project/.env",
            "project/.venv/pyvenv.cfg",
            "project/.venv/bin/prog",
            "project/.venv/lib/python3.11/site-packages/lib-1.dist-info/direct_url.json",
            "home/lib/src/lib.py",
        ];
        let own = ["project/pkg", "project/pyproject.toml", "project/server.py"];
        assert_eq!(found(&files, &[], &["python3", "-u", "server.py"]), own);
        assert_eq!(found(&files, &[], &["python3", "-m", "pkg.sub", "x"]), own);
        assert_eq!(found(&files, &[], &["python3", "-m", "other"]), [""; 0]);
        assert_eq!(found(&files, &[], &[".venv/bin/prog"]), ["home/lib/src"]);
        let both = [&["home/lib/src"][..], &own].concat();
        assert_eq!(found(&files, &[], &[".venv/bin/python", "server.py"]), both);
    }

    #[test]
    fn a_home_is_no_project_and_a_script_alone_brings_what_is_code_beside_it() {
        let files = [
            "project/x",
            "home/package.json",
            "home/server.js",
            "home/letters.txt",
            "loose/a.js",
            "loose/b.js",
            "loose/c.txt",
        ];
        assert_eq!(found(&files, &[], &["node", "../home/server.js"]), ["home/server.js"]);
        assert_eq!(found(&files, &[], &["node", "../loose/a.js"]), ["loose/a.js", "loose/b.js"]);
        assert_eq!(found(&files, &[], &["node", "--eval", "1"]), [""; 0]);
    }
}
