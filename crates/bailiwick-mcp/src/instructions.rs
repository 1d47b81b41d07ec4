//! What a session may do, for the model that uses it.

use bailiwick_guard::Grant;

/// The most lines of a grant that are told; the rest is counted.
const MAX_LINES: usize = 40;

/// The text that opens a session.
#[must_use]
pub fn instructions(grant: &Grant, guidance: Option<&str>) -> String {
    let mut text = String::from(
        "Every tool here is held to what this session was granted, by a gate, a sandbox and a network allowlist. ",
    );
    let lines = grant.authority().capabilities();
    let lines = lines.map(|lines| lines.iter().map(ToString::to_string).collect::<Vec<_>>());
    match lines.as_deref() {
        Some([]) => text += "Nothing is granted.\n",
        None => text += "The grant is more than a list of capabilities can say.\n",
        Some(lines) => {
            text += "It may:\n";
            lines.iter().take(MAX_LINES).for_each(|line| text += &format!("- {line}\n"));
            if lines.len() > MAX_LINES {
                text += &format!("- and {} more\n", lines.len() - MAX_LINES);
            }
        }
    }
    if let Some(calls) = grant.calls_left() {
        text += &format!("At most {calls} calls.\n");
    }
    text += "A denied call says which grant is missing; only a person can add it, and going around it will not work.";
    if let Some(guidance) = guidance {
        text += &format!("\n{guidance}");
    }
    text
}
