//! `bailiwick purge`: what Bailiwick keeps, and its entries in the settings of others, removed.
//!
//! Entries go first, because what undoes them is part of the state. Fails closed when: one of them cannot be taken out, a
//! wrapped server still runs, or a directory is a link. Nothing is removed then.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::render::{escape, style};
use bailiwick_command::{facts, running, terminal};

use super::install::undo_all;
use crate::args::purge::Purge;

pub(super) fn run(args: &Purge) -> anyhow::Result<Answer> {
    let servers = running::all()?;
    if let Some(server) = servers.first() {
        let why = format!(
            "the wrapped server `{}` runs, held by process {}; end its client first (`bailiwick ps` lists them all)",
            server.name, server.pid
        );
        return Ok(refused(Exit::Found, &why));
    }
    let places: Vec<Place> =
        places().into_iter().filter(|place| place.path.symlink_metadata().is_ok()).collect();
    if let Some(link) = places.iter().find(|place| place.path.is_symlink()) {
        let why = format!("`{}` is a link; remove what it leads to by hand", link.path.display());
        return Ok(refused(Exit::Found, &why));
    }
    let entries = match undo_all(true)? {
        Ok(shown) => shown,
        Err(complaint) => return Ok(Answer::refusal(Exit::Invalid, complaint)),
    };
    let plan = plan(&entries, &places);
    if args.dry_run || places.is_empty() {
        return Ok(Answer::result(Exit::Fine, plan));
    }
    if !args.yes {
        terminal::remark(&plan);
        if terminal::confirm("Remove all of this for good?")? != Some(true) {
            return Ok(refused(Exit::Found, "not confirmed: confirm at a terminal, or say --yes"));
        }
    }
    if let Err(complaint) = undo_all(false)? {
        return Ok(Answer::refusal(Exit::Invalid, complaint));
    }
    let mut text = plan;
    for place in &places {
        let shown = place.path.display();
        fs::remove_dir_all(&place.path).with_context(|| format!("cannot remove `{shown}`"))?;
        let _ = writeln!(text, "{}: removed {}", style::good("ok"), escape::line(&shown.to_string()));
    }
    Ok(Answer::result(Exit::Fine, text))
}

/// A directory of ours.
struct Place {
    path: PathBuf,
    what: &'static str,
}

/// The state comes last: it has what undoes the rest.
fn places() -> Vec<Place> {
    let cached = |name: &str| facts::cache_dir().map(|cache| cache.join(name));
    let all = [
        (cached("store"), "packages of servers"),
        (cached("scan"), "results of scans"),
        (facts::state_dir(), "the state: journal, keys, pins, trust, approvals"),
    ];
    all.into_iter().filter_map(|(path, what)| Some(Place { path: path?, what })).collect()
}

fn plan(entries: &str, places: &[Place]) -> String {
    let mut text = entries.to_owned();
    for Place { path, what } in places {
        let (files, bytes) = size(path);
        let size = format!("{}, {} KiB", style::count(files, "file", "files"), bytes.div_ceil(1024));
        let _ = writeln!(text, "{}  {what} ({size})", escape::line(&path.display().to_string()));
    }
    if text.is_empty() {
        text += "nothing is kept here\n";
    }
    if let Some(kept) = facts::settings_file().as_deref().and_then(Path::parent).filter(|kept| kept.exists())
    {
        let _ = writeln!(text, "{}  stays: it is yours", escape::line(&kept.display().to_string()));
    }
    text
}

/// How many files a directory has, and their bytes. No link is followed.
fn size(dir: &Path) -> (usize, u64) {
    let mut todo = vec![dir.to_owned()];
    let (mut files, mut bytes) = (0, 0);
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => todo.push(entry.path()),
                Ok(found) => (files, bytes) = (files + 1, bytes + found.len()),
                Err(_) => {}
            }
        }
    }
    (files, bytes)
}
