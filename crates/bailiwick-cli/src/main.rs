//! The `bailiwick` command: reads its arguments, runs one command and shows the answer.
//!
//! Commands are functions from arguments to an [`answer::Answer`]; only `terminal` prints, only `facts` looks at
//! the environment, only `input` reads files, only `output` writes those that a user names, and only the guard's library the journal.

mod additions;
mod answer;
mod args;
mod commands;
mod facts;
mod input;
mod moment;
mod output;
mod planned;
mod render;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    let line = match args::Line::read() {
        Ok(line) => line,
        Err(refusal) => return terminal::show_usage(&refusal),
    };
    let colour = line.colour;
    match commands::run(line.command) {
        Ok(answer) => terminal::show(answer, colour),
        Err(fault) => terminal::show_fault(&fault, colour),
    }
}
