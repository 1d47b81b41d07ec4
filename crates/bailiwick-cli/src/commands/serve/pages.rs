//! Reading pages of the web in a process of their own that may touch nothing: `bailiwick-page`, beside this program.
//!
//! Pages are hostile, and a parser of HTML is large. It is neither in the process that holds the authority nor in the
//! one that starts every sandbox.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bailiwick_guard::CancelFlag;
use bailiwick_guard::tools::Page;
use bailiwick_launch::{Command, Exit, Fault, HostPlanner, Launch, Launched, Recorder, Stdio};
use bailiwick_policy::authority::Authority;
use bailiwick_policy::manifest::Limits;

use crate::companion;

/// How long a page may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often is looked whether the call was cancelled.
const GLANCE: Duration = Duration::from_millis(100);
/// What its reader may have in memory: several times what the largest page that can be fetched needs.
const MOST_MEMORY: u64 = 1 << 30;
/// The most that is heard of one.
const MOST: u64 = 32 << 20;

/// The program that reads pages, if it is beside this one.
pub(super) fn program() -> Option<PathBuf> {
    companion::find(companion::PAGE)
}

/// Reads a page that was found at an address; that its reader was started is recorded.
pub(super) fn read(
    program: &Path,
    recorder: Recorder,
    (html, url): (&str, &str),
    flag: &CancelFlag,
) -> Result<Page, String> {
    let said = run(program, recorder, (html, url), flag).map_err(|fault| format!("{fault:#}"))?;
    serde_json::from_slice(&said).map_err(|_| "its reader failed".to_owned())
}

fn run(
    program: &Path,
    recorder: Recorder,
    (html, url): (&str, &str),
    flag: &CancelFlag,
) -> anyhow::Result<Vec<u8>> {
    let plan = HostPlanner::default().authority_plan("bailiwick-page", &Authority::bottom())?;
    let plan = plan.with_limits(Limits { memory: Some(MOST_MEMORY), ..Limits::default() });
    let (stdin, mut input) = std::io::pipe()?;
    let (output, stdout) = std::io::pipe()?;
    let stderr = OwnedFd::from(std::fs::File::options().write(true).open("/dev/null")?);
    let stdio = Stdio::Descriptors { stdin: stdin.into(), stdout: stdout.into(), stderr };
    let command = Command {
        args: vec![url.into(), companion::FOR.into(), companion::VERSION.into()],
        stdio,
        ..Command::new(program)
    };
    let mut launched = Launch::new(&plan, command, recorder).prepare()?.start()?;
    std::thread::scope(|scope| {
        // One that ends before it has heard all is judged by what it said.
        scope.spawn(move || drop(input.write_all(html.as_bytes())));
        let heard = scope.spawn(move || {
            let mut said = Vec::new();
            output.take(MOST).read_to_end(&mut said).map(|_| said)
        });
        let exit = ended(&mut launched, flag);
        launched.kill();
        let exit = exit?;
        launched.finish(&exit.map_or_else(|| "it was ended".to_owned(), |exit| exit.to_string()))?;
        match exit {
            Some(Exit::Code(0)) => {}
            Some(_) => anyhow::bail!("its reader failed"),
            None if flag.is_set() => anyhow::bail!("the call was cancelled"),
            None => anyhow::bail!("it takes more than {} seconds", PATIENCE.as_secs()),
        }
        let said = heard.join().map_err(|_| anyhow::anyhow!("its reader was not heard"))?;
        Ok(said?)
    })
}

/// How the reader ended; nothing if its time is over or nothing waits for it any more.
fn ended(launched: &mut Launched, flag: &CancelFlag) -> Result<Option<Exit>, Fault> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let now = Instant::now();
        let exit = launched.wait_until(deadline.min(now + GLANCE))?;
        if exit.is_some() || flag.is_set() || now >= deadline {
            return Ok(exit);
        }
    }
}
