//! `shell`: programs and scripts, held by the native sandbox to what the call may touch.
//!
//! Every program is checked against the call's authority before anything starts, and is found on a fixed search path.
//! Each runs in a sandbox of its own and sees the files, hosts, variables and programs of that authority and nothing
//! else; everything it started ends with it. See `docs/shell.md`.
//!
//! Fails closed when: this host cannot hold the call's authority. Then nothing is started.

mod answer;
mod args;
mod plan;
mod run;
mod script;
mod streams;

use std::collections::BTreeMap;
use std::io::Error;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Instant;

use bailiwick_launch::{Command, Stdio};
use bailiwick_policy::authority::Request;
use serde_json::Value;
use tokio::net::unix::pipe;

use self::answer::Answer;
use self::args::{Args, Work};
use self::plan::Held;
pub use self::plan::shell_plan;
use self::run::{ProgramOutcome, Stage, Witness};
use self::script::{Execution, Script, State, StdioFds, Surroundings, admit};
use crate::gate::ToolContext;
use crate::outcome::Output;
use crate::tool::{Effect, Hints, Stream, Tool, ToolError, ToolFault};
use bailiwick_guardrails::resolve::{absolute, real};

/// Both streams, twice in the answer and once more while it is made.
const FOOTPRINT: usize = 3 * 2 * streams::MAX_OUTPUT;

/// The `shell` tool: `{program, args?}` or `{cmd, engine?}`, with `cwd?`, `env?`, `stdin?` and `timeout_ms?`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shell;

impl Tool for Shell {
    fn name(&self) -> &str {
        "shell"
    }

    fn description(&self) -> &str {
        "Run a program (`program` and `args`) or a short script (`cmd`) in a sandbox and return what it printed. Only \
         granted programs, files and hosts can be used; a refusal names the grant that a person would have to give. A \
         script may use quotes, pipes, && || ; and newlines, redirections, here-documents, globs, $VAR, VAR=x and cd; \
         it is checked as a whole before anything runs. For $( ), loops and functions pass `engine: \"bash\"`, if bash \
         is granted."
    }

    fn schema(&self) -> Value {
        args::schema()
    }

    fn output(&self) -> Option<Value> {
        Some(answer::schema())
    }

    fn hints(&self) -> Hints {
        Hints { effect: Effect::Changes, idempotent: false, open_world: true }
    }

    fn footprint(&self, _: &Value) -> usize {
        FOOTPRINT
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
        let Args { work, cwd, env, dropped, stdin, timeout } = Args::read(&args)?;
        let deadline = Instant::now() + timeout;
        let is_bash = matches!(work, Work::Bash(_));
        let task = match work {
            Work::Program(program, args) => {
                context.check_exec(&program)?;
                Task::Program { program, args, directory: directory(cwd.as_deref(), context)?, env }
            }
            Work::Bash(text) => {
                context.check_exec("bash")?;
                let args = ["--noprofile", "--norc", "-c", &text].map(str::to_owned).to_vec();
                Task::Program {
                    program: "bash".to_owned(),
                    args,
                    directory: directory(cwd.as_deref(), context)?,
                    env,
                }
            }
            Work::Script(text) => Task::script(&text, cwd.as_deref(), &env, deadline, context)?,
        };
        let mut held = Held::from_context(context).map_err(|error| ToolError::failed(error.to_string()))?;
        // Not even a grant makes a shell read a file before its script.
        held.granted.retain(|name, _| !is_bash || name != "BASH_ENV");
        task.run(&held, stdin, deadline, dropped, context).await
    }
}

/// Where a call runs: what it asks for, if that may be read, or the session's directory.
fn directory(cwd: Option<&str>, context: &ToolContext) -> Result<PathBuf, ToolError> {
    match cwd {
        Some(cwd) => Ok(PathBuf::from(context.check_path_read(cwd)?.to_string())),
        None => Ok(context.session().cwd().to_owned()),
    }
}

/// Work that was let through.
enum Task {
    Program { program: String, args: Vec<String>, directory: PathBuf, env: BTreeMap<String, String> },
    Script { script: Script, start: State, surroundings: Surroundings },
}

