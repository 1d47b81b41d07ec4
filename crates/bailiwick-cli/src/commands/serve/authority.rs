//! What a session may do, and who says so.
//!
//! The command line, else the first of two variables and two configuration files that is there and grants. A source that
//! is there and cannot be read refuses; it is never passed over for the next.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::serve::Serve;
use bailiwick_command::facts::Setting;
use bailiwick_command::fleet_rules::ServerInFleet;
use bailiwick_command::grant_file::GrantFile;
use bailiwick_command::input::InputError;
use bailiwick_command::{facts, fleet_rules, input};
use bailiwick_manifest::caveats::Caveats;
use bailiwick_manifest::{Checked, CheckedTool, Manifest};
use bailiwick_policy::authority::Authority;
use bailiwick_policy::finding::{Finding, Findings, Source};
use bailiwick_policy::lattice::CountBound;
use bailiwick_policy::secret_use::SecretUse;
use bailiwick_replica::ServerIdentity;

use super::refused;

/// Variables that hold caveats, in this order.
const VARIABLES: [&str; 2] = ["BAILIWICK_CAVEATS", "AGENT_BRIDLE_CAVEATS"];

const GUIDANCE: &str = "nothing is granted to this session, so every call is denied; a person can start the server \
                        with `bailiwick serve --cap CAPABILITY` or `--grant FILE`, or set BAILIWICK_CAVEATS";

/// What a session may do.
pub(super) struct Granted {
    pub(super) authority: Authority,
    /// Who says so.
    pub(super) origin: String,
    /// The manifests among the grants: tools that they declare are held to them.
    pub(super) manifests: Vec<Checked>,
    is_nothing: bool,
}

impl Granted {
    /// What the fleet leaves of it, and the fleet's rules for this server.
    ///
    /// # Errors
    /// Why nothing may be served.
    pub(super) fn under_fleet(mut self, args: &Serve) -> anyhow::Result<(Self, Option<ServerInFleet>)> {
        let identity = ServerIdentity::named([args.name.as_str(), "bailiwick serve"]);
        let Some(fleet) = ServerInFleet::find(identity)? else { return Ok((self, None)) };
        let fleet = fleet.without_grant();
        let wrong = |found: Vec<Finding>| {
            let why = found.first().map(Finding::message).unwrap_or_default();
            anyhow::anyhow!("the fleet's manifest for this server cannot be used: {why}")
        };
        for ceiling in fleet.ceilings()? {
            let ceiling = fleet_rules::checked(&ceiling, &args.settings).map_err(wrong)?;
            self.authority = self.authority.meet(&ceiling.authority().clone().as_bound());
            self.manifests = self.manifests.into_iter().map(|own| own.under(&ceiling)).collect();
            // Its rules on tools that no manifest here declares hold too.
            let known = |name: &str| self.manifests.iter().any(|own| own.tool(name).is_some());
            let rest = ceiling.manifest().clone().with_tools(|tool| !known(tool.name()));
            if !rest.tools().is_empty() {
                self.manifests.push(fleet_rules::checked(&rest, &args.settings).map_err(wrong)?);
            }
        }
        self.origin = format!(
            "{}{}",
            self.origin,
            if fleet.rules.notes().is_empty() { "" } else { ", narrowed by the fleet" }
        );
        Ok((self, Some(fleet)))
    }

    /// How brokered secrets are used: as every manifest says that says something of it.
    pub(super) fn secret_uses(&self) -> BTreeMap<String, SecretUse> {
        let mut uses = BTreeMap::<String, SecretUse>::new();
        for (name, usage) in self.manifests.iter().flat_map(|manifest| manifest.manifest().secrets()) {
            let met = uses.get(name).map_or_else(|| usage.clone(), |known| known.meet(usage));
            uses.insert(name.clone(), met);
        }
        uses
    }

    /// What to do where nothing was granted.
    pub(super) fn guidance(&self) -> Option<&'static str> {
        self.is_nothing.then_some(GUIDANCE)
    }
}

/// Reads what the session may do.
pub(super) fn granted(args: &Serve) -> Result<Granted, Answer> {
    if !args.grants.is_empty() || !args.caps.is_empty() {
        return of_command_line(args);
    }
    let mut found = of_variables()?;
    for path in facts::configurations() {
        if found.is_none() {
            found = of_configuration(&path)?;
        }
    }
    match found {
        Some((authority, origin)) => {
            Ok(Granted { authority, origin, manifests: Vec::new(), is_nothing: false })
        }
        None => {
            let none = Authority::from_capabilities(&[]).map_err(wrong)?;
            let (origin, manifests) = ("no source".to_owned(), Vec::new());
            Ok(Granted { authority: none, origin, manifests, is_nothing: true })
        }
    }
}

