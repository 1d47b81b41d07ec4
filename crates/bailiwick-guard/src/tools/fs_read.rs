//! `fs_read`: what a file says, a window of lines or bytes at a time.
//!
//! The file that was checked is the file that is read. What does not fit is left out and that is said. Holds no more in
//! memory than it gives back.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::args::{Args, object, path_schema, wrong};
use crate::gate::ToolContext;
use crate::outcome::Output;
use crate::tool::{Effect, Hints, Tool, ToolError};

const NAME: &str = "fs_read";
const DEFAULT_BYTES: u64 = 1024 * 1024;
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// The farthest line or byte that can be asked for.
const FARTHEST: u64 = 1 << 53;
/// How long is looked for the first line.
const MAX_TIME: Duration = Duration::from_secs(10);
const BLOCK: usize = 64 * 1024;
/// How many times the bytes that are asked for a call holds at most: bytes that are not UTF-8 become three each, and
/// what is given back stands in the answer twice.
const COPIES: usize = 6;

/// The `fs_read` tool: `{path, offset?, limit?, max_bytes?, encoding?}`.
#[derive(Debug, Clone, Copy, Default)]
pub struct FsRead;

impl Tool for FsRead {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &str {
        "Read a file. Text comes as a window of lines: `offset` is the first line (from 1), `limit` how many. When \
         `truncated` is true, read on at `next_offset`. Binary files need `encoding: \"base64\"`; then `offset` and \
         `limit` count bytes (from 0)."
    }

    fn schema(&self) -> Value {
        let properties = json!({
            "path": path_schema("The file"),
            "offset": {
                "type": "integer", "minimum": 0, "maximum": FARTHEST,
                "description": "The first line, from 1; with base64 the first byte, from 0.",
            },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": FARTHEST,
                "description": "How many lines; with base64 how many bytes. All that fit if absent.",
            },
            "max_bytes": {
                "type": "integer", "minimum": 1, "maximum": MAX_BYTES,
                "description": "The most bytes of the file to return; 1 MiB if absent.",
            },
            "encoding": { "type": "string", "enum": ["text", "base64"], "default": "text" },
        });
        object(properties, &["path"])
    }

    fn output(&self) -> Option<Value> {
        let number = json!({ "type": "integer", "minimum": 0 });
        let properties = json!({
            "path": { "type": "string" },
            "encoding": { "type": "string", "enum": ["text", "base64"] },
            "content": { "type": "string" },
            "size": { "type": "integer", "minimum": 0, "description": "Bytes in the whole file." },
            "offset": number,
            "count": { "type": "integer", "minimum": 0, "description": "Lines, or bytes, in `content`." },
            "truncated": { "type": "boolean", "description": "The file goes on behind `content`." },
            "next_offset": { "type": ["integer", "null"], "description": "Where to read on." },
            "line_cut": { "type": "boolean", "description": "The last line did not fit as a whole." },
            "lossy": { "type": "boolean", "description": "Some bytes were not UTF-8 and were replaced." },
        });
        let required = [
            "path",
            "encoding",
            "content",
            "size",
            "offset",
            "count",
            "truncated",
            "next_offset",
            "line_cut",
            "lossy",
        ];
        Some(object(properties, &required))
    }

    fn hints(&self) -> Hints {
        Hints { effect: Effect::Reads, idempotent: true, open_world: false }
    }

    fn footprint(&self, args: &Value) -> usize {
        let most = args.get("max_bytes").and_then(Value::as_u64).unwrap_or(DEFAULT_BYTES).min(MAX_BYTES);
        usize::try_from(most).unwrap_or(usize::MAX).saturating_mul(COPIES) + BLOCK
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
        let args = Args::read(NAME, &args, &["path", "offset", "limit", "max_bytes", "encoding"])?;
        let path = args.path()?;
        let offset = args.number("offset", 0..=FARTHEST)?;
        let limit = args.number("limit", 1..=FARTHEST)?;
        let max = args.number("max_bytes", 1..=MAX_BYTES)?.unwrap_or(DEFAULT_BYTES);
        let encoding = args.word("encoding", &["text", "base64"])?;
        if encoding == "text" && offset == Some(0) {
            return Err(args.wrong("`offset` is the number of a line, and lines count from 1"));
        }
        let file = context.open_read(path)?;
        let failed =
            |error: std::io::Error| wrong(NAME, &format!("cannot read `{}`: {error}", path.escape_debug()));
        let about = file.metadata().map_err(failed)?;
        if about.is_dir() {
            return Err(args.wrong(&format!("`{}` is a directory; `fs_list` lists it", path.escape_debug())));
        }
        let read = if encoding == "base64" {
            bytes(file, offset.unwrap_or(0), limit.unwrap_or(max).min(max)).map_err(failed)?
        } else {
            let window = Window::new(offset.unwrap_or(1), limit, max, about.len());
            window.read(file, context, failed)?.answer(path)?
        };
        let (content, read) = read;
        let mut answer = json!({ "path": path, "encoding": encoding, "size": about.len() });
        if let (Value::Object(answer), Value::Object(read)) = (&mut answer, read) {
            answer.extend(read);
            // Moved, where the macro would copy it.
            answer.insert("content".to_owned(), Value::String(content));
        }
        Ok(answer.into())
    }
}

