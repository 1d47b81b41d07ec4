//! A tool cannot keep its context beyond the call.
use bailiwick_guard::{Output, Tool, ToolContext, ToolError};
use serde_json::Value;

struct Hoarder(std::sync::Mutex<Option<&'static ToolContext>>);

impl Tool for Hoarder {
    fn name(&self) -> &str {
        "hoarder"
    }

    fn schema(&self) -> Value {
        Value::Null
    }

    async fn invoke(&self, _: Value, context: &ToolContext) -> Result<Output, ToolError> {
        *self.0.lock().unwrap() = Some(context);
        Ok(Output::default())
    }
}

fn main() {}
