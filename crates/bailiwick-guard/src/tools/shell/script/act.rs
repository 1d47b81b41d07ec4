//! What one command comes to in a given state: a program to start, or a change of the script's own state.
//!
//! The same for whoever admits a script and for whoever runs it, so what was asked for is what runs.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::args::is_loader;
use super::words::{Field, Values, Word};
use super::{Output, Outside, Redirect, Simple};
use crate::tool::ToolError;

/// How many bytes the values may have that are filled in for one command: as much as the kernel gives a program.
const MAX_FILLED: usize = 1024 * 1024;
/// How many bytes the variables of a script may have.
const MAX_VARIABLES: usize = 128 * 1024;

/// Where a script is and what it has set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct State {
    pub(super) directory: PathBuf,
    variables: BTreeMap<String, Variable>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Variable {
    value: String,
    exported: bool,
}

/// What a script may know besides what it sets itself.
#[derive(Debug, Default)]
pub(in super::super) struct Surroundings {
    pub(in super::super) home: Option<String>,
    /// The variables that the call may read.
    pub(in super::super) granted: BTreeMap<String, String>,
}

/// Why a command comes to nothing.
#[derive(Debug)]
pub(super) enum Failure {
    Outside(Outside),
    /// A variable that nobody has set and that the call may not read.
    Hidden(String),
    /// The call was cancelled, or its time was over.
    Stopped(ToolError),
}

impl From<Outside> for Failure {
    fn from(outside: Outside) -> Self {
        Self::Outside(outside)
    }
}

/// What one command does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Act {
    Start(Start),
    /// Only what is redirected happens.
    Nothing,
    /// `true`, `false` and `:`
    Answer(bool),
    Assign(Vec<(String, String)>),
    Export(Vec<(String, Option<String>)>),
    Go(PathBuf),
    Exit(Option<u8>),
}

/// A program that is to start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) program: String,
    pub(super) args: Vec<Field>,
    pub(super) env: BTreeMap<String, String>,
    /// Variables before the program that it does not get.
    pub(super) dropped: Vec<String>,
}

/// Where a redirection leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RedirectTarget {
    Null,
    Output(Output),
    File(PathBuf),
}

/// Words that a shell knows itself and that scripts may not use.
const REFUSED: [(&str, &str); 39] = [
    ("eval", "write the command out"),
    ("source", "write its commands out"),
    (".", "write its commands out"),
    ("exec", "leave it out"),
    ("command", "leave it out"),
    ("builtin", "leave it out"),
    ("[", "use `test`"),
    ("set", "use `&&` to stop at a failure"),
    ("shopt", "leave it out"),
    ("unset", "leave it out"),
    ("alias", "write the command out"),
    ("unalias", "leave it out"),
    ("declare", "assign plain values"),
    ("typeset", "assign plain values"),
    ("local", "assign plain values"),
    ("readonly", "assign plain values"),
    ("let", "work it out before"),
    ("read", "use a pipe"),
    ("mapfile", "use a pipe"),
    ("readarray", "use a pipe"),
    ("trap", "leave it out"),
    ("wait", "leave it out"),
    ("jobs", "leave it out"),
    ("fg", "leave it out"),
    ("bg", "leave it out"),
    ("disown", "leave it out"),
    ("pushd", "use `cd`"),
    ("popd", "use `cd`"),
    ("dirs", "use `cd`"),
    ("ulimit", "leave it out"),
    ("umask", "leave it out"),
    ("type", "leave it out"),
    ("hash", "leave it out"),
    ("enable", "leave it out"),
    ("return", "use `exit`"),
    ("break", "leave it out"),
    ("continue", "leave it out"),
    ("shift", "leave it out"),
    ("getopts", "leave it out"),
];

impl State {
    pub(in super::super) fn new(directory: PathBuf, env: &BTreeMap<String, String>) -> Self {
        let exported = |value: &String| Variable { value: value.clone(), exported: true };
        let variables = env.iter().map(|(name, value)| (name.clone(), exported(value))).collect();
        Self { directory, variables }
    }

    /// How many bytes its variables have.
    fn size(&self) -> usize {
        self.variables.iter().map(|(name, variable)| name.len() + variable.value.len()).sum()
    }

