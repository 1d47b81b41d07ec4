//! `bailiwick install --hooks`: hook entries in agents' settings, and out again. `--servers` is in `servers`.
//!
//! Only our entries are added or removed; comments, order and spacing of the rest stay. What a file was before is
//! kept in the state directory: if it has not been edited since, `--undo` puts exactly that back. A dry run shows the
//! changes as a unified diff and writes nothing.

mod servers;
mod undo_all;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bailiwick_clients::hooks::{AGENTS, Agent, HookFile, HookSettingsError};
use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::installed::{kept_path, resolved};
use bailiwick_command::output::Existing;
use bailiwick_command::render::{escape, style};
use bailiwick_command::{facts, output};
use bailiwick_policy::digest::Digest;
use serde::{Deserialize, Serialize};
use similar::TextDiff;

#[cfg(target_os = "linux")]
pub(super) use self::undo_all::undo_all;
use crate::args::guard::Install;

/// What a file was before, and what we made of it.
#[derive(Debug, Serialize, Deserialize)]
struct Before {
    /// The file.
    #[serde(default)]
    file: PathBuf,
    text: Option<String>,
    made: String,
    /// Directories that were not there, the outermost first.
    #[serde(default)]
    directories: Vec<PathBuf>,
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
            [] => root.join(directory(settings, args)).is_dir(),
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
                return Ok(Answer {
                    out: bailiwick_command::answer::Out::Text(text),
                    ..refused(Exit::Invalid, &why)
                });
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
    let path = &resolved(path);
    let shown = path.display();
    let before = match fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(Refused::Invalid(format!("cannot read `{shown}`: {error}"))),
    };
    let kept = Kept::for_settings(path)?;
    let invalid = |why: HookSettingsError| Refused::Invalid(format!("`{shown}` {why}"));
    // What a person edited since stays, without our entries: a second `install` does not take those for the person's.
    let bare = match &before {
        Some(text) => kept.undone(agent, text).map_err(invalid)?,
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
    match &after {
        Some(after) if args.undo => write(path, after)?,
        Some(after) => {
            kept.keep(path, bare, after)?;
            write(path, after)?;
        }
        None => {
            fs::remove_file(path).context("cannot remove the file")?;
            kept.remove_directories();
        }
    }
    if args.undo {
        drop(fs::remove_file(&kept.path));
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

/// What is kept of a settings file, in the state directory.
struct Kept {
    path: PathBuf,
    before: Option<Before>,
}

impl Kept {
    fn for_settings(settings: &Path) -> anyhow::Result<Self> {
        let path = kept_path(settings)?;
        let before = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(Self { path, before })
    }

    /// A file without our entries: exactly what it was before, if it was not edited since. Nothing is left of a file that
    /// was not there before and has nothing else in it.
    fn undone(&self, agent: &Agent, now: &str) -> Result<Option<String>, HookSettingsError> {
        if let Some(before) = &self.before
            && before.made == Digest::sha256(now.as_bytes()).to_string()
        {
            return Ok(before.text.clone());
        }
        let ours = agent.settings.as_ref().is_some_and(HookFile::is_named_after_us);
        let was_there = self.before.as_ref().map_or(!ours, |before| before.text.is_some());
        let left = agent.remove_hooks(now)?;
        Ok((was_there || !agent.is_empty_file(&left)).then_some(left))
    }

    fn keep(&self, settings: &Path, text: Option<String>, made: &str) -> anyhow::Result<()> {
        let missing = || settings.ancestors().skip(1).take_while(|dir| !dir.exists()).map(Path::to_path_buf);
        let earlier = self.before.as_ref().map_or(&[][..], |before| &before.directories);
        let mut directories: Vec<PathBuf> = earlier.to_vec();
        directories.extend(missing().collect::<Vec<_>>().into_iter().rev());
        let (file, made) = (settings.to_owned(), Digest::sha256(made.as_bytes()).to_string());
        let before = Before { file, text, made, directories };
        write(&self.path, &serde_json::to_string(&before)?)
    }

    /// Removes the directories that were made for the file, as far as nothing else is in them.
    fn remove_directories(&self) {
        let made = self.before.iter().flat_map(|before| before.directories.iter().rev());
        made.take_while(|dir| fs::remove_dir(dir).is_ok()).for_each(drop);
    }
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

/// The directory by which it is seen that an agent is used.
const fn directory(settings: &HookFile, args: &Install) -> &'static str {
    let [user, project] = settings.directories;
    if args.project.is_some() { project } else { user }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bailiwick_shell::hook_settings::holds_hooks;

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
