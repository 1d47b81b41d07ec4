//! Mounts of the host below a granted tree: ordinary file systems come along, all others stay outside.
//!
//! A tree is mounted with everything below it, because the kernel does not let a user namespace take a mount off a
//! tree and see what is under it. So each mount that must not come along is covered by an empty directory or file.
//!
//! Fails closed when: the host's mounts cannot be read, a file system is not known.
//! Residual: what root mounts on the host between this look and the start of the sandbox comes along.

use std::path::{Path, PathBuf};

use bailiwick_policy::plan::{MASKED, Plan};

use crate::grants::to_path;
use crate::layout::lies_in;
use crate::refusal::Refusal;
use crate::weakened;

/// The file systems that hold ordinary files. Those of the kernel's own (proc, sysfs, cgroup, debugfs, bpf, devtmpfs,
/// devpts, mqueue …), automounts and everything unknown are not among them.
const ORDINARY: [&str; 42] = [
    "9p", "affs", "afs", "apfs", "bcachefs", "btrfs", "ceph", "cifs", "coda", "ecryptfs", "erofs", "exfat",
    "ext2", "ext3", "ext4", "f2fs", "fuse", "fuseblk", "gfs2", "hfs", "hfsplus", "iso9660", "jffs2", "jfs",
    "lustre", "msdos", "nfs", "nfs4", "nilfs2", "ntfs", "ntfs3", "ocfs2", "overlay", "smb3", "squashfs",
    "tmpfs", "ubifs", "udf", "vfat", "virtiofs", "xfs", "zfs",
];

/// The host's mounts: where each is, and whether its file system is an ordinary one. In the order they were made.
#[derive(Debug)]
pub struct Mounts(Vec<SubMount>);

#[derive(Debug)]
struct SubMount {
    at: PathBuf,
    kind: String,
}

impl Mounts {
    /// Reads the host's mounts.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn read() -> std::io::Result<Self> {
        let text = std::fs::read("/proc/thread-self/mountinfo")?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &[u8]) -> Self {
        let entry = |line: &[u8]| {
            let mut fields = line.split(|byte| *byte == b' ');
            let at = fields.nth(4)?;
            let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
            Some(SubMount { at: unescaped(at), kind: String::from_utf8_lossy(kind).into_owned() })
        };
        Self(text.split(|byte| *byte == b'\n').filter_map(entry).collect())
    }

    /// The file system that a path lies on, if it is no ordinary one.
    pub fn odd_around(&self, path: &Path) -> Option<&str> {
        let around = self.0.iter().filter(|mount| lies_in(path, &mount.at));
        // Of two mounts at one place the later one is seen.
        let last = around.max_by_key(|mount| mount.at.as_os_str().len())?;
        (!last.is_ordinary()).then_some(last.kind.as_str())
    }

    /// The mounts below a path that must not come along with it, outermost first.
    pub fn odd_below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = (&'a Path, &'a str)> {
        let below = self.0.iter().filter(move |mount| mount.at != path && lies_in(&mount.at, path));
        below.filter(|mount| !mount.is_ordinary()).map(|mount| (mount.at.as_path(), mount.kind.as_str()))
    }
}

impl SubMount {
    fn is_ordinary(&self) -> bool {
        let kind = if self.kind.starts_with("fuse.") { "fuse" } else { self.kind.as_str() };
        ORDINARY.contains(&kind)
    }
}

/// A path as mountinfo writes it: space, tab, newline and backslash as three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| *first == b'\\') {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    std::ffi::OsString::from_vec(bytes).into()
}

/// Refuses a granted tree with a file system of the kernel's own in it: other backends mount a tree with everything below
/// it, and Landlock's rules reach through mounts. As root, a proc there can name a program that the host runs.
///
/// # Errors
/// The mount, and what to do about it.
pub fn refuse_odd_mounts(plan: &Plan, backend: &str) -> Result<(), Refusal> {
    if plan.files().is_empty() || weakened::SUBMOUNTS {
        return Ok(());
    }
    let mounts = Mounts::read()
        .map_err(|fault| unusable(backend, &format!("cannot see mounts: {fault}"), "mount /proc"))?;
    for grant in plan.files() {
        let source = to_path(&grant.source);
        let around = mounts.odd_around(&source).map(|kind| (source.as_path(), kind));
        let mut all = around.into_iter().chain(mounts.odd_below(&source));
        // What is masked is never shown, whatever is granted.
        let odd = all.find(|(at, _)| !MASKED.iter().any(|masked| at.starts_with(masked)));
        if let Some((at, kind)) = odd {
            let why = format!("`{}` is a mount of {kind} and lies in `{}`", at.display(), grant.path());
            return Err(unusable(backend, &why, "grant a narrower directory, or use the native sandbox"));
        }
    }
    Ok(())
}

fn unusable(backend: &str, why: &str, fix: &str) -> Refusal {
    Refusal::Unusable { backend: backend.to_owned(), why: why.to_owned(), fix: fix.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
        30 22 0:4 / /srv/w/proc rw - proc proc rw\n\
        31 22 0:5 / /srv/w/a\\040b rw,nosuid master:2 - tmpfs tmpfs rw\n\
        32 22 0:6 / /srv/w/new rw - shinyfs none rw\n\
        33 22 0:7 / /srv/w/home rw - fuse.sshfs u@h: rw\n\
        34 22 0:8 / /srv/other rw - sysfs sysfs rw\n";

    #[test]
    fn only_ordinary_file_systems_come_along() {
        let mounts = Mounts::parse(TEXT.as_bytes());
        let odd: Vec<_> = mounts.odd_below(Path::new("/srv/w")).map(|(at, _)| at.to_owned()).collect();
        assert_eq!(odd, ["/srv/w/proc", "/srv/w/new"].map(PathBuf::from));
        assert_eq!(mounts.odd_around(Path::new("/srv/w/proc/sys")), Some("proc"));
        assert_eq!(mounts.odd_around(Path::new("/srv/w/a b/x")), None);
        assert_eq!(mounts.odd_around(Path::new("/srv/w/home/x")), None);
        assert_eq!(mounts.odd_around(Path::new("/srv/w")), None);
        assert_eq!(mounts.odd_below(Path::new("/srv/w/proc")).count(), 0);
    }

    #[test]
    fn the_host_has_a_root() {
        assert!(Mounts::read().unwrap().0.iter().any(|mount| mount.at == Path::new("/")));
    }
}
