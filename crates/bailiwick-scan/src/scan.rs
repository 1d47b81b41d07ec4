//! A whole scan: files to facts, several at a time, then one report.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::attribute;
use crate::cache::Cache;
use crate::model::{Language, Oddity, Reason, Unit};
use crate::parse::Grammar;
use crate::report::{CodeSpan, Deeds, Report};
use crate::resolve::Package;
use crate::source::{self, Fault, MAX_FILE, SourceFile, Treat};
use crate::{speaks, syntax};

/// How to scan.
#[derive(Debug, Clone)]
pub struct Options {
    /// Read directories of dependencies too.
    pub include_dependencies: bool,
    /// Where facts are kept between scans.
    pub cache: Option<PathBuf>,
    /// How many files are read at the same time.
    pub threads: usize,
    /// The tools that the server lists while it runs, if that is known.
    pub listed: Option<Vec<String>>,
}

/// How far a scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// So many files of so many are read.
    Reading(usize, usize),
    /// The calls of so many tools of so many are followed.
    Following(usize, usize),
}

/// What became of one file.
struct Read {
    unit: Unit,
    /// Where lines begin.
    lines: Vec<usize>,
    reused: bool,
}

/// Scans files and directories. `progress` is told how far it is, from any thread.
///
/// # Errors
/// A fault if a path cannot be read or holds no source.
pub fn scan(
    paths: &[PathBuf],
    options: &Options,
    progress: &(dyn Fn(Stage) + Sync),
) -> Result<Report, Fault> {
    let entries = source::collect(paths, options.include_dependencies)?;
    let cache = options.cache.clone().map(Cache::new);
    let reads = read_all(&entries, cache.as_ref(), options.threads, progress)?;
    let files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path).collect();
    let (mut units, mut lines, mut reused) = (Vec::new(), Vec::new(), 0);
    for read in reads {
        units.push(read.unit);
        lines.push(read.lines);
        reused += usize::from(read.reused);
    }
    let speaks = speaks::file_that_speaks(&units, &files, paths);
    let following = |done, all| progress(Stage::Following(done, all));
    let report = report(files, &units, &lines, options.listed.as_deref(), &following);
    Ok(Report { reused, speaks, ..report })
}

/// Scans one text as a file with an ending, its facts as the cache would give them back; `None` for no language.
#[must_use]
pub fn scan_text(extension: &str, text: &str) -> Option<Report> {
    let unit = syntax::read(Grammar::of_extension(extension)?, text);
    let unit: Unit = serde_json::from_slice(&serde_json::to_vec(&unit).ok()?).ok()?;
    let files = vec![Path::new("text").with_extension(extension)];
    Some(report(files, &[unit], &[line_starts(text)], None, &|_, _| {}))
}

fn report(
    files: Vec<PathBuf>,
    units: &[Unit],
    lines: &[Vec<usize>],
    listed: Option<&[String]>,
    following: &dyn Fn(usize, usize),
) -> Report {
    let package = Package::new(units, &files);
    let mut found = attribute::attribute(&package, listed, following);
    for tool in &mut found.tools {
        with_line(&mut tool.place, lines);
        with_lines(&mut tool.deeds, lines);
    }
    with_lines(&mut found.server, lines);
    let lines = lines.iter().map(Vec::len).sum();
    Report {
        files,
        lines,
        tools: found.tools,
        server: found.server,
        reused: 0,
        unfound: found.unfound,
        unlisted: found.unlisted,
        speaks: None,
        picks: found.picks,
    }
}

/// The text of a file as the places of a report count it.
///
/// # Errors
/// The system's, if the file cannot be read.
pub fn read_text(path: &Path) -> std::io::Result<String> {
    Ok(source::read(path)?.unwrap_or_default())
}

fn read_all(
    entries: &[SourceFile],
    cache: Option<&Cache>,
    threads: usize,
    progress: &(dyn Fn(Stage) + Sync),
) -> Result<Vec<Read>, Fault> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut reads = Vec::new();
        while let Some((index, entry)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            entries.get(index).map(|entry| (index, entry))
        } {
            reads.push((index, read(entry, cache)));
            progress(Stage::Reading(done.fetch_add(1, Ordering::Relaxed) + 1, entries.len()));
        }
        reads
    };
    let mut reads: Vec<(usize, Result<Read, Fault>)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let own = work();
        let joined = others.into_iter().map(|other| match other.join() {
            Ok(reads) => reads,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        own.into_iter().chain(joined.flatten().collect::<Vec<_>>()).collect()
    });
    reads.sort_by_key(|(index, _)| *index);
    reads.into_iter().map(|(_, read)| read).collect()
}

fn read(entry: &SourceFile, cache: Option<&Cache>) -> Result<Read, Fault> {
    let name = entry.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let grammar = match entry.treat {
        Treat::Parse(grammar) => grammar,
        Treat::Native => return Ok(odd(Language::Rust, Reason::Native, name)),
        Treat::TooMany => {
            return Ok(odd(Language::Rust, Reason::TooLarge, format!("{name}, and what lies behind it")));
        }
    };
    let unreadable = |source| Fault::Unreadable { path: entry.path.clone(), source };
    let Some(text) = source::read(&entry.path).map_err(unreadable)? else {
        let what = format!("{name} is larger than {MAX_FILE} bytes");
        return Ok(odd(grammar.language(), Reason::TooLarge, what));
    };
    let (unit, reused) = facts(grammar, &text, cache);
    Ok(Read { unit, lines: line_starts(&text), reused })
}

/// Where lines begin; what stands behind the last line break is a line only if it is something.
fn line_starts(text: &str) -> Vec<usize> {
    let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
    std::iter::once(0).chain(starts).filter(|start| *start < text.len()).collect()
}

fn facts(grammar: Grammar, text: &str, cache: Option<&Cache>) -> (Unit, bool) {
    let Some(cache) = cache else { return (syntax::read(grammar, text), false) };
    let key = cache.key(grammar, text);
    match cache.load(&key) {
        Some(unit) => (unit, true),
        None => (cache.store(key, syntax::read(grammar, text)), false),
    }
}

fn odd(language: Language, reason: Reason, what: String) -> Read {
    let mut unit = syntax::nothing(language);
    unit.oddities.push(Oddity { reason, what, scope: 0, extent: (0, 0) });
    Read { unit, lines: Vec::new(), reused: false }
}

fn with_lines(deeds: &mut Deeds, lines: &[Vec<usize>]) {
    deeds.uses.iter_mut().for_each(|one| with_line(&mut one.place, lines));
    deeds.unknowns.iter_mut().for_each(|one| with_line(&mut one.place, lines));
}

fn with_line(place: &mut CodeSpan, lines: &[Vec<usize>]) {
    let starts = lines.get(place.file).map_or(&[][..], Vec::as_slice);
    place.line = starts.partition_point(|start| *start <= place.start).max(1);
}