    /// The variables that programs get.
    fn exported(&self) -> BTreeMap<String, String> {
        let exported = self.variables.iter().filter(|(name, variable)| variable.exported && !is_loader(name));
        exported.map(|(name, variable)| (name.clone(), variable.value.clone())).collect()
    }

    /// The variables that an act would give to programs and that none of them gets.
    pub(super) fn dropped(act: &Act) -> Vec<String> {
        let names: Vec<&String> = match act {
            Act::Assign(values) => values.iter().map(|(name, _)| name).collect(),
            Act::Export(values) => values.iter().map(|(name, _)| name).collect(),
            Act::Start(_) | Act::Nothing | Act::Answer(_) | Act::Go(_) | Act::Exit(_) => Vec::new(),
        };
        names.into_iter().filter(|name| is_loader(name)).cloned().collect()
    }

    /// Takes over what an act changes; a change of directory is the caller's to make.
    pub(super) fn apply(&mut self, act: &Act, surroundings: &Surroundings) {
        match act {
            Act::Assign(values) => {
                for (name, value) in values {
                    let exported = self.variables.get(name).map_or_else(
                        || surroundings.granted.contains_key(name) || name == "HOME",
                        |known| known.exported,
                    );
                    self.variables.insert(name.clone(), Variable { value: value.clone(), exported });
                }
            }
            Act::Export(values) => {
                for (name, value) in values {
                    let known = self.variables.remove(name).map(|known| known.value);
                    if let Some(value) = value.clone().or(known) {
                        self.variables.insert(name.clone(), Variable { value, exported: true });
                    }
                }
            }
            Act::Start(_) | Act::Nothing | Act::Answer(_) | Act::Go(_) | Act::Exit(_) => {}
        }
    }
}

/// A state among its surroundings, for one command.
pub(super) struct Here<'a> {
    state: &'a State,
    surroundings: &'a Surroundings,
    /// How many bytes may still be filled in.
    left: Cell<usize>,
}

impl<'a> Here<'a> {
    pub(super) const fn new(state: &'a State, surroundings: &'a Surroundings) -> Self {
        Self { state, surroundings, left: Cell::new(MAX_FILLED) }
    }
}

impl Values for Here<'_> {
    type Unknown = Failure;

    fn value(&self, name: &str) -> Result<String, Failure> {
        let granted = || self.surroundings.granted.get(name).map(String::as_str);
        let known = match (self.state.variables.get(name), name) {
            (Some(variable), _) => Some(variable.value.as_str()),
            (None, "PWD") => self.state.directory.to_str(),
            (None, "HOME") => self.surroundings.home.as_deref().or_else(granted),
            (None, _) => granted(),
        };
        let value = known.ok_or_else(|| Failure::Hidden(name.to_owned()))?;
        let Some(left) = self.left.get().checked_sub(value.len()) else {
            let what = format!("a command with more than {MAX_FILLED} bytes of values");
            return Err(Outside::named(&what, "use a file or `stdin`").into());
        };
        self.left.set(left);
        Ok(value.to_owned())
    }
}

