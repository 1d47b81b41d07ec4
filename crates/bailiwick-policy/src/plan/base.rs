//! What every program needs to start, whatever is granted: data files that targets and sandboxes share.

use std::sync::LazyLock;

/// A place of the host that every sandbox shows, read-only, where the host has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaseEntry {
    /// Its absolute path.
    pub path: &'static str,
    /// What it is for.
    pub kind: BaseKind,
}

/// What a place of the host is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseKind {
    /// Shared objects: mapped as code, never started by name.
    Libraries,
    /// Data: locale, time zones, certificates, terminal descriptions.
    Data,
    /// Programs. A sandbox that can show single programs shows only the granted ones.
    Programs,
}

/// The places of the host that every sandbox shows.
pub static BASE: LazyLock<Vec<BaseEntry>> = LazyLock::new(|| {
    let entry = |line: &'static str| {
        let (kind, path) = line.split_once(' ')?;
        let kind = match kind {
            "libraries" => BaseKind::Libraries,
            "data" => BaseKind::Data,
            "programs" => BaseKind::Programs,
            _ => return None,
        };
        Some(BaseEntry { path, kind })
    };
    lines(include_str!("base.txt")).filter_map(entry).collect()
});

/// Where a program given by name is looked for, in this order. The caller's `PATH` decides nothing.
pub const PROGRAM_DIRECTORIES: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Trees of the host that no grant shows: the sandbox has its own, or none.
pub const MASKED: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];

/// Files that every sandbox has with this content, whatever the host has there.
pub const STUBS: [(&str, &str); 6] = [
    ("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"),
    ("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"),
    ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
    ("/etc/resolv.conf", "nameserver 127.0.0.53\noptions timeout:1 attempts:1\n"),
    ("/etc/machine-id", "00000000000000000000000000000000\n"),
];

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_shows_neither_homes_nor_state_nor_keys() {
        let forbidden = ["/etc", "/root", "/home", "/run", "/var", "/etc/ssl", "/etc/ssl/private", "/proc"];
        assert!(BASE.len() > 10);
        assert_eq!(BASE.len(), lines(include_str!("base.txt")).count(), "every line has a meaning");
        for entry in BASE.iter() {
            assert!(crate::path::AbsPath::new(entry.path).is_ok(), "{}", entry.path);
            for tree in forbidden {
                let shown = std::path::Path::new(tree).starts_with(entry.path);
                assert!(!shown, "{} shows {tree}", entry.path);
            }
        }
    }
}
