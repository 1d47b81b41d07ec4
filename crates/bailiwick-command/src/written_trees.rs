//! What a program wrote to its copy-on-write layer: listed, and carried over to the host.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bailiwick_launch::{LaunchError, Layer, Refusal, Step, Written};
use bailiwick_layer::{Change, EntryKind, WrittenTree, changes, commit};

use crate::render::{escape, style};
use crate::{facts, terminal};

/// The most changes that are listed.
const MOST_LISTED: usize = 1_000;

/// What to say where the kernel refuses a layer.
pub fn without_layer(error: &LaunchError) -> &'static str {
    let LaunchError::Refused(Refusal::Fault(fault)) = error else { return "" };
    if fault.step != Step::Copy {
        return "";
    }
    "the kernel refuses an overlay there (Linux 6.6 or newer has one for plain users), and a copy needs a directory that its user can \
     read, with at most 100,000 entries and 1 GiB or what `--memory` says; grant a smaller directory\n"
}

/// What was written, opened tree by tree.
pub fn trees(layer: Layer) -> anyhow::Result<Vec<WrittenTree>> {
    let Layer { trees, store, since } = layer;
    let store = store.context("the layer is not there")?;
    let open = |tree: bailiwick_launch::LayeredTree| {
        let written = tree.written(&store);
        let written =
            written.with_context(|| format!("cannot open what was written to `{}`", tree.path.display()))?;
        let (upper, is_copy) = match written {
            Written::Over(upper) => (upper, false),
            Written::Copy(copy) => {
                terminal::remark(&format!(
                    "{}: the kernel refuses an overlay over `{}`, so a scratch copy took its place\n",
                    style::warning("note"),
                    escape::line(&tree.path.display().to_string())
                ));
                (copy, true)
            }
        };
        Ok(WrittenTree { path: tree.path, lower: tree.lower, upper, is_copy, since })
    };
    trees.into_iter().map(open).collect()
}

/// Lists all changes on stderr. How many there are.
pub fn list(trees: &[WrittenTree]) -> anyhow::Result<usize> {
    let mut count = 0;
    for tree in trees {
        for change in changes(tree)? {
            count += 1;
            if count <= MOST_LISTED {
                terminal::remark(&line(&change));
            }
        }
    }
    if count > MOST_LISTED {
        terminal::remark(&format!("... and {} more\n", count - MOST_LISTED));
    }
    Ok(count)
}

fn line(change: &Change) -> String {
    let end = if change.entry == EntryKind::Directory { "/" } else { "" };
    let conflict = if change.is_conflict { "  (the host changed it meanwhile)" } else { "" };
    let path = change.path.display().to_string();
    format!("{} {}{end}{conflict}\n", change.kind.letter(), escape::line(&path))
}

/// Carries the changes over to the host; `named` are names that run code later and were granted by name.
pub fn carry_over(trees: &[WrittenTree], named: &[PathBuf]) -> anyhow::Result<usize> {
    let is_named = |path: &Path| named.iter().any(|own| path == own);
    Ok(commit(trees, facts::home().as_deref(), is_named)?)
}
