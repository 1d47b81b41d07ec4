//! Who reads a page: `bailiwick-page`, a program in a sandbox without any grant, or this process.
//!
//! Pages are hostile and a parser of HTML is large, so it should not run in the process that holds the authority.
//!
//! Fails closed when: the program fails, answers with something else than a page, or takes longer than 20 seconds: then
//! the page is not read, by no other reader either.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bailiwick_launch::{
    Command, Exit, Fault, HostPlanner, Launch, LaunchError, Launched, PlanError, RecordError, Recorder, Stdio,
};
use bailiwick_page::{Page, PageKind};
use bailiwick_policy::authority::Authority;
use bailiwick_policy::limits::Limits;

use crate::offload::CancelFlag;

/// The program that reads pages.
const PROGRAM: &str = "bailiwick-page";
/// What comes before the version of the program that starts it.
const FOR: &str = "--for";
/// How long a page may take.
const MAX_TIME: Duration = Duration::from_secs(20);
/// How often is looked whether the call was cancelled.
const POLL: Duration = Duration::from_millis(100);
/// What its reader may have in memory: several times what the largest page that can be fetched needs.
const MAX_MEMORY: u64 = 1 << 30;
/// The longest answer of a reader.
const MAX_ANSWER: u64 = 32 << 20;

/// A page that was fetched and is to be read.
pub(super) struct FetchedPage {
    /// Its source.
    pub(super) html: String,
    /// Where it was found.
    pub(super) url: String,
    /// Where the start of a program that reads it is recorded.
    pub(super) recorder: Recorder,
    /// Set when the call has ended: reading should end soon then.
    pub(super) cancelled: CancelFlag,
}

/// A page, and who read it.
#[derive(Debug)]
pub(super) struct ReadPage {
    /// What was read.
    pub(super) page: Page,
    /// Who read it.
    pub(super) reader: PageReader,
}

/// Who read a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageReader {
    /// A program that may touch nothing.
    Confined,
    /// The process that called the tool: a flaw in the parser would be a flaw of that process.
    InProcess,
    /// Nothing: the source was not parsed.
    None,
}

impl PageReader {
    /// Its name, as results have it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Confined => "confined",
            Self::InProcess => "in-process",
            Self::None => "none",
        }
    }
}

/// Why a page was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    /// The reader ended with an error, or with an answer that is no page.
    #[error("its reader failed")]
    Failed,
    /// Reading took too long.
    #[error("it takes more than {} seconds", MAX_TIME.as_secs())]
    TooSlow,
    /// The call ended before the page was read.
    #[error("the call was cancelled")]
    Cancelled,
    /// The sandbox of the reader cannot be planned on this host.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The reader cannot be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The system failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The sandbox failed.
    #[error(transparent)]
    Sandbox(#[from] Fault),
    /// The end of the reader could not be recorded.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// What reads a page.
type Read = dyn Fn(FetchedPage) -> Result<ReadPage, PageError> + Send + Sync;

/// What a `web_fetch` reads pages with.
#[derive(Clone)]
pub(super) struct Reader(Arc<Read>);

impl Reader {
    pub(super) fn new(
        read: impl Fn(FetchedPage) -> Result<ReadPage, PageError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(read))
    }

    pub(super) fn read(&self, page: FetchedPage) -> Result<ReadPage, PageError> {
        (self.0)(page)
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reader")
    }
}

/// Reads a page in this process.
pub(super) fn read_in_process(page: FetchedPage) -> Result<ReadPage, PageError> {
    let page = bailiwick_page::read(page.html, &page.url).map_err(|_| PageError::Failed)?;
    Ok(ReadPage { page, reader: PageReader::InProcess })
}

/// The source of a page, not parsed: for a process that must not hold a parser and has no program for it.
pub(super) fn source_of_page(page: FetchedPage) -> ReadPage {
    ReadPage { page: Page::plain(PageKind::Source, page.html), reader: PageReader::None }
}

/// `bailiwick-page`: reads pages in a sandbox without any grant. It serves the version of Bailiwick that it was built with,
/// and fails when another one starts it.
#[derive(Debug, Clone)]
pub struct ConfinedReader {
    program: PathBuf,
}

impl ConfinedReader {
    /// The program at this path.
    #[must_use]
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }

    /// The program in the first of these directories that has it.
    pub fn find_in(directories: impl IntoIterator<Item = PathBuf>) -> Option<Self> {
        let mut programs = directories.into_iter().map(|directory| directory.join(PROGRAM));
        programs.find(|program| program.is_absolute() && program.is_file()).map(Self::at)
    }

    /// Reads a page. That the program was started is recorded first.
    pub(super) fn read(&self, page: &FetchedPage) -> Result<ReadPage, PageError> {
        let answer = self.answer(page)?;
        let page = serde_json::from_slice(&answer).map_err(|_| PageError::Failed)?;
        Ok(ReadPage { page, reader: PageReader::Confined })
    }

    fn answer(&self, page: &FetchedPage) -> Result<Vec<u8>, PageError> {
        let plan = HostPlanner::default().authority_plan(PROGRAM, &Authority::bottom())?;
        let plan = plan.with_limits(Limits { memory: Some(MAX_MEMORY), ..Limits::default() });
        let (stdin, mut input) = std::io::pipe()?;
        let (output, stdout) = std::io::pipe()?;
        let stderr = OwnedFd::from(std::fs::File::options().write(true).open("/dev/null")?);
        let stdio = Stdio::Descriptors { stdin: stdin.into(), stdout: stdout.into(), stderr };
        let args = vec![(&*page.url).into(), FOR.into(), env!("CARGO_PKG_VERSION").into()];
        let command = Command { args, stdio, ..Command::new(&self.program) };
        let mut launched = Launch::new(&plan, command, page.recorder.clone())
            .prepare()
            .map_err(LaunchError::from)?
            .start()?;
        std::thread::scope(|scope| {
            // A reader that ends before it has read everything is judged by its answer.
            scope.spawn(move || drop(input.write_all(page.html.as_bytes())));
            let answer = scope.spawn(move || {
                let mut answer = Vec::new();
                output.take(MAX_ANSWER).read_to_end(&mut answer).map(|_| answer)
            });
            let exit = ended(&mut launched, &page.cancelled);
            launched.kill();
            let exit = exit?;
            launched.finish(&exit.map_or_else(|| "it was ended".to_owned(), |exit| exit.to_string()))?;
            match exit {
                Some(Exit::Code(0)) => Ok(answer.join().map_err(|_| PageError::Failed)??),
                Some(_) => Err(PageError::Failed),
                None if page.cancelled.is_set() => Err(PageError::Cancelled),
                None => Err(PageError::TooSlow),
            }
        })
    }
}

/// How the reader ended; nothing if its time is over or the call was cancelled.
fn ended(launched: &mut Launched, cancelled: &CancelFlag) -> Result<Option<Exit>, Fault> {
    let deadline = Instant::now() + MAX_TIME;
    loop {
        let now = Instant::now();
        let exit = launched.wait_until(deadline.min(now + POLL))?;
        if exit.is_some() || cancelled.is_set() || now >= deadline {
            return Ok(exit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reader_is_found_in_the_first_directory_that_has_it() {
        let (empty, full) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let program = full.path().join(PROGRAM);
        std::fs::write(&program, "").unwrap();
        let directories = [PathBuf::from("relative"), empty.path().to_owned(), full.path().to_owned()];
        assert_eq!(ConfinedReader::find_in(directories).unwrap().program, program);
        assert!(ConfinedReader::find_in([empty.path().to_owned()]).is_none());
    }
}
