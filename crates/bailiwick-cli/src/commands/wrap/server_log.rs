//! What a wrapped server writes to stderr: kept in a log of bounded size, and shown on ours without anything that acts on
//! a terminal.
//!
//! A client that does not read our stderr holds up the threads that write there, and neither the relay nor the end.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bailiwick_command::render::escape;
use bailiwick_command::server_logs::{directory, file_name};
use bailiwick_command::terminal;
use bailiwick_mcp::relay::Redactor;

/// A log that is larger becomes the old one, and a new one begins.
const LARGEST: u64 = 1024 * 1024;

/// The most of one line that is kept.
const LONGEST: u64 = 16 * 1024;

/// How many lines of the relay may wait to be written; more are dropped.
const MOST_NOTES: usize = 1024;

/// How long the last lines may take.
const PARTING: Duration = Duration::from_millis(500);

/// The end of a thread that writes.
pub(super) struct WritersEnd(Receiver<()>);

impl WritersEnd {
    fn of(write: impl FnOnce() + Send + 'static) -> Self {
        let (ended, end) = channel::<()>();
        std::thread::spawn(move || {
            write();
            drop(ended);
        });
        Self(end)
    }

    /// Waits for it, but not for a reader that does not read.
    pub(super) fn wait(&self) {
        // Nothing is ever sent: it is there to be closed.
        let _closed = self.0.recv_timeout(PARTING);
    }
}

/// The log of one server. Clones write to the same.
#[derive(Clone)]
pub(super) struct ServerLog {
    name: Arc<str>,
    redactor: Arc<Redactor>,
    file: Arc<Mutex<Option<KeptLog>>>,
}

struct KeptLog {
    path: PathBuf,
    file: File,
    size: u64,
}

impl ServerLog {
    /// Opens the log of a server. Without a place for it, lines are only shown.
    pub(super) fn open(name: &str, redactor: Arc<Redactor>, is_kept: bool) -> Self {
        let kept =
            directory().filter(|_| is_kept).and_then(|dir| KeptLog::open(dir.join(file_name(name))).ok());
        Self { name: name.into(), redactor, file: Arc::new(Mutex::new(kept)) }
    }

    /// Copies a server's stderr until it ends.
    pub(super) fn follow(&self, stderr: impl Read + Send + 'static) -> WritersEnd {
        let log = self.clone();
        WritersEnd::of(move || {
            let mut stderr = BufReader::new(stderr);
            let mut line = Vec::new();
            loop {
                line.clear();
                match (&mut stderr).take(LONGEST).read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => log.write(&String::from_utf8_lossy(&line)),
                }
            }
        })
    }

    /// Who notes lines of the relay, without waiting for who reads them.
    pub(super) fn notes(&self) -> (impl Fn(&str) + Send + Sync + 'static, WritersEnd) {
        let (notes, lines) = sync_channel::<String>(MOST_NOTES);
        let log = self.clone();
        let end = WritersEnd::of(move || lines.iter().for_each(|line| log.write(&line)));
        (move |line: &str| drop(notes.try_send(line.to_owned())), end)
    }

    /// Writes one line, of the server or of the relay.
    fn write(&self, line: &str) {
        let line = self.redactor.plain(line.trim_end_matches(['\n', '\r'])).text;
        let line = escape::line(&line);
        let mut kept = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_mut().is_some_and(|log| log.append(&line).is_err()) {
            // A log that cannot be written is given up; the lines are still shown.
            *kept = None;
        }
        drop(kept);
        terminal::remark(&format!("[{}] {line}\n", escape::line(&self.name)));
    }
}

impl KeptLog {
    fn open(path: PathBuf) -> std::io::Result<Self> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
        let size = file.metadata()?.len();
        Ok(Self { path, file, size })
    }

    fn append(&mut self, line: &str) -> std::io::Result<()> {
        if self.size > LARGEST {
            std::fs::rename(&self.path, self.path.with_extension("log.old"))?;
            *self = Self::open(self.path.clone())?;
        }
        let line = format!("{line}\n");
        self.file.write_all(line.as_bytes())?;
        self.size += line.len() as u64;
        Ok(())
    }
}
