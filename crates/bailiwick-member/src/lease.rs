//! Leases: slices of the fleet's budgets, spent here without asking.
//!
//! A machine has one file for each budget, which its processes share under a lock. What a call costs is added to the file and flushed to disk
//! before the call runs, so that a crash never forgets it. The id of a lease is on disk before the hub is asked: a lease
//! whose answer was lost is asked for again under the same id. A lease is returned when its last user ends, or before the next
//! one is asked for; from the moment that is decided nothing more is spent of it, whatever the hub answers.
//!
//! Fails closed when: the lease has ended by this machine's clock less the skew, less is left of it than the call costs, or the
//! file cannot be written. Residual: a clock that is behind by more than the skew spends past the end of a lease, and never past the budget;
//! an older copy of the file, put back by who can write the user's state, spends a slice again.

use std::fs::File;
use std::path::{Path, PathBuf};

use bailiwick_fleet::Hash;
use bailiwick_fleet::protocol::{BudgetUnit, Lease, LeaseRequest, SpendReport};
use serde::{Deserialize, Serialize};

use crate::hub::{Hub, HubError};
use crate::{draw_id, files, now_ms};

/// What is asked for: a budget's own slice is smaller and is what is given.
const WANTED: u64 = 1 << 40;

/// Where a lease stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "kebab-case")]
enum Stage {
    /// The hub was or will be asked for it under this id.
    Asked { id: String },
    /// It can be spent.
    Held { lease: Lease, spent: u64 },
    /// Nothing more is spent of it; the hub is told.
    Returning { id: String, spent: u64 },
}

#[derive(Debug, Serialize, Deserialize)]
struct LeaseFile {
    member: String,
    budget: String,
    unit: BudgetUnit,
    stage: Stage,
}

/// One budget, as this machine spends it.
#[derive(Debug, Clone)]
pub struct Purse {
    member: String,
    budget: String,
    unit: BudgetUnit,
    path: PathBuf,
}

/// While it lives, the lease is in use.
#[derive(Debug)]
pub struct PurseUse {
    purse: Purse,
    users: File,
}

/// Why nothing was spent.
#[derive(Debug, thiserror::Error)]
pub enum SpendError {
    /// There is no lease that has enough left; another has to be asked for.
    #[error("no lease of the budget `{0}` has enough left")]
    Empty(String),
    /// The file cannot be used.
    #[error("the lease of the budget `{0}` cannot be kept: {1}")]
    File(String, std::io::Error),
    /// What is in the file is no lease.
    #[error("`{0}` is damaged: remove it; what is left of its lease counts as spent")]
    Damaged(PathBuf),
}

/// Why there is no lease.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The hub refuses or does not answer.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// The file cannot be used.
    #[error(transparent)]
    Spend(#[from] SpendError),
    /// No id can be drawn.
    #[error("no random bytes: {0}")]
    Random(getrandom::Error),
    /// A slice is smaller than one call.
    #[error(
        "a lease of the budget `{budget}` has {amount} at most, and one call costs {cost}: an admin gives the budget larger slices"
    )]
    Small {
        /// The budget.
        budget: String,
        /// What was given.
        amount: u64,
        /// What the call costs.
        cost: u64,
    },
}

/// A lease as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldLease {
    /// The budget.
    pub budget: String,
    /// What it counts.
    pub unit: BudgetUnit,
    /// How much it has.
    pub amount: u64,
    /// How much is spent.
    pub spent: u64,
    /// When it ends, in milliseconds since 1970.
    pub expires_ms: u64,
}

impl Purse {
    /// The purse of a member for a budget, in a directory of the user's state.
    #[must_use]
    pub fn new(directory: &Path, member: &str, budget: &str, unit: BudgetUnit) -> Self {
        let word = serde_json::to_string(&unit).unwrap_or_default();
        let name = Hash::of_parts(&[member.as_bytes(), b"\n", budget.as_bytes(), b"\n", word.as_bytes()]);
        let path = directory.join(format!("{name}.json"));
        Self { member: member.to_owned(), budget: budget.to_owned(), unit, path }
    }

