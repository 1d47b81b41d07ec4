//! Where a library meets its host: the one place here that looks at the environment.

use std::path::{Path, PathBuf};

use bailiwick_guard::{BuildError, Registry, RegistryBuilder, Session, tools};
use bailiwick_journal::{Cause, Journal, JournalFault, Options, OwnDirs, new_session};

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
    /// The registry cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl EdgeFault {
    /// Why nothing can be recorded, and so nothing may run.
    fn into_refusal(self) -> JournalFault {
        match self {
            Self::Journal(fault) => fault,
            Self::NoState | Self::NoDirectory(_) | Self::Build(_) => JournalFault::Io {
                step: "open",
                path: PathBuf::from("bailiwick/journal"),
                cause: Cause::Words(self.to_string()),
            },
        }
    }
}

/// A registry with the tools that come with the library, working in the current directory, its journal under
/// `$XDG_STATE_HOME/bailiwick/journal`. Where there is nowhere to keep the journal, every call is refused and the denial
/// says why: nothing runs unrecorded. [`builder`] says it at once, and takes tools and rules of your own.
#[must_use]
pub fn registry() -> Registry {
    let built = builder().and_then(|builder| Ok(builder.build()?));
    built.unwrap_or_else(|fault| Registry::refusing(fault.into_refusal()))
}

/// The same, to add tools and rules to before it is built.
///
/// # Errors
/// If there is nowhere to keep the journal.
#[expect(clippy::disallowed_methods, reason = "this is the edge: facts are gathered here, once")]
pub fn builder() -> Result<RegistryBuilder, EdgeFault> {
    let own = OwnDirs::new(|name| std::env::var_os(name));
    let state = own.state.ok_or(EdgeFault::NoState)?;
    let cwd = std::env::current_dir().map_err(EdgeFault::NoDirectory)?;
    let mut session = Session::new(cwd).with_env(
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
    );
    session = session.with_own(own.config);
    if let Some(home) = own.home {
        session = session.with_home(home);
    }
    builder_in(&state, session)
}

/// The same, with the journal in `state/journal` and surroundings of your own.
///
/// # Errors
/// If the journal cannot be kept there.
pub fn builder_in(state: &Path, session: Session) -> Result<RegistryBuilder, EdgeFault> {
    let journal = Journal::open(&state.join("journal"), new_session()?, Options::default())?;
    let builder = tools::local(Registry::builder(journal, session.with_own([state.to_owned()])));
    #[cfg(feature = "fetch")]
    let builder = builder.tool(web_fetch());
    Ok(builder)
}

/// `web_fetch` with pages read by the confined reader: `bailiwick-page` beside the program that runs now, or in a directory of
/// `PATH`. Without one they are read in this process, and each result says so (`"reader": "in-process"`).
#[cfg(feature = "fetch")]
fn web_fetch() -> tools::WebFetch {
    let beside = std::env::current_exe().ok().and_then(|own| own.parent().map(Path::to_owned));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = beside.into_iter().chain(std::env::split_paths(&path));
    tools::ConfinedReader::find_in(directories)
        .map_or_else(tools::WebFetch::new, tools::WebFetch::reading_confined)
}
