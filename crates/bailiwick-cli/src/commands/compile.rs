//! `bailiwick compile`: a manifest as a sandbox understands it. Runs nothing, resolves nothing, contacts nobody.

use std::path::Path;

use anyhow::Context as _;
use bailiwick_compile::{Refusal, Target};
use bailiwick_policy::artifact::{Artifact, ArtifactFile, Provenance};
use bailiwick_policy::enforcement::{Floor, Requirement};
use bailiwick_policy::finding::Source;
use bailiwick_policy::plan::Plan;

use crate::answer::{Answer, Exit};
use crate::args::compile::{ArtifactFormat, Compile};
use crate::output::{self, Existing};
use crate::planned::{self, Planned};
use crate::render::{escape, style};

/// The name and version that an artifact carries.
pub(super) const COMPILER: &str = concat!("bailiwick ", env!("CARGO_PKG_VERSION"));

pub(super) fn run(args: &Compile) -> anyhow::Result<Answer> {
    let planned = match planned::plan(&args.manifest, args.tool.as_deref(), &args.host)? {
        Ok(planned) => planned,
        Err(answer) => return Ok(answer),
    };
    if args.explain {
        return Ok(Answer::result(Exit::Fine, explained(&planned.source, &planned.plan)));
    }
    let egress = args.egress.map(|format| bailiwick_compile::egress(format, &planned.plan)).transpose();
    let egress = match egress {
        Ok(egress) => egress,
        Err(refusal) => return Ok(refused(&refusal)),
    };
    let Some(target) = args.target else {
        return alone(args, egress.into_iter().collect());
    };
    match compiled(args, &planned, target) {
        Ok(artifact) => answer(args, egress.into_iter().fold(artifact, Artifact::with_file)),
        Err(refusal) => Ok(refused(&refusal)),
    }
}

fn compiled(args: &Compile, planned: &Planned, target: Target) -> Result<Artifact, Refusal> {
    let floor = floor(&planned.plan, &args.requirements);
    let provenance = Provenance { manifest: Some(planned.hash.clone()), compiler: COMPILER.to_owned() };
    bailiwick_compile::compile(target, &planned.plan, &floor, provenance)
}

fn floor(plan: &Plan, requirements: &[Requirement]) -> Floor {
    requirements.iter().fold(plan.floor(), |floor, requirement| floor.with(*requirement))
}

/// The gateway's file without a sandbox.
fn alone(args: &Compile, files: Vec<ArtifactFile>) -> anyhow::Result<Answer> {
    match &args.out {
        Some(folder) => write(folder, &files, args.force),
        None => Ok(Answer::bytes(files.into_iter().map(|file| file.text).collect())),
    }
}

fn answer(args: &Compile, artifact: Artifact) -> anyhow::Result<Answer> {
    let command = (!artifact.argv().is_empty()).then(|| command_line(artifact.argv())).transpose()?;
    if let Some(folder) = &args.out {
        let mut files = artifact.files().to_vec();
        let named = |name: &str, text: String| ArtifactFile { name: name.to_owned(), text };
        // bubblewrap's own file of arguments has that name where there are too many for a command line
        let words = format!("{}.args", artifact.target());
        let taken = files.iter().any(|file| file.name == words);
        let words = if taken { format!("{}.argv", artifact.target()) } else { words };
        files.extend(command.map(|line| named(&words, line)));
        files.push(named("artifact.json", document(&artifact, true)));
        return write(folder, &files, args.force);
    }
    match (args.format, command) {
        (ArtifactFormat::Json, _) => Ok(Answer::bytes(document(&artifact, args.pretty))),
        (ArtifactFormat::Argv, Some(line)) => Ok(Answer::bytes(line)),
        (ArtifactFormat::Native, Some(line)) if artifact.files().is_empty() => Ok(Answer::bytes(line)),
        (ArtifactFormat::Native, _) => Ok(Answer::bytes(joined(artifact.files()))),
        (ArtifactFormat::Argv, None) => {
            let text = format!(
                "{}: {} has no command line\n  print its own files with --format native\n",
                style::error("error"),
                artifact.target()
            );
            Ok(Answer::refusal(Exit::Usage, text))
        }
    }
}

fn document(artifact: &Artifact, pretty: bool) -> String {
    let value = artifact.to_json();
    if pretty { format!("{value:#}\n") } else { format!("{value}\n") }
}

/// The words as one line for a POSIX shell.
fn command_line(argv: &[String]) -> anyhow::Result<String> {
    let line = shlex::try_join(argv.iter().map(String::as_str)).context("cannot quote the command line")?;
    Ok(line + "\n")
}

/// One file as it is; several, each under its name.
fn joined(files: &[ArtifactFile]) -> String {
    match files {
        [only] => only.text.clone(),
        _ => files.iter().map(|file| format!("==> {} <==\n{}", file.name, file.text)).collect(),
    }
}

/// Writes all files or none: what exists stays, unless `force`.
fn write(folder: &Path, files: &[ArtifactFile], force: bool) -> anyhow::Result<Answer> {
    let taken: Vec<&str> = files
        .iter()
        .map(|file| &*file.name)
        .filter(|name| !force && folder.join(name).symlink_metadata().is_ok())
        .collect();
    let shown = escape::line(&folder.to_string_lossy());
    if !taken.is_empty() {
        let text = format!(
            "{}: {shown} has {} already\n  name another folder, or overwrite with --force\n",
            style::error("error"),
            taken.join(", ")
        );
        return Ok(Answer::refusal(Exit::Invalid, text));
    }
    let existing = if force { Existing::ReplaceLink } else { Existing::Keep };
    for file in files {
        let path = folder.join(&file.name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).with_context(|| format!("cannot make `{}`", parent.display()))?;
        output::write(&path, &file.text, existing)
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
    Ok(Answer::result(Exit::Fine, format!("{}: wrote {} to {shown}\n", style::good("ok"), names.join(", "))))
}

fn refused(refusal: &Refusal) -> Answer {
    let mut text = format!("{}: {}\n", style::error("refused"), escape::line(&refusal.to_string()));
    if let Refusal::BelowFloor { shortfalls, .. } = refusal {
        let less: Vec<String> =
            shortfalls.iter().map(|one| format!("--require {}={}", one.aspect, one.held.level)).collect();
        text += &format!("  if that is enough for you, say so: {}\n", less.join(" "));
    }
    Answer::refusal(Exit::Compilation, text)
}

/// Every rule, and below it the lines that it comes from.
fn explained(source: &Source, plan: &Plan) -> String {
    let rules = plan.explain();
    if rules.is_empty() {
        return "nothing is granted\n".to_owned();
    }
    let mut text = String::new();
    for rule in rules {
        text += &format!("{}\n", style::strong(&escape::line(&rule.rule)));
        for origin in rule.origins {
            let place = source.place(origin.span.start);
            let owner = origin.tool.map_or_else(|| "the server".to_owned(), |tool| format!("tool {tool}"));
            let line =
                format!("{}:{}:{}  {owner}: {}", source.name(), place.line, place.column, origin.capability);
            text += &format!("  {}\n", escape::line(&line));
        }
    }
    text
}
