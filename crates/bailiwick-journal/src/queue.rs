//! Between those who append and the one who writes: a bounded queue, and whether the writer is well.
//!
//! An event gets its number when it enters. Each batch that the writer takes ends in a seal, whose number is set
//! aside at that moment, so the numbers are final and need no second look.
use super::{Durability, JournalFault, Options};
use crate::format::Event;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// After this many rounds without events the writer sleeps until it is woken.
const QUIET_ROUNDS: u32 = 100;

pub(super) struct Queue {
    state: Mutex<State>,
    /// The writer waits here for work.
    work: Condvar,
    /// Appenders wait here for room.
    room: Condvar,
    /// Appenders wait here for durability.
    done: Condvar,
    options: Options,
}

struct State {
    pending: Vec<Event>,
    pending_bytes: usize,
    /// The number of the first pending event.
    base: u64,
    /// Every line below this number is durable.
    durable: u64,
    /// Why appends are refused.
    refusing: Option<JournalFault>,
    /// How often refusing began.
    failures: u64,
    /// How many appends were refused since it began.
    refused: u64,
    phase: Phase,
    is_parked: bool,
    is_urgent: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Closing,
    Stopped,
}

/// What the writer takes at once.
pub(super) struct Taken {
    pub(super) is_last: bool,
}

impl Queue {
    pub(super) fn new(mut options: Options, base: u64) -> Self {
        options.queue = options.queue.max(2);
        options.queue_bytes = options.queue_bytes.max(1024);
        let state = State {
            pending: Vec::with_capacity(options.queue.min(1024)),
            pending_bytes: 0,
            base,
            durable: base,
            refusing: None,
            failures: 0,
            refused: 0,
            phase: Phase::Open,
            is_parked: false,
            is_urgent: false,
        };
        let (work, room, done) = (Condvar::new(), Condvar::new(), Condvar::new());
        Self { state: Mutex::new(state), work, room, done, options }
    }

    /// A queue that takes nothing.
    pub(super) fn refusing(fault: JournalFault) -> Self {
        let queue = Self::new(Options::default(), 0);
        queue.lock().refusing = Some(fault);
        queue
    }

    /// Puts `event` in and returns its number; under `Fsync`, when it is durable.
    pub(super) fn append(&self, event: Event) -> Result<u64, JournalFault> {
        let bytes = event.text_len();
        let mut state = self.lock();
        if state.is_full(&self.options) || !state.is_well() {
            state = self.wait_for_room(state)?;
        }
        let seq = state.push(event, bytes);
        let is_half_full = state.pending.len() == self.options.queue / 2;
        if state.is_parked || is_half_full {
            state.is_parked = false;
            self.work.notify_one();
        }
        match self.options.durability {
            Durability::Group => Ok(seq),
            Durability::Fsync => self.wait_for(state, seq).map(|()| seq),
        }
    }

    /// Waits until everything that was put in is durable.
    pub(super) fn flush(&self) -> Result<(), JournalFault> {
        let mut state = self.lock();
        let Some(last) = (state.base + state.pending.len() as u64).checked_sub(1) else { return Ok(()) };
        if state.durable > last {
            return Ok(());
        }
        if let Some(fault) = &state.refusing {
            return Err(fault.clone());
        }
        state.is_urgent = true;
        state.is_parked = false;
        self.work.notify_one();
        self.wait_for(state, last)
    }

