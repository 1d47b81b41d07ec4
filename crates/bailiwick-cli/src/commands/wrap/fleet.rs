//! What a fleet has to do with a wrapped server: consent of its approvers, its budgets by lease, and reports each minute.
//!
//! Enforcement asks no hub. What does need one, a person's consent and a new lease, is refused with that reason where none answers.
//! A broken enrolment starts nothing: it may be what narrows this machine. Where the enrolment is that of all users and its key is not
//! this one's, the rules hold, and what needs a hub is refused.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bailiwick_command::member_link::{
    MemberLink, block_on, is_key_of_host, lease_directory, machine, reporter, servers_here,
};
use bailiwick_command::render::{escape, style};
use bailiwick_command::terminal;
use bailiwick_fleet::protocol::BudgetUnit;
use bailiwick_guard::Meter;
use bailiwick_manifest::{FleetBudget, SpendUnit};
use bailiwick_member::approval::{ApprovalDesk, Decision, WaitingCall};
use bailiwick_member::enrol::{is_renewal_due, renew};
use bailiwick_member::identity::Identity;
use bailiwick_member::lease::{LeaseError, Purse, PurseUse, SpendError};
use bailiwick_member::now_ms;
use bailiwick_member::report::Reporter;

/// How long a call is held for a person: clients wait a minute for an answer.
const HOLD: Duration = Duration::from_secs(45);
/// How long a call may wait for another lease.
const LEASE_WAIT: Duration = Duration::from_secs(8);
/// How long the return of leases may take when we end.
const PARTING: Duration = Duration::from_secs(3);
/// When it is looked first whether a report is due, and how often after that.
const FIRST_LOOK: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_secs(15);

/// The fleet's part in one process that wraps a server.
pub(super) struct FleetPart {
    hubs: Result<Hubs, String>,
    purses: Mutex<BTreeMap<(String, SpendUnit), PurseUse>>,
    /// Ends the reports when it is dropped.
    reports: Mutex<Option<Sender<()>>>,
}

/// The way to the hubs, for who may use the machine's key.
struct Hubs {
    link: MemberLink,
    desk: ApprovalDesk,
}

/// Spends of the fleet's budgets for the gate.
pub(super) struct FleetMeter(Arc<FleetPart>);

