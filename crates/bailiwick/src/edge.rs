//! Where a library meets its host: the one place here that looks at the environment.

use std::path::{Path, PathBuf};

use bailiwick_guard::{Registry, RegistryBuilder, Session, tools};
use bailiwick_journal::{Journal, JournalFault, Options, new_session};

/// Why there is no registry.
#[derive(Debug, thiserror::Error)]
pub enum EdgeFault {
    /// Nowhere to keep the journal.
    #[error("neither XDG_STATE_HOME nor HOME is an absolute path: there is nowhere to keep the journal")]
    NoState,
    /// No directory to work in.
    #[error("the working directory is gone: {0}")]
    NoDirectory(std::io::Error),
    /// The journal cannot be kept, and nothing runs unrecorded.
    #[error(transparent)]
    Journal(#[from] JournalFault),
}

/// A registry with the tools that come with the library, working in the current directory, its journal under
/// `$XDG_STATE_HOME/bailiwick/journal`. Add tools and rules, then build it.
///
/// # Errors
/// If there is nowhere to keep the journal.
#[expect(clippy::disallowed_methods, reason = "this is the edge: facts are gathered here, once")]
pub fn registry() -> Result<RegistryBuilder, EdgeFault> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = absolute("HOME");
    let state = absolute("XDG_STATE_HOME").or_else(|| home.as_ref().map(|home| home.join(".local/state")));
    let state = state.ok_or(EdgeFault::NoState)?.join("bailiwick");
    let cwd = std::env::current_dir().map_err(EdgeFault::NoDirectory)?;
    let mut session = Session::new(cwd).with_env(
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
    );
    let config = absolute("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
    session = session.with_own(config.map(|config| config.join("bailiwick")));
    if let Some(home) = home {
        session = session.with_home(home);
    }
    registry_in(&state, session)
}

/// The same, with the journal in `state/journal` and surroundings of your own.
///
/// # Errors
/// If the journal cannot be kept there.
pub fn registry_in(state: &Path, session: Session) -> Result<RegistryBuilder, EdgeFault> {
    let journal = Journal::open(&state.join("journal"), new_session()?, Options::default())?;
    Ok(tools::all(Registry::builder(journal, session.with_own([state.to_owned()]))))
}
