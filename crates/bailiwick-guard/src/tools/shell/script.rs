//! Scripts: the part of the shell's language whose every program and file is known before anything runs.
//!
//! A text is read into [`Script`]; what lies outside the subset is refused by its name. [`admit`] walks every way that
//! the script can take and asks for each program, file and directory on it, all before the first one starts; [`execute`]
//! then takes one of those ways.
//!
//! Fails closed when: anything is outside, unknown or denied. Then nothing has run and no file was made.

mod act;
mod admit;
mod execute;
mod glob;
mod reach;
mod words;

pub(super) use act::{State, Surroundings};
pub(super) use admit::admit;
pub(super) use execute::{Ending, Execution, Last, StdioFds};

use brush_parser::ast;

use self::words::Word;
use crate::tool::ToolError;
use bailiwick_shell::parse;

/// How many commands and redirections one pipeline may have.
const MAX_SIDE_BY_SIDE: usize = 32;

/// A script of the subset.
#[derive(Debug)]
pub(super) struct Script(Vec<Chain>);

/// Pipelines joined by `&&` and `||`.
#[derive(Debug)]
struct Chain {
    first: Pipeline,
    rest: Vec<(Joint, Pipeline)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joint {
    And,
    Or,
}

#[derive(Debug)]
struct Pipeline {
    negated: bool,
    commands: Vec<Simple>,
}

/// One command: `A=x program args > file`.
#[derive(Debug, Default)]
struct Simple {
    assignments: Vec<(String, Word)>,
    words: Vec<Argument>,
    redirects: Vec<Redirect>,
}

/// A word of a command, and the assignment that it is for commands which take assignments.
#[derive(Debug)]
struct Argument {
    word: Word,
    assignment: Option<(String, Word)>,
}

#[derive(Debug)]
enum Redirect {
    Read(Word),
    Write {
        from: Output,
        to: Word,
        append: bool,
    },
    /// `&>`: both streams.
    WriteBoth {
        to: Word,
        append: bool,
    },
    /// `2>&1`
    Same {
        from: Output,
        to: Output,
    },
    /// A document, or a here-string with its newline.
    Text(Word, &'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Stdout,
    Stderr,
}

/// Something that scripts may not hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outside(String);

impl Outside {
    fn named(what: &str, hint: &str) -> Self {
        Self(format!(
            "shell: {what} is outside of what a script may hold: {hint}, or use `engine: \"bash\"` if `bash` is granted"
        ))
    }

    fn substitution(what: &str) -> Self {
        let hint = "run it in a call of its own and use its output";
        Self::named(&format!("command substitution `{what}`"), hint)
    }
}

impl From<Outside> for ToolError {
    fn from(outside: Outside) -> Self {
        Self::failed(outside.0)
    }
}

impl Script {
    /// Reads a text.
    pub(super) fn read(text: &str) -> Result<Self, Outside> {
        let program =
            parse::program(text).map_err(|why| Outside(format!("shell: the script cannot run: {why}")))?;
        let items = program.complete_commands.iter().flat_map(|list| &list.0);
        items.map(Chain::read).collect::<Result<_, _>>().map(Self)
    }
}

impl Chain {
    fn read(ast::CompoundListItem(list, separator): &ast::CompoundListItem) -> Result<Self, Outside> {
        if matches!(separator, ast::SeparatorOperator::Async) {
            return Err(Outside::named("`&`, a command in the background,", "let it run to its end"));
        }
        let rest = list.additional.iter().map(|next| match next {
            ast::AndOr::And(pipeline) => Ok((Joint::And, Pipeline::read(pipeline)?)),
            ast::AndOr::Or(pipeline) => Ok((Joint::Or, Pipeline::read(pipeline)?)),
        });
        Ok(Self { first: Pipeline::read(&list.first)?, rest: rest.collect::<Result<_, _>>()? })
    }
}

impl Pipeline {
    fn read(pipeline: &ast::Pipeline) -> Result<Self, Outside> {
        if pipeline.timed.is_some() {
            return Err(Outside::named("`time`", "leave it out"));
        }
        let commands = pipeline.seq.iter().map(Simple::of_command).collect::<Result<Vec<_>, _>>()?;
        // Each command is a sandbox, and each file has a thread that carries its bytes, all at the same time.
        let files: usize = commands.iter().map(|command| command.redirects.len()).sum();
        if commands.len() > MAX_SIDE_BY_SIDE || files > MAX_SIDE_BY_SIDE {
            let what = format!("a pipeline of more than {MAX_SIDE_BY_SIDE} commands or redirections");
            return Err(Outside::named(&what, "make several of it"));
        }
        Ok(Self { negated: pipeline.bang, commands })
    }
}

impl Simple {
    fn of_command(command: &ast::Command) -> Result<Self, Outside> {
        use ast::CompoundCommand as Kind;
        let (what, hint) = match command {
            ast::Command::Simple(simple) => return Self::read(simple),
            ast::Command::Function(_) => ("a function", "write its commands out"),
            ast::Command::ExtendedTest(_) => ("`[[ ]]`", "use `test`"),
            ast::Command::Compound(compound, _) => match compound {
                Kind::Arithmetic(_) => ("arithmetic `(( ))`", "work it out before"),
                Kind::ArithmeticForClause(_) | Kind::ForClause(_) => ("`for`", "write its commands out"),
                Kind::BraceGroup(_) => ("a group `{ }`", "write its commands out"),
                Kind::Subshell(_) => ("a subshell `( )`", "write its commands out"),
                Kind::CaseClause(_) => ("`case`", "use `&&` and `||`"),
                Kind::IfClause(_) => ("`if`", "use `&&` and `||`"),
                Kind::WhileClause(_) => ("`while`", "write its commands out"),
                Kind::UntilClause(_) => ("`until`", "write its commands out"),
            },
        };
        Err(Outside::named(what, hint))
    }

