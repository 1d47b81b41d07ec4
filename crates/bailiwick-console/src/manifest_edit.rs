//! A line more in a manifest, and no other byte changed.
//!
//! Where the line goes is read from the places of the manifest's own parser. The result is read again, and has to be the
//! same manifest with these lines more. Fails closed when: the text is no TOML manifest that this holds for, the tool is not
//! there, or what it may touch is said by its policy, which the line would not widen.

use std::fmt::Write as _;

use bailiwick_manifest::Manifest;
use bailiwick_manifest::document::{self, Node, Value};
use bailiwick_policy::capability::Capability;

/// Why a line is not added. What to do instead is to add it by hand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditFault {
    /// The manifest cannot be read.
    #[error("the manifest cannot be read: {0}")]
    Unreadable(String),
    /// It has no such tool.
    #[error("the manifest has no tool `{0}`")]
    NoTool(String),
    /// The tool's policy says what it may touch.
    #[error("the policy of `{0}` says what it may touch: change that by hand")]
    ByPolicy(String),
    /// The line is there already.
    #[error("the manifest declares this already: what refused it is something else")]
    Declared,
    /// The text is written in a way that is not edited here.
    #[error("this manifest is written in a way that is not edited here: add the line by hand")]
    Unusual,
}

/// The manifest's text with these lines more among the capabilities of a tool.
///
/// # Errors
/// Why it is left alone.
///
/// # Examples
/// ```
/// use bailiwick_console::with_capability;
/// let text = "name = 'n'\nversion = '1'\n\n[[tools]]\nname = 'read' # mine\ncapabilities = ['fs:read:/a']\n";
/// let line = "fs:read:/b".parse()?;
/// let wider = with_capability(text, "read", &[line])?;
/// assert!(wider.ends_with("name = 'read' # mine\ncapabilities = ['fs:read:/a', \"fs:read:/b\"]\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn with_capability(text: &str, tool: &str, lines: &[Capability]) -> Result<String, EditFault> {
    let before = read(text)?;
    let declared = before.tools().iter().find(|one| one.name() == tool);
    let declared = declared.ok_or_else(|| EditFault::NoTool(tool.to_owned()))?;
    let has =
        |line: &Capability| declared.capabilities().unwrap_or_default().iter().any(|old| old.value == *line);
    if lines.iter().all(has) {
        return Err(EditFault::Declared);
    }
    if declared.policy().is_some() {
        return Err(EditFault::ByPolicy(tool.to_owned()));
    }
    let fresh: Vec<&Capability> = lines.iter().filter(|line| !has(line)).collect();
    let (at, insertion) = insertion(text, tool, &fresh).ok_or(EditFault::Unusual)?;
    let (head, tail) = text.split_at_checked(at).ok_or(EditFault::Unusual)?;
    let after = format!("{head}{insertion}{tail}");
    let wider = read(&after)?;
    if is_exactly_wider(&before, &wider, tool, &fresh) { Ok(after) } else { Err(EditFault::Unusual) }
}

fn read(text: &str) -> Result<Manifest, EditFault> {
    Manifest::parse(text).map_err(|findings| EditFault::Unreadable(findings.to_string()))
}

/// Where what is inserted.
fn insertion(text: &str, tool: &str, fresh: &[&Capability]) -> Option<(usize, String)> {
    let root = document::parse(text).ok()?;
    let tools = field(&root, "tools")?;
    let Value::List(tools) = &tools.value else { return None };
    let node = tools.iter().find(|node| field(node, "name").is_some_and(|name| is_text(name, tool)))?;
    let written: Vec<String> = fresh.iter().map(|line| quoted(&line.to_string())).collect();
    let Some(list) = field(node, "capabilities") else {
        let name = field(node, "name")?;
        let start = text.get(..name.span.start)?.rsplit('\n').next()?.trim();
        // A line of its own below the name's: a table in braces would have it on the same line.
        let is_alone = start.strip_prefix("name").is_some_and(|rest| rest.trim() == "=");
        let end = text.get(name.span.end..)?.find('\n').map_or(text.len(), |more| name.span.end + more);
        return is_alone.then(|| (end, format!("\ncapabilities = [{}]", written.join(", "))));
    };
    let Value::List(items) = &list.value else { return None };
    let Some(last) = items.last() else { return Some((list.span.start + 1, written.join(", "))) };
    let before = text.get(..last.span.start)?.rsplit('\n').next()?;
    let separator = if before.trim().is_empty() { format!(",\n{before}") } else { ", ".to_owned() };
    let insertion = written.iter().fold(String::new(), |mut all, line| {
        let _ = write!(all, "{separator}{line}");
        all
    });
    Some((last.span.end, insertion))
}

