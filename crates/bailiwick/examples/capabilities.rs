//! Capabilities: a set that was granted, questions to it, and a tool that is checked against it before it runs.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use bailiwick::{Capability, CapabilitySet, ToolError};

/// A tool with the capabilities that it cannot do without.
struct FileWriter {
    required: Vec<Capability>,
}

impl FileWriter {
    fn execute(&self, input: &[u8]) -> Vec<u8> {
        input.to_ascii_uppercase()
    }
}

fn check_and_execute(
    tool: &FileWriter,
    capabilities: &CapabilitySet,
    input: &[u8],
) -> Result<Vec<u8>, ToolError> {
    for required in &tool.required {
        if !capabilities.has(required) {
            return Err(ToolError::denied(required, "not granted"));
        }
    }
    Ok(tool.execute(input))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let capabilities =
        CapabilitySet::new([Capability::new("fs:read:*"), Capability::new("network:http:get")])?;
    assert!(capabilities.has(Capability::new("fs:read:/tmp/file")));
    assert!(!capabilities.has(Capability::new("fs:write:/tmp/file")));
    assert!(!capabilities.has("nonsense"), "what cannot be read is not granted");
    for line in capabilities.capabilities() {
        println!("granted: {line}");
    }

    let writer = FileWriter { required: vec![Capability::new("fs:write:/tmp")?] };
    let denied = check_and_execute(&writer, &capabilities, b"text").err().ok_or("writing was not granted")?;
    let ToolError::Denied { capability, reason, .. } = denied else { return Err("it is a denial".into()) };
    println!("{capability}: {reason}");
    assert_eq!((capability.as_str(), reason.as_str()), ("fs:write:/tmp", "not granted"));

    let wider = CapabilitySet::new(["fs:read,write:/tmp"])?;
    assert_eq!(check_and_execute(&writer, &wider, b"text")?, b"TEXT");
    Ok(())
}
