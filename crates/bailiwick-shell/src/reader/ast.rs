//! The walk through a syntax tree: every list, branch, loop, function and substitution is run sooner or later.

use std::rc::Rc;

use brush_parser::ast;

use super::word::Field;
use super::{Around, Context, Held, MAX_KNOWN, MAX_STEPS, Output, Reader};

/// How many values a loop is walked with, one after the other.
const MAX_LOOPS: usize = 8;
/// How deep functions may call functions.
const MAX_CALLS: usize = 8;

impl Reader {
    pub(super) fn program(&mut self, program: &ast::Program, depth: usize, context: &Context) -> Output {
        let mut output = Some(String::new());
        for list in &program.complete_commands {
            output = both(output, self.list(list, depth, context));
        }
        output
    }

    fn list(&mut self, list: &ast::CompoundList, depth: usize, context: &Context) -> Output {
        let mut output = Some(String::new());
        for ast::CompoundListItem(and_or, _) in &list.0 {
            let mut printed = self.pipeline(&and_or.first, depth, context);
            for next in &and_or.additional {
                match next {
                    ast::AndOr::And(pipeline) => {
                        printed = both(printed, self.pipeline(pipeline, depth, context));
                    }
                    ast::AndOr::Or(pipeline) => {
                        self.pipeline(pipeline, depth, context);
                        printed = None;
                    }
                }
            }
            output = both(output, printed);
        }
        output
    }

    /// Every command of a pipeline reads what the one before it prints; a directory changes only outside of pipes.
    fn pipeline(&mut self, pipeline: &ast::Pipeline, depth: usize, context: &Context) -> Output {
        if self.steps > MAX_STEPS {
            return None;
        }
        let (here, alone) = (self.here.clone(), pipeline.seq.len() < 2);
        let (mut context, mut output) = (context.clone(), None);
        for command in &pipeline.seq {
            let first = self.commands.len();
            output = self.command(command, depth, &context);
            let fed_by = first..self.commands.len();
            context = Context { piped: true, input: output.clone(), fed_by };
        }
        if !alone {
            self.here = here;
        }
        output
    }

    fn command(&mut self, command: &ast::Command, depth: usize, context: &Context) -> Output {
        match command {
            ast::Command::Simple(simple) => self.simple(simple, depth, context),
            ast::Command::Compound(compound, redirects) => {
                let (context, written) = self.redirects(redirects.as_ref(), depth, context);
                let output = self.compound(compound, depth, &context);
                if written { Some(String::new()) } else { output }
            }
            ast::Command::Function(function) => {
                self.functions.insert(function.fname.value.clone(), Rc::new(function.clone()));
                Some(String::new())
            }
            ast::Command::ExtendedTest(test) => {
                self.substitutions(&test.to_string(), depth);
                Some(String::new())
            }
        }
    }

    /// The body of a function, with these arguments if they are known.
    pub(super) fn function(
        &mut self,
        name: &str,
        function: &ast::FunctionDefinition,
        arguments: Option<Vec<Field>>,
        depth: usize,
        context: &Context,
    ) -> Output {
        if self.walking.iter().any(|one| one == name) {
            // What it does when it starts itself has been seen.
            return None;
        }
        if self.walking.len() >= MAX_CALLS {
            self.hide("functions call functions too deep");
            return None;
        }
        self.called.insert(name.to_owned());
        self.walking.push(name.to_owned());
        let outer = std::mem::replace(&mut self.positional, arguments);
        let (context, written) = self.redirects(function.body.1.as_ref(), depth, context);
        let output = self.compound(&function.body.0, depth, &context);
        self.positional = outer;
        self.walking.pop();
        if written { Some(String::new()) } else { output }
    }

