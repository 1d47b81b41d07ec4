//! One interface to every backend: who starts a command, and what it is like while it runs.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Instant;

use bailiwick_confine::{
    Change, Command, Confined, Exit, Fault, HostProcess, Observations, Options, Prepared, Refusal, Relays,
    RunningProcess, Status, Step, Watch, fallback, host,
};
use bailiwick_policy::artifact::Artifact;
use bailiwick_policy::plan::Plan;

use crate::external;
use crate::launch::LaunchError;

/// Who holds a command to its plan.
#[derive(Debug, Clone)]
pub enum Launcher {
    /// This crate, with namespaces.
    Native,
    /// The program that a compiled artifact is for: bwrap, an OCI runtime, firejail.
    External(Box<Artifact>),
    /// This crate, on a host without user namespaces.
    Landlock,
}

impl Launcher {
    /// Refuses what the native sandbox alone can hold, under any other.
    pub(crate) fn must_be_native(&self, grant: &str, what: &str) -> Result<(), Refusal> {
        let backend = match self {
            Self::Native => return Ok(()),
            Self::Landlock => "landlock".to_owned(),
            Self::External(artifact) => artifact.target().to_owned(),
        };
        let why = format!("it cannot {what}: `{grant}` needs the native sandbox");
        Err(Refusal::Unusable { backend, why, fix: "leave `--backend` out".to_owned() })
    }

    /// Refuses a layer, and telling of everything, under any other than the native sandbox.
    fn must_layer(&self, options: &Options) -> Result<(), Refusal> {
        let backend = match self {
            Self::Native => return Ok(()),
            Self::Landlock => "landlock",
            Self::External(artifact) => artifact.target(),
        };
        if !options.layered && options.watch != Watch::Everything {
            return Ok(());
        }
        Err(Refusal::Unusable {
            backend: backend.to_owned(),
            why: "it has no copy-on-write layer and tells nothing of a program".to_owned(),
            fix: "leave `--backend` out".to_owned(),
        })
    }

    /// Makes everything ready and starts nothing, for callers that must record what will be held before it runs.
    ///
    /// # Errors
    /// What is missing.
    pub(crate) fn prepare(
        &self,
        plan: &Plan,
        command: Command,
        options: Options,
        scratch: &Path,
    ) -> Result<Ready, Refusal> {
        self.must_layer(&options)?;
        Ok(Ready(match self {
            Self::Native => Waiting::Native(Box::new(Prepared::new(plan, command, options)?)),
            Self::External(artifact) => {
                Waiting::Other(Box::new(external::prepare(plan, artifact, command, &options, scratch)?))
            }
            Self::Landlock => Waiting::Other(Box::new(fallback::prepare(plan, command, &options)?)),
        }))
    }
}

/// A command that is ready to start under some backend.
pub(crate) struct Ready(Waiting);

enum Waiting {
    Native(Box<Prepared>),
    Other(Box<HostProcess>),
}

impl From<Prepared> for Ready {
    fn from(prepared: Prepared) -> Self {
        Self(Waiting::Native(Box::new(prepared)))
    }
}

impl Ready {
    /// What will be held.
    #[must_use]
    pub(crate) fn status(&self) -> &Status {
        match &self.0 {
            Waiting::Native(prepared) => prepared.status(),
            Waiting::Other(process) => process.status(),
        }
    }

    /// Starts it, once `record` has succeeded; our own sandbox is being made meanwhile.
    ///
    /// # Errors
    /// The step that failed, or why it is not recorded. Nothing runs then.
    pub(crate) fn start<T>(
        self,
        record: impl FnOnce() -> Result<T, LaunchError>,
    ) -> Result<(Running, T), LaunchError> {
        match self.0 {
            Waiting::Native(prepared) => {
                let (confined, recorded) = prepared.spawn_after(record)?;
                Ok((Running(Kind::Native(Box::new(confined))), recorded))
            }
            Waiting::Other(process) => {
                let recorded = record()?;
                Ok((Running(Kind::Other(Box::new(process.start()?))), recorded))
            }
        }
    }
}

impl From<Fault> for LaunchError {
    fn from(fault: Fault) -> Self {
        unstarted(fault).into()
    }
}

/// Of namespaces that it does not give the kernel says only a number: say what would change it.
fn unstarted(fault: Fault) -> Refusal {
    if fault.step != Step::Clone {
        return fault.into();
    }
    let fix = host::namespace_fix(fault.errno);
    Refusal::Unusable { backend: "native".to_owned(), why: fault.to_string(), fix }
}

/// A command that runs under some backend. Dropping it ends every process of it.
#[derive(Debug)]
pub(crate) struct Running(Kind);

