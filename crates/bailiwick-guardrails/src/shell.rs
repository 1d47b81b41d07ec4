//! What a shell text would run: the simple commands in it, normalised.
//!
//! The text is cut into commands by `brush-parser`; wrappers (`sudo`, `env`, `xargs`, `bash -c`, …) are stripped,
//! programs reduced to their base names, quotes removed, values that the text itself assigns filled in, long flags
//! written short and merged flags put in every order. See `docs/guardrails.md` for what that finds.
//!
//! Total and bounded: any text gives an answer in bounded time, space and stack. Fails closed when the text does not
//! parse, exceeds a bound, or hides what it runs (a program named by a variable, a shell that reads a pipe): it is
//! then [`Reading::opaque`], and whoever judges it asks a person. Residual: what programs do with their arguments
//! and files (`python -c`, `make`, `./script`) is not looked into.

mod ast;
mod flags;
pub mod parse;
mod programs;
#[cfg(test)]
mod tests;
mod word;

use std::collections::HashMap;

/// The longest text that is read, in bytes.
const MAX_TEXT: usize = 32 * 1024;
/// How deep texts may hold texts: `bash -c`, `eval`, `$(…)`.
const MAX_DEPTH: usize = 8;
/// How many commands one text may hold.
const MAX_COMMANDS: usize = 256;
/// How many words one command may hold after expansion.
const MAX_WORDS: usize = 2_048;

/// What a text would run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// Every simple command, in the order of the text.
    pub commands: Vec<Simple>,
    /// Why there may be more than that, if there may.
    pub opaque: Option<String>,
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simple {
    /// Program, without its folder, and arguments.
    pub words: Vec<String>,
    /// Files that it is redirected into.
    pub writes: Vec<String>,
    /// The command as one line; words with blanks are quoted.
    pub plain: String,
    /// The same with its short flags merged, in every order.
    pub variants: Vec<String>,
}

/// Reads a shell text.
#[must_use]
pub fn read(text: &str) -> Reading {
    let mut reader = Reader::default();
    reader.text(text, 0, &Context::default());
    Reading { commands: reader.commands, opaque: reader.opaque }
}

/// The shell text that starts a program with these arguments.
#[must_use]
pub fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(one_word).collect();
    words.join(" ")
}

/// A text that a shell takes for just this word.
fn one_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+,-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Collects commands while texts are walked.
#[derive(Debug, Default)]
struct Reader {
    commands: Vec<Simple>,
    opaque: Option<String>,
    /// What the text itself assigned; `None` for a value that is only known when it runs.
    values: HashMap<String, Option<String>>,
}

/// Where a command stands.
#[derive(Debug, Clone, Default)]
struct Context {
    /// Something else's output is its input.
    piped: bool,
    /// What its input is, where the text says it.
    input: Option<String>,
}

impl Reader {
    fn text(&mut self, text: &str, depth: usize, context: &Context) {
        if depth > MAX_DEPTH {
            return self.hide("commands within commands nest too deep");
        }
        match parse::program(text) {
            Ok(program) => self.program(&program, depth, context),
            Err(why) => self.hide(why),
        }
    }

    /// Remembers the first reason why something may be hidden.
    fn hide(&mut self, why: impl Into<String>) {
        self.opaque.get_or_insert_with(|| why.into());
    }

    fn push(&mut self, words: Vec<String>, writes: Vec<String>) {
        if self.commands.len() >= MAX_COMMANDS {
            return self.hide("there are too many commands");
        }
        if !words.is_empty() || !writes.is_empty() {
            self.commands.push(flags::simple(words, writes));
        }
    }
}
