//! For tests: plans and outputs.

use std::io::Read as _;
use std::os::fd::OwnedFd;

use bailiwick_policy::capability::CapabilitySet;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::Plan;

use crate::command::{Command, Stdio};

/// The plan of these capabilities.
pub(crate) fn plan(capabilities: &[&str]) -> Plan {
    let set = CapabilitySet::new(capabilities.iter().copied()).unwrap();
    Plan::for_authority("test", set.authority(), &HostFacts::unknown()).unwrap()
}

/// A shell line, with a pipe for what it prints.
pub(crate) fn shell(line: &str) -> (Command, std::io::PipeReader) {
    let (reader, writer) = std::io::pipe().unwrap();
    let null = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    let mut command = Command::new("sh");
    command.args = vec!["-c".into(), line.into()];
    let stderr = OwnedFd::from(writer.try_clone().unwrap());
    command.stdio = Stdio::Descriptors { stdin: null(), stdout: writer.into(), stderr };
    (command, reader)
}

/// Everything that comes out of a pipe.
pub(crate) fn all(mut reader: std::io::PipeReader) -> String {
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    text
}
