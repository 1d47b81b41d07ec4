//! A tool of one's own: it counts the words of a file, and sees only files that were granted.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::io::Read;

use bailiwick::{Caveats, Output, Scope, Session, Tool, ToolContext, ToolError};
use serde_json::{Value, json};

struct WordCount;

impl Tool for WordCount {
    fn name(&self) -> &str {
        "word_count"
    }

    fn description(&self) -> &str {
        "Count the words of a text file."
    }

    fn schema(&self) -> Value {
        json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] })
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
        let path = args.get("path").and_then(Value::as_str).unwrap_or_default();
        let mut text = String::new();
        let mut file = context.open_read(path)?;
        file.read_to_string(&mut text).map_err(|error| ToolError::failed(error.to_string()))?;
        Ok(json!({ "words": text.split_whitespace().count() }).into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let temp = tempfile::tempdir()?;
    let notes = temp.path().canonicalize()?.join("notes");
    std::fs::create_dir(&notes)?;
    std::fs::write(notes.join("a.txt"), "three little words")?;

    let registry =
        bailiwick::builder_in(&temp.path().join("state"), Session::new("/"))?.tool(WordCount).build()?;
    let grant = registry.mint_grant(&Caveats {
        fs_read: Scope::only([notes.display().to_string()]),
        valid_for_generation: Scope::All,
        max_calls: bailiwick::CountBound::AtMost(10),
        ..Caveats::bottom()
    })?;

    let counted = registry.dispatch("word_count", json!({ "path": notes.join("a.txt") }), &grant).await?;
    println!("counted: {counted}");
    assert_eq!(counted, json!({ "words": 3 }));

    let denied = registry.dispatch("word_count", json!({ "path": "/etc/passwd" }), &grant).await;
    let denied = denied.err().ok_or("nothing else may be read")?;
    println!("refused: {denied}");
    assert_eq!(denied.code(), "read-not-granted");
    Ok(())
}
