//! `bailiwick install --hooks`: hook entries in agents' settings, and out again. `--servers` is in `servers`.
//!
//! Only our entries are added or removed; comments, order and spacing of the rest stay. What a file was before is
//! kept in the state directory: if it has not been edited since, `--undo` puts exactly that back. A dry run shows the
//! changes as a unified diff and writes nothing.

mod servers;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bailiwick_clients::hooks::{AGENTS, Agent, HookFile, HookSettingsError};
use bailiwick_policy::digest::Digest;
use serde::{Deserialize, Serialize};
use similar::TextDiff;

use super::trust::{refused, state};
use crate::answer::{Answer, Exit};
use crate::args::guard::Install;
use crate::facts;
use crate::output::{self, Existing};
use crate::render::{escape, style};

/// What a file was before, and what we made of it.
#[derive(Debug, Serialize, Deserialize)]
struct Before {
    text: Option<String>,
    made: String,
}

pub(super) fn run(args: &Install) -> anyhow::Result<Answer> {
    if args.servers { servers::run(args) } else { hooks(args) }
}

fn hooks(args: &Install) -> anyhow::Result<Answer> {
    let root = match (&args.project, facts::home()) {
        (Some(project), _) => project.canonicalize().unwrap_or_else(|_| project.clone()),
        (None, Some(home)) => home,
        (None, None) => return Ok(refused(Exit::Usage, "HOME says nothing: use --project")),
    };
    if args.agents.iter().any(|agent| agent.settings.is_none()) {
        return Ok(refused(Exit::Usage, "`generic` has no settings file; docs/hooks.md says what to call"));
    }
    let agents: Vec<(&Agent, &HookFile)> = known_settings()
        .filter(|(agent, settings)| match args.agents.as_slice() {
            [] => root.join(folder(settings, args)).is_dir(),
            named => named.iter().any(|one| one.name == agent.name),
        })
        .collect();
    if agents.is_empty() {
        let why = format!("no agent has settings in `{}`; name one, such as `claude-code`", root.display());
        return Ok(refused(Exit::Found, &why));
    }
    let program = facts::own_program().context("our own path is not known")?;
    let mut text = String::new();
    for (agent, settings) in agents {
        let path = root.join(if args.project.is_some() { settings.project } else { settings.user });
        match change(agent, &path, &program, args) {
            Ok(Done::Changed(line)) => {
                text += &format!("{}: {}\n", style::good("ok"), escape::line(&line));
                let left = agent.left_to_do.filter(|_| !args.undo);
                text += &left.map(|left| format!("  then: {left}\n")).unwrap_or_default();
            }
            Ok(Done::Shown(diff)) => text += &diff,
            Err(Refused::Invalid(why)) => {
                return Ok(Answer { out: crate::answer::Out::Text(text), ..refused(Exit::Invalid, &why) });
            }
            Err(Refused::Fault(fault)) => return Err(fault),
        }
    }
    Ok(Answer::result(Exit::Fine, text))
}

/// What became of one file.
enum Done {
    /// It is changed, or needs no change.
    Changed(String),
    /// It would be changed so.
    Shown(String),
}

enum Refused {
    Invalid(String),
    Fault(anyhow::Error),
}

impl From<anyhow::Error> for Refused {
    fn from(fault: anyhow::Error) -> Self {
        Self::Fault(fault)
    }
}

fn change(agent: &Agent, path: &Path, program: &Path, args: &Install) -> Result<Done, Refused> {
    // Through a link to the file itself, so that the link stays one.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let shown = path.display();
    let before = match fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(Refused::Invalid(format!("cannot read `{shown}`: {error}"))),
    };
    let kept = kept_path(path)?;
    let invalid = |why: HookSettingsError| Refused::Invalid(format!("`{shown}` {why}"));
    // What a person edited since stays, without our entries: a second `install` does not take those for the person's.
    let bare = match &before {
        Some(text) => undone(agent, &kept, text).map_err(invalid)?,
        None if args.undo => return Ok(Done::Changed(format!("{shown} is not there"))),
        None => None,
    };
    let after = if args.undo {
        bare.clone()
    } else {
        Some(agent.add_hooks(before.as_deref(), program).map_err(invalid)?)
    };
    if after == before {
        return Ok(Done::Changed(format!("{shown} needs no change")));
    }
    if args.dry_run {
        return Ok(Done::Shown(unified(path, before.as_deref(), after.as_deref())));
    }
    if let (false, Some(after)) = (args.undo, &after) {
        keep(&kept, bare, after)?;
    }
    match &after {
        Some(text) => write(path, text)?,
        None => fs::remove_file(path).context("cannot remove the file")?,
    }
    if args.undo {
        drop(fs::remove_file(&kept));
    }
    Ok(Done::Changed(format!(
        "{shown} {}",
        if args.undo { "has no entries of ours any more" } else { "calls `bailiwick hook`" }
    )))
}

