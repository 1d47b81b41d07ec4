//! Faults: we or the kernel failed. Which step it was, where, and the errno.

use std::fmt;

use rustix::io::Errno;

/// Something that had to work did not. Nothing runs unconfined: the sandbox is gone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("could not {step}{}: {}", place(at.as_deref()), reason(*errno))]
pub struct Fault {
    /// What was being done.
    pub step: Step,
    /// At which path, if at one.
    pub at: Option<String>,
    /// What the kernel said.
    pub errno: i32,
}

impl Fault {
    /// A step that failed, and what the kernel said.
    #[must_use]
    pub fn new(step: Step, errno: Errno) -> Self {
        Self { step, at: None, errno: errno.raw_os_error() }
    }

    /// The same, at a path.
    #[must_use]
    pub fn at(self, path: impl fmt::Display) -> Self {
        Self { at: Some(path.to_string()), ..self }
    }
}

fn place(at: Option<&str>) -> String {
    at.map(|path| format!(" at `{path}`")).unwrap_or_default()
}

fn reason(errno: i32) -> String {
    std::io::Error::from_raw_os_error(errno).to_string()
}

macro_rules! steps {
    ($($(#[$doc:meta])+ $name:ident = $text:literal;)+) => {
        /// The steps of starting a sandbox, in their order.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Step { $($(#[$doc])+ $name,)+ }

        impl Step {
            const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// What is done, after "could not".
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

steps! {
    /// Opening descriptors and buffers.
    Open = "open what a sandbox needs";
    /// Rules of files.
    Rules = "make the rules of files";
    /// The new process in its namespaces.
    Clone = "create the namespaces";
    /// Limits by group.
    Group = "place the sandbox under its limits";
    /// Who the process is inside.
    Identity = "map the user";
    /// The empty root.
    Root = "make a new root";
    /// The files of the root.
    Layout = "fill the new root";
    /// A tree or file of the host.
    Mount = "mount";
    /// The copy-on-write layer over a writable directory.
    Layer = "make the copy-on-write layer";
    /// What stands in for a layer: a copy.
    Copy = "make the scratch copy that stands in for a copy-on-write layer";
    /// The file system of devices.
    Devices = "make the devices";
    /// The file system of processes.
    Proc = "mount a proc of its own (proc-unavailable)";
    /// Leaving the old root.
    Pivot = "leave the old root";
    /// The sockets of the network.
    Network = "open the network's sockets";
    /// The terminal.
    Terminal = "open a terminal";
    /// Capabilities and the like.
    Privileges = "drop every privilege";
    /// Limits by process.
    Limits = "set the limits";
    /// Taking on the rules of files.
    Landlock = "take on the rules of files";
    /// The filter of system calls.
    Seccomp = "take on the filter of system calls";
    /// Waiting for the supervisor.
    Handshake = "reach the supervisor";
    /// The directory to start in.
    WorkingDirectory = "enter the working directory";
    /// The program itself.
    Exec = "start the program";
    /// Waiting for the end.
    Supervise = "watch the sandbox";
}

impl Step {
    /// The number that a child reports it by.
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// The step of such a number.
    pub fn of_code(code: i32) -> Option<Self> {
        Self::ALL.iter().copied().find(|step| step.code() == code)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_one_line_with_its_place() {
        let fault = Fault::new(Step::Mount, Errno::NOENT).at("/w");
        assert_eq!(fault.to_string(), "could not mount at `/w`: No such file or directory (os error 2)");
        assert!(Step::ALL.iter().all(|step| Step::of_code(step.code()) == Some(*step)));
    }
}
