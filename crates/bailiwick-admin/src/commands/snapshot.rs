//! `bailiwick snapshot`: what was reviewed, in a form that can be compared and not quietly edited.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::output::Existing;
use bailiwick_command::render::{escape, style};
use bailiwick_command::{input, output};
use bailiwick_manifest::diff::Diff;
use bailiwick_manifest::snapshot::Snapshot as Taken;

use crate::args::Snapshot;

pub(super) fn run(args: &Snapshot) -> anyhow::Result<Answer> {
    let (source, taken) = match input::snapshot(&args.file) {
        Ok(read) => read,
        Err(useless) => return Ok(useless.refusal()),
    };
    if let Some(stored) = &args.check {
        return compare(&taken, stored, source.name());
    }
    let text = taken.to_text().map_err(|finding| anyhow!("{finding}"))? + "\n";
    let Some(out) = &args.out else { return Ok(Answer::bytes(text)) };
    output::write(out, &text, Existing::Replace)
        .with_context(|| format!("cannot write `{}`", out.display()))?;
    let shown = escape::line(&out.to_string_lossy());
    Ok(Answer::result(Exit::Fine, format!("{}: wrote {shown} ({})\n", style::good("ok"), taken.hash())))
}

fn compare(taken: &Taken, stored: &Path, manifest: &str) -> anyhow::Result<Answer> {
    let (source, reviewed) = match input::snapshot(stored) {
        Ok(read) => read,
        Err(useless) => return Ok(useless.refusal()),
    };
    let (name, manifest) = (escape::line(source.name()), escape::line(manifest));
    if !input::is_snapshot(source.text()) {
        let text = format!("{}: {name} is a manifest, not a snapshot\n", style::error("error"));
        return Ok(Answer::refusal(Exit::Invalid, text));
    }
    if reviewed.hash() == taken.hash() {
        let text = format!("{}: {name} is the snapshot of {manifest}\n", style::good("ok"));
        return Ok(Answer::result(Exit::Fine, text));
    }
    let diff = Diff::between(&reviewed, taken).map_err(|findings| anyhow!("{findings}"))?;
    let mut text = format!("{}: {manifest} is not what {name} holds\n", style::error("differs"));
    for found in diff.differences() {
        let about =
            found.tool().map_or_else(|| "server".to_owned(), |tool| format!("tool {}", escape::line(tool)));
        text += &format!("  {}  {about}: {}\n", found.code(), escape::line(found.message()));
    }
    text += &format!(
        "review it with `bailiwick diff {name} {manifest}`, then `bailiwick snapshot {manifest} --out {name}`\n"
    );
    Ok(Answer::result(Exit::Found, text))
}