/// A stretch of bytes, and what is to be said of it.
fn bytes(mut file: File, offset: u64, limit: u64) -> std::io::Result<(String, Value)> {
    file.seek(SeekFrom::Start(offset))?;
    let mut content = Vec::new();
    file.by_ref().take(limit).read_to_end(&mut content)?;
    let goes_on = file.read(&mut [0])? > 0;
    let next = goes_on.then(|| offset.saturating_add(u64::try_from(content.len()).unwrap_or(u64::MAX)));
    let about = json!({
        "offset": offset,
        "count": content.len(),
        "truncated": goes_on,
        "next_offset": next,
        "line_cut": false,
        "lossy": false,
    });
    Ok((STANDARD.encode(&content), about))
}

/// A window of lines while it is read.
struct Window {
    first: u64,
    /// The first line behind it.
    end: u64,
    room: usize,
    line: u64,
    content: Vec<u8>,
    /// Where the first NUL byte was met.
    nul: Option<usize>,
    cut: bool,
    goes_on: bool,
}

impl Window {
    fn new(first: u64, limit: Option<u64>, max: u64, size: u64) -> Self {
        Self {
            first,
            end: limit.map_or(u64::MAX, |limit| first.saturating_add(limit)),
            room: usize::try_from(max).unwrap_or(usize::MAX),
            line: 1,
            // All at once where that is known: a buffer that grows is larger than what it holds.
            content: Vec::with_capacity(usize::try_from(size.min(max)).unwrap_or_default()),
            nul: None,
            cut: false,
            goes_on: false,
        }
    }

    fn read(
        mut self,
        file: File,
        context: &ToolContext,
        failed: impl Fn(std::io::Error) -> ToolError,
    ) -> Result<Self, ToolError> {
        let started = Instant::now();
        let mut reader = BufReader::with_capacity(BLOCK, file);
        let mut read = 0;
        loop {
            context.still_granted()?;
            let block = reader.fill_buf().map_err(&failed)?;
            let length = block.len();
            if length == 0 || self.take(block, read) {
                return Ok(self);
            }
            reader.consume(length);
            read += length;
            if started.elapsed() > MAX_TIME {
                let late = format!("line {} is not reached within {} s", self.first, MAX_TIME.as_secs());
                return Err(failed(std::io::Error::other(late)));
            }
        }
    }

    /// Takes what belongs to the window from the next block; whether that was all.
    fn take(&mut self, block: &[u8], before: usize) -> bool {
        let mut at = before;
        for piece in block.split_inclusive(|byte| *byte == b'\n') {
            if self.line >= self.end {
                self.goes_on = true;
                return true;
            }
            if before == 0 || self.line >= self.first {
                self.nul = self.nul.or(piece.iter().position(|byte| *byte == 0).map(|found| at + found));
            }
            if self.line >= self.first {
                let room = self.room - self.content.len();
                self.content.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
                if piece.len() > room {
                    (self.cut, self.goes_on) = (room > 0 || !self.content.ends_with(b"\n"), true);
                    return true;
                }
            }
            at += piece.len();
            self.line += u64::from(piece.ends_with(b"\n"));
        }
        self.nul.is_some()
    }

    fn answer(self, path: &str) -> Result<(String, Value), ToolError> {
        if let Some(at) = self.nul {
            let what = format!(
                "`{}` is not text (byte {at} is NUL); read it with `\"encoding\": \"base64\"`",
                path.escape_debug()
            );
            return Err(wrong(NAME, &what));
        }
        let mut content = self.content;
        if self.cut {
            content.truncate(whole_letters(&content));
        }
        let (text, lossy) = match String::from_utf8(content) {
            Ok(text) => (text, false),
            Err(bytes) => (replaced(bytes.as_bytes()), true),
        };
        let about = json!({
            "count": text.lines().count(),
            "offset": self.first,
            "truncated": self.goes_on,
            "next_offset": self.goes_on.then_some(self.line),
            "line_cut": self.cut,
            "lossy": lossy,
        });
        Ok((text, about))
    }
}

/// The text with what is not UTF-8 replaced, in a buffer of just its length.
fn replaced(bytes: &[u8]) -> String {
    let shown = |chunk: &std::str::Utf8Chunk<'_>| if chunk.invalid().is_empty() { "" } else { "\u{fffd}" };
    let length = bytes.utf8_chunks().map(|chunk| chunk.valid().len() + shown(&chunk).len()).sum();
    let mut text = String::with_capacity(length);
    for chunk in bytes.utf8_chunks() {
        text += chunk.valid();
        text += shown(&chunk);
    }
    text
}

/// How many bytes there are up to the last whole letter.
fn whole_letters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}
