//! Tests of the scan from outside: the labelled corpus, the bounds, the comparison and the cache.
#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod bounds;
mod caching;
mod comparing;
mod corpus;
mod dispatch;

use std::path::{Path, PathBuf};

use bailiwick_scan::{Options, Report};

/// Without a cache, on two threads.
fn options() -> Options {
    Options { include_dependencies: false, cache: None, threads: 2, listed: None }
}

/// Scans one path.
fn scan(path: &Path) -> Report {
    bailiwick_scan::scan(&[path.to_owned()], &options(), &|_| {}).expect("the path can be scanned")
}

/// Scans one text under a name.
fn scan_text(name: &str, text: impl AsRef<[u8]>) -> Report {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    scan(&path)
}

/// A directory of the corpus.
fn corpus_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}
