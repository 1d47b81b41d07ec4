//! The store: one directory for each package that was fetched, and a record of what it was then.
//!
//! Directories lie under the cache. Records lie among what no sandbox shows, so that no server can change what its own
//! package is compared with. A package is fetched under a lock into a new directory, which is renamed when it is whole.
//!
//! Fails closed when: a directory is not what its record says.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bailiwick_journal::private::make_directory;
use bailiwick_policy::digest::Digest;
use serde::{Deserialize, Serialize};

use crate::command::{PackageCall, Registry};
use crate::host::StoreHost;
use crate::manager::{Fetched, ManagerError};
use crate::{npm, pypi, seal};

const VERSION: u32 = 1;

/// How a package is resolved.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResolveOptions {
    /// Whether the registry is asked again.
    pub refresh: bool,
    /// Whether the package's own scripts may run.
    pub install_scripts: bool,
}

/// Why there is no package to start.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The package manager gave none.
    #[error(transparent)]
    Manager(#[from] ManagerError),
    /// The store cannot be used.
    #[error("cannot use the store in `{path}`: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// What the host said.
        source: io::Error,
    },
    /// A package is not what it was.
    #[error("`{directory}` is not what was fetched: something changed it since; `--refresh` fetches it anew")]
    Changed {
        /// Which.
        directory: PathBuf,
    },
    /// A record cannot be read.
    #[error("the record `{path}` is damaged: {why}; remove it to fetch the package anew")]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// More than one program of the package could be meant.
    #[error("`{package}` has {}; name one with the launcher's option for a package, as in `npx -p PACKAGE PROGRAM` or `uvx --from PACKAGE PROGRAM`", listed(.programs))]
    Program {
        /// Which package.
        package: String,
        /// Its programs.
        programs: Vec<String>,
    },
}

fn listed(programs: &[String]) -> String {
    if programs.is_empty() {
        return "no program".to_owned();
    }
    format!("the programs {}", programs.join(", "))
}

/// A package as it was fetched.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredPackage {
    #[serde(rename = "format")]
    version_of_record: u32,
    /// `npm:NAME` or `pypi:NAME`.
    pub identity: String,
    /// The version, range or tag that was asked for.
    pub asked: String,
    /// The version that it has.
    pub version: String,
    /// What the registry says that the archive's hash is.
    pub integrity: String,
    /// Where it lies, below the store.
    directory: PathBuf,
    programs: BTreeMap<String, PathBuf>,
    content: String,
    stamp: String,
    /// When it was fetched, in seconds since 1970.
    pub fetched: u64,
}

/// A server that can be started.
#[derive(Debug, Clone)]
pub struct StoredServer {
    /// What it is of.
    pub package: StoredPackage,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Whether npm says of it, or of what it needs, that scripts of its own run when it is installed.
    pub has_install_scripts: bool,
}

/// The packages of one user.
pub struct Store<'a> {
    host: &'a StoreHost,
}

impl<'a> Store<'a> {
    /// The store of a host.
    #[must_use]
    pub const fn new(host: &'a StoreHost) -> Self {
        Self { host }
    }

    /// The package of a call: what was fetched before, else what the registry has now.
    ///
    /// # Errors
    /// Why there is nothing to start.
    pub fn resolve(&self, call: &PackageCall, options: ResolveOptions) -> Result<StoredServer, StoreError> {
        self.server(call, self.package(call, options)?)
    }

    /// The same, whichever program of it is meant.
    ///
    /// # Errors
    /// Why there is none.
    pub fn package(&self, call: &PackageCall, options: ResolveOptions) -> Result<StoredPackage, StoreError> {
        let key = key(call, options);
        let record = self.host.records.join(format!("{key}.json"));
        // Without a lock first: another start may hold it while it fetches something newer.
        if !options.refresh
            && let Some(package) = self.kept(&record)?
        {
            return Ok(package);
        }
        make_directory(&self.host.packages).map_err(|fault| self.fault(fault))?;
        let lock = File::create(self.host.packages.join(format!("{key}.lock")))
            .map_err(|fault| self.fault(fault))?;
        lock.lock().map_err(|fault| self.fault(fault))?;
        if !options.refresh
            && let Some(package) = self.kept(&record)?
        {
            return Ok(package);
        }
        let package = self.fetch(call, options)?;
        write_record(&record, &package).map_err(|fault| self.fault(fault))?;
        Ok(package)
    }

    /// Whether the package of a call was fetched before and is what it was.
    ///
    /// # Errors
    /// If it is not what it was.
    pub fn has(&self, call: &PackageCall, options: ResolveOptions) -> Result<bool, StoreError> {
        Ok(self.kept(&self.host.records.join(format!("{}.json", key(call, options))))?.is_some())
    }

    /// Every package that has a record.
    ///
    /// # Errors
    /// If a record cannot be read.
    pub fn list(&self) -> Result<Vec<(StoredPackage, PathBuf)>, StoreError> {
        let mut all = Vec::new();
        for path in self.records()? {
            all.extend(read_record(&path)?.map(|package| {
                let directory = self.host.packages.join(&package.directory);
                (package, directory)
            }));
        }
        all.sort_by(|(one, _), (other, _)| (&one.identity, &one.asked).cmp(&(&other.identity, &other.asked)));
        Ok(all)
    }

