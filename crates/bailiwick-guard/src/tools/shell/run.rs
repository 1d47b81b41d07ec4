//! Programs side by side, each in a sandbox of its own, until all of them have ended.
//!
//! They are started and watched by one thread of the runtime's pool. The task that waits for them holds the other end of a
//! pipe: when that closes, or their time is over, every process of every sandbox is ended.
//!
//! Fails closed when: a sandbox cannot be made. Then what was started beside it is ended too.

use std::io::{Error, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use bailiwick_launch::{
    BrokerProcess, Command, Exit, Launch, LaunchError, Launched, NameSources, NetworkEvent, NetworkRefusals,
    Recorder, Status, Stdio, System,
};
use bailiwick_policy::plan::Plan;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::streams;
use crate::gate::ToolContext;

/// One program of a pipeline.
pub(super) struct Stage {
    pub(super) plan: Plan,
    pub(super) command: Command,
}

/// How one program ended.
#[derive(Debug)]
pub(super) enum ProgramOutcome {
    Ended(Exit),
    /// There is no such program, or it cannot be started; the code is a shell's.
    Missing(i32, Error),
}

/// How a pipeline ended.
pub(super) struct Ended {
    pub(super) outcomes: Vec<ProgramOutcome>,
    pub(super) timed_out: bool,
    /// What was held, of every sandbox that was made.
    pub(super) held: Vec<Status>,
}

/// How names are found, and where programs and decisions of their network are recorded; those that refuse are named
/// in the result.
#[derive(Clone)]
pub(super) struct Witness {
    recorder: Recorder,
    names: NameSources,
    refusals: NetworkRefusals,
    secrets: Option<Arc<BrokerProcess>>,
}

impl Witness {
    pub(super) fn from_context(context: &ToolContext) -> Self {
        let (recorder, names) = (context.recorder(), context.session().names().clone());
        let secrets = context.session().secrets().cloned();
        Self { recorder, names, refusals: NetworkRefusals::default(), secrets }
    }

    /// What the network was refused so far, each once.
    pub(super) fn refused(&self) -> Vec<NetworkEvent> {
        self.refusals.all()
    }
}

/// Runs programs side by side until all have ended or the deadline is over.
pub(super) async fn pipeline(
    stages: Vec<Stage>,
    witness: &Witness,
    deadline: Instant,
) -> Result<Ended, Error> {
    let witness = witness.clone();
    // Dropping this call drops `held`, and that ends the programs.
    let (given_up, held) = streams::pair()?;
    let ended = tokio::task::spawn_blocking(move || run(stages, &witness, &given_up, deadline)).await;
    drop(held);
    ended.map_err(Error::other)?
}

/// A program that runs, or the reason why it does not.
enum Slot {
    Running(Box<Launched>),
    Over(ProgramOutcome),
}

fn run(stages: Vec<Stage>, witness: &Witness, given_up: &OwnedFd, deadline: Instant) -> Result<Ended, Error> {
    let mut looked_at = None;
    let mut slots = Vec::new();
    for stage in stages {
        let system = looked_at.get_or_insert_with(|| System::look(&stage.plan));
        slots.push(start(stage, system, witness)?);
    }
    let held = slots.iter().filter_map(Slot::status).collect();
    let timed_out = watch(&mut slots, given_up, deadline)?;
    let outcomes = slots.into_iter().map(Slot::outcome).collect::<Result<_, _>>()?;
    Ok(Ended { outcomes, timed_out, held })
}

impl Slot {
    fn status(&self) -> Option<Status> {
        match self {
            Self::Running(launched) => Some(launched.status().clone()),
            Self::Over(_) => None,
        }
    }

    fn outcome(self) -> Result<ProgramOutcome, Error> {
        match self {
            Self::Running(launched) => ended(*launched),
            Self::Over(outcome) => Ok(outcome),
        }
    }
}

/// Waits for programs to end; ends them when their time is over or the waiting task is gone.
fn watch(slots: &mut [Slot], given_up: &OwnedFd, deadline: Instant) -> Result<bool, Error> {
    loop {
        let running = slots.iter().filter_map(|slot| match slot {
            Slot::Running(launched) => Some(launched.as_fd()),
            Slot::Over(_) => None,
        });
        let mut asked: Vec<_> = running.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        if asked.is_empty() {
            return Ok(false);
        }
        asked.push(PollFd::new(given_up, PollFlags::IN));
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
        let ready = match poll(&mut asked, left.as_ref()) {
            Err(Errno::INTR) => continue,
            answer => answer?,
        };
        let abandoned = asked.pop().is_some_and(|one| !one.revents().is_empty());
        let ended: Vec<bool> = asked.iter().map(|one| !one.revents().is_empty()).collect();
        drop(asked);
        if ready == 0 || abandoned {
            slots.iter_mut().for_each(Slot::kill);
            return Ok(ready == 0);
        }
        let running = slots.iter_mut().filter(|slot| matches!(slot, Slot::Running(_)));
        for (slot, _) in running.zip(ended).filter(|(_, ended)| *ended) {
            slot.settle()?;
        }
    }
}

impl Slot {
    fn kill(&mut self) {
        if let Self::Running(launched) = self {
            launched.kill();
        }
    }

    fn settle(&mut self) -> Result<(), Error> {
        let over = Self::Over(ProgramOutcome::Ended(Exit::Code(0)));
        *self = Self::Over(std::mem::replace(self, over).outcome()?);
        Ok(())
    }
}

/// How a program ended; its end is recorded.
fn ended(mut launched: Launched) -> Result<ProgramOutcome, Error> {
    let exit = launched.wait().map_err(Error::other)?;
    launched.finish(&exit.to_string()).map_err(Error::other)?;
    Ok(ProgramOutcome::Ended(exit))
}

/// Starts one program; that there is none is said on its errors and is no fault.
fn start(stage: Stage, system: &System, witness: &Witness) -> Result<Slot, Error> {
    let name = stage.command.program.to_string_lossy().into_owned();
    let errors = match &stage.command.stdio {
        Stdio::Descriptors { stderr, .. } => Some(stderr.try_clone()?),
        Stdio::Inherit | Stdio::Terminal => None,
    };
    match confined(stage, system, witness) {
        Ok(slot) => Ok(slot),
        Err((Some(code), why)) => {
            if let Some(errors) = errors {
                // A reader that is gone need not hear it.
                drop(std::fs::File::from(errors).write_all(format!("{name}: {why}\n").as_bytes()));
            }
            Ok(Slot::Over(ProgramOutcome::Missing(code, why)))
        }
        Err((None, why)) => Err(why),
    }
}

/// A started program; or why not, with a shell's code for it if the program itself is the reason.
fn confined(stage: Stage, system: &System, witness: &Witness) -> Result<Slot, (Option<i32>, Error)> {
    let launch = Launch::new(&stage.plan, stage.command, witness.recorder.clone())
        .on_system(system)
        .with_names(witness.names.clone())
        .noting_refusals(witness.refusals.clone());
    let brokering = witness.secrets.as_ref().map(|process| process.session(&stage.plan)).transpose();
    let launch = match brokering.map_err(|why| (None, Error::other(why)))?.flatten() {
        Some(brokering) => launch.brokering(brokering),
        None => launch,
    };
    let started = launch.prepare().map_err(LaunchError::from).and_then(|ready| ready.start());
    match started {
        Ok(launched) => Ok(Slot::Running(Box::new(launched))),
        Err(error) => Err((error.shell_code(), Error::other(error))),
    }
}
