//! Which server a command starts, which manifest is for it, and what its own arguments grant.
//!
//! A server is known by where its code comes from: a package of the user's registry, or the real path of its program.
//! What a copy of a package claims to be chooses a manifest; it is given no secret before a person confirmed the path.
//!
//! Fails closed when: it is not known what the command starts and no `--manifest` is given, no manifest is for it, one of
//! the user's manifests cannot be read, or a project's manifest allows more than the one that it should narrow.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bailiwick_manifest::Manifest;
use bailiwick_manifest::diff::Diff;
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_policy::finding::Source;
use bailiwick_remote::Endpoint;
use bailiwick_replica::ServerIdentity;
use bailiwick_store::{
    InstalledServer, PackageCall, ProjectCode, ResolveOptions, ServerCommand, Store, StoreHost,
    UnknownCommand, code_of_command, foreign_source, shipped_manifest, split_command, with_host_values,
};

use super::{plain, shown_command};
use crate::args::run::NameOptions;
use crate::args::wrap::Wrap;
use crate::commands::secret::source_variables;
use crate::commands::store::{fetch, host, host_without};
use crate::commands::verified;
use crate::fleet_rules::ServerInFleet;
use crate::{facts, input, pin_store};

/// A server, its manifest with all values, and the command that starts it.
pub(super) struct ChosenServer {
    pub(super) identity: String,
    /// The package that it says it is, with its version, as `REGISTRY:NAME@VERSION`.
    pub(super) package: Option<String>,
    pub(super) source: Source,
    pub(super) manifest: Manifest,
    /// The files that the manifest comes from.
    pub(super) files: Vec<PathBuf>,
    pub(super) command: Vec<OsString>,
    /// Code of it that no package manager fetched.
    pub(super) code: ProjectCode,
    /// What is worth knowing.
    pub(super) notes: Vec<String>,
    /// What the fleet says of it.
    pub(super) fleet: Option<ServerInFleet>,
}

/// What a command starts, as far as that is known.
enum Started {
    Package(PackageCall),
    Installed(InstalledServer),
    Unknown(String),
    /// A server that runs elsewhere, by its URL.
    Elsewhere(String),
}

/// A manifest and where it stands.
struct FoundManifest {
    source: Source,
    manifest: Manifest,
    file: Option<PathBuf>,
}

impl ChosenServer {
    /// # Errors
    /// Why nothing can be started, in words for people and models.
    pub(super) fn new(args: &Wrap) -> anyhow::Result<Self> {
        let hidden = source_variables(&args.secrets);
        let host = host_without(args.names.clone(), args.no_journal, &hidden)?;
        let started = match &args.url {
            Some(url) => Started::Elsewhere(Endpoint::new(url)?.to_string()),
            None => Started::from_words(&args.command, &host)?,
        };
        // What is revoked is not even fetched.
        let known = ServerIdentity::named(args.name.clone().into_iter().chain(started.identities()));
        let fleet = ServerInFleet::find(known.clone())?;
        let granted = fleet.as_ref().map(ServerInFleet::granted).transpose()?.flatten();
        let found = match (granted, &args.manifest) {
            (Some((name, text, manifest)), _) => {
                FoundManifest { source: Source::new(name, text), manifest, file: None }
            }
            (None, Some(file)) => named(file)?,
            (None, None) => {
                let ended = fleet.iter().flat_map(|fleet| fleet.rules.notes());
                let ended: String = ended.map(|note| format!("{note}. ")).collect();
                by_identity(&started.identities())?
                    .with_context(|| format!("{ended}{}", no_manifest(args, &started)))?
            }
        };
        let mut notes: Vec<String> = verified::in_words(&found.manifest).into_iter().collect();
        let (command, version) = started.command(args, &host, &found.manifest)?;
        let package = package_of(known.clone(), version.as_deref());
        let fleet = fleet.map(|fleet| asked_again(fleet, known, &found.manifest, version.as_deref()));
        let fleet = fleet.transpose()?;
        notes.extend(fleet.iter().flat_map(|fleet| fleet.rules.notes()));
        notes.extend(version.and_then(|version| unverified(&found, &version)));
        let settings: Vec<(String, String)> = args.settings.iter().map(facts::Setting::pair).collect();
        let arguments = started.arguments(&args.command);
        let with_values = |manifest: Manifest| with_host_values(manifest, arguments, &settings, &host);
        let mut manifest = with_values(found.manifest)?;
        if args.manifest.is_none() && started.is_unconfirmed(&host) {
            let held = manifest.clone().without_injection();
            if held.lines().count() < manifest.lines().count() {
                notes.push(started.withheld());
            }
            manifest = held;
        }
        let identity = started.pinned_as(args);
        let mut files: Vec<PathBuf> = found.file.into_iter().collect();
        let mut source = found.source;
        if args.manifest.is_none()
            && let Some(own) = of_project(&started.identities(), &host.cwd)?
        {
            let own_manifest = with_values(own.manifest)?.with_states_of(&manifest);
            manifest = narrowed(&manifest, own_manifest, own.source.name())?;
            files.extend(own.file);
            source = own.source;
        }
        let code = started.code(args, &host);
        Ok(Self { identity, package, source, manifest, files, command, code, notes, fleet })
    }
}

