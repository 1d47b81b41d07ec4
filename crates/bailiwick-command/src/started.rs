//! Which server a command starts, and which manifest is for it.
//!
//! A server is known by where its code comes from: a package of the user's registry, or the real path of its program.
//! What a copy of a package claims to be chooses a manifest; it is given no secret before a person confirmed the path.
//!
//! Fails closed when one of the user's manifests cannot be read: it might be the one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bailiwick_manifest::Manifest;
use bailiwick_policy::finding::Source;
use bailiwick_store::{
    InstalledServer, PackageCall, ProjectCode, ResolveOptions, ServerCommand, Store, StoreHost,
    UnknownCommand, code_of_command, foreign_source, shipped_manifest, split_command,
};

use crate::answer::plain;
use crate::args::run::NameOptions;
use crate::args::wrap::Wrap;
use crate::packages::{fetch, host};
use crate::{facts, input, pin_store};

/// What a command starts, as far as that is known.
pub enum StartedServer {
    /// A package that a launcher such as `npx` would fetch.
    Package(PackageCall),
    /// A program that is installed.
    Installed(InstalledServer),
    /// Something else, and why it is not known.
    Unknown(String),
    /// A server that runs elsewhere, by its URL.
    Elsewhere(String),
}

/// A manifest and where it stands.
pub struct FoundManifest {
    /// Its text.
    pub source: Source,
    /// The manifest.
    pub manifest: Manifest,
    /// The file that it is in; none if it is shipped or granted by a fleet.
    pub file: Option<PathBuf>,
}

impl StartedServer {
    /// What the words of a command start.
    ///
    /// # Errors
    /// If they ask for something that is refused.
    pub fn from_words(words: &[OsString], host: &StoreHost) -> anyhow::Result<Self> {
        match split_command(words) {
            Ok(ServerCommand::Package(call)) => {
                Ok(foreign_source(&call, host).map_or(Self::Package(call), Self::Unknown))
            }
            Ok(ServerCommand::Program) => {
                let program = words.first().map(|program| found_program(Path::new(program), host));
                let installed = program.and_then(|program| InstalledServer::find(&program, words));
                let unknown = || {
                    Self::Unknown("its program is not there, or has options that may run anything".to_owned())
                };
                Ok(installed.map_or_else(unknown, Self::Installed))
            }
            Err(UnknownCommand::Unknown(why)) => Ok(Self::Unknown(why)),
            Err(UnknownCommand::Refused(why)) => anyhow::bail!(why),
        }
    }

    /// What a manifest may name it by, the surest first.
    pub fn identities(&self) -> Vec<String> {
        match self {
            Self::Package(call) => vec![call.identity()],
            Self::Installed(server) => {
                let claimed = server.claim.iter().map(|claim| claim.identity.clone());
                std::iter::once(server.path.display().to_string()).chain(claimed).collect()
            }
            Self::Elsewhere(url) => vec![url.clone()],
            Self::Unknown(_) => Vec::new(),
        }
    }

    /// What its pins are kept under.
    pub fn pinned_as(&self, args: &Wrap) -> String {
        let real =
            |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string();
        match (&args.manifest, self) {
            // It is connected to by this.
            (_, Self::Elsewhere(url)) => url.clone(),
            (Some(manifest), Self::Package(call)) => format!("{} {}", real(manifest), call.identity()),
            (Some(manifest), Self::Installed(_) | Self::Unknown(_)) => {
                pin_store::identity(manifest, &args.command)
            }
            (None, Self::Package(call)) => call.identity(),
            (None, Self::Installed(server)) => server.path.display().to_string(),
            (None, Self::Unknown(_)) => args.shown_command(),
        }
    }

    /// The words that are the server's own.
    pub fn arguments<'a>(&'a self, words: &'a [OsString]) -> &'a [OsString] {
        match self {
            Self::Package(call) => &call.arguments,
            Self::Installed(server) => &server.arguments,
            Self::Unknown(_) | Self::Elsewhere(_) => words.get(1..).unwrap_or_default(),
        }
    }

    /// What is run, and its version where that is known. A package is fetched if it is not there.
    pub fn command(
        &self,
        args: &Wrap,
        host: &StoreHost,
        manifest: &Manifest,
    ) -> anyhow::Result<(Vec<OsString>, Option<String>)> {
        match self {
            Self::Package(call) => {
                let scripts = manifest.package().is_some_and(|package| package.install_scripts);
                let options = ResolveOptions { refresh: args.refresh, install_scripts: scripts };
                fetch(call, options, host, args.no_journal)?;
                let kept = ResolveOptions { refresh: false, ..options };
                let server = Store::new(host).resolve(call, kept)?;
                Ok((server.command, Some(server.package.version)))
            }
            Self::Installed(server) => {
                Ok((args.command.clone(), server.claim.as_ref().map(|claim| claim.version.clone())))
            }
            Self::Unknown(_) => Ok((args.command.clone(), None)),
            Self::Elsewhere(url) => Ok((vec![url.into()], None)),
        }
    }