/// The change of a file, as `diff -u` shows it. A file that is not there is `/dev/null`.
fn unified(path: &Path, before: Option<&str>, after: Option<&str>) -> String {
    let name = |text: Option<&str>| text.map_or("/dev/null".to_owned(), |_| path.display().to_string());
    let diff = TextDiff::from_lines(before.unwrap_or_default(), after.unwrap_or_default());
    let shown = diff.unified_diff().header(&name(before), &name(after)).to_string();
    shown.split_inclusive('\n').map(painted).collect()
}

/// One line of a diff. What a settings file says is escaped; the line break is kept.
fn painted(line: &str) -> String {
    let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
    let safe = text.split('\t').map(escape::line).collect::<Vec<_>>().join("\t");
    match text.as_bytes().first() {
        Some(b'+') => style::good(&safe) + end,
        Some(b'-') => style::error(&safe) + end,
        _ => safe + end,
    }
}

/// A file without our entries: exactly what it was before, if it was not edited since. Nothing is left of a file that was
/// not there before and has nothing else in it.
fn undone(agent: &Agent, kept: &Path, now: &str) -> Result<Option<String>, HookSettingsError> {
    let before: Option<Before> = fs::read(kept).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    match before {
        Some(before) if before.made == Digest::of(now.as_bytes()).to_string() => Ok(before.text),
        Some(Before { text: None, .. }) => {
            Ok(agent.remove_hooks(now)?.filter(|left| !agent.is_empty_file(left)))
        }
        Some(_) | None => agent.remove_hooks(now),
    }
}

/// Whether `install` put our hooks into a file.
pub(in crate::commands) fn was_installed(path: &Path) -> anyhow::Result<bool> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    Ok(kept_path(&path)?.exists())
}

fn keep(kept: &Path, text: Option<String>, made: &str) -> anyhow::Result<()> {
    let before = Before { text, made: Digest::of(made.as_bytes()).to_string() };
    write(kept, &serde_json::to_string(&before)?)
}

fn kept_path(path: &Path) -> anyhow::Result<PathBuf> {
    let name: String = Digest::of(path.as_os_str().as_encoded_bytes()).to_string().chars().take(32).collect();
    Ok(state()?.dir().join("install").join(name))
}

/// A complete file in the place of another, with the other's mode.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let shown = || format!("cannot write `{}`", path.display());
    fs::create_dir_all(path.parent().unwrap_or(path)).with_context(shown)?;
    output::write(path, text, Existing::Replace).with_context(shown)
}

/// The agents that have a settings file.
fn known_settings() -> impl Iterator<Item = (&'static Agent, &'static HookFile)> {
    AGENTS.iter().filter_map(|agent| Some((agent, agent.settings.as_ref()?)))
}

/// The folder by which it is seen that an agent is used.
const fn folder(settings: &HookFile, args: &Install) -> &'static str {
    let [user, project] = settings.folders;
    if args.project.is_some() { project } else { user }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bailiwick_guardrails::holds_hooks;

    #[test]
    fn the_guard_keeps_every_file_that_we_write_to() {
        for (agent, settings) in known_settings() {
            assert!(holds_hooks(&Path::new("/home/user").join(settings.user)), "{}", agent.name);
            assert!(holds_hooks(&Path::new("/p").join(settings.project)), "{}", agent.name);
        }
        assert!(!holds_hooks(Path::new("/p/.vscode/settings.json")));
        assert!(!holds_hooks(Path::new("/p/opencode")));
    }
}
