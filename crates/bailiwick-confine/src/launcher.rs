//! One interface to every backend: who starts a command, and what it is like while it runs.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Instant;

use bailiwick_policy::artifact::Artifact;
use bailiwick_policy::plan::Plan;
use rustix::io::Errno;

use crate::command::{Command, Options};
use crate::confined::{Confined, Exit};
use crate::external::{self, Launch, Launched};
use crate::fallback;
use crate::fault::{Fault, Step};
use crate::host;
use crate::prepared::Prepared;
use crate::refusal::Refusal;
use crate::status::Status;
use crate::stdio::Relays;

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
    /// Starts a command held to a plan. `scratch` is where a private folder may be made.
    ///
    /// # Errors
    /// What is missing, or the step that failed. Nothing runs then.
    pub fn start(
        &self,
        plan: &Plan,
        command: Command,
        options: Options,
        scratch: &Path,
    ) -> Result<Running, Refusal> {
        self.prepare(plan, command, options, scratch)?.start()
    }

    /// Makes everything ready and starts nothing, for callers that must record what will be held before it runs.
    ///
    /// # Errors
    /// What is missing.
    pub fn prepare(
        &self,
        plan: &Plan,
        command: Command,
        options: Options,
        scratch: &Path,
    ) -> Result<Ready, Refusal> {
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
pub struct Ready(Waiting);

enum Waiting {
    Native(Box<Prepared>),
    Other(Box<Launch>),
}

impl Ready {
    /// What will be held.
    #[must_use]
    pub fn status(&self) -> &Status {
        match &self.0 {
            Waiting::Native(prepared) => prepared.status(),
            Waiting::Other(launch) => &launch.status,
        }
    }

    /// Starts it.
    ///
    /// # Errors
    /// The step that failed. Nothing runs then.
    pub fn start(self) -> Result<Running, Refusal> {
        Ok(Running(match self.0 {
            Waiting::Native(prepared) => Kind::Native(Box::new(prepared.spawn().map_err(unstarted)?)),
            Waiting::Other(launch) => Kind::Other(Box::new(launch.launch()?)),
        }))
    }
}

/// Of namespaces that it does not give the kernel says only a number: say what would change it.
fn unstarted(fault: Fault) -> Refusal {
    if fault.step != Step::Clone {
        return fault.into();
    }
    let fix = host::namespace_fix(Errno::from_raw_os_error(fault.errno));
    Refusal::Unusable { backend: "native".to_owned(), why: fault.to_string(), fix }
}

/// A command that runs under some backend. Dropping it ends every process of it.
#[derive(Debug)]
pub struct Running(Kind);

#[derive(Debug)]
enum Kind {
    Native(Box<Confined>),
    Other(Box<Launched>),
}

impl Running {
    /// Its first process, as the host numbers it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        match &self.0 {
            Kind::Native(confined) => confined.pid(),
            Kind::Other(launched) => launched.pid(),
        }
    }

    /// What is held.
    #[must_use]
    pub fn status(&self) -> &Status {
        match &self.0 {
            Kind::Native(confined) => confined.status(),
            Kind::Other(launched) => launched.status(),
        }
    }

    /// The native sandbox, for what only it has: the sockets of its network.
    pub fn native(&mut self) -> Option<&mut Confined> {
        match &mut self.0 {
            Kind::Native(confined) => Some(confined),
            Kind::Other(_) => None,
        }
    }

    /// The copying to what stays outside of descriptors 0 to 2, once.
    pub fn take_relays(&mut self) -> Relays {
        match &mut self.0 {
            Kind::Native(confined) => confined.take_relays(),
            Kind::Other(launched) => launched.take_relays(),
        }
    }

    /// The supervisor's end of the terminal, once.
    pub fn terminal(&mut self) -> Option<OwnedFd> {
        match &mut self.0 {
            Kind::Native(confined) => confined.terminal(),
            Kind::Other(launched) => launched.terminal(),
        }
    }

    /// Sends the program a signal.
    ///
    /// # Errors
    /// If it has ended.
    pub fn signal(&self, number: i32) -> Result<(), Fault> {
        match &self.0 {
            Kind::Native(confined) => confined.signal(number),
            Kind::Other(launched) => launched.signal(number),
        }
    }

    /// Ends every process of it.
    pub fn kill(&mut self) {
        match &mut self.0 {
            Kind::Native(confined) => confined.kill(),
            Kind::Other(launched) => launched.kill(),
        }
    }

    /// Waits for the program to end.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn wait(&mut self) -> Result<Exit, Fault> {
        match &mut self.0 {
            Kind::Native(confined) => confined.wait(),
            Kind::Other(launched) => launched.wait(),
        }
    }

    /// The same until a moment; `None` if it still runs then.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn wait_until(&mut self, deadline: Instant) -> Result<Option<Exit>, Fault> {
        match &mut self.0 {
            Kind::Native(confined) => confined.wait_until(deadline),
            Kind::Other(launched) => launched.wait_until(deadline),
        }
    }
}

/// Readable when the program has ended.
impl AsFd for Running {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Kind::Native(confined) => confined.as_fd(),
            Kind::Other(launched) => launched.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{all, plan, shell};

    #[test]
    fn the_same_line_ends_the_same_under_each_of_our_own_backends() {
        let plan = plan(&[]);
        for launcher in [Launcher::Native, Launcher::Landlock] {
            let (command, output) = shell("echo $PATH; exit 3");
            let scratch = Path::new("/tmp");
            let mut running = launcher.start(&plan, command, Options::default(), scratch).unwrap();
            assert_eq!(running.wait().unwrap(), Exit::Code(3), "{launcher:?}");
            assert!(all(output).starts_with("/usr/local/sbin:"), "{launcher:?}");
        }
    }
}
