//! `bailiwick install --servers`: `bailiwick wrap` before the command of every server of the clients found, and away again.
//!
//! Which files a client reads and how one is changed is known to `bailiwick-clients`. What an entry was is kept in the
//! state directory, so that `--undo` restores it byte for byte whatever was edited elsewhere in the file.
//!
//! A server without a manifest is left alone: wrapped, it would have no tools.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bailiwick_clients::{
    Base, CLIENTS, Client, CommandPrefix, EntryChange, Server, SettingsPlace, servers, unwrap, wrap,
};
use bailiwick_command::answer::{Answer, Exit, Out, refused};
use bailiwick_command::facts;
use bailiwick_command::installed::kept_path;
use bailiwick_command::render::{escape, style};
use serde::{Deserialize, Serialize};

use super::{unified, write};
use crate::args::guard::Install;

/// What undoes the changes of one file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct KeptChanges {
    /// The file.
    #[serde(default)]
    file: PathBuf,
    changes: Vec<EntryChange>,
}

pub(super) fn run(args: &Install) -> anyhow::Result<Answer> {
    let named = |client: &&Client| args.client == "all" || args.client == client.name;
    let clients: Vec<&Client> = CLIENTS.iter().filter(named).collect();
    if clients.is_empty() {
        let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
        let why = format!("no client is called `{}`; they are: all, {}", args.client, names.join(", "));
        return Ok(refused(Exit::Usage, &why));
    }
    let installer = Installer::new(args)?;
    let mut text = String::new();
    let mut done = BTreeSet::new();
    for (client, place, path) in clients.iter().flat_map(|client| files(client, args)) {
        // Through a link to the file itself, so that the link stays one.
        let Ok(path) = path.canonicalize() else { continue };
        if !done.insert(path.clone()) {
            continue;
        }
        match installer.change(client, place, &path)? {
            Ok(shown) => text += &shown,
            Err(why) => {
                return Ok(Answer { out: Out::Text(text), ..refused(Exit::Invalid, &why) });
            }
        }
    }
    if done.is_empty() {
        let why =
            "no client has a file of servers here; `bailiwick install --help` shows how to name a project";
        return Ok(refused(Exit::Found, why));
    }
    Ok(Answer::result(Exit::Fine, text))
}

/// The files that a client may have, there or not.
fn files<'a>(
    client: &'a Client,
    args: &Install,
) -> impl Iterator<Item = (&'a Client, &'static SettingsPlace, PathBuf)> {
    let project = args.project.clone();
    let places = if project.is_some() { client.project } else { client.user };
    places.iter().filter_map(move |place| {
        let path = match &project {
            Some(project) => project.join(place.path),
            None => base(place.base)?.join(place.path),
        };
        Some((client, place, path))
    })
}

fn base(base: Base) -> Option<PathBuf> {
    let home = facts::home();
    let absolute =
        |name| facts::variable_of_caller(name).map(PathBuf::from).filter(|path| path.is_absolute());
    match base {
        Base::Home => home,
        Base::Config => absolute("XDG_CONFIG_HOME").or_else(|| Some(home?.join(".config"))),
        Base::Own { variable, directory } => absolute(variable).or_else(|| Some(home?.join(directory))),
    }
}

/// What is the same for every file.
struct Installer<'a> {
    args: &'a Install,
    program: String,
    manifests: PathBuf,
    variables: Vec<(String, String)>,
}

impl<'a> Installer<'a> {
    fn new(args: &'a Install) -> anyhow::Result<Self> {
        let program = facts::own_program().context("our own path is not known")?;
        let program = program.into_os_string().into_string();
        let program = program.ok().context("our own path is no text, and settings files are")?;
        let manifests = match &args.manifest_dir {
            Some(dir) => dir.canonicalize().unwrap_or_else(|_| dir.clone()),
            None => facts::server_manifests()
                .context("neither XDG_CONFIG_HOME nor HOME says where manifests are")?,
        };
        Ok(Self { args, program, manifests, variables: facts::unusual_directories() })
    }

