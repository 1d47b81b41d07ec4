//! `fs_search`: lines that match a pattern, in a file or below a directory.
//!
//! Reads only files that the call may read, met by a walk that follows no link. The pattern runs in time linear in the
//! text and is of bounded size; so are lines, files, results and time, and the answer says which bound was met. One
//! record covers a directory that may be read as a whole; otherwise each file that is read has its own. Between lines it
//! looks whether the call was cancelled or the grant revoked.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::time::{Duration, Instant};

use bailiwick_policy::capability::Capability;
use bailiwick_policy::path::{AbsPath, PathPattern};
use regex::bytes::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::args::{Args, object, path_schema};
use super::walk::{FileKind, MAX_KEPT, MAX_NAMES, Walk};
use crate::gate::{Look, ToolContext};
use crate::outcome::Output;
use crate::tool::{Effect, Hints, Tool, ToolError};

const NAME: &str = "fs_search";
const MAX_PATTERN: usize = 2000;
const MAX_GLOB: usize = 1000;
/// How large a compiled pattern may be, and how much of a line is then looked at. The time that a line takes can be
/// proportional to both, and nothing can stop it before its end.
const SIZES: [(usize, usize); 4] =
    [(64 << 10, MAX_LINE), (256 << 10, 128 << 10), (1 << 20, 32 << 10), (2 << 20, 16 << 10)];
const DEFAULT_RESULTS: u64 = 100;
const MAX_RESULTS: u64 = 1000;
const MAX_CONTEXT: u64 = 10;
const MAX_DEPTH: usize = 64;
/// Larger files are passed over, and counted.
const MAX_FILE: u64 = 64 * 1024 * 1024;
/// Bytes of all files together.
const MAX_READ: u64 = 1024 * 1024 * 1024;
const MAX_TIME: Duration = Duration::from_secs(20);
/// The most of a line that is looked at.
const MAX_LINE: usize = 1024 * 1024;
/// The most of a line that is shown.
const MAX_SHOWN: usize = 400;
/// Bytes of all that is shown.
const MAX_OUTPUT: usize = 512 * 1024;
/// The pattern with what it keeps while it runs, a line, the names of the walk, and what is shown, twice.
const FOOTPRINT: usize = MAX_KEPT + 16 * 1024 * 1024;
/// How much of a file tells whether it is text.
const SNIFFED: usize = 8 * 1024;
const BLOCK: usize = 64 * 1024;

/// The `fs_search` tool: `{path, pattern, glob?, max_results?, context?}`.
#[derive(Debug, Clone, Copy, Default)]
pub struct FsSearch;

impl Tool for FsSearch {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &str {
        "Search the lines of text files for a regular expression (Rust syntax, no look-around; `(?i)` ignores case), in \
         one file or in all below a directory. `glob` limits it to files such as `*.rs` or `src/**/*.ts`. Hidden and \
         ignored files are searched too; binary files and links are not. When `truncated` is true, `stopped_by` says why."
    }

    fn schema(&self) -> Value {
        let properties = json!({
            "path": path_schema("The file or directory"),
            "pattern": { "type": "string", "minLength": 1, "maxLength": MAX_PATTERN },
            "glob": {
                "type": "string", "minLength": 1, "maxLength": 1000,
                "description": "Which files, by their path below the directory; without a slash, by their name.",
            },
            "max_results": {
                "type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "default": DEFAULT_RESULTS,
            },
            "context": {
                "type": "integer", "minimum": 0, "maximum": MAX_CONTEXT, "default": 0,
                "description": "Lines to show before and after each match.",
            },
        });
        object(properties, &["path", "pattern"])
    }

    fn output(&self) -> Option<Value> {
        let (number, text) = (json!({ "type": "integer", "minimum": 0 }), json!({ "type": "string" }));
        let lines = json!({ "type": "array", "items": text });
        let result = json!({
            "path": text,
            "line": { "type": "integer", "minimum": 1 },
            "text": text,
            "cut": { "type": "boolean", "description": "The line is longer than shown or looked at." },
            "before": lines,
            "after": lines,
        });
        let properties = json!({
            "path": text,
            "results": {
                "type": "array",
                "items": object(result, &["path", "line", "text", "cut", "before", "after"]),
            },
            "truncated": { "type": "boolean" },
            "stopped_by": { "enum": ["results", "output", "bytes", "time", "names", null] },
            "files": number,
            "skipped_binary": number,
            "skipped_large": number,
            "unreadable": number,
        });
        let required = [
            "path",
            "results",
            "truncated",
            "stopped_by",
            "files",
            "skipped_binary",
            "skipped_large",
            "unreadable",
        ];
        Some(object(properties, &required))
    }

