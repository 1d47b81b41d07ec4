//! A TOML or JSON text as one kind of tree in which every value knows its place.
//!
//! Strict: no duplicate keys, no comments in JSON, bounded size and depth. What a reader does not ask for is a
//! finding, so a misspelt key is never silently a default.

mod fields;
mod parse;

pub use fields::Fields;
pub use parse::parse;

use std::borrow::Cow;

use bailiwick_policy::finding::{Code, Finding, Span};

/// A value and where it stands.
#[derive(Debug, Clone)]
pub struct Node<'t> {
    /// Where it stands.
    pub span: Span,
    /// The value itself.
    pub value: Value<'t>,
}

/// A value of TOML or JSON.
#[derive(Debug, Clone)]
pub enum Value<'t> {
    /// `null`, in JSON only.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as written.
    Number(Cow<'t, str>),
    /// A string; `inner` is where its first character stands, if it is written without escapes.
    Text {
        /// The string, without quotes and escapes.
        text: Cow<'t, str>,
        /// Where its first character stands.
        inner: Option<usize>,
    },
    /// A list.
    List(Vec<Node<'t>>),
    /// A table or object, in the order of the text.
    Table(Vec<TableEntry<'t>>),
}

/// One field of a table.
#[derive(Debug, Clone)]
pub struct TableEntry<'t> {
    /// Its key.
    pub key: Cow<'t, str>,
    /// Where the key stands.
    pub key_span: Span,
    /// Its value.
    pub node: Node<'t>,
}

impl<'t> Node<'t> {
    const fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Text { .. } => "a string",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// A finding that something else was expected here.
    #[must_use]
    pub fn expected(&self, code: Code, what: &str) -> Finding {
        Finding::new(code, format!("expected {what}, found {}", self.kind()))
            .at(self.span)
            .help(format!("write {what}"))
    }

    /// The string that is expected here.
    ///
    /// # Errors
    /// A finding of `code` if it is something else.
    pub fn text(&self, code: Code) -> Result<&str, Finding> {
        match &self.value {
            Value::Text { text, .. } => Ok(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Table(_) => {
                Err(self.expected(code, "a string"))
            }
        }
    }

    /// The boolean that is expected here.
    ///
    /// # Errors
    /// A finding of `code` if it is something else.
    pub fn flag(&self, code: Code) -> Result<bool, Finding> {
        match &self.value {
            Value::Bool(flag) => Ok(*flag),
            Value::Null | Value::Text { .. } | Value::Number(_) | Value::List(_) | Value::Table(_) => {
                Err(self.expected(code, "`true` or `false`"))
            }
        }
    }

    /// The whole number that is expected here.
    ///
    /// # Errors
    /// A finding of `code` if it is something else, or does not fit.
    pub fn whole(&self, code: Code) -> Result<u64, Finding> {
        match &self.value {
            Value::Number(text) => text.parse().map_err(|_| {
                Finding::new(code, format!("`{text}` is not a whole number that fits"))
                    .at(self.span)
                    .help(format!("write a number from 0 to {}, without a fraction", u64::MAX))
            }),
            Value::Null | Value::Text { .. } | Value::Bool(_) | Value::List(_) | Value::Table(_) => {
                Err(self.expected(code, "a whole number"))
            }
        }
    }

    /// The list that is expected here.
    ///
    /// # Errors
    /// A finding of `code` if it is something else.
    pub fn list(&self, code: Code) -> Result<&[Self], Finding> {
        match &self.value {
            Value::List(items) => Ok(items),
            Value::Null | Value::Text { .. } | Value::Bool(_) | Value::Number(_) | Value::Table(_) => {
                Err(self.expected(code, "a list"))
            }
        }
    }

    /// The table that is expected here.
    ///
    /// # Errors
    /// A finding of `code` if it is something else.
    pub fn table(&self, code: Code) -> Result<&[TableEntry<'t>], Finding> {
        match &self.value {
            Value::Table(entries) => Ok(entries),
            Value::Null | Value::Text { .. } | Value::Bool(_) | Value::Number(_) | Value::List(_) => {
                Err(self.expected(code, "a table"))
            }
        }
    }

    /// Puts a finding about the text of this string where it stands in the document.
    ///
    /// # Errors
    /// The finding, placed.
    pub fn place<T>(&self, result: Result<T, Finding>) -> Result<T, Finding> {
        let inner = match &self.value {
            Value::Text { inner, .. } => *inner,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Table(_) => None,
        };
        result.map_err(|finding| {
            finding
                .map_span(|span| Some(span.zip(inner).map_or(self.span, |(span, inner)| span.shifted(inner))))
        })
    }
}