impl Here<'_> {
    /// What a command does.
    pub(super) fn act(&self, command: &Simple) -> Result<Act, Failure> {
        let act = self.meant(command)?;
        let added: usize = match &act {
            Act::Assign(values) => values.iter().map(|(name, value)| name.len() + value.len()).sum(),
            Act::Export(values) => {
                values.iter().map(|(name, value)| name.len() + value.as_ref().map_or(0, String::len)).sum()
            }
            Act::Start(_) | Act::Nothing | Act::Answer(_) | Act::Go(_) | Act::Exit(_) => 0,
        };
        if added > 0 && self.state.size() + added > MAX_VARIABLES {
            let what = format!("more than {MAX_VARIABLES} bytes of variables");
            return Err(Outside::named(&what, "use a file or `stdin`").into());
        }
        Ok(act)
    }

    fn meant(&self, command: &Simple) -> Result<Act, Failure> {
        let mut fields = Vec::new();
        for argument in &command.words {
            fields.extend(argument.word.fields(self)?);
        }
        let assign = |(name, word): &(String, Word)| Ok((name.clone(), word.text(self)?));
        let assigned: Vec<(String, String)> =
            command.assignments.iter().map(assign).collect::<Result<_, Failure>>()?;
        let mut fields = fields.into_iter();
        let Some(first) = fields.next() else {
            return Ok(if assigned.is_empty() { Act::Nothing } else { Act::Assign(assigned) });
        };
        if first.pattern.is_some() && first.text != "[" {
            return Err(Outside::named("a pattern as the program", "name the program").into());
        }
        let args: Vec<Field> = fields.collect();
        match first.text.as_str() {
            "true" | ":" => Ok(Act::Answer(true)),
            "false" => Ok(Act::Answer(false)),
            "cd" => self.go(&args),
            "exit" => exit(&args),
            "export" => self.export(command),
            name => match REFUSED.iter().find(|(refused, _)| *refused == name) {
                Some((name, hint)) => Err(Outside::named(&format!("`{name}`"), hint).into()),
                None => Ok(Act::Start(self.start(name, args, assigned))),
            },
        }
    }

    fn start(&self, name: &str, args: Vec<Field>, assigned: Vec<(String, String)>) -> Start {
        let (dropped, assigned): (Vec<_>, Vec<_>) =
            assigned.into_iter().partition(|(name, _)| is_loader(name));
        let mut env = self.state.exported();
        env.extend(assigned);
        // A path with a slash starts at the script's directory; a bare name is looked for where programs are.
        let program =
            if name.contains('/') { clean(&self.state.directory.join(name)) } else { name.to_owned() };
        Start { program, args, env, dropped: dropped.into_iter().map(|(name, _)| name).collect() }
    }

    fn go(&self, args: &[Field]) -> Result<Act, Failure> {
        match args {
            [] => Ok(Act::Go(PathBuf::from(self.value("HOME")?))),
            [directory] if directory.pattern.is_none() && !directory.text.starts_with('-') => {
                Ok(Act::Go(self.state.directory.join(&directory.text)))
            }
            _ => Err(Outside::named("`cd` with more than a directory", "give one plain directory").into()),
        }
    }

    fn export(&self, command: &Simple) -> Result<Act, Failure> {
        let mut values = Vec::new();
        for argument in command.words.iter().skip(1) {
            values.push(match &argument.assignment {
                Some((name, word)) => (name.clone(), Some(word.text(self)?)),
                None => (argument.word.text(self)?, None),
            });
        }
        if values.iter().any(|(name, _)| !super::super::args::is_name(name)) {
            return Err(Outside::named("`export` with options", "write `export NAME=value`").into());
        }
        Ok(Act::Export(values))
    }

    /// Where a redirection leads: exactly one place.
    pub(super) fn redirect_target(&self, word: &Word) -> Result<RedirectTarget, Failure> {
        let fields = word.fields(self)?;
        let [Field { text, pattern: None }] = fields.as_slice() else {
            return Err(Outside::named("a redirection to more or less than one file", "name one file").into());
        };
        Ok(match text.as_str() {
            "/dev/null" => RedirectTarget::Null,
            "/dev/stdout" => RedirectTarget::Output(Output::Stdout),
            "/dev/stderr" => RedirectTarget::Output(Output::Stderr),
            path => RedirectTarget::File(self.state.directory.join(path)),
        })
    }
}

impl Redirect {
    /// The word that names a file, and whether the file is changed.
    pub(super) fn target(&self) -> Option<(&Word, bool)> {
        match self {
            Self::Read(word) => Some((word, false)),
            Self::Write { to, .. } | Self::WriteBoth { to, .. } => Some((to, true)),
            Self::Same { .. } | Self::Text(..) => None,
        }
    }
}

fn exit(args: &[Field]) -> Result<Act, Failure> {
    let code = match args {
        [] => Some(None),
        [code] => code.text.parse().ok().map(Some),
        _ => None,
    };
    let wrong = || Failure::from(Outside::named("`exit` with that code", "give a number up to 255"));
    code.map(Act::Exit).ok_or_else(wrong)
}

/// A path without `.` and doubled slashes; `..` stays, links may lie before it.
fn clean(path: &Path) -> String {
    path.components().collect::<PathBuf>().to_string_lossy().into_owned()
}
