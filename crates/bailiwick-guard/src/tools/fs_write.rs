//! `fs_write`: a file's whole content, or more at its end.
//!
//! A replaced file is swapped for a new one in one step where the call may create and delete beside it, so that nobody
//! sees it half written; where it may not, it is written in place, and the answer says which. Content is not forced to
//! the disk. Directories are not made.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::args::{Args, object, path_schema};
use crate::gate::{Only, ToolContext};
use crate::outcome::Output;
use crate::tool::{Effect, Hints, Tool, ToolError};

const NAME: &str = "fs_write";
/// The most that is written in one call.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// What a call takes besides its content.
const SLACK: usize = 64 * 1024;

/// The `fs_write` tool: `{path, content, mode?, encoding?}`.
#[derive(Debug, Clone, Copy, Default)]
pub struct FsWrite;

impl Tool for FsWrite {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &str {
        "Write a file in an existing directory. `mode` is `replace` (the default: new content for a new or existing \
         file), `create` (fails if the file exists) or `append`. To change parts of a file use `fs_edit`."
    }

    fn schema(&self) -> Value {
        let properties = json!({
            "path": path_schema("The file"),
            "content": { "type": "string", "description": "At most 16 MiB." },
            "mode": { "type": "string", "enum": ["replace", "create", "append"], "default": "replace" },
            "encoding": {
                "type": "string", "enum": ["text", "base64"], "default": "text",
                "description": "What `content` is: the text itself, or bytes in base64.",
            },
        });
        object(properties, &["path", "content"])
    }

    fn output(&self) -> Option<Value> {
        let properties = json!({
            "path": { "type": "string" },
            "bytes": { "type": "integer", "minimum": 0, "description": "Bytes written." },
            "created": { "type": "boolean", "description": "There was no such file before." },
            "atomic": { "type": "boolean", "description": "Nobody could see the file half written." },
        });
        Some(object(properties, &["path", "bytes", "created", "atomic"]))
    }

    fn hints(&self) -> Hints {
        Hints { effect: Effect::Changes, idempotent: false, open_world: false }
    }

    fn footprint(&self, args: &Value) -> usize {
        // Once more as bytes; the arguments themselves are the caller's.
        args.get("content").and_then(Value::as_str).map_or(0, str::len) + SLACK
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
        let args = Args::read(NAME, &args, &["path", "content", "mode", "encoding"])?;
        let path = args.path()?;
        let content = args.required("content")?;
        let mode = args.word("mode", &["replace", "create", "append"])?;
        let content = match args.word("encoding", &["text", "base64"])? {
            "base64" => STANDARD.decode(content).map_err(|error| {
                args.wrong(&format!("`content` is not base64: {}", error.to_string().to_lowercase()))
            })?,
            _ => content.as_bytes().to_vec(),
        };
        if content.len() > MAX_BYTES {
            return Err(args.wrong(&format!("`content` has {} bytes, more than {MAX_BYTES}", content.len())));
        }
        let written = match mode {
            "append" => context.append(path, &content)?,
            "create" => context.replace(path, &content, Only::New)?,
            _ => context.replace(path, &content, Only::Any)?,
        };
        Ok(json!({
            "path": path,
            "bytes": content.len(),
            "created": written.created,
            "atomic": written.atomic,
        })
        .into())
    }
}
