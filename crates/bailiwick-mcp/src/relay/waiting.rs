//! Requests that wait for their answers, on both sides.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::in_flight::ServedCall;
use super::message::{Malformed, RequestKey};
use super::pins::ListKind;

/// How many requests of a client may wait for their answers.
const MAX_WAITING: usize = 1024;

/// How many cancelled requests are remembered, so that a late answer to one is not taken for that to another.
const MAX_CANCELLED: usize = 256;

/// How many requests of a server may.
const MAX_ASKED: usize = 256;

/// What becomes of a server's answer.
#[derive(Debug)]
pub(super) enum Reply {
    /// It goes to the client as it is.
    Passed,
    /// It opens the session, and has the server's instructions.
    Opening,
    /// It is a list: what may not be seen is taken out.
    List(ListKind),
    /// It answers a request of ours.
    Own(oneshot::Sender<Vec<u8>>),
    /// A judged call takes it.
    Judged(WaitingCall),
}

/// A judged call that waits for its answer.
#[derive(Debug)]
pub(super) struct WaitingCall {
    pub(super) answer: oneshot::Sender<Vec<u8>>,
    pub(super) served: Arc<ServedCall>,
}

impl WaitingCall {
    /// Answers it.
    pub(super) fn answer(self, line: Vec<u8>) {
        self.served.end();
        drop(self.answer.send(line));
    }
}

/// What a server asked its client for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feature {
    Roots,
    Other,
}

/// Both sides' requests, by id.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    of_client: Mutex<HashMap<RequestKey, Reply>>,
    cancelled: Mutex<VecDeque<RequestKey>>,
    of_server: Mutex<HashMap<RequestKey, Feature>>,
}

impl Waiting {
    /// Notes a client's request.
    pub(super) fn begin(&self, id: &RequestKey, reply: Reply) -> Result<(), Malformed> {
        let mut waiting = locked(&self.of_client);
        if waiting.contains_key(id) || locked(&self.cancelled).contains(id) {
            return Err(Malformed::repeated(id.clone()));
        }
        if waiting.len() >= MAX_WAITING {
            return Err(Malformed::busy(id.clone()));
        }
        waiting.insert(id.clone(), reply);
        Ok(())
    }

    /// Forgets a request that the client waits for no more. Its id is not used again while the server may still answer it.
    pub(super) fn cancel(&self, id: RequestKey) {
        if locked(&self.of_client).remove(&id).is_some() {
            let mut cancelled = locked(&self.cancelled);
            cancelled.truncate(MAX_CANCELLED - 1);
            cancelled.push_front(id);
        }
    }

    /// A late answer to a cancelled request has come.
    pub(super) fn end_cancelled(&self, id: &RequestKey) {
        locked(&self.cancelled).retain(|cancelled| cancelled != id);
    }

    /// The request that an answer is for, which waits no more.
    pub(super) fn end(&self, id: &RequestKey) -> Option<Reply> {
        locked(&self.of_client).remove(id)
    }

    /// Everything that still waits.
    pub(super) fn end_all(&self) -> Vec<(RequestKey, Reply)> {
        locked(&self.of_client).drain().collect()
    }

    /// Notes a server's request; `false` if it has asked too much, or this already.
    pub(super) fn asked(&self, id: RequestKey, feature: Feature) -> bool {
        let mut asked = locked(&self.of_server);
        asked.len() < MAX_ASKED && asked.insert(id, feature).is_none()
    }

    /// What the server asked for under this id; it is answered now.
    pub(super) fn answered(&self, id: &RequestKey) -> Option<Feature> {
        locked(&self.of_server).remove(id)
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
