//! Questions with their answers: `GRANT, GRANT ⊢ REQUEST` (granted) and `⊬` (not). `∅` grants nothing.
//!
//! Grants stand apart by a comma and a space. The answers are written by hand and never rewritten.

use bailiwick_policy::capability::{Capability, CapabilitySet};

use super::directory;

/// How many questions there are, and which have another answer.
pub(super) fn run() -> (usize, Vec<String>) {
    let file = std::fs::read_to_string(directory().join("decisions")).unwrap();
    let (mut count, mut wrong) = (0, Vec::new());
    for (index, line) in
        file.lines().enumerate().filter(|(_, line)| !(line.is_empty() || line.starts_with('#')))
    {
        let (left, right, granted) = match (line.split_once(" ⊢ "), line.split_once(" ⊬ ")) {
            (Some((left, right)), None) => (left, right, true),
            (None, Some((left, right))) => (left, right, false),
            _ => panic!("decisions:{}: `{line}` has no `⊢` or `⊬`", index + 1),
        };
        count += 1;
        if let Err(why) = ask(left, right, granted) {
            wrong.push(format!("decisions:{}: {line}: {why}", index + 1));
        }
    }
    (count, wrong)
}

fn ask(grants: &str, request: &str, granted: bool) -> Result<(), String> {
    let lines: Vec<&str> = if grants == "∅" { Vec::new() } else { grants.split(", ").collect() };
    let set = CapabilitySet::new(lines.iter().copied()).map_err(|findings| findings.to_string())?;
    let asked: Capability = request.parse().map_err(|finding| format!("{finding}"))?;
    if set.has(request) != granted {
        return Err(format!("the answer is {}", !granted));
    }
    if matches!(asked, Capability::Assert { .. }) {
        return Ok(());
    }
    let explained = set.explain(request).map_err(|finding| finding.to_string())?;
    if explained.is_allowed() != granted || explained.is_undecided() {
        return Err(format!("the explanation says `{explained}`"));
    }
    let own = CapabilitySet::new([request]).map_err(|findings| findings.to_string())?;
    let wider = CapabilitySet::new(lines.iter().copied().chain([request]))
        .map_err(|findings| findings.to_string())?;
    if !own.has(request) || !wider.has(request) {
        return Err("asking for exactly what is granted is refused".to_owned());
    }
    Ok(())
}
