//! Verifying one session: its segments as one chain, its seals, and every head that was kept of it.
//!
//! The last seal signs a line that names, through `prev`, every line before it, seals included. So when the chain is
//! whole and the last signature holds, the others are what the key's holder vouched for, and the writer takes up
//! no file with a seal in it that does not hold. Each signature is checked only when something is wrong, to locate it.
use super::{Expected, Problem, Seals, SessionReport, problem};
use crate::JournalFault;
use crate::format::{Chain, Digest, Line, Point, SealKind, SessionId, Signature, Tamper, verify_lines};
use crate::heads::{self, Kept};
use crate::index::{Index, Indexed};
use crate::key;
use crate::layout::{self, Layout};
use crate::shared;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A session that is being written may be caught half-way through a write: look again this often.
const LOOKS: u32 = 5;

pub(super) fn verify(
    layout: &Layout,
    session: &SessionId,
    index: &Index,
    expected: &Expected,
    is_locked: bool,
    (seals, watch): (&mut Seals, &mut dyn FnMut(u64)),
) -> Result<SessionReport, JournalFault> {
    let _writers_wait = if is_locked { None } else { shared::hold(layout, session)? };
    let mut look = |depth| {
        let is_live = heads::is_live(layout, session);
        let mut check = Check::new(layout, session, index, expected, is_live);
        check.run(depth, seals, watch).map(|()| check.report)
    };
    for _ in 0..LOOKS {
        let report = look(Depth::LastSeal)?;
        if report.problems.is_empty() {
            return Ok(report);
        }
        if !report.is_live {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    look(Depth::EverySeal)
}

/// Which signatures are checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    LastSeal,
    EverySeal,
}

/// A seal whose signature is still to be checked.
struct Unchecked {
    file: PathBuf,
    line: usize,
    seq: u64,
    key: Digest,
    signature: Signature,
    signed: Vec<u8>,
}

struct Check<'a> {
    layout: &'a Layout,
    indexed: Option<Indexed>,
    /// Whether the index can be held against the session: a bad one is reported once, not for each.
    is_index_whole: bool,
    /// Lines that must be there, and who says so.
    kept: Vec<(Point, &'static str)>,
    chain: Chain,
    /// The first line that no seal covers.
    unsigned: Option<(PathBuf, usize, u64)>,
    last_seal: Option<Unchecked>,
    report: SessionReport,
}

impl<'a> Check<'a> {
    fn new(
        layout: &'a Layout,
        session: &SessionId,
        index: &Index,
        expected: &Expected,
        is_live: bool,
    ) -> Self {
        let indexed = index.sessions.get(session).cloned();
        let elsewhere = expected.heads.iter().filter(|(name, _)| name == session);
        let mut kept: Vec<_> = elsewhere.map(|(_, point)| (*point, "the head that was given")).collect();
        let removed = indexed.as_ref().and_then(|indexed| indexed.removed);
        kept.extend(removed.map(|point| (point, "the tombstone")));
        kept.extend(indexed.iter().flat_map(|indexed| &indexed.known).map(|point| (*point, "the index")));
        let report = SessionReport {
            session: session.clone(),
            segments: 0,
            lines: 0,
            last: None,
            removed,
            is_live,
            problems: Vec::new(),
        };
        let is_index_whole = index.problem.is_none();
        Self {
            layout,
            indexed,
            is_index_whole,
            kept,
            chain: Chain::genesis(session.clone()),
            unsigned: None,
            last_seal: None,
            report,
        }
    }

    fn run(
        &mut self,
        depth: Depth,
        seals: &mut Seals,
        watch: &mut dyn FnMut(u64),
    ) -> Result<(), JournalFault> {
        self.head_file(seals)?;
        let numbers = self.layout.segments(&self.report.session)?;
        self.report.segments = numbers.len();
        if self.is_index_whole && self.indexed.is_none() && !numbers.is_empty() {
            self.report_file(self.layout.index(), Tamper::DamagedIndex, "it does not name the session");
        }
        if numbers.is_empty() && self.is_wholly_removed() {
            self.report.last = self.report.removed;
            return Ok(());
        }
        for (at, number) in numbers.iter().enumerate() {
            let path = self.layout.segment(&self.report.session, *number);
            let text = layout::read_all(&path)?;
            if at == 0 {
                self.begin(&text);
            }
            if !self.walk(&path, &text, depth, seals) {
                return Ok(());
            }
            watch(self.report.lines);
        }
        self.end(numbers.last().copied());
        self.check_last_seal();
        Ok(())
    }

    /// Reads the head file first: what it knows of must be in what is read afterwards.
    fn head_file(&mut self, seals: &mut Seals) -> Result<(), JournalFault> {
        let path = self.layout.head(&self.report.session);
        if !layout::is_there(&path)? {
            if !self.is_wholly_removed() {
                self.report_file(path, Tamper::DamagedIndex, "the session's head file is not there");
            }
            return Ok(());
        }
        match heads::kept(self.layout, &self.report.session)? {
            Err(()) => self.report_file(path, Tamper::DamagedIndex, "the session's head file is damaged"),
            Ok(None) => {}
            Ok(Some(Kept { point, key, signature, signed })) => {
                match seals.check(&key, key::holds(&key, &signature, &signed)) {
                    Ok(()) => self.kept.push((point, "the head file")),
                    Err((tamper, detail)) => self.report_file(path, tamper, &detail),
                }
            }
        }
        Ok(())
    }

    /// Lets the chain begin behind what was removed.
    fn begin(&mut self, text: &[u8]) {
        let first = text.split(|byte| *byte == b'\n').next().and_then(|line| Line::parse(line).ok());
        let (Some(first), Some(removed)) = (first, self.report.removed) else { return };
        if let Some(seq) = first.seq().checked_sub(1) {
            // removal that was interrupted leaves some of the removed lines
            let point = if seq < removed.seq { Point { seq, hash: *first.prev() } } else { removed };
            self.chain = self.chain.clone().after(point);
        }
    }

    /// False when a line is bad: nothing can be said about what follows.
    fn walk(&mut self, path: &Path, text: &[u8], depth: Depth, seals: &mut Seals) -> bool {
        let (kept, unsigned) = (&self.kept, &mut self.unsigned);
        let mut last_seal = None;
        let walked = verify_lines(&mut self.chain, text, |number, line| {
            for (point, who) in kept {
                if point.seq == line.seq() && point.hash != *line.hash() {
                    return Err((Tamper::Rewritten, format!("it is not the line that {who} knows")));
                }
            }
            match line.seal_kind() {
                None if unsigned.is_none() => *unsigned = Some((path.to_path_buf(), number, line.seq())),
                None => {}
                Some(SealKind::Head) => {
                    if depth == Depth::EverySeal {
                        seals.check_line(line)?;
                    } else if let Some(key) = line.key() {
                        seals.check_key(key)?;
                    }
                    last_seal = Some((number, line.clone()));
                    *unsigned = None;
                }
                Some(_) => return Err((Tamper::Edited, "an index entry does not belong here".into())),
            }
            Ok(())
        });
        self.report.last = self.chain.last();
        let unchecked = last_seal.and_then(|(line, seal)| {
            let (key, signature, signed) = seal.signed_bytes()?;
            Some(Unchecked { file: path.to_path_buf(), line, seq: seal.seq(), key, signature, signed })
        });
        self.last_seal = unchecked.or(self.last_seal.take());
        match walked {
            Ok(lines) => {
                self.report.lines += lines as u64;
                true
            }
            Err(located) => {
                self.report.lines += located.line.saturating_sub(1) as u64;
                self.report.problems.push(problem(path, located));
                false
            }
        }
    }

    fn end(&mut self, number: Option<u32>) {
        let next = self.chain.next_seq();
        let missing =
            self.kept.iter().filter(|(point, _)| point.seq >= next).max_by_key(|(point, _)| point.seq);
        if let Some((point, who)) = missing {
            let detail = format!("{who} knows of line {}, but the chain ends before {next}", point.seq);
            let is_gone = number.is_none();
            let file = self.layout.segment(&self.report.session, number.unwrap_or(0));
            let lines =
                layout::read_all(&file).map_or(0, |text| text.iter().filter(|b| **b == b'\n').count());
            let tamper = if is_gone { Tamper::MissingSession } else { Tamper::TruncatedTail };
            let line = if is_gone { 0 } else { lines + 1 };
            self.report.problems.push(Problem { file, line, seq: Some(next), tamper, detail });
        }
        if let Some((file, line, seq)) = self.unsigned.take() {
            let detail = format!("lines {seq} to {} follow the last seal", next.saturating_sub(1));
            let tamper = Tamper::UnsignedTail;
            self.report.problems.push(Problem { file, line, seq: Some(seq), tamper, detail });
        }
    }

    fn check_last_seal(&mut self) {
        let Some(seal) = self.last_seal.take() else { return };
        if !key::holds(&seal.key, &seal.signature, &seal.signed) {
            let detail = "its signature does not hold".to_string();
            let (file, line, seq, tamper) = (seal.file, seal.line, Some(seal.seq), Tamper::ForgedHead);
            self.report.problems.push(Problem { file, line, seq, tamper, detail });
        }
    }

    fn is_wholly_removed(&self) -> bool {
        let Some(Indexed { known, removed: Some(removed) }) = &self.indexed else { return false };
        known.iter().all(|known| known.seq <= removed.seq)
    }

    fn report_file(&mut self, file: PathBuf, tamper: Tamper, detail: &str) {
        self.report.problems.push(Problem { file, line: 0, seq: None, tamper, detail: detail.into() });
    }
}