    /// Removes directories that no record names, and what a fetch that was ended left behind; with `all`, everything.
    ///
    /// # Errors
    /// If something cannot be removed.
    pub fn prune(&self, all: bool) -> Result<usize, StoreError> {
        let kept: Vec<PathBuf> = if all {
            for path in self.records()? {
                std::fs::remove_file(path).map_err(|fault| self.fault(fault))?;
            }
            Vec::new()
        } else {
            self.list()?.into_iter().map(|(_, directory)| directory).collect()
        };
        let mut removed = 0;
        for dir in self.directories() {
            if !kept.contains(&dir) {
                std::fs::remove_dir_all(&dir).map_err(|fault| self.fault(fault))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn records(&self) -> Result<Vec<PathBuf>, StoreError> {
        let entries = match std::fs::read_dir(&self.host.records) {
            Ok(entries) => entries,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(fault) => return Err(self.fault(fault)),
        };
        let paths = entries.flatten().map(|entry| entry.path());
        Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect())
    }

    /// The directories of packages, and those of fetches that never ended.
    fn directories(&self) -> Vec<PathBuf> {
        let inside = |dir: &Path| {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect::<Vec<_>>()
        };
        let mut found = Vec::new();
        for top in inside(&self.host.packages) {
            let is_registry = ["npm", "pypi"].iter().any(|name| top.ends_with(name));
            if is_registry {
                found.extend(inside(&top).iter().flat_map(|package| inside(package)));
            } else {
                found.push(top);
            }
        }
        found
    }

    /// The package of a record, if it is still what it was.
    fn kept(&self, record: &Path) -> Result<Option<StoredPackage>, StoreError> {
        let Some(package) = read_record(record)? else { return Ok(None) };
        let directory = self.host.packages.join(&package.directory);
        if !directory.is_dir() {
            return Ok(None);
        }
        let fault = |fault| self.fault(fault);
        if seal::stamp(&directory).map_err(fault)?.to_string() == package.stamp {
            return Ok(Some(package));
        }
        // A copy or a restored backup has other numbers and the same content.
        if seal::content(&directory).map_err(fault)?.to_string() != package.content {
            return Err(StoreError::Changed { directory });
        }
        let package = StoredPackage { stamp: seal::stamp(&directory).map_err(fault)?.to_string(), ..package };
        write_record(record, &package).map_err(fault)?;
        Ok(Some(package))
    }

    fn fetch(&self, call: &PackageCall, options: ResolveOptions) -> Result<StoredPackage, StoreError> {
        let fault = |fault| self.fault(fault);
        let new = tempfile::Builder::new().prefix("new-").tempdir_in(&self.host.packages).map_err(fault)?;
        let fetched = match call.registry {
            Registry::Npm => npm::fetch(call, self.host, new.path(), options.install_scripts)?,
            Registry::Pypi => pypi::fetch(call, self.host, new.path(), options.install_scripts)?,
        };
        let Fetched { version, integrity, tree, programs } = fetched;
        let content = seal::content(&tree).map_err(fault)?.to_string();
        let short: String = content.chars().filter(char::is_ascii_hexdigit).take(16).collect();
        let parent = Path::new(call.registry.as_str()).join(call.name.replace('/', "+"));
        let directory = parent.join(format!("{version}-{short}"));
        make_directory(&self.host.packages.join(parent)).map_err(fault)?;
        let place = self.host.packages.join(&directory);
        if place.exists() && seal::content(&place).map_err(fault)?.to_string() != content {
            // What lies there is not what its name says: it makes way.
            std::fs::rename(&place, new.path().join("old")).map_err(fault)?;
        }
        if !place.exists() {
            std::fs::rename(&tree, &place).map_err(fault)?;
        }
        let stamp = seal::stamp(&place).map_err(fault)?.to_string();
        let fetched = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Ok(StoredPackage {
            version_of_record: VERSION,
            identity: call.identity(),
            asked: call.version.clone(),
            version,
            integrity,
            directory,
            programs,
            content,
            stamp,
            fetched,
        })
    }

    fn server(&self, call: &PackageCall, package: StoredPackage) -> Result<StoredServer, StoreError> {
        let unscoped = call.name.rsplit_once('/').map_or(call.name.as_str(), |(_, name)| name);
        let named = match &call.program {
            Some(program) => package.programs.get_key_value(program),
            None if package.programs.len() == 1 => package.programs.first_key_value(),
            None => package.programs.get_key_value(unscoped),
        };
        let Some((_, program)) = named else {
            let programs = package.programs.keys().cloned().collect();
            return Err(StoreError::Program { package: package.identity.clone(), programs });
        };
        let directory = self.host.packages.join(&package.directory);
        let entry = directory.join(program);
        let start: Vec<OsString> = match call.registry {
            Registry::Npm => vec![entry.into()],
            // The first line of a script names the directory that it was made in.
            Registry::Pypi => vec![directory.join("bin/python").into(), entry.into()],
        };
        let command = start.into_iter().chain(call.arguments.iter().cloned()).collect();
        let lock = std::fs::read_to_string(directory.join("package-lock.json")).unwrap_or_default();
        let has_install_scripts = lock.contains("\"hasInstallScript\": true");
        Ok(StoredServer { package, command, has_install_scripts })
    }

    fn fault(&self, source: io::Error) -> StoreError {
        StoreError::Io { path: self.host.packages.clone(), source }
    }
}

fn key(call: &PackageCall, options: ResolveOptions) -> String {
    let scripts = if options.install_scripts { "scripts" } else { "" };
    let text = format!("{}\n{}\n{scripts}", call.identity(), call.version);
    let digest = Digest::sha256(text.as_bytes()).to_string();
    digest.chars().filter(char::is_ascii_hexdigit).take(32).collect()
}

fn read_record(path: &Path) -> Result<Option<StoredPackage>, StoreError> {
    let damaged = |why: String| StoreError::Damaged { path: path.to_owned(), why };
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(fault) => return Err(damaged(fault.to_string())),
    };
    let package: StoredPackage = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    if package.version_of_record != VERSION {
        return Err(damaged("it is of another version".to_owned()));
    }
    Ok(Some(package))
}

fn write_record(path: &Path, package: &StoredPackage) -> io::Result<()> {
    let dir = path.parent().ok_or_else(|| io::Error::other("a record has no directory"))?;
    make_directory(dir)?;
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(&serde_json::to_vec_pretty(package)?)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> PackageCall {
        let (name, version) = ("@a/server".to_owned(), String::new());
        PackageCall { registry: Registry::Npm, name, version, program: None, arguments: vec!["x".into()] }
    }

    /// A host whose store has a package that was never fetched here.
    fn stored(dir: &Path, programs: &[&str]) -> StoreHost {
        let host = StoreHost::for_tests(dir);
        let place = host.packages.join("npm/@a+server/1-0");
        std::fs::create_dir_all(place.join("node_modules/.bin")).unwrap();
        let programs: BTreeMap<String, PathBuf> = programs
            .iter()
            .map(|name| ((*name).to_owned(), Path::new("node_modules/.bin").join(name)))
            .collect();
        for program in programs.values() {
            std::fs::write(place.join(program), "1").unwrap();
        }
        let package = StoredPackage {
            version_of_record: VERSION,
            identity: "npm:@a/server".to_owned(),
            asked: String::new(),
            version: "1".to_owned(),
            integrity: "sha512-x".to_owned(),
            directory: "npm/@a+server/1-0".into(),
            programs,
            content: seal::content(&place).unwrap().to_string(),
            stamp: seal::stamp(&place).unwrap().to_string(),
            fetched: 0,
        };
        let record = host.records.join(format!("{}.json", key(&call(), ResolveOptions::default())));
        write_record(&record, &package).unwrap();
        host
    }

    #[test]
    fn what_was_fetched_before_is_started_without_a_package_manager() {
        let dir = tempfile::tempdir().unwrap();
        let host = stored(dir.path(), &["server", "other"]);
        let server = Store::new(&host).resolve(&call(), ResolveOptions::default()).unwrap();
        let program = host.packages.join("npm/@a+server/1-0/node_modules/.bin/server");
        assert_eq!(server.command, [program.into_os_string(), "x".into()]);
        assert_eq!(Store::new(&host).list().unwrap().len(), 1);
        let named = PackageCall { program: Some("missing".to_owned()), ..call() };
        let refused = Store::new(&host).resolve(&named, ResolveOptions::default());
        assert!(matches!(refused, Err(StoreError::Program { .. })));
    }

    #[test]
    fn a_package_that_was_changed_is_not_started() {
        let dir = tempfile::tempdir().unwrap();
        let host = stored(dir.path(), &["server"]);
        let program = host.packages.join("npm/@a+server/1-0/node_modules/.bin/server");
        let resolve = || Store::new(&host).resolve(&call(), ResolveOptions::default());
        std::fs::write(&program, "1").unwrap();
        assert!(resolve().is_ok(), "written again, and the same");
        std::fs::write(&program, "2").unwrap();
        assert!(matches!(resolve(), Err(StoreError::Changed { .. })));
        std::fs::write(&program, "1").unwrap();
        std::fs::write(program.with_file_name("more"), "").unwrap();
        assert!(matches!(resolve(), Err(StoreError::Changed { .. })));
    }

    #[test]
    fn what_no_record_names_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let host = stored(dir.path(), &["server"]);
        std::fs::create_dir_all(host.packages.join("npm/@a+server/0-1")).unwrap();
        std::fs::create_dir_all(host.packages.join("new-x/tree")).unwrap();
        assert_eq!(Store::new(&host).prune(false).unwrap(), 2);
        assert!(Store::new(&host).resolve(&call(), ResolveOptions::default()).is_ok());
        assert_eq!(Store::new(&host).prune(true).unwrap(), 1);
        assert!(Store::new(&host).list().unwrap().is_empty());
    }
}
