//! What a fleet says on this machine: the enrolment, the copy of the log, and what it leaves of what is granted here.
//!
//! Fails closed when: this machine is in a fleet and its enrolment, its copy of the log or a rule for the server cannot be used. Nothing starts then.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bailiwick_fleet::checkpoint::Trust;
use bailiwick_fleet::enrolment::{AUTHORITY_FILE, ENROLMENT_FILE, Enrolment, MAX_ENROLMENT};
use bailiwick_fleet::entry::Role;
use bailiwick_journal::format::{Event, RecordKind};
use bailiwick_manifest::{Checked, Manifest};
use bailiwick_policy::finding::{Finding, Findings};
use bailiwick_remote::{Client, OwnTls, Resolver};
use bailiwick_replica::{ClientMaker, CopyStore, Leash, LogFinding, Replica, ServerIdentity, ServerRules};

use crate::facts::{self, Setting};
use crate::hook_records::act;
use crate::render::escape;
use crate::{input, moment};

/// The command that looks at the log once, for processes that end too soon for that.
pub const REFRESH: &str = "refresh-fleet";

/// How often, and with which pause, a process that looks in another one's place tries to.
const PATIENT_TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// What a fleet says of one server that starts now.
pub struct ServerInFleet {
    replica: Replica,
    /// The rules of the fleet for it.
    pub rules: ServerRules,
}

/// The fleet's enrolment of this machine, if it is in one.
///
/// # Errors
/// If it is there and cannot be used.
pub fn enrolment() -> anyhow::Result<Option<Enrolment>> {
    let Some(dir) = facts::fleet_dir() else { return Ok(None) };
    let file = dir.join(ENROLMENT_FILE);
    if !facts::is_fleet_of_host(&dir) && is_absent(&file) {
        return Ok(None);
    }
    let source = input::read_at_most(&file, MAX_ENROLMENT).map_err(|why| anyhow::anyhow!(why.in_words()))?;
    let read = Enrolment::parse(source.text());
    let read = read.map_err(|findings| anyhow::anyhow!("`{}` cannot be used: {findings}", file.display()))?;
    Ok(Some(read).filter(|enrolment| enrolment.role == Role::Machine))
}

/// The copy of the fleet's log, if this machine is in a fleet.
///
/// # Errors
/// If it is, and there is no copy that can be used.
pub fn replica() -> anyhow::Result<Option<Replica>> {
    let Some(enrolment) = enrolment()? else { return Ok(None) };
    let replica = Replica::open(store(&enrolment)?, client_maker())
        .context("this machine is in a fleet, and nothing starts without the fleet's rules")?;
    Ok(Some(replica))
}

/// Where the copy of this log is.
///
/// # Errors
/// If this user has no directory for it.
pub fn store(enrolment: &Enrolment) -> anyhow::Result<CopyStore> {
    let state = facts::state_dir();
    let state = state.context("neither XDG_STATE_HOME nor HOME says where the copy of the fleet's log is")?;
    Ok(CopyStore::new(&state, enrolment))
}

/// Whom checkpoints are trusted from: the keys that followed those of the enrolment, as the copy of the log that is held here has them.
pub fn trust(enrolment: &Enrolment) -> Trust {
    let trust = enrolment.trust();
    let copy = store(enrolment).ok().and_then(|store| store.load().ok().flatten());
    match copy {
        Some(copy) => Trust { hub_keys: copy.state().hub_keys(&enrolment.log_key), ..trust },
        None => trust,
    }
}

/// Makes the client that the log is fetched with.
pub fn client_maker() -> ClientMaker {
    Arc::new(|| {
        let file = facts::fleet_dir().map(|dir| dir.join(AUTHORITY_FILE)).filter(|file| !is_absent(file));
        let authorities = file.map(std::fs::read).transpose().map_err(|why| why.to_string())?;
        let own = OwnTls { authorities: authorities.as_deref(), identity: None };
        let client = Client::with_tls(Resolver::default(), Default::default(), &own);
        Ok(client.map_err(|why| why.to_string())?.for_own_network())
    })
}

