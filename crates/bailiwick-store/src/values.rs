//! What a server's own arguments grant: the values of a manifest's variables on this host.
//!
//! A value is made absolute from the caller's directory, and judged by where it really lies. One that leads to a
//! sensitive place is refused: only a person's `--set` can mean that.
//!
//! Residual: links are followed when a value is judged and again when the sandbox is built; a program of the same user
//! could change one in between.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use bailiwick_manifest::sensitive::{Sensitive, SensitivePlaces};
use bailiwick_manifest::{Manifest, Variable, VariableSource};
use bailiwick_policy::finding::Findings;
use bailiwick_policy::path::AbsPath;

use crate::host::StoreHost;

/// Why a manifest has no values here.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// A variable has none.
    #[error("{0}")]
    Unbound(#[from] Findings),
    /// A value is no path.
    #[error("`{value}`, the value of `${name}`, is not a path that can be granted")]
    NoPath {
        /// The variable.
        name: String,
        /// Its value.
        value: String,
    },
    /// A value is never granted by an argument.
    #[error(
        "`{value}` is not granted because an argument names it: {why}; if you mean it, say `--set {name}={value}`"
    )]
    Sensitive {
        /// The variable.
        name: String,
        /// Its value.
        value: String,
        /// Why.
        why: Sensitive,
    },
}

/// The manifest with the values that a command line gives its variables; `set` are those of `--set`.
///
/// # Errors
/// Why a variable has no value, or one that is not granted.
pub fn with_host_values(
    manifest: Manifest,
    arguments: &[OsString],
    set: &[(String, String)],
    host: &StoreHost,
) -> Result<Manifest, ValueError> {
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let environment = |name: &str| host.variable(name).map(|value| value.to_string_lossy().into_owned());
    let said: BTreeMap<&str, &str> =
        set.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let unset = manifest.clone().without_variables(|name| said.contains_key(name));
    let bound = unset.bound_values(&words, environment)?;
    let places = places(host);
    let (mut values, mut given) = (BTreeMap::new(), Vec::new());
    for (name, variable) in manifest.variables() {
        if let Some(value) = said.get(name.as_str()) {
            values.insert(name.clone(), vec![read(name, Path::new(value))?]);
            if let VariableSource::Env(env) = variable.source() {
                let own = environment(env).map(|word| absolute(Path::new(&word), host));
                given.extend(own.map(|path| (env.clone(), path.display().to_string())));
            }
            continue;
        }
        let Some(bound) = bound.get(name) else { continue };
        let mut all = Vec::new();
        for word in &bound.words {
            let whole = absolute(Path::new(word), host);
            if let VariableSource::Env(env) = variable.source() {
                given.push((env.clone(), whole.display().to_string()));
            }
            all.push(granted(name, variable, &whole, bound.is_default, &places)?);
        }
        values.insert(name.clone(), all);
    }
    let manifest = given.iter().fold(manifest, |manifest, (name, value)| manifest.with_env(name, value));
    Ok(manifest.with_values(&values))
}

fn read(name: &str, path: &Path) -> Result<AbsPath, ValueError> {
    let clean = path.to_str().and_then(|text| AbsPath::new(text).ok());
    clean.ok_or_else(|| ValueError::NoPath { name: name.to_owned(), value: path.display().to_string() })
}

fn granted(
    name: &str,
    variable: &Variable,
    whole: &Path,
    is_default: bool,
    places: &SensitivePlaces,
) -> Result<AbsPath, ValueError> {
    let path = if variable.is_parent() { whole.parent().unwrap_or(whole) } else { whole };
    if is_default && variable.is_parent() && !path.exists() {
        // A default is the manifest's own choice, and a server expects it to be there.
        drop(bailiwick_journal::private::make_directory(path));
    }
    let value = read(name, path)?;
    let real = read(name, &real(path))?;
    match places.judge(&value).or_else(|| places.judge(&real)) {
        None => Ok(value),
        Some(why) => Err(ValueError::Sensitive { name: name.to_owned(), value: value.to_string(), why }),
    }
}

