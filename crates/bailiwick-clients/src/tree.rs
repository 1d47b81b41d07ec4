//! A settings text as a tree of places: where each value stands, and no more of it than is needed.

use std::ops::Range;

use jsonc_parser::ast::{ObjectPropName, Value as Json};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::SettingsError;
use crate::clients::Syntax;

/// A value and where it stands.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) kind: NodeKind,
}

/// What a value is.
#[derive(Debug)]
pub(crate) enum NodeKind {
    Text(String),
    List(Vec<Node>),
    /// In the order of the text.
    Table(Vec<Field>),
    Other,
}

/// A key and its value.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) key: Range<usize>,
    pub(crate) value: Node,
}

impl Node {
    /// Reads a text. An empty one is an empty table.
    pub(crate) fn read(syntax: Syntax, text: &str) -> Result<Self, SettingsError> {
        match syntax {
            Syntax::Json => {
                let wrong = |reason: String| SettingsError::Syntax { syntax: "JSON", reason };
                let read = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
                let value = read.map_err(|error| wrong(error.to_string()))?.value;
                Ok(value
                    .map_or(Self { span: 0..0, kind: NodeKind::Table(Vec::new()) }, |value| of_json(&value)))
            }
            Syntax::Toml => {
                let wrong =
                    |reason: &str| SettingsError::Syntax { syntax: "TOML", reason: reason.trim().to_owned() };
                let table = DeTable::parse(text).map_err(|error| wrong(error.message()))?;
                Ok(Self { span: table.span(), kind: of_toml_table(table.get_ref()) })
            }
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Text(text) => Some(text),
            NodeKind::List(_) | NodeKind::Table(_) | NodeKind::Other => None,
        }
    }

    pub(crate) fn items(&self) -> Option<&[Self]> {
        match &self.kind {
            NodeKind::List(items) => Some(items),
            NodeKind::Text(_) | NodeKind::Table(_) | NodeKind::Other => None,
        }
    }

    pub(crate) fn fields(&self) -> Option<&[Field]> {
        match &self.kind {
            NodeKind::Table(fields) => Some(fields),
            NodeKind::Text(_) | NodeKind::List(_) | NodeKind::Other => None,
        }
    }
}

fn of_json(value: &Json<'_>) -> Node {
    let range = value.range();
    let kind = match value {
        Json::StringLit(text) => NodeKind::Text(text.value.to_string()),
        Json::Array(list) => NodeKind::List(list.elements.iter().map(of_json).collect()),
        Json::Object(object) => NodeKind::Table(
            object
                .properties
                .iter()
                .map(|property| {
                    let (name, key) = match &property.name {
                        ObjectPropName::String(name) => (name.value.to_string(), name.range),
                        ObjectPropName::Word(name) => (name.value.to_owned(), name.range),
                    };
                    Field { name, key: key.start..key.end, value: of_json(&property.value) }
                })
                .collect(),
        ),
        Json::NumberLit(_) | Json::BooleanLit(_) | Json::NullKeyword(_) => NodeKind::Other,
    };
    Node { span: range.start..range.end, kind }
}

fn of_toml_table(table: &DeTable<'_>) -> NodeKind {
    let mut fields: Vec<Field> = table
        .iter()
        .map(|(key, value)| Field { name: key.get_ref().to_string(), key: key.span(), value: of_toml(value) })
        .collect();
    fields.sort_by_key(|field| field.key.start);
    NodeKind::Table(fields)
}

fn of_toml(value: &Spanned<DeValue<'_>>) -> Node {
    let kind = match value.get_ref() {
        DeValue::String(text) => NodeKind::Text(text.to_string()),
        DeValue::Array(items) => NodeKind::List(items.iter().map(of_toml).collect()),
        DeValue::Table(table) => of_toml_table(table),
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {
            NodeKind::Other
        }
    };
    Node { span: value.span(), kind }
}
