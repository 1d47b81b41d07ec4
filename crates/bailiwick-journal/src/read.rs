//! Reading the journal: records by session, tool, decision and time.
//!
//! A reader needs no lock and judges nothing: whether the lines are genuine is [`verify`](super::verify())'s
//! question. A line that is not a record is handed out as such, with its place.
use super::fault::{During, JournalFault};
use super::layout::{self, Layout};
use crate::format::{Decision, Line, LineError, MAX_LINE, Record, RecordKind, SessionId};
use std::collections::VecDeque;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Which records are wanted. The empty filter wants every event.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this session.
    pub session: Option<SessionId>,
    /// About this tool.
    pub tool: Option<String>,
    /// With this decision.
    pub decision: Option<Decision>,
    /// Of this kind.
    pub kind: Option<RecordKind>,
    /// Not before this time, in microseconds since 1970.
    pub since: Option<u64>,
    /// Before this time.
    pub until: Option<u64>,
    /// Seals too.
    pub with_seals: bool,
}

impl Filter {
    fn wants(&self, line: &Line<'_>) -> bool {
        (self.with_seals || line.seal_kind().is_none())
            && self.decision.is_none_or(|decision| line.decision() == Some(decision))
            && self.kind.is_none_or(|kind| line.kind() == Some(kind))
            && self.since.is_none_or(|since| line.time() >= since)
            && self.until.is_none_or(|until| line.time() < until)
            && self.tool.as_ref().is_none_or(|tool| line.is_for_tool(tool))
    }

    pub(super) fn wants_session(&self, session: &SessionId) -> bool {
        self.session.as_ref().is_none_or(|only| only == session)
    }
}

/// What stands at a place of the journal.
pub type Found = Result<Record, Unreadable>;

/// A line that is not a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {why}", file.display())]
pub struct Unreadable {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// Why it is not one.
    pub why: LineError,
}

/// The records of `dir` that `filter` wants: session by session, in order. One segment is held in memory at a time.
pub fn records(
    dir: &Path,
    filter: Filter,
) -> Result<impl Iterator<Item = Result<Found, JournalFault>> + use<>, JournalFault> {
    let layout = Layout::for_reading(dir);
    let mut files = VecDeque::new();
    for session in layout.sessions()? {
        if filter.wants_session(&session) {
            let numbers = layout.segments(&session)?;
            files.extend(numbers.into_iter().map(|number| layout.segment(&session, number)));
        }
    }
    Ok(files.into_iter().flat_map(move |file| match layout::read_all(&file) {
        Ok(text) => scan(&file, &text, 0, &filter).map(Ok).collect::<Vec<_>>(),
        Err(fault) => vec![Err(fault)],
    }))
}

/// The last `count` records of `session` that `filter` wants, oldest first, and what was unreadable on the way.
///
/// Reads segments from the newest back, and no more of them than it needs.
pub fn last_records(
    dir: &Path,
    session: &SessionId,
    filter: &Filter,
    count: usize,
) -> Result<(Vec<Record>, Vec<Unreadable>), JournalFault> {
    let layout = Layout::for_reading(dir);
    let (mut last, mut unreadable) = (VecDeque::new(), Vec::new());
    for number in layout.segments(session)?.into_iter().rev() {
        let file = layout.segment(session, number);
        let mut own = VecDeque::new();
        for found in scan(&file, &layout::read_all(&file)?, 0, filter) {
            match found {
                Ok(record) => own.push_back(record),
                Err(bad) => unreadable.push(bad),
            }
            if own.len() > count - last.len() {
                own.pop_front();
            }
        }
        own.append(&mut last);
        last = own;
        if last.len() >= count {
            break;
        }
    }
    Ok((last.into(), unreadable))
}

/// A session as its files show it. Whether they are genuine is [`verify`](super::verify())'s question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The session.
    pub session: SessionId,
    /// How many segments it has.
    pub segments: usize,
    /// How long they are together, in bytes.
    pub bytes: u64,
    /// When its last whole line says it was written, in microseconds since 1970.
    pub last: Option<u64>,
}

/// The sessions of `dir`, by name. Reads no more of each than its end.
pub fn sessions(dir: &Path) -> Result<Vec<Listed>, JournalFault> {
    let layout = Layout::for_reading(dir);
    let all = layout.all_segments()?;
    let list = |session: SessionId| {
        let numbers = all.get(&session).map_or(&[][..], Vec::as_slice);
        let (mut bytes, mut last) = (0, None);
        for number in numbers {
            let path = layout.segment(&session, *number);
            let len = layout::open_existing(&path)?.metadata().during("look at", &path)?.len();
            let end = read_from(&path, len.saturating_sub(2 * MAX_LINE as u64), u64::MAX)?;
            bytes += len;
            last = last_time(&end).or(last);
        }
        Ok(Listed { session, segments: numbers.len(), bytes, last })
    };
    layout.sessions()?.into_iter().map(list).collect()
}

fn last_time(end: &[u8]) -> Option<u64> {
    let mut lines = end.rsplit(|byte| *byte == b'\n');
    lines.find_map(|line| Line::parse(line).ok()).map(|line| line.time())
}

/// The wanted records of the whole lines of `text`; `before` lines precede it in the file.
pub(super) fn scan(file: &Path, text: &[u8], before: usize, filter: &Filter) -> impl Iterator<Item = Found> {
    let lines = text.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
    lines.enumerate().filter_map(move |(at, line)| match Line::parse(line) {
        Ok(line) => filter.wants(&line).then(|| line.record()).flatten().map(Ok),
        Err(why) => Some(Err(Unreadable { file: file.to_path_buf(), line: before + at + 1, why })),
    })
}

/// At most so many bytes of a file, from here.
pub(super) fn read_from(path: &Path, offset: u64, most: u64) -> Result<Vec<u8>, JournalFault> {
    let mut bytes = Vec::new();
    if layout::is_there(path)? {
        let mut file = layout::open_existing(path)?;
        file.seek(SeekFrom::Start(offset)).during("read", path)?;
        file.take(most).read_to_end(&mut bytes).during("read", path)?;
    }
    Ok(bytes)
}
