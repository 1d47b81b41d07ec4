//! A fleet's log as a test wants it, and a web server on the loopback interface that has its files, or does something worse.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bailiwick_fleet::Hash;
use bailiwick_fleet::checkpoint::{Checkpoint, cosign};
use bailiwick_fleet::enrolment::Enrolment;
use bailiwick_fleet::entry::{Entry, EntryBody, Revocation, Target};
use bailiwick_fleet::merkle::{self, leaf_hash};
use bailiwick_fleet::note::{NoteKey, NoteSigner};
use bailiwick_fleet::tile::{EntryBundle, Tile, entry_bundles, tiles};

/// What the log's key is called.
pub const ORIGIN: &str = "fleet.test";

/// Files of a log by their paths.
pub type LogFiles = BTreeMap<String, Vec<u8>>;

/// A log that grows.
pub struct TestLog {
    seed: u8,
    entries: Vec<Vec<u8>>,
}

impl Default for TestLog {
    fn default() -> Self {
        Self { seed: 7, entries: Vec::new() }
    }
}

impl TestLog {
    /// A log with these entries.
    #[must_use]
    pub fn with(bodies: impl IntoIterator<Item = EntryBody>) -> Self {
        let mut log = Self::default();
        bodies.into_iter().for_each(|body| log.push(body));
        log
    }

    /// Adds an entry.
    pub fn push(&mut self, body: EntryBody) {
        let at = u64::try_from(self.entries.len()).unwrap();
        self.entries.push(Entry::new(at, "admin", body).to_bytes().unwrap());
    }

    /// Adds bytes as if they were an entry.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.entries.push(bytes.to_vec());
    }

    /// Has another key sign from now on.
    pub const fn sign_with(&mut self, seed: u8) {
        self.seed = seed;
    }

    /// Its root.
    #[must_use]
    pub fn root(&self) -> Hash {
        merkle::root(&self.leaves())
    }

    fn leaves(&self) -> Vec<Hash> {
        self.entries.iter().map(|entry| leaf_hash(entry)).collect()
    }

    /// All its files, signed for this time, also by these witnesses.
    #[must_use]
    pub fn files_at(&self, time_ms: u64, witnesses: &[&NoteSigner]) -> LogFiles {
        let leaves = self.leaves();
        let size = u64::try_from(leaves.len()).unwrap();
        let mut files = LogFiles::new();
        for tile in tiles(size) {
            files.insert(tile.path(), Tile::encode(&tile.hashes_in(&leaves).unwrap()));
        }
        for bundle in entry_bundles(0, size) {
            let first = usize::try_from(bundle.index * 256).unwrap();
            let entries = self.entries.get(first..first + usize::from(bundle.width)).unwrap();
            files.insert(bundle.path(), EntryBundle::encode(entries).unwrap());
        }
        let head = Checkpoint { origin: ORIGIN.to_owned(), size, root: merkle::root(&leaves), time_ms };
        let signed = head.sign(&signer(self.seed)).unwrap();
        let cosigned =
            |signed: Vec<u8>, witness: &&NoteSigner| cosign(&signed, witness, time_ms / 1000).unwrap();
        files.insert("checkpoint".to_owned(), witnesses.iter().fold(signed, cosigned));
        files
    }

    /// All its files, signed now.
    #[must_use]
    pub fn files(&self) -> LogFiles {
        self.files_at(now_ms(), &[])
    }
}

/// The key that signs with this seed.
#[must_use]
pub fn signer(seed: u8) -> NoteSigner {
    NoteSigner::new(ORIGIN, &[seed; 32]).unwrap()
}

/// The key of the log.
#[must_use]
pub fn log_key() -> NoteKey {
    signer(7).verifier()
}

/// A machine `m1` whose log is at these URLs and looked at ten times a second.
#[must_use]
pub fn enrolment(logs: &[&str]) -> Enrolment {
    let mut enrolment = Enrolment::machine("m1", "https://hub.test", "https://log.test", log_key());
    enrolment.log = logs.iter().map(|url| (*url).to_owned()).collect();
    enrolment.refresh_ms = 100;
    enrolment
}