    fn hints(&self) -> Hints {
        Hints { effect: Effect::Reads, idempotent: true, open_world: false }
    }

    fn footprint(&self, _: &Value) -> usize {
        FOOTPRINT
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
        let args = Args::read(NAME, &args, &["path", "pattern", "glob", "max_results", "context"])?;
        let path = args.path()?;
        let (pattern, line) = compiled(&args)?;
        let glob = args.text("glob")?.map(|glob| read_glob(glob, &args)).transpose()?;
        let wanted = args.number("max_results", 1..=MAX_RESULTS)?.unwrap_or(DEFAULT_RESULTS);
        let around = args.number("context", 0..=MAX_CONTEXT)?.unwrap_or(0);
        let mut search = Search {
            context,
            pattern,
            line,
            wanted: usize::try_from(wanted).unwrap_or(usize::MAX),
            around: usize::try_from(around).unwrap_or_default(),
            started: Instant::now(),
            found: Found::default(),
        };
        let failed =
            |error: std::io::Error| args.wrong(&format!("cannot search `{}`: {error}", path.escape_debug()));
        let place = context.open_place(path, Look::Contents)?;
        let mut unreadable = 0;
        if place.file.metadata().map_err(failed)?.is_dir() {
            let walk = Walk::new(context, Look::Contents, place, MAX_DEPTH, MAX_NAMES);
            let mut walk = walk.map_err(|stop| stop.into_error(failed))?;
            search.below(&mut walk, glob.as_ref())?;
            unreadable = walk.unreadable;
            if walk.overfull {
                search.found.stopped_by.get_or_insert("names");
            }
        } else {
            search.file(place.file, path).map_err(failed)?;
        }
        context.still_granted()?;
        Ok(search.found.answer(path, unreadable).into())
    }
}

/// The pattern, and how much of a line it is tried on.
fn compiled(args: &Args<'_>) -> Result<(Regex, usize), ToolError> {
    let pattern = args.required("pattern")?;
    if pattern.is_empty() || pattern.len() > MAX_PATTERN {
        return Err(args.wrong(&format!("`pattern` has 1 to {MAX_PATTERN} bytes")));
    }
    let mut why = String::new();
    for (size, line) in SIZES {
        match RegexBuilder::new(pattern).size_limit(size).dfa_size_limit(size.max(1 << 20)).build() {
            Ok(built) => return Ok((built, line)),
            Err(error) => why = error.to_string(),
        }
    }
    let why = why.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
    Err(args.wrong(&format!("`pattern` is not a regular expression that can be used: {why}")))
}

/// A glob as policies write them; without a slash it is about names.
fn read_glob(glob: &str, args: &Args<'_>) -> Result<PathPattern, ToolError> {
    if glob.len() > MAX_GLOB {
        return Err(args.wrong(&format!("`glob` has at most {MAX_GLOB} bytes")));
    }
    let anywhere = if glob.contains('/') { "" } else { "**/" };
    let line = format!("fs:read:/{anywhere}{}", glob.trim_start_matches('/'));
    match line.parse() {
        Ok(Capability::Fs { path, .. }) => Ok(path),
        Ok(_) => Err(args.wrong("`glob` is not a glob")),
        Err(finding) => Err(args.wrong(&format!("`glob` cannot be read: {}", finding.message()))),
    }
}

struct Search<'c> {
    context: &'c ToolContext,
    pattern: Regex,
    /// How much of a line is looked at.
    line: usize,
    wanted: usize,
    around: usize,
    started: Instant,
    found: Found,
}

/// What was found so far.
#[derive(Default)]
struct Found {
    results: Vec<Hit>,
    shown: usize,
    read: u64,
    files: usize,
    binary: usize,
    large: usize,
    stopped_by: Option<&'static str>,
}

struct Hit {
    path: String,
    line: u64,
    text: String,
    cut: bool,
    before: Vec<String>,
    after: Vec<String>,
}

