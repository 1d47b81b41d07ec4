//! The real tool behind a version manager's shim, found in the manager's own files. A shim is never started to find it.
//!
//! Known are rustup's proxies and the shims of pyenv, rbenv, nodenv and goenv. nvm has none: it changes `PATH`.
//!
//! Residual: what a manager's plugins would decide is not known here; the shim itself is then what is started.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What version managers go by.
#[derive(Debug, Clone, Default)]
pub struct ToolChoice {
    /// The caller's home.
    pub home: Option<PathBuf>,
    /// Where the command starts.
    pub cwd: Option<PathBuf>,
    /// The caller's variables that choose a version.
    pub variables: BTreeMap<OsString, OsString>,
}

/// The caller's variables by which version managers choose: see `Search` of `bailiwick-confine`.
pub const CHOOSING_VARIABLES: [&str; 6] =
    ["RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "PYENV_VERSION", "RBENV_VERSION", "NODENV_VERSION", "GOENV_VERSION"];

/// What is known of a path that may be a shim.
#[derive(Debug, PartialEq, Eq)]
pub enum Behind {
    /// It is none.
    Itself,
    /// The tool that it stands for.
    Tool(PathBuf),
    /// It stands for what lies elsewhere on the search path, or for nothing.
    Elsewhere,
}

/// Managers with a directory `shims` beside a directory `versions`: name, variable, and the file that a project has.
const FAMILY: [(&str, &str, &str); 4] = [
    ("pyenv", "PYENV_VERSION", ".python-version"),
    ("rbenv", "RBENV_VERSION", ".ruby-version"),
    ("nodenv", "NODENV_VERSION", ".node-version"),
    ("goenv", "GOENV_VERSION", ".go-version"),
];

/// What a program's path stands for.
pub fn behind(path: &Path, choice: &ToolChoice) -> Behind {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return Behind::Itself };
    if let Some(manager) = directory.parent().filter(|_| directory.file_name() == Some(OsStr::new("shims"))) {
        return of_family(manager, name, choice);
    }
    if name != "rustup" && is_same_file(path, &directory.join("rustup")) {
        return choice.rust_toolchain().map_or(Behind::Itself, |toolchain| tool(toolchain.join("bin"), name));
    }
    Behind::Itself
}

fn tool(directory: PathBuf, name: &OsStr) -> Behind {
    let path = directory.join(name);
    if path.is_file() { Behind::Tool(path) } else { Behind::Elsewhere }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    identity(other).is_some_and(|known| identity(one) == Some(known))
}

fn of_family(manager: &Path, name: &OsStr, choice: &ToolChoice) -> Behind {
    let versions = manager.join("versions");
    let known = FAMILY.iter().find(|(own, _, _)| manager.join("bin").join(own).exists());
    let Some((_, variable, file)) = known.filter(|_| versions.is_dir()) else { return Behind::Itself };
    let chosen = choice
        .variable(variable)
        .or_else(|| choice.file_above(&[file]))
        .or_else(|| std::fs::read_to_string(manager.join("version")).ok())
        .unwrap_or_default();
    let wanted = chosen.split([':', '\n', ' ']).map(str::trim).filter(|version| !version.is_empty());
    let directories = wanted.filter_map(|version| named_or_newest(&versions, version, '.'));
    directories
        .map(|directory| directory.join("bin").join(name))
        .find(|path| path.is_file())
        .map_or(Behind::Elsewhere, Behind::Tool)
}

/// The directory of that name, or the last one whose name goes on after it.
fn named_or_newest(versions: &Path, name: &str, joint: char) -> Option<PathBuf> {
    if name.contains('/') || name.starts_with('.') {
        return None;
    }
    let exact = versions.join(name);
    if exact.is_dir() {
        return Some(exact);
    }
    let start = format!("{name}{joint}");
    let names =
        std::fs::read_dir(versions).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let numbers = |name: &str| -> Vec<u64> { name.split('.').filter_map(|part| part.parse().ok()).collect() };
    let newest =
        names.filter(|name| name.starts_with(&start)).max_by_key(|name| (numbers(name), name.clone()));
    newest.map(|name| versions.join(name))
}