    fn read(simple: &ast::SimpleCommand) -> Result<Self, Outside> {
        use ast::CommandPrefixOrSuffixItem as Item;
        let mut read = Self::default();
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                Item::AssignmentWord(assignment, _) => read.assignments.push(assigned(assignment)?),
                Item::IoRedirect(_) | Item::Word(_) | Item::ProcessSubstitution(..) => read.take(item)?,
            }
        }
        if let Some(name) = &simple.word_or_name {
            read.words.push(Argument { word: Word::read(&name.value)?, assignment: None });
        }
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            read.take(item)?;
        }
        Ok(read)
    }

    fn take(&mut self, item: &ast::CommandPrefixOrSuffixItem) -> Result<(), Outside> {
        use ast::CommandPrefixOrSuffixItem as Item;
        match item {
            Item::IoRedirect(redirect) => self.redirects.push(Redirect::read(redirect)?),
            Item::Word(word) => {
                self.words.push(Argument { word: Word::read(&word.value)?, assignment: None })
            }
            Item::AssignmentWord(assignment, word) => {
                self.words
                    .push(Argument { word: Word::read(&word.value)?, assignment: assigned(assignment).ok() });
            }
            Item::ProcessSubstitution(..) => return Err(process_substitution()),
        }
        Ok(())
    }
}

fn assigned(assignment: &ast::Assignment) -> Result<(String, Word), Outside> {
    match (&assignment.name, &assignment.value) {
        (ast::AssignmentName::VariableName(name), ast::AssignmentValue::Scalar(word))
            if !assignment.append =>
        {
            Ok((name.clone(), Word::read(&word.value)?))
        }
        _ => Err(Outside::named("`+=` or an array", "assign plain values")),
    }
}

fn process_substitution() -> Outside {
    Outside::named("process substitution `<( )`", "use a pipe or a file")
}

impl Redirect {
    fn read(redirect: &ast::IoRedirect) -> Result<Self, Outside> {
        match redirect {
            ast::IoRedirect::OutputAndError(word, append) => {
                Ok(Self::WriteBoth { to: Word::read(&word.value)?, append: *append })
            }
            ast::IoRedirect::HereString(number, word) => {
                input(*number)?;
                Ok(Self::Text(Word::read(&word.value)?, "\n"))
            }
            ast::IoRedirect::HereDocument(number, document) => {
                input(*number)?;
                let text = Word::read_document(&document.doc.value, document.requires_expansion)?;
                Ok(Self::Text(text, ""))
            }
            ast::IoRedirect::File(number, kind, target) => Self::read_file(*number, kind, target),
        }
    }

    fn read_file(
        number: Option<i32>,
        kind: &ast::IoFileRedirectKind,
        target: &ast::IoFileRedirectTarget,
    ) -> Result<Self, Outside> {
        use ast::{IoFileRedirectKind as Kind, IoFileRedirectTarget as Target};
        let word = match target {
            Target::Filename(word) | Target::Duplicate(word) => word.value.as_str(),
            Target::Fd(number) => &number.to_string(),
            Target::ProcessSubstitution(..) => return Err(process_substitution()),
        };
        match kind {
            Kind::Read => {
                input(number)?;
                Ok(Self::Read(Word::read(word)?))
            }
            Kind::Write | Kind::Clobber | Kind::Append => Ok(Self::Write {
                from: output(number)?,
                to: Word::read(word)?,
                append: matches!(kind, Kind::Append),
            }),
            Kind::DuplicateOutput => match word {
                "1" | "2" => {
                    let to = if word == "1" { Output::Stdout } else { Output::Stderr };
                    Ok(Self::Same { from: output(number)?, to })
                }
                _ if number.is_some() || word.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                    Err(descriptor(word))
                }
                _ => Ok(Self::WriteBoth { to: Word::read(word)?, append: false }),
            },
            Kind::ReadAndWrite => Err(Outside::named("`<>`", "use `<` or `>`")),
            Kind::DuplicateInput => Err(Outside::named("`<&`", "use `<`")),
        }
    }
}

fn input(number: Option<i32>) -> Result<(), Outside> {
    match number {
        None | Some(0) => Ok(()),
        Some(other) => Err(descriptor(&other.to_string())),
    }
}

fn output(number: Option<i32>) -> Result<Output, Outside> {
    match number {
        None | Some(1) => Ok(Output::Stdout),
        Some(2) => Ok(Output::Stderr),
        Some(other) => Err(descriptor(&other.to_string())),
    }
}

fn descriptor(which: &str) -> Outside {
    Outside::named(&format!("descriptor `{which}`"), "only 0, 1 and 2 are redirected")
}
