//! A case of the corpus: tool trait.
use bailiwick::{CapabilitySet, Required, Tool, ToolContext, ToolError};
use serde_json::Value;

pub struct Notes;

impl Tool for Notes {
    fn name(&self) -> &str {
        "notes"
    }

    fn schema(&self) -> Value {
        Value::Null
    }

    fn required(&self) -> Required {
        Required::demand_lines(["fs:read:/srv/notes/**"]).unwrap()
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Value, ToolError> {
        let path = args["path"].as_str().unwrap_or_default();
        let _file = context.open_read(path)?;
        std::fs::write("/srv/log/notes.log", path).ok();
        Ok(Value::Null)
    }
}
