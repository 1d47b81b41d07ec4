//! Files that earlier calls of a session made, as a later call may run them.
//!
//! What was downloaded counts by its path. A shell script that was written is opened and read when a call names it, so
//! that it is judged as it is then; at most a few per call, and only regular files of bounded size. Residual: code in
//! other languages, scripts that are larger, and files that programs make which the text does not show.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use bailiwick_shell::classes::EarlierFiles;

use super::call::ToolCall;
use super::history::History;

/// How many scripts of one call are read.
const MAX_SCRIPTS: usize = 4;
/// The largest script that is read.
const MAX_SCRIPT: u64 = 64 * 1024;

/// What a call may run of what earlier ones made.
pub(crate) fn earlier_files(past: &History, call: &ToolCall<'_>) -> EarlierFiles {
    let mut files = EarlierFiles::default();
    let Some(text) = call.shell_text().filter(|_| !past.made().is_empty()) else { return files };
    for made in past.made().iter().rev() {
        let named = Path::new(&made.path).file_name().and_then(|name| name.to_str());
        if !named.is_some_and(|name| text.contains(name)) {
            continue;
        }
        if made.downloaded {
            files.downloaded.insert(made.path.clone());
        } else if files.scripts.len() < MAX_SCRIPTS
            && let Some(script) = shell_script(Path::new(&made.path))
        {
            files.scripts.insert(made.path.clone(), script);
        }
    }
    files
}

/// The text of a file that a shell can run: one that names no other interpreter in its first line.
fn shell_script(path: &Path) -> Option<String> {
    let file = opened(path)?;
    let found = file.metadata().ok()?;
    if !found.is_file() || found.len() > MAX_SCRIPT {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_SCRIPT).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let first = text.lines().next().unwrap_or_default();
    let other = first.starts_with("#!") && !first.trim_end().ends_with("sh") && !first.contains("sh ");
    (!other).then_some(text)
}

/// Opens a file without waiting for one at the other end of a pipe.
#[cfg(unix)]
fn opened(path: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok().map(File::from)
}

#[cfg(not(unix))]
fn opened(path: &Path) -> Option<File> {
    File::open(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_for_a_shell_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let read = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            shell_script(&path).is_some()
        };
        assert!(read("a", "#!/usr/bin/env bash\nls") && read("b", "ls") && read("c", "#!/bin/sh -e\nls"));
        assert!(!read("d", "#!/usr/bin/python3\nprint()"));
        assert!(!read("e", &"ls\n".repeat(30_000)), "too large");
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
        assert!(shell_script(&pipe).is_none(), "and it was not waited for");
    }
}
