//! Traces of values: every stretch of eight bytes of a value, in every form in which a server may repeat it, looked for in
//! memory, on disk and in logs.

use std::collections::HashMap;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::servers;

/// How many bytes of a value make a trace.
const STRETCH: usize = 8;

/// What is looked for, by its first eight bytes.
pub(super) struct Traces {
    all: HashMap<[u8; STRETCH], Vec<Vec<u8>>>,
    /// The first two bytes of each: what is looked for in a hundred megabytes is mostly not there.
    firsts: Vec<bool>,
}

/// How a byte of a value is written in a form.
type Form = fn(u8) -> String;

const FORMS: [Form; 7] = [
    |byte| char::from(byte).to_string(),
    |byte| format!("{byte:02x}"),
    |byte| format!("{byte:02X}"),
    |byte| format!("%{byte:02x}"),
    |byte| format!("%{byte:02X}"),
    |byte| format!("\\u{byte:04x}"),
    |byte| format!("\\u{byte:04X}"),
];

impl Traces {
    pub(super) fn of(values: &[&str]) -> Self {
        let mut traces = Self { all: HashMap::new(), firsts: vec![false; 1 << 16] };
        for value in values {
            for stretch in value.as_bytes().windows(STRETCH) {
                for form in FORMS {
                    traces.add(stretch.iter().map(|byte| form(*byte)).collect::<String>().as_bytes());
                }
            }
            for offset in 0..3_usize {
                let padded = [&vec![0; offset], value.as_bytes()].concat();
                let (first, end) = ((offset * 8).div_ceil(6), (offset + value.len()) * 8 / 6);
                for encoded in [STANDARD.encode(&padded), URL_SAFE.encode(&padded)] {
                    encoded.as_bytes()[first..end].windows(STRETCH).for_each(|window| traces.add(window));
                }
            }
        }
        traces
    }

    fn add(&mut self, text: &[u8]) {
        let key: [u8; STRETCH] = text[..STRETCH].try_into().unwrap();
        self.firsts[usize::from(u16::from_le_bytes([key[0], key[1]]))] = true;
        let all = self.all.entry(key).or_default();
        if !all.iter().any(|own| own == text) {
            all.push(text.to_vec());
        }
    }

    /// How many places of these bytes have one.
    pub(super) fn in_bytes(&self, bytes: &[u8]) -> usize {
        let (firsts, mut count, mut at) = (&self.firsts[..], 0, 0);
        while at + STRETCH <= bytes.len() {
            if firsts[usize::from(bytes[at]) | (usize::from(bytes[at + 1]) << 8)] {
                let key: &[u8; STRETCH] = bytes[at..at + STRETCH].try_into().unwrap();
                let known = self.all.get(key).into_iter().flatten();
                count += known.filter(|text| bytes[at..].starts_with(text)).count();
            }
            at += 1;
        }
        count
    }

    /// How many places of a process's memory have one.
    pub(super) fn in_process(&self, pid: u32) -> usize {
        let Ok(maps) = std::fs::read_to_string(format!("/proc/{pid}/maps")) else { return 0 };
        // A process that has ended meanwhile has no memory.
        let Ok(memory) = std::fs::File::open(format!("/proc/{pid}/mem")) else { return 0 };
        let mut count = 0;
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            let (range, rights) = (words.next().unwrap(), words.next().unwrap());
            // What is mapped from a file without having been changed is the file.
            if !rights.starts_with("rw") || line.ends_with("[vvar]") || line.ends_with("[vsyscall]") {
                continue;
            }
            let (start, end) = range.split_once('-').unwrap();
            let [start, end] = [start, end].map(|text| u64::from_str_radix(text, 16).unwrap());
            let mut piece = vec![0; usize::try_from(end - start).unwrap()];
            if memory.read_exact_at(&mut piece, start).is_ok() {
                count += self.in_bytes(&piece);
            }
        }
        count
    }

    /// The files below a directory that have one.
    pub(super) fn in_files(&self, directory: &Path) -> Vec<String> {
        let files = servers::files(directory);
        let found = files.iter().filter(|(_, bytes)| self.in_bytes(bytes) > 0);
        found.map(|(name, _)| name.clone()).collect()
    }
}

/// Every process that this one started, and those that they did.
pub(super) fn below(pid: u32) -> Vec<u32> {
    let mut all = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().map(Result::unwrap) {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().map(|number| number.parse().unwrap()) {
            all.push(child);
            all.extend(below(child));
        }
    }
    all
}

/// The processes below this one that are in its own namespace, and those that are inside a sandbox.
pub(super) fn outside_and_inside(pid: u32) -> (Vec<u32>, Vec<u32>) {
    let namespace = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let own = namespace(pid);
    below(pid).into_iter().partition(|pid| namespace(*pid) == own)
}
