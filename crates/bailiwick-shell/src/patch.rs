//! The files that a patch changes, by the lines that name them.

/// What stands before a file's name in a patch; longer marks first.
const MARKS: &[&str] = &[
    "*** Update File: ",
    "*** Add File: ",
    "*** Delete File: ",
    "*** Move to: ",
    "+++ b/",
    "--- a/",
    "+++ ",
    "--- ",
];

/// The file that one line of a patch names.
#[must_use]
pub fn patched_file(line: &str) -> Option<&str> {
    MARKS.iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim)
}

/// Every file that a patch names.
pub fn patched_files(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(patched_file)
}