/// The package of a server, with its version where that is known.
fn package_of(mut known: ServerIdentity, version: Option<&str>) -> Option<String> {
    version.into_iter().for_each(|version| known.set_version(version));
    known.package().map(ToString::to_string)
}

/// What the fleet says of a server whose manifest and version are known. The same grant counts, or none.
fn asked_again(
    fleet: ServerInFleet,
    mut known: ServerIdentity,
    manifest: &Manifest,
    version: Option<&str>,
) -> anyhow::Result<ServerInFleet> {
    let granted = fleet.rules.grant().cloned();
    known.add_name(manifest.name());
    version.into_iter().for_each(|version| known.set_version(version));
    let fleet = fleet.again(known)?;
    Ok(if fleet.rules.grant() == granted.as_ref() { fleet } else { fleet.without_grant() })
}

impl Started {
    fn from_words(words: &[OsString], host: &StoreHost) -> anyhow::Result<Self> {
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
    fn identities(&self) -> Vec<String> {
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
    fn pinned_as(&self, args: &Wrap) -> String {
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
            (None, Self::Unknown(_)) => shown_command(args),
        }
    }

    /// The words that are the server's own.
    fn arguments<'a>(&'a self, words: &'a [OsString]) -> &'a [OsString] {
        match self {
            Self::Package(call) => &call.arguments,
            Self::Installed(server) => &server.arguments,
            Self::Unknown(_) | Self::Elsewhere(_) => words.get(1..).unwrap_or_default(),
        }
    }

    /// What is run, and its version where that is known. A package is fetched if it is not there.
    fn command(
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
    fn code(&self, args: &Wrap, host: &StoreHost) -> ProjectCode {
        match (self, args.command.first()) {
            (Self::Installed(_) | Self::Unknown(_), Some(program)) => {
                code_of_command(&found_program(Path::new(program), host), &args.command, host)
            }
            (Self::Package(_) | Self::Elsewhere(_), _) | (_, None) => ProjectCode::default(),
        }
    }

    /// Whether it is a copy whose identity is only its own word.
    fn is_unconfirmed(&self, host: &StoreHost) -> bool {
        match self {
            Self::Installed(server) => {
                server.claim.is_some() && !bailiwick_store::is_confirmed(&host.records, &server.path)
            }
            Self::Package(_) | Self::Unknown(_) | Self::Elsewhere(_) => false,
        }
    }

    fn withheld(&self) -> String {
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
pub(in crate::commands) fn has_manifest(words: &[OsString]) -> bool {
    let Ok(host) = host(NameOptions::default(), true) else { return false };
    let started = Started::from_words(words, &host);
    started.is_ok_and(|started| by_identity(&started.identities()).is_ok_and(|found| found.is_some()))
}

/// A program where the caller's shell finds it.
fn found_program(program: &Path, host: &StoreHost) -> PathBuf {
    if program.components().count() > 1 {
        return host.cwd.join(program);
    }
    let named = host.search.callers.iter().map(|dir| dir.join(program)).find(|file| file.is_file());
    named.unwrap_or_else(|| program.to_owned())
}

fn named(file: &Path) -> anyhow::Result<FoundManifest> {
    anyhow::ensure!(
        file != Path::new("-"),
        "the manifest cannot come from stdin, which carries the protocol"
    );
    let (source, manifest) = input::manifest(file).map_err(|useless| plain(useless.refusal()))?;
    Ok(FoundManifest { source, manifest, file: Some(file.to_owned()) })
}

/// The user's manifest for one of these identities, else the shipped one.
fn by_identity(identities: &[String]) -> anyhow::Result<Option<FoundManifest>> {
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
pub(in crate::commands) fn only_shipped(
    identity: &str,
    project: &Path,
) -> Option<(&'static str, &'static str)> {
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
fn of_project(identities: &[String], cwd: &Path) -> anyhow::Result<Option<FoundManifest>> {
    let dir = cwd.ancestors().map(|dir| dir.join(".bailiwick/servers")).find(|dir| dir.is_dir());
    let Some(dir) = dir else { return Ok(None) };
    let found = identities.iter().map(|identity| in_directory(&dir, identity));
    Ok(found.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().next())
}

/// A project's manifest, if it allows nothing more than the one that it narrows.
fn narrowed(base: &Manifest, own: Manifest, file: &str) -> anyhow::Result<Manifest> {
    let snapshot = |manifest: &Manifest| {
        Snapshot::from_manifest(manifest.clone()).map_err(|finding| anyhow::anyhow!("{finding}"))
    };
    let diff = Diff::between(&snapshot(base)?, &snapshot(&own)?)
        .map_err(|findings| anyhow::anyhow!("{findings}"))?;
    if !diff.widens() {
        return Ok(own);
    }
    anyhow::bail!(
        "the project's manifest `{file}` may only narrow what you or Bailiwick grant this server, and it allows more: {}. \
         Review it and put it into `{}` if you want that",
        super::authority::in_words(&diff),
        facts::server_manifests().unwrap_or_default().display()
    )
}

fn unverified(found: &FoundManifest, version: &str) -> Option<String> {
    let verified = &found.manifest.package()?.verified;
    if verified.is_empty() && found.file.is_none() {
        return Some(
            "the shipped manifest was written from what the server says of itself, and not tried with it"
                .to_owned(),
        );
    }
    let is_known = verified.is_empty() || verified.iter().any(|known| known == version);
    (!is_known).then(|| {
        format!("the manifest was tried with version {}, and this is {version}", verified.join(", "))
    })
}

fn no_manifest(args: &Wrap, started: &Started) -> String {
    let command = shown_command(args);
    let what = match started {
        Started::Unknown(why) => format!("it is not known which server this is: {why}"),
        Started::Package(_) | Started::Installed(_) | Started::Elsewhere(_) => {
            let names = started.identities().join("` or `");
            format!("no manifest is there for `{names}`, neither shipped nor yours")
        }
    };
    if args.url.is_some() {
        return format!(
            "{what}. So no call reaches it. Write a manifest with `bailiwick init server.toml`, declare its tools in it, and start \
             it with `bailiwick wrap --manifest server.toml --url {command}`"
        );
    }
    format!(
        "{what}. So it was not started. Have a manifest written from what it does in safety: `bailiwick learn --server --out \
         server.toml -- {command}`; review it, and start it with `bailiwick wrap --manifest server.toml -- {command}`"
    )
}
