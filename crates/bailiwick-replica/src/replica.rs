//! The copy in a process: read from memory, looked at anew aside.
//!
//! There is no daemon. A process that finds the last look older than `refresh` tries the lock; the one that has it looks, the others read the
//! copy that it leaves. A long process has a thread for that; a short one says with [`Replica::is_due`] that another process
//! should be started for it. No call waits for the network. Only the first copy is waited for, and not for long.
//!
//! Fails closed when: there is no copy. What the log denies is not known then, so nothing starts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bailiwick_fleet::checkpoint::{SignedHead, SuccessionError};
use bailiwick_fleet::enrolment::Enrolment;
use bailiwick_remote::Client;

use crate::copy::LogCopy;
use crate::fetch::{LogSource, Tags};
use crate::finding::LogFinding;
use crate::refresh::{Held, Look, RefreshError, look};
use crate::store::{CopyStore, FileMark, StoreError};

/// How long a thread sleeps at least before it tries again.
const NAP: Duration = Duration::from_millis(100);

/// How long the first copy is waited for.
const FIRST_WAIT: Duration = Duration::from_secs(10);

/// How long a look at one web server may take, and how long one without a copy to start from.
const LOOK_MOST: Duration = Duration::from_secs(60);
const FIRST_LOOK_MOST: Duration = Duration::from_secs(600);

/// A checkpoint that is older is looked for at the other web servers too.
const FRESH_MS: u64 = 60_000;

/// How often a process looks whether another one left a newer copy.
const GLANCE: Duration = Duration::from_millis(500);

/// Makes the client that files are fetched with; it is made on the thread that fetches.
pub type ClientMaker = Arc<dyn Fn() -> Result<Client, String> + Send + Sync>;

/// The copy of one log. Clones are the same.
#[derive(Clone)]
pub struct Replica(Arc<Shared>);

struct Shared {
    store: CopyStore,
    client: ClientMaker,
    current: Mutex<Current>,
}

struct Current {
    copy: Arc<LogCopy>,
    mark: Option<FileMark>,
}

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The files cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is none, and none was had.
    #[error(
        "there is no copy of the fleet's log on this machine, so what the fleet forbids is not known: {0}"
    )]
    NoCopy(String),
}

/// What one look at all web servers came to.
#[derive(Debug, Default)]
pub struct Refreshed {
    /// Whether the copy is another one now.
    pub is_new: bool,
    /// Forks and rollbacks that were not known before.
    pub findings: Vec<LogFinding>,
    /// What went wrong, by web server.
    pub faults: Vec<String>,
}

impl Replica {
    /// The copy that is there. Without one, the log is looked at, and waited for within bounds.
    ///
    /// # Errors
    /// If there is none then.
    pub fn open(store: CopyStore, client: ClientMaker) -> Result<Self, ReplicaError> {
        let mark = store.mark();
        let copy = match store.load() {
            Ok(Some(copy)) => copy,
            Ok(None) => first_copy(&store, &client, "")?,
            // What is damaged is fetched again, behind the last checkpoint that was verified.
            Err(StoreError::Damaged(path, why)) => {
                first_copy(&store, &client, &format!("`{}`: {why}; ", path.display()))?
            }
            Err(why @ StoreError::Io(..)) => return Err(why.into()),
        };
        let current = Mutex::new(Current { copy: Arc::new(copy), mark });
        Ok(Self(Arc::new(Shared { store, client, current })))
    }

    /// The copy as it is known now.
    #[must_use]
    pub fn copy(&self) -> Arc<LogCopy> {
        Arc::clone(&self.0.current().copy)
    }

    /// What this machine was enrolled with.
    #[must_use]
    pub fn enrolment(&self) -> &Enrolment {
        self.0.store.enrolment()
    }

    /// Forks and rollbacks that were seen on this machine.
    #[must_use]
    pub fn findings(&self) -> Vec<LogFinding> {
        self.0.store.findings()
    }