impl Search<'_> {
    fn below(&mut self, walk: &mut Walk<'_>, glob: Option<&PathPattern>) -> Result<(), ToolError> {
        while let Some(met) = walk.next()? {
            if self.is_over() {
                break;
            }
            let named = |glob: &PathPattern| {
                AbsPath::new(&format!("/{}", met.shown)).is_ok_and(|path| glob.covers(&path))
            };
            if met.kind != FileKind::File || !glob.is_none_or(named) {
                continue;
            }
            if met.size > MAX_FILE {
                self.found.large += 1;
                continue;
            }
            match walk.open(&met)? {
                // A file that cannot be read to its end was read as far as it could be.
                Some(file) => drop(self.file(file, &met.shown)),
                None => walk.unreadable += 1,
            }
        }
        Ok(())
    }

    fn file(&mut self, file: File, shown: &str) -> std::io::Result<()> {
        let mut reader = BufReader::with_capacity(BLOCK, file);
        if reader.fill_buf()?.iter().take(SNIFFED).any(|byte| *byte == 0) {
            self.found.binary += 1;
            return Ok(());
        }
        self.found.files += 1;
        let mut before: VecDeque<String> = VecDeque::new();
        let (mut line, mut number, mut awaiting) = (Vec::new(), 0, 0_usize);
        while let Some((length, cut)) = next_line(&mut reader, &mut line, self.line)? {
            if self.context.still_wanted().is_err() {
                break;
            }
            number += 1;
            self.found.read += length;
            let matches = self.found.results.len() < self.wanted && self.pattern.is_match(&line);
            if awaiting > 0 {
                awaiting -= 1;
                self.follow(&line, number);
            }
            if matches {
                let before = before.iter().cloned().collect();
                self.hit(shown, number, &line, cut, before);
                awaiting = self.around;
            }
            if self.around > 0 {
                before.push_back(clipped(&line).0);
                if before.len() > self.around {
                    before.pop_front();
                }
            }
            if self.is_over() && (awaiting == 0 || self.found.stopped_by != Some("results")) {
                break;
            }
        }
        Ok(())
    }

    fn hit(&mut self, shown: &str, line: u64, text: &[u8], cut: bool, before: Vec<String>) {
        let (text, clipped) = clipped(text);
        let found = &mut self.found;
        found.shown += text.len() + before.iter().map(String::len).sum::<usize>();
        let path = shown.to_owned();
        found.results.push(Hit { path, line, text, cut: cut || clipped, before, after: Vec::new() });
    }

    /// Adds a line to those hits of the file that still want lines behind them.
    fn follow(&mut self, line: &[u8], number: u64) {
        let text = clipped(line).0;
        let around = u64::try_from(self.around).unwrap_or(u64::MAX);
        for hit in self.found.results.iter_mut().rev() {
            if number <= hit.line || number - hit.line > around {
                break;
            }
            self.found.shown += text.len();
            hit.after.push(text.clone());
        }
    }

    /// Whether a bound was met.
    fn is_over(&mut self) -> bool {
        let found = &mut self.found;
        let bound = if found.shown >= MAX_OUTPUT {
            Some("output")
        } else if found.read >= MAX_READ {
            Some("bytes")
        } else if self.started.elapsed() >= MAX_TIME {
            Some("time")
        } else if found.results.len() >= self.wanted {
            Some("results")
        } else {
            None
        };
        if let Some(bound) = bound {
            found.stopped_by.get_or_insert(bound);
        }
        found.stopped_by.is_some()
    }
}

impl Found {
    fn answer(self, path: &str, unreadable: usize) -> Value {
        let hit = |hit: Hit| {
            json!({
                "path": hit.path,
                "line": hit.line,
                "text": hit.text,
                "cut": hit.cut,
                "before": hit.before,
                "after": hit.after,
            })
        };
        json!({
            "path": path,
            "results": self.results.into_iter().map(hit).collect::<Vec<_>>(),
            "truncated": self.stopped_by.is_some(),
            "stopped_by": self.stopped_by,
            "files": self.files,
            "skipped_binary": self.binary,
            "skipped_large": self.large,
            "unreadable": unreadable,
        })
    }
}

/// Reads the next line without its end, as much of it as is looked at: its length in the file, and whether it was cut.
fn next_line(
    reader: &mut BufReader<File>,
    line: &mut Vec<u8>,
    most: usize,
) -> std::io::Result<Option<(u64, bool)>> {
    line.clear();
    let (mut length, mut cut) = (0, false);
    loop {
        let block = reader.fill_buf()?;
        if block.is_empty() {
            return Ok((length > 0).then_some((length, cut)));
        }
        let end = block.iter().position(|byte| *byte == b'\n');
        let part = block.get(..end.unwrap_or(block.len())).unwrap_or_default();
        let room = most - line.len();
        line.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
        cut |= part.len() > room;
        let used = end.map_or(block.len(), |end| end + 1);
        length += u64::try_from(used).unwrap_or_default();
        reader.consume(used);
        if end.is_some() {
            line.pop_if(|byte| *byte == b'\r');
            return Ok(Some((length, cut)));
        }
    }
}

/// What is shown of a line, and whether that is less than all of it.
fn clipped(line: &[u8]) -> (String, bool) {
    let text = String::from_utf8_lossy(line.get(..MAX_SHOWN + 4).unwrap_or(line)).into_owned();
    let mut text = text;
    let cut = line.len() > MAX_SHOWN;
    text.truncate(text.floor_char_boundary(MAX_SHOWN));
    (text, cut)
}