impl ToolChoice {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(OsStr::new(name))?.to_str().map(str::to_owned).filter(|value| !value.is_empty())
    }

    /// The first of these files in the working directory or above it.
    fn file_above(&self, names: &[&str]) -> Option<String> {
        let directories = self.cwd.as_deref()?.ancestors();
        directories
            .flat_map(|directory| names.iter().map(move |name| directory.join(name)))
            .find_map(|path| std::fs::read_to_string(path).ok())
    }

    /// The directory of the toolchain that rustup would choose.
    fn rust_toolchain(&self) -> Option<PathBuf> {
        let of_home = || Some(self.home.as_ref()?.join(".rustup"));
        let own = self.variables.get(OsStr::new("RUSTUP_HOME")).map(PathBuf::from).or_else(of_home)?;
        let settings = std::fs::read_to_string(own.join("settings.toml")).unwrap_or_default();
        let name = self
            .variable("RUSTUP_TOOLCHAIN")
            .or_else(|| self.overridden(&settings))
            .or_else(|| self.file_above(&["rust-toolchain", "rust-toolchain.toml"]).and_then(channel))
            .or_else(|| setting(&settings, "default_toolchain"))?;
        named_or_newest(&own.join("toolchains"), &name, '-')
    }

    /// The toolchain that rustup's settings have for the working directory or one above it.
    fn overridden(&self, settings: &str) -> Option<String> {
        let directories = self.cwd.as_deref()?.ancestors();
        let mut names = directories.filter_map(|directory| Some(format!("\"{}\"", directory.to_str()?)));
        let (_, overrides) = settings.split_once("[overrides]")?;
        names.find_map(|name| setting(overrides, &name))
    }
}

/// The channel in a toolchain file, old or new.
fn channel(text: String) -> Option<String> {
    setting(&text, "channel").or_else(|| {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        (!line.contains(['[', '='])).then(|| line.to_owned())
    })
}

/// The text that a line `name = "text"` gives.
fn setting(text: &str, name: &str) -> Option<String> {
    let value = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        (key.trim() == name && !value.is_empty()).then(|| value.to_owned())
    };
    text.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let own = tempfile::tempdir().unwrap();
        let path = own.path().canonicalize().unwrap();
        for file in files {
            let (name, text) = file.split_once('=').unwrap_or((file, ""));
            let at = path.join(name);
            std::fs::create_dir_all(at.parent().unwrap()).unwrap();
            std::fs::write(at, text).unwrap();
        }
        (own, path)
    }

    fn choice(home: &Path, variables: &[(&str, &str)]) -> ToolChoice {
        ToolChoice {
            home: Some(home.to_owned()),
            cwd: Some(home.join("w/sub")),
            variables: variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        }
    }

    #[test]
    fn a_shim_of_pyenv_is_the_chosen_version() {
        let files = [
            "p/bin/pyenv",
            "p/shims/python",
            "p/shims/only-new",
            "p/version=3.9.1\n",
            "p/versions/3.9.1/bin/python",
            "p/versions/3.11.7/bin/python",
            "p/versions/3.11.10/bin/python",
            "p/versions/3.11.10/bin/only-new",
            "w/x",
        ];
        let (_own, path) = tree(&files);
        let shim = path.join("p/shims/python");
        let version = |version: &str| Behind::Tool(path.join("p/versions").join(version).join("bin/python"));
        assert_eq!(behind(&shim, &choice(&path, &[])), version("3.9.1"));
        assert_eq!(behind(&shim, &choice(&path, &[("PYENV_VERSION", "3.11")])), version("3.11.10"));
        assert_eq!(behind(&shim, &choice(&path, &[("PYENV_VERSION", "system")])), Behind::Elsewhere);
        assert_eq!(behind(&path.join("p/shims/only-new"), &choice(&path, &[])), Behind::Elsewhere);
        std::fs::write(path.join("w/.python-version"), "3.11.7\n").unwrap();
        assert_eq!(behind(&shim, &choice(&path, &[])), version("3.11.7"));
    }

    #[test]
    fn a_proxy_of_rustup_is_the_chosen_toolchain() {
        let settings = "r/settings.toml=default_toolchain = \"stable-x\"\n[overrides]\n";
        let files = [
            "bin/rustup",
            settings,
            "r/toolchains/stable-x/bin/cargo",
            "r/toolchains/1.80.0-x/bin/cargo",
            "w/x",
        ];
        let (_own, path) = tree(&files);
        std::os::unix::fs::symlink("rustup", path.join("bin/cargo")).unwrap();
        let (proxy, home) = (path.join("bin/cargo"), path.join("r").display().to_string());
        let toolchain = |name: &str| Behind::Tool(path.join("r/toolchains").join(name).join("bin/cargo"));
        let asked = |more: &[(&str, &str)]| {
            let variables: Vec<_> =
                [("RUSTUP_HOME", &*home)].into_iter().chain(more.iter().copied()).collect();
            behind(&proxy, &choice(&path, &variables))
        };
        assert_eq!(asked(&[]), toolchain("stable-x"));
        assert_eq!(asked(&[("RUSTUP_TOOLCHAIN", "1.80.0")]), toolchain("1.80.0-x"));
        std::fs::write(path.join("w/rust-toolchain.toml"), "[toolchain]\nchannel = \"1.80.0\"\n").unwrap();
        assert_eq!(asked(&[]), toolchain("1.80.0-x"));
        assert_eq!(behind(&path.join("bin/rustup"), &choice(&path, &[])), Behind::Itself);
    }
}