    fn compound(&mut self, compound: &ast::CompoundCommand, depth: usize, context: &Context) -> Output {
        use ast::CompoundCommand as Kind;
        match compound {
            Kind::Arithmetic(arithmetic) => self.substitutions(&arithmetic.expr.value, depth),
            Kind::ArithmeticForClause(clause) => {
                for part in [&clause.initializer, &clause.condition, &clause.updater].into_iter().flatten() {
                    self.substitutions(&part.value, depth);
                }
                self.list(&clause.body.list, depth, context);
            }
            Kind::BraceGroup(group) => return self.list(&group.list, depth, context),
            Kind::Subshell(subshell) => {
                let here = self.here.clone();
                let output = self.list(&subshell.list, depth, context);
                self.here = here;
                return output;
            }
            Kind::ForClause(clause) => self.each_value(clause, depth, context),
            Kind::CaseClause(clause) => {
                self.substitutions(&clause.value.value, depth);
                for case in &clause.cases {
                    case.cmd.iter().for_each(|list| drop(self.list(list, depth, context)));
                }
            }
            Kind::IfClause(clause) => {
                self.list(&clause.condition, depth, context);
                self.list(&clause.then, depth, context);
                for branch in clause.elses.iter().flatten() {
                    branch.condition.iter().for_each(|list| drop(self.list(list, depth, context)));
                    self.list(&branch.body, depth, context);
                }
            }
            Kind::WhileClause(clause) | Kind::UntilClause(clause) => {
                self.list(&clause.0, depth, context);
                self.list(&clause.1.list, depth, context);
            }
        }
        None
    }

    /// A loop is walked with each of its few values; with an unknown one if there are many.
    fn each_value(&mut self, clause: &ast::ForClauseCommand, depth: usize, context: &Context) {
        let words: Vec<Field> =
            clause.values.iter().flatten().flat_map(|word| self.expand(&word.value, depth)).collect();
        let known = !words.is_empty() && words.len() <= MAX_LOOPS && words.iter().all(|word| !word.dynamic);
        let values: Vec<Held> = if known {
            words.into_iter().map(|word| Held::Text(word.text)).collect()
        } else {
            vec![Held::Unknown]
        };
        for value in values {
            if !self.step() {
                return;
            }
            self.values.insert(clause.variable_name.clone(), value);
            self.list(&clause.body.list, depth, context);
        }
    }

