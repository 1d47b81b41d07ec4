//! `bailiwick compile`: a manifest as a sandbox understands it. Runs nothing, resolves nothing, contacts no host.

use std::path::Path;

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit, Out};
use bailiwick_command::input::InputError;
use bailiwick_command::output::Existing;
use bailiwick_command::render::{escape, json, style};
use bailiwick_command::{COMPILER, output};
use bailiwick_compile::{Refusal, Target, TargetOptions};
use bailiwick_policy::artifact::{Artifact, ArtifactFile, Provenance};
use bailiwick_policy::enforcement::{Floor, Requirement};
use bailiwick_policy::finding::{Code, Finding, Source};
use bailiwick_policy::plan::Plan;
use serde_json::{Value, json};

use crate::args::compile::{ArtifactFormat, Compile};
use crate::planned::{self, Planned, Unplanned};

pub(super) fn run(args: &Compile) -> anyhow::Result<Answer> {
    let planned = match planned::plan(&args.manifest, args.tool.as_deref(), &args.host)? {
        Ok(planned) => planned,
        Err(Unplanned::Answered(answer)) => return Ok(answer),
        Err(Unplanned::InputError(useless)) => return Ok(useless_manifest(args, &useless)),
    };
    if !args.container.read_only_rootfs && args.target != Some(Target::Docker) {
        let text =
            format!("{}: --read-only-rootfs=false is for --target docker alone\n", style::error("error"));
        return Ok(Answer::refusal(Exit::Usage, text));
    }
    if args.explain {
        return Ok(Answer::result(Exit::Fine, explained(&planned.source, &planned.plan)));
    }
    let egress = args.egress.map(|format| bailiwick_compile::egress(format, &planned.plan)).transpose();
    let egress = match egress {
        Ok(egress) => egress,
        Err(refusal) => return Ok(refused(args, &planned.source, &refusal)),
    };
    let Some(target) = args.target else {
        return alone(args, egress.into_iter().collect());
    };
    match compiled(args, &planned, target) {
        Ok(artifact) => answer(args, &planned.plan, egress.into_iter().fold(artifact, Artifact::with_file)),
        Err(refusal) => Ok(refused(args, &planned.source, &refusal)),
    }
}

fn compiled(args: &Compile, planned: &Planned, target: Target) -> Result<Artifact, Refusal> {
    let floor = floor(&planned.plan, &args.requirements);
    let provenance = Provenance { manifest: Some(planned.hash.clone()), compiler: COMPILER.to_owned() };
    let options = TargetOptions { read_only_rootfs: args.container.read_only_rootfs };
    bailiwick_compile::compile_with(target, options, &planned.plan, &floor, provenance)
}

fn floor(plan: &Plan, requirements: &[Requirement]) -> Floor {
    requirements.iter().fold(plan.floor(), |floor, requirement| floor.with(*requirement))
}

/// The gateway's file without a sandbox.
fn alone(args: &Compile, files: Vec<ArtifactFile>) -> anyhow::Result<Answer> {
    match &args.out {
        Some(directory) => write(directory, &files, args.force),
        None => Ok(Answer::bytes(files.into_iter().map(|file| file.text).collect())),
    }
}

