//! `fs_edit`: replaces texts in a file, all of them or none, and shows what changed.
//!
//! Each text must stand in the file exactly once, unless all of its places are meant. The file is replaced only if it is
//! still the one that was read.

mod diff;

use std::io::Read as _;

use serde_json::{Value, json};

use super::args::{Args, object, path_schema};
use crate::gate::{Only, Stamp, ToolContext};
use crate::outcome::Output;
use crate::tool::{Effect, Hints, Tool, ToolError};

const NAME: &str = "fs_edit";
const MAX_FILE: u64 = 8 * 1024 * 1024;
const MAX_EDITS: usize = 1000;
/// The file before, after, and once more while an edit is applied or a text is looked for that is not there; and some.
const FOOTPRINT: usize = 40 * 1024 * 1024;

/// The `fs_edit` tool: `{path, edits: [{old, new, all?}], dry_run?}`.
#[derive(Debug, Clone, Copy, Default)]
pub struct FsEdit;

/// One replacement.
struct Edit<'a> {
    old: &'a str,
    new: &'a str,
    all: bool,
}

impl Tool for FsEdit {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &str {
        "Replace texts in a UTF-8 file. Edits apply in order, all or none. Each `old` must occur exactly once, letter \
         for letter with its whitespace, unless `all` is true; add surrounding lines to make it unique. Returns a \
         unified diff; with `dry_run` nothing is written."
    }

    fn schema(&self) -> Value {
        let edit = json!({
            "old": { "type": "string", "minLength": 1, "description": "The text to replace." },
            "new": { "type": "string", "description": "What stands there afterwards." },
            "all": { "type": "boolean", "default": false, "description": "Every occurrence of `old`." },
        });
        let properties = json!({
            "path": path_schema("The file"),
            "edits": {
                "type": "array", "minItems": 1, "maxItems": MAX_EDITS,
                "items": object(edit, &["old", "new"]),
            },
            "dry_run": { "type": "boolean", "default": false },
        });
        object(properties, &["path", "edits"])
    }

    fn output(&self) -> Option<Value> {
        let number = json!({ "type": "integer", "minimum": 0 });
        let properties = json!({
            "path": { "type": "string" },
            "replaced": number,
            "bytes": { "type": "integer", "minimum": 0, "description": "Bytes in the file afterwards." },
            "written": { "type": "boolean" },
            "atomic": { "type": "boolean", "description": "Nobody could see the file half written." },
            "diff": { "type": "string" },
            "diff_truncated": { "type": "boolean" },
        });
        Some(object(
            properties,
            &["path", "replaced", "bytes", "written", "atomic", "diff", "diff_truncated"],
        ))
    }

    fn hints(&self) -> Hints {
        Hints { effect: Effect::Changes, idempotent: false, open_world: false }
    }

    fn footprint(&self, _: &Value) -> usize {
        FOOTPRINT
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
        let args = Args::read(NAME, &args, &["path", "edits", "dry_run"])?;
        let (path, dry_run) = (args.path()?, args.flag("dry_run")?);
        let edits = read_edits(&args)?;
        let (before, stamp) = whole(path, &args, context)?;
        let (after, replaced) = apply(&before, &edits, &args, || context.still_wanted())?;
        let changes = after != before;
        let written = if changes && !dry_run {
            Some(context.replace(path, after.as_bytes(), Only::Same(stamp))?)
        } else {
            None
        };
        let (diff, diff_truncated) = diff::unified(path, &before, &after);
        Ok(json!({
            "path": path,
            "replaced": replaced,
            "bytes": after.len(),
            "written": written.is_some(),
            "atomic": written.is_some_and(|written| written.atomic),
            "diff": diff,
            "diff_truncated": diff_truncated,
        })
        .into())
    }
}

fn read_edits<'a>(args: &Args<'a>) -> Result<Vec<Edit<'a>>, ToolError> {
    let items = args.objects("edits")?;
    if items.len() > MAX_EDITS {
        return Err(args.wrong(&format!("there are {} edits, more than {MAX_EDITS}", items.len())));
    }
    let edit = |(index, item): (usize, &'a Value)| {
        let place = |what: &str| args.wrong(&format!("edit {}: {what}", index + 1));
        let fields =
            Args::read(NAME, item, &["old", "new", "all"]).map_err(|error| place(&error.to_string()))?;
        let (old, new) = (fields.required("old")?, fields.required("new")?);
        if old.is_empty() {
            return Err(place("`old` is empty"));
        }
        Ok(Edit { old, new, all: fields.flag("all")? })
    };
    items.iter().enumerate().map(edit).collect()
}

