//! Where Bailiwick keeps what is its own, by the XDG base directories. The one reader: the command and the library
//! agree. The environment is passed in.
//!
//! A relative base directory counts for nothing, as the specification says.

use std::ffi::OsString;
use std::path::PathBuf;

/// Bailiwick's directories for one user. Each is `None` if the environment does not say where it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnDirs {
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Keys, journal, trust, approvals and sessions.
    pub state: Option<PathBuf>,
    /// Settings.
    pub config: Option<PathBuf>,
    /// What can be gathered again.
    pub cache: Option<PathBuf>,
}

impl OwnDirs {
    /// The directories that an environment names.
    pub fn new(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("HOME").or_else(|| absolute("USERPROFILE"));
        let own = |name: &str, below_home: &str| {
            let base = absolute(name).or_else(|| home.as_ref().map(|home| home.join(below_home)));
            base.map(|base| base.join("bailiwick"))
        };
        let state = own("XDG_STATE_HOME", ".local/state");
        let (config, cache) = (own("XDG_CONFIG_HOME", ".config"), own("XDG_CACHE_HOME", ".cache"));
        Self { home, state, config, cache }
    }

    /// Where the journal is.
    #[must_use]
    pub fn journal(&self) -> Option<PathBuf> {
        self.state.as_ref().map(|state| state.join("journal"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirs(variables: &[(&str, &str)]) -> OwnDirs {
        OwnDirs::new(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn base_directories_come_before_the_home() {
        let found = dirs(&[("HOME", "/h"), ("XDG_STATE_HOME", "/s")]);
        assert_eq!(found.journal(), Some(PathBuf::from("/s/bailiwick/journal")));
        assert_eq!(found.config, Some(PathBuf::from("/h/.config/bailiwick")));
        assert_eq!(found.cache, Some(PathBuf::from("/h/.cache/bailiwick")));
    }

    #[test]
    fn what_is_relative_or_missing_counts_for_nothing() {
        assert_eq!(dirs(&[]), OwnDirs::default());
        let found = dirs(&[("HOME", "h"), ("XDG_CONFIG_HOME", "c"), ("XDG_STATE_HOME", "/s")]);
        assert_eq!((found.home, found.config), (None, None));
        assert_eq!(found.state, Some(PathBuf::from("/s/bailiwick")));
    }
}