fn answer(args: &Compile, plan: &Plan, artifact: Artifact) -> anyhow::Result<Answer> {
    let command = (!artifact.argv().is_empty()).then(|| command_line(artifact.argv())).transpose()?;
    if let Some(directory) = &args.out {
        let mut files = artifact.files().to_vec();
        let named = |name: &str, text: String| ArtifactFile { name: name.to_owned(), text };
        // bubblewrap's own file of arguments has that name where there are too many for a command line
        let words = format!("{}.args", artifact.target());
        let taken = files.iter().any(|file| file.name == words);
        let words = if taken { format!("{}.argv", artifact.target()) } else { words };
        files.extend(command.map(|line| named(&words, line)));
        files.push(named("artifact.json", document(&artifact, true)));
        return write(directory, &files, args.force);
    }
    match (args.format, command) {
        (ArtifactFormat::Json, _) => Ok(Answer::bytes(document(&artifact, args.pretty))),
        (ArtifactFormat::Argv, Some(line)) => Ok(with_notes(Answer::bytes(line), &artifact)),
        (ArtifactFormat::Flags, _) => Ok(flags(args, plan, &artifact)),
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

/// The options alone, as one JSON array.
fn flags(args: &Compile, plan: &Plan, artifact: &Artifact) -> Answer {
    let Some(flags) = bailiwick_compile::flags(artifact, plan) else {
        let text = format!(
            "{}: {} is not started by options alone\n  --format flags is for bwrap and docker; print its files with --format native\n",
            style::error("error"),
            artifact.target()
        );
        return Answer::refusal(Exit::Usage, text);
    };
    let array = Value::from(flags);
    let text = if args.pretty { format!("{array:#}\n") } else { format!("{array}\n") };
    with_notes(Answer::bytes(text), artifact)
}

/// The same answer, with what the command line does not say on stderr: which variables to set, what was narrowed.
fn with_notes(answer: Answer, artifact: &Artifact) -> Answer {
    let note = |note: &String| format!("{}: {}\n", style::warning("note"), escape::line(note));
    Answer { complaint: artifact.notes().iter().map(note).collect(), ..answer }
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
fn write(directory: &Path, files: &[ArtifactFile], force: bool) -> anyhow::Result<Answer> {
    let taken: Vec<&str> = files
        .iter()
        .map(|file| &*file.name)
        .filter(|name| !force && directory.join(name).symlink_metadata().is_ok())
        .collect();
    let shown = escape::line(&directory.to_string_lossy());
    if !taken.is_empty() {
        let text = format!(
            "{}: {shown} has {} already\n  name another directory, or overwrite with --force\n",
            style::error("error"),
            taken.join(", ")
        );
        return Ok(Answer::refusal(Exit::Invalid, text));
    }
    let existing = if force { Existing::ReplaceLink } else { Existing::Keep };
    for file in files {
        let path = directory.join(&file.name);
        let parent = path.parent().unwrap_or(directory);
        std::fs::create_dir_all(parent).with_context(|| format!("cannot make `{}`", parent.display()))?;
        output::write(&path, &file.text, existing)
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
    Ok(Answer::result(Exit::Fine, format!("{}: wrote {} to {shown}\n", style::good("ok"), names.join(", "))))
}

/// A text that is no TOML or JSON is an invalid file; one that says what no plan can be made of does not compile.
fn useless_manifest(args: &Compile, useless: &InputError) -> Answer {
    let answer = useless.refusal();
    let InputError::Wrong(source, findings) = useless else { return answer };
    let is_text = |finding: &Finding| {
        let no_text = [Code::SourceEncoding, Code::SourceTooLarge, Code::SourceSyntax, Code::SourceNesting];
        !no_text.contains(&finding.code())
    };
    let exit = if findings.iter().all(is_text) { Exit::Compilation } else { Exit::Invalid };
    Answer { exit, out: failure(args, source, findings), ..answer }
}

/// The findings for a program that reads JSON; nothing for a reader of any other format.
fn failure(args: &Compile, source: &Source, findings: &[Finding]) -> Out {
    if args.format != ArtifactFormat::Json || args.target.is_none() || args.out.is_some() {
        return Out::Text(String::new());
    }
    let findings: Vec<Value> = findings.iter().map(|finding| json::finding(source, finding)).collect();
    let value =
        json!({ "format": "bailiwick.compile-failure/1", "file": source.name(), "findings": findings });
    Out::Bytes(if args.pretty { format!("{value:#}\n") } else { format!("{value}\n") })
}

fn refused(args: &Compile, source: &Source, refusal: &Refusal) -> Answer {
    let mut text = format!("{}: {}\n", style::error("refused"), escape::line(&refusal.to_string()));
    if let Refusal::BelowFloor { shortfalls, .. } = refusal {
        let less: Vec<String> =
            shortfalls.iter().map(|one| format!("--require {}={}", one.aspect, one.held.level)).collect();
        text += &format!("  if that is enough for you, say so: {}\n", less.join(" "));
    }
    let finding = Finding::new(Code::TargetUnsupported, refusal.to_string());
    Answer { out: failure(args, source, &[finding]), ..Answer::refusal(Exit::Compilation, text) }
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
