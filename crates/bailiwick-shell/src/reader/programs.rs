//! Programs that run other programs: stripped, entered, or said to hide what they run.

use super::runners::{Runner, Way, is_shell, runners_of, runs_text_in_variable};
use super::word::Field;
use super::{Around, Context, Output, Reader};
use crate::classes::{has_classes, is_known_program};

/// How often a command may be unwrapped.
const MAX_WRAPPERS: usize = 16;
/// How many words are looked at for one that names a program.
const MAX_SEARCHED: usize = 32;

impl Reader {
    /// One command with its words expanded; what it prints, if that is known.
    pub(super) fn run(
        &mut self,
        mut words: Vec<Field>,
        around: Around,
        depth: usize,
        context: &Context,
    ) -> Output {
        for (name, value) in &around.set {
            if runs_text_in_variable(name) && value.contains(' ') {
                self.text(&value.clone(), depth + 1, context);
            }
        }
        for _ in 0..MAX_WRAPPERS {
            let Some(first) = words.first() else {
                self.push(Vec::new(), String::new(), around, context);
                return Some(String::new());
            };
            let path = first.text.clone();
            let Some(program) = program(first) else {
                self.hide(format!("the program `{}` is only known when it runs", first.text));
                self.finish(words, path, around, context);
                return None;
            };
            if let Some(function) = self.functions.get(&path).cloned() {
                self.push(Vec::new(), String::new(), around, context);
                return self.function(&path, &function, Some(words), depth, context);
            }
            if let Some(first) = words.first_mut() {
                first.text.clone_from(&program);
                first.dynamic = false;
            }
            match self.enter(&program, &words, depth, context) {
                Step::Done => {
                    let output = self.builtin(&program, &words, context);
                    if path.contains('/') {
                        self.written_file(&path, depth);
                    }
                    if let Some(text) = &output {
                        self.keep_file(&program, &words, &around, text);
                    }
                    self.finish(words, path, around, context);
                    if let Some(simple) = self.commands.last_mut().filter(|_| output.is_some()) {
                        simple.prints.clone_from(&output);
                    }
                    return output;
                }
                Step::Inner(inner) => words = inner,
                Step::Also(inner) => {
                    self.finish(words, path, Around::default(), context);
                    words = inner;
                }
            }
        }
        self.hide("wrappers nest too deep");
        None
    }

    /// Remembers what the text writes to a file.
    fn keep_file(&mut self, program: &str, words: &[Field], around: &Around, text: &str) {
        let named = words.iter().skip(1).filter(|_| program == "tee").map(|field| &field.text);
        for file in around.writes.iter().chain(named) {
            let path = super::joined(&self.here, file.strip_prefix("./").unwrap_or(file));
            self.files.insert(path, text.to_owned());
        }
    }

    fn finish(&mut self, words: Vec<Field>, path: String, around: Around, context: &Context) {
        self.push(words.into_iter().map(|field| field.text).collect(), path, around, context);
    }

    fn enter(&mut self, program: &str, words: &[Field], depth: usize, context: &Context) -> Step {
        let arguments = words.get(1..).unwrap_or_default();
        match program {
            _ if is_shell(program) => self.shell(arguments, depth, context),
            "eval" => self.joined(arguments, depth, context),
            "source" | "." => self.sourced(arguments, depth, context),
            "find" | "fd" | "fdfind" => {
                self.executed(arguments, depth);
                Step::Done
            }
            "git" => {
                self.texts_within(program, arguments, depth, context);
                plain_git(arguments)
            }
            "export" | "declare" | "typeset" => {
                for field in arguments {
                    if let Some((name, text)) = field.text.split_once('=')
                        && runs_text_in_variable(name)
                    {
                        self.inner_text(&field.with_text(text), depth, context);
                    }
                }
                Step::Done
            }
            _ => self.texts_within(program, arguments, depth, context),
        }
    }

