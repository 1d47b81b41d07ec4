//! Programs that run other programs: stripped, entered, or said to hide what they run.

use super::word::Field;
use super::{Context, Reader};

/// A program that runs the rest of its words.
struct Wrapper {
    name: &'static str,
    /// Short flags that take the next word as their value.
    valued: &'static str,
    /// Long flags that do.
    long: &'static [&'static str],
    /// Words that come before the command.
    operands: usize,
}

const fn wrapper(name: &'static str, valued: &'static str, operands: usize) -> Wrapper {
    Wrapper { name, valued, long: &[], operands }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("command", "", 0),
    wrapper("builtin", "", 0),
    wrapper("exec", "a", 0),
    wrapper("coproc", "", 0),
    wrapper("nohup", "", 0),
    wrapper("setsid", "", 0),
    wrapper("time", "fo", 0),
    Wrapper {
        name: "sudo",
        valued: "ugpChrtTUDR",
        long: &["user", "group", "prompt", "chdir", "host"],
        operands: 0,
    },
    wrapper("doas", "uCa", 0),
    Wrapper { name: "env", valued: "uC", long: &["unset", "chdir"], operands: 0 },
    Wrapper { name: "timeout", valued: "sk", long: &["signal", "kill-after"], operands: 1 },
    Wrapper { name: "nice", valued: "n", long: &["adjustment"], operands: 0 },
    wrapper("ionice", "cnpPu", 0),
    wrapper("chrt", "TPD", 1),
    wrapper("taskset", "", 1),
    wrapper("stdbuf", "ioe", 0),
    Wrapper {
        name: "xargs",
        valued: "adEILnPs",
        long: &["arg-file", "delimiter", "max-args", "max-procs", "max-lines", "replace", "max-chars"],
        operands: 0,
    },
    wrapper("parallel", "jNnLSa", 0),
    wrapper("busybox", "", 0),
    wrapper("toybox", "", 0),
    wrapper("strace", "eopsuEaIOPSXb", 0),
    wrapper("ltrace", "eopsunlx", 0),
    wrapper("unshare", "SGRw", 0),
    wrapper("nsenter", "tSG", 0),
    wrapper("chroot", "", 1),
    wrapper("flock", "wEc", 1),
    wrapper("fakeroot", "lsi", 0),
    wrapper("systemd-run", "puM", 0),
    wrapper("runuser", "ugG", 0),
    wrapper("caffeinate", "tw", 0),
    wrapper("unbuffer", "", 0),
    wrapper("catchsegv", "", 0),
    wrapper("setarch", "", 0),
    wrapper("prlimit", "", 0),
    wrapper("proxychains", "f", 0),
    wrapper("rlwrap", "", 0),
    wrapper("faketime", "", 1),
];

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish"];

/// How often a command may be unwrapped.
const MAX_WRAPPERS: usize = 16;

impl Reader {
    /// One command with its words expanded.
    pub(super) fn run(
        &mut self,
        mut words: Vec<Field>,
        writes: Vec<String>,
        depth: usize,
        context: &Context,
    ) {
        for _ in 0..MAX_WRAPPERS {
            let Some(first) = words.first() else { return self.push(Vec::new(), writes) };
            let Some(program) = program(first) else {
                self.hide(format!("the program `{}` is only known when it runs", first.text));
                return self.finish(words, writes);
            };
            if let Some(first) = words.first_mut() {
                first.text.clone_from(&program);
                first.dynamic = false;
            }
            match self.enter(&program, &words, depth, context) {
                Step::Done => return self.finish(words, writes),
                Step::Inner(inner) => words = inner,
                Step::Also(inner) => {
                    self.finish(words, Vec::new());
                    words = inner;
                }
            }
        }
        self.hide("wrappers nest too deep");
    }

    fn finish(&mut self, words: Vec<Field>, writes: Vec<String>) {
        self.push(words.into_iter().map(|field| field.text).collect(), writes);
    }

    fn enter(&mut self, program: &str, words: &[Field], depth: usize, context: &Context) -> Step {
        let arguments = words.get(1..).unwrap_or_default();
        match program {
            _ if SHELLS.contains(&program) => self.shell(arguments, depth, context),
            "eval" => self.joined(arguments, depth),
            "source" | "." => self.sourced(arguments, context),
            "trap" | "watch" | "script" | "su" | "runuser" | "ssh" | "alias" | "git" | "flock"
            | "parallel" => {
                self.texts_within(program, arguments, depth);
                self.unwrapped(program, arguments)
            }
            "env" => {
                for pair in arguments.windows(2) {
                    if let [flag, text] = pair
                        && matches!(flag.text.as_str(), "-S" | "--split-string" | "-vS")
                    {
                        self.inner_text(text, depth);
                    }
                }
                for field in arguments {
                    if let Some(text) =
                        field.text.strip_prefix("-S").or_else(|| field.text.strip_prefix("--split-string="))
                        && !text.is_empty()
                    {
                        self.inner_text(&field.with_text(text), depth);
                    }
                }
                self.unwrapped(program, arguments)
            }
            "find" | "fd" => {
                self.executed(arguments, depth);
                Step::Done
            }
            _ => self.unwrapped(program, arguments),
        }
    }

