//! Texts and what several values agree on.

use super::{AbstractValue, Args};
use crate::knowledge::{Knowledge, Shape};

/// The deepest value that is carried into a function.
pub(super) const CARRIED: usize = 6;

/// What a method makes of a text.
pub(super) fn text_method(known: &Knowledge, text: String, whole: bool, method: &str) -> AbstractValue {
    match method {
        "format" => {
            let head = text.split('{').next().unwrap_or_default();
            AbstractValue::Text { whole: whole && head.len() == text.len(), text: head.to_owned() }
        }
        method if known.keeps(method) => AbstractValue::Text { text, whole },
        _ => AbstractValue::Unknown,
    }
}

/// A value that is small enough to be carried along.
pub(super) fn carried(abstract_value: AbstractValue) -> AbstractValue {
    if abstract_value.depth() > CARRIED { AbstractValue::Unknown } else { abstract_value }
}

/// The value that several values agree on: texts must be the same, else the first value that is none.
pub(super) fn agreed(abstract_values: impl Iterator<Item = AbstractValue>) -> AbstractValue {
    let mut first: Option<AbstractValue> = None;
    let mut texts_differ = false;
    for abstract_value in abstract_values {
        match (&first, abstract_value) {
            (_, AbstractValue::Unknown) => texts_differ = true,
            (None, abstract_value) => first = Some(abstract_value),
            (Some(AbstractValue::Text { .. }), abstract_value @ AbstractValue::Text { .. }) => {
                texts_differ |= first.as_ref() != Some(&abstract_value);
            }
            (Some(AbstractValue::Text { .. }), abstract_value) => first = Some(abstract_value),
            (Some(_), _) => {}
        }
    }
    match first {
        Some(AbstractValue::Text { .. }) if texts_differ => AbstractValue::Unknown,
        found => found.unwrap_or(AbstractValue::Unknown),
    }
}

/// The text that a value is, and whether that is all of it.
pub(crate) fn text_of(known: &Knowledge, abstract_value: &AbstractValue) -> Option<(String, bool)> {
    match abstract_value {
        AbstractValue::Text { text, whole } => Some((text.clone(), *whole)),
        AbstractValue::Object { path, args } if known.shape(path) == Some(Shape::Text) => {
            joined_path(known, args)
        }
        _ => None,
    }
}

pub(super) fn joined_path(known: &Knowledge, args: &Args) -> Option<(String, bool)> {
    let mut text = String::new();
    for (index, (_, abstract_value)) in args.iter().enumerate() {
        let Some((part, whole)) = text_of(known, abstract_value) else {
            return (index > 0 && !text.contains("://"))
                .then(|| (text.clone() + "/", false))
                .or_else(|| text.contains("://").then(|| (text.clone(), true)));
        };
        if part.starts_with('/') && index > 0 {
            text.clear();
        } else if index > 0 && !text.ends_with('/') {
            text.push('/');
        }
        text.push_str(&part);
        if !whole || text.contains("://") {
            return Some((text, whole));
        }
    }
    (!args.is_empty()).then_some((text, true))
}
