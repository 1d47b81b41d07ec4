//! Reading path patterns and paths. Fails closed when anything is ambiguous.

use super::{AbsPath, MAX_GLOB_PARTS, MAX_PATH, Part, PathPattern, Root, glob};
use crate::finding::{Code, Finding, Span};

/// Reads a pattern. `variables` says whether it may start with `$NAME`, `${NAME}` or `~`.
///
/// # Errors
/// A finding if it is relative, too long or ambiguous.
pub fn parse_pattern(text: &str, variables: bool) -> Result<PathPattern, Finding> {
    check_length(text)?;
    let (root, rest, offset) = split_root(text, variables)?;
    let mut parts = Vec::new();
    let mut at = offset;
    for component in rest.split('/').skip(1) {
        at += 1;
        let span = Span::new(at, at + component.len());
        if !(rest == "/" && component.is_empty()) {
            if variables && variable_name(component).is_some() {
                return Err(misplaced(component, span));
            }
            push_part(&mut parts, component, span)?;
        }
        at += component.len();
    }
    check_globs(&parts, text)?;
    Ok(PathPattern { root, parts: parts.into_boxed_slice() })
}

/// Reads one clean absolute path, without globs.
pub(crate) fn parse_absolute(text: &str) -> Result<AbsPath, Finding> {
    check_length(text)?;
    let Some(rest) = text.strip_prefix('/') else { return Err(relative(text)) };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let mut key = String::with_capacity(text.len());
    if rest.is_empty() {
        return Ok(AbsPath::from_key(key));
    }
    for component in rest.split('/') {
        check_component(component, Span::new(0, text.len()))?;
        if component.contains('\0') {
            return Err(Finding::new(Code::CapControl, "a path contains NUL").at(Span::new(0, text.len())));
        }
        key.push('\0');
        key.push_str(component);
    }
    Ok(AbsPath::from_key(key))
}

fn check_length(text: &str) -> Result<(), Finding> {
    if text.len() > MAX_PATH {
        let message = format!("a path of {} bytes is longer than the limit of {MAX_PATH}", text.len());
        return Err(Finding::new(Code::PathTooLong, message)
            .at(Span::new(0, text.len()))
            .help("no file can have such a path; shorten it"));
    }
    Ok(())
}

fn check_globs(parts: &[Part], text: &str) -> Result<(), Finding> {
    let literal = parts.iter().take_while(|part| matches!(part, Part::Literal(_))).count();
    if parts.len() - literal > MAX_GLOB_PARTS {
        let message = format!("more than {MAX_GLOB_PARTS} components from the first glob on");
        return Err(Finding::new(Code::PathTooManyGlobs, message)
            .at(Span::new(0, text.len()))
            .help("write one `**` where several globs stand"));
    }
    Ok(())
}

/// The root, what follows it (empty or starting with `/`), and how many bytes the root took.
fn split_root(text: &str, variables: bool) -> Result<(Root, &str, usize), Finding> {
    if text.starts_with('/') {
        return Ok((Root::Slash, text, 0));
    }
    if !text.starts_with(['$', '~']) {
        return Err(relative(text));
    }
    let first = text.split('/').next().unwrap_or_default();
    let rest = text.get(first.len()..).unwrap_or_default();
    let span = Span::new(0, first.len());
    if !variables {
        return Err(Finding::new(Code::PathVariable, format!("`{first}` is not replaced here"))
            .at(span)
            .help("write the absolute path; variables are for manifests"));
    }
    let name = variable_name(first).ok_or_else(|| {
        Finding::new(Code::PathVariable, format!("`{first}` is not a path variable"))
            .at(span)
            .help("write `~`, `$HOME`, `$WORKSPACE` or `${NAME}` as the whole first component")
    })?;
    if rest.ends_with('/') && rest.len() == 1 {
        return Err(Finding::new(Code::PathEmptyComponent, "a path ends in `/`")
            .at(Span::new(first.len(), text.len()))
            .help(format!("write `{first}`")));
    }
    Ok((Root::Variable(name.into()), rest, first.len()))
}

fn misplaced(component: &str, span: Span) -> Finding {
    let mut chars = component.chars();
    let literal = chars.next().map(|first| format!("[{first}]{}", chars.as_str())).unwrap_or_default();
    Finding::new(Code::PathVariable, format!("`{component}` is replaced only at the start of a path"))
        .at(span)
        .help(format!("start the path with it, or write `{literal}` for a directory of that name"))
}

/// The variable that a whole component names, if it has the form of one.
pub(super) fn variable_name(component: &str) -> Option<&str> {
    if component == "~" {
        return Some("HOME");
    }
    let name = component.strip_prefix('$')?;
    let name = name.strip_prefix('{').map_or(Some(name), |inner| inner.strip_suffix('}'))?;
    let mut bytes = name.bytes();
    let head = bytes.next().is_some_and(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let tail = bytes.all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    (head && tail).then_some(name)
}

fn push_part(parts: &mut Vec<Part>, component: &str, span: Span) -> Result<(), Finding> {
    check_component(component, span)?;
    let part = if component == "**" { Part::Deep } else { glob::parse_component(component, span)? };
    if !(part == Part::Deep && parts.last() == Some(&Part::Deep)) {
        parts.push(part);
    }
    Ok(())
}

fn check_component(component: &str, span: Span) -> Result<(), Finding> {
    match component {
        "" => Err(Finding::new(Code::PathEmptyComponent, "a path has an empty component")
            .at(span)
            .help("write single slashes between names and none at the end")),
        "." | ".." => Err(Finding::new(Code::PathDot, format!("a path has a `{component}` component"))
            .at(span)
            .help("write the path it leads to")),
        _ => Ok(()),
    }
}

fn relative(text: &str) -> Finding {
    Finding::new(Code::PathRelative, format!("`{text}` is not an absolute path"))
        .at(Span::new(0, text.len()))
        .help("start it with `/`, or in a manifest with `$WORKSPACE/` or `~/`")
}
