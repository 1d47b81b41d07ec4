//! A settings file that changes while its agent runs: the agent keeps what it has loaded if we say so.
//!
//! Refused is a file that `install` wrote our hooks into and that no longer calls them, and any file that switches all
//! hooks off. A file that cannot be read is refused too.

use std::path::Path;

use anyhow::Context as _;
use bailiwick_clients::hooks::Agent;
use bailiwick_command::installed::was_installed;

/// Why a changed file is not to be loaded, if it is not.
pub(super) fn refusal(agent: &Agent, path: Option<&str>) -> anyhow::Result<Option<String>> {
    let Some(path) = path else { return Ok(None) };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read `{path}`")),
    };
    let installed = was_installed(Path::new(path))?;
    let off = serde_json::from_str::<serde_json::Value>(&text)
        .is_ok_and(|value| value.get("disableAllHooks").and_then(serde_json::Value::as_bool) == Some(true));
    Ok(if off {
        Some(format!("[guardrail] `{path}` switches all hooks off; a person does that before the session"))
    } else if installed && !agent.is_called_by(&text) {
        Some(format!(
            "[guardrail] `{path}` no longer calls `bailiwick hook`; a person takes hooks out with `bailiwick install --hooks --undo`"
        ))
    } else {
        None
    })
}