    /// Everything that a program runs in the ways that are known of it.
    fn texts_within(&mut self, program: &str, arguments: &[Field], depth: usize, context: &Context) -> Step {
        let mut step = Step::Done;
        for runner in runners_of(program) {
            match runner.way {
                Way::Rest => step = unwrapped(program, runner, arguments),
                Way::Flag => self.flag_values(runner, arguments, depth, context),
                Way::Text => {
                    let rest = behind(runner, arguments);
                    if !rest.is_empty() {
                        self.joined(rest, depth, context);
                    }
                }
                Way::Texts => {
                    for field in following(runner, arguments).iter().filter(|field| field.text.contains(' '))
                    {
                        self.inner_text(field, depth, context);
                    }
                }
                Way::Search => self.searched(following(runner, arguments), depth, context),
                Way::Key => self.settings(runner, arguments, depth, context),
                Way::Line => self.lines(runner, arguments, depth, context),
                Way::Values => self.named_texts(program, arguments, depth),
                Way::Input => {
                    if let Some(text) = &context.input {
                        self.text(&text.clone(), depth + 1, &Context::default());
                    }
                }
            }
        }
        step
    }

    /// `--flag TEXT`, `--flag=TEXT`, `-c TEXT`, `-xc TEXT`.
    fn flag_values(&mut self, runner: &Runner, arguments: &[Field], depth: usize, context: &Context) {
        let named = |flag: &str, text: &str| {
            text == flag
                || (flag.len() == 2
                    && text.len() <= 6
                    && !text.starts_with("--")
                    && text.starts_with('-')
                    && flag.ends_with(text.chars().last().unwrap_or(' ')))
        };
        let mut texts = Vec::new();
        for (at, field) in arguments.iter().enumerate() {
            if runner.words.iter().any(|flag| named(flag, &field.text)) {
                texts.extend(arguments.get(at + 1).cloned());
            }
            if let Some((flag, text)) = field.text.split_once('=')
                && runner.words.contains(&flag)
            {
                texts.push(field.with_text(text));
            }
        }
        for field in texts {
            let text = field.text.strip_prefix("commands=").or_else(|| field.text.strip_prefix("exec="));
            let text = text.unwrap_or(&field.text).to_owned();
            if !text.starts_with('-') {
                self.inner_text(&field.with_text(&text), depth, context);
            }
        }
    }

    /// The command behind `--`, or from the first word on that names a known program.
    fn searched(&mut self, arguments: &[Field], depth: usize, context: &Context) {
        let behind = arguments.iter().position(|field| field.text == "--").map(|at| at + 1);
        let named = || {
            arguments.iter().take(MAX_SEARCHED).position(|field| {
                !field.text.starts_with('-') && program(field).is_some_and(|name| is_known_program(&name))
            })
        };
        if let Some(command) = behind.or_else(named).and_then(|at| arguments.get(at..))
            && depth < super::MAX_DEPTH
        {
            self.run(command.to_vec(), Around::default(), depth + 1, context);
        }
    }

    /// Settings whose value is run: `key=text`, or `key text`.
    fn settings(&mut self, runner: &Runner, arguments: &[Field], depth: usize, context: &Context) {
        let is_run = |key: &str| runner.words.iter().any(|known| key.starts_with(known));
        let mut texts = Vec::new();
        for (at, field) in arguments.iter().enumerate() {
            match field.text.split_once('=') {
                Some((key, text)) if is_run(key) => texts.push((key.to_owned(), field.with_text(text))),
                Some(_) => {}
                None if is_run(&field.text) => {
                    texts.extend(arguments.get(at + 1).map(|text| (field.text.clone(), text.clone())));
                }
                None => {}
            }
        }
        for (key, field) in texts {
            match field.text.strip_prefix('!') {
                Some(text) => self.inner_text(&field.with_text(text), depth, context),
                None if key.starts_with("alias.") => {}
                None => self.inner_text(&field, depth, context),
            }
        }
    }

    /// Lines of an editor or a client that start a shell.
    fn lines(&mut self, runner: &Runner, arguments: &[Field], depth: usize, context: &Context) {
        let input = context.input.as_deref().unwrap_or_default();
        let given = arguments.iter().map(|field| field.text.trim_start_matches('+'));
        let mut texts = Vec::new();
        for line in given.chain(input.lines()) {
            let rest = runner.words.iter().find_map(|start| line.strip_prefix(start));
            texts.extend(rest.map(|rest| rest.trim_start_matches([' ', '!', ':']).to_owned()));
        }
        for text in texts {
            self.inner_text(&Field::known(&text), depth, &Context::default());
        }
    }

    /// Aliases are texts behind `=`; the text of a trap runs at the end.
    fn named_texts(&mut self, program: &str, arguments: &[Field], depth: usize) {
        for field in arguments {
            if program == "trap" {
                if field.text.contains(' ') {
                    self.at_end.push(field.clone());
                }
            } else if let Some((_, text)) = field.text.split_once('=') {
                self.inner_text(&field.with_text(text), depth, &Context::default());
            }
        }
    }

