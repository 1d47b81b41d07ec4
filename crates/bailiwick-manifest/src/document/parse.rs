//! From text to tree, through well-kept parsers.

use std::borrow::Cow;
use std::collections::HashSet;

use bailiwick_policy::finding::{Code, Finding, Span};
use jsonc_parser::ast;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Node, TableEntry, Value};

/// The largest text that is read, in bytes.
const MAX_SOURCE: usize = 16 * 1024 * 1024;
const MAX_DEPTH: usize = 64;

/// Reads JSON if the text starts with `{`, else TOML.
///
/// # Errors
/// One finding: too large, too deep, a duplicate key, or neither format.
pub fn parse(text: &str) -> Result<Node<'_>, Finding> {
    if text.len() > MAX_SOURCE {
        let message = format!("{} bytes are more than the limit of {MAX_SOURCE}", text.len());
        return Err(Finding::new(Code::SourceTooLarge, message)
            .at(Span::new(0, 0))
            .help("split it, or write patterns instead of single paths"));
    }
    if text.trim_start().starts_with('{') { parse_json(text) } else { parse_toml(text) }
}

fn parse_toml(text: &str) -> Result<Node<'_>, Finding> {
    let table = DeTable::parse(text).map_err(|error| {
        let span = error.span().map_or(Span::new(0, 0), |range| Span::new(range.start, range.end));
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        match message {
            _ if message.contains("recursion") => deep(span),
            _ if message.contains("duplicate") => {
                duplicate(text.get(span.start..span.end).unwrap_or("a key"), span)
            }
            _ => Finding::new(Code::SourceSyntax, format!("not TOML: {message}"))
                .at(span)
                .help("TOML has `key = value` lines below `[table]` headings, and strings in quotes"),
        }
    })?;
    let span = Span::new(table.span().start, table.span().end);
    Ok(Node { span, value: toml_table(table.into_inner(), text, 0)? })
}

fn toml_table<'t>(table: DeTable<'t>, text: &str, depth: usize) -> Result<Value<'t>, Finding> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let key_span = Span::new(key.span().start, key.span().end);
        entries.push(TableEntry {
            key: key.into_inner(),
            key_span,
            node: toml_node(value, text, depth + 1)?,
        });
    }
    entries.sort_by_key(|entry| entry.key_span);
    Ok(Value::Table(entries))
}

fn toml_node<'t>(value: Spanned<DeValue<'t>>, text: &str, depth: usize) -> Result<Node<'t>, Finding> {
    let span = Span::new(value.span().start, value.span().end);
    if depth > MAX_DEPTH {
        return Err(deep(span));
    }
    let value = match value.into_inner() {
        DeValue::String(string) => text_value(string, span, text),
        DeValue::Integer(number) if number.radix() == 10 => {
            Value::Number(number.to_string().replace('_', "").into())
        }
        DeValue::Integer(number) => {
            let read = u64::from_str_radix(number.as_str(), number.radix());
            Value::Number(read.map_or_else(|_| number.to_string(), |read| read.to_string()).into())
        }
        DeValue::Float(number) => Value::Number(number.to_string().into()),
        DeValue::Boolean(flag) => Value::Bool(flag),
        DeValue::Datetime(when) => Value::Text { text: when.to_string().into(), inner: None },
        DeValue::Array(items) => {
            let nodes = items.into_iter().map(|item| toml_node(item, text, depth + 1));
            Value::List(nodes.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => toml_table(table, text, depth)?,
    };
    Ok(Node { span, value })
}

fn parse_json(text: &str) -> Result<Node<'_>, Finding> {
    check_characters(text)?;
    let strict = jsonc_parser::ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = jsonc_parser::parse_to_ast(text, &jsonc_parser::CollectOptions::default(), &strict);
    let value = parsed.map_err(|error| {
        let span = Span::new(error.range().start, error.range().end);
        let message = error.kind().to_string();
        if matches!(error.kind(), jsonc_parser::errors::ParseErrorKind::NestingDepthExceeded) {
            return deep(span);
        }
        Finding::new(Code::SourceSyntax, format!("not JSON: {}", lower_first(&message)))
            .at(span)
            .help("JSON has double quotes, commas between values and none at the end, and no comments")
    })?;
    match value.value {
        Some(value) => json_node(value, text, 0),
        None => Err(Finding::new(Code::SourceSyntax, "the file is empty")
            .at(Span::new(0, 0))
            .help("write an object: `{ … }`")),
    }
}

fn json_node<'t>(value: ast::Value<'t>, text: &str, depth: usize) -> Result<Node<'t>, Finding> {
    let range = jsonc_parser::common::Ranged::range(&value);
    let span = Span::new(range.start, range.end);
    if depth > MAX_DEPTH {
        return Err(deep(span));
    }
    let value = match value {
        ast::Value::StringLit(string) => text_value(string.value, span, text),
        ast::Value::NumberLit(number) => Value::Number(Cow::Borrowed(number.value)),
        ast::Value::BooleanLit(flag) => Value::Bool(flag.value),
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::Array(items) => {
            let nodes = items.elements.into_iter().map(|item| json_node(item, text, depth + 1));
            Value::List(nodes.collect::<Result<_, _>>()?)
        }
        ast::Value::Object(object) => json_table(object, text, depth)?,
    };
    Ok(Node { span, value })
}

fn json_table<'t>(object: ast::Object<'t>, text: &str, depth: usize) -> Result<Value<'t>, Finding> {
    let mut entries = Vec::with_capacity(object.properties.len());
    let mut seen = HashSet::new();
    for property in object.properties {
        let range = jsonc_parser::common::Ranged::range(&property.name);
        let key_span = Span::new(range.start, range.end);
        let key = property.name.into_string();
        if !seen.insert(key.clone()) {
            return Err(duplicate(&key, key_span));
        }
        entries.push(TableEntry {
            key: key.into(),
            key_span,
            node: json_node(property.value, text, depth + 1)?,
        });
    }
    Ok(Value::Table(entries))
}

/// Refuses characters that JSON has nowhere, or not in strings. The parser is laxer than others are.
fn check_characters(text: &str) -> Result<(), Finding> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        let strange = if quoted { c < ' ' } else { !(c.is_ascii_graphic() || " \t\r\n".contains(c)) };
        if strange {
            let message = format!("not JSON: the character U+{:04X} cannot stand here", u32::from(c));
            let help = if quoted { "write an escape such as `\\n`" } else { "remove it" };
            return Err(Finding::new(Code::SourceSyntax, message)
                .at(Span::new(at, at + c.len_utf8()))
                .help(help));
        }
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
    }
    Ok(())
}

/// A string, and where it starts if what is written is what is meant.
fn text_value<'t>(string: Cow<'t, str>, span: Span, text: &str) -> Value<'t> {
    let inner = span.start + 1;
    let plain = text.get(inner..inner + string.len()) == Some(&*string) && inner + string.len() < span.end;
    Value::Text { text: string, inner: plain.then_some(inner) }
}

fn deep(span: Span) -> Finding {
    Finding::new(Code::SourceNesting, format!("values nest deeper than {MAX_DEPTH}"))
        .at(span)
        .help("flatten it")
}

fn duplicate(key: &str, span: Span) -> Finding {
    Finding::new(Code::ManifestDuplicateField, format!("`{key}` is given twice"))
        .at(span)
        .help("keep one of them")
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}