fn of_command_line(args: &Serve) -> Result<Granted, Answer> {
    let (mut parts, mut manifests) = (Vec::new(), Vec::<Checked>::new());
    for path in &args.grants {
        let (authority, manifest) = of_file(path, &args.settings)?;
        parts.push((authority, path.display().to_string()));
        if let Some(manifest) = manifest {
            refuse_second_rules(&manifests, &manifest)?;
            manifests.push(manifest);
        }
    }
    if !args.caps.is_empty() {
        let caps = input::capabilities("--cap", &args.caps)?;
        parts.push((input::authority("--cap", &caps)?, "--cap".to_owned()));
    }
    let origin = parts.iter().map(|(_, origin)| origin.as_str()).collect::<Vec<_>>().join(", ");
    Ok(Granted { authority: together(parts)?, origin, manifests, is_nothing: false })
}

/// Two manifests that declare one tool would hold it to neither.
fn refuse_second_rules(known: &[Checked], more: &Checked) -> Result<(), Answer> {
    let declared = |tool: &&CheckedTool| known.iter().any(|one| one.tool(tool.name()).is_some());
    more.tools().iter().find(declared).map_or(Ok(()), |tool| {
        let why = format!("two manifests declare the tool `{}`; give one of them", tool.name());
        Err(refused(Exit::Usage, &why))
    })
}

/// All of them: every line of each, and the fewest calls that one of them says.
fn together(mut parts: Vec<(Authority, String)>) -> Result<Authority, Answer> {
    if parts.len() == 1
        && let Some((only, _)) = parts.pop()
    {
        return Ok(only);
    }
    let mut lines = Vec::new();
    let mut fewest: Option<u64> = None;
    for (authority, origin) in parts {
        let Some(more) = authority.capabilities().filter(|_| authority.allows_generation(0)) else {
            let why = format!("what `{origin}` grants cannot be added to other grants; give it alone");
            return Err(refused(Exit::Usage, &why));
        };
        lines.extend(more);
        if let CountBound::AtMost(calls) = authority.calls() {
            fewest = Some(fewest.map_or(calls, |fewest| fewest.min(calls)));
        }
    }
    let sum = Authority::from_capabilities(&lines).map_err(wrong)?;
    Ok(fewest.map_or_else(|| sum.clone(), |calls| sum.at_most(calls)))
}

/// Caveats, a manifest or snapshot, or capabilities one a line.
fn of_file(path: &Path, settings: &[Setting]) -> Result<(Authority, Option<Checked>), Answer> {
    let (source, grant) = input::grant(path).map_err(|useless| useless.refusal())?;
    match grant {
        GrantFile::Manifest(manifest) => {
            let checked = of_manifest(source, *manifest, settings)?;
            Ok((checked.authority().clone(), Some(checked)))
        }
        GrantFile::Caveats(caveats) => Ok((authority_of(source, &caveats)?, None)),
        GrantFile::List(caps) => {
            let wrong = |finding| InputError::Wrong(source, vec![finding]).refusal();
            Ok((Authority::from_capabilities(&caps).map_err(wrong)?, None))
        }
    }
}

fn of_manifest(source: Source, manifest: Manifest, settings: &[Setting]) -> Result<Checked, Answer> {
    let checked = facts::for_manifest(&manifest, settings)
        .and_then(|facts| manifest.check(&facts).map_err(Findings::into_vec));
    checked.map_err(|findings| InputError::Wrong(source, findings).refusal())
}

fn of_variables() -> Result<Option<(Authority, String)>, Answer> {
    for name in VARIABLES {
        let Some(value) = facts::variable_of_caller(name) else { continue };
        let Ok(text) = value.into_string() else {
            return Err(refused(Exit::Invalid, &format!("{name} is not UTF-8")));
        };
        let source = Source::new(name, text);
        return match Caveats::parse(source.text()) {
            Ok(caveats) => Ok(Some((authority_of(source, &caveats)?, name.to_owned()))),
            Err(findings) => Err(InputError::wrong(source, findings).refusal()),
        };
    }
    Ok(None)
}

/// The table `[caveats]` of a configuration file.
fn of_configuration(path: &Path) -> Result<Option<(Authority, String)>, Answer> {
    let missing =
        |fault: std::io::Error| matches!(fault.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    if path.symlink_metadata().is_err_and(missing) {
        return Ok(None);
    }
    let source = input::read(path).map_err(|useless| useless.refusal())?;
    match Caveats::parse_config(source.text()) {
        Ok(Some(caveats)) => Ok(Some((authority_of(source, &caveats)?, path.display().to_string()))),
        Ok(None) => Ok(None),
        Err(findings) => Err(InputError::wrong(source, findings).refusal()),
    }
}

fn authority_of(source: Source, caveats: &Caveats) -> Result<Authority, Answer> {
    caveats.authority().map_err(|findings| InputError::wrong(source, findings).refusal())
}

fn wrong(finding: Finding) -> Answer {
    Answer::refusal(Exit::Invalid, input::unreadable(finding.message()))
}