    /// A shell: its `-c` text, its script, or its input.
    fn shell(&mut self, arguments: &[Field], depth: usize, context: &Context) -> Step {
        let mut at = 0;
        let (mut reads_text, mut reads_input) = (false, false);
        while let Some(field) = arguments.get(at) {
            let Some(letters) = field.text.strip_prefix(['-', '+']).filter(|rest| !rest.is_empty()) else {
                break;
            };
            let long = letters.starts_with('-');
            reads_text |= !long && letters.contains('c') || matches!(letters, "-command" | "-commands");
            reads_input |= !long && letters.contains('s');
            let valued =
                (!long && letters.ends_with(['o', 'O'])) || matches!(letters, "-rcfile" | "-init-file");
            at += if valued { 2 } else { 1 };
            if letters == "-" {
                break;
            }
        }
        match arguments.get(at) {
            Some(text) if reads_text => {
                let given = arguments.get(at + 1..).unwrap_or_default();
                let given = (!given.is_empty()).then(|| given.to_vec());
                let outer = std::mem::replace(&mut self.positional, given);
                let here = self.here.clone();
                self.inner_text(text, depth, context);
                self.here = here;
                self.positional = outer;
            }
            Some(_) if reads_input => self.input(depth, context),
            Some(file) if file.dynamic && file.text.starts_with("/dev/fd/") => {
                self.hide("a shell runs what a command prints");
            }
            Some(file) if matches!(file.text.as_str(), "/dev/stdin" | "-" | "/proc/self/fd/0") => {
                self.input(depth, context);
            }
            Some(file) => self.written_file(&file.text, depth),
            None => self.input(depth, context),
        }
        Step::Done
    }

    /// A script that the text itself has written before.
    fn written_file(&mut self, file: &str, depth: usize) {
        let path = super::joined(&self.here, file.strip_prefix("./").unwrap_or(file));
        if let Some(text) = self.files.get(&path).cloned() {
            self.text(&text, depth + 1, &Context::default());
        }
    }

    /// What a shell that reads its commands gets to read.
    fn input(&mut self, depth: usize, context: &Context) {
        match &context.input {
            Some(text) => drop(self.text(&text.clone(), depth + 1, &Context::default())),
            None if context.piped => self.hide("a shell runs what it reads from a pipe or a file"),
            None => {}
        }
    }

    fn sourced(&mut self, arguments: &[Field], depth: usize, context: &Context) -> Step {
        match arguments.first().map(|field| field.text.as_str()) {
            Some("/dev/stdin" | "/proc/self/fd/0") if context.input.is_some() => self.input(depth, context),
            Some(file) if file.starts_with("/dev/") || file.starts_with("/proc/") => {
                self.hide("the shell runs what a command prints");
            }
            None if context.piped => self.hide("the shell runs what a command prints"),
            Some(file) => self.written_file(file, depth),
            None => {}
        }
        Step::Done
    }

    /// All words as one text.
    fn joined(&mut self, arguments: &[Field], depth: usize, context: &Context) -> Step {
        let text: Vec<&str> = arguments.iter().map(|field| field.text.as_str()).collect();
        let dynamic = arguments.iter().any(|field| field.dynamic);
        let text = text.join(" ");
        let field = if dynamic { Field::unknown(&text) } else { Field::known(&text) };
        self.inner_text(&field, depth, context);
        Step::Done
    }

    pub(super) fn inner_text(&mut self, field: &Field, depth: usize, context: &Context) {
        if field.dynamic {
            self.hide(format!("the text `{}` is only known when it runs", field.text));
        }
        self.text(&field.text, depth + 1, context);
    }

    /// `find … -exec COMMAND ;`, with what is looked for in place of `{}`.
    fn executed(&mut self, arguments: &[Field], depth: usize) {
        let runs = |field: &Field| {
            matches!(
                field.text.as_str(),
                "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch"
            )
        };
        for (at, _) in arguments.iter().enumerate().filter(|(_, field)| runs(field)) {
            let command =
                arguments.iter().skip(at + 1).take_while(|field| !matches!(field.text.as_str(), ";" | "+"));
            let mut command: Vec<Field> = command
                .map(|field| if field.text == "{}" { Field::unknown("$ARGS") } else { field.clone() })
                .collect();
            if !command.iter().any(|field| field.text == "$ARGS") {
                command.push(Field::unknown("$ARGS"));
            }
            if depth < super::MAX_DEPTH {
                self.run(command, Around::default(), depth + 1, &Context::default());
            }
        }
    }
}