    /// The command behind a wrapper's own flags and operands.
    fn unwrapped(&self, program: &str, arguments: &[Field]) -> Step {
        if program == "git" {
            return plain_git(arguments);
        }
        let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == program) else {
            return Step::Done;
        };
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
                    at += if wrapper.long.contains(&name) { 2 } else { 1 };
                }
                Some(letters) if !letters.is_empty() => {
                    let valued = letters.chars().position(|c| wrapper.valued.contains(c));
                    at += if valued.is_some_and(|position| position + 1 == letters.chars().count()) {
                        2
                    } else {
                        1
                    };
                }
                Some(_) => at += 1,
                None if is_assignment(text) => at += 1,
                None => break,
            }
        }
        let mut inner: Vec<Field> = arguments.iter().skip(at + wrapper.operands).cloned().collect();
        if matches!(program, "xargs" | "parallel") && !inner.is_empty() {
            inner.push(Field::unknown("$ARGS"));
        }
        if inner.is_empty() { Step::Done } else { Step::Inner(inner) }
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
            reads_text |= !long && letters.contains('c');
            reads_input |= !long && letters.contains('s');
            let valued =
                (!long && letters.ends_with(['o', 'O'])) || matches!(letters, "-rcfile" | "-init-file");
            at += if valued { 2 } else { 1 };
            if letters == "-" {
                break;
            }
        }
        match arguments.get(at) {
            Some(text) if reads_text => self.inner_text(text, depth),
            Some(_) if reads_input => self.input(depth, context),
            Some(file) if file.dynamic && file.text.starts_with("/dev/fd/") => {
                self.hide("a shell runs what a command prints")
            }
            Some(file) if matches!(file.text.as_str(), "/dev/stdin" | "-" | "/proc/self/fd/0") => {
                self.input(depth, context)
            }
            Some(_) => {}
            None => self.input(depth, context),
        }
        Step::Done
    }

    /// What a shell that reads its commands gets to read.
    fn input(&mut self, depth: usize, context: &Context) {
        match &context.input {
            Some(text) => self.text(&text.clone(), depth + 1, &Context::default()),
            None if context.piped => self.hide("a shell runs what it reads from a pipe or a file"),
            None => {}
        }
    }

    fn sourced(&mut self, arguments: &[Field], context: &Context) -> Step {
        let hidden = |field: &Field| field.text.starts_with("/dev/") || field.text.starts_with("/proc/");
        if arguments.first().is_some_and(hidden) || (arguments.is_empty() && context.piped) {
            self.hide("the shell runs what a command prints");
        }
        Step::Done
    }

    /// All words as one text.
    fn joined(&mut self, arguments: &[Field], depth: usize) -> Step {
        let text: Vec<&str> = arguments.iter().map(|field| field.text.as_str()).collect();
        let dynamic = arguments.iter().any(|field| field.dynamic);
        let text = text.join(" ");
        self.inner_text(&if dynamic { Field::unknown(&text) } else { Field::known(&text) }, depth);
        Step::Done
    }

    fn inner_text(&mut self, field: &Field, depth: usize) {
        if field.dynamic {
            self.hide(format!("the text `{}` is only known when it runs", field.text));
        }
        self.text(&field.text, depth + 1, &Context::default());
    }

    /// Texts that programs take as an argument and run.
    fn texts_within(&mut self, program: &str, arguments: &[Field], depth: usize) {
        match program {
            "trap" | "alias" => {
                for field in arguments {
                    let text = if program == "alias" {
                        field.text.split_once('=').map(|(_, text)| text)
                    } else {
                        Some(field.text.as_str())
                    };
                    if let Some(text) = text.filter(|text| text.contains(' ')) {
                        self.inner_text(&field.with_text(text), depth);
                    }
                }
            }
            "su" | "runuser" | "script" | "flock" => {
                for pair in arguments.windows(2) {
                    if let [flag, text] = pair
                        && (flag.text == "--command"
                            || (flag.text.starts_with('-') && flag.text.ends_with('c')))
                    {
                        self.inner_text(text, depth);
                    }
                }
            }
            "git" => {
                for field in arguments {
                    if let Some((key, command)) = field.text.split_once("=!")
                        && key.starts_with("alias.")
                    {
                        self.inner_text(&field.with_text(command), depth);
                    }
                }
            }
            "parallel" => {}
            _ => self.remote(program, arguments, depth),
        }
    }

    /// `ssh host …` and `watch …`: the words behind the flags, as one text.
    fn remote(&mut self, program: &str, arguments: &[Field], depth: usize) {
        let valued = if program == "ssh" { "BbcDEeFIiJLlmOopQRSWw" } else { "ndq" };
        let mut at = 0;
        while let Some(letters) = arguments.get(at).and_then(|field| field.text.strip_prefix('-')) {
            at += if letters.len() == 1 && valued.contains(letters) { 2 } else { 1 };
        }
        let at = if program == "ssh" { at + 1 } else { at };
        let rest = arguments.get(at..).unwrap_or_default();
        if !rest.is_empty() {
            self.joined(rest, depth);
        }
    }

    /// `find … -exec COMMAND ;`
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
            let command: Vec<Field> = command
                .map(|field| if field.text == "{}" { Field::unknown("$ARGS") } else { field.clone() })
                .collect();
            self.run(command, Vec::new(), depth + 1, &Context::default());
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

/// The base name of a program, if the text says it.
fn program(field: &Field) -> Option<String> {
    let name = field.text.rsplit('/').next().unwrap_or_default();
    let hidden = name.contains('$') && field.dynamic;
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
