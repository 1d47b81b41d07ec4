//! The one thread that writes a session: takes a batch, chains it, seals it, makes it durable, keeps the head.
//!
//! A batch that cannot be written is kept and tried again; until it is on disk, appends are refused. Events whose
//! appenders were told so may therefore still be recorded: a refused call can leave a line, a call that ran cannot lack one.
use super::heads::HeadFile;
use super::index;
use super::key::Sealer;
use super::layout::Layout;
use super::queue::Queue;
use super::tape::Tape;
use super::{JournalFault, Options};
use crate::format::{Chain, Event, Point, RecordKind, Seal, SealKind, SessionId};
use std::sync::Arc;

pub(super) struct Writer {
    pub(super) layout: Layout,
    pub(super) session: SessionId,
    pub(super) sealer: Sealer,
    pub(super) head: HeadFile,
    pub(super) tape: Tape,
    pub(super) chain: Chain,
    pub(super) options: Options,
}

impl Writer {
    /// Writes until the queue is closed. Returns the last line.
    pub(super) fn run(mut self, queue: &Arc<Queue>) -> Result<Option<Point>, JournalFault> {
        let _stop = StopOnExit(queue);
        let mut batch = Vec::new();
        let mut out = Vec::new();
        loop {
            let taken = queue.take(&mut batch);
            if !batch.is_empty() {
                self.write(queue, &mut batch, &mut out)?;
            } else if taken.is_last {
                return self.finish();
            }
        }
    }

    fn write(
        &mut self,
        queue: &Queue,
        batch: &mut Vec<Event>,
        out: &mut Vec<u8>,
    ) -> Result<(), JournalFault> {
        out.clear();
        for event in batch.drain(..) {
            self.chain.push_event(&event, out);
        }
        let seal_at = out.len();
        self.seal(out);
        let last = self.chain.next_seq() - 1;
        let mut is_durable = false;
        let mut outcome = self.store(out, seal_at, &mut is_durable);
        let is_new_failure = outcome.is_err();
        while let Err(fault) = outcome {
            queue.refuse(fault.clone());
            if queue.pause(self.options.retry_every) {
                return Err(fault);
            }
            outcome = self.store(out, seal_at, &mut is_durable);
        }
        queue.committed(self.chain.next_seq());
        if is_new_failure {
            let now = (self.options.clock)();
            queue.recover(|refused| recovered(refused, last).at(now));
        }
        if out.capacity() > 16 * 1024 * 1024 {
            *out = Vec::new();
        }
        Ok(())
    }

    fn seal(&mut self, out: &mut Vec<u8>) {
        let seal = Seal {
            kind: SealKind::Head,
            session: self.session.clone(),
            point: None,
            time: (self.options.clock)(),
            key: self.sealer.public(),
        };
        self.chain.push_seal(&seal, |bytes| self.sealer.sign(bytes), out);
    }

    /// One try: a new segment if this one is long enough, then the lines, then the head file.
    fn store(&mut self, out: &[u8], seal_at: usize, is_durable: &mut bool) -> Result<(), JournalFault> {
        if !*is_durable {
            if self.tape.len() >= self.options.segment_bytes {
                self.tape.rotate()?;
            }
            self.tape.commit(out)?;
            *is_durable = true;
        }
        self.head.keep(out.get(seal_at..).unwrap_or_default().trim_ascii_end())
    }

    fn finish(self) -> Result<Option<Point>, JournalFault> {
        self.head.sync()?;
        let last = self.chain.last();
        let (kind, time) = (SealKind::Closed, (self.options.clock)());
        let entry = index::IndexEntry { kind, session: &self.session, point: last, time };
        index::add(&self.layout, &self.sealer, &entry)?;
        Ok(last)
    }
}

fn recovered(refused: u64, last: u64) -> Event {
    let reason = format!(
        "writing failed and works again: {refused} appends were refused, and lines up to {last} may have been \
         reported as failed before they were written"
    );
    Event::new(RecordKind::Fault).with_code("journal-recovered").with_reason(reason)
}

/// Tells waiting appenders that nobody writes any more, also when the writer panics.
struct StopOnExit<'a>(&'a Queue);

impl Drop for StopOnExit<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
