//! `bailiwick init`: a commented manifest to start from. Never overwrites unless told to.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::input::InputError;
use bailiwick_command::output;
use bailiwick_command::output::Existing;
use bailiwick_command::render::{escape, style};
use bailiwick_manifest::Manifest;
use bailiwick_policy::finding::Source;

use crate::args::Init;

macro_rules! templates {
    ($($name:literal)+) => {
        /// Every template and its text.
        const TEMPLATES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../templates/", $name, ".toml"))),)+];
    };
}

templates! {
    "starter" "brave-search" "everything" "fetch" "filesystem" "git" "github" "memory" "mongodb" "mysql" "postgres"
    "puppeteer" "redis" "sequential-thinking" "sqlite" "time"
}

pub(super) fn run(args: &Init) -> anyhow::Result<Answer> {
    if args.list {
        return Ok(Answer::result(Exit::Fine, list()));
    }
    let Some((_, template)) = TEMPLATES.iter().find(|(name, _)| *name == args.template) else {
        let names: Vec<&str> = TEMPLATES.iter().map(|(name, _)| *name).collect();
        let template = escape::line(&args.template);
        let text = format!(
            "{}: there is no template `{template}`\n  the templates are {}\n",
            style::error("error"),
            names.join(", ")
        );
        return Ok(Answer::refusal(Exit::Usage, text));
    };
    let text = named(template, args.name.as_deref());
    if let Err(findings) = Manifest::parse(&text) {
        // Only a name from the command line can spoil a template.
        let wrong = InputError::wrong(Source::new("--name", text), findings);
        return Ok(Answer { exit: Exit::Usage, ..wrong.refusal() });
    }
    if args.file == Path::new("-") {
        return Ok(Answer::result(Exit::Fine, text));
    }
    write(&args.file, &text, args.force)
}

fn list() -> String {
    let purpose =
        |text: &str| text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']).to_owned();
    TEMPLATES.iter().map(|(name, text)| format!("{name:<21}{}\n", purpose(text))).collect()
}

/// The template with another name in its `name = …` line.
fn named(template: &str, name: Option<&str>) -> String {
    let Some(name) = name else { return template.to_owned() };
    let quoted = serde_json::Value::from(name).to_string();
    let line = |line: &str| {
        if line.starts_with("name = ") { format!("name = {quoted}\n") } else { format!("{line}\n") }
    };
    let (head, tail) = template.split_once("\n[").map_or((template, None), |(head, tail)| (head, Some(tail)));
    let head: String = head.lines().map(line).collect();
    tail.map_or_else(|| head.clone(), |tail| format!("{head}[{tail}"))
}

fn write(path: &Path, text: &str, force: bool) -> anyhow::Result<Answer> {
    let existing = if force { Existing::ReplaceLink } else { Existing::Keep };
    let shown = escape::line(&path.to_string_lossy());
    match output::write(path, text, existing) {
        Ok(()) => {}
        Err(fault) if fault.kind() == ErrorKind::AlreadyExists => {
            let text = format!(
                "{}: {shown} exists\n  name another file, or overwrite it with --force\n",
                style::error("error")
            );
            return Ok(Answer::refusal(Exit::Invalid, text));
        }
        Err(fault) => return Err(fault).with_context(|| format!("cannot write `{shown}`")),
    }
    let text =
        format!("{}: wrote {shown}\n  edit it, then run `bailiwick check {shown}`\n", style::good("ok"));
    Ok(Answer::result(Exit::Fine, text))
}
