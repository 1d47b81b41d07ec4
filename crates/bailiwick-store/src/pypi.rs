//! Packages of the Python index: pip fetches them as wheels, by the user's own settings, into an environment of their
//! own. A wheel runs no code when it is installed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::PackageCall;
use crate::host::StoreHost;
use crate::installed::{console_scripts, distributions, site_packages};
use crate::manager::{Fetched, Grants, ManagerError, ManagerRun};

/// Asks pip which index it uses where nothing is set, and where that one keeps its files.
const DEFAULTS: &str = "from pip._internal.models.index import PyPI\n\
                        print(PyPI.simple_url)\nprint('https://' + PyPI.file_storage_domain)";

/// Where pip's settings are, below the home and in the system.
const SETTINGS: [&str; 2] = [".config/pip/pip.conf", ".pip/pip.conf"];
const SYSTEM_SETTINGS: [&str; 2] = ["/etc/pip.conf", "/etc/xdg/pip/pip.conf"];

pub(crate) fn fetch(
    call: &PackageCall,
    host: &StoreHost,
    dir: &Path,
    runs_scripts: bool,
) -> Result<Fetched, ManagerError> {
    let python = Python { host, dir };
    let tree = dir.join("tree");
    let mut grants = python.settings()?;
    python.run(
        &grants,
        ["-m", "venv", "--without-pip", "--symlinks"].map(Into::into),
        [tree.clone().into()],
    )?;
    python.add_index(&mut grants)?;
    let packages =
        site_packages(&tree).ok_or_else(|| answer("the environment has no packages".to_owned()))?;
    let report = dir.join("report.json");
    let mut args: Vec<OsString> = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
        .into_iter()
        .chain(["--no-cache-dir", "--no-compile", "--quiet", "--no-warn-script-location"])
        .map(Into::into)
        .collect();
    if runs_scripts {
        grants.run_scripts();
    } else {
        args.extend(["--only-binary", ":all:"].map(Into::into));
    }
    args.extend(["--target".into(), packages.clone().into(), "--report".into(), report.clone().into()]);
    let exact = if call.version.is_empty() { String::new() } else { format!("=={}", call.version) };
    python.run(&grants, args, [format!("{}{exact}", call.name).into()])?;
    // Without it every start would compile every module: the directory is read-only then.
    let mut local = Grants::default();
    local.write(dir)?;
    let compile = ["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"].map(Into::into);
    // A module that does not compile is one that nothing imports.
    drop(python.run(&local, compile, [packages.clone().into()]));
    let (version, integrity) = installed(&report, &call.identity())?;
    let programs = programs(&tree, &packages, &call.identity());
    Ok(Fetched { version, integrity, tree, programs })
}

struct Python<'a> {
    host: &'a StoreHost,
    dir: &'a Path,
}

impl Python<'_> {
    fn run(
        &self,
        grants: &Grants,
        args: impl IntoIterator<Item = OsString>,
        last: impl IntoIterator<Item = OsString>,
    ) -> Result<String, ManagerError> {
        let args = args.into_iter().chain(last).collect();
        ManagerRun { host: self.host, program: "python3", args, grants, cwd: self.dir }.output()
    }

    /// The user's settings and the directory.
    fn settings(&self) -> Result<Grants, ManagerError> {
        let mut grants = Grants::default();
        grants.write(self.dir)?;
        let own = self.host.home.iter().flat_map(|home| SETTINGS.map(|file| home.join(file)));
        own.chain(SYSTEM_SETTINGS.map(PathBuf::from)).try_for_each(|file| grants.read(&file))?;
        Ok(grants)
    }

    /// Lets the indexes be reached that pip is set up for.
    fn add_index(&self, grants: &mut Grants) -> Result<(), ManagerError> {
        let listed = self.run(grants, ["-m", "pip", "config", "list"].map(Into::into), [])?;
        let settings: BTreeMap<String, String> = listed.lines().filter_map(setting).collect();
        let named = |key: &str| {
            let sections = ["global", "install"].map(|section| settings.get(&format!("{section}.{key}")));
            sections.into_iter().flatten().flat_map(|value| value.split_whitespace()).collect::<Vec<_>>()
        };
        if named("index-url").is_empty() {
            let usual = self.run(grants, ["-I", "-c", DEFAULTS].map(Into::into), [])?;
            usual.lines().for_each(|address| grants.reach(address));
        }
        for key in ["index-url", "extra-index-url", "proxy", "find-links"] {
            named(key).into_iter().for_each(|address| grants.reach(address));
        }
        named("cert").into_iter().try_for_each(|file| grants.read(Path::new(file)))
    }
}

/// One line of `pip config list`: `global.index-url='https://…'`.
fn setting(line: &str) -> Option<(String, String)> {
    let (key, value) = line.split_once('=')?;
    Some((key.to_owned(), value.trim_matches(['\'', '"']).replace("\\n", " ")))
}

fn answer(why: String) -> ManagerError {
    ManagerError::Answer { program: "pip", why }
}

/// The version that pip chose, and the hash of its archive.
fn installed(report: &Path, identity: &str) -> Result<(String, String), ManagerError> {
    let text = std::fs::read_to_string(report).map_err(|fault| answer(fault.to_string()))?;
    let report: Value = serde_json::from_str(&text).map_err(|error| answer(error.to_string()))?;
    let entries = report.get("install").and_then(Value::as_array).into_iter().flatten();
    let mut asked = entries.filter(|entry| entry.get("requested") == Some(&Value::Bool(true)));
    let found = asked.next().and_then(|entry| {
        let version = entry.pointer("/metadata/version")?.as_str()?;
        let hash = entry.pointer("/download_info/archive_info/hashes/sha256")?.as_str()?;
        Some((version.to_owned(), format!("sha256-{hash}")))
    });
    found.ok_or_else(|| answer(format!("it says neither version nor hash of `{identity}`")))
}

/// The scripts of the package that was asked for.
fn programs(tree: &Path, packages: &Path, identity: &str) -> BTreeMap<String, PathBuf> {
    let own = distributions(packages).find(|(_, claim)| claim.identity == identity);
    let text = own.and_then(|(dir, _)| std::fs::read_to_string(dir.join("entry_points.txt")).ok());
    let place = packages.strip_prefix(tree).unwrap_or(packages).join("bin");
    let names = text.iter().flat_map(|text| console_scripts(text));
    names
        .map(|name| (name.to_owned(), place.join(name)))
        .filter(|(_, path)| tree.join(path).is_file())
        .collect()
}
