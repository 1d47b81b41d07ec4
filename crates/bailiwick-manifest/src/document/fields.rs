//! Reading a table field by field; an unread field is a finding at the end.

use bailiwick_policy::capability::nearest;
use bailiwick_policy::finding::{Code, Collector, Finding, Span};

use super::{Node, TableEntry};

/// The fields of one table.
#[derive(Debug)]
pub struct Fields<'n, 't> {
    what: &'static str,
    span: Span,
    entries: &'n [TableEntry<'t>],
    asked: Vec<&'static str>,
    extensible: bool,
}

impl<'n, 't> Fields<'n, 't> {
    /// The fields of `node`, which should be a table; `what` names it in messages.
    ///
    /// # Errors
    /// A finding of `code` if it is no table.
    pub fn from_node(node: &'n Node<'t>, what: &'static str, code: Code) -> Result<Self, Finding> {
        let entries = node.table(code).map_err(|finding| finding.help(format!("{what} is a table")))?;
        Ok(Self { what, span: node.span, entries, asked: Vec::new(), extensible: true })
    }

    /// The same fields, with no room for extensions.
    #[must_use]
    pub const fn closed(mut self) -> Self {
        self.extensible = false;
        self
    }

    /// The value of a field that need not be there.
    pub fn optional(&mut self, key: &'static str) -> Option<&'n Node<'t>> {
        self.asked.push(key);
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// The value of a field known by either of two names.
    pub fn either(
        &mut self,
        key: &'static str,
        other: &'static str,
        found: &mut Collector,
    ) -> Option<&'n Node<'t>> {
        let (first, second) = (self.optional(key), self.optional(other));
        if let (Some(_), Some(second)) = (first, second) {
            let message = format!("`{key}` and `{other}` are the same field");
            found.push(
                Finding::new(Code::ManifestDuplicateField, message).at(second.span).help("keep one of them"),
            );
        }
        first.or(second)
    }

    /// The value of a field that must be there.
    ///
    /// # Errors
    /// A finding of `code` if it is not there.
    pub fn required(&mut self, key: &'static str, code: Code) -> Result<&'n Node<'t>, Finding> {
        let (what, span) = (self.what, Span::new(self.span.start, self.span.start));
        self.optional(key).ok_or_else(|| {
            Finding::new(code, format!("{what} has no `{key}`")).at(span).help(format!("add `{key}`"))
        })
    }

    /// Reports every field that was not read, extensions (`x-…`, `_meta`) excepted where they may be.
    pub fn finish(self, code: Code, found: &mut Collector) {
        for entry in self.entries {
            let extension = self.extensible && (entry.key.starts_with("x-") || entry.key == "_meta");
            if extension || self.asked.contains(&&*entry.key) {
                continue;
            }
            let meant = if found.is_full() { None } else { nearest(&entry.key, self.asked.iter().copied()) };
            let help = match meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None if self.extensible => {
                    format!("known here: {}; extensions start with `x-`", self.asked.join(", "))
                }
                None => format!("known here: {}", self.asked.join(", ")),
            };
            let message = format!("{} has no field `{}`", self.what, entry.key);
            found.push(Finding::new(code, message).at(entry.key_span).help(help));
        }
    }
}
