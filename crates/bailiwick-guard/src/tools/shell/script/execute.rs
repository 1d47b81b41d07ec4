//! Running an admitted script: one pipeline after the other, each program in a sandbox of its own.
//!
//! Every program and file is asked for again when its turn comes: a script can change what a path leads to, and a
//! grant can be revoked meanwhile. What is denied then ends the script.
//!
//! No program holds a file that is redirected: its bytes are carried by us, through a pipe. A descriptor of the host's
//! own mount would be a file that can be mapped as code, which every mount inside the sandbox refuses.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;

use bailiwick_launch::{Command, Exit, Status, Stdio};
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::path::AbsPath;

use super::super::plan::Held;
use super::super::run::{self, ProgramOutcome, Stage, Witness};
use super::super::streams;
use super::act::{Act, Failure, Here, RedirectTarget, Start, State, Surroundings};
use super::glob::{Expansion, NotExpanded};
use super::reach::{self, Use};
use super::{Joint, Output, Pipeline, Redirect, Script, Simple};
use crate::gate::ToolContext;
use crate::open::WriteMode;
use crate::tool::{ToolError, ToolFault};

/// A carrier copies and does nothing else.
const CARRIER_STACK: usize = 256 * 1024;

/// A script that runs.
pub(in super::super) struct Execution<'c> {
    pub(in super::super) context: &'c ToolContext,
    pub(in super::super) held: &'c Held,
    pub(in super::super) witness: &'c Witness,
    pub(in super::super) surroundings: &'c Surroundings,
    pub(in super::super) state: State,
    pub(in super::super) stdio: StdioFds,
    pub(in super::super) deadline: Instant,
    /// What was held, of every sandbox so far.
    pub(in super::super) statuses: Vec<Status>,
    /// Variables that programs did not get.
    pub(in super::super) dropped: Vec<String>,
    pub(in super::super) last: Last,
    /// Bytes on their way between files and programs.
    pub(in super::super) carriers: Vec<Carrier>,
}

/// Someone who carries bytes between a file and a pipe until one of them ends.
pub(in super::super) type Carrier = tokio::sync::oneshot::Receiver<std::io::Result<u64>>;

/// Descriptors 0 to 2.
pub(in super::super) struct StdioFds {
    pub(in super::super) stdin: OwnedFd,
    pub(in super::super) stdout: OwnedFd,
    pub(in super::super) stderr: OwnedFd,
}

/// How the last pipeline ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) struct Last {
    pub(in super::super) code: i32,
    pub(in super::super) signal: Option<i32>,
}

/// How a script ended.
#[derive(Debug)]
pub(in super::super) enum Ending {
    Ended(Last),
    TimedOut,
    Denied(Denial),
}

/// Why a script goes no further.
enum Stop {
    Ending(Ending),
    Fault(ToolError),
}

impl From<std::io::Error> for Stop {
    fn from(source: std::io::Error) -> Self {
        Self::Fault(ToolFault::Exec { program: "the script".to_owned(), source }.into())
    }
}

impl From<ToolError> for Stop {
    fn from(error: ToolError) -> Self {
        match error {
            // Nothing goes on once the grant is gone.
            ToolError::Denied { denial, .. } if denial.code() != DenialCode::Revoked => {
                Self::Ending(Ending::Denied(*denial))
            }
            ToolError::Denied { .. } | ToolError::Fault(_) => Self::Fault(error),
        }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Fault(match failure {
            Failure::Outside(outside) => outside.into(),
            Failure::Hidden(name) => ToolError::failed(format!("shell: the variable `{name}` has no value")),
            Failure::Stopped(error) => error,
        })
    }
}

/// Why a redirection was not made.
enum Unopened {
    /// The command does not run, and the script goes on.
    Said(String),
    Stop(Stop),
}

impl From<std::io::Error> for Unopened {
    fn from(fault: std::io::Error) -> Self {
        Self::Stop(fault.into())
    }
}

impl From<ToolError> for Unopened {
    fn from(error: ToolError) -> Self {
        if let ToolError::Fault(ToolFault::Failed(why)) = error {
            return Self::Said(why);
        }
        Self::Stop(error.into())
    }
}

impl Last {
    const fn from_code(code: i32) -> Self {
        Self { code, signal: None }
    }