    /// No more events; the writer writes what is there and stops.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Closing;
        }
        self.work.notify_one();
        self.room.notify_all();
    }

    /// Why appends are refused now, if they are.
    pub(super) fn refusal(&self) -> Option<JournalFault> {
        self.lock().refusing.clone()
    }

    fn wait_for_room<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> Result<MutexGuard<'a, State>, JournalFault> {
        let deadline = Instant::now() + self.options.queue_wait;
        loop {
            state.check()?;
            if !state.is_full(&self.options) {
                return Ok(state);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(JournalFault::Busy);
            }
            state.is_parked = false;
            self.work.notify_one();
            state = self.room.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn wait_for(&self, mut state: MutexGuard<'_, State>, seq: u64) -> Result<(), JournalFault> {
        let failures = state.failures;
        while state.durable <= seq {
            if state.failures != failures {
                return Err(state.refusing.clone().unwrap_or(JournalFault::Stopped));
            }
            if state.phase == Phase::Stopped {
                return Err(JournalFault::Stopped);
            }
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer's side.
impl Queue {
    /// Waits until there is something to write, and swaps it into `batch`, which must be empty.
    pub(super) fn take(&self, batch: &mut Vec<Event>) -> Taken {
        let mut state = self.lock();
        let mut quiet = 0;
        while !state.is_due(&self.options) {
            let is_waiting = !state.pending.is_empty();
            let mut timed_out = false;
            if is_waiting || (quiet < QUIET_ROUNDS && self.options.durability == Durability::Group) {
                let waited = self.work.wait_timeout(state, self.options.flush_every);
                let (back, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                (state, timed_out) = (back, timeout.timed_out());
            } else {
                state.is_parked = true;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.is_parked = false;
                quiet = 0;
            }
            if timed_out && !state.pending.is_empty() {
                break;
            }
            quiet += 1;
        }
        std::mem::swap(&mut state.pending, batch);
        state.pending_bytes = 0;
        state.is_urgent = false;
        if !batch.is_empty() {
            state.base += batch.len() as u64 + 1;
        }
        let is_last = state.phase != Phase::Open;
        self.room.notify_all();
        Taken { is_last }
    }

    /// Every line below `next` is durable.
    pub(super) fn committed(&self, next: u64) {
        self.lock().durable = next;
        self.done.notify_all();
    }

    /// Writing fails: refuse from now on.
    pub(super) fn refuse(&self, fault: JournalFault) {
        let mut state = self.lock();
        if state.refusing.is_none() {
            state.failures += 1;
            state.refused = 0;
        }
        state.refusing = Some(fault);
        self.done.notify_all();
        self.room.notify_all();
    }

    /// Writing works again: puts in what `note` says about the number of appends that were refused.
    pub(super) fn recover(&self, note: impl FnOnce(u64) -> Event) {
        let mut state = self.lock();
        state.refusing = None;
        let event = note(state.refused);
        let bytes = event.text_len();
        state.push(event, bytes);
        state.is_urgent = true;
    }

    /// Waits before the next try; true when the journal is being closed.
    pub(super) fn pause(&self, pause: Duration) -> bool {
        let state = self.lock();
        let open = |state: &mut State| state.phase == Phase::Open;
        let waited = self.work.wait_timeout_while(state, pause, open);
        waited.unwrap_or_else(PoisonError::into_inner).0.phase != Phase::Open
    }

    /// The writer is gone.
    pub(super) fn stop(&self) {
        self.lock().phase = Phase::Stopped;
        self.done.notify_all();
        self.room.notify_all();
    }
}

impl State {
    fn push(&mut self, event: Event, bytes: usize) -> u64 {
        let seq = self.base + self.pending.len() as u64;
        self.pending.push(event);
        self.pending_bytes += bytes;
        seq
    }

    fn is_full(&self, options: &Options) -> bool {
        self.pending.len() >= options.queue || self.pending_bytes >= options.queue_bytes
    }

    fn is_well(&self) -> bool {
        self.refusing.is_none() && self.phase == Phase::Open
    }

    fn check(&mut self) -> Result<(), JournalFault> {
        if let Some(fault) = &self.refusing {
            self.refused += 1;
            return Err(fault.clone());
        }
        match self.phase {
            Phase::Open => Ok(()),
            Phase::Closing => Err(JournalFault::Closed),
            Phase::Stopped => Err(JournalFault::Stopped),
        }
    }

    /// Whether the writer should write now rather than gather more.
    fn is_due(&self, options: &Options) -> bool {
        let is_waited_for = self.is_urgent || options.durability == Durability::Fsync;
        self.phase != Phase::Open
            || (is_waited_for && !self.pending.is_empty())
            || self.pending.len() >= options.queue / 2
            || self.pending_bytes >= options.queue_bytes / 2
    }
}
