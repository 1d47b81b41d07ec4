//! What differs between two texts, as a person reads it: lines taken away and added, each group behind the line
//! that it follows. Lines have no numbers: a change far above leaves a group as it is.
//!
//! Nothing is lost: [`apply`] gives back every byte, and fails where a group does not fit.

const START: &str = "@@ at the start";
const AFTER: &str = "@@ after";

/// How one text becomes another, line by line; empty if they are the same.
pub(super) fn between(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let mut text = String::new();
    let (mut old_at, mut new_at, mut group_end) = (0, 0, 0);
    for (old_kept, new_kept) in kept(&old, &new).into_iter().chain([(old.len(), new.len())]) {
        if (old_at, new_at) != (old_kept, new_kept) {
            text += &header(&old, group_end, old_at);
            text.extend(old[old_at..old_kept].iter().map(|line| format!("-{line}\n")));
            text.extend(new[new_at..new_kept].iter().map(|line| format!("+{line}\n")));
            group_end = old_kept;
        }
        (old_at, new_at) = (old_kept + 1, new_kept + 1);
    }
    text
}

/// The text that `diff` makes of `old`.
pub(super) fn apply(old: &str, diff: &str) -> Result<String, String> {
    let old: Vec<&str> = old.split('\n').collect();
    let (mut new, mut old_at) = (Vec::new(), 0);
    for line in diff.strip_suffix('\n').into_iter().flat_map(|lines| lines.split('\n')) {
        if let Some(added) = line.strip_prefix('+') {
            new.push(added);
        } else if let Some(removed) = line.strip_prefix('-') {
            if old.get(old_at) != Some(&removed) {
                return Err(format!("`{removed}` is not there to be taken away"));
            }
            old_at += 1;
        } else if line != START {
            let anchor = anchor(&old, old_at, line).ok_or_else(|| format!("nothing fits `{line}`"))?;
            new.extend(&old[old_at..=anchor]);
            old_at = anchor + 1;
        }
    }
    new.extend(&old[old_at..]);
    Ok(new.join("\n"))
}

/// Names the line before a group: the first of its text behind the last group, or the `count`th.
fn header(old: &[&str], group_end: usize, at: usize) -> String {
    let Some(line) = at.checked_sub(1).map(|before| old[before]) else { return format!("{START}\n") };
    let count = old[group_end..at].iter().filter(|own| **own == line).count();
    if count == 1 { format!("{AFTER}: {line}\n") } else { format!("{AFTER} {count}: {line}\n") }
}

/// The place that a header names.
fn anchor(old: &[&str], from: usize, header: &str) -> Option<usize> {
    let (count, line) = header.strip_prefix(AFTER)?.split_once(": ")?;
    let skipped = if count.is_empty() { 0 } else { count.trim().parse::<usize>().ok()?.checked_sub(1)? };
    let same = old.iter().enumerate().skip(from).filter(|(_, own)| **own == line);
    same.map(|(place, _)| place).nth(skipped)
}

/// The places of a longest list of lines that both texts have in the same order.
fn kept(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let shorter = old.len().min(new.len());
    let front = (0..shorter).take_while(|at| old[*at] == new[*at]).count();
    let same_back = |at: &usize| old[old.len() - 1 - at] == new[new.len() - 1 - at];
    let back = (0..shorter - front).take_while(same_back).count();
    let (old_mid, new_mid) = (&old[front..old.len() - back], &new[front..new.len() - back]);
    // longest[i][j] is how many lines of old_mid[i..] and new_mid[j..] can be kept
    let mut longest = vec![vec![0_u32; new_mid.len() + 1]; old_mid.len() + 1];
    for i in (0..old_mid.len()).rev() {
        for j in (0..new_mid.len()).rev() {
            longest[i][j] = if old_mid[i] == new_mid[j] {
                longest[i + 1][j + 1] + 1
            } else {
                longest[i + 1][j].max(longest[i][j + 1])
            };
        }
    }
    let mut kept: Vec<(usize, usize)> = (0..front).map(|at| (at, at)).collect();
    let (mut i, mut j) = (0, 0);
    while i < old_mid.len() && j < new_mid.len() {
        if old_mid[i] == new_mid[j] {
            kept.push((front + i, front + j));
            (i, j) = (i + 1, j + 1);
        } else if longest[i + 1][j] >= longest[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    kept.extend((0..back).rev().map(|at| (old.len() - 1 - at, new.len() - 1 - at)));
    kept
}

#[test]
fn a_difference_gives_back_every_byte() {
    let texts =
        ["", "\n", "a", "a\n", "a\nb\n", "b\na\nb\n", "a\na\na\nb\na\n", "+\n-\n@@ after: x\n", "a\r\n\n\nb"];
    for old in texts {
        for new in texts {
            let diff = between(old, new);
            assert_eq!(apply(old, &diff).as_deref(), Ok(new), "{old:?} {diff}");
            assert_eq!(diff.is_empty(), old == new);
        }
    }
}

#[test]
fn a_difference_that_does_not_fit_is_an_error() {
    let diff = between("a\nb\nc\n", "a\nc\n");
    assert_eq!(diff, "@@ after: a\n-b\n");
    for other in ["a\nx\nc\n", "b\nc\n", "a"] {
        assert!(apply(other, &diff).is_err(), "{other:?}");
    }
}