    /// Whether the log should be looked at.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.0.store.looked_ago() >= due_after(self.enrolment())
    }

    /// Looks at the log when it is due, and reads what other processes left, on threads, as long as a clone of this is held. `on_finding` is
    /// told of forks and rollbacks, `on_glance` of the copy about twice a second: time alone ends grants too.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn watch(
        &self,
        on_finding: impl Fn(&LogFinding) + Send + 'static,
        on_glance: impl Fn(&LogCopy) + Send + 'static,
    ) -> std::io::Result<()> {
        let (looks, glances) = (Arc::downgrade(&self.0), Arc::downgrade(&self.0));
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        named("fleet's log").spawn(move || keep_looking(&looks, &on_finding))?;
        let glance = move || {
            while let Some(shared) = glances.upgrade() {
                shared.read_again();
                on_glance(&shared.current().copy.clone());
                drop(shared);
                std::thread::sleep(GLANCE);
            }
        };
        named("fleet's rules").spawn(glance).map(drop)
    }
}

impl Shared {
    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the copy of the file, if it is another one and not older than what is known here.
    fn read_again(&self) {
        let mark = self.store.mark();
        if mark == self.current().mark {
            return;
        }
        let Ok(Some(copy)) = self.store.load() else { return };
        let mut current = self.current();
        if is_not_older(copy.head(), current.copy.head()) {
            *current = Current { copy: Arc::new(copy), mark };
        }
    }
}

fn keep_looking(shared: &Weak<Shared>, on_finding: &impl Fn(&LogFinding)) {
    let (mut looker, mut due) = (None, None);
    while let Some(kept) = shared.upgrade() {
        let (store, client) = (kept.store.clone(), Arc::clone(&kept.client));
        drop(kept);
        let after = *due.get_or_insert_with(|| due_after(store.enrolment()));
        let left = after.saturating_sub(store.looked_ago());
        if left.is_zero() {
            due = None;
            if looker.is_none() {
                looker = Looker::new(&client).ok();
            }
            let refreshed = looker.as_ref().and_then(|looker| looker.refresh(&store).ok().flatten());
            refreshed
                .into_iter()
                .flat_map(|refreshed| refreshed.findings)
                .for_each(|found| on_finding(&found));
        }
        std::thread::sleep(left.clamp(NAP, GLANCE));
    }
}

/// Looks at the log once, if no other process does; nothing then.
///
/// # Errors
/// If nothing can be fetched or kept here. What web servers do wrong is in the answer.
pub fn refresh(store: &CopyStore, client: &ClientMaker) -> Result<Option<Refreshed>, ReplicaError> {
    Looker::new(client).map_err(ReplicaError::NoCopy)?.refresh(store)
}

/// How old the last look may be: `refresh`, and up to a fifth more, so that machines do not ask together.
fn due_after(enrolment: &Enrolment) -> Duration {
    let mut drawn = [0_u8; 1];
    // Without a draw, machines ask at the same time: that is all.
    let _ = getrandom::fill(&mut drawn);
    let [drawn] = drawn;
    let jitter = enrolment.refresh_ms / 5 * u64::from(drawn) / 255;
    Duration::from_millis(enrolment.refresh_ms.saturating_add(jitter))
}

/// Waits for a first copy, made here or by another process. `before` says what was wrong with the one before.
fn first_copy(store: &CopyStore, client: &ClientMaker, before: &str) -> Result<LogCopy, ReplicaError> {
    let (store_there, client) = (store.clone(), Arc::clone(client));
    let (tell, told) = std::sync::mpsc::channel();
    let look = move || drop(tell.send(refresh(&store_there, &client)));
    let thread = std::thread::Builder::new().name("fleet's first copy".to_owned());
    let io = |why| StoreError::Io("thread".into(), why);
    thread.spawn(look).map_err(io)?;
    let deadline = Instant::now() + FIRST_WAIT;
    let mut why = None;
    while why.is_none() && Instant::now() < deadline {
        why = match told.recv_timeout(NAP) {
            Ok(Ok(Some(refreshed))) => Some(refreshed.faults.join("; ")),
            Ok(Err(fault)) => Some(fault.to_string()),
            // Another process looks: it leaves a copy.
            Ok(Ok(None)) | Err(_) => None,
        };
        if let Ok(Some(copy)) = store.load() {
            return Ok(copy);
        }
    }
    let why = why.unwrap_or_else(|| "it takes longer than a start waits; try again".to_owned());
    Err(ReplicaError::NoCopy(format!("{before}{why}")))
}

