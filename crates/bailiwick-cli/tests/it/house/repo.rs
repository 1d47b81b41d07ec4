//! Where the repository is, what is in it, and what cargo says about it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The root of the checkout.
pub(super) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate sits two levels below the root").to_path_buf()
}

/// `path` below the root, with forward slashes, for messages and for comparison.
pub(super) fn relative(path: &Path) -> String {
    let root = root();
    path.strip_prefix(&root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// Every file below `dir`, sorted; nothing when `dir` does not exist.
pub(super) fn files_below(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// The directories of the workspace's crates, sorted.
pub(super) fn crate_dirs() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("crates")).expect("the workspace has a `crates` directory");
    let mut dirs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    dirs.retain(|dir| dir.join("Cargo.toml").is_file());
    dirs.sort();
    dirs
}

/// The files git knows or would offer to add; an error says why git could not tell.
pub(super) fn tracked() -> Result<Vec<PathBuf>, String> {
    let root = root();
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .map_err(|fault| format!("git does not start: {fault}"))?;
    if !listing.status.success() {
        return Err(format!("not a git checkout: {}", String::from_utf8_lossy(&listing.stderr).trim()));
    }
    let names = String::from_utf8(listing.stdout).expect("file names are UTF-8");
    // A path may be in the index and already deleted from disk.
    Ok(names.split_terminator('\0').map(|name| root.join(name)).filter(|path| path.is_file()).collect())
}

/// Everything cargo knows about the workspace and its dependencies, on all platforms.
pub(super) fn metadata() -> Value {
    let text = cargo(&["metadata", "--format-version", "1", "--locked"]);
    serde_json::from_str(&text).expect("cargo metadata is JSON")
}

/// Runs cargo at the root without touching the network, and with it only if that failed: crates for other
/// platforms need not have been downloaded yet.
pub(super) fn cargo(args: &[&str]) -> String {
    run_cargo(args, &["--offline"])
        .or_else(|_| run_cargo(args, &[]))
        .unwrap_or_else(|fault| panic!("{fault}"))
}

fn run_cargo(args: &[&str], more: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO"))
        .args(args)
        .args(more)
        .current_dir(root())
        .output()
        .map_err(|fault| format!("cargo does not start: {fault}"))?;
    if !output.status.success() {
        return Err(format!("cargo {} failed:\n{}", args.join(" "), String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8(output.stdout).expect("cargo prints UTF-8"))
}
