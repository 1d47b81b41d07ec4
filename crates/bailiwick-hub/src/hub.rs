//! What all requests of one hub share. Nothing in it is needed again after a restart.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use crate::approvals;
use crate::database::Database;
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::publish::{Publisher, SignedCheckpoint};
use crate::reports;
use crate::share::Paces;

/// How often the database is asked for all calls that are waited for.
const LOOK: Duration = Duration::from_millis(300);

/// A hub.
pub struct Hub {
    /// The store.
    pub database: Database,
    /// The keys of the fleet.
    pub keys: Arc<Keys>,
    /// Where the log's files are.
    pub log_files: PathBuf,
    /// The newest checkpoint.
    pub checkpoint: Arc<RwLock<Option<SignedCheckpoint>>>,
    /// Counters.
    pub metrics: Metrics,
    /// Requests of machines.
    pub(crate) paces: Paces,
    poked: Notify,
    waiting: Mutex<HashMap<String, Arc<Notify>>>,
}

/// How often a hub does what it does unasked.
#[derive(Debug, Clone, Copy)]
pub struct Rhythm {
    /// Publishes and signs.
    pub sign: Duration,
    /// Anchors journal heads.
    pub anchor: Duration,
    /// Forgets what is kept briefly.
    pub sweep: Duration,
}

impl Default for Rhythm {
    fn default() -> Self {
        Self { sign: Duration::from_secs(1), anchor: Duration::from_secs(60), sweep: Duration::from_secs(60) }
    }
}

impl Hub {
    /// A hub that does nothing yet.
    #[must_use]
    pub fn new(database: Database, keys: Arc<Keys>, log_files: PathBuf) -> Self {
        Self {
            database,
            keys,
            log_files,
            checkpoint: Arc::default(),
            metrics: Metrics::default(),
            paces: Paces::default(),
            poked: Notify::new(),
            waiting: Mutex::default(),
        }
    }

    /// Something was appended: publish now.
    pub fn poke(&self) {
        self.poked.notify_one();
    }

    /// Publishes again and again; a fault is counted and shown, and does not end it.
    pub async fn keep_publishing(&self, mut publisher: Publisher, rhythm: Rhythm) {
        let mut last_fault = String::new();
        loop {
            match publisher.publish(&self.database).await {
                Ok(size) => {
                    self.metrics.published(size);
                    last_fault.clear();
                }
                Err(error) => {
                    self.metrics.count("publish", error_code(&error));
                    let text = error.to_string();
                    if text != last_fault {
                        crate::run::report(&format!("the log is not published: {text}"));
                        last_fault = text;
                    }
                }
            }
            tokio::select! {
                () = sleep(rhythm.sign) => {}
                () = self.poked.notified() => {}
            }
        }
    }

    /// Anchors heads and forgets, again and again.
    pub async fn keep_tidy(&self, rhythm: Rhythm) {
        let anchoring = async {
            loop {
                sleep(rhythm.anchor).await;
                if let Err(error) = reports::anchor(self).await {
                    crate::run::report(&format!("journal heads are not anchored: {error}"));
                }
            }
        };
        let sweeping = async {
            loop {
                sleep(rhythm.sweep).await;
                if let Err(error) = approvals::sweep(self).await {
                    crate::run::report(&format!("old rows are not removed: {error}"));
                }
            }
        };
        tokio::join!(anchoring, sweeping);
    }

    /// Asks the database for all calls that are waited for, in one statement, and wakes those that wait.
    pub async fn keep_looking(&self) {
        loop {
            sleep(LOOK).await;
            let ids: Vec<String> = self.board().keys().cloned().collect();
            if ids.is_empty() {
                continue;
            }
            for id in approvals::settled(self, &ids).await.unwrap_or_default() {
                if let Some(waiters) = self.board().remove(&id) {
                    waiters.notify_waiters();
                }
            }
            self.board().retain(|_, waiters| Arc::strong_count(waiters) > 1);
        }
    }

    /// Ends when the call was answered or has expired, as far as `keep_looking` saw.
    pub async fn until_settled(&self, id: &str) {
        let waiters = Arc::clone(self.board().entry(id.to_owned()).or_default());
        waiters.notified().await;
    }

    fn board(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const fn error_code(error: &crate::publish::PublishError) -> &'static str {
    use crate::publish::PublishError;
    match error {
        PublishError::Store(_) => "store",
        PublishError::File { .. } => "file",
        PublishError::Diverged { .. } => "diverged",
        PublishError::Foreign { .. } => "foreign",
        PublishError::Sign(_) => "sign",
    }
}