/// A revocation.
#[must_use]
pub fn revocation(id: &str, target: Target) -> EntryBody {
    EntryBody::Revocation(Revocation { id: id.to_owned(), target, reason: "leaked".to_owned() })
}

/// Now, in milliseconds since 1970.
#[must_use]
pub fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// What a web server does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manners {
    /// It answers with its files.
    Files,
    /// It takes the request and says nothing.
    Hangs,
    /// It sends more and more.
    Endless,
    /// It sends everyone elsewhere.
    Redirects(String),
    /// It answers with this status.
    Fails(u16),
}

/// A web server.
#[derive(Clone)]
pub struct LogServer {
    /// Its base URL.
    pub url: String,
    shared: Arc<Mutex<Served>>,
}

struct Served {
    files: LogFiles,
    manners: Manners,
    asked: Vec<String>,
}

impl LogServer {
    /// A server that has these files.
    #[must_use]
    pub fn start(files: LogFiles) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = Served { files, manners: Manners::Files, asked: Vec::new() };
        let shared = Arc::new(Mutex::new(served));
        let own = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&own);
                // A client that goes away is no failure of ours.
                std::thread::spawn(move || drop(answer_all(stream, &shared)));
            }
        });
        Self { url, shared }
    }

    /// Has it serve these files too; what was there before stays, as behind a real hub.
    pub fn publish(&self, files: LogFiles) {
        self.locked().files.extend(files);
    }

    /// Has it serve these files alone.
    pub fn replace(&self, files: LogFiles) {
        self.locked().files = files;
    }

    /// Changes one file.
    pub fn tamper(&self, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
        change(self.locked().files.get_mut(path).unwrap_or_else(|| panic!("there is no {path}")));
    }

    /// Has it behave so from now on.
    pub fn behave(&self, manners: Manners) {
        self.locked().manners = manners;
    }

    /// What it was asked for since the last time, with the status of each answer.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.locked().asked)
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Served> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn answer_all(mut stream: TcpStream, shared: &Mutex<Served>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    loop {
        let Some(request) = lines.next().transpose()? else { return Ok(()) };
        let mut tag = None;
        for line in lines.by_ref() {
            let line = line?;
            if line.is_empty() {
                break;
            }
            tag = line.to_ascii_lowercase().strip_prefix("if-none-match: ").map(str::to_owned).or(tag);
        }
        let path = request.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
        let (manners, file) = {
            let served = shared.lock().unwrap_or_else(PoisonError::into_inner);
            (served.manners.clone(), served.files.get(&path).cloned())
        };
        let own_tag = file.as_ref().map(|bytes| format!("\"{}\"", Hash::sha256(bytes)));
        let (status, head, body) = match (manners, file) {
            (Manners::Hangs, _) => {
                std::thread::sleep(Duration::from_secs(600));
                return Ok(());
            }
            (Manners::Endless, _) => {
                stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
                loop {
                    stream.write_all(b"400\r\n")?;
                    stream.write_all(&[b'x'; 1024])?;
                    stream.write_all(b"\r\n")?;
                }
            }
            (Manners::Redirects(to), _) => (302, format!("location: {to}/{path}\r\n"), Vec::new()),
            (Manners::Fails(status), _) => (status, String::new(), Vec::new()),
            (Manners::Files, Some(_)) if tag.is_some() && tag == own_tag => (304, String::new(), Vec::new()),
            (Manners::Files, Some(bytes)) => {
                let tag = own_tag.filter(|_| path == "checkpoint");
                (200, tag.map(|tag| format!("etag: {tag}\r\n")).unwrap_or_default(), bytes)
            }
            (Manners::Files, None) => (404, String::new(), Vec::new()),
        };
        shared.lock().unwrap_or_else(PoisonError::into_inner).asked.push(format!("{path} {status}"));
        let length = body.len();
        stream
            .write_all(format!("HTTP/1.1 {status} X\r\n{head}content-length: {length}\r\n\r\n").as_bytes())?;
        stream.write_all(&body)?;
    }
}