    /// The code of a server in the user's own project. A package that was fetched brings its own.
    pub fn code(&self, args: &Wrap, host: &StoreHost) -> ProjectCode {
        match (self, args.command.first()) {
            (Self::Installed(_) | Self::Unknown(_), Some(program)) => {
                code_of_command(&found_program(Path::new(program), host), &args.command, host)
            }
            (Self::Package(_) | Self::Elsewhere(_), _) | (_, None) => ProjectCode::default(),
        }
    }

    /// Whether it is a copy whose identity is only its own word.
    pub fn is_unconfirmed(&self, host: &StoreHost) -> bool {
        match self {
            Self::Installed(server) => {
                server.claim.is_some() && !bailiwick_store::is_confirmed(&host.records, &server.path)
            }
            Self::Package(_) | Self::Unknown(_) | Self::Elsewhere(_) => false,
        }
    }

    /// What to say where no variable is handed to an unconfirmed copy.
    pub fn withheld(&self) -> String {
        let path = if let Self::Installed(server) = self {
            server.path.display().to_string()
        } else {
            String::new()
        };
        format!(
            "this copy only claims to be its package, so no variable is handed to it; `bailiwick store confirm {path}` \
             changes that"
        )
    }
}

/// Whether `wrap` finds a manifest for this command by itself. Nothing is fetched or started to find out.
pub fn has_manifest(words: &[OsString]) -> bool {
    let Ok(host) = host(NameOptions::default(), true) else { return false };
    let started = StartedServer::from_words(words, &host);
    started.is_ok_and(|started| by_identity(&started.identities()).is_ok_and(|found| found.is_some()))
}

/// A program where the caller's shell finds it.
pub fn found_program(program: &Path, host: &StoreHost) -> PathBuf {
    if program.components().count() > 1 {
        return host.cwd.join(program);
    }
    let named = host.search.callers.iter().map(|dir| dir.join(program)).find(|file| file.is_file());
    named.unwrap_or_else(|| program.to_owned())
}

/// The user's manifest for one of these identities, else the shipped one.
pub fn by_identity(identities: &[String]) -> anyhow::Result<Option<FoundManifest>> {
    for identity in identities {
        if let Some(own) =
            facts::server_manifests().map(|dir| in_directory(&dir, identity)).transpose()?.flatten()
        {
            return Ok(Some(own));
        }
        if let Some((name, text)) = shipped_manifest(identity) {
            let manifest = Manifest::parse(text).map_err(|findings| anyhow::anyhow!("{findings}"))?;
            let source = Source::new(format!("<shipped {name}.toml>"), text);
            return Ok(Some(FoundManifest { source, manifest, file: None }));
        }
    }
    Ok(None)
}

/// The shipped manifest, by name and text, that holds this server in this project because there is no other.
pub fn only_shipped(identity: &str, project: &Path) -> Option<(&'static str, &'static str)> {
    let identities = [identity.to_owned()];
    let (found, own) = (by_identity(&identities).ok()??, of_project(&identities, project).ok()?);
    if found.file.is_some() || own.is_some() { None } else { shipped_manifest(identity) }
}

/// The manifest of a directory that is for this server. One that cannot be read might be the one.
fn in_directory(dir: &Path, identity: &str) -> anyhow::Result<Option<FoundManifest>> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Ok(None) };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml" || extension == "json"));
    files.sort();
    for file in files {
        let found = named(&file)?;
        if found.manifest.package().and_then(|package| package.identity.as_deref()) == Some(identity) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// What the project says about this server.
pub fn of_project(identities: &[String], cwd: &Path) -> anyhow::Result<Option<FoundManifest>> {
    let dir = cwd.ancestors().map(|dir| dir.join(".bailiwick/servers")).find(|dir| dir.is_dir());
    let Some(dir) = dir else { return Ok(None) };
    let found = identities.iter().map(|identity| in_directory(&dir, identity));
    Ok(found.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().next())
}

/// The manifest that a user names.
///
/// # Errors
/// If it cannot be used.
pub fn named(file: &Path) -> anyhow::Result<FoundManifest> {
    anyhow::ensure!(
        file != Path::new("-"),
        "the manifest cannot come from stdin, which carries the protocol"
    );
    let (source, manifest) = input::manifest(file).map_err(|useless| plain(useless.refusal()))?;
    Ok(FoundManifest { source, manifest, file: Some(file.to_owned()) })
}
