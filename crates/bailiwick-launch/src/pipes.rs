//! Pipes to a program: its three descriptors, and the caller's ends of them.

use std::io::{PipeReader, PipeWriter, Result, pipe};

use bailiwick_confine::Stdio;

/// The caller's ends of a program's three pipes.
#[derive(Debug)]
pub struct Pipes {
    /// What is written here is the program's input; dropping it ends that input.
    pub stdin: PipeWriter,
    /// What the program prints.
    pub stdout: PipeReader,
    /// Its errors.
    pub stderr: PipeReader,
}

impl Pipes {
    /// Opens three pipes: the program's ends, and the caller's.
    ///
    /// # Errors
    /// If there are no more descriptors.
    pub fn open() -> Result<(Stdio, Self)> {
        let ((stdin, input), (output, stdout), (errors, stderr)) = (pipe()?, pipe()?, pipe()?);
        let stdio = Stdio::Descriptors { stdin: stdin.into(), stdout: stdout.into(), stderr: stderr.into() };
        Ok((stdio, Self { stdin: input, stdout: output, stderr: errors }))
    }
}