    const fn from_outcome(outcome: &ProgramOutcome) -> Self {
        match outcome {
            ProgramOutcome::Ended(Exit::Code(code)) | ProgramOutcome::Missing(code, _) => {
                Self::from_code(*code)
            }
            ProgramOutcome::Ended(Exit::Signal(signal)) => {
                Self { code: 128 + *signal, signal: Some(*signal) }
            }
        }
    }
}

impl Execution<'_> {
    /// Runs the script to its end.
    pub(in super::super) async fn run(&mut self, script: &Script) -> Result<Ending, ToolError> {
        let ran = self.chains(script).await;
        self.carried().await;
        match ran {
            Ok(()) => Ok(Ending::Ended(self.last)),
            Err(Stop::Ending(ending)) => Ok(ending),
            Err(Stop::Fault(error)) => Err(error),
        }
    }

    async fn chains(&mut self, script: &Script) -> Result<(), Stop> {
        for chain in &script.0 {
            self.pipeline(&chain.first).await?;
            for (joint, pipeline) in &chain.rest {
                if (*joint == Joint::And) == (self.last.code == 0) {
                    self.pipeline(pipeline).await?;
                }
            }
        }
        Ok(())
    }

    async fn pipeline(&mut self, pipeline: &Pipeline) -> Result<(), Stop> {
        let last = match pipeline.commands.as_slice() {
            [only] => self.alone(only).await?,
            several => self.side_by_side(several).await?,
        };
        self.carried().await;
        self.last = if pipeline.negated { Last::from_code(i32::from(last.code == 0)) } else { last };
        Ok(())
    }

    /// Waits until every byte is where it belongs. The programs have ended, so all of it ends.
    async fn carried(&mut self) {
        for carrier in std::mem::take(&mut self.carriers) {
            let Ok(Err(fault)) = carrier.await else { continue };
            // A program that stopped reading is no fault.
            if fault.kind() != std::io::ErrorKind::BrokenPipe
                && let Ok(errors) = self.stdio.stderr.try_clone()
            {
                drop(write_error(errors, format!("a redirected file: {fault}")).await);
            }
        }
    }

    /// One command: a program, or a change of the script's own state.
    async fn alone(&mut self, command: &Simple) -> Result<Last, Stop> {
        let act = self.here().act(command)?;
        if matches!(act, Act::Start(_)) {
            return self.side_by_side(std::slice::from_ref(command)).await;
        }
        let fds = match self.redirected(command, self.stdio.try_clone()?) {
            Ok(fds) => fds,
            Err(unopened) => return unopened_as(unopened).await,
        };
        let StdioFds { stderr: errors, .. } = fds;
        match &act {
            Act::Answer(answer) => return Ok(Last::from_code(i32::from(!answer))),
            Act::Exit(code) => {
                let last = code.map_or(self.last, |code| Last::from_code(code.into()));
                return Err(Stop::Ending(Ending::Ended(last)));
            }
            Act::Go(directory) => {
                let real = reach::check(directory, Use::Read, self.context)?.to_string();
                if !Path::new(&real).is_dir() {
                    write_error(errors, format!("cd: `{}`: no such directory", directory.display())).await?;
                    return Ok(Last::from_code(1));
                }
                self.state.directory = real.into();
            }
            Act::Assign(_) | Act::Export(_) | Act::Nothing | Act::Start(_) => {
                self.dropped.extend(State::dropped(&act));
                self.state.apply(&act, self.surroundings);
            }
        }
        Ok(Last::from_code(0))
    }

    /// The commands of one pipeline, each with the output of the one before as its input.
    async fn side_by_side(&mut self, commands: &[Simple]) -> Result<Last, Stop> {
        let (mut stages, mut ended) = (Vec::new(), None);
        let mut stdin = self.stdio.stdin.try_clone()?;
        for (left, command) in (0..commands.len()).rev().zip(commands) {
            let (next, stdout) = if left == 0 {
                (std::fs::File::open("/dev/null")?.into(), self.stdio.stdout.try_clone()?)
            } else {
                streams::pair()?
            };
            let fds = StdioFds { stdin, stdout, stderr: self.stdio.stderr.try_clone()? };
            match self.stage(command, fds).await? {
                Ok(stage) => {
                    stages.push(stage);
                    ended = None;
                }
                Err(last) => ended = Some(last),
            }
            stdin = next;
        }
        drop(stdin);
        let outcome = if stages.is_empty() { None } else { self.side_by_side_until_end(stages).await? };
        Ok(ended.or(outcome).unwrap_or_default())
    }

    /// Runs programs; answers how the last of them ended.
    async fn side_by_side_until_end(&mut self, stages: Vec<Stage>) -> Result<Option<Last>, Stop> {
        let ended = run::pipeline(stages, self.witness, self.deadline).await?;
        self.statuses.extend(ended.held);
        if ended.timed_out {
            return Err(Stop::Ending(Ending::TimedOut));
        }
        Ok(ended.outcomes.last().map(Last::from_outcome))
    }

    /// A program ready to start; or how a command ended that starts none.
    async fn stage(&mut self, command: &Simple, fds: StdioFds) -> Result<Result<Stage, Last>, Stop> {
        let act = self.here().act(command)?;
        let fds = match self.redirected(command, fds) {
            Ok(fds) => fds,
            Err(unopened) => return unopened_as(unopened).await.map(Err),
        };
        match act {
            Act::Start(start) => self.program(start, fds).await,
            Act::Answer(answer) => Ok(Err(Last::from_code(i32::from(!answer)))),
            Act::Nothing | Act::Assign(_) | Act::Export(_) | Act::Go(_) | Act::Exit(_) => {
                Ok(Err(Last::from_code(0)))
            }
        }
    }

    async fn program(&mut self, start: Start, fds: StdioFds) -> Result<Result<Stage, Last>, Stop> {
        self.context.check_exec(&start.program)?;
        self.dropped.extend(start.dropped);
        let directory = &self.state.directory;
        let mut expansion = Expansion::new(directory, self.context);
        let mut args = Vec::new();
        for field in start.args {
            match expansion.expand(field) {
                Ok(names) => args.extend(names),
                Err(NotExpanded::Stopped(error)) => return Err(error.into()),
                Err(NotExpanded::TooMany) => {
                    let why = format!("{}: its patterns match more than a command can take", start.program);
                    return write_error(fds.stderr, why).await.map(|()| Err(Last::from_code(126)));
                }
            }
        }
        let (plan, env) = self.held.with(start.env);
        let StdioFds { stdin, stdout, stderr } = fds;
        let command = Command {
            args,
            cwd: Some(directory.clone()),
            env,
            stdio: Stdio::Descriptors { stdin, stdout, stderr },
            ..Command::new(start.program)
        };
        Ok(Ok(Stage { plan, command }))
    }

    const fn here(&self) -> Here<'_> {
        Here::new(&self.state, self.surroundings)
    }

    /// The descriptors of a command, its redirections made from left to right. On failure, where to say so.
    fn redirected(&mut self, command: &Simple, mut fds: StdioFds) -> Result<StdioFds, (Unopened, OwnedFd)> {
        for redirect in &command.redirects {
            if let Err(unopened) = self.redirect(redirect, &mut fds) {
                return Err((unopened, fds.stderr));
            }
        }
        Ok(fds)
    }

    fn redirect(&mut self, redirect: &Redirect, fds: &mut StdioFds) -> Result<(), Unopened> {
        let failed = |failure: Failure| Unopened::Stop(failure.into());
        match redirect {
            Redirect::Read(word) => {
                fds.stdin = match self.here().redirect_target(word).map_err(failed)? {
                    RedirectTarget::Null => File::open("/dev/null")?.into(),
                    RedirectTarget::Output(_) => {
                        return Err(Unopened::Said("an output cannot be read".to_owned()));
                    }
                    RedirectTarget::File(path) => {
                        let file = self.open_read(&path)?;
                        let (input, output) = streams::pair()?;
                        self.carry(file, output.into())?;
                        input
                    }
                };
            }
            Redirect::Write { from, to, append } => {
                let target = self.here().redirect_target(to).map_err(failed)?;
                *fds.output(*from) = self.output(&target, *append, fds)?;
            }
            Redirect::WriteBoth { to, append } => {
                let target = self.here().redirect_target(to).map_err(failed)?;
                let opened = self.output(&target, *append, fds)?;
                fds.stderr = opened.try_clone()?;
                fds.stdout = opened;
            }
            Redirect::Same { from, to } => {
                let same = fds.output(*to).try_clone()?;
                *fds.output(*from) = same;
            }
            Redirect::Text(word, end) => {
                fds.stdin = document(&(word.text(&self.here()).map_err(failed)? + end))?;
            }
        }
        Ok(())
    }

    /// Where a command's output goes.
    fn output(
        &mut self,
        target: &RedirectTarget,
        append: bool,
        fds: &mut StdioFds,
    ) -> Result<OwnedFd, Unopened> {
        match target {
            RedirectTarget::Null => Ok(File::options().write(true).open("/dev/null")?.into()),
            RedirectTarget::Output(output) => Ok(fds.output(*output).try_clone()?),
            RedirectTarget::File(path) => {
                let file = self.open_write(path, append)?;
                let (input, output) = streams::pair()?;
                self.carry(input.into(), file)?;
                Ok(output)
            }
        }
    }

    /// By a thread of its own: one of the runtime's would wait for the program, and many of them for ever.
    fn carry(&mut self, mut from: File, mut to: File) -> std::io::Result<()> {
        let (done, carrier) = tokio::sync::oneshot::channel();
        let carry = move || drop(done.send(std::io::copy(&mut from, &mut to)));
        std::thread::Builder::new().name("carrier".to_owned()).stack_size(CARRIER_STACK).spawn(carry)?;
        self.carriers.push(carrier);
        Ok(())
    }

    fn open_read(&self, path: &Path) -> Result<File, Unopened> {
        let real = reach::check(path, Use::Read, self.context)?;
        let file = self.context.open_read(&real.to_string())?;
        if file.metadata()?.is_dir() {
            return Err(Unopened::Said(format!("`{}` is a directory", path.display())));
        }
        self.still_open(&file, Use::Read)?;
        Ok(file)
    }

    fn open_write(&self, path: &Path, append: bool) -> Result<File, Unopened> {
        let real = reach::check(path, Use::Change, self.context)?;
        // Emptied only once it is known to be the file that was meant.
        let file = self.context.open_write(&real.to_string(), WriteMode::Append)?;
        self.still_open(&file, Use::Change)?;
        if !append {
            file.set_len(0)?;
        }
        Ok(file)
    }

    /// Whether an open file is none of those that stay closed, wherever its name led in the end.
    fn still_open(&self, file: &File, usage: Use) -> Result<(), Unopened> {
        use std::os::fd::AsRawFd;
        let real = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let real = real.to_str().and_then(|real| AbsPath::new(real).ok());
        let real = real.ok_or_else(|| Unopened::Said("a file's path is not text".to_owned()))?;
        match self.context.closed(&real, usage) {
            None => Ok(()),
            Some(denial) => Err(self.context.deny(denial).into()),
        }
    }
}