enum Step {
    /// It is what it is.
    Done,
    /// Only the inner command counts.
    Inner(Vec<Field>),
    /// Both do.
    Also(Vec<Field>),
}

/// The words behind the first of those that must stand before the command.
fn following<'a>(runner: &Runner, arguments: &'a [Field]) -> &'a [Field] {
    if runner.after.is_empty() {
        return arguments;
    }
    let at = arguments.iter().position(|field| runner.after.contains(&field.text.as_str()));
    at.and_then(|at| arguments.get(at + 1..)).unwrap_or_default()
}

/// The words behind a program's own flags and operands.
fn behind<'a>(runner: &Runner, arguments: &'a [Field]) -> &'a [Field] {
    let mut at = 0;
    while let Some(field) = arguments.get(at) {
        let text = field.text.as_str();
        match text.strip_prefix('-') {
            Some("-") => {
                at += 1;
                break;
            }
            Some(long) if long.starts_with('-') => {
                let name = long.trim_start_matches('-');
                at += if runner.long.contains(&name) { 2 } else { 1 };
            }
            Some(letters) if !letters.is_empty() => {
                let valued = letters.chars().position(|c| runner.valued.contains(c));
                let last = valued.is_some_and(|position| position + 1 == letters.chars().count());
                at += if last { 2 } else { 1 };
            }
            Some(_) => at += 1,
            None if is_assignment(text) => at += 1,
            None => break,
        }
    }
    arguments.get(at + runner.operands..).unwrap_or_default()
}

/// The command behind a wrapper's own flags and operands.
fn unwrapped(program: &str, runner: &Runner, arguments: &[Field]) -> Step {
    let mut inner: Vec<Field> = behind(runner, arguments).to_vec();
    if inner.is_empty() {
        return Step::Done;
    }
    if program == "xargs" {
        let mark = replaced_mark(arguments);
        for field in inner.iter_mut().skip(1) {
            if let Some(mark) = mark.as_deref().filter(|mark| field.text.contains(mark)) {
                *field = Field::unknown(&field.text.replace(mark, "$ARGS"));
            }
        }
        inner.push(Field::unknown("$ARGS"));
    }
    let own: Vec<String> = arguments.iter().map(|field| field.text.clone()).collect();
    if has_classes(program, &own) { Step::Also(inner) } else { Step::Inner(inner) }
}

/// What `xargs -I MARK` puts its input in place of.
fn replaced_mark(arguments: &[Field]) -> Option<String> {
    let mut words = arguments.iter().map(|field| field.text.as_str());
    while let Some(word) = words.next() {
        if word == "-I" {
            return words.next().map(str::to_owned);
        }
        if let Some(mark) = word.strip_prefix("-I").or_else(|| word.strip_prefix("--replace=")) {
            return Some(mark.to_owned());
        }
    }
    None
}

/// The base name of a program, if the text says it.
fn program(field: &Field) -> Option<String> {
    let name = field.text.rsplit('/').next().unwrap_or_default();
    let hidden = name.contains('$') && field.dynamic || matches!(name, "{}" | "%");
    let globbed = field.glob && name.contains(['*', '?', '[']) && name != "[" && name != "[[";
    (!hidden && !globbed && !name.is_empty()).then(|| name.to_owned())
}

fn is_assignment(text: &str) -> bool {
    let name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    text.split_once('=').is_some_and(|(before, _)| name(before))
}

/// `git` without the flags that stand before its subcommand.
fn plain_git(arguments: &[Field]) -> Step {
    let mut at = 0;
    while let Some(field) = arguments.get(at).filter(|field| field.text.starts_with('-')) {
        let valued = matches!(
            field.text.as_str(),
            "-C" | "-c"
                | "--git-dir"
                | "--work-tree"
                | "--namespace"
                | "--exec-path"
                | "--config-env"
                | "--super-prefix"
        );
        at += if valued { 2 } else { 1 };
    }
    let inner: Vec<Field> = arguments.iter().skip(at).cloned().collect();
    if at == 0 || inner.is_empty() {
        return Step::Done;
    }
    let git = Field::known("git");
    Step::Also(std::iter::once(git).chain(inner).collect())
}
