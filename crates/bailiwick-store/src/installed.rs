//! A server that is there already: where its program really lies, and what the package around it claims to be.
//!
//! A claim is unverified metadata: it chooses a manifest, and nothing else depends on it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::command::pypi_name;

/// Where a server's code really lies, and its own arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledServer {
    /// The file that is run, links followed: a script, where an interpreter runs one.
    pub path: PathBuf,
    /// The server's own arguments.
    pub arguments: Vec<OsString>,
    /// What the metadata around it says.
    pub claim: Option<Claim>,
}

/// What metadata beside a program says that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// `npm:NAME` or `pypi:NAME`.
    pub identity: String,
    /// Its version.
    pub version: String,
}

impl InstalledServer {
    /// Finds the program of a command; `program` is where it lies.
    #[must_use]
    pub fn find(program: &Path, words: &[OsString]) -> Option<Self> {
        let arguments = words.get(1..).unwrap_or_default();
        let name = program.file_name()?.to_str()?;
        let is_python = name.starts_with("python");
        if !is_python && !matches!(name, "node" | "nodejs" | "bun" | "deno") {
            return Self::from_file(program, arguments);
        }
        let first = arguments.iter().position(|word| !word.to_string_lossy().starts_with('-'));
        match first {
            Some(0) => Self::from_file(Path::new(arguments.first()?), arguments.get(1..)?),
            Some(1) if is_python && arguments.first()? == "-m" => {
                let (module, rest) = (arguments.get(1)?.to_str()?, arguments.get(2..)?);
                let claim = environment(program).and_then(|packages| by_module(&packages, module));
                Some(Self { path: program.canonicalize().ok()?, arguments: rest.to_vec(), claim })
            }
            // Options of an interpreter may make it run anything.
            _ => None,
        }
    }

    fn from_file(file: &Path, arguments: &[OsString]) -> Option<Self> {
        let path = file.canonicalize().ok()?;
        let claim = node_package(&path).or_else(|| python_script(file)).or_else(|| python_script(&path));
        Some(Self { path, arguments: arguments.to_vec(), claim })
    }
}

/// The package of the innermost `node_modules` that a file lies in.
fn node_package(file: &Path) -> Option<Claim> {
    let modules = file.ancestors().find(|dir| dir.file_name() == Some(OsStr::new("node_modules")))?;
    let mut inside = file.strip_prefix(modules).ok()?.components();
    let first = inside.next()?.as_os_str().to_str()?;
    let name = match first.strip_prefix('@') {
        Some(_) => format!("{first}/{}", inside.next()?.as_os_str().to_str()?),
        None => first.to_owned(),
    };
    let text = std::fs::read_to_string(modules.join(&name).join("package.json")).ok()?;
    let package: serde_json::Value = serde_json::from_str(&text).ok()?;
    let version = package.get("version")?.as_str()?.to_owned();
    (package.get("name")?.as_str()? == name).then(|| Claim { identity: format!("npm:{name}"), version })
}

/// The package whose script a file in a virtual environment is.
fn python_script(file: &Path) -> Option<Claim> {
    let packages = environment(file)?;
    let script = file.file_name()?.to_str()?;
    distributions(&packages).find_map(|(dir, claim)| {
        let entries = std::fs::read_to_string(dir.join("entry_points.txt")).ok()?;
        console_scripts(&entries).any(|name| name == script).then_some(claim)
    })
}

/// The packages of the virtual environment whose program a file is.
pub(crate) fn environment(file: &Path) -> Option<PathBuf> {
    let own = file.parent()?.parent()?;
    own.join("pyvenv.cfg").is_file().then(|| site_packages(own))?
}

/// Where a virtual environment has its packages.
pub(crate) fn site_packages(environment: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(environment.join("lib")).ok()?.flatten();
    versions.map(|entry| entry.path().join("site-packages")).find(|dir| dir.is_dir())
}

/// The distributions in a directory of packages.
pub(crate) fn distributions(packages: &Path) -> impl Iterator<Item = (PathBuf, Claim)> {
    let entries = std::fs::read_dir(packages).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let (path, name) = (entry.path(), entry.file_name().into_string().ok()?);
        let (name, version) = name.strip_suffix(".dist-info")?.split_once('-')?;
        let claim = Claim { identity: format!("pypi:{}", pypi_name(name)), version: version.to_owned() };
        Some((path, claim))
    })
}

/// The names of the scripts that `entry_points.txt` declares.
pub(crate) fn console_scripts(text: &str) -> impl Iterator<Item = &str> {
    let section = text.lines().map(str::trim).skip_while(|line| *line != "[console_scripts]").skip(1);
    section.take_while(|line| !line.starts_with('[')).filter_map(|line| Some(line.split_once('=')?.0.trim()))
}

/// The distribution that has the name of a module.
fn by_module(packages: &Path, module: &str) -> Option<Claim> {
    let identity = format!("pypi:{}", pypi_name(module));
    let is_there = packages.join(module).join("__main__.py").is_file();
    distributions(packages).map(|(_, claim)| claim).find(|claim| is_there && claim.identity == identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_beside_a_program_claims_an_identity() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        };
        let entry = write("node_modules/@a/b/dist/index.js", "");
        write("node_modules/@a/b/package.json", r#"{"name":"@a/b","version":"1.2.3"}"#);
        let words = [OsString::from("node"), entry.clone().into(), "x".into()];
        let found = InstalledServer::find(Path::new("/usr/bin/node"), &words).unwrap();
        assert_eq!(found.claim.unwrap().identity, "npm:@a/b");
        assert_eq!((found.path, found.arguments), (entry.canonicalize().unwrap(), vec!["x".into()]));

        // A directory that is called otherwise than what it claims to be claims nothing.
        let other = write("node_modules/evil/index.js", "");
        write("node_modules/evil/package.json", r#"{"name":"@a/b","version":"1.2.3"}"#);
        assert_eq!(InstalledServer::find(&other, &[other.clone().into()]).unwrap().claim, None);

        let script = write("venv/bin/mcp-server-x", "");
        write("venv/pyvenv.cfg", "");
        let packages = "venv/lib/python3.11/site-packages";
        let entries = "[console_scripts]\nmcp-server-x = x:main\n[other]\ny = z\n";
        write(&format!("{packages}/mcp_server_x-2.0.dist-info/entry_points.txt"), entries);
        write(&format!("{packages}/mcp_server_x/__main__.py"), "");
        let found = InstalledServer::find(&script, &[script.clone().into(), "--a".into()]).unwrap();
        assert_eq!(
            found.claim,
            Some(Claim { identity: "pypi:mcp-server-x".to_owned(), version: "2.0".to_owned() })
        );
        let python = write("venv/bin/python", "");
        let words = ["python", "-m", "mcp_server_x", "--a"].map(OsString::from);
        let found = InstalledServer::find(&python, &words).unwrap();
        assert_eq!((found.claim.unwrap().version.as_str(), found.arguments), ("2.0", vec!["--a".into()]));
        assert_eq!(InstalledServer::find(&python, &["python", "-c", "x"].map(OsString::from)), None);
    }
}
