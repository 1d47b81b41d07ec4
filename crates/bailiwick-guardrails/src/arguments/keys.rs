//! Which argument names mean a path.

/// Last words of names that mean a path: `file`, `repo_path`, `outputDir`.
const WORDS: &[&str] = &[
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filenames",
    "filepath",
    "filepaths",
    "dir",
    "dirs",
    "directory",
    "directories",
    "dirname",
    "folder",
    "folders",
    "cwd",
    "workdir",
    "uri",
    "uris",
    "root",
    "roots",
    "pathname",
];

/// Whether the last word of `key` means a path.
pub fn names_a_path(key: &str) -> bool {
    let last = last_word(key).to_ascii_lowercase();
    WORDS.contains(&&*last)
}

/// The last word of `snake_case`, `kebab-case`, `camelCase` or `PascalCase`.
pub(super) fn last_word(key: &str) -> &str {
    let key = key.rsplit(['_', '-', '.', ' ', '[', ']']).find(|part| !part.is_empty()).unwrap_or(key);
    let mut start = 0;
    let mut before_is_lower = false;
    for (at, c) in key.char_indices() {
        if c.is_uppercase() && before_is_lower {
            start = at;
        }
        before_is_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    key.get(start..).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::names_a_path;

    #[test]
    fn names_are_read_by_their_last_word() {
        for key in [
            "path",
            "Path",
            "repo_path",
            "outputDir",
            "cwd",
            "FILE",
            "source-file",
            "filePath",
            "uri",
            "roots[]",
        ] {
            assert!(names_a_path(key), "{key}");
        }
        for key in ["text", "profile", "pathology", "file_count", "message", "direction", "query", "url"] {
            assert!(!names_a_path(key), "{key}");
        }
    }
}