/// `bailiwick refresh-fleet`, and what `enroll` ends with: one look at the log, however long it takes.
///
/// # Errors
/// If there is no copy then.
pub fn refresh_once() -> anyhow::Result<()> {
    let Some(enrolment) = enrolment()? else { return Ok(()) };
    let store = store(&enrolment)?;
    let mut refreshed = None;
    // A process that looks now may end before it has an answer.
    for _ in 0..PATIENT_TRIES {
        refreshed = bailiwick_replica::refresh(&store, &client_maker())?;
        if refreshed.is_some() {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    let refreshed = refreshed.unwrap_or_default();
    refreshed.findings.iter().for_each(record);
    let faults = refreshed.faults.join("; ");
    anyhow::ensure!(store.load()?.is_some(), "there is no copy of the fleet's log yet: {faults}");
    Ok(())
}

/// The copy of the log in a few lines: how far it goes, how old it is, and what was found wrong.
pub fn copy_in_words() -> anyhow::Result<String> {
    let Some(enrolment) = enrolment()? else { return Ok(String::new()) };
    let store = store(&enrolment)?;
    let Some(copy) = store.load()? else {
        return Ok("  no copy of the log: nothing starts until there is one\n".to_owned());
    };
    let head = copy.head();
    let age_s = (facts::now_us() / 1000).saturating_sub(head.fresh_ms) / 1000;
    let findings = store.findings();
    let found = findings.iter().map(|found| {
        format!(
            "  {}, seen {}: {}: {}\n",
            found.code,
            moment::utc(found.time_ms.saturating_mul(1000)),
            escape::line(&found.source),
            escape::line(&found.message)
        )
    });
    let (size, root) = (head.checkpoint.size, head.checkpoint.root);
    Ok(format!("  log of {size} entries, root {root}, signed {age_s} s ago\n{}", found.collect::<String>()))
}

/// Has another process look at the log if that is due: this one may end before it would have an answer.
pub fn refresh_aside(replica: &Replica) {
    if !replica.is_due() {
        return;
    }
    let Some(program) = facts::own_program() else { return };
    let mut command = std::process::Command::new(program);
    let null = std::process::Stdio::null;
    command.arg(REFRESH).stdin(null()).stdout(null()).stderr(null()).current_dir("/");
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    // The next process tries again.
    drop(command.spawn());
}

impl ServerInFleet {
    /// What the fleet says of a server; nothing if this machine is in none.
    ///
    /// # Errors
    /// Why the server must not start.
    pub fn find(identity: ServerIdentity) -> anyhow::Result<Option<Self>> {
        let Some(replica) = replica()? else { return Ok(None) };
        let rules = ServerRules::now(&replica, identity)?;
        Ok(Some(Self { replica, rules }))
    }

    /// The same, asked again for a server of which more is known.
    ///
    /// # Errors
    /// Why the server must not start.
    pub fn again(self, identity: ServerIdentity) -> anyhow::Result<Self> {
        let rules = ServerRules::now(&self.replica, identity)?;
        Ok(Self { rules, ..self })
    }

    /// The same, where nothing that the fleet grants is used.
    pub fn without_grant(self) -> Self {
        Self { rules: self.rules.without_grant(), ..self }
    }

    /// The manifest that the fleet grants, and what it is called.
    ///
    /// # Errors
    /// If it grants something else than a manifest.
    pub fn granted(&self) -> anyhow::Result<Option<(String, &str, Manifest)>> {
        let Some(grant) = self.rules.grant() else { return Ok(None) };
        let manifest = Manifest::parse(&grant.grant);
        let manifest = manifest.map_err(|findings| {
            anyhow::anyhow!("the fleet's grant `{}` is no manifest: {findings}", grant.id)
        })?;
        Ok(Some((format!("<fleet's grant {}>", grant.id), &grant.grant, manifest)))
    }

    /// Manifests that narrow the server.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn ceilings(&self) -> anyhow::Result<Vec<Manifest>> {
        Ok(self.rules.ceilings()?)
    }

    /// Holds the server to the log from now on.
    ///
    /// # Errors
    /// If that cannot be.
    pub fn leash(self) -> anyhow::Result<Leash> {
        Ok(Leash::new(&self.replica, self.rules, record)?)
    }

    /// The same for a process that may be short.
    ///
    /// # Errors
    /// If that cannot be.
    pub fn short_leash(self) -> anyhow::Result<Leash> {
        refresh_aside(&self.replica);
        self.leash()
    }
}

/// A manifest of this machine under those of the fleet, with the paths of this host.
///
/// # Errors
/// A finding for every path variable of a fleet's manifest that has no value here.
pub fn narrowed(own: Checked, ceilings: &[Manifest], settings: &[Setting]) -> Result<Checked, Vec<Finding>> {
    ceilings.iter().try_fold(own, |own, ceiling| Ok(own.under(&checked(ceiling, settings)?)))
}

/// A manifest of the fleet, with the paths of this host.
///
/// # Errors
/// A finding for every path variable that has no value here.
pub fn checked(ceiling: &Manifest, settings: &[Setting]) -> Result<Checked, Vec<Finding>> {
    let facts = facts::for_manifest(ceiling, settings)?;
    ceiling.clone().check(&facts).map_err(Findings::into_vec)
}

/// Records a fork, a rollback, or a clock that is behind.
fn record(found: &LogFinding) {
    let reason = format!("the fleet's log at {}: {}", found.source, found.message);
    act(Event::new(RecordKind::Fault).with_code(found.code.clone()).with_reason(reason));
}

fn is_absent(file: &Path) -> bool {
    matches!(file.symlink_metadata(), Err(why) if why.kind() == std::io::ErrorKind::NotFound)
}