impl Task {
    fn script(
        text: &str,
        cwd: Option<&str>,
        env: &BTreeMap<String, String>,
        deadline: Instant,
        context: &ToolContext,
    ) -> Result<Self, ToolError> {
        let script = Script::read(text)?;
        let session = context.session();
        // Where it cannot be judged, asking for it says so.
        let asked = cwd.map(|cwd| match absolute(cwd, session.surroundings()).and_then(|path| real(&path)) {
            Ok(real) => Ok(PathBuf::from(real.to_string())),
            Err(_) => context.check_path_read(cwd).map(|real| PathBuf::from(real.to_string())),
        });
        let asked = asked.transpose()?;
        let readable = |name: &str| context.authority().allows(&Request::ReadEnv(name.into()));
        let granted = session.variables().filter(|(name, _)| readable(name));
        let surroundings = Surroundings {
            home: session.home().and_then(|home| home.to_str()).map(str::to_owned),
            granted: granted.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        };
        let start = State::new(asked.clone().unwrap_or_else(|| session.cwd().to_owned()), env);
        admit(&script, &start, asked.as_deref(), &surroundings, deadline, context)?;
        Ok(Self::Script { script, start, surroundings })
    }

    /// Runs it, hears what it says, and answers.
    async fn run(
        self,
        held: &Held,
        stdin: Option<String>,
        deadline: Instant,
        dropped: Vec<String>,
        context: &ToolContext,
    ) -> Result<Output, ToolError> {
        let failed = |source| ToolError::from(ToolFault::Exec { program: "shell".to_owned(), source });
        let (stdio, ends) = open(stdin).map_err(failed)?;
        let witness = Witness::from_context(context);
        let worked = self.work(held, &witness, stdio, deadline, dropped, context);
        let out = streams::capture(ends.stdout, |text| context.tell(Stream::Output, text));
        let err = streams::capture(ends.stderr, |text| context.tell(Stream::Errors, text));
        let (out, err, (), answer) = tokio::join!(out, err, streams::feed(ends.stdin), worked);
        Ok(answer?.to_output(out, err, &witness.refused()))
    }

    async fn work(
        self,
        held: &Held,
        witness: &Witness,
        stdio: StdioFds,
        deadline: Instant,
        dropped: Vec<String>,
        context: &ToolContext,
    ) -> Result<Answer, ToolError> {
        match self {
            Self::Program { program, args, directory, env } => {
                let failed = |source| ToolError::from(ToolFault::Exec { program: program.clone(), source });
                let (plan, env) = held.with(env);
                let StdioFds { stdin, stdout, stderr } = stdio;
                let command = Command {
                    args: args.into_iter().map(Into::into).collect(),
                    cwd: Some(directory),
                    env,
                    stdio: Stdio::Descriptors { stdin, stdout, stderr },
                    ..Command::new(program.clone())
                };
                let ended = run::pipeline(vec![Stage { plan, command }], witness, deadline).await;
                let ended = ended.map_err(failed)?;
                match ended.outcomes.into_iter().next() {
                    Some(ProgramOutcome::Ended(exit)) => {
                        Ok(Answer::of_exit(exit, ended.timed_out, ended.held, dropped))
                    }
                    Some(ProgramOutcome::Missing(_, why)) => Err(failed(why)),
                    None => Err(failed(Error::other("nothing was started"))),
                }
            }
            Self::Script { script, start, surroundings } => {
                let mut execution = Execution {
                    context,
                    held,
                    witness,
                    surroundings: &surroundings,
                    state: start,
                    stdio,
                    deadline,
                    statuses: Vec::new(),
                    dropped,
                    last: script::Last::default(),
                    carriers: Vec::new(),
                };
                let ending = execution.run(&script).await?;
                Ok(Answer::of_ending(ending, execution.statuses, execution.dropped))
            }
        }
    }
}

/// Our ends of a call's streams.
struct Ends {
    stdin: Option<(pipe::Sender, String)>,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
}

/// The streams of a call: the programs' ends, and ours.
fn open(input: Option<String>) -> std::io::Result<(StdioFds, Ends)> {
    let (output, stdout) = streams::pair()?;
    let (errors, stderr) = streams::pair()?;
    let (stdin, input): (OwnedFd, _) = match input {
        None => (std::fs::File::open("/dev/null")?.into(), None),
        Some(text) => {
            let (stdin, input) = streams::pair()?;
            (stdin, Some((pipe::Sender::from_owned_fd(input)?, text)))
        }
    };
    let ends = Ends {
        stdin: input,
        stdout: pipe::Receiver::from_owned_fd(output)?,
        stderr: pipe::Receiver::from_owned_fd(errors)?,
    };
    Ok((StdioFds { stdin, stdout, stderr }, ends))
}