impl StdioFds {
    fn try_clone(&self) -> std::io::Result<Self> {
        Ok(Self {
            stdin: self.stdin.try_clone()?,
            stdout: self.stdout.try_clone()?,
            stderr: self.stderr.try_clone()?,
        })
    }

    const fn output(&mut self, which: Output) -> &mut OwnedFd {
        match which {
            Output::Stdout => &mut self.stdout,
            Output::Stderr => &mut self.stderr,
        }
    }
}

/// How a command ended whose redirection was not made.
async fn unopened_as((unopened, errors): (Unopened, OwnedFd)) -> Result<Last, Stop> {
    match unopened {
        Unopened::Said(why) => write_error(errors, why).await.map(|()| Last::from_code(1)),
        Unopened::Stop(stop) => Err(stop),
    }
}

/// Says something on a command's errors. They may be full until whoever reads them is next, so this waits elsewhere.
async fn write_error(errors: OwnedFd, what: String) -> Result<(), Stop> {
    let said = tokio::task::spawn_blocking(move || {
        // A reader that is gone need not hear it.
        drop(File::from(errors).write_all(format!("shell: {what}\n").as_bytes()));
    });
    said.await.map_err(|fault| Stop::from(std::io::Error::other(fault)))
}

/// A text to read, as much as a pipe holds.
fn document(text: &str) -> Result<OwnedFd, Unopened> {
    let (input, output) = streams::pair()?;
    let size = rustix::pipe::fcntl_getpipe_size(&output).map_err(std::io::Error::from)?;
    if text.len() > size {
        return Err(Unopened::Said(format!("a document of more than {size} bytes; use a file or `stdin`")));
    }
    File::from(output).write_all(text.as_bytes())?;
    Ok(input)
}