fn field<'n, 't>(node: &'n Node<'t>, key: &str) -> Option<&'n Node<'t>> {
    let Value::Table(entries) = &node.value else { return None };
    entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
}

fn is_text(node: &Node<'_>, wanted: &str) -> bool {
    matches!(&node.value, Value::Text { text, .. } if text == wanted)
}

/// A TOML string that shows nothing but what it says.
fn quoted(text: &str) -> String {
    let one = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        _ if c.is_ascii_graphic() || c == ' ' || c.is_alphanumeric() => c.to_string(),
        _ => format!("\\U{:08X}", u32::from(c)),
    };
    format!("\"{}\"", text.chars().map(one).collect::<String>())
}

/// Whether one manifest is the other with these lines more in this tool, and nothing else.
fn is_exactly_wider(before: &Manifest, after: &Manifest, tool: &str, fresh: &[&Capability]) -> bool {
    let lines = |manifest: &Manifest, own: bool| -> Vec<String> {
        let tools = manifest.tools().iter().filter(|one| (one.name() == tool) == own);
        let mut all: Vec<String> = tools
            .flat_map(|one| {
                one.capabilities()
                    .unwrap_or_default()
                    .iter()
                    .map(|line| format!("{} {}", one.name(), line.value))
            })
            .collect();
        all.sort();
        all
    };
    let mut expected = lines(before, true);
    expected.extend(fresh.iter().map(|line| format!("{tool} {line}")));
    expected.sort();
    let others = |manifest: &Manifest| {
        let bare = manifest.clone().with_tools(|one| one.name() != tool);
        bare.canonical()
    };
    expected == lines(after, true) && others(before) == others(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name = 'n'\nversion = '1'\n";

    fn edited(tools: &str, line: &str) -> Result<String, EditFault> {
        let text = format!("{HEAD}{tools}");
        let after = with_capability(&text, "read", &[line.parse().unwrap()])?;
        Ok(after.strip_prefix(HEAD).unwrap().to_owned())
    }

    #[test]
    fn a_line_is_added_as_its_list_is_written() {
        let cases = [
            ("[[tools]]\nname = 'read'\n", "[[tools]]\nname = 'read'\ncapabilities = [\"fs:read:/b\"]\n"),
            ("[[tools]]\nname = 'read'", "[[tools]]\nname = 'read'\ncapabilities = [\"fs:read:/b\"]"),
            (
                "[[tools]]\nname = 'read'\ncapabilities = []\n",
                "[[tools]]\nname = 'read'\ncapabilities = [\"fs:read:/b\"]\n",
            ),
            (
                "[[tools]]\nname = 'read'\ncapabilities = [ # why\n  'fs:read:/a', # a\n]\n",
                "[[tools]]\nname = 'read'\ncapabilities = [ # why\n  'fs:read:/a',\n  \"fs:read:/b\", # a\n]\n",
            ),
            (
                "[[tools]]\nname = 'x'\ncapabilities = ['fs:read:/a']\n[[tools]]\ncapabilities = ['fs:read:/a']\nname = 'read'\n",
                "[[tools]]\nname = 'x'\ncapabilities = ['fs:read:/a']\n[[tools]]\ncapabilities = ['fs:read:/a', \"fs:read:/b\"]\nname = 'read'\n",
            ),
        ];
        for (before, after) in cases {
            assert_eq!(edited(before, "fs:read:/b").as_deref(), Ok(after), "{before}");
        }
    }

    #[test]
    fn what_cannot_be_edited_is_left_alone() {
        assert_eq!(edited("", "fs:read:/b"), Err(EditFault::NoTool("read".to_owned())));
        let has = "[[tools]]\nname = 'read'\ncapabilities = ['fs:read:/b']\n";
        assert_eq!(edited(has, "fs:read:/b"), Err(EditFault::Declared));
        let policy = "[[tools]]\nname = 'read'\npolicy = { filesystem = { read = ['/a'] } }\n";
        assert_eq!(edited(policy, "fs:read:/b"), Err(EditFault::ByPolicy("read".to_owned())));
        let inline = format!("{HEAD}tools = [{{ name = 'read' }}]\n");
        let line: Capability = "fs:read:/b".parse().unwrap();
        assert_eq!(with_capability(&inline, "read", &[line]), Err(EditFault::Unusual));
        assert!(matches!(edited("[[tools]", "fs:read:/b"), Err(EditFault::Unreadable(_))));
    }

    #[test]
    fn text_that_acts_stays_text() {
        let after = edited("[[tools]]\nname = 'read'\n", "fs:read:/a\u{202e}\"]\\").unwrap();
        assert!(after.contains("\\U0000202E\\\"]\\\\"), "{after}");
    }
}
