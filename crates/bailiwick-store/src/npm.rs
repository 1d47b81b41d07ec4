//! Packages of the npm registry: npm fetches them, without their scripts, by the user's own settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::PackageCall;
use crate::host::StoreHost;
use crate::manager::{Fetched, Grants, ManagerError, ManagerRun};

pub(crate) fn fetch(
    call: &PackageCall,
    host: &StoreHost,
    dir: &Path,
    runs_scripts: bool,
) -> Result<Fetched, ManagerError> {
    let tree = dir.join("tree");
    let settings = Settings::read(host, dir)?;
    let mut grants = settings.grants()?;
    grants.write(dir)?;
    let scope = call.name.split_once('/').map(|(scope, _)| format!("{scope}:registry"));
    let registry = scope.and_then(|scope| settings.text(&scope)).or_else(|| settings.text("registry"));
    [registry, settings.text("proxy"), settings.text("https-proxy")].into_iter().flatten().for_each(
        |address| {
            grants.reach(address);
        },
    );
    let mut args: Vec<OsString> =
        ["install", "--no-audit", "--no-fund", "--no-update-notifier", "--omit=dev"]
            .into_iter()
            .chain(["--loglevel=error", "--no-progress"])
            .map(Into::into)
            .collect();
    if runs_scripts {
        grants.run_scripts();
    } else {
        args.push("--ignore-scripts".into());
    }
    args.extend(settings.common.clone());
    args.push(flag("--prefix=", &tree));
    let version = if call.version.is_empty() { "latest" } else { &call.version };
    args.push(format!("{}@{version}", call.name).into());
    ManagerRun { host, program: "npm", args, grants: &grants, cwd: dir }.output()?;
    let (version, integrity) = locked(&tree, &call.name)?;
    Ok(Fetched { version, integrity, programs: programs(&tree, &call.name)?, tree })
}

fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(path);
    flag
}

/// The user's settings, as npm reads them.
struct Settings {
    values: Value,
    common: Vec<OsString>,
    files: Vec<PathBuf>,
}

impl Settings {
    fn read(host: &StoreHost, dir: &Path) -> Result<Self, ManagerError> {
        let mut common = vec![flag("--cache=", &dir.join("cache"))];
        let user = host.home.as_ref().map(|home| home.join(".npmrc"));
        common.extend(user.as_deref().map(|file| flag("--userconfig=", file)));
        let files: Vec<PathBuf> = user.into_iter().chain([PathBuf::from("/etc/npmrc")]).collect();
        let first = Self { values: Self::listed(host, dir, &common, &files)?, common, files };
        // Where npm's own settings are is known only now, and a sandbox does not show them. Without their name npm would look
        // for them below the directory that it installs into.
        let global = first.text("globalconfig").map(PathBuf::from).filter(|file| file.exists());
        let Some(global) = global.filter(|file| !first.files.contains(file)) else { return Ok(first) };
        let Self { mut common, mut files, .. } = first;
        common.push(flag("--globalconfig=", &global));
        files.push(global);
        Ok(Self { values: Self::listed(host, dir, &common, &files)?, common, files })
    }

    /// What npm makes of these files.
    fn listed(
        host: &StoreHost,
        dir: &Path,
        common: &[OsString],
        files: &[PathBuf],
    ) -> Result<Value, ManagerError> {
        let mut grants = Grants::default();
        grants.write(dir)?;
        files.iter().try_for_each(|file| grants.read(file))?;
        let args = ["config", "ls", "-l", "--json", "--loglevel=error"].into_iter().map(Into::into);
        let args = args.chain(common.iter().cloned()).collect();
        let text = ManagerRun { host, program: "npm", args, grants: &grants, cwd: dir }.output()?;
        serde_json::from_str(&text).map_err(|error| answer(error.to_string()))
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key)?.as_str().filter(|text| !text.is_empty())
    }

    /// Its files, and the certificates that they name.
    fn grants(&self) -> Result<Grants, ManagerError> {
        let mut grants = Grants::default();
        self.files.iter().try_for_each(|file| grants.read(file))?;
        self.text("cafile").map_or(Ok(()), |file| grants.read(Path::new(file)))?;
        Ok(grants)
    }
}

fn answer(why: String) -> ManagerError {
    ManagerError::Answer { program: "npm", why }
}

fn json(path: &Path) -> Result<Value, ManagerError> {
    let text =
        std::fs::read_to_string(path).map_err(|fault| answer(format!("{}: {fault}", path.display())))?;
    serde_json::from_str(&text).map_err(|error| answer(format!("{}: {error}", path.display())))
}

/// The version that npm chose, and the hash of its archive.
fn locked(tree: &Path, name: &str) -> Result<(String, String), ManagerError> {
    let lock = json(&tree.join("node_modules/.package-lock.json"))?;
    let entry = lock.get("packages").and_then(|packages| packages.get(format!("node_modules/{name}")));
    let text = |key: &str| Some(entry?.get(key)?.as_str()?.to_owned());
    match (text("version"), text("integrity")) {
        (Some(version), Some(integrity)) => Ok((version, integrity)),
        _ => Err(answer(format!("it says neither version nor hash of `{name}`"))),
    }
}

/// The programs that a package declares, which npm has put beside its modules.
fn programs(tree: &Path, name: &str) -> Result<BTreeMap<String, PathBuf>, ManagerError> {
    let package = json(&tree.join("node_modules").join(name).join("package.json"))?;
    let unscoped = name.rsplit_once('/').map_or(name, |(_, name)| name);
    let names: Vec<String> = match package.get("bin") {
        Some(Value::String(_)) => vec![unscoped.to_owned()],
        Some(Value::Object(bins)) => bins.keys().cloned().collect(),
        _ => Vec::new(),
    };
    let placed = names.into_iter().map(|name| {
        let path = Path::new("node_modules/.bin").join(&name);
        (name, path)
    });
    Ok(placed.filter(|(_, path)| tree.join(path).is_file()).collect())
}
