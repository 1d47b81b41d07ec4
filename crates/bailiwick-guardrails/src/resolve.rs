//! Where a path really leads: symbolic links and `..` followed as the kernel follows them.
//!
//! The part that does not exist yet is kept as it is written. The answer is a snapshot; the code that opens the path
//! must make sure that it still leads there (see `open`).

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use bailiwick_policy::path::AbsPath;

use crate::surroundings::Surroundings;

/// As many links as the kernel follows.
const MAX_LINKS: usize = 40;

/// Why a path cannot be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// Not UTF-8.
    #[error("it is not UTF-8")]
    Encoding,
    /// A zero byte.
    #[error("it contains NUL")]
    Nul,
    /// Too long.
    #[error("it is longer than any path")]
    Length,
    /// Too many links.
    #[error("its links lead in circles")]
    Links,
    /// `~` without a home.
    #[error("`~` has no meaning here")]
    Home,
    /// Another user's home.
    #[error("only `~/` is understood, not another user's home")]
    OtherHome,
}

/// The absolute path that `text` names in this session, before links are followed.
///
/// # Errors
/// Why it cannot be judged.
pub fn absolute(text: &str, session: &Surroundings) -> Result<PathBuf, Unresolved> {
    if text.contains('\0') {
        return Err(Unresolved::Nul);
    }
    if let Some(rest) = text.strip_prefix('~') {
        let home = session.home().ok_or(Unresolved::Home)?;
        return match rest.strip_prefix('/') {
            Some(below) => Ok(home.join(below.trim_start_matches('/'))),
            None if rest.is_empty() => Ok(home.to_owned()),
            None => Err(Unresolved::OtherHome),
        };
    }
    Ok(session.cwd().join(text))
}

/// Follows every link in an absolute path.
///
/// # Errors
/// Why it cannot be judged.
pub fn real(path: &Path) -> Result<AbsPath, Unresolved> {
    let mut todo: VecDeque<OsString> = names(path).collect();
    let mut done = PathBuf::from("/");
    let mut links = 0;
    while let Some(name) = todo.pop_front() {
        if name == ".." {
            done.pop();
            continue;
        }
        let here = done.join(&name);
        match std::fs::read_link(&here) {
            Err(_) => done = here,
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Unresolved::Links);
                }
                if target.is_absolute() {
                    done = PathBuf::from("/");
                }
                names(&target).collect::<Vec<_>>().into_iter().rev().for_each(|name| todo.push_front(name));
            }
        }
        if done.as_os_str().len() + todo.iter().map(|name| name.len() + 1).sum::<usize>() > 4096 {
            return Err(Unresolved::Length);
        }
    }
    let text = done.to_str().ok_or(Unresolved::Encoding)?;
    AbsPath::new(text).map_err(|_| Unresolved::Length)
}

/// The names in a path; `..` stays, `.` and slashes go.
fn names(path: &Path) -> impl Iterator<Item = OsString> + use<> {
    let parts: Vec<OsString> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
        })
        .collect();
    parts.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_and_parents_are_followed_as_the_kernel_does() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("a/b")).unwrap();
        symlink("a/b", base.join("link")).unwrap();
        symlink("/etc", base.join("out")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        let at = |text: &str| real(&base.join(text)).map(|path| path.to_string());
        let inside = |text: &str| base.join(text).to_str().unwrap().to_owned();
        assert_eq!(at("link/x").unwrap(), inside("a/b/x"));
        assert_eq!(at("link/../c").unwrap(), inside("a/c"), "`..` is taken after the link");
        assert_eq!(at("out/passwd").unwrap(), "/etc/passwd");
        assert_eq!(at("new/./deep/../x").unwrap(), inside("new/x"));
        assert_eq!(at("../../../../../../etc").unwrap(), "/etc");
        assert_eq!(at("loop/x"), Err(Unresolved::Links));
    }

    #[test]
    fn names_for_home_are_understood_or_refused() {
        let session = Surroundings::new("/base").with_home("/home/u");
        let read = |text: &str| absolute(text, &session);
        assert_eq!(read("~/x"), Ok("/home/u/x".into()));
        assert_eq!(read("~//x"), Ok("/home/u/x".into()));
        assert_eq!(read("a"), Ok("/base/a".into()));
        assert_eq!(read("/a"), Ok("/a".into()));
        assert_eq!(read("~root/x"), Err(Unresolved::OtherHome));
        assert_eq!(read("a\0b"), Err(Unresolved::Nul));
        assert_eq!(absolute("~", &Surroundings::new("/")), Err(Unresolved::Home));
    }
}
