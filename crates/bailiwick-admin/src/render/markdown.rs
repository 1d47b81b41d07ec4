//! A comparison as a comment on a pull request, and the table of codes.
//!
//! Text of a manifest is always inside `<code>`, where it can mention no user and make no link.

use bailiwick_command::render::{escape, style};
use bailiwick_journal::JournalFault;
use bailiwick_journal::format::Tamper;
use bailiwick_manifest::diff::{Diff, Difference};
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_policy::denial::DenialCode;
use bailiwick_policy::finding::{Code, Severity};

use crate::additions;

/// A comparison.
pub(crate) fn diff(base: &Snapshot, new: &Snapshot, diff: &Diff, fails: bool) -> String {
    let (old, fresh) = (base.manifest(), new.manifest());
    let mut text = format!(
        "### Bailiwick: {} {} → {}\n\n",
        code(fresh.name()),
        code(old.version()),
        code(fresh.version())
    );
    text += &format!("{}\n\n", headline(diff, fails));
    text += "| a reviewer asks | answer |\n|---|---|\n";
    for verdict in diff.verdicts() {
        let answer = verdict
            .evidence
            .as_deref()
            .map_or_else(|| "no".to_owned(), |evidence| format!("**yes**: {}", code(evidence)));
        text += &format!("| {} | {answer} |\n", verdict.question.text());
    }
    let (open, rest): (Vec<_>, Vec<_>) = diff.differences().iter().partition(|found| is_open(found));
    if !open.is_empty() {
        text += &format!("\n{}", table(&open, base, new));
    }
    if !rest.is_empty() {
        let summary =
            format!("{} that need no review", style::count(rest.len(), "difference", "differences"));
        text += &format!(
            "\n<details>\n<summary>{summary}</summary>\n\n{}\n</details>\n",
            table(&rest, base, new)
        );
    }
    text + &format!("\n<sub>{} → {}</sub>\n", code(base.hash()), code(new.hash()))
}

fn is_open(difference: &Difference) -> bool {
    difference.accepted().is_none() && difference.severity() >= Severity::Medium
}

fn headline(diff: &Diff, fails: bool) -> String {
    let open = diff.differences().iter().filter(|found| is_open(found)).count();
    match (fails, open) {
        (true, 0) => "**Wider than before**, and only tightening is allowed here.".to_owned(),
        (true, _) => format!("**Review needed**: {}.", style::count(open, "difference", "differences")),
        (false, _) if diff.differences().is_empty() => "Nothing changed in what it may touch.".to_owned(),
        (false, _) => "Nothing needs review.".to_owned(),
    }
}

fn table(differences: &[&Difference], base: &Snapshot, new: &Snapshot) -> String {
    let mut text = "| severity | code | tool | what |\n|---|---|---|---|\n".to_owned();
    for found in differences {
        let tool = found.tool().map_or_else(|| "*server*".to_owned(), code);
        let accepted = found.accepted().map(|reason| format!("<br>accepted: {}", code(reason)));
        let lines = additions::added(base, new, found);
        let lines: String = lines.iter().map(|line| format!("<br>+ {}", code(line))).collect();
        text += &format!(
            "| {} | `{}` | {tool} | {}{lines}{} |\n",
            found.severity(),
            found.code(),
            code(found.message()),
            accepted.unwrap_or_default(),
        );
    }
    text
}

fn code(text: &str) -> String {
    format!("<code>{}</code>", escape::markdown(text))
}

/// `docs/codes.md`.
pub(crate) fn codes() -> String {
    let mut text = "# Codes\n\nGenerated from the tables in the code; a test keeps it true. A code never \
                    changes its meaning and is\nnever reused. The alias is the name that other capability compilers \
                    use.\n\n## Findings\n\nWhat can be wrong with a text. `bailiwick check` exits with 1 if there \
                    is any, other commands with 3.\n\n"
        .to_owned();
    text += "| code | severity | meaning | alias |\n|---|---|---|---|\n";
    let (scan, others): (Vec<Code>, Vec<Code>) =
        Code::ALL.iter().partition(|code| code.as_str().starts_with("scan-"));
    let (differences, findings): (Vec<Code>, Vec<Code>) =
        others.into_iter().partition(|code| code.as_str().contains('.'));
    for code in findings {
        let alias = code.alias().map(|alias| format!("`{alias}`")).unwrap_or_default();
        text += &format!("| `{code}` | {} | {} | {alias} |\n", code.severity(), code.meaning());
    }
    text += "\n## Differences\n\nWhat `bailiwick diff` reports. It exits with 1 if one of medium or high severity \
             was not accepted.\n\n| code | severity | meaning |\n|---|---|---|\n";
    for code in differences {
        text += &format!("| `{code}` | {} | {} |\n", code.severity(), code.meaning());
    }
    text += "\n## What a scan finds\n\nWhat `bailiwick scan` reports. It exits with 1 if there is an error, and with \
             `--strict` also if something is\nunknown or dynamic.\n\n| code | severity | meaning |\n|---|---|---|\n";
    for code in scan {
        text += &format!("| `{code}` | {} | {} |\n", code.severity(), code.meaning());
    }
    text + &denials()
}

/// How a call of a tool ends. Tools run on Linux only.
#[cfg(target_os = "linux")]
fn outcomes() -> &'static [(&'static str, &'static str)] {
    &bailiwick_guard::ToolError::OUTCOMES
}

#[cfg(not(target_os = "linux"))]
fn outcomes() -> &'static [(&'static str, &'static str)] {
    &[]
}

/// Codes that stand in the journal, or are said about it.
fn denials() -> String {
    let denials: Vec<_> = DenialCode::ALL.iter().map(|code| (code.as_str(), code.meaning())).collect();
    let tampers: Vec<_> = Tamper::ALL.iter().map(|tamper| (tamper.code(), tamper.meaning())).collect();
    let mut text = String::new();
    for (title, about, rows) in [
        ("Denials", "Why policy said no. `bailiwick log why` explains one.", &denials[..]),
        ("Outcomes", "How a call ended, and what the journal says of itself.", outcomes()),
        (
            "Faults of the journal",
            "Why nothing can be recorded; then nothing runs.",
            &JournalFault::MEANINGS[..],
        ),
        (
            "Problems of a journal",
            "What `bailiwick log verify` finds. It exits with 1 if there is any.",
            &tampers[..],
        ),
    ] {
        text += &format!("\n## {title}\n\n{about}\n\n| code | meaning |\n|---|---|\n");
        text.extend(rows.iter().map(|(code, meaning)| format!("| `{code}` | {meaning} |\n")));
    }
    text
}
