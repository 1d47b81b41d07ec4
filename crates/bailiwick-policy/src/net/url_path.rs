//! The path of an HTTP request, as rules judge it.
//!
//! Servers normalise paths in different ways: some cut parameters after `;`, some decode twice, some take `\` for `/`,
//! some drop trailing dots and spaces, some merge slashes, some do nothing of this. A rule for some paths can judge only
//! a path that all of them read alike. So there is one form: every character is written in the one way that RFC 3986
//! has for it (plainly if it may stand plainly, else as an escape in capitals), and no character is one that a server
//! may read as structure. Every other path is *ambiguous* and is allowed only by rules for every path.
//!
//! Residual: letters are compared exactly. A server that ignores case, or takes letters of other scripts for similar
//! ones, may tell fewer names apart than a glob such as `[!A]*` does; it never reads more or other components.

use std::fmt;

use super::http::percent_decoded;
use crate::path::{AbsPath, PathPattern};

/// The most characters of an ambiguous path that are shown.
const MAX_SHOWN: usize = 200;

/// What may stand plainly in a component beside letters and digits: RFC 3986's `pchar`, without `;` and `%`.
const PLAIN: &[u8] = b"-._~!$&'()*+,=:@";

const EMPTY: &str = "it has an empty component";

/// The path of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlPath {
    /// Every server reads it alike: the decoded path.
    Clear(AbsPath),
    /// Servers may read it in more than one way.
    Ambiguous {
        /// The path as it was sent, shortened and safe to show.
        sent: Box<str>,
        /// What is ambiguous about it.
        why: &'static str,
    },
}

impl UrlPath {
    /// The path of a request target, which has no scheme and no authority. The query is not judged.
    #[must_use]
    pub fn of_target(target: &str) -> Self {
        let path = target.split('?').next().unwrap_or_default();
        let path = if path.is_empty() { "/" } else { path };
        clear_path(path).map_or_else(|why| Self::ambiguous(path, why), Self::Clear)
    }

    /// A path that is ambiguous for this reason.
    #[must_use]
    pub fn ambiguous(sent: &str, why: &'static str) -> Self {
        let shown: String = sent.chars().take(MAX_SHOWN).flat_map(char::escape_debug).collect();
        Self::Ambiguous { sent: shown.into(), why }
    }

    /// Whether a rule for the paths of `pattern` allows it.
    #[must_use]
    pub fn is_covered_by(&self, pattern: &PathPattern) -> bool {
        match self {
            Self::Clear(path) => pattern.covers(path),
            Self::Ambiguous { .. } => pattern.is_everything(),
        }
    }
}

impl fmt::Display for UrlPath {
    /// The path and, if it is ambiguous, why.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clear(path) => write!(f, "{path}"),
            Self::Ambiguous { sent, why } => {
                write!(f, "{sent} (a rule for some paths cannot judge it: {why})")
            }
        }
    }
}

/// The decoded path, if all servers read it alike; else what is ambiguous.
fn clear_path(path: &str) -> Result<AbsPath, &'static str> {
    let Some(rest) = path.strip_prefix('/') else { return Err("it does not start with `/`") };
    // One slash at the end is forgiven, as `AbsPath` does.
    let rest = match rest.strip_suffix('/') {
        Some("") => return Err(EMPTY),
        Some(before) => before,
        None => rest,
    };
    let mut decoded = String::with_capacity(path.len());
    for component in rest.split('/').filter(|_| !rest.is_empty()) {
        decoded.push('/');
        decoded.push_str(&clear_component(component)?);
    }
    let decoded = if decoded.is_empty() { "/" } else { &*decoded };
    AbsPath::new(decoded).map_err(|_| "it is too long")
}

/// The name that a component stands for, if it is written in the one way that all servers read alike.
fn clear_component(component: &str) -> Result<String, &'static str> {
    let decoded = percent_decoded(component).ok_or("it has a malformed escape")?;
    let name = String::from_utf8(decoded).map_err(|_| "it has bytes that are not UTF-8")?;
    judge_name(&name)?;
    if written(&name) != component {
        return Err("it has a character that is escaped without need, or not escaped in spite of it");
    }
    Ok(name)
}

/// Whether all servers read a component with this decoded name alike.
///
/// # Errors
/// What is ambiguous about it.
pub(crate) fn judge_name(name: &str) -> Result<(), &'static str> {
    let has = |letters: &[char]| name.contains(letters);
    match () {
        () if name.is_empty() => Err(EMPTY),
        () if name == "." || name.starts_with("..") => Err("it has a component of dots"),
        () if name.ends_with('.') => Err("it has a component that ends in a dot"),
        () if name.starts_with(' ') || name.ends_with(' ') => {
            Err("it has a component with a space at an end")
        }
        () if has(&[';']) => Err("it has a parameter after `;`"),
        () if has(&['/', '\\']) => Err("it has an escaped slash or a backslash"),
        () if has(&['%']) => Err("it has an escaped percent sign"),
        () if has(&['?', '#']) => Err("it has an escaped `?` or a `#`"),
        () if name.chars().any(char::is_control) => Err("it has a control character"),
        // Symbols and digits of other scripts stand for `/`, `.` or `;` in some character sets; letters do not.
        () if !name.chars().all(|letter| letter.is_ascii() || letter.is_alphabetic()) => {
            Err("it has a symbol beyond ASCII")
        }
        () => Ok(()),
    }
}

/// The one way to write a name in a URL.
fn written(name: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests;
