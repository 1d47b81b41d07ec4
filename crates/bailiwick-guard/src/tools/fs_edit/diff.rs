//! What changed between two texts, as a unified diff of bounded cost.
//!
//! Only the stretch between the first and the last change is compared, and of that at most [`WINDOW`] bytes a side: a
//! file of many short lines would otherwise cost many times its size.

use std::fmt::Write as _;
use std::time::Duration;

use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, TextDiff};

/// The longest diff that is shown.
const MAX_DIFF: usize = 64 * 1024;
/// The most of each text that is compared.
const WINDOW: usize = 256 * 1024;
/// How long is spent on making it small.
const DIFF_TIME: Duration = Duration::from_millis(500);
/// Lines that are shown around a change.
const AROUND: usize = 3;

/// The diff, and whether it is less than all of it.
pub(super) fn unified(path: &str, before: &str, after: &str) -> (String, bool) {
    if before == after {
        return (String::new(), false);
    }
    let start = first_line(before, after);
    let (old_end, new_end) = ends(before, after, start);
    let (old, old_cut) = window(before, start, old_end);
    let (new, new_cut) = window(after, start, new_end);
    let lines = before.get(..start).unwrap_or_default().matches('\n').count();
    let path = path.escape_debug();
    let mut text = format!("--- {path}\n+++ {path}\n");
    let mut config = TextDiff::configure();
    let diff = config.timeout(DIFF_TIME).diff_lines(old, new);
    let mut unified = diff.unified_diff();
    unified.context_radius(AROUND);
    let hunks: Vec<_> = unified.iter_hunks().collect();
    // Where the texts were cut they look different, whatever follows there.
    let cut = old_cut || new_cut;
    let shown = if cut && hunks.len() > 1 { hunks.len() - 1 } else { hunks.len() };
    for hunk in hunks.iter().take(shown) {
        let ops: Vec<DiffOp> = hunk.ops().iter().map(|op| moved(*op, lines)).collect();
        let _ = writeln!(text, "{}", UnifiedHunkHeader::new(&ops));
        for change in hunk.iter_changes() {
            let _ = write!(text, "{}{}", change.tag(), change.value());
            if change.missing_newline() {
                text += "\n\\ No newline at end of file\n";
            }
        }
        if text.len() > MAX_DIFF {
            text.truncate(text.floor_char_boundary(MAX_DIFF));
            return (text, true);
        }
    }
    (text, cut)
}

/// Where to begin: some lines before the first change.
fn first_line(before: &str, after: &str) -> usize {
    let same = before.bytes().zip(after.bytes()).take_while(|(old, new)| old == new).count();
    let head = before.as_bytes().get(..same).unwrap_or_default();
    let starts = head.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    starts.chain([0]).take(AROUND + 1).last().unwrap_or(0)
}

/// Where to end in each text: some lines behind the last change.
fn ends(before: &str, after: &str, start: usize) -> (usize, usize) {
    let rest = |text: &str| text.len() - start;
    let most = rest(before).min(rest(after));
    let backwards = before.bytes().rev().zip(after.bytes().rev()).take(most);
    let same = backwards.take_while(|(old, new)| old == new).count();
    let tail = before.as_bytes().get(before.len() - same..).unwrap_or_default();
    let mut line_ends = tail.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let kept = line_ends.nth(AROUND).unwrap_or(same);
    (before.len() - same + kept, after.len() - same + kept)
}

/// A stretch of a text, no longer than is compared, and whether it is less than asked for.
fn window(text: &str, start: usize, end: usize) -> (&str, bool) {
    let stretch = text.get(start..end).unwrap_or_default();
    if stretch.len() <= WINDOW {
        return (stretch, false);
    }
    let most = stretch.get(..stretch.floor_char_boundary(WINDOW)).unwrap_or_default();
    let lines = most.rfind('\n').map_or(most.len(), |at| at + 1);
    (most.get(..lines).unwrap_or(most), true)
}

/// The same step, so many lines further down.
const fn moved(op: DiffOp, lines: usize) -> DiffOp {
    match op {
        DiffOp::Equal { old_index, new_index, len } => {
            DiffOp::Equal { old_index: old_index + lines, new_index: new_index + lines, len }
        }
        DiffOp::Delete { old_index, old_len, new_index } => {
            DiffOp::Delete { old_index: old_index + lines, old_len, new_index: new_index + lines }
        }
        DiffOp::Insert { old_index, new_index, new_len } => {
            DiffOp::Insert { old_index: old_index + lines, new_index: new_index + lines, new_len }
        }
        DiffOp::Replace { old_index, old_len, new_index, new_len } => {
            DiffOp::Replace { old_index: old_index + lines, old_len, new_index: new_index + lines, new_len }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(before: &str, after: &str) -> String {
        let diff = TextDiff::from_lines(before, after);
        diff.unified_diff().context_radius(AROUND).header("f", "f").to_string()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Comparing less than the whole shows the same change, where that is one stretch.
        #[test]
        fn the_stretch_says_what_the_whole_says(
            head in "([a-z]{0,2}\n){0,9}",
            old in "([A-C]\n){0,4}",
            new in "([D-F]\n){0,4}",
            tail in "([a-z]{0,2}\n){0,9}[a-zé]{0,2}",
        ) {
            let (before, after) = (format!("{head}{old}{tail}"), format!("{head}{new}{tail}"));
            prop_assert_eq!(unified("f", &before, &after), (whole(&before, &after), false));
        }
    }

    #[test]
    fn long_texts_are_compared_in_part_and_that_is_said() {
        let before = "a\n".repeat(1 << 20);
        let (diff, truncated) = unified("f", &before, &before.replace('a', "b"));
        assert!(truncated && diff.len() <= MAX_DIFF, "{}", diff.len());
        let changed = format!("{before}c\n");
        let (diff, truncated) = unified("f", &format!("{before}b\n"), &changed);
        assert!(!truncated && diff.contains("@@ -1048574,4 +1048574,4 @@\n a\n a\n a\n-b\n+c\n"), "{diff}");
    }
}
