//! Compares what commands did with what a document shows.

use super::block::Step;
use super::session::Outcome;

/// A line that stands for any number of lines, none included.
const ANYTHING: &str = "...";

/// The first difference of a block, worded for the person who has to mend the document.
pub(super) fn difference(steps: &[Step], outcomes: &[Outcome], exit: i32) -> Option<String> {
    let last = steps.len().saturating_sub(1);
    let mut pairs = steps.iter().zip(outcomes).enumerate();
    pairs.find_map(|(at, (step, outcome))| step_difference(step, outcome, if at == last { exit } else { 0 }))
}

fn step_difference(step: &Step, outcome: &Outcome, exit: i32) -> Option<String> {
    let command = &step.command;
    match outcome.exit {
        None => {
            return Some(format!("`{command}` ended the shell or ran too long, after:\n{}", outcome.output));
        }
        Some(code) if code != exit => {
            return Some(format!(
                "`{command}` exits with {code}, not {exit}; it prints:\n{}",
                outcome.output
            ));
        }
        Some(_) => {}
    }
    let shown = step.output.as_ref()?;
    let printed: Vec<&str> = trimmed(outcome.output.lines());
    let shown = trimmed(shown.iter().map(String::as_str));
    (!matches(&shown, &printed)).then(|| {
        format!("`{command}` prints:\n{}\nthe document shows:\n{}", printed.join("\n"), shown.join("\n"))
    })
}

/// Lines without trailing blanks, and without empty lines at the end.
fn trimmed<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut lines: Vec<&str> = lines.map(str::trim_end).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

fn matches(shown: &[&str], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((&ANYTHING, rest)) => (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..])),
        Some((first, rest)) => {
            printed.split_first().is_some_and(|(line, others)| line == first && matches(rest, others))
        }
    }
}
