//! Admission: every program, file and directory on every way through a script, before anything runs.
//!
//! A script's state (its directory and variables) can differ by which commands succeed. So all states it can be in are
//! carried along, each with whether the last command succeeded, and what a command needs is asked for in each. What no
//! way leads to is asked for as well, in the states of the last command that one leads to.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use bailiwick_policy::authority::{Request, Spawn};
use bailiwick_policy::capability::Program;

use super::act::{Act, Failure, Here, RedirectTarget, State, Surroundings};
use super::reach::{self, Use};
use super::{Chain, Joint, Outside, Pipeline, Script, Simple};
use crate::gate::ToolContext;
use crate::tool::ToolError;
use bailiwick_guardrails::resolve::real;

/// How many states a script may be in at one point.
const MAX_STATES: usize = 64;
/// How many programs and files a script may need.
const MAX_NEEDS: usize = 10_000;

/// Asks for everything that a script can come to need; `asked` is the directory that the call names.
///
/// # Errors
/// What is outside the subset, or the first denial. Nothing was let through then.
pub(in super::super) fn admit(
    script: &Script,
    start: &State,
    asked: Option<&Path>,
    surroundings: &Surroundings,
    deadline: Instant,
    context: &ToolContext,
) -> Result<(), ToolError> {
    let needs: Vec<Need> =
        asked.map(|directory| Need::File(directory.to_owned(), Use::Read)).into_iter().collect();
    let begin = Ways::from([(start.clone(), true)]);
    let known = needs.iter().cloned().collect();
    let mut walk = Walk { surroundings, needs, known, reached: begin.clone(), deadline, context };
    let walked = script.0.iter().try_fold(begin, |ways, chain| walk.chain(chain, ways));
    let needs = walk.needs;
    match walked {
        Ok(_) => {}
        Err(Failure::Outside(outside)) => return Err(outside.into()),
        Err(Failure::Hidden(name)) => return Err(hidden(&name, context)),
        Err(Failure::Stopped(error)) => return Err(error),
    }
    // What is denied is asked for alone: so nothing was let through before it.
    for need in &needs {
        context.still_wanted()?;
        if !need.is_open(context) {
            need.check(context)?;
        }
    }
    needs.iter().try_for_each(|need| need.check(context))
}

/// Why a variable has no value here.
fn hidden(name: &str, context: &ToolContext) -> ToolError {
    let unset = || ToolError::failed(format!("shell: the variable `{name}` has no value in this script"));
    context.env(name).err().unwrap_or_else(unset)
}

/// The states a script can be in, and whether its last command succeeded.
type Ways = BTreeSet<(State, bool)>;

/// Something that a script needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Program(String),
    File(PathBuf, Use),
}

impl Need {
    fn is_open(&self, context: &ToolContext) -> bool {
        match self {
            Self::Program(name) => Program::new(name)
                .is_ok_and(|program| context.authority().allows(&Request::Spawn(Spawn::plain(program)))),
            Self::File(path, usage) => reach::is_open(path, *usage, context),
        }
    }

    fn check(&self, context: &ToolContext) -> Result<(), ToolError> {
        match self {
            Self::Program(name) => context.check_exec(name),
            Self::File(path, usage) => reach::check(path, *usage, context).map(drop),
        }
    }
}

struct Walk<'a> {
    surroundings: &'a Surroundings,
    /// What is needed, in the order in which it is met.
    needs: Vec<Need>,
    /// The same, to be looked up.
    known: BTreeSet<Need>,
    deadline: Instant,
    context: &'a ToolContext,
    /// The ways to the last command that can be reached.
    reached: Ways,
}

impl Walk<'_> {
    fn chain(&mut self, chain: &Chain, ways: Ways) -> Result<Ways, Failure> {
        let mut ways = self.pipeline(&chain.first, ways)?;
        for (joint, pipeline) in &chain.rest {
            let runs_after = *joint == Joint::And;
            let (run, pass): (Ways, Ways) =
                ways.into_iter().partition(|(_, succeeded)| *succeeded == runs_after);
            ways = self.pipeline(pipeline, run)?;
            ways.extend(pass);
        }
        Ok(ways)
    }

    fn pipeline(&mut self, pipeline: &Pipeline, ways: Ways) -> Result<Ways, Failure> {
        self.context.still_wanted().map_err(Failure::Stopped)?;
        if Instant::now() > self.deadline {
            let late = "shell: the time was over before the script was checked; nothing has run";
            return Err(Failure::Stopped(ToolError::failed(late)));
        }
        if ways.is_empty() {
            let reached = self.reached.clone();
            return self.reachable(pipeline, reached).map(|_| ways);
        }
        self.reached.clone_from(&ways);
        self.reachable(pipeline, ways)
    }

    fn reachable(&mut self, pipeline: &Pipeline, ways: Ways) -> Result<Ways, Failure> {
        let mut after = Ways::new();
        for (state, _) in ways {
            match pipeline.commands.as_slice() {
                [only] => after.extend(self.command(only, state, true)?),
                several => {
                    for command in several {
                        self.command(command, state.clone(), false)?;
                    }
                    after.extend([(state.clone(), true), (state, false)]);
                }
            }
        }
        if after.len() > MAX_STATES {
            return Err(Outside::named(
                "a script that can take so many ways",
                "use fewer `cd` and assignments",
            )
            .into());
        }
        Ok(after.into_iter().map(|(state, succeeded)| (state, succeeded != pipeline.negated)).collect())
    }

    /// What a command needs in a state, and the states that it can leave.
    fn command(&mut self, command: &Simple, state: State, alone: bool) -> Result<Ways, Failure> {
        let here = Here::new(&state, self.surroundings);
        for (word, changes) in command.redirects.iter().filter_map(super::Redirect::target) {
            if let RedirectTarget::File(path) = here.redirect_target(word)? {
                self.need(Need::File(path, if changes { Use::Change } else { Use::Read }))?;
            }
        }
        let act = here.act(command)?;
        let failed = || Ways::from([(state.clone(), false)]);
        // A redirection can fail, and then the rest does not happen.
        let mut after = if command.redirects.is_empty() { Ways::new() } else { failed() };
        match &act {
            Act::Start(start) => {
                self.need(Need::Program(start.program.clone()))?;
                after.extend([(state.clone(), true), (state, false)]);
            }
            Act::Nothing => drop(after.insert((state, true))),
            Act::Answer(answer) => drop(after.insert((state, *answer))),
            Act::Assign(_) | Act::Export(_) | Act::Go(_) | Act::Exit(_) if !alone => {
                return Err(Outside::named(
                    "a change of the script's own state in a pipeline",
                    "do it before",
                )
                .into());
            }
            Act::Assign(_) | Act::Export(_) => {
                let mut changed = state;
                changed.apply(&act, self.surroundings);
                after.insert((changed, true));
            }
            Act::Go(directory) => {
                self.need(Need::File(directory.clone(), Use::Read))?;
                // One that is not there yet may be made by then, or not.
                if !directory.is_dir() {
                    after.extend(failed());
                }
                let mut gone = state;
                gone.directory =
                    real(directory).map_or(directory.clone(), |real| PathBuf::from(real.to_string()));
                after.insert((gone, true));
            }
            Act::Exit(_) => {}
        }
        Ok(after)
    }

    fn need(&mut self, need: Need) -> Result<(), Failure> {
        if self.known.insert(need.clone()) {
            self.needs.push(need);
        }
        if self.needs.len() <= MAX_NEEDS {
            return Ok(());
        }
        let what = format!("a script that needs more than {MAX_NEEDS} programs and files");
        Err(Outside::named(&what, "use fewer of them").into())
    }
}