impl FleetPart {
    /// The part of the fleet that this machine is enrolled in; nothing if it is in none.
    ///
    /// # Errors
    /// If the enrolment is there and cannot be used.
    pub(super) fn open() -> anyhow::Result<Option<Arc<Self>>> {
        let link = match machine() {
            Ok(None) => return Ok(None),
            Ok(Some(link)) => link,
            Err(fault) if is_key_of_host(&fault) => {
                let (hubs, reports) = (Err(fault.to_string()), Mutex::new(None));
                return Ok(Some(Arc::new(Self { hubs, purses: Mutex::default(), reports })));
            }
            Err(fault) => return Err(fault),
        };
        let desk = ApprovalDesk::new(Arc::clone(&link.hub));
        let (stop, stopped) = channel();
        let reporter = reporter(&link)?;
        let reports = Mutex::new(Some(stop));
        let part = Arc::new(Self { hubs: Ok(Hubs { link, desk }), purses: Mutex::default(), reports });
        let weak = Arc::downgrade(&part);
        std::thread::Builder::new().name("reports to the fleet".to_owned()).spawn(move || {
            let (mut wait, mut told) = (FIRST_LOOK, None);
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                look(&reporter, &weak, &mut told);
                wait = LOOK;
            }
        })?;
        Ok(Some(part))
    }

    /// Asks the approvers of the fleet about a call.
    ///
    /// # Errors
    /// What the caller is told.
    pub(super) async fn consent(&self, call: &WaitingCall) -> Result<(), String> {
        let hubs = self.hubs.as_ref();
        let hubs =
            hubs.map_err(|why| format!("it needs an approver of the fleet, who cannot be asked: {why}"))?;
        match hubs.desk.decide(call, HOLD).await {
            Ok(Decision::Allowed { .. }) => Ok(()),
            Ok(Decision::Denied { by, remark }) => {
                let remark = remark.map(|text| format!(": {}", escape::line(&text))).unwrap_or_default();
                Err(format!("`{}` of the fleet refused it{remark}", escape::line(&by)))
            }
            Ok(Decision::Waiting { id }) => Err(format!(
                "an approver of the fleet can allow it with `bailiwick fleet approve {id}`; call again after that"
            )),
            Ok(Decision::Over) => {
                Err("no approver of the fleet answered in time; call again to ask anew".to_owned())
            }
            Err(error) => Err(format!(
                "it needs an approver of the fleet, who cannot be asked: {}",
                escape::line(&error.to_string())
            )),
        }
    }

    /// What spends for the gate.
    pub(super) fn meter(self: &Arc<Self>) -> FleetMeter {
        FleetMeter(Arc::clone(self))
    }

    /// Ends the reports, and returns what is left of leases that no other process uses.
    pub(super) fn end(&self) {
        drop(self.reports.lock().unwrap_or_else(PoisonError::into_inner).take());
        let purses = std::mem::take(&mut *self.locked());
        let Ok(hubs) = &self.hubs else { return };
        if purses.is_empty() {
            return;
        }
        let (hub, (tell, done)) = (Arc::clone(&hubs.link.hub), channel());
        // A hub that does not answer holds up nothing: the next process returns the lease.
        std::thread::spawn(move || {
            let ended = purses.into_values().try_for_each(|purse| anyhow::Ok(block_on(purse.end(&hub))??));
            tell.send(ended.is_ok())
        });
        let _late = done.recv_timeout(PARTING);
    }

    /// The purse of a budget, in use from now on.
    fn purse(&self, hubs: &Hubs, budget: &FleetBudget) -> Result<Purse, String> {
        let mut purses = self.locked();
        let key = (budget.name.clone(), budget.unit);
        if let Some(used) = purses.get(&key) {
            return Ok(used.purse().clone());
        }
        let directory = lease_directory().map_err(|fault| fault.to_string())?;
        let unit = match budget.unit {
            SpendUnit::Calls => BudgetUnit::Calls,
            SpendUnit::Seconds => BudgetUnit::Seconds,
            SpendUnit::Money => BudgetUnit::Money,
        };
        let purse = Purse::new(&directory, &hubs.link.identity.enrolment.name, &budget.name, unit);
        let used = purse.clone().in_use().map_err(|why| why.to_string())?;
        purses.insert(key, used);
        Ok(purse)
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<(String, SpendUnit), PurseUse>> {
        self.purses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// On a thread apart: the gate is asked where a runtime waits, and a hub may be silent.
impl Meter for FleetMeter {
    fn spend(&self, budget: &FleetBudget) -> Result<(), String> {
        let hubs = self.0.hubs.as_ref().map_err(|why| format!("there is no lease: {why}"))?;
        let (purse, hub) = (self.0.purse(hubs, budget)?, Arc::clone(&hubs.link.hub));
        let (each, (tell, done)) = (budget.each, channel());
        let work = move || {
            let spent = match purse.spend(each, now_ms()) {
                Err(SpendError::Empty(_)) => {
                    let filled: Result<Result<(), LeaseError>, _> = block_on(purse.refill(&hub, each));
                    match filled {
                        Ok(Ok(())) => purse.spend(each, now_ms()).map_err(|why| why.to_string()),
                        Ok(Err(why)) => Err(format!("there is no lease: {why}")),
                        Err(fault) => Err(fault.to_string()),
                    }
                }
                spent => spent.map_err(|why| why.to_string()),
            };
            // Where that comes too late, it is spent and the call is denied.
            drop(tell.send(spent));
        };
        let thread = std::thread::Builder::new().name("spends for the fleet".to_owned()).spawn(work);
        thread.map_err(|fault| fault.to_string())?;
        let late = || Err(format!("there is no lease: no hub answered within {} s", LEASE_WAIT.as_secs()));
        done.recv_timeout(LEASE_WAIT).unwrap_or_else(|_| late())
    }
}

/// Renews the certificate that is on disk now: another process may have been first.
fn renew_if_due(part: &FleetPart) -> anyhow::Result<()> {
    let Ok(hubs) = &part.hubs else { return Ok(()) };
    if let Some(identity) = Identity::load(hubs.link.identity.directory())?
        && is_renewal_due(&identity, now_ms())
    {
        block_on(renew(&identity))??;
    }
    Ok(())
}

/// Reports and renews if that is due. What fails is said once, until it works again.
fn look(reporter: &Reporter, part: &Weak<FleetPart>, told: &mut Option<String>) {
    let Some(part) = part.upgrade() else { return };
    let reported = block_on(reporter.report_if_due(servers_here));
    let mut failed = match reported {
        Ok(Ok(_)) => None,
        Ok(Err(why)) => Some(why.to_string()),
        Err(fault) => Some(fault.to_string()),
    };
    if failed.is_none() {
        failed = renew_if_due(&part).err().map(|fault| format!("the certificate is not renewed: {fault:#}"));
    }
    if let Some(why) = &failed
        && told.as_ref() != Some(why)
    {
        let why = escape::line(why);
        terminal::remark(&format!("{}: fleet: {why}; enforcement goes on\n", style::warning("note")));
    }
    *told = failed;
}
