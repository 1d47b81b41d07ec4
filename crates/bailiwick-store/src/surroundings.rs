//! What around a command would have a launcher run something else than the user's registry has under that name.
//!
//! A project may bring settings of its own, or a copy of its own, and the environment may name another registry. None of
//! these count when a package is fetched, so a server that depends on them is another one: it is unknown.

use std::path::{Path, PathBuf};

use crate::command::{PackageCall, Registry};
use crate::host::StoreHost;

/// Settings of npm that say nothing about where packages come from; npm sets them for what it starts.
const HARMLESS: [&str; 15] = [
    "user_agent",
    "cache",
    "prefix",
    "local_prefix",
    "global_prefix",
    "noproxy",
    "npm_version",
    "node_gyp",
    "init_module",
    "loglevel",
    "yes",
    "fund",
    "audit",
    "update_notifier",
    "color",
];

/// Variables that name another index.
const INDEXES: [&str; 9] = [
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_CONFIG_FILE",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_CONFIG_FILE",
    "UV_FIND_LINKS",
];

/// Why a launcher would run something else, if it would.
#[must_use]
pub fn foreign_source(call: &PackageCall, host: &StoreHost) -> Option<String> {
    match call.registry {
        Registry::Npm => npm_variable(host).or_else(|| npm_project(call, host)),
        Registry::Pypi => index_variable(host).or_else(|| uv_project(host)),
    }
}

fn npm_variable(host: &StoreHost) -> Option<String> {
    let home = host.home.as_ref().map(|home| home.join(".npmrc"));
    host.variables.iter().find_map(|(name, value)| {
        let name = name.to_str()?;
        let setting = name.to_ascii_lowercase().strip_prefix("npm_config_")?.replace('-', "_");
        let is_usual = match setting.as_str() {
            "userconfig" => home.as_deref() == Some(Path::new(value)),
            "globalconfig" => true,
            other => HARMLESS.contains(&other),
        };
        (!is_usual).then(|| {
            format!("the environment variable `{name}` changes where npm takes packages from; settings count in `~/.npmrc` only")
        })
    })
}

fn index_variable(host: &StoreHost) -> Option<String> {
    let named = INDEXES.iter().find(|name| host.variable(name).is_some_and(|value| !value.is_empty()));
    let links = host
        .variable("PIP_FIND_LINKS")
        .filter(|links| links.to_str().is_none_or(|links| links.split_whitespace().any(is_there)));
    let name = named.copied().or_else(|| links.map(|_| "PIP_FIND_LINKS"))?;
    Some(format!(
        "the environment variable `{name}` changes where packages come from; settings count in pip's own file only"
    ))
}

/// Whether a place for packages could hold any: an address, a file, or a directory that is not empty.
fn is_there(link: &str) -> bool {
    let is_empty = std::fs::read_dir(link).is_ok_and(|mut entries| entries.next().is_none());
    link.contains("://") || (Path::new(link).exists() && !is_empty)
}

fn npm_project(call: &PackageCall, host: &StoreHost) -> Option<String> {
    let is_project = |dir: &&Path| dir.join("package.json").exists() || dir.join("node_modules").exists();
    let project = host.cwd.ancestors().find(is_project).unwrap_or(&host.cwd);
    let settings = project.join(".npmrc");
    if settings.exists() && host.home.as_deref() != Some(project) {
        return Some(format!("`{}` may name another registry", settings.display()));
    }
    let copy =
        host.cwd.ancestors().map(|dir| dir.join("node_modules").join(&call.name)).find(|dir| dir.exists())?;
    Some(format!("the project has its own copy, `{}`, which the launcher would start", copy.display()))
}

fn uv_project(host: &StoreHost) -> Option<String> {
    let file = |dir: &Path| Some(dir.join("uv.toml")).filter(|file: &PathBuf| file.exists());
    let found = host.cwd.ancestors().find_map(file)?;
    Some(format!("`{}` may name another index", found.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn call(registry: Registry) -> PackageCall {
        let (name, version) = ("server".to_owned(), String::new());
        PackageCall { registry, name, version, program: None, arguments: Vec::new() }
    }

    fn with(variables: &[(&str, &str)], files: &[&str], registry: Registry) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let mut host = StoreHost::for_tests(dir.path());
        host.variables = variables.iter().map(|(name, value)| (OsString::from(name), value.into())).collect();
        foreign_source(&call(registry), &host)
    }

    #[test]
    fn a_project_and_the_environment_may_not_say_where_packages_come_from() {
        for (variables, files, registry) in [
            (&[("npm_config_registry", "https://x.test")][..], &[][..], Registry::Npm),
            (&[("NPM_CONFIG_@A:REGISTRY", "https://x.test")], &[], Registry::Npm),
            (&[("npm_config_userconfig", "/elsewhere")], &[], Registry::Npm),
            (&[], &["project/.npmrc"], Registry::Npm),
            (&[], &["project/node_modules/server/package.json"], Registry::Npm),
            (&[], &["project/uv.toml"], Registry::Pypi),
            (&[("UV_INDEX", "https://x.test")], &[], Registry::Pypi),
            (&[("PIP_FIND_LINKS", "https://x.test")], &[], Registry::Pypi),
        ] {
            assert!(with(variables, files, registry).is_some(), "{variables:?} {files:?}");
        }
    }

    #[test]
    fn what_changes_nothing_is_let_be() {
        assert_eq!(with(&[("npm_config_user_agent", "npm")], &["home/.npmrc"], Registry::Npm), None);
        assert_eq!(with(&[("PIP_CERT", "/x"), ("PIP_FIND_LINKS", "/not/there")], &[], Registry::Pypi), None);
        assert_eq!(with(&[], &["project/node_modules/other/package.json"], Registry::Npm), None);
    }
}
