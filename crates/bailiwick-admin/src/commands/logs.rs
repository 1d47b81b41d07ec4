//! `bailiwick logs NAME`: what a wrapped server wrote to stderr, and what the relay noted of it.
//!
//! The log is text without anything that acts on a terminal: that was taken out when it was written.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Chunk, Exit, Flow, Out, refused};
use bailiwick_command::render::escape;
use bailiwick_command::server_logs::{directory, file_name};
use bailiwick_command::terminal;

use crate::args::ps::Logs;

/// How often a log that is followed is looked at.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) fn run(args: &Logs) -> anyhow::Result<Answer> {
    let dir = directory().context("neither XDG_STATE_HOME nor HOME says where the logs are")?;
    let path = dir.join(file_name(&args.server));
    let mut last = Last { lines: VecDeque::new(), most: args.lines };
    let old = last.read(&path.with_extension("log.old"))?;
    let end = last.read(&path)?;
    if old.is_none() && end.is_none() && !args.follow {
        let why = format!("nothing was logged of `{}`; {}", args.server, known(&dir));
        return Ok(refused(Exit::Found, &why));
    }
    let text: String = last.lines.iter().map(|line| escape::line(line) + "\n").collect();
    if !args.follow {
        return Ok(Answer::result(Exit::Fine, text));
    }
    let rest = FollowedLog {
        path,
        at: end.unwrap_or_default(),
        part: String::new(),
        stopped: terminal::interrupted()?,
    };
    let chunks = std::iter::once(Ok(Chunk::Out(text))).chain(rest);
    Ok(Answer { exit: Exit::Fine, out: Out::Flow(Flow::new(false, chunks)), complaint: String::new() })
}

/// The logs that there are, in words.
fn known(dir: &Path) -> String {
    let entries = dir.read_dir().into_iter().flatten().flatten();
    let names =
        entries.filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".log")?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort();
    if names.is_empty() { "there are no logs".to_owned() } else { format!("there are: {}", names.join(", ")) }
}

/// The last lines of a log.
struct Last {
    lines: VecDeque<String>,
    most: usize,
}

/// How far a file was read.
#[derive(Debug, Default, Clone, Copy)]
struct ReadUpTo {
    file: u64,
    bytes: u64,
}

impl Last {
    /// Reads a file, if it is there.
    fn read(&mut self, path: &Path) -> anyhow::Result<Option<ReadUpTo>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(fault) if fault.kind() == ErrorKind::NotFound => return Ok(None),
            Err(fault) => return Err(fault).with_context(|| format!("cannot read `{}`", path.display())),
        };
        let file_number = file.metadata()?.ino();
        let mut reader = BufReader::new(file);
        let (mut line, mut bytes) = (Vec::new(), 0);
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line)?;
            if read == 0 || line.last() != Some(&b'\n') {
                return Ok(Some(ReadUpTo { file: file_number, bytes }));
            }
            bytes += read as u64;
            if self.lines.len() >= self.most {
                self.lines.pop_front();
            }
            if self.most > 0 {
                self.lines.push_back(String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned());
            }
        }
    }
}

/// What is added to a log, as it is added, until an interrupt.
struct FollowedLog {
    path: PathBuf,
    at: ReadUpTo,
    /// A line whose end has not come yet.
    part: String,
    stopped: Arc<AtomicBool>,
}

impl FollowedLog {
    fn poll(&mut self) -> anyhow::Result<String> {
        let mut text = String::new();
        let Ok(mut file) = File::open(&self.path) else { return Ok(text) };
        let number = file.metadata()?.ino();
        if number != self.at.file {
            // The log became the old one, and a new one has begun: what was added last is read there.
            if let Ok(mut old) = File::open(self.path.with_extension("log.old"))
                && old.metadata()?.ino() == self.at.file
            {
                text += &self.added(&mut old)?;
            }
            self.at = ReadUpTo { file: number, bytes: 0 };
        }
        Ok(text + &self.added(&mut file)?)
    }

    fn added(&mut self, file: &mut File) -> anyhow::Result<String> {
        file.seek(SeekFrom::Start(self.at.bytes))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        self.at.bytes += bytes.len() as u64;
        self.part += &String::from_utf8_lossy(&bytes);
        let Some((whole, part)) = self.part.rsplit_once('\n') else { return Ok(String::new()) };
        let text = whole.split('\n').map(|line| escape::line(line) + "\n").collect();
        self.part = part.to_owned();
        Ok(text)
    }
}

impl Iterator for FollowedLog {
    type Item = anyhow::Result<Chunk>;

    /// Empty chunks let the terminal find out that its output was closed.
    fn next(&mut self) -> Option<Self::Item> {
        if self.stopped.load(Ordering::Acquire) {
            return None;
        }
        std::thread::sleep(PAUSE);
        Some(self.poll().map(Chunk::Out))
    }
}
