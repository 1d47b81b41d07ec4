//! Reads the shell blocks out of a Markdown document.
//!
//! Fails closed: a fence that is never closed, a shell block under another name (`bash`, `shell`), an unknown
//! word after the language, a `no-run` without reason or a `console` block without a command are problems, so
//! that no command escapes the runner by a slip of the pen.

/// A fenced block of commands.
#[derive(Debug, PartialEq)]
pub(super) struct Block {
    /// The line of its opening fence, from 1.
    pub(super) line: usize,
    pub(super) run: Run,
}

/// Whether a block runs.
#[derive(Debug, PartialEq)]
pub(super) enum Run {
    /// Its commands, and the exit code of the last.
    Steps { steps: Vec<Step>, exit: i32 },
    /// Left out by its author.
    Left { reason: String },
}

/// One command and what it is shown to print; `None` where the document shows nothing and claims nothing.
#[derive(Debug, PartialEq)]
pub(super) struct Step {
    pub(super) command: String,
    pub(super) output: Option<Vec<String>>,
}

/// A fenced block of any language, before it is known to matter.
struct Fence<'a> {
    line: usize,
    info: &'a str,
    body: Vec<&'a str>,
}

/// What the info string asks for.
struct Wishes {
    exit: i32,
    no_run: Option<String>,
}

/// The shell blocks of a document in order, or `LINE: what is wrong`.
pub(super) fn read(text: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    for fence in fences(text)? {
        if let Some(run) = run(&fence).map_err(|problem| format!("{}: {problem}", fence.line))? {
            blocks.push(Block { line: fence.line, run });
        }
    }
    Ok(blocks)
}

fn fences(text: &str) -> Result<Vec<Fence<'_>>, String> {
    let mut fences = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some((mark, info)) = opening(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        let mut body = Vec::new();
        loop {
            let (_, line) = lines.next().ok_or_else(|| format!("{}: the block is never closed", at + 1))?;
            if closes(line, mark) {
                break;
            }
            body.push(unindented(line, indent));
        }
        fences.push(Fence { line: at + 1, info, body });
    }
    Ok(fences)
}

/// The fence itself and the info string behind it.
fn opening(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let letter = line.chars().next().filter(|letter| "`~".contains(*letter))?;
    let info = line.trim_start_matches(letter);
    let mark = line.strip_suffix(info)?;
    (mark.len() >= 3 && !info.contains('`')).then_some((mark, info.trim()))
}

fn closes(line: &str, mark: &str) -> bool {
    let line = line.trim();
    line.starts_with(mark) && line.trim_start_matches(mark.chars().next().unwrap_or('`')).is_empty()
}

fn unindented(line: &str, indent: usize) -> &str {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    line.get(blanks.min(indent)..).unwrap_or(line)
}

fn run(fence: &Fence<'_>) -> Result<Option<Run>, String> {
    let mut words = fence.info.split_whitespace();
    let language = words.next().unwrap_or_default();
    if matches!(language, "bash" | "shell" | "zsh" | "shellsession" | "shell-session" | "terminal") {
        return Err(format!("`{language}` blocks are not run: call it `sh` or `console`"));
    }
    if !matches!(language, "sh" | "console") {
        return Ok(None);
    }
    let wishes = wishes(words)?;
    if let Some(reason) = wishes.no_run {
        return Ok(Some(Run::Left { reason }));
    }
    let steps = steps(language, &fence.body)?;
    Ok(Some(Run::Steps { steps, exit: wishes.exit }))
}

fn wishes<'a>(words: impl Iterator<Item = &'a str>) -> Result<Wishes, String> {
    let mut wishes = Wishes { exit: 0, no_run: None };
    for word in words {
        match word.split_once('=') {
            Some(("exit", code)) => {
                wishes.exit = code.parse().map_err(|_| format!("`{word}` is not an exit code"))?;
            }
            Some(("no-run", reason)) if !reason.is_empty() => wishes.no_run = Some(reason.to_owned()),
            _ => return Err(format!("`{word}` is not understood: write `exit=N` or `no-run=REASON`")),
        }
    }
    Ok(wishes)
}

fn steps(language: &str, body: &[&str]) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut lines = body.iter().copied().peekable();
    while let Some(line) = lines.next() {
        if let Some(first) = line.strip_prefix("$ ") {
            let command = continued(first, &mut lines);
            steps.push(Step { command, output: (language == "console").then(Vec::new) });
        } else if let Some(step) = steps.last_mut() {
            step.output.get_or_insert_default().push(line.to_owned());
        } else if language == "sh" && !line.trim().is_empty() {
            let rest = lines.map(|line| format!("\n{line}"));
            return Ok(vec![script(&(line.to_owned() + &rest.collect::<String>()))]);
        } else if !line.trim().is_empty() {
            return Err("a `console` block starts with a `$ ` line".to_owned());
        }
    }
    if steps.is_empty() { Err("the block has no command".to_owned()) } else { Ok(steps) }
}

/// A whole block as one step, of which every line has to succeed.
fn script(text: &str) -> Step {
    Step { command: format!("(set -e\n{text}\n)"), output: None }
}

/// A command that ends in a backslash or opens a here-document goes on in the lines that start with `> `.
fn continued<'a>(first: &str, lines: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>) -> String {
    let mut command = first.to_owned();
    while command.ends_with('\\') || first.contains("<<") {
        let Some(more) = lines.next_if(|line| line.starts_with('>')) else { break };
        let more = more.strip_prefix("> ").unwrap_or_else(|| more.trim_start_matches('>'));
        command = command + "\n" + more;
    }
    command
}