/// What looks at logs: a client and what it runs on.
struct Looker {
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl Looker {
    fn new(client: &ClientMaker) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self { runtime: runtime.map_err(|why| why.to_string())?, client: client()? })
    }

    fn refresh(&self, store: &CopyStore) -> Result<Option<Refreshed>, ReplicaError> {
        let Some(_locked) = store.try_lock()? else { return Ok(None) };
        self.runtime.block_on(look_at_all(&self.client, store)).map(Some)
    }
}

async fn look_at_all(client: &Client, store: &CopyStore) -> Result<Refreshed, ReplicaError> {
    // Another process may have looked while this one came here.
    let mut held = store.load().ok().flatten();
    let mut head = newer_head(held.as_ref().map(|copy| copy.head.clone()), store.last_head());
    let mut tags = if held.is_some() { store.tags() } else { Tags::new() };
    let (mut refreshed, enrolment) = (Refreshed::default(), store.enrolment());
    for base in &enrolment.log {
        let source = LogSource::new(client, base);
        let most = if held.is_some() { LOOK_MOST } else { FIRST_LOOK_MOST };
        let known = Held { head: head.as_ref(), copy: held.as_ref() };
        let looked = look(&source, enrolment, known, tags.get(base).map(String::as_str), now_ms());
        match tokio::time::timeout(most, looked).await {
            Err(_) => refreshed.faults.push(format!("`{base}` took longer than {} s", most.as_secs())),
            Ok(Ok(Look { copy, tag })) => {
                match tag {
                    Some(tag) => tags.insert(base.clone(), tag),
                    None => tags.remove(base),
                };
                if let Some(copy) = copy {
                    store.save(&copy)?;
                    head = Some(copy.head.clone());
                    (held, refreshed.is_new) = (Some(copy), true);
                }
            }
            Ok(Err(why)) => {
                tags.remove(base);
                if let RefreshError::Succession(_, found) = &why
                    && is_finding(found)
                {
                    let finding = LogFinding::new(now_ms(), base, found);
                    if store.keep_finding(&finding)? {
                        refreshed.findings.push(finding);
                    }
                }
                refreshed.faults.push(why.to_string());
            }
        }
        // A web server may be cut off from its hub: then another is asked too.
        if head.as_ref().is_some_and(|head| now_ms().saturating_sub(head.fresh_ms) < FRESH_MS) {
            break;
        }
    }
    store.note_look(&tags)?;
    Ok(refreshed)
}

/// A cache may send an old checkpoint. A clock that is behind is found too: it takes nothing new, and shows nothing that is old.
const fn is_finding(why: &SuccessionError) -> bool {
    match why {
        SuccessionError::Forked { .. }
        | SuccessionError::RolledBack { .. }
        | SuccessionError::Future { .. } => true,
        SuccessionError::Replayed { .. } => false,
    }
}

fn newer_head(one: Option<SignedHead>, other: Option<SignedHead>) -> Option<SignedHead> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if is_not_older(&one, &other) { one } else { other }),
        (one, other) => one.or(other),
    }
}

fn is_not_older(one: &SignedHead, other: &SignedHead) -> bool {
    let place = |head: &SignedHead| (head.checkpoint.size, head.checkpoint.time_ms);
    place(one) >= place(other)
}

/// Now, in milliseconds since 1970. A clock that is before 1970 makes everything as old as it can be.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    since.and_then(|since| u64::try_from(since.as_millis()).ok()).unwrap_or(u64::MAX)
}