#[derive(Debug)]
enum Kind {
    Native(Box<Confined>),
    Other(Box<RunningProcess>),
}

impl Running {
    /// Its first process, as the host numbers it.
    #[must_use]
    pub(crate) fn pid(&self) -> u32 {
        match &self.0 {
            Kind::Native(confined) => confined.pid(),
            Kind::Other(process) => process.pid(),
        }
    }

    /// What is held.
    #[must_use]
    pub(crate) fn status(&self) -> &Status {
        match &self.0 {
            Kind::Native(confined) => confined.status(),
            Kind::Other(process) => process.status(),
        }
    }

    /// The native sandbox, for what only it has: the sockets of its network.
    pub(crate) fn native(&mut self) -> Option<&mut Confined> {
        match &mut self.0 {
            Kind::Native(confined) => Some(confined),
            Kind::Other(_) => None,
        }
    }

    /// The copying to what stays outside of descriptors 0 to 2, once.
    pub(crate) fn take_relays(&mut self) -> Relays {
        match &mut self.0 {
            Kind::Native(confined) => confined.take_relays(),
            Kind::Other(process) => process.take_relays(),
        }
    }

    /// The supervisor's end of the terminal, once.
    pub(crate) fn terminal(&mut self) -> Option<OwnedFd> {
        match &mut self.0 {
            Kind::Native(confined) => confined.terminal(),
            Kind::Other(process) => process.terminal(),
        }
    }

    /// What was seen of the program, once it has ended. Only the native sandbox sees anything.
    pub(crate) fn observations(&mut self) -> Observations {
        self.native().map(Confined::observations).unwrap_or_default()
    }

    /// Sends the program a signal.
    ///
    /// # Errors
    /// If it has ended.
    pub(crate) fn signal(&self, number: i32) -> Result<(), Fault> {
        match &self.0 {
            Kind::Native(confined) => confined.signal(number),
            Kind::Other(process) => process.signal(number),
        }
    }

    /// Ends every process of it.
    pub(crate) fn kill(&mut self) {
        match &mut self.0 {
            Kind::Native(confined) => confined.kill(),
            Kind::Other(process) => process.kill(),
        }
    }

    /// The same, for a process that ends now: see [`Confined::leave`].
    pub(crate) fn leave(&mut self) {
        match &mut self.0 {
            Kind::Native(confined) => confined.leave(),
            Kind::Other(process) => process.kill(),
        }
    }

    /// Waits for the program to end.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub(crate) fn wait(&mut self) -> Result<Exit, Fault> {
        match &mut self.0 {
            Kind::Native(confined) => confined.wait(),
            Kind::Other(process) => process.wait(),
        }
    }

    /// Waits for the program to end or to be stopped. Only the native sandbox says that it was stopped.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub(crate) fn wait_for_change(&mut self) -> Result<Change, Fault> {
        match &mut self.0 {
            Kind::Native(confined) => confined.wait_for_change(),
            Kind::Other(process) => process.wait().map(Change::Ended),
        }
    }

    /// The same until a moment; `None` if it still runs then.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub(crate) fn wait_until(&mut self, deadline: Instant) -> Result<Option<Exit>, Fault> {
        match &mut self.0 {
            Kind::Native(confined) => confined.wait_until(deadline),
            Kind::Other(process) => process.wait_until(deadline),
        }
    }
}

/// Readable when the program has ended or was stopped.
impl AsFd for Running {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Kind::Native(confined) => confined.as_fd(),
            Kind::Other(process) => process.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use bailiwick_policy::authority::Authority;

    use super::*;
    use crate::{HostPlanner, Launch, Pipes, Recorder};

    #[test]
    fn the_same_line_ends_the_same_under_each_of_our_own_backends() {
        let plan = HostPlanner::default().authority_plan("test", &Authority::bottom()).unwrap();
        for launcher in [Launcher::Native, Launcher::Landlock] {
            let (stdio, mut ends) = Pipes::open().unwrap();
            let args = ["-c", "echo $PATH; exit 3"].map(Into::into).to_vec();
            let command = Command { args, stdio, ..Command::new("sh") };
            let launch = Launch::new(&plan, command, Recorder::unrecorded("test"));
            let ready = launch.held_by(launcher.clone(), Path::new("/tmp")).prepare().unwrap();
            let mut launched = ready.start().unwrap();
            assert_eq!(launched.wait().unwrap(), Exit::Code(3), "{launcher:?}");
            let mut printed = String::new();
            ends.stdout.read_to_string(&mut printed).unwrap();
            assert!(printed.starts_with("/usr/local/sbin:"), "{launcher:?}");
        }
    }
}
