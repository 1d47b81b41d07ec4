//! What is said of files that a command wrote in directories of the sandbox's own: `/tmp` and the home.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bailiwick_launch::LostFiles;
use bailiwick_policy::plan::Plan;

use super::hint::is_visible;

/// Before a run: the first argument that names something in a directory that is gone afterwards.
pub(super) fn foretold(command: &[OsString], home: Option<&Path>, plan: &Plan) -> Option<String> {
    let is_private = |path: &&Path| {
        let below = |place: &Path| path.starts_with(place) && *path != place;
        below(Path::new("/tmp")) || home.is_some_and(below)
    };
    let paths = command.iter().skip(1).map(Path::new).filter(is_private);
    let path = paths.into_iter().find(|path| !is_visible(plan, path))?;
    Some(format!(
        "`{}` lies in a directory of the sandbox's own, which is empty at first and gone at the end",
        path.display()
    ))
}

/// After a run: how many files are gone, the first names, and what would keep them.
pub(super) fn told(lost: &LostFiles, home: Option<&Path>) -> Option<String> {
    told_with(lost, home, "--cap ")
}

/// The same of a server, whose manifest has the lines.
pub(in crate::commands) fn told_of_server(lost: &LostFiles, home: Option<&Path>) -> Option<String> {
    told_with(lost, home, "the line ")
}

fn told_with(lost: &LostFiles, home: Option<&Path>, lead: &str) -> Option<String> {
    if lost.count == 0 {
        return None;
    }
    let names: Vec<String> = lost.first.iter().map(|path| format!("`{}`", path.display())).collect();
    let rest = lost.count - lost.first.len();
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let least = if lost.is_partial { "at least " } else { "" };
    let files = if lost.count == 1 { "file is" } else { "files are" };
    let keep = keeping(lost, home, lead);
    Some(format!(
        "{least}{} {files} gone with the sandbox's own directories: {}{more}; {keep}",
        lost.count,
        names.join(", ")
    ))
}

/// The lines that would keep the named files.
fn keeping(lost: &LostFiles, home: Option<&Path>, lead: &str) -> String {
    let places = [Some(Path::new("/tmp")), home];
    let top = |path: &PathBuf| {
        // A home may lie in the temporary directory: the inner one counts.
        let around = places.iter().flatten().filter(|place| path.starts_with(place));
        let place = around.max_by_key(|place| place.as_os_str().len())?;
        let parts: Vec<_> = path.strip_prefix(place).ok()?.components().collect();
        (parts.len() > 1).then(|| parts.first().map(|first| place.join(first))).flatten()
    };
    let directories: BTreeSet<PathBuf> = lost.first.iter().filter_map(top).collect();
    let lines: Vec<String> = directories.iter().map(|directory| keeping_line(directory, lead)).collect();
    if lines.is_empty() {
        return "write into a directory that is granted to keep them".to_owned();
    }
    format!("to keep them: {}", lines.join(", "))
}

fn keeping_line(directory: &Path, lead: &str) -> String {
    let shown = directory.display();
    let first = if directory.is_dir() { String::new() } else { format!("`mkdir -p {shown}` and ") };
    format!("{first}{lead}fs:read,write:{shown}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(count: usize, first: &[&str]) -> LostFiles {
        LostFiles { count, is_partial: false, first: first.iter().map(PathBuf::from).collect() }
    }

    #[test]
    fn the_first_names_and_the_lines_that_would_keep_them() {
        let home = Some(Path::new("/srv/anna"));
        assert_eq!(told(&lost(0, &[]), home), None);
        let text = told(&lost(4, &["/tmp/a", "/srv/anna/.npm/b/c", "/srv/anna/d"]), home).unwrap();
        assert!(
            text.starts_with("4 files are gone with the sandbox's own directories: `/tmp/a`, "),
            "{text}"
        );
        assert!(
            text.contains(
                "and 1 more; to keep them: `mkdir -p /srv/anna/.npm` and --cap fs:read,write:/srv/anna/.npm"
            ),
            "{text}"
        );
        assert!(text.ends_with(".npm"), "{text}");
        let inner = Some(Path::new("/tmp/anna"));
        let text = told(&lost(1, &["/tmp/anna/b/c"]), inner).unwrap();
        assert!(text.ends_with("--cap fs:read,write:/tmp/anna/b"), "{text}");
        let text = told(&lost(1, &["/tmp/a"]), home).unwrap();
        assert!(text.contains("1 file is gone") && text.contains("a directory that is granted"), "{text}");
    }
}
