//! Arguments that mean the same under the names that different agents give them.
//!
//! A rule names one (`filesystem-read(paths=\.env)`) and is matched on whichever of them a call has. An argument that
//! a call has under the rule's own name comes first, and then only that one counts.

use std::borrow::Cow;

use serde_json::Value;

use crate::patch::patched_files;

/// Names of one argument.
const GROUPS: &[&[&str]] = &[
    PATHS,
    &["command", "cmd"],
    // Gemini CLI writes the address into the prompt of its fetching tool.
    &["url", "urls", "uri", "prompt"],
    &["content", "contents", "file_text", "new_source"],
    &["old_string", "oldString", "old_str"],
    &["new_string", "newString", "new_str"],
    &["pattern", "query", "regex"],
    &["cwd", "workdir", "working_directory", "dir_path", "directory"],
];

/// Names of the files that a call is about.
const PATHS: &[&str] = &[
    "path",
    "paths",
    "file_path",
    "filePath",
    "file_paths",
    "absolute_path",
    "target_file",
    "notebook_path",
    "file",
    "files",
    "filename",
    "dir_path",
    "directory",
    "source",
    "destination",
];

/// Arguments that say where a call runs.
const DIRECTORIES: &[&str] = &["cwd", "workdir", "working_directory", "dir_path", "directory"];

/// Arguments in which a patch arrives.
const PATCHES: &[&str] = &["input", "patch", "command", "patchText"];

/// Every name that means the same as this one, itself included.
pub fn names_like(name: &str) -> impl Iterator<Item = &'static str> + '_ {
    GROUPS.iter().filter(move |group| group.contains(&name)).flat_map(|group| group.iter().copied())
}

/// Whether an argument of this name is a path.
#[must_use]
pub fn is_path(name: &str) -> bool {
    PATHS.contains(&name)
}

/// The texts of an argument: its own, else those of its other names, else one empty text.
#[must_use]
pub fn texts<'v>(params: &'v Value, name: &str) -> Vec<Cow<'v, str>> {
    if let Some(value) = params.get(name) {
        return vec![text(value)];
    }
    let mut found: Vec<Cow<'v, str>> =
        names_like(name).filter_map(|alias| params.get(alias)).map(text).collect();
    if is_path(name) {
        found.extend(patched(params).map(Cow::Borrowed));
    }
    if found.is_empty() {
        found.push(Cow::Borrowed(""));
    }
    found
}

/// The files of every patch among the arguments.
pub fn patched(params: &Value) -> impl Iterator<Item = &str> {
    let patches = PATCHES.iter().filter_map(|patch| params.get(patch)).filter_map(Value::as_str);
    patches.flat_map(patched_files)
}

/// The directory that the call itself says it runs in.
#[must_use]
pub fn directory(params: &Value) -> Option<&str> {
    DIRECTORIES.iter().find_map(|name| params.get(name)).and_then(Value::as_str)
}

fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Cow::Owned(value.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_name_finds_what_any_agent_calls_it() {
        for params in [
            json!({"path": "/p/.env"}),
            json!({"file_path": "/p/.env"}),
            json!({"filePath": "/p/.env"}),
            json!({"paths": ["/p/.env"]}),
            json!({"command": "*** Begin Patch\n*** Update File: /p/.env\n@@\n*** End Patch"}),
        ] {
            assert!(texts(&params, "paths").iter().any(|text| text.contains("/p/.env")), "{params}");
        }
        assert_eq!(texts(&json!({"content": "/p/.env"}), "paths"), [""]);
        assert_eq!(texts(&json!({"paths": "a", "path": "b"}), "paths"), ["a"], "its own name comes first");
    }

    #[test]
    fn a_call_says_where_it_runs() {
        assert_eq!(directory(&json!({"command": "ls", "workdir": "sub"})), Some("sub"));
        assert_eq!(directory(&json!({"command": "ls"})), None);
    }
}
