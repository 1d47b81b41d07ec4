//! Lines and questions about programs, hosts, variables and ports.

use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::{BASE, BaseKind, PROGRAM_DIRECTORIES};

use crate::evidence::{EVERY_VARIABLE, Evidence, Seen};
use crate::{
    Draft, Line, MOST_LINES, MOST_VARIABLES_ASKED, MOST_VARIABLES_NAMED, Provenance, Question, Reason, clean,
    is_plain, requests,
};

pub(crate) fn draft(evidence: &Evidence, draft: &mut Draft) {
    programs(evidence, draft);
    hosts(evidence, draft);
    for name in evidence.handed_over.iter().take(MOST_LINES) {
        let by = Provenance { background: true, first: name.clone(), ..Provenance::default() };
        let is_observed = evidence.variables_read.get(name) == Some(&Seen::Observed);
        let reason = if is_observed { Reason::ReadVariable } else { Reason::HandedOver };
        push(draft, clean(&format!("env:read:{name}")), reason, by);
    }
    if let Some(by) = &evidence.sockets {
        let why = "it asked for a Unix socket, which was refused before it could say where it leads; \
                   `ipc:connect:private` allows those of its own, `ipc:connect:unix:/PATH` one of the host"
            .to_owned();
        draft.questions.push(Question { capability: None, why, by: by.clone() });
    }
    variables(evidence, draft);
    for port in &evidence.ports {
        let by = Provenance { background: true, first: port.to_string(), ..Provenance::default() };
        let why = "it listens there; inside its sandbox that needs no line".to_owned();
        draft.questions.push(Question { capability: clean(&format!("net:listen:{port}")), why, by });
    }
}

/// What every sandbox sets by itself, and what runtimes look for on their own account.
const SET_BY_SANDBOX: [&str; 6] = ["PATH", "HOME", "LANG", "TERM", "USER", "TMPDIR"];
const OF_RUNTIMES: [&str; 8] =
    ["NODE_", "NPM_", "npm_", "PYTHON", "LC_", "UV_THREADPOOL", "NO_COLOR", "FORCE_COLOR"];

/// Variables that it reads and was not handed: each that the caller has is a question, and all others are one.
fn variables(evidence: &Evidence, draft: &mut Draft) {
    let is_asked = |name: &str| {
        !SET_BY_SANDBOX.contains(&name)
            && !OF_RUNTIMES.iter().any(|start| name.starts_with(start))
            && !evidence.handed_over.iter().any(|own| own == name)
    };
    let mut ask = |capability, why| {
        draft.questions.push(Question { capability, why, by: Provenance::default() });
    };
    let asked = evidence.variables_read.iter().filter(|(name, _)| is_asked(name) && *name != EVERY_VARIABLE);
    let (had, others): (Vec<_>, Vec<_>) =
        asked.partition(|(name, _)| evidence.variables_of_caller.contains(*name));
    if let Some(how) = evidence.variables_read.get(EVERY_VARIABLE) {
        ask(None, format!("it looks at all variables of its environment ({})", in_words(*how)));
    }
    for (name, how) in had.iter().take(MOST_VARIABLES_ASKED) {
        let why = format!("it reads this variable ({}); `--env {name}` hands yours over", in_words(**how));
        ask(clean(&format!("env:read:{name}")), why);
    }
    let names = |all: &[(&String, &Seen)]| {
        let shown = all.iter().take(MOST_VARIABLES_NAMED).map(|(name, _)| name.as_str());
        let more = all.len().saturating_sub(MOST_VARIABLES_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        shown.collect::<Vec<_>>().join(", ") + &more
    };
    if let Some(left) = had.get(MOST_VARIABLES_ASKED..).filter(|left| !left.is_empty()) {
        ask(None, format!("it reads more variables that you have: {}", names(left)));
    }
    if !others.is_empty() {
        ask(None, format!("it reads variables that you do not have: {}", names(&others)));
    }
}

const fn in_words(how: Seen) -> &'static str {
    match how {
        Seen::Observed => "observed",
        Seen::Assumed => "assumed",
    }
}

fn programs(evidence: &Evidence, draft: &mut Draft) {
    let mut left = MOST_LINES;
    for (path, by) in &evidence.programs {
        let Some(name) = name_of(evidence, path) else { continue };
        let capability = is_plain(&name).then(|| format!("exec:spawn:{name}")).and_then(|line| clean(&line));
        let is_known =
            capability.as_ref().is_some_and(|own| draft.lines.iter().any(|line| line.capability == *own));
        if is_known {
            continue;
        }
        if name.contains('/') || left == 0 {
            let why = "it lies outside of the system's program directories".to_owned();
            let why = if left == 0 { "many programs were started".to_owned() } else { why };
            draft.questions.push(Question { capability, why, by: by.clone() });
            continue;
        }
        left -= 1;
        push(draft, capability, Reason::Started, by.clone());
    }
}

/// What a program is granted by: its name in a system's directory, else its path; nothing where another program brings it, or
/// the command itself.
fn name_of(evidence: &Evidence, path: &str) -> Option<String> {
    let at = AbsPath::new(path).ok()?;
    let (directory, name) = path.rsplit_once('/')?;
    if PROGRAM_DIRECTORIES.contains(&directory) {
        let is_own = evidence.shown.contains(&at);
        return (!is_own).then(|| name.to_owned());
    }
    let is_brought = evidence.shown.iter().any(|shown| at.is_within(shown));
    let is_helper = BASE.iter().any(|entry| {
        entry.kind != BaseKind::Data && AbsPath::new(entry.path).is_ok_and(|place| at.is_within(&place))
    });
    (!is_brought && !is_helper).then(|| path.to_owned())
}

fn hosts(evidence: &Evidence, draft: &mut Draft) {
    let mut left = MOST_LINES;
    for ((host, port), seen) in &evidence.hosts {
        let place = port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
        let is_host = host.chars().all(|c| c.is_ascii_alphanumeric() || "._-:[]".contains(c));
        let line = is_host.then(|| format!("net:connect:{place}")).and_then(|line| clean(&line));
        if seen.is_allowed && port.is_some() && left > 0 {
            left -= 1;
            match requests::lines_for(host, *port, seen).filter(|_| is_host) {
                Some(lines) => {
                    left = left.saturating_sub(lines.len().saturating_sub(1));
                    lines.into_iter().for_each(|(line, why, by)| push(draft, Some(line), why, by));
                }
                None => push(draft, line, Reason::Reached, seen.by.clone()),
            }
            continue;
        }
        // A name that was asked for before it was connected to is the same question.
        let is_named_again = port.is_none()
            && evidence
                .hosts
                .range((host.clone(), Some(0))..=(host.clone(), Some(u16::MAX)))
                .next()
                .is_some();
        if is_named_again {
            continue;
        }
        let why =
            if seen.is_allowed { "many hosts were reached" } else { "it was asked for and not reached" };
        draft.questions.push(Question { capability: line, why: why.to_owned(), by: seen.by.clone() });
    }
}

fn push(draft: &mut Draft, line: Option<String>, reason: Reason, by: Provenance) {
    match line {
        Some(capability) => draft.lines.push(Line { tool: None, capability, reason, by }),
        None => {
            let why = "it cannot be written in a manifest".to_owned();
            draft.questions.push(Question { capability: None, why, by });
        }
    }
}