    /// Changes one file; what to tell of it, or why it cannot be changed.
    fn change(
        &self,
        client: &Client,
        place: &SettingsPlace,
        path: &Path,
    ) -> anyhow::Result<Result<String, String>> {
        let shown = path.display();
        let before = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(fault) => return Ok(Err(format!("cannot read `{shown}`: {fault}"))),
        };
        let kept = kept_path(path)?.with_extension("servers");
        let changes = fs::read(&kept).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let KeptChanges { changes, .. } = changes.unwrap_or_default();
        // Ours are put there anew, so that they name the program and the directories of today.
        let bare = match unwrap(&place.form, &before, &changes) {
            Ok(bare) => bare,
            Err(why) => return Ok(Err(format!("`{shown}` {why}"))),
        };
        let (after, changes) = if self.args.undo {
            (bare, Vec::new())
        } else {
            match wrap(&place.form, &bare, |server| self.prefix(server)) {
                Ok(wrapped) => (wrapped.text, wrapped.changes),
                Err(why) => return Ok(Err(format!("`{shown}` {why}"))),
            }
        };
        let mut text = String::new();
        if after != before {
            text += &unified(path, Some(&before), Some(&after));
            if !self.args.dry_run {
                // What undoes it is kept first: a crash between the two leaves nothing that cannot be undone.
                write(&kept, &serde_json::to_string(&KeptChanges { file: path.to_owned(), changes })?)?;
                let is_same = fs::read_to_string(path).is_ok_and(|now| now == before);
                anyhow::ensure!(is_same, "`{shown}` was changed by another program meanwhile; try again");
                write(path, &after)?;
                if self.args.undo {
                    drop(fs::remove_file(&kept));
                }
            }
        }
        text += &self.summary(client, place, path, (&before, &after));
        Ok(Ok(text))
    }

    /// What stands before the command of a server; nothing for one without a manifest.
    fn prefix(&self, server: &Server) -> Option<CommandPrefix> {
        let manifest = match manifest_of(server, &self.manifests) {
            Some(file) => vec!["--manifest".to_owned(), file.to_str()?.to_owned()],
            None if is_known(server) => Vec::new(),
            None => return None,
        };
        let name = ["wrap", "--name", server.name()].map(str::to_owned);
        let arguments = name.into_iter().chain(manifest).chain(["--".to_owned()]).collect();
        Some(CommandPrefix { program: self.program.clone(), arguments, variables: self.variables.clone() })
    }

    fn summary(
        &self,
        client: &Client,
        place: &SettingsPlace,
        path: &Path,
        (before, after): (&str, &str),
    ) -> String {
        let all = servers(&place.form, after).unwrap_or_default();
        let shown = escape::line(&path.display().to_string());
        let how = match (before == after, self.args.undo, self.args.dry_run) {
            (true, _, _) => "needs no change",
            (false, true, _) => "has no prefix of ours any more",
            (false, false, true) => "would be changed so",
            (false, false, false) => "starts its servers through `bailiwick wrap`",
        };
        let mut text = format!("{}: {}: {shown} {how}\n", style::good("ok"), client.name);
        for server in all.iter().filter(|server| !self.args.undo && !server.is_wrapped()) {
            let _ = writeln!(text, "  left alone: {}, which has no manifest", escape::line(server.name()));
            let _ = writeln!(text, "    write one: {}", escape::line(&self.line_to_type(server)));
        }
        text
    }

    /// What makes a manifest for a server.
    fn line_to_type(&self, server: &Server) -> String {
        let name = if is_plain(server.name()) { server.name() } else { "NAME" };
        let file = self.manifests.join(format!("{name}.toml"));
        let quoted = |path: &Path| {
            let text = path.to_string_lossy().into_owned();
            shlex::try_quote(&text).map(|text| text.into_owned()).unwrap_or(text.clone())
        };
        let file = quoted(&file);
        format!("mkdir -p {} && bailiwick init --name {name} {file}", quoted(&self.manifests))
    }
}

/// The user's manifest of a server, if there is one for what its client calls it.
fn manifest_of(server: &Server, manifests: &Path) -> Option<PathBuf> {
    let name = server.name();
    let file = manifests.join(format!("{name}.toml"));
    (is_plain(name) && file.is_file()).then_some(file)
}

/// Whether `wrap` knows the server by where its code comes from.
#[cfg(target_os = "linux")]
fn is_known(server: &Server) -> bool {
    let words: Vec<_> = server.command.iter().map(Into::into).collect();
    bailiwick_command::started::has_manifest(&words)
}

#[cfg(not(target_os = "linux"))]
const fn is_known(_server: &Server) -> bool {
    false
}

/// Whether a name is that of one file, and no path.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    !name.is_empty() && !name.starts_with(['.', '-']) && name.chars().all(plain)
}