/// The whole text of the file, and what tells whether it is still the same later.
fn whole(path: &str, args: &Args<'_>, context: &ToolContext) -> Result<(String, Stamp), ToolError> {
    let shown = path.escape_debug();
    let failed = |error: std::io::Error| args.wrong(&format!("cannot read `{shown}`: {error}"));
    let mut file = context.open_read(path)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(args.wrong(&format!("`{shown}` is a directory")));
    }
    let stamp = Stamp::from_file(&file).map_err(failed)?;
    let mut content = Vec::new();
    file.by_ref().take(MAX_FILE + 1).read_to_end(&mut content).map_err(failed)?;
    if u64::try_from(content.len()).is_ok_and(|length| length > MAX_FILE) {
        return Err(args.wrong(&format!("`{shown}` is larger than {MAX_FILE} bytes")));
    }
    let text = String::from_utf8(content).map_err(|_| args.wrong(&format!("`{shown}` is not UTF-8 text")))?;
    Ok((text, stamp))
}

/// The text after all edits, and how many places changed. Each edit takes time linear in the text.
fn apply(
    before: &str,
    edits: &[Edit<'_>],
    args: &Args<'_>,
    still_wanted: impl Fn() -> Result<(), ToolError>,
) -> Result<(String, usize), ToolError> {
    let (mut text, mut replaced) = (before.to_owned(), 0);
    for (index, edit) in edits.iter().enumerate() {
        still_wanted()?;
        let wrong = |what: String| args.wrong(&format!("edit {}: {what}", index + 1));
        let count = if edit.all { text.matches(edit.old).count() } else { places(&text, edit.old) };
        if count == 0 {
            let hint = near(&text, edit.old);
            return Err(wrong(format!("`old` is not in the file{hint}; nothing was written")));
        }
        if count > 1 && !edit.all {
            let what = "add surrounding text, or say `all`; nothing was written";
            return Err(wrong(format!("`old` is in the file at least {count} times; {what}")));
        }
        // Known before it is made: many places and a long text are more than any memory.
        let length =
            (text.len() - count * edit.old.len()).saturating_add(count.saturating_mul(edit.new.len()));
        if u64::try_from(length).is_ok_and(|length| length > MAX_FILE) {
            return Err(wrong(format!("the file would grow beyond {MAX_FILE} bytes")));
        }
        text = text.replace(edit.old, edit.new);
        replaced += count;
    }
    Ok((text, replaced))
}

/// How often `old` stands in the text: never, once, or at least so often. Places that overlap are two.
fn places(text: &str, old: &str) -> usize {
    let apart = text.matches(old).count();
    if apart != 1 {
        return apart;
    }
    let letter = old.chars().next().map_or(1, char::len_utf8);
    let behind = text.find(old).and_then(|first| text.get(first + letter..));
    if behind.is_some_and(|behind| behind.contains(old)) { 2 } else { 1 }
}

/// What may be wrong with a text that is not there.
fn near(text: &str, old: &str) -> &'static str {
    if text.contains("\r\n") && text.replace("\r\n", "\n").contains(old) {
        return " (its lines end in CR LF)";
    }
    let wanted = words(old);
    if !wanted.is_empty() && words(text).contains(&wanted) {
        " (its words are, with other whitespace)"
    } else {
        ""
    }
}

/// The words of a text with one blank between them.
fn words(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit<'a>(old: &'a str, new: &'a str) -> Edit<'a> {
        Edit { old, new, all: false }
    }

    fn applied(before: &str, edits: &[Edit<'_>]) -> Result<(String, usize), String> {
        let args = json!({});
        let args = Args::read(NAME, &args, &[]).unwrap();
        apply(before, edits, &args, || Ok(())).map_err(|error| error.to_string())
    }

    #[test]
    fn a_text_must_stand_in_one_place() {
        assert_eq!(applied("a b c", &[edit("b", "x"), edit("x c", "y")]).unwrap(), ("a y".to_owned(), 2));
        assert!(applied("aaa", &[edit("aa", "x")]).unwrap_err().contains("2 times"), "places overlap");
        assert!(applied("ééé", &[edit("éé", "x")]).unwrap_err().contains("2 times"));
        assert!(applied("a\r\nb", &[edit("a\nb", "x")]).unwrap_err().contains("CR LF"));
        assert!(applied("a  b", &[edit("a b", "x")]).unwrap_err().contains("whitespace"));
        assert!(applied("a", &[edit("b", "x")]).unwrap_err().contains("is not in the file;"));
        let all = Edit { all: true, ..edit("a", "bb") };
        assert_eq!(applied("a a", &[all]).unwrap(), ("bb bb".to_owned(), 2));
    }

    #[test]
    fn a_text_that_would_not_fit_is_never_made() {
        let (text, new) = ("a".repeat(1 << 22), "b".repeat(1 << 22));
        let all = Edit { all: true, ..edit("a", &new) };
        assert!(applied(&text, &[all]).unwrap_err().contains("grow beyond"));
    }

    #[test]
    fn a_cancelled_call_applies_nothing_more() {
        let args = json!({});
        let args = Args::read(NAME, &args, &[]).unwrap();
        let stopped = apply("a", &[edit("a", "b")], &args, || Err(crate::tool::ToolFault::Cancelled.into()));
        assert!(stopped.is_err_and(|error| error.is_cancelled()));
    }
}