    /// Marks the lease as in use by this process.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub fn in_use(self) -> Result<PurseUse, SpendError> {
        let users = files::lock_file(&self.path.with_extension("users")).map_err(|why| self.fault(why))?;
        users.lock_shared().map_err(|why| self.fault(why))?;
        Ok(PurseUse { purse: self, users })
    }

    /// Spends what one call costs, durably. The hub is not asked.
    ///
    /// # Errors
    /// If no lease has that much left now.
    pub fn spend(&self, cost: u64, now_ms: u64) -> Result<(), SpendError> {
        let _lock = self.lock()?;
        match self.read()? {
            Some(Stage::Held { lease, spent }) if has_left(&lease, spent, cost, now_ms) => {
                self.write(Stage::Held { lease, spent: spent.saturating_add(cost) })
            }
            Some(_) | None => Err(SpendError::Empty(self.budget.clone())),
        }
    }

    /// Gets a lease that has enough left for a call, and returns one that has not.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn refill(&self, hub: &Hub, cost: u64) -> Result<(), LeaseError> {
        let _lock = self.lock()?;
        let id = match self.read()? {
            Some(Stage::Held { lease, spent }) if has_left(&lease, spent, cost, now_ms()) => return Ok(()),
            Some(Stage::Asked { id }) => id,
            Some(held) => {
                self.put_back(hub, held).await?;
                self.begin()?
            }
            None => self.begin()?,
        };
        let asked = LeaseRequest { id, budget: self.budget.clone(), unit: self.unit, amount: WANTED };
        match hub.post::<Lease>("/v1/leases", &asked).await {
            Ok(lease) if is_own(&lease, &asked) && !lease.returned => {
                let amount = lease.amount;
                self.write(Stage::Held { lease, spent: 0 })?;
                let small = || LeaseError::Small { budget: self.budget.clone(), amount, cost };
                if amount < cost { Err(small()) } else { Ok(()) }
            }
            Ok(_) => {
                self.forget()?;
                Err(HubError::Unusable("/v1/leases".to_owned(), "it is another lease".to_owned()).into())
            }
            Err(error) => {
                if error.is_final() {
                    self.forget()?;
                }
                Err(error.into())
            }
        }
    }

    /// Returns what is held.
    ///
    /// # Errors
    /// If the hub does not answer; it is told later then, and nothing more is spent.
    pub async fn give_back(&self, hub: &Hub) -> Result<(), LeaseError> {
        let _lock = self.lock()?;
        match self.read()? {
            Some(Stage::Asked { .. }) | None => Ok(()),
            Some(held) => self.put_back(hub, held).await,
        }
    }

    async fn put_back(&self, hub: &Hub, held: Stage) -> Result<(), LeaseError> {
        let (id, spent) = match held {
            Stage::Asked { .. } => return Ok(()),
            Stage::Held { lease, spent } => (lease.id, spent),
            Stage::Returning { id, spent } => (id, spent),
        };
        // From here on nothing is spent of it, whether or not the hub hears of it.
        self.write(Stage::Returning { id: id.clone(), spent })?;
        match hub.post::<Lease>(&format!("/v1/leases/{id}/return"), &SpendReport { spent }).await {
            Err(error) if !error.is_final() => Err(error.into()),
            // One that the hub does not take back counts as spent.
            Ok(_) | Err(_) => Ok(self.forget()?),
        }
    }

    fn begin(&self) -> Result<String, LeaseError> {
        let id = draw_id().map_err(LeaseError::Random)?;
        self.write(Stage::Asked { id: id.clone() })?;
        Ok(id)
    }

    fn lock(&self) -> Result<File, SpendError> {
        let file = files::lock_file(&self.path.with_extension("lock")).map_err(|why| self.fault(why))?;
        file.lock().map_err(|why| self.fault(why))?;
        Ok(file)
    }

    fn read(&self) -> Result<Option<Stage>, SpendError> {
        let Some(bytes) = files::read(&self.path).map_err(|why| self.fault(why))? else { return Ok(None) };
        let damaged = || SpendError::Damaged(self.path.clone());
        let file: LeaseFile = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
        let is_own = file.member == self.member && file.budget == self.budget && file.unit == self.unit;
        if is_own { Ok(Some(file.stage)) } else { Err(damaged()) }
    }

    fn write(&self, stage: Stage) -> Result<(), SpendError> {
        let file =
            LeaseFile { member: self.member.clone(), budget: self.budget.clone(), unit: self.unit, stage };
        let bytes = serde_json::to_vec(&file).map_err(|why| self.fault(why.into()))?;
        files::replace(&self.path, &bytes).map_err(|why| self.fault(why))
    }

    fn forget(&self) -> Result<(), SpendError> {
        match std::fs::remove_file(&self.path) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(self.fault(why)),
            _ => Ok(()),
        }
    }

    fn fault(&self, why: std::io::Error) -> SpendError {
        SpendError::File(self.budget.clone(), why)
    }
}

impl PurseUse {
    /// The purse.
    #[must_use]
    pub const fn purse(&self) -> &Purse {
        &self.purse
    }

    /// Ends this process' use; what is left goes back if no other process uses it.
    ///
    /// # Errors
    /// If the hub does not answer; it is told by the next process that needs a lease.
    pub async fn end(self, hub: &Hub) -> Result<(), LeaseError> {
        let Self { purse, users } = self;
        drop(users.unlock());
        let is_last = users.try_lock().is_ok();
        if is_last { purse.give_back(hub).await } else { Ok(()) }
    }
}

/// The leases that a directory holds.
///
/// # Errors
/// If it cannot be read.
pub fn held(directory: &Path) -> std::io::Result<Vec<HeldLease>> {
    let entries = match std::fs::read_dir(directory) {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_lease = path.extension().is_some_and(|extension| extension == "json");
        let read = files::read(&path).ok().flatten().filter(|_| is_lease);
        let file = read.and_then(|bytes| serde_json::from_slice::<LeaseFile>(&bytes).ok());
        if let Some(LeaseFile { budget, unit, stage: Stage::Held { lease, spent }, .. }) = file {
            found.push(HeldLease { budget, unit, amount: lease.amount, spent, expires_ms: lease.expires_ms });
        }
    }
    found.sort_by(|one, other| one.budget.cmp(&other.budget));
    Ok(found)
}

fn has_left(lease: &Lease, spent: u64, cost: u64, now_ms: u64) -> bool {
    let ends_ms = lease.expires_ms.saturating_sub(lease.skew_ms);
    now_ms < ends_ms && spent.checked_add(cost).is_some_and(|all| all <= lease.amount)
}

fn is_own(lease: &Lease, asked: &LeaseRequest) -> bool {
    lease.id == asked.id && lease.budget == asked.budget && lease.unit == asked.unit
}

#[cfg(test)]
mod tests;
