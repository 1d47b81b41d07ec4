//! What a shell text would run: the simple commands in it, normalised.
//!
//! The text is cut into commands by `brush-parser`; wrappers (`sudo`, `env`, `xargs`, `bash -c`, …) are stripped,
//! programs reduced to their base names, quotes removed, values that the text itself assigns filled in, long flags
//! written short and merged flags put in every order. Changes of directory, functions and their arguments, and the
//! output of programs that only make text (`echo`, `printf`, `base64 -d`, …) are followed. See `docs/guardrails.md`.
//!
//! Total and bounded: any text gives an answer in bounded time, space and stack. Fails closed when the text does not
//! parse, exceeds a bound, or hides what it runs (a program named by a variable, a shell that reads a pipe): it is
//! then [`Reading::opaque`], and the judge asks a person. Residual: what programs do with their arguments
//! and files (`make`, `./script`) is not looked into.

mod ast;
mod builtins;
mod flags;
mod output;
mod parameter;
pub mod parse;
mod programs;
mod runners;
#[cfg(test)]
mod tests;
mod word;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::rc::Rc;

use brush_parser::ast::FunctionDefinition;

pub use runners::{is_runner, is_shell};

/// The longest text that is read, in bytes.
const MAX_TEXT: usize = 128 * 1024;
/// How deep texts may hold texts: `bash -c`, `eval`, `$(…)`.
const MAX_DEPTH: usize = 8;
/// How many commands one text may hold.
const MAX_COMMANDS: usize = 512;
/// How many words one command may hold after expansion.
const MAX_WORDS: usize = 2_048;
/// How many commands are walked: loops and functions walk a command more than once.
const MAX_STEPS: usize = 2_048;
/// The longest text that is kept as the known input or output of a command.
const MAX_KNOWN: usize = 64 * 1024;

/// What a text would run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// Every simple command, in the order of the text.
    pub commands: Vec<Simple>,
    /// Why there may be more than that, if there may.
    pub opaque: Option<String>,
    /// How many commands were walked to find that out.
    pub steps: usize,
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simple {
    /// Program, without its directory, and arguments.
    pub words: Vec<String>,
    /// The program as it was written.
    pub path: String,
    /// Files that it is redirected into.
    pub writes: Vec<String>,
    /// Files that it is redirected from.
    pub reads: Vec<String>,
    /// Variables that are set for it alone.
    pub set: Vec<(String, String)>,
    /// The directory it runs in, as the text says it; empty for where the text starts.
    pub here: String,
    /// Whether its input is another command's output, a file or a text.
    pub piped: bool,
    /// What its input is, where the text says it.
    pub input: Option<String>,
    /// The commands whose output it reads, by number.
    pub fed_by: Range<usize>,
    /// What it prints, where the text says it.
    pub prints: Option<String>,
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
    reader.leave();
    Reading { commands: reader.commands, opaque: reader.opaque, steps: reader.steps }
}

/// A path as it is named from a directory, both as a text says them.
#[must_use]
pub fn joined(here: &str, path: &str) -> String {
    if here.is_empty() || path.starts_with(['/', '~', '$']) {
        return path.to_owned();
    }
    format!("{}/{path}", here.trim_end_matches('/'))
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

/// What a variable holds; `Unknown` for what is only known when it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Held {
    Text(String),
    List(Vec<String>),
    Unknown,
}

/// What a command is known to print.
type Output = Option<String>;

/// Collects commands while texts are walked.
#[derive(Debug, Default)]
struct Reader {
    commands: Vec<Simple>,
    opaque: Option<String>,
    /// What the text itself assigned.
    values: HashMap<String, Held>,
    /// Functions that the text defines, those that it has called, and those that are being walked.
    functions: HashMap<String, Rc<FunctionDefinition>>,
    called: BTreeSet<String>,
    walking: Vec<String>,
    /// `$1` and so on; `None` where the text does not say.
    positional: Option<Vec<word::Field>>,
    /// The directory that commands run in, and those before it.
    here: String,
    left: Vec<String>,
    /// Texts that run at the end.
    at_end: Vec<word::Field>,
    /// Files that the text has written, with what is in them.
    files: HashMap<String, String>,
    steps: usize,
}

/// Where a command stands.
#[derive(Debug, Clone, Default)]
struct Context {
    /// Something else's output is its input.
    piped: bool,
    /// What its input is, where the text says it.
    input: Option<String>,
    /// The commands that print its input.
    fed_by: Range<usize>,
}

/// What stands around the words of a command.
#[derive(Debug, Clone, Default)]
struct Around {
    writes: Vec<String>,
    reads: Vec<String>,
    set: Vec<(String, String)>,
}

impl Reader {
    fn text(&mut self, text: &str, depth: usize, context: &Context) -> Output {
        if depth > MAX_DEPTH {
            self.hide("commands within commands nest too deep");
            return None;
        }
        match parse::program(text) {
            Ok(program) => self.program(&program, depth, context),
            Err(why) => {
                self.hide(why);
                None
            }
        }
    }

    /// What runs at the end: traps, and for safety functions that were never called.
    fn leave(&mut self) {
        for text in std::mem::take(&mut self.at_end) {
            self.inner_text(&text, 0, &Context::default());
        }
        let uncalled: Vec<_> =
            self.functions.iter().filter(|(name, _)| !self.called.contains(*name)).collect();
        let mut uncalled: Vec<_> =
            uncalled.into_iter().map(|(name, body)| (name.clone(), Rc::clone(body))).collect();
        uncalled.sort_by(|one, other| one.0.cmp(&other.0));
        for (name, body) in uncalled {
            self.function(&name, &body, None, 0, &Context::default());
        }
    }

    /// Remembers the first reason why something may be hidden.
    fn hide(&mut self, why: impl Into<String>) {
        self.opaque.get_or_insert_with(|| why.into());
    }

    /// Counts a command that is walked; `false` when there were too many.
    fn step(&mut self) -> bool {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            self.hide("there are too many commands");
        }
        self.steps <= MAX_STEPS
    }

    fn push(&mut self, words: Vec<String>, path: String, around: Around, context: &Context) {
        if self.commands.len() >= MAX_COMMANDS {
            return self.hide("there are too many commands");
        }
        if words.is_empty() && around.writes.is_empty() && around.reads.is_empty() {
            return;
        }
        let mut simple = flags::simple(words, around.writes);
        simple.path = path;
        simple.reads = around.reads;
        simple.set = around.set;
        simple.here.clone_from(&self.here);
        simple.piped = context.piped;
        simple.input.clone_from(&context.input);
        simple.fed_by = context.fed_by.clone();
        self.commands.push(simple);
    }
}
