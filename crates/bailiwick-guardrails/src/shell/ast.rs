//! The walk through a syntax tree: every list, branch, loop, function and substitution is run sooner or later.

use brush_parser::ast;

use super::{Context, Reader};

impl Reader {
    pub(super) fn program(&mut self, program: &ast::Program, depth: usize, context: &Context) {
        for list in &program.complete_commands {
            self.list(list, depth, context);
        }
    }

    fn list(&mut self, list: &ast::CompoundList, depth: usize, context: &Context) {
        for ast::CompoundListItem(and_or, _) in &list.0 {
            self.pipeline(&and_or.first, depth, context);
            for next in &and_or.additional {
                let (ast::AndOr::And(pipeline) | ast::AndOr::Or(pipeline)) = next;
                self.pipeline(pipeline, depth, context);
            }
        }
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline, depth: usize, context: &Context) {
        for (position, command) in pipeline.seq.iter().enumerate() {
            let piped = Context { piped: true, input: None };
            self.command(command, depth, if position == 0 { context } else { &piped });
        }
    }

    fn command(&mut self, command: &ast::Command, depth: usize, context: &Context) {
        match command {
            ast::Command::Simple(simple) => self.simple(simple, depth, context),
            ast::Command::Compound(compound, redirects) => {
                let context = self.redirects(redirects.as_ref(), depth, context);
                self.compound(compound, depth, &context);
            }
            ast::Command::Function(function) => {
                let context = self.redirects(function.body.1.as_ref(), depth, context);
                self.compound(&function.body.0, depth, &context);
            }
            ast::Command::ExtendedTest(test) => self.substitutions(&test.to_string(), depth),
        }
    }

    fn compound(&mut self, compound: &ast::CompoundCommand, depth: usize, context: &Context) {
        use ast::CompoundCommand as Kind;
        match compound {
            Kind::Arithmetic(arithmetic) => self.substitutions(&arithmetic.expr.value, depth),
            Kind::ArithmeticForClause(clause) => {
                for part in [&clause.initializer, &clause.condition, &clause.updater].into_iter().flatten() {
                    self.substitutions(&part.value, depth);
                }
                self.list(&clause.body.list, depth, context);
            }
            Kind::BraceGroup(group) => self.list(&group.list, depth, context),
            Kind::Subshell(subshell) => self.list(&subshell.list, depth, context),
            Kind::ForClause(clause) => {
                self.loop_values(clause, depth);
                self.list(&clause.body.list, depth, context);
            }
            Kind::CaseClause(clause) => {
                self.substitutions(&clause.value.value, depth);
                for case in &clause.cases {
                    case.cmd.iter().for_each(|list| self.list(list, depth, context));
                }
            }
            Kind::IfClause(clause) => {
                self.list(&clause.condition, depth, context);
                self.list(&clause.then, depth, context);
                for branch in clause.elses.iter().flatten() {
                    branch.condition.iter().for_each(|list| self.list(list, depth, context));
                    self.list(&branch.body, depth, context);
                }
            }
            Kind::WhileClause(clause) | Kind::UntilClause(clause) => {
                self.list(&clause.0, depth, context);
                self.list(&clause.1.list, depth, context);
            }
        }
    }

    /// The variable of a loop has the value of its only word, else one that is not known.
    fn loop_values(&mut self, clause: &ast::ForClauseCommand, depth: usize) {
        let words: Vec<_> =
            clause.values.iter().flatten().flat_map(|word| self.expand(&word.value, depth)).collect();
        let value = match &words[..] {
            [only] if !only.dynamic => Some(only.text.clone()),
            _ => None,
        };
        self.values.insert(clause.variable_name.clone(), value);
    }

