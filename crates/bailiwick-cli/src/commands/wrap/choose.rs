//! Which server a command starts, which manifest is for it, and what its own arguments grant.
//!
//! A server is known by where its code comes from: a package of the user's registry, or the real path of its program.
//! What a copy of a package claims to be chooses a manifest; it is given no secret before a person confirmed the path.
//!
//! Fails closed when: it is not known what the command starts and no `--manifest` is given, no manifest is for it, one of
//! the user's manifests cannot be read, or a project's manifest allows more than the one that it should narrow.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context as _;
use bailiwick_command::args::wrap::Wrap;
use bailiwick_command::fleet_rules::ServerInFleet;
use bailiwick_command::packages::host_without;
use bailiwick_command::secret_sources::source_variables;
use bailiwick_command::started::{FoundManifest, StartedServer, by_identity, named, of_project};
use bailiwick_command::{facts, verified};
use bailiwick_manifest::Manifest;
use bailiwick_manifest::diff::Diff;
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_policy::finding::Source;
use bailiwick_remote::Endpoint;
use bailiwick_replica::ServerIdentity;
use bailiwick_store::{ProjectCode, with_host_values};

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

impl ChosenServer {
    /// # Errors
    /// Why nothing can be started, in words for people and models.
    pub(super) fn new(args: &Wrap) -> anyhow::Result<Self> {
        let hidden = source_variables(&args.secrets);
        let host = host_without(args.names.clone(), args.no_journal, &hidden)?;
        let started = match &args.url {
            Some(url) => StartedServer::Elsewhere(Endpoint::new(url)?.to_string()),
            None => StartedServer::from_words(&args.command, &host)?,
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

fn no_manifest(args: &Wrap, started: &StartedServer) -> String {
    let command = args.shown_command();
    let what = match started {
        StartedServer::Unknown(why) => format!("it is not known which server this is: {why}"),
        StartedServer::Package(_) | StartedServer::Installed(_) | StartedServer::Elsewhere(_) => {
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
