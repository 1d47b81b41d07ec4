//! What peers send is not read by derived readers alone: those take a list for the fields of an object.

use super::{assert_none, repo};

/// Where messages of peers are read.
const READERS: [&str; 4] = [
    "crates/bailiwick-mcp/src/relay",
    "crates/bailiwick-mcp/src/stdio",
    "crates/bailiwick-mcp/src/http",
    "crates/bailiwick-remote/src",
];

/// Files with derived readers, and what stands before each use of one.
const GUARDED: [(&str, &str); 3] = [
    ("crates/bailiwick-mcp/src/stdio/message.rs", "strip_prefix(b\"{\")?"),
    ("crates/bailiwick-remote/src/oauth.rs", "starts_with(b\"{\")"),
    ("crates/bailiwick-remote/src/token_file.rs", "of the user's alone"), // our own file
];

#[test]
fn what_peers_send_is_read_as_objects() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for file in READERS.iter().flat_map(|dir| repo::files_below(&repo::root().join(dir))) {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let path = repo::relative(&file);
        let derived =
            text.lines().filter(|line| line.contains("derive(") && line.contains("Deserialize")).count();
        if derived == 0 {
            continue;
        }
        seen += 1;
        match GUARDED.iter().find(|(guarded, _)| *guarded == path) {
            Some((_, guard)) if text.contains(guard) => {}
            Some(_) | None => wrong.push(format!("{path}: {derived} derived readers")),
        }
    }
    assert_eq!(seen, GUARDED.len(), "the list of guarded files is out of date");
    assert_none("a derived reader takes a list for an object: read it as `from_peer` does", &wrong);
    let oauth = std::fs::read_to_string(repo::root().join(GUARDED[1].0)).unwrap();
    assert_eq!(oauth.matches("from_slice").count(), 1, "documents are read by `document` alone");
}