    fn simple(&mut self, simple: &ast::SimpleCommand, depth: usize, context: &Context) {
        let mut context = context.clone();
        let (mut words, mut writes) = (Vec::new(), Vec::new());
        let named = simple.word_or_name.is_some();
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.item(item, depth, &mut words, &mut writes, &mut context, !named);
        }
        words.extend(simple.word_or_name.iter().flat_map(|word| self.expand(&word.value, depth)));
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, depth, &mut words, &mut writes, &mut context, false);
        }
        self.run(words, writes, depth, &context);
    }

    /// One part of a command; `sticks` says that an assignment outlives the command.
    fn item(
        &mut self,
        item: &ast::CommandPrefixOrSuffixItem,
        depth: usize,
        words: &mut Vec<super::word::Field>,
        writes: &mut Vec<String>,
        context: &mut Context,
        sticks: bool,
    ) {
        use ast::CommandPrefixOrSuffixItem as Item;
        match item {
            Item::IoRedirect(redirect) => self.redirect(redirect, depth, writes, context),
            Item::Word(word) => words.extend(self.expand(&word.value, depth)),
            Item::AssignmentWord(assignment, word) => {
                self.assign(assignment, depth);
                // An argument of `export`, `alias` or `env` rather than an assignment of its own.
                if !sticks && !words.is_empty() {
                    words.extend(self.expand(&word.value, depth));
                }
            }
            Item::ProcessSubstitution(_, subshell) => {
                self.list(&subshell.list, depth, &Context::default());
                words.push(super::word::Field::unknown("/dev/fd/substituted"));
            }
        }
    }

    fn assign(&mut self, assignment: &ast::Assignment, depth: usize) {
        let ast::AssignmentName::VariableName(name) = &assignment.name else { return };
        let value = match &assignment.value {
            ast::AssignmentValue::Scalar(word) => {
                let fields = self.expand_quoted(&word.value, depth);
                (!fields.dynamic && !assignment.append).then_some(fields.text)
            }
            ast::AssignmentValue::Array(words) => {
                words.iter().for_each(|(_, word)| self.substitutions(&word.value, depth));
                None
            }
        };
        // Of two values, it may be either when the text branches.
        let known = match (self.values.get(name), &value) {
            (Some(before), now) if before != now => None,
            (Some(_) | None, _) => value,
        };
        self.values.insert(name.clone(), known);
    }

    fn redirects(&mut self, list: Option<&ast::RedirectList>, depth: usize, context: &Context) -> Context {
        let (mut context, mut writes) = (context.clone(), Vec::new());
        for redirect in list.iter().flat_map(|list| &list.0) {
            self.redirect(redirect, depth, &mut writes, &mut context);
        }
        self.push(Vec::new(), writes);
        context
    }

    fn redirect(
        &mut self,
        redirect: &ast::IoRedirect,
        depth: usize,
        writes: &mut Vec<String>,
        context: &mut Context,
    ) {
        use ast::{IoFileRedirectKind as Kind, IoFileRedirectTarget as Target};
        match redirect {
            ast::IoRedirect::File(_, kind, Target::Filename(word) | Target::Duplicate(word)) => {
                let fields = self.expand(&word.value, depth);
                match kind {
                    Kind::Read => *context = Context { piped: true, input: None },
                    Kind::DuplicateInput => {}
                    Kind::Write
                    | Kind::Append
                    | Kind::ReadAndWrite
                    | Kind::Clobber
                    | Kind::DuplicateOutput => {
                        let files = fields.into_iter().map(|field| field.text);
                        writes.extend(files.filter(|file| !is_descriptor(file)));
                    }
                }
            }
            ast::IoRedirect::File(_, _, Target::Fd(_)) => {}
            ast::IoRedirect::File(_, kind, Target::ProcessSubstitution(_, subshell)) => {
                let piped = matches!(kind, Kind::Write | Kind::Append | Kind::Clobber);
                self.list(&subshell.list, depth, &Context { piped, input: None });
                if matches!(kind, Kind::Read) {
                    *context = Context { piped: true, input: None };
                }
            }
            ast::IoRedirect::HereDocument(_, document) => {
                if document.requires_expansion {
                    self.substitutions(&document.doc.value, depth);
                }
                *context = Context { piped: true, input: Some(document.doc.value.clone()) };
            }
            ast::IoRedirect::HereString(_, word) => {
                let field = self.expand_quoted(&word.value, depth);
                let input = (!field.dynamic).then_some(field.text);
                *context = Context { piped: true, input };
            }
            ast::IoRedirect::OutputAndError(word, _) => {
                writes.extend(self.expand(&word.value, depth).into_iter().map(|field| field.text));
            }
        }
    }
}

/// `2>&1` and `>&-` write to no file.
fn is_descriptor(word: &str) -> bool {
    word == "-" || word.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit())
}