    fn simple(&mut self, simple: &ast::SimpleCommand, depth: usize, context: &Context) -> Output {
        if !self.step() {
            return None;
        }
        let mut context = context.clone();
        let (mut words, mut around) = (Vec::new(), Around::default());
        let named = simple.word_or_name.is_some();
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.item(item, depth, &mut words, &mut around, &mut context, !named);
        }
        words.extend(simple.word_or_name.iter().flat_map(|word| self.expand(&word.value, depth)));
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, depth, &mut words, &mut around, &mut context, false);
        }
        let written = !around.writes.is_empty();
        let output = self.run(words, around, depth, &context);
        if written { Some(String::new()) } else { output.filter(|text| text.len() <= MAX_KNOWN) }
    }

    /// One part of a command; `sticks` says that an assignment outlives the command.
    fn item(
        &mut self,
        item: &ast::CommandPrefixOrSuffixItem,
        depth: usize,
        words: &mut Vec<Field>,
        around: &mut Around,
        context: &mut Context,
        sticks: bool,
    ) {
        use ast::CommandPrefixOrSuffixItem as Item;
        match item {
            Item::IoRedirect(redirect) => self.redirect(redirect, depth, around, context),
            Item::Word(word) => words.extend(self.expand(&word.value, depth)),
            Item::AssignmentWord(assignment, word) => {
                self.assign(assignment, depth);
                if sticks {
                    return;
                }
                let field = self.expand_quoted(&word.value, depth);
                // An argument of `export`, `alias` or `env` rather than an assignment of its own.
                if !words.is_empty() {
                    words.push(field);
                } else if let Some((name, value)) = field.text.split_once('=') {
                    around.set.push((name.to_owned(), value.to_owned()));
                }
            }
            Item::ProcessSubstitution(_, subshell) => {
                let here = self.here.clone();
                self.list(&subshell.list, depth, &Context::default());
                self.here = here;
                words.push(Field::unknown("/dev/fd/substituted"));
            }
        }
    }

    fn assign(&mut self, assignment: &ast::Assignment, depth: usize) {
        let ast::AssignmentName::VariableName(name) = &assignment.name else { return };
        let value = match &assignment.value {
            ast::AssignmentValue::Scalar(word) => {
                let field = self.expand_quoted(&word.value, depth);
                match self.values.get(name) {
                    _ if field.dynamic => Held::Unknown,
                    Some(Held::Text(before)) if assignment.append => {
                        Held::Text(format!("{before}{}", field.text))
                    }
                    _ if assignment.append => Held::Unknown,
                    Some(_) | None => Held::Text(field.text),
                }
            }
            ast::AssignmentValue::Array(words) => {
                let fields: Vec<Field> =
                    words.iter().flat_map(|(_, word)| self.expand(&word.value, depth)).collect();
                let known = !assignment.append && fields.iter().all(|field| !field.dynamic);
                if known {
                    Held::List(fields.into_iter().map(|field| field.text).collect())
                } else {
                    Held::Unknown
                }
            }
        };
        self.hold(name, value, assignment.append);
    }

    /// Of two values, it may be either when the text branches.
    pub(super) fn hold(&mut self, name: &str, value: Held, replaces: bool) {
        let known = match self.values.get(name) {
            Some(before) if !replaces && *before != value => Held::Unknown,
            Some(_) | None => value,
        };
        self.values.insert(name.to_owned(), known);
    }

    /// The input of a compound command, and whether it writes to a file.
    fn redirects(
        &mut self,
        list: Option<&ast::RedirectList>,
        depth: usize,
        context: &Context,
    ) -> (Context, bool) {
        let (mut context, mut around) = (context.clone(), Around::default());
        for redirect in list.iter().flat_map(|list| &list.0) {
            self.redirect(redirect, depth, &mut around, &mut context);
        }
        let written = !around.writes.is_empty();
        self.push(Vec::new(), String::new(), around, &context);
        (context, written)
    }

    fn redirect(
        &mut self,
        redirect: &ast::IoRedirect,
        depth: usize,
        around: &mut Around,
        context: &mut Context,
    ) {
        use ast::{IoFileRedirectKind as Kind, IoFileRedirectTarget as Target};
        let from_file = || Context { piped: true, ..Context::default() };
        match redirect {
            ast::IoRedirect::File(_, kind, Target::Filename(word) | Target::Duplicate(word)) => {
                let files = self.expand(&word.value, depth).into_iter().map(|field| field.text);
                let mut files: Vec<String> = files.filter(|file| !is_descriptor(file)).collect();
                if matches!(kind, Kind::Read | Kind::ReadAndWrite) {
                    *context = from_file();
                    around.reads.extend(files.iter().cloned());
                }
                if !matches!(kind, Kind::Read | Kind::DuplicateInput) {
                    around.writes.append(&mut files);
                }
            }
            ast::IoRedirect::File(_, _, Target::Fd(_)) => {}
            ast::IoRedirect::File(_, kind, Target::ProcessSubstitution(_, subshell)) => {
                let piped = matches!(kind, Kind::Write | Kind::Append | Kind::Clobber);
                let first = self.commands.len();
                self.list(&subshell.list, depth, &Context { piped, ..Context::default() });
                if matches!(kind, Kind::Read) {
                    *context = Context { fed_by: first..self.commands.len(), ..from_file() };
                }
            }
            ast::IoRedirect::HereDocument(_, document) => {
                if document.requires_expansion {
                    self.substitutions(&document.doc.value, depth);
                }
                *context = Context { input: Some(document.doc.value.clone()), ..from_file() };
            }
            ast::IoRedirect::HereString(_, word) => {
                let field = self.expand_quoted(&word.value, depth);
                let input = (!field.dynamic).then_some(field.text);
                *context = Context { input, ..from_file() };
            }
            ast::IoRedirect::OutputAndError(word, _) => {
                around.writes.extend(self.expand(&word.value, depth).into_iter().map(|field| field.text));
            }
        }
    }
}

/// One output after the other, if both are known.
fn both(first: Output, second: Output) -> Output {
    let mut joined = first?;
    joined += &second?;
    (joined.len() <= MAX_KNOWN).then_some(joined)
}

/// `2>&1` and `>&-` write to no file.
fn is_descriptor(word: &str) -> bool {
    word == "-" || word.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit())
}
