//! `fs_list`: what lies in a directory, sorted by name, links as links.
//!
//! Lists exactly what the call may see: in a directory of which only parts are granted, those and the directories that lead to
//! them.

use serde_json::{Value, json};

use super::args::{Args, object, path_schema};
use super::walk::{FileKind, MAX_KEPT, MAX_NAMES, Walk};
use crate::gate::{Look, ToolContext};
use crate::outcome::Output;
use crate::tool::{Effect, Hints, Tool, ToolError};

const NAME: &str = "fs_list";
const DEFAULT_LIMIT: u64 = 1000;
const MAX_LIMIT: u64 = 10_000;
const MAX_DEPTH: u64 = 64;
/// Bytes of all paths and targets that are shown.
const MAX_SHOWN: usize = 2 * 1024 * 1024;
/// The names of the walk; and the paths with their objects, twice in the answer.
const FOOTPRINT: usize = MAX_KEPT + 16 * 1024 * 1024;

/// The `fs_list` tool: `{path, depth?, limit?}`.
#[derive(Debug, Clone, Copy, Default)]
pub struct FsList;

impl Tool for FsList {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &str {
        "List a directory: names, kinds and sizes, sorted, hidden files included. `depth` 1 (the default) is the directory \
         itself; more goes into directories below. Links are shown with their target and not followed. When `truncated` is \
         true there is more than `limit`."
    }

    fn schema(&self) -> Value {
        let properties = json!({
            "path": path_schema("The directory"),
            "depth": { "type": "integer", "minimum": 1, "maximum": MAX_DEPTH, "default": 1 },
            "limit": { "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT },
        });
        object(properties, &["path"])
    }

    fn output(&self) -> Option<Value> {
        let entry = json!({
            "path": { "type": "string", "description": "Below the listed directory." },
            "kind": { "type": "string", "enum": ["file", "folder", "link", "other"] },
            "size": { "type": "integer", "minimum": 0, "description": "Bytes, of a file." },
            "target": { "type": "string", "description": "Where a link points, as it says." },
        });
        let properties = json!({
            "path": { "type": "string" },
            "entries": { "type": "array", "items": object(entry, &["path", "kind"]) },
            "truncated": { "type": "boolean" },
            "unreadable": { "type": "integer", "minimum": 0, "description": "Directories that could not be opened." },
        });
        Some(object(properties, &["path", "entries", "truncated", "unreadable"]))
    }

    fn hints(&self) -> Hints {
        Hints { effect: Effect::Reads, idempotent: true, open_world: false }
    }

    fn footprint(&self, _: &Value) -> usize {
        FOOTPRINT
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
        let args = Args::read(NAME, &args, &["path", "depth", "limit"])?;
        let path = args.path()?;
        let depth = args.number("depth", 1..=MAX_DEPTH)?.unwrap_or(1);
        let limit = args.number("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT);
        let (depth, limit) =
            (usize::try_from(depth).unwrap_or(1), usize::try_from(limit).unwrap_or(usize::MAX));
        let place = context.open_place(path, Look::Names)?;
        let failed =
            |error: std::io::Error| args.wrong(&format!("cannot list `{}`: {error}", path.escape_debug()));
        if !place.file.metadata().map_err(failed)?.is_dir() {
            return Err(args.wrong(&format!("`{}` is a file; `fs_read` reads it", path.escape_debug())));
        }
        // In a directory of which only parts are seen, what is passed over does not count.
        let keep = if place.whole { limit } else { MAX_NAMES };
        let walk = Walk::new(context, Look::Names, place, depth, keep);
        let mut walk = walk.map_err(|stop| stop.into_error(failed))?;
        let (mut entries, mut more, mut shown) = (Vec::new(), false, 0);
        while let Some(met) = walk.next()? {
            shown += met.shown.len() + met.target.as_ref().map_or(0, String::len);
            if entries.len() == limit || shown > MAX_SHOWN {
                more = true;
                break;
            }
            let mut entry = json!({ "path": met.shown, "kind": met.kind.as_str() });
            if let Some(fields) = entry.as_object_mut() {
                if met.kind == FileKind::File {
                    fields.insert("size".to_owned(), met.size.into());
                }
                if let Some(target) = met.target {
                    fields.insert("target".to_owned(), target.into());
                }
            }
            entries.push(entry);
        }
        Ok(json!({
            "path": path,
            "entries": entries,
            "truncated": more || walk.overfull,
            "unreadable": walk.unreadable,
        })
        .into())
    }
}
