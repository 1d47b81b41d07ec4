//! Reading pages of the web in a process of their own that may touch nothing: `bailiwick-page`, beside this program.
//!
//! Pages are hostile, and a parser of HTML is large. It is neither in the process that holds the authority nor in the
//! one that starts every sandbox.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bailiwick_confine::{Command, Exit, Options, Prepared, Stdio};
use bailiwick_guard::tools::Page;
use bailiwick_policy::authority::Authority;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::Plan;

use crate::facts;

/// How long a page may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The most that is heard of one.
const MOST: u64 = 64 << 20;

/// The program that reads pages, if it is beside this one.
pub(super) fn program() -> Option<PathBuf> {
    let program = facts::own_program()?.with_file_name("bailiwick-page");
    program.is_file().then_some(program)
}

/// Reads a page that was found at an address.
pub(super) fn read(program: &Path, html: &str, url: &str) -> Result<Page, String> {
    let said = run(program, html, url).map_err(|fault| format!("{fault:#}"))?;
    serde_json::from_slice(&said).map_err(|_| "its reader failed".to_owned())
}

fn run(program: &Path, html: &str, url: &str) -> anyhow::Result<Vec<u8>> {
    let plan = Plan::of("bailiwick-page", &Authority::bottom(), &HostFacts::unknown())?;
    let (stdin, mut input) = std::io::pipe()?;
    let (output, stdout) = std::io::pipe()?;
    let stderr = OwnedFd::from(std::fs::File::options().write(true).open("/dev/null")?);
    let stdio = Stdio::Descriptors { stdin: stdin.into(), stdout: stdout.into(), stderr };
    let command = Command { args: vec![url.into()], stdio, ..Command::new(program) };
    let mut confined = Prepared::new(&plan, command, Options::default())?.spawn()?;
    std::thread::scope(|scope| {
        // One that ends before it has heard all is judged by what it said.
        scope.spawn(move || drop(input.write_all(html.as_bytes())));
        let heard = scope.spawn(move || {
            let mut said = Vec::new();
            output.take(MOST).read_to_end(&mut said).map(|_| said)
        });
        let exit = confined.wait_until(Instant::now() + PATIENCE);
        confined.kill();
        match exit? {
            Some(Exit::Code(0)) => {}
            Some(_) => anyhow::bail!("its reader failed"),
            None => anyhow::bail!("it takes more than {} seconds", PATIENCE.as_secs()),
        }
        let said = heard.join().map_err(|_| anyhow::anyhow!("its reader was not heard"))?;
        Ok(said?)
    })
}