/// A word as the caller means it: from their home or their directory, without `.` and `..`.
fn absolute(word: &Path, host: &StoreHost) -> PathBuf {
    let home = host.home.as_ref().zip(word.strip_prefix("~").ok()).map(|(home, rest)| home.join(rest));
    let whole = home.unwrap_or_else(|| host.cwd.join(word));
    let mut clean = PathBuf::from("/");
    for component in whole.components() {
        match component {
            // As the kernel reads it: above where a link leads, not above the link.
            Component::ParentDir => {
                clean = real(&clean);
                clean.pop();
            }
            Component::Normal(name) => clean.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    clean
}

/// Where a path leads, links followed as far as it is there.
fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, led)) = there else { return path.to_owned() };
    let rest = path.strip_prefix(above).unwrap_or_else(|_| Path::new(""));
    if rest.as_os_str().is_empty() { led } else { led.join(rest) }
}

pub(crate) fn places(host: &StoreHost) -> SensitivePlaces {
    let path = |path: &Path| path.to_str().and_then(|text| AbsPath::new(text).ok());
    let own = host.facts.protected().iter().cloned().chain(path(&host.packages));
    let places = SensitivePlaces::new(host.home.as_deref().and_then(path), own);
    places.following(|place| path(&PathBuf::from(place.to_string()).canonicalize().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        dir: tempfile::TempDir,
        host: StoreHost,
    }

    fn world() -> World {
        let dir = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        let root = dir.path().canonicalize().unwrap();
        for made in ["home/.ssh", "home/notes", "project/data"] {
            std::fs::create_dir_all(root.join(made)).unwrap();
        }
        World { host: StoreHost::for_tests(&root), dir }
    }

    fn bound(
        world: &World,
        variable: &str,
        words: &[&str],
        set: &[(&str, &str)],
    ) -> Result<String, ValueError> {
        let text = format!(
            "name = 'm'\nversion = '1'\nserver_capabilities = ['fs:read:$V']\n[variables]\nV = {{ {variable} }}\n"
        );
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        let set: Vec<(String, String)> =
            set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let manifest = with_host_values(Manifest::parse(&text).unwrap(), &words, &set, &world.host)?;
        let root = world.dir.path().canonicalize().unwrap().display().to_string();
        let lines: Vec<String> =
            manifest.lines().map(|line| line.value.to_string().replace(&root, "")).collect();
        Ok(lines.join(" "))
    }

    #[test]
    fn values_are_taken_from_the_callers_directory() {
        let world = world();
        let all = "argument = '0..'";
        assert_eq!(
            bound(&world, all, &["data", "~/notes"], &[]).unwrap(),
            "fs:read:/project/data fs:read:/home/notes"
        );
        assert_eq!(bound(&world, all, &["./data/../new"], &[]).unwrap(), "fs:read:/project/new");
        let file = "flag = '--db', parent = true, default = './a.db'";
        assert_eq!(bound(&world, file, &["--db", "data/a.db"], &[]).unwrap(), "fs:read:/project/data");
        assert_eq!(bound(&world, file, &[], &[]).unwrap(), "fs:read:/project");
        assert!(matches!(bound(&world, all, &[], &[]), Err(ValueError::Unbound(_))));
        assert_eq!(bound(&world, all, &[], &[("V", "/etc")]).unwrap(), "fs:read:/etc");
    }

    #[test]
    fn sensitive_places_are_not_granted_by_an_argument() {
        let world = world();
        let root = world.dir.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(root.join("home/.ssh"), root.join("project/keys")).unwrap();
        std::os::unix::fs::symlink(root.join("home"), root.join("project/all")).unwrap();
        let home = root.join("home").display().to_string();
        for word in
            ["~", "~/.ssh", "~/.ssh/new", "/", "..", "keys", "keys/x", "all", "all/../home", "/etc", &home]
        {
            let refused = bound(&world, "argument = '0..'", &[word], &[]);
            assert!(matches!(refused, Err(ValueError::Sensitive { .. })), "{word}: {refused:?}");
        }
        let parent = bound(&world, "flag = '--f', parent = true", &["--f", "~/graph.json"], &[]);
        assert!(matches!(parent, Err(ValueError::Sensitive { .. })), "{parent:?}");
        assert!(bound(&world, "argument = '0'", &["~/.ssh"], &[("V", &home)]).is_ok(), "a person said it");
    }
}
